"""Event loops that were blocked, and hosts that were suspended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from anarchon.testing import Fate
from tests.support.world import EVERY_SECOND, World, minutes, seconds, virtual

if TYPE_CHECKING:
    from anarchon import Run


@virtual
async def test_after_a_stall_only_the_newest_slot_is_asked_for(world: World) -> None:
    (instance,) = await world.start(world.job(EVERY_SECOND))
    await world.at(10.5)
    instance.stall(30)
    await world.at(42.5)
    assert world.slots() == seconds(*range(1, 11), 40, 41, 42)


@virtual
async def test_a_stall_of_less_than_a_second_misses_nothing(world: World) -> None:
    (instance,) = await world.start(world.job(EVERY_SECOND))
    await world.at(10.9)
    instance.stall(0.9)
    await world.at(15.5)
    assert world.slots() == seconds(*range(1, 16))


@virtual
async def test_the_newest_slot_is_asked_for_only_while_in_time(world: World) -> None:
    (instance,) = await world.start(world.job("*/10 * * * *", max_late=30))
    await world.at(9 * 60)
    instance.stall(120)
    await world.at(20 * 60 + 1)
    assert world.slots() == minutes(20)


@virtual
async def test_others_are_not_held_up(world: World) -> None:
    first, _second = await world.start(world.job(EVERY_SECOND), 2)
    await world.at(10.5)
    first.stall(30)
    await world.at(45.5)
    assert world.slots() == seconds(*range(1, 46))


@pytest.mark.parametrize("catch_up", [0, 3600])
@virtual
async def test_CLK_03_after_a_minute_of_suspension(world: World, catch_up: int) -> None:
    (instance,) = await world.start(world.job(EVERY_SECOND, catch_up=catch_up, max_late=5))
    await world.at(10.5)
    instance.suspend(60)
    await world.at(70.6)
    assert world.slots() == seconds(*range(1, 11), 70)
    await world.at(75.5)
    assert world.slots()[11:] == seconds(71, 72, 73, 74, 75)


@virtual
async def test_CLK_03_without_coalescing_each_is_caught_up(world: World) -> None:
    (instance,) = await world.start(world.job(EVERY_SECOND, catch_up=3600, coalesce=False))
    await world.at(10.5)
    instance.suspend(60)
    await world.at(90.5)
    assert sorted(world.slots()) == seconds(*range(1, 91))
    caught_up = [e.slot for e in world.entries if e.trigger == "catch-up"]
    assert caught_up == sorted(caught_up)


@virtual
async def test_a_suspended_holder_loses_its_run_and_takes_no_step(world: World) -> None:
    await world.start(world.job("1 12 * * *", takes=20), 2, lease=6)
    await world.at(65)
    first = world.entries[0]
    steps = len(first.steps)
    world[first.runner].suspend(60)
    await world.at(200)
    assert first.how == "CancelledError"
    assert len(first.steps) == steps
    assert await world.attempts() == ["interrupted", "succeeded"]


@virtual
async def test_a_holder_suspended_for_less_than_its_lease_goes_on(world: World) -> None:
    await world.start(world.job("1 12 * * *", takes=20), 2, lease=6)
    await world.at(65)
    world[world.entries[0].runner].suspend(3)
    await world.at(120)
    assert [entry.how for entry in world.entries] == ["succeeded"]


@virtual
async def test_an_instance_suspended_over_the_claim_does_not_run_what_it_won_long_ago(
    world: World,
) -> None:
    instances = await world.start(world.job("1 12 * * *", takes=2), 2, lease=6)
    await world.at(59.9)
    for instance in instances:
        instance.line.plan("claim", Fate(there=0.3))
    await world.at(60.1)
    for instance in instances:
        instance.suspend(20)
    await world.at(120)
    succeeded = [entry for entry in world.entries if entry.how == "succeeded"]
    assert len(succeeded) == 1
    assert (await world.attempts())[-1] == "succeeded"


@virtual
async def test_a_whole_cluster_that_was_suspended(world: World) -> None:
    instances = await world.start(world.job("* * * * *", takes=30), 3, lease=6)
    await world.at(70)
    for instance in instances:
        instance.suspend(600)
    await world.at(1000)
    assert world.open_past_their_end() == []
    assert world.slots()[-4:] == minutes(13, 14, 15, 16)


@virtual
async def test_a_body_that_blocks_the_loop_past_the_next_slot(world: World) -> None:
    def block(run: Run) -> None:
        if run.slot == minutes(1)[0]:
            world[run.runner].stall(130)

    await world.start(world.job("* * * * *", 1, block))
    await world.at(301)
    # 12:02 is passed over; 12:03 is the newest when the loop turns again, and still in time.
    assert world.slots() == minutes(1, 3, 4, 5)


@virtual
async def test_slots_passed_over_are_warned_of_once_a_minute(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    (instance,) = await world.start(world.job(EVERY_SECOND))
    for _ in range(8):
        instance.stall(5)
        await world.wait(7)
    warned = [r for r in caplog.records if vars(r).get("event") == "slots.passed-over"]
    assert 1 <= len([r for r in warned if r.levelname == "WARNING"]) <= 2
