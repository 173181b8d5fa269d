"""What a process of a fleet is to do: plans, written by the tests and read by the processes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from anarchon import JobSettings, Schedule

Body = Literal["quick", "sleep", "ticks", "blocks-loop", "endless-thread", "kills-itself"]
"""What a job does; each logs its start and its end.

`quick` returns at once. `sleep` sleeps. `ticks` logs a line every 20 ms. `blocks-loop` is a
coroutine that sleeps without awaiting. `endless-thread` is a plain function that never returns.
`kills-itself` ends its process by SIGKILL.
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Grid(TypedDict):
    """Slots at `first` and every `every` thereafter, in milliseconds: no test waits for a minute.

    Of a fleet, `first` counts from the moment at which its first processes were ready to start.
    """

    first: int
    every: int


class JobPlan(TypedDict):
    """A job. `seconds` is how long each attempt takes; the last one stands for all later ones."""

    schedule: str | Grid
    body: Body
    seconds: list[float]
    settings: JobSettings


class InstancePlan(TypedDict):
    """An instance: its jobs, and how it lives and dies.

    A process that is ready waits until there is the file `go`, which holds the time in milliseconds
    from which grids are counted. `die_before_body` names a file: the first process that is about to
    run a body and can make that file dies there, after the claim was won. `forget_to_stop` lets the
    main thread end after so many seconds, without a word to the scheduler.
    """

    url: str
    log: str
    go: str
    prefix: str
    lease: float
    heartbeat: float | None
    shutdown_timeout: float
    jobs: dict[str, JobPlan]
    die_before_body: str | None
    forget_to_stop: float | None


class GridSchedule:
    """A schedule object of a user's own."""

    def __init__(self, grid: Grid) -> None:
        self._first = _EPOCH + timedelta(milliseconds=grid["first"])
        self._every = timedelta(milliseconds=grid["every"])
        self.key = f"from {grid['first']} every {grid['every']}"

    def next_after(self, moment: datetime, /) -> datetime | None:
        """The first slot strictly after a moment."""
        if moment < self._first:
            return self._first
        return self._first + ((moment - self._first) // self._every + 1) * self._every


def schedule_of(plan: str | Grid, *, start: int = 0) -> str | Schedule:
    """The schedule as the scheduler takes it; grids are counted from `start`."""
    if isinstance(plan, str):
        return plan
    return GridSchedule({"first": start + plan["first"], "every": plan["every"]})


Entry = dict[str, Any]
"""A line of the log that a process writes."""
