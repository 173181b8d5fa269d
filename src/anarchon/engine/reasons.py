"""Why this instance did not run slots that it knew of: counted, and remembered for a while."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass

from anarchon.reports import Reason

MOST_NOTES = 10_000
"""Of how many slots, of all jobs together, an instance remembers the reason."""
MOST_STRETCHES = 100
"""Of how many stretches of slots that it was too late for, of all jobs together."""


@dataclass(frozen=True, slots=True)
class Note:
    """A reason, and a sentence that says more."""

    reason: Reason
    sentence: str


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The slots of a job in (after, until]."""

    job: str
    after: int
    until: int
    note: Note


class Reasons:
    """What an instance remembers of slots that it did not run."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._notes: OrderedDict[tuple[str, str], Note] = OrderedDict()
        self._ran: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._stretches: deque[_Stretch] = deque(maxlen=MOST_STRETCHES)
        self._counts: dict[str, Counter[Reason]] = {}

    def note(self, job: str, run: str, note: Note) -> None:
        """A run was not run here."""
        if note.reason is Reason.ANOTHER and (job, run) in self._ran:
            return  # asked again, after the store's clock was set back: it was this instance
        self._drop(job, run)
        self._counts.setdefault(job, Counter())[note.reason] += 1
        self._notes[job, run] = note
        if len(self._notes) > MOST_NOTES:
            self._notes.popitem(last=False)

    def ran(self, job: str, run: str) -> None:
        """A run was run here, after all if it was noted."""
        self._ran[job, run] = None
        if len(self._ran) > MOST_NOTES:
            self._ran.popitem(last=False)
        self._drop(job, run)

    def ran_here(self, job: str, run: str) -> bool:
        """Whether a run was run here, as far as that is remembered."""
        return (job, run) in self._ran

    def _drop(self, job: str, run: str) -> None:
        if (note := self._notes.pop((job, run), None)) is not None:
            self._counts[job][note.reason] -= 1

    def note_stretch(self, job: str, after: int, until: int, note: Note) -> None:
        """No slot of a job in (after, until] was asked for here; they count as one."""
        self._counts.setdefault(job, Counter())[note.reason] += 1
        self._stretches.append(_Stretch(job, after, until, note))

    def of(self, job: str, run: str, slot: int) -> Note | None:
        """What is remembered of a run; `slot` is the moment that it stands for."""
        if (note := self._notes.get((job, run))) is not None:
            return note
        if self.ran_here(job, run):
            return None
        for stretch in reversed(tuple(self._stretches)):
            if stretch.job == job and stretch.after < slot <= stretch.until:
                return stretch.note
        return None

    def counts(self, job: str) -> dict[Reason, int]:
        """How many slots of a job were not run here since the start, by reason."""
        # Copied in one step: another thread may be asking.
        counts = dict(self._counts.get(job, {}))
        return {reason: count for reason, count in counts.items() if count}
