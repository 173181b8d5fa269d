"""RUN-01: manual runs, and what their callers are told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from anarchon import (
    RunMoved,
    RunRefused,
    SchedulerStateError,
    StoreUnavailable,
    UnknownJobError,
)
from anarchon.testing import Fate
from tests.support.world import World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Run, Scheduler
    from anarchon.testing import Instance


def ask(instance: Instance, name: str = "job") -> asyncio.Task[object]:
    """Ask for a manual run on an instance, without waiting for it."""
    return asyncio.create_task(instance.do(instance.scheduler.run_now(name)))


@virtual
async def test_RUN_01_refused_while_a_scheduled_run_is_live(world: World) -> None:
    first, second = await world.start(world.job("* * * * *", takes=30), 2)
    await world.at(70)
    for instance in (first, second):
        with pytest.raises(RunRefused):
            await ask(instance)
    await world.at(121)
    assert world.slots() == minutes(1, 2)


@virtual
async def test_RUN_01_twice_at_once_from_two_instances(world: World) -> None:
    first, second = await world.start(world.job("0 3 * * *", takes=30), 2)
    asked = [ask(first), ask(second)]
    done = await asyncio.gather(*asked, return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in done) == ["NoneType", "RunRefused"]
    assert world.diary.most_at_once("job") == 1


@virtual
async def test_RUN_01_side_by_side_under_allow(world: World) -> None:
    (instance,) = await world.start(world.job("0 3 * * *", takes=30, overlap="allow"))
    await asyncio.gather(ask(instance), ask(instance))
    assert world.diary.most_at_once("job") == 2
    identities = {run.id for run in await world.history("job")}
    assert len(identities) == 2


@virtual
async def test_RUN_01_waits_under_wait(world: World) -> None:
    (instance,) = await world.start(world.job("* * * * *", 30, lambda _run: 7, overlap="wait"))
    await world.at(70)
    assert await ask(instance) == 7
    assert world.time.seconds == pytest.approx(120, abs=1.2)
    assert world.diary.most_at_once("job") == 1


@virtual
async def test_RUN_01_waits_no_longer_than_max_late(world: World) -> None:
    declare = world.job("1 12 * * *", takes=300, overlap="wait", max_late=20)
    (instance,) = await world.start(declare)
    await world.at(70)
    with pytest.raises(RunRefused):
        await ask(instance)
    assert world.time.seconds == pytest.approx(90, abs=1.2)


@virtual
async def test_RUN_01_the_schedule_does_not_move(world: World) -> None:
    (instance,) = await world.start(world.job("* * * * *", takes=1))
    for moment in (30, 75, 100):
        await world.at(moment)
        await ask(instance)
    await world.at(181)
    scheduled = [entry.slot for entry in world.entries if entry.trigger == "schedule"]
    assert scheduled == minutes(1, 2, 3)
    manual = [run for run in await world.history("job") if run.trigger == "manual"]
    assert len({run.id for run in manual}) == 3


@virtual
async def test_RUN_01_a_manual_run_holds_back_a_scheduled_one(world: World) -> None:
    first, _second = await world.start(world.job("* * * * *", takes=30), 2)
    await world.at(50)
    await ask(first)
    await world.at(121)
    assert [entry.trigger for entry in world.entries] == ["manual", "schedule"]
    assert world.slots()[1] == minutes(2)[0]


@virtual
async def test_RUN_01_unknown_name(world: World) -> None:
    (instance,) = await world.start(world.job())
    with pytest.raises(UnknownJobError, match="'jbo'"):
        await ask(instance, "jbo")


@virtual
async def test_RUN_01_not_started_and_stopping(world: World) -> None:
    instance = world.add(world.job("* * * * *", takes=5))
    with pytest.raises(SchedulerStateError, match="not started"):
        await ask(instance)
    await instance.start()
    await world.at(62)
    stopping = asyncio.create_task(instance.stop())
    await world.wait(1)
    with pytest.raises(SchedulerStateError, match="stopping"):
        await ask(instance)
    await stopping
    with pytest.raises(SchedulerStateError, match="not started"):
        await ask(instance)


@virtual
async def test_RUN_01_the_scheduler_stops_while_it_is_asked(world: World) -> None:
    (instance,) = await world.start(world.job("0 3 * * *"))
    instance.line.plan("clock", Fate(back=1))
    asked = ask(instance)
    await world.wait(0.5)
    await instance.stop()
    with pytest.raises((SchedulerStateError, RunRefused)):
        async with asyncio.timeout(10):
            await asked
    assert world.entries == []


@virtual
async def test_moved_when_the_lease_is_lost_and_another_takes_over(world: World) -> None:
    declare = world.job("1 12 * * *", takes=20)
    first, second = await world.start(declare, 2, lease=6)
    asked = ask(first)
    await world.at(5)
    await second.stop()
    await second.restart()  # so that it hears of the open run
    first.line.cut()
    await world.at(20)
    first.line.mend()
    with pytest.raises(RunMoved):
        await asked
    await world.at(50)
    assert [entry.runner for entry in world.entries] == ["i1", "i2"]
    assert await world.attempts() == ["interrupted", "succeeded"]


@virtual
async def test_the_last_error_after_all_attempts(world: World) -> None:
    def fail(run: Run) -> None:
        raise ValueError(f"attempt {run.attempt}")

    (instance,) = await world.start(world.job("0 3 * * *", then=fail, max_attempts=3))
    with pytest.raises(ValueError, match="attempt 3"):
        await ask(instance)


@virtual
async def test_the_result_of_a_later_attempt(world: World) -> None:
    def fail_first(run: Run) -> int:
        if run.attempt == 1:
            raise ValueError
        return run.attempt

    (instance,) = await world.start(world.job("0 3 * * *", then=fail_first))
    assert await ask(instance) == 2


@virtual
async def test_the_store_is_away(world: World) -> None:
    (instance,) = await world.start(world.job("0 3 * * *"))
    instance.line.cut()
    with pytest.raises(StoreUnavailable):
        await ask(instance)


@virtual
async def test_past_the_bound_of_the_instance(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job("1 12 * * *", takes=100, name="long")(scheduler)
        world.job("0 3 * * *", name="job")(scheduler)

    (instance,) = await world.start(declare, max_concurrent_runs=1)
    await world.at(65)
    await ask(instance)
    assert world.time.seconds < 66


@virtual
async def test_a_caller_that_gives_up_does_not_stop_the_run(world: World) -> None:
    (instance,) = await world.start(world.job("0 3 * * *", takes=10))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await instance.do(instance.scheduler.run_now("job"))
    await world.wait(20)
    assert await world.statuses() == ["succeeded"]


@virtual
async def test_a_job_may_run_another_now(world: World) -> None:
    instances: list[Instance] = []

    async def outer() -> object:
        return await instances[0].scheduler.run_now("inner")

    def declare(scheduler: Scheduler) -> None:
        scheduler.add_job(outer, "1 12 * * *", name="outer", timeout=5, max_attempts=1)
        world.job("0 3 * * *", takes=20, name="inner")(scheduler)

    instances += await world.start(declare)
    await world.at(100)
    # The outer one was ended by its timeout; the inner one is a run of its own.
    assert await world.statuses("outer") == ["timed-out"]
    assert await world.statuses("inner") == ["succeeded"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
@virtual
async def test_what_would_stop_the_callers_loop_does_not(
    world: World, error: BaseException
) -> None:
    def fail(_run: Run) -> None:
        raise error

    (instance,) = await world.start(world.job("0 3 * * *", then=fail, max_attempts=1))
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any Exception, but no BaseException
        await ask(instance)
    assert caught.value.__cause__ is error or caught.value is error
