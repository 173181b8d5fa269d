"""Connections, clients, threads and tasks: whose they are, and that none is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

import pytest
import redis.asyncio

from anarchon import RedisBackend, Scheduler, SchedulerStateError
from tests.processes.embedded import Diary, add_job, until
from tests.processes.support import soon, wait_for
from tests.store.books import text

if TYPE_CHECKING:
    from tests.support.server import Server

pytestmark = pytest.mark.processes


def ticking(backend: RedisBackend, diary: Diary, name: str = "work") -> Scheduler:
    """A scheduler with a job that is due three times a second."""
    scheduler = Scheduler(backend=backend, lease=1)
    add_job(scheduler, diary, name, soon(0.2, every=0.3), 0.01)
    return scheduler


def connections(server: Server, name: str = "") -> set[str]:
    """The ids of the connections that the server has (of that name)."""
    lines = text(server.command("CLIENT", "LIST")).splitlines()
    return {line.split()[0] for line in lines if f" name={name}" in line}


def test_nothing_is_left_after_stop(server: Server) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        before = (connections(server), set(threading.enumerate()), asyncio.all_tasks())
        factory = loop.get_task_factory()
        diary = Diary()
        scheduler = ticking(RedisBackend(redis=server.url), diary)
        async with scheduler:
            await diary.wait("end", count=2)
            assert connections(server) > before[0]
            assert set(threading.enumerate()) > before[1]
        await until(lambda: connections(server) == before[0], "end of the connections")
        assert set(threading.enumerate()) == before[1]
        assert asyncio.all_tasks() == before[2]
        assert loop.get_task_factory() is factory
        await scheduler.stop()

    asyncio.run(scenario())


def test_stop_returns_whatever_a_start_is_at(valkey9: Server) -> None:
    valkey9.flush()

    async def scenario() -> None:
        # A cancellation can get lost in a client library that has just sent something: each turn
        # of the loop is tried.
        for turns in range(0, 120, 2):
            scheduler = ticking(RedisBackend(redis=valkey9.url), Diary())
            starting = asyncio.create_task(scheduler.start())
            for _ in range(turns):
                await asyncio.sleep(0)
            async with asyncio.timeout(5):
                await scheduler.stop(timeout=0)
                with contextlib.suppress(SchedulerStateError):  # stopped while it started
                    await starting
                await scheduler.stop(timeout=0)

    asyncio.run(scenario())
    wait_for(lambda: len(connections(valkey9)) == 1, "end of the connections")


@pytest.mark.parametrize(
    ("decode", "protocol"), [(False, 3), (True, 2)], ids=["bytes-resp3", "decoded-resp2"]
)
def test_given_client_stays_open_with_its_settings(
    valkey9: Server, decode: bool, protocol: int
) -> None:
    valkey9.flush()

    async def scenario() -> None:
        client = redis.asyncio.Redis(
            port=valkey9.port,
            decode_responses=decode,
            protocol=protocol,
            socket_timeout=7,
            client_name="given",
        )
        settings = dict(client.connection_pool.connection_kwargs)
        await client.set("mine", "0")
        diary = Diary()
        async with ticking(RedisBackend(redis=client), diary) as scheduler:
            await diary.wait("end", count=2)
            [newest, *_] = await scheduler.history("work")
            assert newest.job == "work"
            used = connections(valkey9, "given")
        assert dict(client.connection_pool.connection_kwargs) == settings
        assert used
        assert connections(valkey9, "given") == used, "the client was closed"
        await client.set("mine", "1")
        assert await client.get("mine") == ("1" if decode else b"1")
        await client.aclose()

    asyncio.run(scenario())


def test_REG_03_two_schedulers_of_one_prefix_run_each_slot_once(valkey9: Server) -> None:
    valkey9.flush()

    async def scenario() -> None:
        diary = Diary()
        grid = soon(0.4, every=0.3)
        one = Scheduler(backend=RedisBackend(redis=valkey9.url), lease=1, runner="one")
        two = Scheduler(backend=RedisBackend(redis=valkey9.url), lease=1, runner="two")
        for scheduler in (one, two):
            add_job(scheduler, diary, "work", grid, 0.01)
            await scheduler.start()
        await diary.wait("end", count=4)
        await one.stop()
        stopped_after = len(diary.notes)
        await diary.wait("end", count=len(diary.of("end")) + 2)
        assert {note.run.runner for note in diary.notes[stopped_after:]} == {"two"}
        await two.stop()
        diary.assert_no_slot_twice()
        slots = diary.slots("work")
        assert slots == [slots[0] + number * grid["every"] for number in range(len(slots))]
        tokens = [note.run.token for note in diary.of("start")]
        assert len(set(tokens)) == len(tokens)

    asyncio.run(scenario())


def test_REG_03_two_schedulers_of_two_prefixes_share_a_client(valkey9: Server) -> None:
    valkey9.flush()

    async def scenario() -> None:
        client = redis.asyncio.Redis(port=valkey9.port)
        grid = soon(0.3, every=0.3)
        diaries = [Diary(), Diary()]
        schedulers: list[Scheduler] = []
        for diary, prefix in zip(diaries, ("one:", "two:"), strict=True):
            scheduler = Scheduler(backend=RedisBackend(redis=client, prefix=prefix), lease=1)
            add_job(scheduler, diary, "work", grid, 0.01)
            await scheduler.start()
            schedulers.append(scheduler)
        for diary in diaries:
            await diary.wait("end", count=2)
            diary.assert_no_slot_twice()
        shared = min(len(diary.slots("work")) for diary in diaries)
        assert diaries[0].slots("work")[:shared] == diaries[1].slots("work")[:shared]
        await schedulers[0].stop()
        left = len(diaries[0].notes)
        await diaries[1].wait("end", count=len(diaries[1].of("end")) + 2)
        assert len(diaries[0].notes) == left
        assert await client.set("mine", "0")
        await schedulers[1].stop()
        assert await client.set("mine", "0")
        await client.aclose()

    asyncio.run(scenario())
