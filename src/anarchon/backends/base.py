"""The seam between the engine and a store: what is asked, what is answered.

A `Backend` is a configuration: it can be made at import, without an event loop, and connected as
often as needed. A `Store` is one connection of it, for one event loop. All moments and lengths here
are whole milliseconds; moments are the server's. A lost race is an answer, never an exception; the
exceptions are those of `anarchon.errors.StoreError`.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from anarchon.runs import RunRecord, Trigger

GRACE_MS = 1000
"""How long after its lease end an older run forbids a younger one: its backups come first."""

STORE_FORMAT = 1
"""The number of the format that this version reads and writes."""


class Overlap(enum.StrEnum):
    """What happens to a slot that falls due while another run of its job is live."""

    SKIP = "skip"
    WAIT = "wait"
    ALLOW = "allow"


class Outcome(enum.StrEnum):
    """How an attempt ended, as the letter that the store keeps."""

    NONE = "-"
    SUCCEEDED = "s"
    FAILED = "f"
    TIMED_OUT = "t"
    NO_RETRY = "n"
    CANCELLED = "c"
    RELEASED = "r"
    UNSTARTED = "u"
    INTERRUPTED = "i"
    OVERLAP = "o"
    PAUSED = "p"


class State(enum.StrEnum):
    """Where a run stands in the store."""

    RUNNING = "R"
    WAITING = "W"
    DONE = "D"
    INTERRUPTED = "X"
    CANCELLED = "C"
    SKIPPED = "K"


class ClaimCode(enum.StrEnum):
    """What a claim was answered; `WON` is the only one that lets a job run."""

    EARLY = "early"
    WON = "won"
    RUNNING = "running"
    WAITING = "waiting"
    OVERLAP = "overlap"
    DONE = "done"
    GONE = "gone"
    LATE = "late"
    PAUSED = "paused"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class JobTerms:
    """What the store needs to know of a job; the same for each of its calls.

    `reach` is how long after a lease end a run may still be taken over, `keep` how long after its
    slot a record stays at least; `history_ttl` is 0 for none.
    """

    job: str
    schedule_key: str
    overlap: Overlap
    max_attempts: int
    lease: int
    reach: int
    keep: int
    history_size: int
    history_ttl: int
    grace: int = GRACE_MS


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """One claim. Asked again after a lost answer, it is the same object: the token tells it is.

    `seen` is the attempt that the asker was last told of (0: none); the claim can win the next one
    only. `slot` is 0 for a manual run. Later than `deadline` it wins nothing; later than `last`
    nobody may ask for the slot any more. `since_applies` marks a look-back or catch-up, which wins
    nothing at or below the job's `since`.
    """

    run: str
    token: str
    seen: int
    slot: int
    deadline: int
    last: int
    runner: str
    trigger: Trigger
    since_applies: bool = False


@dataclass(frozen=True, slots=True)
class OpenRun:
    """An open run that can still be had; attempt 0 marks a record that makes no sense."""

    run: str
    attempt: int
    rest: int


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """The answer to a claim; what does not apply is 0 or None.

    `outcome` of a *won* answer is that of the attempt before, if the run waited for this one: a
    retry, and no takeover. `state` and `outcome` tell of a *done* run how it ended, and `floor` or
    `since` in `settled` where nothing is stored of it any more. `left` says whether an attempt is
    left after the present.
    """

    code: ClaimCode
    time: int
    state: State | None = None
    outcome: Outcome | None = None
    settled: str = ""
    attempt: int = 0
    rest: int = 0
    left: bool = False
    max_attempts: int = 0
    fence: int = 0
    trigger: Trigger | None = None
    others: tuple[OpenRun, ...] = ()


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """Whether the lease was prolonged, and whether cancelling the run was asked for."""

    ok: bool
    time: int
    cancel: bool = False


@dataclass(frozen=True, slots=True)
class FinishAnswer:
    """Whether the outcome stands. `waiting`: the run will be tried again in `rest` milliseconds.

    Not `ok` means "not known": another attempt's word stands, or the store forgot the run.
    """

    ok: bool
    time: int
    waiting: bool = False
    attempt: int = 0
    rest: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """A plain yes or no to release, cancel, pause, resume, forget."""

    ok: bool
    time: int


@dataclass(frozen=True, slots=True)
class Registered:
    """What the store knows of a job: since when its schedule is in force, and its open runs.

    `paused_until` is None when not paused, 0 for an open end.
    """

    time: int
    since: int
    changed: bool
    paused_until: int | None
    paused_note: str
    open_runs: tuple[OpenRun, ...]


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What the store knows of a job, and of the one run that was asked about.

    `schedule_key` is empty and `since` 0 where no instance ever registered the job; at or below
    `floor` nothing is kept of runs; `fence` is that of its last attempt, 0 for none. `paused_until`
    is None when not paused, 0 for an open end. `run_end` is the end of the lease or wait of the run
    that was asked about, 0 where it is over.
    """

    time: int
    schedule_key: str
    since: int
    floor: int
    fence: int
    paused_until: int | None
    paused_note: str
    open_runs: tuple[str, ...]
    run: RunRecord | None
    run_end: int

    @property
    def known(self) -> bool:
        """Whether anything is stored of the job that a mistyped name would not have."""
        return bool(self.schedule_key or self.fence or self.paused_until is not None)


@dataclass(frozen=True, slots=True)
class Presence:
    """An instance as the store saw it last: when, and what it told of itself."""

    runner: str
    seen: int
    told: str


@dataclass(frozen=True, slots=True)
class Presences:
    """The instances that have shown themselves, and the store's time."""

    time: int
    instances: tuple[Presence, ...]


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What a store tells of itself; empty, or None, where it does not tell.

    `kept` says whether it outlives a restart.
    """

    server: str = ""
    eviction: str = ""
    kept: bool | None = None


class Store(Protocol):
    """One open connection to where claims are decided. Every call may be repeated unchanged.

    Each raises `StoreUnavailable` when it is unknown whether it happened, `StoreRefused` when it
    did not, and other `StoreError` for what repeating does not mend.
    """

    async def open(self) -> tuple[str, ...]:
        """Connect and look whether the store can serve; answers warnings worth logging.

        Raises also `StoreFormatError`, `StorePermissionError`, `StoreServerError`.
        """
        ...

    async def visit(self) -> None:
        """Connect for a question: look whether the format can be read, and write nothing.

        Raises also `StoreFormatError`, `StorePermissionError`, `StoreServerError`.
        """
        ...

    async def close(self) -> None:
        """Close what was opened; never raises."""
        ...

    def place(self, job: str) -> str:
        """Where the records of a job's runs lie, as an operator would look for them."""
        ...

    async def clock(self, runner: str, told: str, silent: int) -> int:
        """The server's time; leaves `told` as this runner's presence ("" takes it away).

        Instances silent for longer than `silent` are dropped. An empty runner only asks.
        """
        ...

    async def register(self, terms: JobTerms) -> Registered:
        """Tell the store of a job and its schedule."""
        ...

    async def claim(self, terms: JobTerms, request: ClaimRequest) -> ClaimAnswer:
        """Ask for a run."""
        ...

    async def heartbeat(self, terms: JobTerms, run: str, token: str) -> HeartbeatAnswer:
        """Keep a lease."""
        ...

    async def finish(  # noqa: PLR0913 - the call's own parts
        self, terms: JobTerms, run: str, token: str, outcome: Outcome, error: str, delay: int
    ) -> FinishAnswer:
        """Tell how an attempt ended; `delay` until it may be retried."""
        ...

    async def release(  # noqa: PLR0913 - the call's own parts
        self, terms: JobTerms, run: str, token: str, kind: Outcome, delay: int = 0, last: int = 0
    ) -> Answer:
        """Give a lease back: `RELEASED`, or `UNSTARTED` with a delay and the slot's last chance."""
        ...

    async def cancel(self, job: str, run: str, history_size: int) -> Answer:
        """Cancel a run for the whole cluster."""
        ...

    async def pause(self, job: str, until: int, note: str) -> Answer:
        """Hold back a job's scheduled runs until a moment (0: until resumed)."""
        ...

    async def resume(self, job: str) -> Answer:
        """Let a paused job go on."""
        ...

    async def forget(self, job: str) -> Answer:
        """Delete all that is stored of a job, unless a run of it is live."""
        ...

    async def history(self, job: str, limit: int) -> tuple[RunRecord, ...]:
        """The newest runs of a job, newest first."""
        ...

    async def look(self, job: str, run: str) -> JobFacts:
        """What is known of a job, and of a run of it ("" for none)."""
        ...

    async def instances(self) -> Presences:
        """The instances that have shown themselves."""
        ...

    async def facts(self) -> StoreFacts:
        """What the store tells of itself."""
        ...


class Backend(Protocol):
    """Where claims are decided: a configuration from which stores are connected."""

    @property
    def shares_connection(self) -> bool:
        """Whether every store uses one client that was given: heartbeats then share its loop."""
        ...

    def connect(self, *, timeout: float) -> Store:
        """A store for the running loop, not yet open; no call takes over `timeout` seconds."""
        ...


def order_of(run: str) -> int:
    """When a run stands in its job's order: its slot, or the moment a manual run was asked for.

    0 for what is no name of a run, which a store may hold by mistake.
    """
    match = _RUN_MOMENT.match(run)
    return int(match[1]) if match else 0


RUN_ID = re.compile(r"[0-9]{1,15}|m[0-9]{1,15}-\S{1,200}", re.ASCII)
"""The identity of a run: its slot, or when a manual run was asked for, and a random part."""
_RUN_MOMENT = re.compile(r"m?([0-9]{1,15})")
