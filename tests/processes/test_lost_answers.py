"""Answers that never arrive: who asked knows nothing, asks again, and nothing happens twice."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from anarchon import RedisBackend, RunStatus, Scheduler, StoreError
from anarchon.backends.redis.scripts import script
from tests.processes.embedded import Diary, add_job, said, until, until_settled
from tests.processes.support import letters, open_runs, soon
from tests.support.proxy import Fault, Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.server import Server

pytestmark = pytest.mark.processes

LEASE = 0.7


@pytest.fixture
def proxy(valkey9: Server) -> Iterator[Proxy]:
    """Yield a proxy before an empty server."""
    valkey9.flush()
    with Proxy(valkey9.port) as running:
        yield running
    valkey9.flush()


def working(  # noqa: PLR0913 - what the tests vary
    url: str,
    diary: Diary,
    *,
    seconds: float = 0.0,
    in_seconds: float = 0.4,
    attempts: int = 3,
    lease: float = LEASE,
) -> Scheduler:
    """A scheduler whose job writes the diary; its slots are far apart."""
    scheduler = Scheduler(backend=RedisBackend(redis=url), lease=lease)
    grid = soon(in_seconds, every=600)
    add_job(scheduler, diary, "work", grid, seconds, max_attempts=attempts, max_late=10)
    return scheduler


@pytest.mark.parametrize("fault", [Fault.CUT_AFTER, Fault.DROP_REPLY], ids=lambda f: f.name)
def test_OUT_05a_claim_whose_answer_is_lost_runs_once(
    proxy: Proxy, valkey9: Server, fault: Fault
) -> None:
    async def scenario() -> None:
        diary = Diary()
        proxy.fail(fault, matching=script("claim").sha, times=2)
        async with working(proxy.url, diary):
            await diary.wait("end")
            await until_settled(valkey9, "work")
        assert proxy.hits == 2
        [start] = diary.of("start")
        assert start.run.attempt == 1

    asyncio.run(scenario())
    assert open_runs(valkey9, "work") == set()


def test_OUT_05b_claim_that_cannot_be_sent_starts_nothing(proxy: Proxy, valkey9: Server) -> None:
    async def scenario() -> None:
        diary = Diary()
        async with working(proxy.url, diary) as scheduler:
            proxy.close_port()
            await until(lambda: not scheduler.health().store, "failed claim")
            await asyncio.sleep(0.5)  # chances to do what must not be done
            assert diary.notes == []
            assert letters(valkey9, "work") == {}
            proxy.open_port()
            [start] = await diary.wait("start")
            assert start.run.attempt == 1
            await diary.wait("end")
            await until_settled(valkey9, "work")

    asyncio.run(scenario())


@pytest.mark.parametrize("fault", [Fault.CUT_AFTER, Fault.DROP_REPLY], ids=lambda f: f.name)
def test_OUT_05c_finish_whose_answer_is_lost_is_written_once(
    proxy: Proxy, valkey9: Server, fault: Fault
) -> None:
    async def scenario() -> None:
        diary = Diary()
        proxy.fail(fault, matching=script("finish").sha, times=2)
        async with working(proxy.url, diary) as scheduler:
            await diary.wait("end")
            await until(lambda: proxy.hits == 2, "repeated finish")
            await scheduler.stop()
            [record] = await scheduler.history("work")
        assert record.status is RunStatus.SUCCEEDED
        assert [attempt.status for attempt in record.attempts] == [RunStatus.SUCCEEDED]
        assert len(diary.of("start")) == 1

    asyncio.run(scenario())
    assert valkey9.command("ZCARD", "{cron:work}:results") == 1
    assert open_runs(valkey9, "work") == set()


def test_OUT_05d_finish_waits_for_a_store_that_was_away(proxy: Proxy, valkey9: Server) -> None:
    async def scenario() -> None:
        diary = Diary()
        async with working(proxy.url, diary, seconds=0.3) as scheduler:
            await diary.wait("start")
            proxy.fail(Fault.BLACK_HOLE)
            await diary.wait("end")
            await asyncio.sleep(3 * LEASE)  # how long the store is away is what is tested
            assert set(letters(valkey9, "work").values()) == {"R"}
            proxy.heal()
            await until_settled(valkey9, "work")
            [record] = await scheduler.history("work")
        assert [attempt.status for attempt in record.attempts] == [RunStatus.SUCCEEDED]
        assert len(diary.of("start")) == 1

    asyncio.run(scenario())


def test_OUT_05d_finish_gives_way_to_an_attempt_that_took_over(
    proxy: Proxy, valkey9: Server
) -> None:
    async def scenario() -> None:
        cut_off, other = Diary(), Diary()
        # The other one has the job, but comes to it only when the first has the run.
        first = working(proxy.url, cut_off, seconds=0.4, attempts=2)
        async with first:
            await cut_off.wait("start")
            async with working(valkey9.url, other, seconds=1.0, in_seconds=60) as second:
                proxy.fail(Fault.BLACK_HOLE)
                await cut_off.wait("end")
                [start] = await other.wait("start")
                assert start.run.attempt == 2
                proxy.heal()
                await until(lambda: first.health().store, "return of the store")
                assert set(letters(valkey9, "work").values()) == {"R"}
                await other.wait("end")
                await until_settled(valkey9, "work")
                [record] = await second.history("work")
        statuses = [attempt.status for attempt in record.attempts]
        assert statuses == [RunStatus.INTERRUPTED, RunStatus.SUCCEEDED]
        assert record.attempts[1].runner != record.attempts[0].runner
        assert len(cut_off.of("start")) == 1

    asyncio.run(scenario())


def test_delayed_answers_are_waited_for(
    proxy: Proxy, valkey9: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "anarchon")

    async def scenario() -> None:
        diary = Diary()
        async with working(proxy.url, diary, lease=5):
            proxy.fail(Fault.DELAY, seconds=0.04)
            [start] = await diary.wait("start")
            await until_settled(valkey9, "work")
        assert 0.04 < start.late < 1

    asyncio.run(scenario())
    assert said(caplog.records, "store.away") == []


def test_request_that_is_cut_off_before_it_went_on_is_sent_again(
    proxy: Proxy, valkey9: Server
) -> None:
    async def scenario() -> None:
        diary = Diary()
        proxy.fail(Fault.CUT_BEFORE, matching=script("claim").sha, times=3)
        async with working(proxy.url, diary):
            [start] = await diary.wait("start")
            assert start.run.attempt == 1
            await until_settled(valkey9, "work")
        assert proxy.hits == 3
        assert len(diary.of("start")) == 1

    asyncio.run(scenario())


def test_heartbeats_without_answers_stop_the_body(proxy: Proxy, valkey9: Server) -> None:
    async def scenario() -> None:
        diary = Diary()
        proxy.fail(Fault.DROP_REPLY, matching=script("heartbeat").sha)
        async with working(proxy.url, diary, seconds=5.0, attempts=2) as scheduler:
            [cancelled] = await diary.wait("cancelled")
            proxy.heal()
            # The server has heard them, so the run is free a lease after the last of them.
            [_, again] = await diary.wait("start", count=2)
            assert cancelled.late < LEASE + 0.2
            assert again.run.attempt == 2
            assert again.at - cancelled.at < LEASE + 1
            await scheduler.stop(timeout=0)
        assert set(letters(valkey9, "work").values()) == {"X"}  # the last attempt was given back

    asyncio.run(scenario())


def test_connections_that_are_cut_all_the_time_are_opened_again(
    valkey9: Server, caplog: pytest.LogCaptureFixture
) -> None:
    valkey9.flush()
    caplog.set_level(logging.INFO, "anarchon")

    async def scenario() -> None:
        diary = Diary()
        scheduler = Scheduler(backend=RedisBackend(redis=valkey9.url), lease=LEASE)
        grid = soon(0.3, every=0.3)
        for number in range(5):
            add_job(scheduler, diary, f"work {number}", grid, 0.05)
        async with scheduler:
            for count in range(1, 5):
                valkey9.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                await diary.wait("end", count=5 * count)
        diary.assert_no_slot_twice()
        assert max(note.late for note in diary.of("start")) < 0.5

    asyncio.run(scenario())
    assert [r.getMessage() for r in caplog.records if r.levelno > logging.INFO] == []


def test_return_of_the_store_is_noticed_while_idle(
    proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "anarchon")

    async def scenario() -> None:
        diary = Diary()
        scheduler = Scheduler(backend=RedisBackend(redis=proxy.url), lease=LEASE)
        add_job(scheduler, diary, "work", "0 0 1 1 *")
        async with scheduler:
            proxy.close_port()
            with pytest.raises(StoreError):
                await scheduler.run_now("work")
            assert not scheduler.health().store
            proxy.open_port()
            await until(lambda: scheduler.health().store, "return of the store", patience=5)
        assert diary.notes == []

    asyncio.run(scenario())
    assert len(said(caplog.records, "store.away")) == 1
    assert len(said(caplog.records, "store.back")) == 1
