"""Pauses.

A job that is held back in the store, for all instances.
"""

from __future__ import annotations

import pytest

from tests.behaviour.rows import row
from tests.behaviour.stories import fail_first, run_now, runs
from tests.support.world import MINUTE, World, minutes, virtual


async def pause(world: World, until: int = 0) -> None:
    """Hold the job back."""
    await world.backend.connect(timeout=1).pause("job", until, "")


async def resume(world: World) -> None:
    """Let the job go on."""
    await world.backend.connect(timeout=1).resume("job")


@row(
    "pause",
    "a slot of a paused job falls due",
    "It is not run, and its history says paused.",
)
@virtual
async def test_a_paused_slot(world: World) -> None:
    await world.start(world.job("* * * * *"), 3)
    await world.at(90)
    await pause(world)
    await world.at(190)
    await resume(world)
    await world.at(301)
    assert world.slots() == minutes(1, 4, 5)
    assert await world.statuses() == ["succeeded", "paused", "paused", "succeeded", "succeeded"]


@row(
    "pause",
    "it has an end",
    "The job goes on by itself with the first slot after it.",
)
@virtual
async def test_a_pause_that_ends(world: World) -> None:
    await world.start(world.job("* * * * *"), 2)
    await world.at(90)
    await pause(world, world.server() + MINUTE)
    await world.at(241)
    assert world.slots() == minutes(1, 3, 4)


@row(
    "pause, catch_up",
    "the job goes on after a pause",
    "Slots that fell due while an instance was up to see the pause are not caught up.",
)
@pytest.mark.parametrize("coalesce", [True, False])
@virtual
async def test_a_pause_is_not_made_up_for(world: World, coalesce: bool) -> None:
    declare = world.job("* * * * *", catch_up=3600, coalesce=coalesce)
    (instance,) = await world.start(declare)
    await world.at(90)
    await pause(world)
    await world.at(330)
    await resume(world)
    await instance.stop()
    await instance.restart()
    await world.at(361)
    assert world.slots() == minutes(1, 6)


@row(
    "pause, catch_up",
    "slots were missed before the pause, and an instance starts during it",
    "They are not caught up while it lasts; a start after it does so, within `catch_up`.",
)
@virtual
async def test_missed_before_a_pause(world: World) -> None:
    declare = world.job("*/10 * * * *", catch_up=3600, coalesce=False, max_late=1)
    (instance,) = await world.start(declare)
    await world.at(590)
    await instance.stop()
    await pause(world)
    await world.at(650)
    await instance.restart()
    await world.at(700)
    assert world.slots() == []
    await resume(world)
    await instance.stop()
    await instance.restart()
    await world.at(710)
    assert world.slots() == minutes(10)


@row(
    "pause",
    "a run is under way, or waits for its retry, when the job is paused",
    "It goes on to its end, with all its attempts.",
)
@virtual
async def test_a_run_under_way(world: World) -> None:
    await world.start(world.job("* * * * *", 10, fail_first), 2)
    await world.at(65)
    await pause(world)
    await world.at(301)
    assert runs(world) == [(60, 1), (60, 2)]
    assert (await world.statuses())[0] == "succeeded"


@row(
    "pause, lease",
    "the instance with a run of a paused job is killed",
    "The run is taken over all the same.",
)
@virtual
async def test_a_takeover_in_a_pause(world: World) -> None:
    await world.start(world.job("* * * * *", 20), 2, lease=6)
    await world.at(65)
    await pause(world)
    world[world.entries[0].runner].crash()
    await world.at(101)
    assert runs(world) == [(60, 1), (60, 2)]


@row(
    "pause",
    "`run_now()` is called for a paused job",
    "It runs.",
)
@virtual
async def test_a_manual_run(world: World) -> None:
    (instance,) = await world.start(world.job("* * * * *", then=lambda _run: 3))
    await pause(world)
    assert await run_now(instance) == 3
