"""Deploys.

New, changed, renamed and removed jobs, while old and new versions of an application run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import pytest

from tests.behaviour.rows import row
from tests.behaviour.stories import ONCE, fail, runs, several
from tests.support.world import HOUR, NOON, World, minutes, virtual

if TYPE_CHECKING:
    from collections.abc import Callable

    from anarchon import JobSettings, Scheduler


def keen(world: World, schedule: str, **job: Unpack[JobSettings]) -> Callable[[Scheduler], None]:
    """Declare a job that catches up each slot of a day."""
    job["catch_up"], job["coalesce"] = 24 * 3600, False
    return world.job(schedule, **job)


@row(
    "catch_up, max_late",
    "a job is deployed for the first time",
    "Nothing from before its first registration is run, late or caught up.",
)
@pytest.mark.parametrize("coalesce", [True, False])
@virtual
async def test_a_new_job_has_no_past(world: World, coalesce: bool) -> None:
    await world.at(90)
    declare = world.job("* * * * *", max_late=60, catch_up=24 * 3600, coalesce=coalesce)
    await world.start(declare, 3)
    await world.at(125)
    assert world.slots() == minutes(2)


@row(
    "catch_up, max_late",
    "a deploy changes the job's schedule or time zone",
    "Nothing from before the change is run, late or caught up.",
)
@pytest.mark.parametrize(("new", "after"), [("*/2 * * * *", [12]), ("* * * * *", [11, 12])])
@virtual
async def test_a_changed_schedule_has_no_past(world: World, new: str, after: list[int]) -> None:
    (old,) = await world.start(keen(world, "* * * * *", timezone="Europe/Berlin"))
    await world.at(61)
    await old.stop()
    await world.at(610)
    await world.start(keen(world, new, timezone="UTC"), 2)
    await world.at(725)
    assert world.slots() == minutes(1, *after)


@row(
    "catch_up",
    "a deploy changes anything else of the job, or writes the same schedule in other words",
    "The job goes on: what was missed meanwhile is caught up.",
)
@virtual
async def test_other_words_are_no_change(world: World) -> None:
    (old,) = await world.start(world.job("0 * * * *"))
    await world.at(HOUR / 1000 + 1)
    await old.stop()
    await world.at(3.5 * HOUR / 1000)
    await world.start(keen(world, "@hourly", max_attempts=7), 2)
    await world.wait(1)
    assert world.slots() == [NOON + HOUR, NOON + 2 * HOUR, NOON + 3 * HOUR]


@row(
    "schedule",
    "versions with two schedules of one job run side by side",
    "Each slot of either runs once, on an instance whose schedule has it.",
)
@pytest.mark.parametrize("restarting", ["none", "old", "new", "both"])
@virtual
async def test_two_schedules(world: World, restarting: str) -> None:
    old = await world.start(world.job("*/2 * * * *"), 2)
    new = await world.start(world.job("*/3 * * * *"), 2)
    names = [instance.name for instance in old]
    await world.at(6 * 60 + 30)
    for instance in old * (restarting in {"old", "both"}) + new * (restarting in {"new", "both"}):
        await instance.stop()
        await world.wait(5)
        await instance.restart()
    await world.at(12 * 60 + 1)
    assert world.slots() == minutes(2, 3, 4, 6, 8, 9, 10, 12)
    assert all(
        entry.slot in minutes(*range(0, 60, 2 if entry.runner in names else 3))
        for entry in world.entries
    )


@row(
    "schedule, catch_up",
    "versions with two schedules run side by side, and one of either restarts",
    "The restart counts as a change of the schedule: slots from before it that nobody ran are not"
    " caught up any more, by either version.",
)
@pytest.mark.parametrize("restarts", [True, False])
@virtual
async def test_a_restart_beside_another_version_is_a_change(world: World, restarts: bool) -> None:
    old = world.add(keen(world, "*/2 * * * *"))
    await old.start()
    new = world.add(keen(world, "*/5 * * * *"))
    await new.start()
    await world.at(290)
    new.suspend(110)  # so that 12:05 is missed
    await world.at(310)
    if restarts:
        await old.stop()
        await old.restart()
    await world.at(601)
    caught_up = [] if restarts else minutes(5)
    assert sorted(world.slots()) == sorted(minutes(2, 4, 6, 8, 10) + caught_up)


@row(
    "any",
    "versions with different options of one job run side by side",
    "Each claim goes by the options of the instance that asks.",
)
@virtual
async def test_each_goes_by_its_own_options(world: World) -> None:
    old = world.job("* * * * *", 50, max_attempts=1)
    new = world.job("* * * * *", 50, fail, max_attempts=2, retry_delay=0)
    (first,) = await world.start(old)
    await world.at(90)
    await world.start(new)
    await first.stop(timeout=30)
    await world.at(230)
    assert runs(world) == [(60, 1), (120, 1), (120, 2)]
    assert {entry.runner for entry in world.entries[1:]} == {"i2"}


@row(
    "name",
    "a deploy renames a job",
    "The new name is a new job: it catches up nothing, and while both versions run, each slot runs"
    " under either name.",
)
@virtual
async def test_a_renamed_job_is_a_new_one(world: World) -> None:
    (old,) = await world.start(keen(world, "* * * * *", name="old"))
    await world.at(150)
    await world.start(keen(world, "* * * * *", name="new"))
    await world.at(181)
    await old.stop()
    await world.at(241)
    assert world.slots("old") == minutes(1, 2, 3)
    assert world.slots("new") == minutes(3, 4)


@row(
    "catch_up",
    "a deploy removes a job, and a later one brings it back with the same schedule",
    "The same as if all instances had been down meanwhile.",
)
@virtual
async def test_a_removed_job_comes_back(world: World) -> None:
    job = keen(world, "*/10 * * * *")
    other = world.job("* * * * *", name="other")
    (first,) = await world.start(several(job, other))
    await world.at(601)
    await first.stop()
    (second,) = await world.start(other)
    await world.at(3630)
    await second.stop()
    await world.start(several(job, other))
    await world.wait(1)
    assert sorted(world.slots()) == minutes(10, 20, 30, 40, 50, 60)


@row(
    "max_attempts",
    "a run is under way when the only version that has its job is replaced by one without it",
    "It is not taken over while no instance has the job; an instance that brings the job back in"
    " time goes on with it.",
)
@pytest.mark.parametrize("away", [30, 300])
@virtual
async def test_a_run_of_a_removed_job(world: World, away: float) -> None:
    job = world.job(ONCE, 20)
    other = world.job("* * * * *", name="other")
    (first,) = await world.start(several(job, other))
    await world.at(65)
    await first.stop(timeout=0)
    (second,) = await world.start(other)
    await world.wait(away)
    assert len(world.diary.of("job")) == 1
    await second.stop()
    await world.start(several(job, other))
    await world.wait(30)
    assert await world.statuses() == ["succeeded" if away < 60 else "interrupted"]


@row(
    "schedule",
    "a job is declared by some of the instances only",
    "Only these ask for its slots and take its runs over.",
)
@virtual
async def test_only_who_has_a_job_runs_it(world: World) -> None:
    other = world.job("* * * * *", name="other")
    await world.start(several(world.job("* * * * *", 20), other))
    await world.start(other, 2)
    await world.at(601)
    assert {entry.runner for entry in world.diary.of("job")} == {"i1"}
    world["i1"].crash()
    await world.at(700)
    assert len(world.diary.of("job")) == 10
    assert len(world.diary.of("other")) == 11
