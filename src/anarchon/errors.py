"""What can go wrong, in one tree.

::

    AnarchonError
    ├── ConfigurationError            wrong options, found before anything runs
    │   ├── ScheduleError             an expression, interval, zone or schedule object
    │   └── UnknownJobError           no job of that name is declared here
    ├── SchedulerStateError           asked at the wrong time, or on the wrong loop or process
    ├── RunRefused                    a manual run that may not start now
    ├── RunMoved                      a manual run that another instance took over
    └── StoreError                    the store refused, for good
        ├── StoreUnavailable          no answer: whether it happened is unknown
        ├── StoreRefused              an answer that says "not now": nothing happened
        ├── StorePermissionError      authentication or a missing permission
        ├── StoreFormatError          data of a newer anarchon, or none of ours
        └── StoreServerError          a server that cannot serve, such as a replica

`NoRetry` is not an error of anarchon: a job raises it to end its run without another attempt.

Every class has a stable ``code``; messages may change, codes do not.
"""

from __future__ import annotations

from typing import ClassVar


class AnarchonError(Exception):
    """The root of everything that anarchon raises. `code` is stable across versions."""

    code: ClassVar[str] = "ANARCHON"


class ConfigurationError(AnarchonError, ValueError):
    """Options that cannot work; raised where they are given, at the latest by ``start()``."""

    code = "ANARCHON_CONFIGURATION"


class ScheduleError(ConfigurationError):
    """A cron expression, interval, time zone or schedule object that cannot be used."""

    code = "ANARCHON_SCHEDULE"


class UnknownJobError(ConfigurationError, LookupError):
    """A job that is not declared on this scheduler, nor known to the store where that is asked."""

    code = "ANARCHON_UNKNOWN_JOB"


class SchedulerStateError(AnarchonError, RuntimeError):
    """This cannot be asked now or here.

    The scheduler is not started, or stopping; or it runs on another event loop, or in the process
    from which this one was forked; or the call would block the loop that it waits for.
    """

    code = "ANARCHON_SCHEDULER_STATE"


class RunRefused(AnarchonError):  # noqa: N818 - a refusal, named for what happened
    """A manual run was not started: another run of the job is live, or the time ran out."""

    code = "ANARCHON_RUN_REFUSED"


class RunMoved(AnarchonError):  # noqa: N818 - named for what happened
    """A manual run went on elsewhere: its lease was lost here and another instance has it."""

    code = "ANARCHON_RUN_MOVED"


class StoreError(AnarchonError):
    """The store answered with an error that repeating does not mend."""

    code = "ANARCHON_STORE"


class StoreUnavailable(StoreError):  # noqa: N818 - a state of the store
    """The store did not answer, or the answer was lost. The call may or may not have happened."""

    code = "ANARCHON_STORE_UNAVAILABLE"


class StoreRefused(StoreError):  # noqa: N818 - a refusal, named for what happened
    """The store answered that it cannot do this now (loading, read-only); nothing happened."""

    code = "ANARCHON_STORE_REFUSED"


class StorePermissionError(StoreError):
    """The store does not know the user or password, or the user may not run a command or key."""

    code = "ANARCHON_STORE_PERMISSION"


class StoreFormatError(StoreError):
    """The store holds data in a format that this version does not read."""

    code = "ANARCHON_STORE_FORMAT"


class StoreServerError(StoreError):
    """The server found cannot serve as a store: a replica, or one without what is needed."""

    code = "ANARCHON_STORE_SERVER"


class NoRetry(Exception):  # noqa: N818 - raised by jobs as a statement, not an error of ours
    """Raised by a job to fail its run at once, whatever attempts are left."""
