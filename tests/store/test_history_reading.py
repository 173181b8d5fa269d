"""Reading history from keys that hold what anarchon never wrote: no error, and the rest is told."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest

from anarchon.backends.base import ClaimCode, Overlap
from anarchon.runs import RunStatus
from anarchon.testing.conformance import Clock, Subject
from anarchon.testing.conformance.subject import SLOT
from tests.store.blocking import KEYS, blocking_store, scripts_over

if TYPE_CHECKING:
    from tests.support.server import Server

JOB = "garbage"
STATE, ACTIVE, SLOTS, RUNS, RESULTS = KEYS.of_job(JOB)
HUGE = "9" * 5000

RESULT_MEMBERS: tuple[str | bytes, ...] = (
    "",
    "nonsense",
    "1",
    f"{SLOT}",
    f"{SLOT} ² failed 1 ",
    f"{SLOT} 1 exploded 1 ",
    f"{SLOT} 1 failed ",
    f"{SLOT} 1 failed ² x",
    f"{SLOT} 1 failed -1 x",
    f"{SLOT} 1 failed {HUGE} x",
    f"{SLOT} {HUGE} failed 1 x",
    f"{HUGE} 1 failed 1 x",
    "999999999999999 1 failed 1 x",
    f"{SLOT} 1 failed 999999999999999 x",
    "² 1 failed 1 x",
    "m 1 failed 1 x",
    "m²-x 1 failed 1 x",
    "-1 1 failed 1 x",
    "mm-x 1 failed 1 x",
    b"\xff\xfe 1 failed 1 x",
)
RUNS_ENTRIES: tuple[dict[str, str], ...] = (
    {"run": "nonsense"},
    {"x": "y"},
    {"run": "999999999999999", "attempt": "1", "fence": "1", "start": "1", "trigger": "s"},
    {"run": "1", "attempt": "²", "fence": "1", "start": "1", "trigger": "s", "runner": "r"},
    {"run": "1", "attempt": "1", "fence": "1", "start": HUGE, "trigger": "s", "runner": "r"},
    {"run": "1", "attempt": HUGE, "fence": "1", "start": "1", "trigger": "s", "runner": "r"},
    {"run": "1", "attempt": "1", "fence": "1", "start": "1", "trigger": "?", "runner": "r"},
    {"run": "m-", "attempt": "1", "fence": "1", "start": "1", "trigger": "m", "runner": "r"},
)


def test_garbage_in_history_harms_nothing(server: Server) -> None:
    async def main() -> None:
        clock = Clock()
        with server.connect() as connection:
            subject = Subject(blocking_store(connection, clock), clock, job=JOB)
            await subject.claim()
            for number, member in enumerate(RESULT_MEMBERS):
                server.command("ZADD", RESULTS, SLOT + number, member)
            for entry in RUNS_ENTRIES:
                fields = itertools.chain.from_iterable(entry.items())
                server.command("XADD", RUNS, "*", *fields)
            runs = await subject.runs()
            assert [run.id for run in runs] == [str(SLOT)]
            assert runs[0].status is RunStatus.RUNNING

    asyncio.run(main())


@pytest.mark.parametrize("field", ["floor", "floor:manual", "since", "fence", "paused", "schedule"])
@pytest.mark.parametrize("value", ["", "nonsense", "²", "-5", "0x", "1e", "nan x"])
def test_garbage_in_a_jobs_own_fields_harms_nothing(server: Server, field: str, value: str) -> None:
    async def main() -> None:
        clock = Clock()
        server.command("HSET", STATE, field, value)
        with server.connect() as connection:
            subject = Subject(blocking_store(connection, clock), clock, job=JOB)
            registered = await subject.register()
            assert (registered.since, registered.paused_until) == (SLOT, None)
            assert (await subject.claim(since_applies=False)).code is ClaimCode.WON
            assert (await subject.finish()).ok

    asyncio.run(main())


@pytest.mark.parametrize("since", [None, "", "nonsense", "0", "-1"])
def test_a_schedule_without_its_moment_is_known_from_now_on(
    server: Server, since: str | None
) -> None:
    async def main() -> None:
        clock = Clock()
        with server.connect() as connection:
            subject = Subject(blocking_store(connection, clock), clock, job=JOB)
            server.command("HSET", STATE, "schedule", subject.terms.schedule_key)
            if since is not None:
                server.command("HSET", STATE, "since", since)
            registered = await subject.register()
            assert (registered.since, registered.changed) == (SLOT, True)

    asyncio.run(main())


@pytest.mark.parametrize("member", ["hello", "", "m", "²", "9" * 400, "m-1", "floor"])
def test_garbage_among_the_open_runs_harms_nothing(server: Server, member: str) -> None:
    async def main() -> None:
        clock = Clock()
        server.command("SADD", ACTIVE, member)
        with server.connect() as connection:
            subject = Subject(blocking_store(connection, clock), clock, job=JOB)
            answer = await subject.claim()
            assert (answer.code, answer.others) == (ClaimCode.WON, ())
            assert server.command("SISMEMBER", ACTIVE, member) == 0
            assert (await subject.finish()).ok

    asyncio.run(main())


def test_a_record_under_a_strange_name_is_named(server: Server) -> None:
    async def main() -> None:
        clock = Clock()
        server.command("SADD", ACTIVE, "hello")
        server.command("HSET", STATE, "hello", "R 1 soon")
        with server.connect() as connection:
            subject = Subject(blocking_store(connection, clock), clock, job=JOB)
            subject.set_terms(overlap=Overlap.ALLOW)
            answer = await subject.claim()
            assert answer.code is ClaimCode.WON
            assert [(other.run, other.attempt) for other in answer.others] == [("hello", 0)]

    asyncio.run(main())


def test_no_more_is_read_than_asked_for(server: Server) -> None:
    async def main() -> None:
        for number in range(20):
            server.command("ZADD", RESULTS, number, f"{number} 1 failed 1 x")
            server.command("XADD", RUNS, "*", "run", number)
        with server.connect() as connection:
            reply = await scripts_over(connection).call("history", KEYS.of_job(JOB), [4, ""])
        assert reply[2] == 4
        results = 3 + 6 * 4
        assert reply[results] == 4
        assert reply[results + 1 : results + 9 : 2] == [
            f"{n} 1 failed 1 x" for n in (19, 18, 17, 16)
        ]
        assert reply[results + 9] == 4

    asyncio.run(main())


def test_the_largest_numbers_are_read(server: Server) -> None:
    largest = "9" * 15
    server.command("SADD", ACTIVE, str(SLOT))
    record = f"R {largest} {largest} {SLOT + 5} {largest} {largest} s token-a - r"
    server.command("HSET", STATE, str(SLOT), record)
    server.command("HSET", STATE, str(SLOT - 1), f"D {largest} {largest} {largest} s t s")

    async def main() -> None:
        clock = Clock()
        with server.connect() as connection:
            subject = Subject(blocking_store(connection, clock), clock, job=JOB)
            answer = await subject.claim(token="token-b")
            assert (answer.code, answer.attempt, answer.rest) == (
                ClaimCode.RUNNING,
                int(largest),
                5,
            )
            assert (await subject.heartbeat()).ok
            done = await subject.claim(SLOT - 1)
            assert (done.code, done.fence) == (ClaimCode.DONE, int(largest))

    asyncio.run(main())


def test_entries_go_by_the_age_of_their_ids(server: Server) -> None:
    async def main() -> None:
        clock = Clock()
        with server.connect() as connection:
            subject = Subject(blocking_store(connection, clock), clock, job=JOB)
            for number in range(12):
                server.command("XADD", RUNS, f"{SLOT - 12 + number}-1", "run", "old")
            server.command("XADD", RUNS, f"{SLOT}-0", "run", "exactly")
            server.command("XADD", RUNS, f"{SLOT + 1}-0", "run", "younger")
            subject.set_terms(history_ttl=5_000)
            clock.now = SLOT + 5_000
            await subject.claim(SLOT + 4_999)
            assert server.command("XLEN", RUNS) == 14 - 10 + 1
            await subject.claim(SLOT + 4_998)
            subject.set_terms(overlap=Overlap.ALLOW)
            await subject.claim(SLOT + 4_997)
            first = server.command("XRANGE", RUNS, "-", "+", "COUNT", 1)
            assert b"younger" in str(first).encode()

    asyncio.run(main())
