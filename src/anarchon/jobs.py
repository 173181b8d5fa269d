"""Jobs: a named function with a schedule and options, checked where it is declared."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict, cast

from anarchon.backends.base import JobTerms, Overlap
from anarchon.callables import (
    innermost,
    is_async,
    place_of,
    refuse_what_is_no_function,
    takes_argument,
)
from anarchon.durations import Duration, milliseconds
from anarchon.errors import ConfigurationError, ScheduleError
from anarchon.schedules import Schedule, Slots, slots_of

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from datetime import timedelta
    from zoneinfo import ZoneInfo

LONGEST_NAME = 512
LEAST_LATENESS_MS = 1000
LONGEST_RETRY_DELAY_MS = 60_000
MOST_ATTEMPTS = 1_000_000


class JobSettings(TypedDict, total=False):
    """The options of a job. Durations are seconds, or a `timedelta`.

    - ``name``: the function's qualified name unless given; the same in every instance and version.
    - ``timezone``: an IANA name or `ZoneInfo` in which a cron expression is read; UTC.
    - ``jitter``: runs are spread over so long after their slots, each by the same on all instances;
    0.
    - ``max_late``: how much later than that a run may still start; 60, at least 1.
    - ``overlap``: ``"skip"`` (the default), ``"wait"`` or ``"allow"`` while another run is live.
    - ``max_attempts``: attempts of a run, crashes and failures alike; 3.
    - ``retry_delay``: the wait after the first failure, doubling up to 60, with jitter; 1.
    - ``catch_up``: how far back missed slots may still run; 0.
    - ``coalesce``: of missed slots only the newest (True, the default), or each.
    - ``timeout``: how long an attempt may run; no limit.
    """

    name: str
    timezone: str | ZoneInfo
    jitter: Duration
    max_late: Duration
    overlap: Literal["skip", "wait", "allow"]
    max_attempts: int
    retry_delay: Duration
    catch_up: Duration
    coalesce: bool
    timeout: Duration | None


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The options of a job; lengths in milliseconds."""

    jitter: int
    max_late: int
    overlap: Overlap
    max_attempts: int
    retry_delay: int
    catch_up: int
    coalesce: bool
    timeout: int | None


@dataclass(frozen=True, slots=True)
class Job:
    """A declared job."""

    name: str
    function: Callable[..., object]
    slots: Slots
    options: JobOptions
    takes_run: bool
    in_thread: bool
    declared_at: str

    @property
    def keep(self) -> int:
        """How long after its slot a run may still be asked for, in milliseconds."""
        lateness = self.options.jitter + self.options.max_late
        return max(lateness, self.options.catch_up)

    @property
    def definition(self) -> str:
        """Schedule and options in one line, the same wherever they are the same."""
        told = [self.slots.key]
        for name, value in dataclasses.asdict(self.options).items():
            if value != getattr(_DEFAULTS, name):
                lengths = isinstance(value, int) and name not in {"max_attempts", "coalesce"}
                told.append(f"{name}={value / 1000:g}" if lengths else f"{name}={value}")
        return " ".join(told)

    def delay_of(self, slot: int) -> int:
        """How long after its slot this run is asked for: within the jitter, the same everywhere.

        Drawn from job and slot: were each instance to draw its own, the earliest would always win
        and undo the spreading.
        """
        if not self.options.jitter:
            return 0
        digest = hashlib.blake2b(f"{self.name}\0{slot}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) % (self.options.jitter + 1)

    def retry_delay(self, attempt: int, rng: random.Random) -> int:
        """How long to wait after a failed attempt, in milliseconds: doubling, up to a half less."""
        longest = max(LONGEST_RETRY_DELAY_MS, self.options.retry_delay)
        doubled: int = self.options.retry_delay << min(attempt - 1, 30)
        return round(min(doubled, longest) * rng.uniform(0.5, 1.0))

    def terms(self, lease: int, history_size: int, history_ttl: int) -> JobTerms:
        """What the store is told of this job."""
        options = self.options
        return JobTerms(
            job=self.name,
            schedule_key=self.slots.key,
            overlap=options.overlap,
            max_attempts=options.max_attempts,
            lease=lease,
            reach=max(options.max_late, options.catch_up, lease),
            keep=self.keep,
            history_size=history_size,
            history_ttl=history_ttl,
        )


def job_options(settings: JobSettings) -> JobOptions:
    """Check a job's settings, with the defaults of those not given.

    Raises `ConfigurationError`: what was given, what is accepted.
    """
    return _checked_options(
        jitter=settings.get("jitter", 0),
        max_late=settings.get("max_late", 60),
        overlap=settings.get("overlap", "skip"),
        max_attempts=settings.get("max_attempts", 3),
        retry_delay=settings.get("retry_delay", 1),
        catch_up=settings.get("catch_up", 0),
        coalesce=settings.get("coalesce", True),
        timeout=settings.get("timeout"),
    )


def _checked_options(  # noqa: PLR0913 - the options of a job
    *,
    jitter: Duration,
    max_late: Duration,
    overlap: str,
    max_attempts: int,
    retry_delay: Duration,
    catch_up: Duration,
    coalesce: bool,
    timeout: Duration | None,
) -> JobOptions:
    """Check a job's options. Raises `ConfigurationError`: what was given, what is accepted."""
    if overlap not in [known.value for known in Overlap]:
        message = f"overlap={overlap!r}: give 'skip', 'wait' or 'allow'"
        raise ConfigurationError(message)
    if not isinstance(cast("object", coalesce), bool):
        message = f"coalesce={coalesce!r}: give True or False"
        raise ConfigurationError(message)
    whole = isinstance(cast("object", max_attempts), int) and not isinstance(max_attempts, bool)
    if not whole or not 1 <= max_attempts <= MOST_ATTEMPTS:
        message = f"max_attempts={max_attempts!r}: give a whole number from 1 to {MOST_ATTEMPTS}"
        raise ConfigurationError(message)
    return JobOptions(
        jitter=milliseconds(jitter, "jitter"),
        max_late=max(milliseconds(max_late, "max_late"), LEAST_LATENESS_MS),
        overlap=Overlap(overlap),
        max_attempts=max_attempts,
        retry_delay=milliseconds(retry_delay, "retry_delay"),
        catch_up=milliseconds(catch_up, "catch_up"),
        coalesce=coalesce,
        timeout=None if timeout is None else milliseconds(timeout, "timeout", least=1),
    )


_DEFAULTS = job_options({})


def make_job(
    function: Callable[..., object],
    schedule: str | float | timedelta | Schedule,
    *,
    name: str | None,
    timezone: str | ZoneInfo | None,
    options: JobOptions,
) -> Job:
    """Check a function and its schedule. Raises `ConfigurationError`, or `ScheduleError`."""
    refuse_what_is_no_function(
        function,
        "a job is a function, declared by @scheduler.job(schedule) or"
        " scheduler.add_job(function, schedule)",
    )
    job_name = _name_of(function) if name is None else checked_name(name)
    try:
        slots = slots_of(schedule, timezone)
    except ScheduleError as error:
        message = f"job {job_name!r}: {error}"
        raise ScheduleError(message) from error
    return Job(
        name=job_name,
        function=function,
        slots=slots,
        options=options,
        takes_run=takes_argument(function, f"job {job_name!r}", "a job", "Run"),
        in_thread=not is_async(function),
        declared_at=place_of(function),
    )


def checked_name(name: object) -> str:
    """The name of a job, if it can be one. Raises `ConfigurationError`."""
    if not isinstance(name, str) or not name:
        message = f"name={name!r}: give a job a name that is a text and not empty"
        raise ConfigurationError(message)
    try:
        length = len(name.encode())
    except UnicodeEncodeError as error:
        message = f"name={name!r}: the name of a job must be text that UTF-8 can write"
        raise ConfigurationError(message) from error
    if length > LONGEST_NAME:
        message = f"name={name[:40]!r}…: {length} bytes; a job's name has at most {LONGEST_NAME}"
        raise ConfigurationError(message)
    return name


def _name_of(function: Callable[..., object]) -> str:
    # Without the module, so that it does not depend on how the program was started.
    inner = innermost(function)
    name = getattr(inner, "__qualname__", "") or type(inner).__qualname__
    if "<lambda>" in name or "<locals>" in name:
        message = (
            f"{name}: a lambda or a local function has no lasting name: give name=..., which stays"
            " the same in every instance and version"
        )
        raise ConfigurationError(message)
    return checked_name(name)
