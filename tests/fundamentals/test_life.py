"""Starting and stopping."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.support.world import World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Run, Scheduler


@virtual
async def test_stop_waits_for_running_jobs(world: World) -> None:
    (instance,) = await world.start(world.job("* * * * *", takes=8))
    await world.at(62)
    await instance.stop()
    assert world.time.seconds < 70
    assert await world.statuses() == ["succeeded"]


@virtual
async def test_stop_starts_nothing_more(world: World) -> None:
    (instance,) = await world.start(world.job(1))
    await world.at(10.5)
    await instance.stop()
    ran = len(world.entries)
    await world.wait(20)
    assert ran == len(world.entries) == 10


@virtual
async def test_a_run_that_does_not_end_in_time_is_handed_back(world: World) -> None:
    first, second = await world.start(world.job("1 * * * *", takes=50), 2, lease=6)
    await world.at(65)
    runner = world[world.entries[0].runner]
    await runner.stop(timeout=2)
    assert world.entries[0].how == "CancelledError"
    await world.at(75)
    other = first if runner is second else second
    assert [(e.attempt, e.runner) for e in world.entries[1:]] == [(2, other.name)]
    await world.at(130)
    assert await world.attempts() == ["released", "succeeded"]


@virtual
async def test_an_instance_that_starts_takes_a_handed_back_run_at_once(world: World) -> None:
    (instance,) = await world.start(world.job("0 * * * *", takes=50))
    await world.at(3610)
    await instance.stop(timeout=0)
    await instance.restart()
    await world.wait(0.5)
    assert [entry.attempt for entry in world.entries] == [1, 2]


@virtual
async def test_async_with_starts_and_stops(world: World) -> None:
    instance = world.add(world.job("* * * * *", takes=3))

    async def application() -> None:
        async with instance.scheduler:
            await asyncio.sleep(61)

    await instance.do(application())
    assert world.slots() == minutes(1)
    assert world.entries[0].how == "succeeded"


@virtual
async def test_lifespan_starts_and_stops_with_an_application(world: World) -> None:
    instance = world.add(world.job("* * * * *"))

    async def application() -> None:
        async with instance.scheduler.lifespan(object()):
            assert instance.scheduler.health().running
            await asyncio.sleep(61)

    await instance.do(application())
    assert world.slots() == minutes(1)
    assert not instance.scheduler.health().running


@virtual
async def test_a_scheduler_can_be_started_again(world: World) -> None:
    (instance,) = await world.start(world.job("* * * * *"))
    await instance.stop()
    await instance.start()
    await world.at(61)
    assert world.slots() == minutes(1)


@virtual
async def test_one_failing_job_does_not_stop_the_others(world: World) -> None:
    def fail(_run: Run) -> None:
        raise RuntimeError

    def declare(scheduler: Scheduler) -> None:
        world.job(10, then=fail, name="bad", max_attempts=1)(scheduler)
        world.job(10, name="good")(scheduler)

    await world.start(declare)
    await world.at(61)
    assert len(world.slots("bad")) == len(world.slots("good")) == 6


@virtual
async def test_an_idle_instance_asks_for_the_time_once_a_minute_and_nothing_else(
    world: World,
) -> None:
    (instance,) = await world.start(world.job("0 3 * * *"))
    instance.line.calls.clear()
    await world.wait(3601)
    assert dict(instance.line.calls) == {"clock": 60}
