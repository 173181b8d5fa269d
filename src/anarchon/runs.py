"""Runs as a job sees them, and as history tells them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from zoneinfo import ZoneInfo

FARTHEST = 32_503_680_000_000
"""The year 3000, in milliseconds: moments up to it can be told in every time zone."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(ms: int, zone: ZoneInfo | None = None) -> datetime:
    """The aware datetime of `ms` milliseconds since the epoch, in `zone` (UTC if none), exactly."""
    utc = _EPOCH + timedelta(milliseconds=ms)
    return utc if zone is None else utc.astimezone(zone)


class Trigger(enum.StrEnum):
    """What made a run due."""

    SCHEDULE = "schedule"
    CATCH_UP = "catch-up"
    MANUAL = "manual"


class RunStatus(enum.StrEnum):
    """Where a run stands. A run with an attempt under way is `RUNNING`."""

    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    INTERRUPTED = "interrupted"
    RELEASED = "released"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    MISSED = "missed"
    PAUSED = "paused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at a run, handed to the job function that asks for it.

    `slot` is the scheduled time in milliseconds since the epoch (for a manual run: when it was
    asked), `scheduled_for` the same as an aware datetime in the job's zone. `fence` grows with
    every attempt of the job, whoever runs it: write it beside what the job writes, and refuse
    writes with a smaller one. `lost` is set when this instance may no longer believe in its lease;
    a plain function should look at it between steps (``if run.lost.is_set(): return``).
    """

    job: str
    slot: int
    scheduled_for: datetime
    attempt: int
    max_attempts: int
    token: str = field(repr=False)
    fence: int
    runner: str
    trigger: Trigger
    lost: threading.Event = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt in the history of a run. Times are aware, in UTC.

    `end` is None while it runs; `duration` is in seconds; `error` is the text of the failure,
    shortened.
    """

    number: int
    status: RunStatus
    runner: str
    start: datetime | None
    end: datetime | None
    error: str | None

    @property
    def duration(self) -> float | None:
        """Seconds from start to end; None while it runs, or where the start is no longer known."""
        if self.start is None or self.end is None:
            return None
        return (self.end - self.start).total_seconds()


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run in the history of a job: its identity, status, and attempts, first attempt first."""

    job: str
    id: str
    slot: datetime
    trigger: Trigger
    status: RunStatus
    attempts: tuple[AttemptRecord, ...]
