"""Schedulers that are started and stopped very often, at any moment: nothing is left over."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import random
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from anarchon import RedisBackend, Run, Scheduler, SchedulerStateError
from anarchon.engine.core import Engine
from tests.processes.support import ROOT
from tests.store.books import texts
from tests.support.world import EVERY_SECOND, World, virtual

if TYPE_CHECKING:
    from tests.support.server import Server

TIMES = 200
pytestmark = pytest.mark.usefixtures("_quiet")
DOCUMENTED = re.compile(
    r"cron:format|cron:instances|\{cron:[a-z]+\}:(state|active|slots|runs|results)"
)


@pytest.fixture
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Let nothing be logged: records keep the errors that they tell of, and all that those hold."""
    caplog.set_level(logging.CRITICAL, "anarchon")


class Often:
    """Slots every so many milliseconds: no cron expression is as frequent."""

    def __init__(self, every: int) -> None:
        self._every = timedelta(milliseconds=every)
        self.key = f"every {every} ms"

    def next_after(self, moment: datetime, /) -> datetime:
        """The first slot strictly after a moment."""
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        return epoch + ((moment - epoch) // self._every + 1) * self._every


def declare(scheduler: Scheduler) -> None:
    """Jobs of several kinds, some of which are under way at any moment."""

    async def quick() -> None:
        pass

    async def long() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(asyncio.sleep(0.2))

    async def cleans() -> None:
        try:
            await asyncio.sleep(0.2)
        finally:
            await asyncio.sleep(0.01)

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError

    def plain() -> None:
        time.sleep(0.005)

    def looks(run: Run) -> None:
        while not run.lost.wait(0.01):
            pass

    scheduler.add_job(quick, Often(20), name="quick", catch_up=1)
    scheduler.add_job(long, Often(50), name="long", overlap="allow")
    scheduler.add_job(cleans, Often(50), name="cleans", overlap="wait")
    scheduler.add_job(fails, Often(30), name="fails", retry_delay=0.01)
    scheduler.add_job(plain, Often(30), name="plain", jitter=0.02)
    scheduler.add_job(looks, Often(100), name="looks", timeout=0.05)


def engines() -> int:
    """How many engines there are; hosts that crashed in other tests keep theirs."""
    gc.collect()
    return sum(type(each) is Engine for each in gc.get_objects())


@dataclass
class Left:
    """What of this process belongs to schedulers."""

    descriptors: int = 0
    threads: list[str] = field(default_factory=list[str])
    engines: int = 0

    @classmethod
    def now(cls) -> Left:
        """What there is now."""
        gc.collect()
        return cls(
            descriptors=len(os.listdir("/dev/fd")),  # noqa: PTH208 - names alone, and no more open
            threads=sorted(t.name for t in threading.enumerate() if t.name.startswith("anarchon")),
            engines=engines(),
        )


def clients_of(server: Server) -> int:
    """How many connections a server has."""
    return str(server.command("CLIENT", "LIST", "TYPE", "normal")).count("id=")


def assert_nothing_left(before: Left, server: Server, clients_before: int) -> None:
    """No descriptor, thread, engine, connection or undocumented key is left."""
    until = time.monotonic() + 5
    while True:  # a thread that was told to end may need a moment, and the server to notice
        now = Left.now()
        clients = clients_of(server)
        if (now == before and clients <= clients_before) or time.monotonic() > until:
            break
        time.sleep(0.01)
    assert now == before
    assert clients <= clients_before
    keys = texts(server.command("KEYS", "*"))
    assert [key for key in keys if not DOCUMENTED.fullmatch(key)] == []
    assert "cron:instances" not in keys, "an instance is still present"
    assert any(key.endswith(":runs") for key in keys), "nothing ran"


async def one_life(scheduler: Scheduler, rng: random.Random) -> None:
    """Start and stop, in one of the ways that there are."""
    for_long, drain = rng.uniform(0, 0.04), rng.choice([0, 0.005, 0.02])
    how = rng.randrange(5)
    if how == 0:  # stopped while it starts
        starting = asyncio.create_task(scheduler.start())
        await asyncio.sleep(rng.uniform(0, 0.004))
        await scheduler.stop(drain)
        with contextlib.suppress(SchedulerStateError):
            await starting
        # It may have begun only after that.
        await scheduler.stop(drain)
    elif how == 1:  # its start is cancelled
        starting = asyncio.create_task(scheduler.start())
        await asyncio.sleep(rng.uniform(0, 0.004))
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
        await scheduler.stop(drain)
    elif how == 2:  # stopped by several at once, one of which is cancelled
        await scheduler.start()
        await asyncio.sleep(for_long)
        impatient = asyncio.create_task(scheduler.stop(drain))
        await asyncio.sleep(rng.uniform(0, 0.002))
        impatient.cancel()
        await asyncio.gather(scheduler.stop(drain), scheduler.stop(drain))
    elif how == 3:  # the application is cancelled
        task = asyncio.create_task(within(scheduler, drain))
        await asyncio.sleep(for_long)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    else:
        await scheduler.start()
        await asyncio.sleep(for_long)
        await scheduler.stop(drain)
    assert not scheduler.health().running


async def within(scheduler: Scheduler, drain: float) -> None:
    """Be an application that runs until it is cancelled."""
    await scheduler.start()
    try:
        await asyncio.sleep(60)
    finally:
        await scheduler.stop(drain)


def test_nothing_is_left_of_many_lives_on_one_loop(valkey9: Server, seed: int) -> None:
    rng = random.Random(seed)
    clients = clients_of(valkey9)
    scheduler = Scheduler(backend=RedisBackend(redis=valkey9.url))
    declare(scheduler)

    async def story() -> None:
        loop = asyncio.get_running_loop()
        factory = loop.get_task_factory()
        for _ in range(5):
            await one_life(scheduler, rng)
        before = await asyncio.to_thread(Left.now)
        before.threads = []
        for _ in range(TIMES):
            began = time.monotonic()
            await one_life(scheduler, rng)
            assert time.monotonic() - began < 0.04 + 0.02 + 0.5 + 2  # the last for other work
        await asyncio.to_thread(assert_nothing_left, before, valkey9, clients)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert loop.get_task_factory() is factory

    asyncio.run(story())


@pytest.mark.parametrize("how", ["stopped", "cancelled"])
def test_nothing_is_left_of_a_start_that_is_ended_at_any_moment(
    valkey9: Server, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    clients = clients_of(valkey9)
    scheduler = Scheduler(backend=RedisBackend(redis=valkey9.url))
    declare(scheduler)

    async def start_and_end(turns: int) -> None:
        starting = asyncio.create_task(scheduler.start())
        for _ in range(turns):
            await asyncio.sleep(0)
        if how == "cancelled":
            starting.cancel()
        else:
            await scheduler.stop(0)
        with contextlib.suppress(SchedulerStateError, asyncio.CancelledError):
            await starting
        await scheduler.stop(0)

    async def story() -> None:
        async with scheduler:
            await asyncio.sleep(0.1)
        before = await asyncio.to_thread(Left.now)
        for turns in range(60):
            await start_and_end(turns)
        await asyncio.to_thread(assert_nothing_left, before, valkey9, clients)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(story())
    assert [record.getMessage() for record in caplog.records] == [], "asyncio complained"


def test_nothing_is_left_of_many_loops(valkey9: Server, seed: int) -> None:
    rng = random.Random(seed)
    clients = clients_of(valkey9)
    scheduler = Scheduler(backend=RedisBackend(redis=valkey9.url), shutdown_timeout=0.01)
    declare(scheduler)

    async def application() -> None:
        async with scheduler:
            await asyncio.sleep(rng.uniform(0, 0.06))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(application())
    before = Left.now()
    before.threads = []
    for _ in range(TIMES // 10):
        asyncio.run(application())
    assert_nothing_left(before, valkey9, clients)


def test_nothing_is_left_of_many_runs_that_signals_end(valkey9: Server, seed: int) -> None:
    clients = clients_of(valkey9)
    plan = {"url": valkey9.url, "seed": seed, "times": TIMES // 10}
    ended = subprocess.run(
        [sys.executable, "-m", "tests.engine.many_runs", json.dumps(plan)],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    before, after = json.loads(ended.stdout)
    assert after == before
    assert_nothing_left(Left.now(), valkey9, clients)


@pytest.mark.parametrize("instances", [1, 3])
@virtual
async def test_nothing_is_left_of_many_lives_in_virtual_time(world: World, instances: int) -> None:
    rng = world.time.rng

    def declare_there(scheduler: Scheduler) -> None:
        def plain() -> None:
            world.time.sleep(rng.uniform(0, 2))

        world.job(EVERY_SECOND, takes=0.5, name="short")(scheduler)
        world.job(EVERY_SECOND, takes=3, name="long", overlap="allow")(scheduler)
        world.job(EVERY_SECOND, takes=2, name="waits", overlap="wait", catch_up=60)(scheduler)
        scheduler.add_job(plain, EVERY_SECOND, name="plain", jitter=0.5)

    async def live(number: int) -> None:
        instance = world.add(declare_there, name=f"i{number}", lease=6)
        for _ in range(TIMES // instances):
            await instance.start()
            await world.wait(rng.choice([0, rng.uniform(0, 0.01), rng.uniform(0, 2)]))
            before = world.time.seconds
            drain = rng.choice([0, 0, 0.3, 3])
            await instance.stop(timeout=drain)
            assert world.time.seconds - before < drain + 0.5
            assert not instance.scheduler.health().running

    before = engines()
    await asyncio.gather(*(live(number) for number in range(instances)))
    await world.wait(3)  # plain functions go on until they return
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert world.time.threads_out() == []
    assert world.backend.instances == {}
    assert {entry.how for entry in world.entries} == {"succeeded", "CancelledError"}
    assert engines() == before
    # What was given back or left lying is taken up and ended by whoever comes next.
    last = world.add(declare_there, name="last", lease=6)
    await last.start()
    await world.wait(120)
    assert world.open_past_their_end() == []
