"""SystemExit and KeyboardInterrupt in the tasks that a job starts end the job, and nothing else."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from anarchon import MemoryBackend, Scheduler
from tests.processes.support import PATIENCE, ROOT
from tests.support.world import EVERY_MINUTE, World, minutes, virtual

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

NEVER = "0 3 * * *"


async def gathered(leave: Coroutine[Any, Any, None]) -> None:
    await asyncio.gather(leave, asyncio.sleep(1))


async def grouped(leave: Coroutine[Any, Any, None]) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(leave)


async def created(leave: Coroutine[Any, Any, None]) -> None:
    await asyncio.create_task(leave)


async def waited_for(leave: Coroutine[Any, Any, None]) -> None:
    await asyncio.wait_for(leave, 5)


async def nested(leave: Coroutine[Any, Any, None]) -> None:
    await asyncio.create_task(gathered(leave))


async def shielded(leave: Coroutine[Any, Any, None]) -> None:
    await asyncio.shield(leave)


async def left_behind(leave: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(leave)
    await asyncio.wait([task])
    await task


WAYS: tuple[Callable[[Coroutine[Any, Any, None]], Awaitable[None]], ...] = (
    gathered,
    grouped,
    created,
    waited_for,
    nested,
    shielded,
    left_behind,
)
EXITS: dict[str, Callable[[], BaseException]] = {
    "exit": lambda: SystemExit(2),
    "exit without a fault": lambda: SystemExit(0),
    "interrupt": KeyboardInterrupt,
}
each_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
each_exit = pytest.mark.parametrize("error", EXITS.values(), ids=EXITS)


@each_exit
@each_way
@virtual
async def test_an_exit_in_a_task_fails_the_run_that_started_it(
    world: World,
    way: Callable[[Coroutine[Any, Any, None]], Awaitable[None]],
    error: Callable[[], BaseException],
) -> None:
    async def leave() -> None:
        await asyncio.sleep(0.1)
        raise error()

    async def bad() -> None:
        await way(leave())

    def declare(scheduler: Scheduler) -> None:
        scheduler.add_job(bad, EVERY_MINUTE, name="bad", max_attempts=2, retry_delay=1)
        world.job(EVERY_MINUTE, name="good", takes=5)(scheduler)

    instances = await world.start(declare, 2)
    await world.at(150)
    assert await world.statuses("bad") == ["failed"] * 2
    assert await world.attempts("bad") == ["failed"] * 2
    assert world.slots("good") == minutes(1, 2)
    assert await world.statuses("good") == ["succeeded"] * 2
    assert all(instance.scheduler.health().running for instance in instances)


@each_exit
@virtual
async def test_an_exit_in_a_task_that_nobody_awaits_harms_nobody(
    world: World, error: Callable[[], BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    tasks: list[asyncio.Task[None]] = []
    kind = type(error())

    async def leave() -> None:
        raise error()

    async def body() -> None:
        tasks.append(asyncio.create_task(leave()))

    (instance,) = await world.start(lambda s: s.add_job(body, EVERY_MINUTE, name="job"))
    await world.at(130)
    assert await world.statuses() == ["succeeded"] * 2
    assert instance.scheduler.health().running
    # As of any task that failed and was not awaited, asyncio tells of it.
    failures = [task.exception() for task in tasks]
    assert [type(failure) for failure in failures] == [RuntimeError] * 2
    assert [type(failure and failure.__cause__) for failure in failures] == [kind] * 2
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@each_exit
@virtual
async def test_an_exit_in_a_task_of_a_listener_is_the_listeners_failure(
    world: World, error: Callable[[], BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    async def leave() -> None:
        raise error()

    async def listener() -> None:
        await asyncio.gather(leave())

    def declare(scheduler: Scheduler) -> None:
        world.job(EVERY_MINUTE)(scheduler)
        scheduler.on("started")(listener)

    (instance,) = await world.start(declare)
    await world.at(130)
    assert await world.statuses() == ["succeeded"] * 2
    assert instance.scheduler.health().running
    assert [record.__dict__["event"] for record in caplog.records] == ["listener.failed"] * 2


@virtual
async def test_a_task_that_is_cancelled_before_its_first_step_is_no_reason_to_warn(
    world: World,
) -> None:
    tasks: list[asyncio.Task[None]] = []

    async def never() -> None:
        raise AssertionError

    async def body() -> None:
        task = asyncio.create_task(never())
        task.cancel()
        tasks.append(task)

    await world.start(lambda s: s.add_job(body, EVERY_MINUTE, name="job"))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        await world.at(130)
        assert all(task.cancelled() for task in tasks)
        tasks.clear()
        gc.collect()
    assert told == []
    assert await world.statuses() == ["succeeded"] * 2


@virtual
async def test_an_exit_in_a_task_of_the_application_itself_stays_an_exit(world: World) -> None:
    async def own() -> None:
        await asyncio.sleep(0)

    await world.start(world.job(EVERY_MINUTE))
    coroutine = own()
    task = asyncio.get_running_loop().create_task(coroutine)
    assert task.get_coro() is coroutine
    await task
    await world.at(70)
    assert await world.statuses() == ["succeeded"]


PROGRAM = """
import asyncio, logging, os, signal, sys
from anarchon import MemoryBackend, Scheduler

logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
scheduler = Scheduler(backend=MemoryBackend())
ended = []

async def leave():
    sys.exit(2)

async def by_gather():
    await asyncio.gather(leave())

async def by_group():
    async with asyncio.TaskGroup() as group:
        group.create_task(leave())

async def by_task():
    await asyncio.create_task(leave())

async def by_wait_for():
    await asyncio.wait_for(leave(), 5)

for body in (by_gather, by_group, by_task, by_wait_for):
    scheduler.add_job(body, 0.2, name=body.__name__, max_attempts=1)

@scheduler.on("failed")
async def failed(event):
    ended.append(event.job)
    if len(set(ended)) == 4 and len(ended) >= 8:
        os.kill(os.getpid(), signal.SIGTERM)

scheduler.run()
print(sorted(set(ended)))
"""


@pytest.mark.processes
def test_a_process_outlives_the_exits_of_its_jobs_tasks() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "['by_gather', 'by_group', 'by_task', 'by_wait_for']\n"
    assert "CRITICAL" not in ended.stderr


def test_a_scheduler_in_the_background_outlives_the_exits_of_its_jobs_tasks() -> None:
    scheduler = Scheduler(backend=MemoryBackend(), shutdown_timeout=0.1)

    async def leave() -> None:
        raise SystemExit(2)

    @scheduler.job(NEVER, name="bad", max_attempts=1)
    async def bad() -> None:
        await asyncio.gather(leave())

    @scheduler.job(NEVER, name="good")
    async def good() -> str:
        return "done"

    with scheduler.in_background() as background:
        with pytest.raises(RuntimeError, match="SystemExit"):
            background.run_now("bad")
        assert background.run_now("good") == "done"
        assert background.health().running
    with scheduler.in_background() as background:
        assert background.run_now("good") == "done"
