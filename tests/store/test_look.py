"""Questions to real servers: what is told of a job, a run, and the instances; and what it takes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from anarchon import RedisBackend, RunStatus, StoreError
from anarchon.backends.base import JobFacts, Outcome, Overlap, Presence
from anarchon.testing.conformance import Clock, Subject
from anarchon.testing.conformance.subject import LEASE, WINDOW
from tests.store.blocking import KEYS, blocking_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from anarchon.backends.redis.strategies.lease import LeaseStore
    from tests.conftest import StartServer
    from tests.support.resp import Connection
    from tests.support.server import Server

JOB = "looked at"
QUESTIONS: dict[str, Callable[[LeaseStore], Awaitable[object]]] = {
    "look": lambda store: store.look(JOB, ""),
    "look at a run": lambda store: store.look(JOB, "1700000000000"),
    "history": lambda store: store.history(JOB, 10),
    "instances": lambda store: store.instances(),
    "facts": lambda store: store.facts(),
    "time": lambda store: store.clock("", "", 0),
}


@pytest.fixture
def connection(server: Server) -> Iterator[Connection]:
    with server.connect() as opened:
        yield opened


@pytest.fixture
def subject(connection: Connection) -> Subject:
    """A job on a server, at a time of the test's own."""
    clock = Clock()
    return Subject(blocking_store(connection, clock), clock, job=JOB)


def with_store(url: str, use: Callable[[LeaseStore], Awaitable[object]]) -> Any:
    """Visit a store as a question does, ask, and close it."""

    async def main() -> object:
        store = RedisBackend(redis=url).connect(timeout=10)
        try:
            await store.visit()
            return await use(store)
        finally:
            await store.close()

    return asyncio.run(main())


def look(subject: Subject, run: str = "") -> JobFacts:
    return asyncio.run(subject.store.look(subject.job, run))


# -- a job -----------------------------------------------------------------------------------------


def test_a_job_that_nobody_knows(subject: Subject) -> None:
    facts = look(subject, "1700000000000")
    assert facts == JobFacts(
        time=subject.clock.now,
        schedule_key="",
        since=0,
        floor=0,
        fence=0,
        paused_until=None,
        paused_note="",
        open_runs=(),
        run=None,
        run_end=0,
    )
    assert not facts.known


def test_a_registered_job(subject: Subject) -> None:
    asyncio.run(subject.register())
    facts = look(subject)
    assert facts.schedule_key == subject.terms.schedule_key
    assert (facts.since, facts.time) == (subject.clock.now, subject.clock.now)
    assert facts.known
    subject.clock.now += 5
    assert (look(subject).since, look(subject).time) == (subject.clock.now - 5, subject.clock.now)


@pytest.mark.parametrize("note", ["", "why not", "two  spaces ", "a\nb", "ü €", "5 6"])
def test_a_paused_job(subject: Subject, note: str) -> None:
    asyncio.run(subject.store.pause(JOB, 0, note))
    assert (look(subject).paused_until, look(subject).paused_note) == (0, note)
    assert look(subject).known
    end = subject.clock.now + 10
    asyncio.run(subject.store.pause(JOB, end, note))
    subject.clock.now = end - 1
    assert (look(subject).paused_until, look(subject).paused_note) == (end, note)
    subject.clock.now = end
    assert (look(subject).paused_until, look(subject).paused_note) == (None, "")
    asyncio.run(subject.store.pause(JOB, 0, note))
    asyncio.run(subject.store.resume(JOB))
    assert look(subject).paused_until is None


def test_a_job_that_was_only_run_by_hand_is_known(subject: Subject) -> None:
    async def live() -> None:
        await subject.claim(f"m{subject.clock.now}-abcdef")
        await subject.finish(f"m{subject.clock.now}-abcdef")

    asyncio.run(live())
    facts = look(subject)
    assert (facts.schedule_key, facts.open_runs, facts.since) == ("", (), 0)
    assert facts.known


def test_the_open_runs_of_a_job(subject: Subject) -> None:
    subject.set_terms(overlap=Overlap.ALLOW)
    now = subject.clock.now

    async def live() -> None:
        for back in (3, 2, 1):
            await subject.claim(now - back, f"token-{back}")
        await subject.finish(now - 3, "token-3", outcome=Outcome.SUCCEEDED)
        await subject.finish(now - 2, "token-2", outcome=Outcome.FAILED, delay=10_000)

    asyncio.run(live())
    assert look(subject).open_runs == (str(now - 2), str(now - 1))


def test_of_many_open_runs_a_hundred_are_named(subject: Subject) -> None:
    subject.set_terms(overlap=Overlap.ALLOW)
    now = subject.clock.now

    async def live() -> None:
        for back in range(120):
            await subject.claim(now - back)

    asyncio.run(live())
    named = look(subject).open_runs
    assert len(named) == 100
    assert set(named) < {str(now - back) for back in range(120)}
    assert list(named) == sorted(named)


def test_members_of_active_that_are_not_open_are_not_named(
    subject: Subject, connection: Connection
) -> None:
    now = subject.clock.now
    asyncio.run(subject.claim(now))
    state, active, *_ = KEYS.of_job(JOB)
    connection.command("SADD", active, "1", "2", "x")
    connection.command("HSET", state, "2", "nonsense")
    assert look(subject).open_runs == (str(now),)
    # What makes no sense is left for those to judge who have the job.
    assert connection.command("SCARD", active) == 4


def test_what_is_trimmed_raises_the_floor(subject: Subject) -> None:
    subject.set_terms(history_size=1, keep=0)
    now = subject.clock.now

    async def live() -> None:
        for back in (30, 20, 10):
            await subject.claim(now - back)
            await subject.finish(now - back, outcome=Outcome.SUCCEEDED)

    asyncio.run(live())
    facts = look(subject, str(now - 30))
    assert facts.floor >= now - 30
    assert look(subject, str(now - 10)).run is not None


# -- a run -----------------------------------------------------------------------------------------


def test_a_run_with_all_its_attempts(subject: Subject) -> None:
    slot = subject.clock.now

    async def live() -> None:
        await subject.claim(slot, "a", runner="one")
        subject.clock.now += 50
        await subject.finish(slot, "a", outcome=Outcome.FAILED, error="ValueError: no", delay=0)
        await subject.claim(slot, "b", seen=1, deadline=slot + 60_000, runner="two")

    asyncio.run(live())
    run = look(subject, str(slot)).run
    assert run is not None
    assert (run.job, run.id, run.status) == (JOB, str(slot), RunStatus.RUNNING)
    first, second = run.attempts
    assert (first.number, first.status, first.runner) == (1, RunStatus.FAILED, "one")
    assert first.error == "ValueError: no"
    assert first.duration == pytest.approx(0.05)
    assert (second.number, second.status, second.runner) == (2, RunStatus.RUNNING, "two")
    assert (run,) == asyncio.run(subject.store.history(JOB, 10))


def test_until_when_a_run_is_live(subject: Subject) -> None:
    slot = subject.clock.now

    def end() -> int:
        return look(subject, str(slot)).run_end

    assert end() == 0
    asyncio.run(subject.claim(slot))
    assert end() == slot + LEASE
    subject.clock.now += LEASE + 1
    assert end() == slot + LEASE
    asyncio.run(subject.finish(slot, outcome=Outcome.FAILED, delay=700))
    assert end() == slot + LEASE + 1 + 700
    asyncio.run(subject.cancel(slot))
    assert end() == 0


def test_only_the_run_that_is_asked_for_is_told(subject: Subject) -> None:
    slot = subject.clock.now
    subject.set_terms(overlap=Overlap.ALLOW)

    async def live() -> None:
        for run in (slot - 1, slot):
            await subject.claim(run)
            await subject.finish(run, outcome=Outcome.SUCCEEDED)

    asyncio.run(live())
    run = look(subject, str(slot - 1)).run
    assert run is not None
    assert run.id == str(slot - 1)
    assert len(run.attempts) == 1
    # A name that begins like another is not that one.
    assert look(subject, str(slot)[:-1]).run is None
    assert look(subject, f"{slot}0").run is None


def test_a_run_among_many_others(subject: Subject) -> None:
    subject.set_terms(history_size=5000)
    slot = subject.clock.now

    async def live() -> None:
        for number in range(1100):
            subject.clock.now = slot + number
            await subject.claim(slot + number)
            await subject.finish(slot + number, outcome=Outcome.SUCCEEDED)

    asyncio.run(live())
    for number in (0, 50, 1099):
        run = look(subject, str(slot + number)).run
        assert run is not None
        assert [attempt.status for attempt in run.attempts] == [RunStatus.SUCCEEDED]


def test_a_skipped_run_and_a_missed_one(subject: Subject) -> None:
    slot = subject.clock.now

    async def live() -> None:
        await subject.store.pause(JOB, 0, "")
        await subject.claim(slot)
        await subject.store.resume(JOB)
        await subject.claim(late)

    late = slot - WINDOW - 1
    asyncio.run(live())
    paused, missed = look(subject, str(slot)).run, look(subject, str(late)).run
    assert paused is not None
    assert missed is not None
    assert (paused.status, missed.status) == (RunStatus.PAUSED, RunStatus.MISSED)
    assert paused.attempts == missed.attempts == ()


def test_a_run_whose_beginning_was_trimmed(subject: Subject, connection: Connection) -> None:
    slot = subject.clock.now

    async def live() -> None:
        await subject.claim(slot)
        await subject.finish(slot, outcome=Outcome.SUCCEEDED)

    asyncio.run(live())
    *_, runs, results = KEYS.of_job(JOB)
    connection.command("DEL", runs)
    run = look(subject, str(slot)).run
    assert run is not None
    (attempt,) = run.attempts
    assert (run.status, attempt.status) == (RunStatus.SUCCEEDED, RunStatus.SUCCEEDED)
    assert attempt.start is None
    connection.command("DEL", results)
    run = look(subject, str(slot)).run
    assert run is not None
    assert (run.status, run.attempts) == (RunStatus.SUCCEEDED, ())


@pytest.mark.parametrize("record", ["", "nonsense", "R x 3 1 1 1 s tok - r", "D 1 1 1 s tok z"])
def test_a_record_that_makes_no_sense_is_no_run(
    subject: Subject, connection: Connection, record: str
) -> None:
    connection.command("HSET", KEYS.of_job(JOB)[0], "1700000000000", record)
    facts = look(subject, "1700000000000")
    assert (facts.run, facts.open_runs) == (None, ())


@pytest.mark.parametrize("run", ["x", "m", "m5", "-5", "5 x", "", "schedule", "\n"])
def test_odd_names_of_runs_are_no_runs(subject: Subject, run: str) -> None:
    asyncio.run(subject.register())
    facts = look(subject, run)
    assert facts.run is None
    assert facts.known


# -- instances and facts ---------------------------------------------------------------------------


def test_the_instances(server: Server, connection: Connection) -> None:
    clock = Clock()
    store = blocking_store(connection, clock)

    async def live() -> None:
        assert (await store.instances()).instances == ()
        await store.clock("host:1:a", '{"ahead": 5}', 60_000)
        clock.now += 5
        await store.clock("host:2:b", "it says  this", 60_000)
        shown = await store.instances()
        assert shown.time == clock.now
        assert sorted(shown.instances, key=lambda p: p.runner) == [
            Presence("host:1:a", clock.now - 5, '{"ahead": 5}'),
            Presence("host:2:b", clock.now, "it says  this"),
        ]
        await store.clock("host:1:a", "", 60_000)
        assert [p.runner for p in (await store.instances()).instances] == ["host:2:b"]

    asyncio.run(live())


def test_instances_that_make_no_sense_are_left_out(server: Server) -> None:
    odd = {"a": "", "b": "nonsense", "c": "² x", "d": "-5 x", "e": "9" * 15, "f": "7", "g": " 5 x"}
    for name, value in odd.items():
        server.command("HSET", KEYS.instances, name, value)
    shown = with_store(server.url, lambda store: store.instances())
    assert shown.instances == (Presence("f", 7, ""),)
    assert server.command("HLEN", KEYS.instances) == len(odd)


@pytest.mark.parametrize(("name", "product"), [("redis7", "Redis 7."), ("valkey9", "Valkey 9.")])
def test_the_facts_of_a_server(start_server: StartServer, name: str, product: str) -> None:
    server = start_server(name, append_only=True, settings={"maxmemory": "64mb"})
    facts = with_store(server.url, lambda store: store.facts())
    assert facts.server.startswith(product)
    assert (facts.eviction, facts.kept) == ("", True)
    server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    server.command("CONFIG", "SET", "appendonly", "no")
    facts = with_store(server.url, lambda store: store.facts())
    assert (facts.eviction, facts.kept) == ("allkeys-lru", False)
    server.command("CONFIG", "SET", "maxmemory", "0")
    assert with_store(server.url, lambda store: store.facts()).eviction == ""


def test_the_time_of_the_instances_is_the_servers(server: Server) -> None:
    async def times(store: LeaseStore) -> list[int]:
        before = await store.clock("", "", 0)
        shown = (await store.instances()).time
        return [before, shown, await store.clock("", "", 0)]

    told = with_store(server.url, times)
    assert told == sorted(told)
    assert told[-1] - told[0] < 10_000


def test_a_replica_does_not_tell_of_the_instances(start_server: StartServer) -> None:
    """What it knows may be old: it would show as dead who is alive."""
    primary = start_server("valkey9")
    replica = start_server("valkey9", replica_of=primary)
    assert with_store(primary.url, lambda store: store.instances()).instances == ()

    async def ask(store: LeaseStore) -> None:
        with pytest.raises(StoreError, match=r"(?i)read.?only"):
            await store.instances()

    async def main() -> None:
        store = RedisBackend(redis=replica.url).connect(timeout=10)
        try:
            await ask(store)
        finally:
            await store.close()

    asyncio.run(main())
