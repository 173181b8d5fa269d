"""Slots of the past: what is made up for after downtime, and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.world import HOUR, NOON, World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import JobSettings


async def down_for_an_hour(world: World, **settings: object) -> None:
    """Three instances of a minutely job that are down from 12:05:30 to 13:05:30."""
    instances = await world.start(world.job("* * * * *", **settings), 3, lease=6)  # type: ignore[arg-type]
    await world.at(330)
    for instance in instances:
        await instance.stop()
    world.entries.clear()
    await world.at(3930)
    for instance in instances:
        await instance.restart()


@virtual
async def test_CAT_01_without_catch_up_nothing_old_runs(world: World) -> None:
    await down_for_an_hour(world, max_late=10)
    await world.at(4021)
    assert world.slots() == minutes(66, 67)


@virtual
async def test_CAT_01_with_coalesce_the_latest_missed_runs_once(world: World) -> None:
    await down_for_an_hour(world, max_late=10, catch_up=600)
    await world.at(4021)
    assert world.slots() == minutes(65, 66, 67)
    assert world.offsets()[0] == pytest.approx(3930, abs=0.1)


@virtual
async def test_CAT_01_without_coalesce_each_runs_one_after_the_other(world: World) -> None:
    await down_for_an_hour(world, takes=2, max_late=10, catch_up=600, coalesce=False)
    await world.at(4100)
    caught_up = [entry.slot for entry in world.entries if entry.trigger == "catch-up"]
    assert caught_up == minutes(*range(56, 66))
    assert world.diary.most_at_once("job") == 1
    assert {entry.attempt for entry in world.entries} == {1}
    assert minutes(66)[0] in world.slots() or "skipped" in await world.statuses()
    assert minutes(68)[0] in world.slots()


@virtual
async def test_coalesce_gives_up_an_older_slot_when_the_newest_ran(world: World) -> None:
    # 12:01 is missed, 12:02 runs: nothing is made up for.
    declare = world.job("1,2,30 12 * * *", max_late=1, catch_up=3600)
    (instance,) = await world.start(declare)
    await world.at(50)
    await instance.stop()
    await world.at(119)
    await instance.restart()
    await world.at(119.5)
    world.entries.clear()
    await world.at(125)
    await instance.stop()
    await instance.restart()
    await world.at(200)
    assert minutes(1)[0] not in world.slots()


@virtual
async def test_catch_up_waits_for_a_live_run_also_under_skip(world: World) -> None:
    (instance,) = await world.start(world.job("*/5 * * * *", 90, max_late=1, catch_up=3600))
    await world.at(301)
    await instance.stop(timeout=0)  # 12:05 is handed back, and taken up at the start
    await world.at(660)
    await instance.restart()
    await world.at(870)
    assert world.slots()[:2] == minutes(5, 5)
    assert minutes(10)[0] in world.slots()
    assert world.diary.most_at_once("job") == 1


@virtual
async def test_the_work_does_not_grow_with_the_gap(world: World) -> None:
    (instance,) = await world.start(world.job(0.1, max_late=1, catch_up=2, coalesce=False))
    await world.at(1)
    await instance.stop()
    await world.wait(30 * 24 * 3600)
    instance.line.calls.clear()
    await instance.restart()
    await world.wait(5)
    assert len(world.entries) <= 10 + 20 + 50 + 5
    assert instance.line.calls["claim"] <= 200


async def redeployed(world: World, old: str, new: str, **settings: object) -> None:
    """A job whose schedule changes at 15:20, after it ran under its old one since noon."""
    await world.start(world.job(old, **settings))  # type: ignore[arg-type]
    await world.at(2 * 3600 + 60)
    await world["i1"].stop()
    world.entries.clear()
    await world.at(3 * 3600 + 20 * 60)
    await world.start(world.job(new, **settings))  # type: ignore[arg-type]


@virtual
async def test_DEP_01_a_changed_schedule_runs_nothing_of_its_past(world: World) -> None:
    await redeployed(world, "0 * * * *", "10 15 * * *", catch_up=24 * 3600)
    await world.at(27 * 3600 + 11 * 60)
    assert world.slots() == [NOON + 27 * HOUR + 10 * 60_000]


@virtual
async def test_DEP_01_a_new_job_runs_nothing_of_its_past(world: World) -> None:
    await world.at(3 * 3600 + 20 * 60)
    await world.start(world.job("0 3 * * *", catch_up=24 * 3600))
    await world.at(15 * 3600 + 60)
    assert world.slots() == [NOON + 15 * HOUR]


@virtual
async def test_DEP_01_an_unchanged_schedule_is_caught_up(world: World) -> None:
    await redeployed(world, "0 * * * *", "0 * * * *", catch_up=24 * 3600)
    await world.at(3 * 3600 + 20 * 60 + 1)
    assert world.slots() == [NOON + 3 * HOUR]


@virtual
async def test_DEP_02_old_and_new_side_by_side(world: World) -> None:
    (old,) = await world.start(world.job("*/2 * * * *"))
    await world.start(world.job("*/3 * * * *"))
    await world.at(12 * 60 + 1)
    assert world.slots() == minutes(2, 3, 4, 6, 8, 9, 10, 12)
    await old.stop()
    await world.at(24 * 60 + 1)
    assert world.slots()[8:] == minutes(15, 18, 21, 24)


@pytest.mark.parametrize("coalesce", [True, False])
@virtual
async def test_the_same_after_a_suspension_as_after_a_restart(world: World, coalesce: bool) -> None:
    settings: JobSettings = {"max_late": 10, "catch_up": 600, "coalesce": coalesce}
    (instance,) = await world.start(world.job("* * * * *", **settings))
    await world.at(330)
    instance.suspend(3600)
    await world.at(4021)
    expected = minutes(65) if coalesce else minutes(*range(56, 66))
    assert sorted(world.slots()) == minutes(1, 2, 3, 4, 5) + expected + minutes(66, 67)
