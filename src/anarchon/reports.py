"""What a scheduler tells of itself, of its jobs, and of the other instances."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from anarchon.runs import RunStatus


class Reason(enum.StrEnum):
    """Why an instance that knew of a slot did not run it."""

    ANOTHER = "another-instance"
    OVERLAP = "overlap"
    MISSED = "missed"
    PAUSED = "paused"
    STORE_AWAY = "store-away"
    NO_ROOM = "no-room"


@dataclass(frozen=True, slots=True)
class JobInfo:
    """A declared job: its name, its schedule in words, and its next date.

    The date is None for a job that never runs again, and while a schedule of your own raises.

    `not_run` counts the slots that this instance knew of since its start and did not run, by
    reason.
    """

    name: str
    schedule: str
    next_run: datetime | None
    not_run: Mapping[Reason, int] = field(default_factory=dict[Reason, int])


@dataclass(frozen=True, slots=True)
class Health:
    """How an instance is.

    `running`: started, not stopping, and no part of it failed; `BackgroundScheduler.health` also
    looks whether the event loop turns. `store`: the last call was answered without an error.
    `loop_lag` is by how many seconds the event loop was last late, looked at once a minute (or is,
    when something has blocked it past such a look), `clock_ahead` by how many seconds the host's
    clock is ahead of the store's.
    """

    running: bool
    store: bool
    loop_lag: float
    clock_ahead: float


@dataclass(frozen=True, slots=True)
class InstanceInfo:
    """An instance as it showed itself to the store, which it does once a minute.

    `last_seen` is aware, in UTC, by the store's clock. `clock_ahead` and `loop_lag` are seconds, as
    in `Health`. `jobs` has the definition of each declared job in one line; None where they are too
    many to tell, or where the instance runs jobs only on demand. Equal definitions of all jobs have
    equal `jobs_digest`.
    """

    runner: str
    last_seen: datetime
    clock_ahead: float
    loop_lag: float
    version: str
    jobs: Mapping[str, str] | None
    jobs_digest: str


@dataclass(frozen=True, slots=True)
class JobState:
    """What the store knows of a job.

    `known`: anything is stored of it. `since` is when its schedule was first registered, or last
    changed (None: never). `paused_until` is None for a pause with an open end. `open_runs` are the
    ids of runs that are running or waiting, at most 100.
    """

    job: str
    known: bool
    since: datetime | None
    paused: bool
    paused_until: datetime | None
    paused_note: str
    open_runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a run did or did not take place, in sentences; ``str()`` puts each on a line.

    `status` is None where the store has no record of the run.
    """

    job: str
    run: str
    slot: datetime
    status: RunStatus | None
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        """The sentences, one a line."""
        return "\n".join(self.sentences)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that `Scheduler.check` looked at: what was found, and what to do about it."""

    subject: str
    level: Literal["ok", "warning", "error"]
    text: str
    advice: str = ""
