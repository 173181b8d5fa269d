"""What must always hold (S1 to S6), over long random histories, seen from outside the store.

The judge keeps its own notes: what each call was answered, and by the store's clock when. It never
looks into the store. The clock only goes forward here, as the promises are made for.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from anarchon.backends.base import ClaimCode, ClaimRequest, JobTerms, Outcome, Overlap, order_of
from anarchon.backends.memory import MemoryBackend
from anarchon.backends.reference import JobBook, Nonsense, Record
from anarchon.runs import Trigger
from tests.store.blocking import blocking_store

if TYPE_CHECKING:
    from anarchon.backends.base import ClaimAnswer, OpenRun, Store
    from tests.support.server import Server

STEPS = 3_000
LEASE, RETRY, WINDOW, PERIOD, GRACE = 100, 60, 400, 90, 10
START = 10**12


@dataclass
class Attempt:
    """What a winner was told, and until when it holds the run by what it was told since."""

    number: int
    token: str
    fence: int
    until: int


@dataclass
class Notes:
    """What the judge wrote down of a run."""

    attempts: list[Attempt] = field(default_factory=list[Attempt])
    most: int = 0
    wait_until: int = 0
    running: bool = False
    cancel: bool = False
    over: bool = False


class Judge:
    """Notes every answer, and says which promise one breaks."""

    def __init__(self, overlap: Overlap) -> None:
        self.overlap = overlap
        self.runs: dict[str, Notes] = defaultdict(Notes)
        self.granted_to: set[str] = set()
        self.fences: list[int] = []
        self.granted = 0

    def holder(self, run: str, now: int) -> Attempt | None:
        """The attempt that holds a live lease, by what it was told."""
        attempts = self.runs[run].attempts
        return attempts[-1] if attempts and attempts[-1].until > now else None

    def live(self, run: str, now: int) -> bool:
        return self.holder(run, now) is not None or self.runs[run].wait_until > now

    def won(self, ask: ClaimRequest, answer: ClaimAnswer, now: int) -> None:
        notes = self.runs[ask.run]
        repeat = notes.attempts and notes.attempts[-1].token == ask.token
        if repeat:
            known = notes.attempts[-1]
            assert (answer.attempt, answer.fence) == (known.number, known.fence), "S6"
            assert not notes.over, "S6: a repeat won a run that is over"
            known.until = now + answer.rest
            return
        assert not notes.over, f"S2: {ask.run} is over"
        assert self.holder(ask.run, now) is None, f"S1: {ask.run} is held"
        assert notes.wait_until <= now, f"S1: {ask.run} waits"
        assert answer.attempt == len(notes.attempts) + 1, "S3: numbers have a gap"
        assert all(a.token != ask.token for a in notes.attempts), "S3: a token won twice"
        if not notes.attempts:
            notes.most = answer.max_attempts
        assert answer.attempt <= notes.most, "S3: too many attempts"
        if self.overlap is not Overlap.ALLOW:
            others = [run for run in self.granted_to - {ask.run} if self.live(run, now)]
            assert others == [], f"S4: {ask.run} was granted beside {others}"
        assert now >= ask.slot, "S7"
        assert not self.fences or answer.fence > self.fences[-1], "fences must grow"
        self.fences.append(answer.fence)
        notes.attempts.append(Attempt(answer.attempt, ask.token, answer.fence, now + answer.rest))
        notes.wait_until, notes.running = 0, True
        self.granted += 1
        self.granted_to.add(ask.run)

    def ended(self, run: str, now: int, rest: int, *, waiting: bool) -> None:
        notes = self.runs[run]
        notes.attempts[-1].until = min(notes.attempts[-1].until, now)
        notes.wait_until = now + rest if waiting else 0
        notes.running, notes.over = False, not waiting
        if not waiting:
            self.granted_to.discard(run)


class World:
    """Instances that ask in any order, forget, repeat and are late."""

    def __init__(self, store: Store, seed: int, overlap: Overlap) -> None:
        self.random = random.Random(seed)
        self.store = store
        self.now = START
        self.judge = Judge(overlap)
        self.terms = JobTerms("job", "key", overlap, 3, LEASE, WINDOW, WINDOW, 6, 0, GRACE)
        self.sent: list[ClaimRequest] = []
        self.told: dict[tuple[str, str], int] = {}
        self.refused: list[tuple[str, str]] = []

    def some_run(self) -> str:
        newest = (self.now - START) // PERIOD
        slot = START + (newest - self.random.randrange(-1, 6)) * PERIOD
        return str(max(slot, START))

    def token(self, run: str, *, own: bool) -> str:
        attempts = self.judge.runs[run].attempts
        if own and attempts:
            return attempts[-1].token
        return self.random.choice([a.token for a in attempts] or ["nobody"])

    async def step(self) -> None:
        self.now += self.random.choice((0, 0, 1, 5, 20, 60, 130))
        self.terms = replace(self.terms, max_attempts=self.random.randrange(1, 4))
        do = self.random.choice(
            (self.claim, self.claim, self.claim, self.repeat, self.heartbeat, self.finish,
             self.release, self.cancel, self.stale)
        )  # fmt: skip
        await do()

    async def claim(self) -> None:
        run, instance = self.some_run(), self.random.choice("abcd")
        seen = self.told.get((instance, run), 0)
        ask = ClaimRequest(
            run=run,
            token=f"{instance}{seen}-{run}",
            seen=seen,
            slot=int(run),
            deadline=self.now + LEASE if seen else int(run) + WINDOW,
            last=int(run) + WINDOW,
            runner=instance,
            trigger=self.random.choice((Trigger.SCHEDULE, Trigger.CATCH_UP)),
        )
        self.sent.append(ask)
        await self._send(ask, instance)

    async def repeat(self) -> None:
        if self.sent:
            ask = self.random.choice(self.sent[-self.random.choice((5, 20, 60)) :])
            await self._send(ask, ask.runner)

    async def _send(self, ask: ClaimRequest, instance: str) -> None:
        answer = await self.store.claim(self.terms, ask)
        if answer.code is ClaimCode.WON:
            self.judge.won(ask, answer, self.now)
        elif answer.code is ClaimCode.DONE and ask.run in self.judge.runs:
            notes = self.judge.runs[ask.run]
            assert not self.judge.live(ask.run, self.now), "done, though it is live"
            notes.over = True
        if answer.attempt:
            self.told[instance, ask.run] = answer.attempt

    async def heartbeat(self) -> None:
        run = self.some_run()
        token = self.token(run, own=True)
        holder = self.judge.holder(run, self.now)
        answer = await self.store.heartbeat(self.terms, run, token)
        if holder is not None:
            assert answer.ok, "a live lease was not kept"
        if answer.ok:
            assert not self.judge.runs[run].over, "a heartbeat of a run that is over"
            self.judge.runs[run].attempts[-1].until = self.now + LEASE

    async def finish(self) -> None:
        run = self.some_run()
        outcome = self.random.choice((Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMED_OUT))
        token = self.token(run, own=True)
        over = self.judge.runs[run].over
        answer = await self.store.finish(self.terms, run, token, outcome, "", RETRY)
        if answer.ok and not over:
            self.judge.ended(run, self.now, answer.rest, waiting=answer.waiting)
            if answer.waiting:
                assert outcome is not Outcome.SUCCEEDED

    async def release(self) -> None:
        run = self.some_run()
        kind = self.random.choice((Outcome.RELEASED, Outcome.UNSTARTED))
        notes = self.judge.runs[run]
        held = self.judge.holder(run, self.now) is not None
        token, last = self.token(run, own=True), int(run) + WINDOW
        answer = await self.store.release(self.terms, run, token, kind, RETRY, last)
        assert answer.ok or not held, "a live lease was not taken back"
        if not answer.ok or not notes.running:
            return
        unstarted = kind is Outcome.UNSTARTED
        left = self.now <= last if unstarted else notes.attempts[-1].number < notes.most
        notes.most += unstarted
        rest = RETRY if unstarted else 0
        self.judge.ended(run, self.now, rest, waiting=left and not notes.cancel)

    async def cancel(self) -> None:
        if self.random.random() < 0.1:
            run = self.some_run()
            held = self.judge.holder(run, self.now) is not None
            answer = await self.store.cancel("job", run, self.terms.history_size)
            if answer.ok and not held:
                self.judge.ended(run, self.now, 0, waiting=False)
            self.judge.runs[run].cancel |= answer.ok

    async def stale(self) -> None:
        """S5: whoever held a run before the present attempt changes nothing."""
        run = self.some_run()
        former = self.judge.runs[run].attempts[:-1]
        if not former:
            return
        token = self.random.choice(former).token
        before = await self._look(run)
        do = self.random.randrange(3)
        if do == 0:
            assert not (await self.store.heartbeat(self.terms, run, token)).ok, "S5: heartbeat"
        elif do == 1:
            outcome = Outcome.SUCCEEDED
            answer = await self.store.finish(self.terms, run, token, outcome, "", RETRY)
            assert not answer.ok, "S5: finish"
        else:
            kind = Outcome.RELEASED
            assert not (await self.store.release(self.terms, run, token, kind)).ok, "S5: release"
        assert await self._look(run) == before, "S5: something changed"

    async def _look(self, run: str) -> ClaimAnswer:
        # A claim that can win nothing: before its slot's deadline, as a backup of attempt 99.
        ask = ClaimRequest(run, "look", 99, int(run), self.now, self.now, "look", Trigger.CATCH_UP)
        return await self.store.claim(self.terms, ask)


async def _live_through(world: World, steps: int) -> None:
    for _ in range(steps):
        await world.step()


@pytest.mark.parametrize("overlap", list(Overlap))
def test_what_must_always_hold(overlap: Overlap, seed: int) -> None:
    worlds: list[World] = []
    backend = MemoryBackend(clock=lambda: worlds[0].now)
    store = backend.connect(timeout=1)
    worlds.append(World(store, seed, overlap))
    asyncio.run(_live_through(worlds[0], STEPS))
    judge = worlds[0].judge
    assert judge.granted > STEPS // 50
    assert max(len(notes.attempts) for notes in judge.runs.values()) > 1
    assert order_of(max(judge.runs)) > START + 100 * PERIOD


class NobodyElse(JobBook):
    """Sees no other runs."""

    def _look_at_others(
        self, terms: JobTerms, run: str, now: int, *, sweep: bool
    ) -> tuple[int, tuple[OpenRun, ...]]:
        return 0, super()._look_at_others(terms, run, now, sweep=sweep)[1]


class Trusting(JobBook):
    """Takes any token for the right one."""

    def _own(self, run: str, token: str, now: int) -> Record | None:
        record = self._read(run, now)
        return record if isinstance(record, Record) else None


class Forgetful(JobBook):
    """Forgets what is over, and remembers no floor."""

    def claim(self, terms: JobTerms, ask: ClaimRequest, now: int) -> ClaimAnswer:
        record = self.records.get(ask.run)
        if isinstance(record, Record) and not record.open:
            del self.records[ask.run]
        return super().claim(terms, ask, now)


class Impatient(JobBook):
    """Takes every lease for over."""

    def _read(self, run: str, now: int) -> Record | Nonsense | None:
        record = super()._read(run, now)
        if isinstance(record, Record) and record.open:
            record.end = min(record.end, now)
        return record


class Generous(JobBook):
    """Counts no attempts."""

    def claim(self, terms: JobTerms, ask: ClaimRequest, now: int) -> ClaimAnswer:
        record = self.records.get(ask.run)
        if isinstance(record, Record) and record.open:
            record.max_attempts = 99
        return super().claim(terms, ask, now)


class Forgiving(JobBook):
    """Lets a claim win whatever attempt the asker knows of."""

    def claim(self, terms: JobTerms, ask: ClaimRequest, now: int) -> ClaimAnswer:
        record = self.records.get(ask.run)
        seen = record.attempt if isinstance(record, Record) and record.open else ask.seen
        return super().claim(terms, replace(ask, seen=seen), now)


class Restarting(JobBook):
    """Begins its fences anew with every claim."""

    def claim(self, terms: JobTerms, ask: ClaimRequest, now: int) -> ClaimAnswer:
        self.fence = 0
        return super().claim(terms, ask, now - now % 1000)


BROKEN: dict[type[JobBook], str] = {
    NobodyElse: "S4",
    Trusting: "S5",
    Forgetful: "S2|S3|S5|S6",
    Impatient: "S1|S4|a live lease was not|done, though it is live|S6",
    Generous: "S3: too many|S2",
    Forgiving: "S3|S5|S6",
    Restarting: "fences must grow|S4|S6|S7|live",
}


@pytest.mark.parametrize("book", BROKEN, ids=lambda book: book.__name__)
def test_a_broken_store_is_found_out(book: type[JobBook], seed: int) -> None:
    class Backend(MemoryBackend):
        def book(self, job: str) -> JobBook:
            return self.books.setdefault(job, book())

    worlds: list[World] = []
    store = Backend(clock=lambda: worlds[0].now).connect(timeout=1)
    worlds.append(World(store, seed, Overlap.WAIT))
    with pytest.raises(AssertionError, match=BROKEN[book]):
        asyncio.run(_live_through(worlds[0], 20 * STEPS))


@pytest.mark.parametrize("overlap", list(Overlap))
def test_what_must_always_hold_on_a_server(server: Server, overlap: Overlap, seed: int) -> None:
    worlds: list[World] = []
    with server.connect() as connection:
        store = blocking_store(connection, lambda: worlds[0].now)
        worlds.append(World(store, seed, overlap))
        asyncio.run(_live_through(worlds[0], STEPS // 3))
    assert worlds[0].judge.granted > STEPS // 150
