"""Safety and liveness in random histories, and the proof that they would be noticed if broken."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from anarchon.backends import reference
from anarchon.backends.reference import JobBook, Record
from anarchon.engine import driver, timeline
from anarchon.engine.heartbeat import HeldLease
from anarchon.testing import run_virtual
from tests.support.histories import History
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from anarchon.backends.base import (
        ClaimAnswer,
        ClaimRequest,
        FinishAnswer,
        JobTerms,
        Outcome,
    )
    from anarchon.jobs import Job
    from anarchon.testing import VirtualTime

HISTORIES = 150
MANY_HISTORIES = 2000


def faults_of_history(seed: int) -> list[str]:
    """Live a history; answers what was wrong with it."""

    async def story(time: VirtualTime) -> list[str]:
        history = History(World(time))
        await history.live()
        faults = history.faults()
        await history.world.stop()
        return faults

    return run_virtual(story, seed=seed)


@pytest.mark.parametrize(
    "number",
    [
        *range(HISTORIES),
        *(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(HISTORIES, MANY_HISTORIES)),
    ],
)
def test_what_must_hold_holds(seed: int, number: int) -> None:
    faults = faults_of_history(seed)
    assert not faults, f"seed {seed}: " + "\n".join(faults)


@pytest.mark.parametrize("number", range(3))
def test_the_same_seed_is_the_same_history(seed: int, number: int) -> None:
    async def story(time: VirtualTime) -> list[tuple[float, str, str]]:
        history = History(World(time))
        await history.live()
        return [(call.at, call.line, call.call) for call in history.world.executed]

    first, second = run_virtual(story, seed=seed), run_virtual(story, seed=seed)
    assert first == second
    assert len(first) > 20


# -- the tester can fail ---------------------------------------------------------------------------
# Each mutant breaks one rule. A history that notices it has to turn up among so many.

ENOUGH = 60


def believes_for_ever(patch: pytest.MonkeyPatch) -> str:
    """A holder never fences itself."""

    def believed(self: HeldLease) -> bool:
        return not self.lost

    def seconds_believed(_self: HeldLease) -> float:
        return 60.0

    patch.setattr(HeldLease, "believed", believed)
    patch.setattr(HeldLease, "seconds_believed", seconds_believed)
    return "S1"


def steps_unasked(patch: pytest.MonkeyPatch) -> str:
    """The driver takes steps without looking at the lease; only the timers fence."""
    real = driver.Driven.__init__

    def init(
        self: driver.Driven,
        body: Coroutine[Any, Any, object],
        _believed: Callable[[], bool],
        *others: Any,
    ) -> None:
        real(self, body, lambda: True, *others)

    patch.setattr(driver.Driven, "__init__", init)
    return "S1"


def grants_what_is_held(patch: pytest.MonkeyPatch) -> str:
    """The store gives a run away half a lease too early."""
    real = JobBook.claim

    def claim(self: JobBook, terms: JobTerms, ask: ClaimRequest, now: int) -> ClaimAnswer:
        record = self.records.get(ask.run)
        if isinstance(record, Record) and record.open and record.token != ask.token:
            record.end -= terms.lease // 2
        return real(self, terms, ask, now)

    patch.setattr(JobBook, "claim", claim)
    return "S1"


def forgets_what_is_done(patch: pytest.MonkeyPatch) -> str:
    """The store drops the record of a run that ended."""
    real = JobBook.finish

    def finish(self: JobBook, terms: JobTerms, run: str, *rest: Any) -> FinishAnswer:
        answer = real(self, terms, run, *rest)
        if answer.ok and not answer.waiting:
            self.records.pop(run, None)
        return answer

    patch.setattr(JobBook, "finish", finish)
    return "S2"


def counts_attempts_anew(patch: pytest.MonkeyPatch) -> str:
    """The store takes each takeover for a first attempt."""
    real = JobBook.claim

    def claim(self: JobBook, terms: JobTerms, ask: ClaimRequest, now: int) -> ClaimAnswer:
        record = self.records.get(ask.run)
        if isinstance(record, Record) and record.open and record.end <= now:
            del self.records[ask.run]
            ask = replace(ask, seen=0)
        return real(self, terms, ask, now)

    patch.setattr(JobBook, "claim", claim)
    return "S3"


def ignores_overlap(patch: pytest.MonkeyPatch) -> str:
    """The store does not look at other runs of the job."""

    def look_at_others(*_arguments: object, **_options: object) -> tuple[int, tuple[()]]:
        return 0, ()

    patch.setattr(JobBook, "_look_at_others", look_at_others)
    return "S4"


def forgets_to_look_at_tokens(patch: pytest.MonkeyPatch) -> str:
    """The store takes a finish from whoever sends one."""
    real = JobBook.finish

    def finish(
        self: JobBook, terms: JobTerms, run: str, token: str, outcome: Outcome, *rest: Any
    ) -> FinishAnswer:
        record = self.records.get(run)
        if isinstance(record, Record):
            token = record.token
        return real(self, terms, run, token, outcome, *rest)

    patch.setattr(JobBook, "finish", finish)
    return "S5"


def sweeps_nothing(patch: pytest.MonkeyPatch) -> str:
    """Runs that nobody can have any more stay open."""

    def used_up(*_arguments: object) -> bool:
        return False

    patch.setattr(reference, "_used_up", used_up)
    return "L4"


def asks_for_every_other_slot(patch: pytest.MonkeyPatch) -> str:
    """The timeline leaves slots out."""
    real = timeline.look

    def look(job: Job, cursor: int, now: int) -> timeline.Look:
        seen = real(job, cursor, now)
        return replace(seen, ask=tuple(slot for slot in seen.ask if slot // 1000 % 2))

    patch.setattr(timeline, "look", look)
    return "L1"


MUTANTS = [
    believes_for_ever,
    steps_unasked,
    grants_what_is_held,
    forgets_what_is_done,
    counts_attempts_anew,
    ignores_overlap,
    forgets_to_look_at_tokens,
    sweeps_nothing,
    asks_for_every_other_slot,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_broken_rule_is_noticed(
    mutant: Callable[[pytest.MonkeyPatch], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = mutant(monkeypatch)
    found: list[str] = []
    for seed in range(ENOUGH):
        found = faults_of_history(seed)
        if any(fault.startswith(rule) for fault in found):
            break
    assert any(fault.startswith(rule) for fault in found), f"{rule}: unnoticed"
