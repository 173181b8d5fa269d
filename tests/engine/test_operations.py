"""What a scheduler is told to do with a job: pause and resume it, cancel runs, forget it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from anarchon import ConfigurationError, JobState, RunMoved, SchedulerStateError, UnknownJobError
from anarchon.runs import moment
from tests.engine.asking import (
    FIRST,
    cancel,
    do,
    fail,
    holder_and_backup,
    pause,
    resume,
    start_on_demand,
    state,
)
from tests.support.world import NOON, World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Run, Scheduler


# -- pause and resume ------------------------------------------------------------------------------


@virtual
async def test_a_pause_holds_for_the_whole_cluster(world: World) -> None:
    first, second, third = await world.start(world.job(), 3)
    await world.at(90)
    await pause(second, note="for the night")
    await world.at(190)
    assert world.slots() == minutes(1)
    assert await resume(third)
    await world.at(301)
    assert world.slots() == minutes(1, 4, 5)
    assert await world.statuses() == ["succeeded", "paused", "paused", "succeeded", "succeeded"]
    assert not await resume(first)


@virtual
async def test_a_pause_ends_by_itself(world: World) -> None:
    first, second = await world.start(world.job(), 2)
    await world.at(90)
    await pause(first, moment(NOON + 190_000))
    await world.at(189.9)
    assert (await state(second)).paused
    await world.at(190.1)
    assert not (await state(second)).paused
    assert not await resume(second)
    await world.at(245)
    assert world.slots() == minutes(1, 4)


@virtual
async def test_a_later_pause_stands_for_the_former(world: World) -> None:
    (instance,) = await world.start(world.job())
    await pause(instance, moment(NOON + 30_000), "one")
    await pause(instance, moment(NOON + 90_000), "two")
    told = await state(instance)
    assert (told.paused_until, told.paused_note) == (moment(NOON + 90_000), "two")
    await world.at(125)
    assert world.slots() == minutes(2)


@virtual
async def test_a_pause_survives_restarts_of_all_and_a_changed_schedule(world: World) -> None:
    instances = await world.start(world.job("* * * * *", catch_up=3600), 2)
    await pause(instances[0], note="migration")
    for instance in instances:
        await instance.stop()
    for instance in instances:
        await instance.restart()
    await world.at(130)
    for instance in instances:
        instance.crash()
    (changed,) = await world.start(world.job("*/2 * * * *", catch_up=3600))
    await world.at(10 * 60 + 5)
    assert world.slots() == []
    told = await state(changed)
    assert told.paused
    assert told.paused_note == "migration"
    await resume(changed)
    await world.at(12 * 60 + 5)
    assert world.slots() == minutes(12)


@virtual
async def test_a_manual_run_of_a_paused_job_is_served(world: World) -> None:
    (instance,) = await world.start(world.job(then=lambda _run: 7))
    await pause(instance)
    assert await do(instance, lambda s: s.run_now("job")) == 7
    assert [entry.trigger for entry in world.entries] == ["manual"]


@pytest.mark.parametrize("coalesce", [True, False])
@virtual
async def test_catch_up_is_held_back_by_a_pause(world: World, coalesce: bool) -> None:
    declare = world.job("* * * * *", catch_up=1800, coalesce=coalesce)
    (instance,) = await world.start(declare)
    await world.at(65)
    await instance.stop()
    await world.at(5 * 60 + 30)
    await pause(instance)  # asked of a scheduler that is not started
    await instance.restart()
    await world.at(8 * 60 + 30)
    assert world.slots() == minutes(1)


@virtual
async def test_retries_and_what_runs_go_on_in_a_pause(world: World) -> None:
    def fail_first(run: Run) -> None:
        if run.attempt == 1:
            raise ValueError

    (instance,) = await world.start(
        world.job("1 12 * * *", takes=10, then=fail_first, retry_delay=20)
    )
    await world.at(65)
    await pause(instance)
    await world.at(120)
    assert [(e.attempt, e.how) for e in world.entries] == [(1, "ValueError"), (2, "succeeded")]


@virtual
async def test_a_takeover_goes_on_in_a_pause(world: World) -> None:
    await world.start(world.job("1 12 * * *", takes=20), 2, lease=6)
    await world.at(62)
    holder, other = holder_and_backup(world)
    await pause(other)
    holder.crash()
    await world.at(120)
    assert [entry.attempt for entry in world.entries] == [1, 2]
    assert await world.statuses() == ["succeeded"]


@virtual
async def test_each_job_is_paused_by_itself(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job()(scheduler)
        world.job(name="other")(scheduler)

    (instance,) = await world.start(declare)
    await pause(instance)
    await world.at(65)
    assert (world.slots(), world.slots("other")) == ([], minutes(1))


@virtual
async def test_what_cannot_be_a_pause_is_refused_and_changes_nothing(world: World) -> None:
    (instance,) = await world.start(world.job())
    await world.at(10)
    wrong: list[Any] = [datetime(2030, 1, 1), 5, "tomorrow"]  # noqa: DTZ001 - naive on purpose
    for until in wrong:
        with pytest.raises(ConfigurationError, match="aware datetime"):
            await pause(instance, until)
    for over in (moment(NOON + 10_000), datetime(1980, 1, 1, tzinfo=UTC)):
        with pytest.raises(ConfigurationError, match="yet to come"):
            await pause(instance, over)
    with pytest.raises(ConfigurationError, match="between 1970"):
        await pause(instance, datetime(1960, 1, 1, tzinfo=UTC))
    notes: list[Any] = ["x" * 1001, 5, None, "\ud800"]
    for note in notes:
        with pytest.raises(ConfigurationError, match="1000 characters"):
            await pause(instance, note=note)
    assert not (await state(instance)).paused
    await pause(instance, moment(NOON + 10_001), "x" * 1000)
    assert (await state(instance)).paused_note == "x" * 1000


@virtual
async def test_until_counts_by_the_clock_of_the_store(world: World) -> None:
    world.server.step(3600)
    instance = world.add(world.job())
    await instance.start()
    with pytest.raises(ConfigurationError, match="yet to come"):
        await pause(instance, moment(NOON + 3_599_000))
    await pause(instance, moment(NOON + 3_700_000))
    assert (await state(instance)).paused


# -- cancel ----------------------------------------------------------------------------------------


@virtual
async def test_a_running_run_stops_at_the_next_heartbeat_of_its_holder(world: World) -> None:
    await world.start(world.job("1 12 * * *", takes=50), 2, lease=9)  # heartbeats each 3 s
    await world.at(65)
    _holder, other = holder_and_backup(world)
    assert await cancel(other, moment(minutes(1)[0])) == (FIRST,)
    assert await cancel(other, FIRST) == (FIRST,)
    assert (await state(other)).open_runs == (FIRST,)
    await world.at(65.9)
    assert world.entries[0].how == "running"
    await world.at(66.5)
    assert world.entries[0].how == "CancelledError"
    assert await world.statuses() == ["cancelled"]
    await world.at(150)
    assert len(world.entries) == 1


@virtual
async def test_a_waiting_run_is_over_at_once(world: World) -> None:
    await world.start(world.job("1 12 * * *", then=fail, retry_delay=40), 2)
    await world.at(65)
    _holder, other = holder_and_backup(world)
    assert await cancel(other) == (FIRST,)
    assert await world.statuses() == ["cancelled"]
    assert (await state(other)).open_runs == ()
    await world.at(200)
    assert len(world.entries) == 1


@virtual
async def test_all_open_runs_are_cancelled(world: World) -> None:
    (instance,) = await world.start(world.job(takes=170, overlap="allow", timeout=300), lease=6)
    await world.at(185)
    assert await cancel(instance) == tuple(str(slot) for slot in minutes(1, 2, 3))
    await world.at(190)
    assert await world.statuses() == ["cancelled"] * 3
    assert await cancel(instance) == ()


@virtual
async def test_one_of_several_is_cancelled_alone(world: World) -> None:
    (instance,) = await world.start(world.job("1,2 12 * * *", takes=100, overlap="allow"), lease=6)
    await world.at(125)
    second = str(minutes(2)[0])
    assert await cancel(instance, second) == (second,)
    await world.at(300)
    assert await world.statuses() == ["succeeded", "cancelled"]


@virtual
async def test_a_run_that_is_over_or_unknown_is_not_cancelled(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *"))
    await world.at(65)
    for run in (FIRST, moment(minutes(1)[0]), moment(minutes(7)[0]), f"m{NOON}-abc", None):
        assert await cancel(instance, run) == ()
    assert await world.statuses() == ["succeeded"]


@virtual
async def test_a_run_of_a_dead_holder_is_cancelled_at_once_past_its_lease(world: World) -> None:
    await world.start(world.job("1 12 * * *", takes=50), 1, lease=6)
    await world.at(62)
    world["i1"].crash()
    await world.at(80)
    stranger = world.add(world.job("1 12 * * *"))
    assert await cancel(stranger) == (FIRST,)
    assert await world.statuses() == ["cancelled"]
    await stranger.start()
    await world.at(200)
    assert len(world.entries) == 1


@virtual
async def test_a_manual_run_is_cancelled_by_its_id(world: World) -> None:
    first, second = await world.start(world.job("0 3 * * *", takes=50), 2, lease=6)
    asked = asyncio.create_task(do(first, lambda s: s.run_now("job")))
    await world.at(5)
    (run,) = await world.history("job")
    assert await cancel(second, run.id) == (run.id,)
    with pytest.raises(RunMoved, match="the run was cancelled"):
        await asked
    assert await world.statuses() == ["cancelled"]


@virtual
async def test_what_names_no_run_is_refused(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *", takes=9))
    await world.at(65)
    wrong: list[Any] = [datetime(2026, 1, 5, 12, 1), "all", "", 5]  # noqa: DTZ001 - naive
    for run in wrong:
        with pytest.raises(ConfigurationError, match="aware datetime"):
            await cancel(instance, run)
    assert (await state(instance)).open_runs == (FIRST,)


# -- forget ----------------------------------------------------------------------------------------


@virtual
async def test_a_job_with_a_live_run_is_not_forgotten(world: World) -> None:
    instance = world.add(world.job("0 3 * * *", takes=3, then=fail, retry_delay=40))
    await start_on_demand(instance)
    asked = asyncio.create_task(do(instance, lambda s: s.run_now("job")))
    for second in (2, 10):  # running, then waiting
        await world.at(second)
        assert not await do(instance, lambda s: s.forget("job"))
    assert await world.statuses() == ["waiting"]
    await cancel(instance)
    with pytest.raises(RunMoved, match="was cancelled"):
        await asked


@virtual
async def test_a_job_that_an_instance_still_has_is_not_forgotten(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *"))
    await world.at(65)
    stranger = world.add(lambda scheduler: None)
    for asker in (instance, stranger):
        with pytest.raises(SchedulerStateError, match="i1 still runs job"):
            await do(asker, lambda s: s.forget("job"))
    assert await world.statuses() == ["succeeded"]


@virtual
async def test_a_forgotten_job_leaves_nothing(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *"))
    await world.at(65)
    await pause(instance)
    await instance.stop()
    assert await do(instance, lambda s: s.forget("job"))
    assert world.backend.books == {}
    told = await state(instance)
    assert told == JobState("job", False, None, False, None, "", ())


@virtual
async def test_a_job_that_nobody_declares_any_more_is_forgotten(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *"))
    await world.at(65)
    await instance.stop()
    stranger = world.add(lambda scheduler: None)
    assert await do(stranger, lambda s: s.forget("job"))
    with pytest.raises(UnknownJobError):
        await do(stranger, lambda s: s.forget("job"))
