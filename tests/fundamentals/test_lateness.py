"""Slots that nobody could ask for in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.world import MINUTE, World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Scheduler


async def down_from(world: World, stopped: float, started: float, **settings: object) -> None:
    """Let a job's only instance be down for a while."""
    (instance,) = await world.start(world.job(**settings))  # type: ignore[arg-type]
    await world.at(stopped)
    await instance.stop()
    await world.at(started)
    await instance.restart()


@virtual
async def test_a_run_may_start_late_but_not_later_than_max_late(world: World) -> None:
    await down_from(world, 50, 80, schedule="1,5 12 * * *", max_late=30)
    await world.at(81)
    assert world.offsets() == [80]
    assert world.slots() == minutes(1)


@virtual
async def test_a_slot_older_than_max_late_is_not_run(world: World) -> None:
    await down_from(world, 50, 95, schedule="1,5 12 * * *", max_late=30)
    await world.at(301)
    assert world.slots() == minutes(5)


@virtual
async def test_catch_up_runs_the_newest_of_the_missed(world: World) -> None:
    await down_from(world, 50, 330, schedule=60, max_late=10, catch_up=600)
    await world.at(335)
    assert world.slots() == minutes(5)
    assert world.entries[0].trigger == "catch-up"


@virtual
async def test_catch_up_without_coalescing_runs_each_of_the_missed(world: World) -> None:
    await down_from(world, 50, 330, schedule=60, max_late=10, catch_up=600, coalesce=False)
    await world.at(335)
    assert sorted(world.slots()) == minutes(1, 2, 3, 4, 5)


@virtual
async def test_catch_up_goes_no_further_back_than_its_window(world: World) -> None:
    await down_from(world, 50, 330, schedule=60, max_late=10, catch_up=160, coalesce=False)
    await world.at(335)
    assert sorted(world.slots()) == minutes(3, 4, 5)


@virtual
async def test_nothing_is_run_that_was_due_before_the_job_was_known(world: World) -> None:
    await world.start(world.job("0 * * * *", catch_up=24 * 3600))
    await world.at(30 * 60)
    assert world.entries == []


@virtual
async def test_jitter_spreads_the_starts_but_not_the_slots(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        for number in range(20):
            world.job(60, name=f"job{number}", jitter=20)(scheduler)

    await world.start(declare, 3)
    await world.at(119)
    assert {entry.slot for entry in world.entries} == set(minutes(1))
    delays = sorted(entry.start - minutes(1)[0] for entry in world.entries)
    assert len(delays) == 20
    assert 0 <= delays[0] < MINUTE / 6 < delays[-1] <= 20_001
