"""Instances that run jobs on demand only: `start(scheduled=False)`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from anarchon import JobState, RunMoved, RunRefused, SchedulerStateError
from anarchon.runs import moment
from tests.engine.asking import FIRST, cancel, do, fail, pause, start_on_demand, state, told
from tests.support.world import NOON, World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Event, Run, Scheduler
    from anarchon.testing import Instance


async def on_demand(world: World, takes: float = 0.0) -> Instance:
    """Start an instance that runs jobs on demand only."""
    instance = world.add(world.job(takes=takes, then=lambda _run: 7))
    await start_on_demand(instance)
    return instance


@virtual
async def test_it_registers_nothing_and_runs_nothing(world: World) -> None:
    instance = await on_demand(world)
    await world.at(10 * 60)
    assert world.entries == []
    assert world.backend.books == {}
    calls = instance.line.calls
    assert (calls["register"], calls["claim"], calls["open"]) == (0, 0, 1)
    assert await state(instance) == JobState("job", False, None, False, None, "", ())
    (job,) = instance.scheduler.jobs
    assert job.not_run == {}
    assert job.next_run == moment(minutes(11)[0])


@virtual
async def test_it_catches_up_nothing(world: World) -> None:
    (normal,) = await world.start(world.job("* * * * *", catch_up=3600))
    await world.at(65)
    await normal.stop()
    await world.at(5 * 60 + 30)
    instance = world.add(world.job("* * * * *", catch_up=3600))
    await start_on_demand(instance)
    await world.at(8 * 60)
    assert world.slots() == minutes(1)


@virtual
async def test_it_runs_what_is_asked_of_it(world: World) -> None:
    instance = await on_demand(world, takes=5)
    assert await do(instance, lambda s: s.run_now("job")) == 7
    assert [(entry.trigger, entry.runner) for entry in world.entries] == [("manual", "i1")]
    assert await world.statuses() == ["succeeded"]


@virtual
async def test_it_retries_what_was_asked_of_it(world: World) -> None:
    def fail_twice(run: Run) -> int:
        if run.attempt < 3:
            fail(run)
        return run.attempt

    instance = world.add(world.job("0 3 * * *", then=fail_twice))
    await start_on_demand(instance)
    assert await do(instance, lambda s: s.run_now("job")) == 3


@virtual
async def test_it_respects_what_runs_elsewhere(world: World) -> None:
    await world.start(world.job("1 12 * * *", takes=30))
    instance = await on_demand(world)
    await world.at(65)
    with pytest.raises(RunRefused):
        await do(instance, lambda s: s.run_now("job"))
    assert len(world.entries) == 1


@virtual
async def test_the_run_of_a_holder_that_crashed_is_left_to_normal_instances(world: World) -> None:
    declare = world.job("1 12 * * *", takes=20, overlap="allow")
    (holder,) = await world.start(declare, lease=6)
    instance = world.add(declare)
    await start_on_demand(instance)
    await world.at(62)
    holder.crash()
    # Its own claim is told of the open run, and of the one whose lease is over.
    await do(instance, lambda s: s.run_now("job"))
    assert (await state(instance)).open_runs == (FIRST,)
    await do(instance, lambda s: s.run_now("job"))
    await world.at(115)
    assert [(e.trigger, e.runner) for e in world.entries] == [
        ("schedule", "i1"),
        ("manual", "i2"),
        ("manual", "i2"),
    ]
    how, attempt = await told(instance)
    assert how == (
        "Its lease is over since 2026-01-05 12:01:06+00:00: the instance that ran it died, or"
        " lost the store. It is taken over by the next instance that asks, if an attempt is left."
    )
    assert attempt.endswith("on i1 and is under way.")
    (normal,) = await world.start(declare)
    await world.at(200)
    assert (world.entries[-1].runner, world.entries[-1].attempt) == (normal.name, 2)


@virtual
async def test_its_own_run_is_taken_over_by_a_normal_instance(world: World) -> None:
    declare = world.job("* * * * *", takes=20, then=lambda _run: 7)
    instance = world.add(declare, lease=6)
    await start_on_demand(instance)
    asked = asyncio.create_task(do(instance, lambda s: s.run_now("job")))
    await world.at(5)
    (normal,) = await world.start(declare, lease=6)
    instance.crash()
    await world.at(50)
    asked.cancel()
    assert [(e.runner, e.attempt) for e in world.entries] == [("i1", 1), (normal.name, 2)]
    assert await world.statuses() == ["succeeded"]


@virtual
async def test_its_own_run_is_given_back_when_it_stops(world: World) -> None:
    declare = world.job("0 3 * * *", takes=60)
    instance = world.add(declare, shutdown_timeout=1)
    await start_on_demand(instance)
    asked = asyncio.create_task(do(instance, lambda s: s.run_now("job")))
    await world.at(5)
    await instance.stop()
    with pytest.raises(RunMoved, match="given back"):
        await asked
    (run,) = await world.history("job")
    assert [str(attempt.status) for attempt in run.attempts] == ["released"]


@virtual
async def test_operations_work_on_it(world: World) -> None:
    await world.start(world.job("* * * * *", takes=30), lease=6)
    instance = await on_demand(world)
    await world.at(65)
    assert await cancel(instance) == (FIRST,)
    await pause(instance)
    await world.at(130)
    assert await world.statuses() == ["cancelled", "paused"]
    health = instance.scheduler.health()
    assert (health.running, health.store) == (True, True)


@virtual
async def test_it_shows_itself_without_jobs(world: World) -> None:
    await world.start(world.job("1 12 * * *"))
    other = world.add(world.job("2 12 * * *"))
    await start_on_demand(other)
    await world.at(1)
    _normal, shown = await do(other, lambda s: s.instances())
    assert (shown.runner, shown.jobs, shown.jobs_digest) == ("i2", None, "")
    # So what it declares does not count as a difference, seen from elsewhere.
    findings = await do(world["i1"], lambda s: s.check())
    assert {finding.level for finding in findings} == {"ok"}


@virtual
async def test_it_can_be_started_anew_as_a_normal_one(world: World) -> None:
    instance = await on_demand(world)
    with pytest.raises(SchedulerStateError, match="started already"):
        await start_on_demand(instance)
    await world.at(65)
    await instance.stop()
    await instance.start()
    await world.at(125)
    assert world.slots() == minutes(2)
    assert (await state(instance)).since == moment(NOON + 65_000)


@virtual
async def test_its_listeners_hear_of_its_runs(world: World) -> None:
    heard: list[str] = []
    job = world.job()

    def declare(scheduler: Scheduler) -> None:
        job(scheduler)

        @scheduler.on("scheduler-started", "won", "started", "succeeded", "skipped", "missed")
        async def hear(event: Event) -> None:
            heard.append(event.name)

    instance = world.add(declare)
    await start_on_demand(instance)
    await world.at(125)
    await do(instance, lambda s: s.run_now("job"))
    await world.at(126)
    assert heard == ["scheduler-started", "won", "started", "succeeded"]
