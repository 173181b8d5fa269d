"""What is going on in the demo: which instances there are, who runs what, and what happened."""

from __future__ import annotations

import enum
import statistics
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from anarchon.cli.demo.jobs import LEASE, PLANS
from anarchon.cli.demo.records import Kind
from anarchon.cli.demo.tally import Slot

if TYPE_CHECKING:
    from anarchon.cli.demo.records import Record

_FOREVER = 2**62


class State(enum.StrEnum):
    """Where an instance stands."""

    STARTING = "starting"
    UP = "up"
    KILLED = "killed"
    ENDED = "ended"


class Mark(enum.Enum):
    """What kind of thing happened."""

    INSTANCE = enum.auto()
    WON = enum.auto()
    FAILED = enum.auto()
    RETRIED = enum.auto()
    SKIPPED = enum.auto()
    KILLED = enum.auto()
    TAKEN_OVER = enum.auto()
    TROUBLE = enum.auto()


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at `at`, in milliseconds of this host's clock."""

    at: int
    mark: Mark
    text: str


@dataclass(slots=True)
class Body:
    """A body at work. `beat` is when its lease was last granted or renewed, as far as is known.

    `dead` is when its instance was killed.
    """

    slot: Slot
    attempt: int
    instance: int
    began: int
    beat: int
    dead: int | None = None

    def lease_left(self, now: int) -> float:
        """How many seconds of the lease are left."""
        return max(0.0, min(LEASE, LEASE - (now - self.beat) / 1000))


@dataclass(slots=True)
class Instance:
    """An instance of the application. `replaces` is the one that it stands in for."""

    number: int
    pid: int
    replaces: int | None = None
    state: State = State.STARTING
    bodies: dict[Slot, Body] = field(default_factory=dict[Slot, Body])
    last_end: int = 0


@dataclass(slots=True)
class JobView:
    """What is known of a job: its bodies at work, those that died, the last that ended."""

    name: str
    schedule: str
    bodies: dict[Slot, Body] = field(default_factory=dict[Slot, Body])
    last: Body | None = None
    done: set[Slot] = field(default_factory=set[Slot])


@dataclass(slots=True)
class Kill:
    """An instance was killed at `at` in the middle of a run; when that went on, and where."""

    instance: int
    pid: int
    slot: Slot
    at: int
    taken_over: int | None = None
    by: int | None = None


class Stage:
    """Follows the records, and remembers them for the tally."""

    def __init__(self) -> None:
        self.instances: dict[int, Instance] = {}
        self.jobs: dict[str, JobView] = {
            plan.name: JobView(plan.name, plan.schedule.explain()) for plan in PLANS
        }
        self.events: list[Event] = []
        self.records: list[Record] = []
        self.deaths: dict[int, int] = {}
        self.kills: list[Kill] = []
        self.skipped: set[Slot] = set()
        self.closing = False
        """Whether the instances are being ended: what they give up then is nothing to tell."""
        self._watched = (0, _FOREVER)
        self._ends: dict[Slot, Kind] = {}
        self._aheads: list[int] = []

    @property
    def ahead(self) -> int:
        """By how many milliseconds this host's clock is ahead of the store's."""
        return round(statistics.median(self._aheads)) if self._aheads else 0

    @property
    def up(self) -> list[Instance]:
        """The instances that are at work."""
        return [one for one in self.instances.values() if one.state is State.UP]

    # -- what counts ---------------------------------------------------------------------------

    def watch(self, opens: int, closes: int) -> None:
        """From now on only slots in [opens, closes) count; later ones are not told of either."""
        self._watched = (opens, closes)

    def done(self, job: JobView) -> int:
        """How many runs of a job are done that count."""
        return sum(1 for slot in job.done if self._counts(slot))

    @property
    def skipped_counted(self) -> int:
        """How many slots were skipped that count."""
        return sum(1 for slot in self.skipped if self._counts(slot))

    def _counts(self, slot: Slot) -> bool:
        opens, closes = self._watched
        return opens <= slot.time < closes

    # -- instances -----------------------------------------------------------------------------

    def started(self, pid: int, replaces: int | None, at: int) -> Instance:
        """Take in a process that was started."""
        number = len(self.instances) + 1
        instance = self.instances[number] = Instance(number, pid, replaces)
        what = f"starts, in place of instance {replaces}" if replaces else "starts"
        self._tell(at, Mark.INSTANCE, f"instance {number} {what} (pid {pid})")
        return instance

    def killed(self, instance: Instance, slot: Slot, at: int) -> None:
        """An instance was killed in the middle of a run of `slot`, and is dead."""
        self.kills.append(Kill(instance.number, instance.pid, slot, at))
        self._bury(instance, at)
        text = (
            f"instance {instance.number} (pid {instance.pid}) KILLED in the middle of {shown(slot)}"
        )
        self._tell(at, Mark.KILLED, text)

    def gone(self, instance: Instance, at: int, why: str) -> None:
        """An instance ended that nobody had told to."""
        self._bury(instance, at)
        self._tell(at, Mark.TROUBLE, f"instance {instance.number} ended by itself: {why}")

    def ended(self, instance: Instance) -> None:
        """An instance ended as it was told to."""
        instance.state = State.ENDED

    def _bury(self, instance: Instance, at: int) -> None:
        instance.state = State.KILLED
        self.deaths[instance.pid] = at
        for body in instance.bodies.values():
            body.dead = at

    def note(self, at: int, text: str) -> None:
        """Something happened to the demo as a whole."""
        self._tell(at, Mark.INSTANCE, text)

    # -- records -------------------------------------------------------------------------------

    def hear(self, instance: Instance, record: Record) -> None:
        """Follow what a process said."""
        self.records.append(record)
        slot = Slot(record.job, record.slot)
        if record.kind is Kind.UP:
            instance.state = State.UP
            self._aheads.append(record.detail)
            self._tell(record.at, Mark.INSTANCE, f"instance {instance.number} is up")
        elif record.kind is Kind.BEGAN:
            self._began(instance, slot, record)
        elif record.kind is Kind.BEAT:
            if (body := instance.bodies.get(slot)) is not None:
                body.beat = record.at
        elif record.kind is Kind.SKIPPED:
            self._skipped(slot, record.at)
        else:
            self._ended(instance, slot, record)

    def _began(self, instance: Instance, slot: Slot, record: Record) -> None:
        job = self.jobs[slot.job]
        former = job.bodies.get(slot)
        body = Body(slot, record.attempt, instance.number, record.at, record.at)
        job.bodies[slot] = instance.bodies[slot] = body
        who = f"instance {instance.number}"
        if record.attempt == 1:
            self._tell(record.at, Mark.WON, f"{who} won {shown(slot)}", slot)
        elif former is None and self._ends.get(slot) is Kind.FAILED:
            text = f"{who} tries {shown(slot)} again, attempt {record.attempt}"
            self._tell(record.at, Mark.RETRIED, text, slot)
        else:
            self._took_over(body, former)

    def _took_over(self, body: Body, former: Body | None) -> None:
        when = ""
        if former is not None and former.dead is not None:
            when = f", {(body.began - former.dead) / 1000:.1f} s after the kill"
        for kill in self.kills:
            if kill.slot == body.slot and kill.taken_over is None:
                kill.taken_over, kill.by = body.began, body.instance
        text = f"instance {body.instance} TOOK OVER {shown(body.slot)}{when}"
        self._tell(body.began, Mark.TAKEN_OVER, text)

    def _ended(self, instance: Instance, slot: Slot, record: Record) -> None:
        self._ends[slot] = record.kind
        instance.last_end = record.at
        body = instance.bodies.pop(slot, None)
        job = self.jobs[slot.job]
        # A takeover may have begun elsewhere before this body had let go: then that one is shown.
        if body is not None and job.bodies.get(slot) is body:
            del job.bodies[slot]
        job.last = body or job.last
        if record.kind is Kind.DONE:
            job.done.add(slot)
        elif record.kind is Kind.FAILED:
            text = f"{shown(slot)} failed on instance {instance.number}, to be tried again"
            self._tell(record.at, Mark.FAILED, text, slot)
        elif not self.closing:
            text = f"instance {instance.number} gave up {shown(slot)}: its lease was lost"
            self._tell(record.at, Mark.TROUBLE, text)

    def _skipped(self, slot: Slot, at: int) -> None:
        # Each instance that asked was told so.
        if slot not in self.skipped:
            self.skipped.add(slot)
            text = f"{shown(slot)} skipped, the run before it is still on"
            self._tell(at, Mark.SKIPPED, text, slot)

    def _tell(self, at: int, mark: Mark, text: str, slot: Slot | None = None) -> None:
        if slot is None or slot.time < self._watched[1]:
            self.events.append(Event(at, mark, text))


def shown(slot: Slot) -> str:
    """A slot for people, in the host's zone: `build-report 12:00:03`."""
    return f"{slot.job} {time_of(slot.time)}"


def time_of(slot: int) -> str:
    """The time of a slot for people, in the host's zone."""
    moment = datetime.fromtimestamp(slot / 1000).astimezone()
    text = f"{moment:%H:%M:%S}"
    return f"{text}.{moment.microsecond // 100_000}" if moment.microsecond else text
