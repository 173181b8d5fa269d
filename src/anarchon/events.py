"""What listeners hear: the events of one instance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from datetime import datetime

    from anarchon.runs import RunStatus, Trigger

EventName: TypeAlias = Literal[
    "won",
    "started",
    "retried",
    "taken-over",
    "succeeded",
    "failed",
    "cancelled",
    "released",
    "lost",
    "skipped",
    "missed",
    "paused",
    "store-away",
    "store-back",
    "scheduler-started",
    "scheduler-stopped",
]
"""The names that `Scheduler.on` takes."""

EVENT_NAMES: tuple[EventName, ...] = get_args(EventName)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened on this instance, handed to listeners.

    `at` is aware, in UTC, by the store's clock as this instance reckons it. `job`, `run` and `slot`
    are None for events of the store and the scheduler; `attempt`, `max_attempts` and `trigger` are
    set where an attempt is spoken of. `run` is the `RunRecord.id`,
    `slot` the scheduled time in the job's zone (of a manual run: when it was asked for). `status`
    is set for an attempt that ended: of a ``failed`` one it is `FAILED` or `TIMED_OUT`;
    `will_retry` says whether another attempt is left, `error` what was raised. `reason` says in
    words why, for ``skipped``, ``missed``, ``paused``, ``lost`` and ``store-away``.
    """

    name: EventName
    at: datetime
    runner: str
    job: str | None = None
    run: str | None = None
    slot: datetime | None = None
    attempt: int | None = None
    max_attempts: int | None = None
    trigger: Trigger | None = None
    status: RunStatus | None = None
    will_retry: bool = False
    error: BaseException | None = None
    reason: str = ""
