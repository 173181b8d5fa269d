"""Draining and handing back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from anarchon import StoreFormatError
from anarchon.testing import Fate
from tests.support.world import EVERY_SECOND, World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Run, Scheduler

ONCE = "1 12 * * *"


@virtual
async def test_SHD_02_heartbeats_go_on_while_it_drains(world: World) -> None:
    await world.start(world.job(ONCE, takes=10), 2, lease=2, heartbeat=0.5, shutdown_timeout=20)
    await world.at(61)
    stopping = world[world.entries[0].runner]
    await stopping.stop()
    assert 70 <= world.time.seconds <= 70.5
    await world.at(80)
    assert len(world.entries) == 1
    assert await world.attempts() == ["succeeded"]


@virtual
async def test_SHD_02_nothing_is_claimed_after_stop(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job(ONCE, takes=10, name="long")(scheduler)
        world.job(EVERY_SECOND, name="short")(scheduler)

    (instance,) = await world.start(declare, shutdown_timeout=20)
    await world.at(61.5)
    claims = instance.line.calls["claim"]
    await instance.stop()
    assert instance.line.calls["claim"] == claims
    assert world.slots("short") == minutes(0) or len(world.slots("short")) == 61


@virtual
async def test_SHD_02_in_the_last_moment_of_the_body(world: World) -> None:
    (instance,) = await world.start(world.job(ONCE, takes=10))
    instance.line.plan("finish", Fate(there=0.2, back=0.2))
    await world.at(69.95)
    await instance.stop()
    assert await world.attempts() == ["succeeded"]


@virtual
async def test_SHD_03_stop_does_not_wait_for_the_next_slot(world: World) -> None:
    (instance,) = await world.start(world.job("0 3 * * *"))
    await world.at(10)
    await instance.stop()
    assert world.time.seconds < 10.1


@virtual
async def test_SHD_03_nor_for_jitter(world: World) -> None:
    (instance,) = await world.start(world.job(ONCE, jitter=50))
    await world.at(60.001)
    await instance.stop()
    assert world.time.seconds < 60.2
    assert world.entries == []


@pytest.mark.parametrize("silent", [False, True])
@virtual
async def test_SHD_03_nor_for_a_store_that_is_away(world: World, silent: bool) -> None:
    (instance,) = await world.start(world.job("* * * * *"))
    await world.at(30)
    instance.line.cut(silent=silent)
    await world.at(55)
    await instance.stop()
    assert world.time.seconds < 56


@virtual
async def test_a_claim_in_flight_is_waited_for_and_given_back(world: World) -> None:
    first, second = await world.start(world.job(ONCE, takes=10), 2, lease=6)
    second.suspend(64)
    first.line.plan("claim", Fate(back=1.5))
    await world.at(60.5)
    await first.stop()
    assert world.entries == []
    assert await world.attempts() == ["released"]
    await world.at(100)
    assert [(e.attempt, e.runner) for e in world.entries] == [(2, second.name)]


@virtual
async def test_a_claim_whose_answer_is_lost_is_repeated_until_it_is_answered(world: World) -> None:
    (instance,) = await world.start(world.job(ONCE, takes=10), lease=6)
    instance.line.plan("claim", Fate(answered=False))
    await world.at(60.5)
    await instance.stop()
    assert world.time.seconds < 65
    assert await world.attempts() == ["released"]


@virtual
async def test_SHD_03_twice_at_once_before_start_and_again(world: World) -> None:
    instance = world.add(world.job(ONCE, takes=5))
    await instance.stop()
    await instance.start()
    await world.at(62)
    await asyncio.gather(instance.stop(), instance.stop())
    await instance.stop()
    assert world.time.seconds < 66
    assert await world.attempts() == ["succeeded"]


@virtual
async def test_SHD_03_after_a_failed_start(world: World) -> None:
    instance = world.add(world.job(ONCE))
    instance.line.plan("open", Fate(error=StoreFormatError("format 2")))
    with pytest.raises(StoreFormatError):
        await instance.start()
    await instance.stop()
    assert not instance.scheduler.health().running
    await instance.start()
    await world.at(61)
    assert world.slots() == minutes(1)


@virtual
async def test_SHD_04a_the_lease_is_gone_already(world: World) -> None:
    (instance,) = await world.start(world.job(ONCE, takes=50))
    await world.at(65)
    world.backend.books.clear()
    await instance.stop(timeout=1)
    assert world.time.seconds < 67.5


@virtual
async def test_SHD_04b_the_task_that_awaits_the_scheduler_is_cancelled(world: World) -> None:
    instance = world.add(world.job(ONCE, takes=50), shutdown_timeout=2)

    async def application() -> None:
        async with instance.scheduler:
            await asyncio.Event().wait()

    task = asyncio.create_task(instance.do(application()))
    await world.at(65)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await world.attempts() in (["released"], ["running"])
    await world.at(70)
    assert await world.attempts() == ["released"]
    assert world.entries[0].how == "CancelledError"


@virtual
async def test_a_job_that_stops_its_scheduler(world: World) -> None:
    async def body(run: Run) -> None:
        with world.diary.entry(run):
            await world[run.runner].scheduler.stop(timeout=2)

    (instance,) = await world.start(lambda s: s.add_job(body, ONCE, name="job"))
    await world.at(70)
    assert not instance.scheduler.health().running
    instance.alive = False
    claims = instance.line.calls["clock"]
    await world.at(200)
    assert instance.line.calls["clock"] == claims


@virtual
async def test_the_presence_is_taken_away(world: World) -> None:
    first, second = await world.start(world.job(ONCE), 2)
    await world.at(10)
    assert set(world.backend.instances) == {first.name, second.name}
    await first.stop()
    assert set(world.backend.instances) == {second.name}


@virtual
async def test_the_loop_gets_its_task_factory_back(world: World) -> None:
    before = world.time.loop.get_task_factory()
    first, second = await world.start(world.job(ONCE), 2)
    for _ in range(3):
        await first.stop()
        await first.start()
        await second.stop()
        await second.start()
    await first.stop()
    await second.stop()
    assert world.time.loop.get_task_factory() is before


@virtual
async def test_REG_07_start_twice_and_start_after_stop(world: World) -> None:
    (instance,) = await world.start(world.job("* * * * *"))
    with pytest.raises(Exception, match="started already"):
        await instance.start()
    await world.at(61)
    await instance.stop()
    await instance.start()
    await world.at(121)
    assert world.slots() == minutes(1, 2)
    assert instance.line.calls["claim"] <= 4


@virtual
async def test_a_body_may_clean_up_before_its_lease_is_handed_back(world: World) -> None:
    async def body(run: Run) -> None:
        with world.diary.entry(run):
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                await asyncio.sleep(0.1)  # cleans up, and lets the cancellation through
                raise

    (instance,) = await world.start(lambda s: s.add_job(body, ONCE, name="job"))
    await world.at(65)
    await instance.stop(timeout=1)
    assert await world.attempts() == ["released"]
    assert world.time.seconds < 66.5
