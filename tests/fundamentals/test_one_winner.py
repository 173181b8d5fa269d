"""Every instance asks; exactly one runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anarchon.testing import Fate
from tests.support.world import EVERY_SECOND, World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Run, Scheduler


@virtual
async def test_a_run_is_claimed_by_exactly_one_instance(world: World) -> None:
    await world.start(world.job("* * * * *"), 3)
    await world.wait(5 * 60 + 1)
    assert world.slots() == minutes(1, 2, 3, 4, 5)


@virtual
async def test_every_instance_wins_now_and_then(world: World) -> None:
    await world.start(world.job(EVERY_SECOND), 3)
    for instance in world.instances.values():
        instance.line.chance = lambda _call: Fate(there=world.time.rng.uniform(0, 0.01))
    await world.wait(100)
    assert {entry.runner for entry in world.entries} == {"i1", "i2", "i3"}


@virtual
async def test_a_job_starts_at_its_slot(world: World) -> None:
    await world.start(world.job("* * * * *"), 3)
    await world.wait(181)
    assert world.offsets() == [60, 120, 180]


@virtual
async def test_no_job_starts_before_its_slot(world: World) -> None:
    fast = world.add(world.job("* * * * *"), ahead=30)
    await fast.start()
    await world.wait(59.99)
    assert world.slots() == []
    await world.wait(0.02)
    assert world.slots() == minutes(1)


@virtual
async def test_an_instance_that_asks_later_is_told_that_it_is_done(world: World) -> None:
    declare = world.job("* * * * *")
    await world.start(declare)
    await world.at(61)
    late = world.add(declare)
    await late.start()
    await world.at(119)
    assert world.slots() == minutes(1)
    assert late.line.calls["claim"] == 1


@virtual
async def test_jobs_are_independent(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job(60, takes=90, name="long")(scheduler)
        world.job(20, name="short")(scheduler)

    await world.start(declare, 2)
    await world.at(61)
    assert world.slots("long") == minutes(1)
    assert len(world.slots("short")) == 3


@virtual
async def test_a_run_knows_what_it_is(world: World) -> None:
    seen: list[Run] = []
    (instance,) = await world.start(world.job(60, then=seen.append, timezone="Europe/Berlin"))
    await world.at(61)
    (run,) = seen
    assert (run.job, run.attempt, run.max_attempts, run.trigger) == ("job", 1, 3, "schedule")
    assert run.slot == minutes(1)[0]
    assert run.scheduled_for.isoformat() == "2026-01-05T13:01:00+01:00"
    assert run.runner == instance.name
    assert not run.lost.is_set()


@virtual
async def test_fences_grow_with_every_attempt(world: World) -> None:
    runs: list[Run] = []

    def fail(run: Run) -> None:
        runs.append(run)
        raise ValueError

    await world.start(world.job(30, then=fail, max_attempts=2), 2)
    await world.at(100)
    fences = [run.fence for run in runs]
    assert len(fences) == 6
    assert fences == sorted(set(fences))
    assert all(run.fence >= run.slot for run in runs)
