"""The judge of the demo: what the bodies of the jobs said, against what the schedules demand.

It is told by the store of one thing only, which slots were skipped because another run of the job
was live, and believes that only where a body of that job was indeed at work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from anarchon.cli.demo.records import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from anarchon.cli.demo.records import Record

_FOREVER = 2**62
_SLACK_MS = 1000
"""By how much a lease may outlive what is known of it: a claim before its body, a grace after."""


class Slot(NamedTuple):
    """A slot of a job, in milliseconds since the epoch by the store's clock."""

    job: str
    time: int


@dataclass(slots=True)
class Life:
    """The life of one body: `end` and `how` are set when it ended, in whichever way."""

    slot: Slot
    pid: int
    attempt: int
    start: int
    end: int = _FOREVER
    how: Kind | None = None
    killed: bool = False


@dataclass(frozen=True, slots=True)
class Terms:
    """What the judge has to know besides, in milliseconds.

    `ahead` is by how much this host's clock is ahead of the store's. When the demo was `broken_off`
    (a moment of this host's clock), what was under way then is not lost.
    """

    lease: int
    ahead: int = 0
    broken_off: int | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """The verdict. `doubled` and `lost` say why; `open` were under way when it was broken off."""

    slots: int
    """How many were judged: all that were due, without those skipped, and those still open."""
    done: frozenset[Slot]
    doubled: Mapping[Slot, str]
    lost: Mapping[Slot, str]
    taken_over: frozenset[Slot]
    retried: frozenset[Slot]
    skipped: frozenset[Slot]
    open: frozenset[Slot]

    def line(self) -> str:
        """The verdict in a line."""
        return (
            f"slots {self.slots}, doubled {len(self.doubled)}, lost {len(self.lost)},"
            f" taken over {len(self.taken_over)}"
        )


def lives_of(records: Iterable[Record], deaths: Mapping[int, int]) -> dict[Slot, list[Life]]:
    """Return the lives of all bodies by their slot; `deaths` is when a process was seen dead."""
    lives: dict[Slot, list[Life]] = {}
    running: dict[tuple[Slot, int, int], Life] = {}
    for record in records:
        slot = Slot(record.job, record.slot)
        key = (slot, record.pid, record.attempt)
        if record.kind is Kind.BEGAN:
            running[key] = Life(slot, record.pid, record.attempt, record.at)
            lives.setdefault(slot, []).append(running[key])
        elif record.kind in {Kind.DONE, Kind.FAILED, Kind.STOPPED} and key in running:
            life = running.pop(key)
            life.end, life.how = record.at, record.kind
    for life in running.values():
        if life.pid in deaths:
            life.end, life.killed = deaths[life.pid], True
    return lives


def judge(
    due: Collection[Slot],
    lives: Mapping[Slot, list[Life]],
    skipped: Collection[Slot],
    terms: Terms,
) -> Tally:
    """Judge the slots that were `due`; of doubled runs, all that were seen."""
    passed = {slot for slot in due if slot in set(skipped) and slot not in lives}
    lost: dict[Slot, str] = {}
    done: set[Slot] = set()
    still_open: set[Slot] = set()
    for slot in due:
        bodies = lives.get(slot, [])
        if slot in passed:
            if not _covered(slot, lives, terms):
                lost[slot] = "skipped, although no other run of the job was at work"
        elif any(life.how is Kind.DONE for life in bodies):
            done.add(slot)
        elif _under_way(slot, bodies, terms):
            still_open.add(slot)
        else:
            lost[slot] = "begun, but never finished" if bodies else "never begun"
    doubled = {slot: why for slot, bodies in lives.items() if (why := _doubled(bodies))}
    return Tally(
        slots=len(due) - len(passed - set(lost)) - len(still_open),
        done=frozenset(done),
        doubled=doubled,
        lost=lost,
        taken_over=frozenset(slot for slot, bodies in lives.items() if taken_over(bodies)),
        retried=frozenset(
            slot for slot, bodies in lives.items() if any(b.how is Kind.FAILED for b in bodies[:-1])
        ),
        skipped=frozenset(passed - set(lost)),
        open=frozenset(still_open),
    )


def _under_way(slot: Slot, bodies: list[Life], terms: Terms) -> bool:
    """Whether a slot without an end was begun, or only just due, when the demo was broken off."""
    if terms.broken_off is None:
        return False
    return bool(bodies) or slot.time + terms.ahead > terms.broken_off - terms.lease


def taken_over(bodies: list[Life]) -> bool:
    """Whether a slot went on after an attempt that did not come to an end of its own."""
    ended = {life.attempt for life in bodies if life.how in {Kind.DONE, Kind.FAILED}}
    return any(life.attempt > 1 and life.attempt - 1 not in ended for life in bodies)


def _doubled(bodies: list[Life]) -> str | None:
    done = [life for life in bodies if life.how is Kind.DONE]
    if len(done) > 1:
        return f"finished {len(done)} times"
    attempts = [life.attempt for life in bodies]
    if len(set(attempts)) < len(attempts):
        return "the same attempt began twice"
    ordered = sorted(bodies, key=lambda life: life.start)
    for index, life in enumerate(ordered):
        # A body that lost its lease may still be on its way out when the next one begins.
        later = ordered[index + 1 :]
        if life.how is not Kind.STOPPED and any(other.start < life.end for other in later):
            return "two bodies at once"
    return None


def _covered(slot: Slot, lives: Mapping[Slot, list[Life]], terms: Terms) -> bool:
    """Whether another run of the job was live at this slot, as far as its bodies tell."""
    at = slot.time + terms.ahead
    for other, bodies in lives.items():
        if other.job != slot.job or other == slot:
            continue
        start = min(life.start for life in bodies) - _SLACK_MS
        end = max(life.end for life in bodies) + terms.lease + _SLACK_MS
        if start <= at <= end:
            return True
    return False
