"""Catching up.

Slots that nobody could run in time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.rows import row
from tests.behaviour.stories import fail, run_now, runs, several
from tests.support.world import EVERY_SECOND, HOUR, NOON, World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import JobSettings


async def down_for_an_hour(world: World, **job: object) -> None:
    """Three instances of a minutely job, which are down from 12:05:30 to 13:05:30."""
    instances = await world.start(world.job("* * * * *", **job), 3, lease=6)  # type: ignore[arg-type]
    await world.at(330)
    for instance in instances:
        await instance.stop()
    world.entries.clear()
    await world.at(3930)
    for instance in instances:
        await instance.restart()


@row(
    "catch_up=0",
    "every instance is down for longer than `max_late`",
    "The slots of that time are not run.",
)
@virtual
async def test_nothing_is_caught_up(world: World) -> None:
    await down_for_an_hour(world, max_late=10)
    await world.at(4021)
    assert world.slots() == minutes(66, 67)


@row(
    "catch_up, coalesce=True",
    "every instance is down over several slots",
    "The newest missed slot runs once, when the first instance starts; older ones are given up.",
)
@virtual
async def test_the_newest_is_caught_up(world: World) -> None:
    await down_for_an_hour(world, max_late=10, catch_up=600)
    await world.at(4021)
    assert world.slots() == minutes(65, 66, 67)
    assert world.entries[0].trigger == "catch-up"
    assert world.offsets()[0] == pytest.approx(3930, abs=0.1)


@row(
    "catch_up, coalesce=False",
    "every instance is down over several slots",
    "Each slot within `catch_up` runs once, oldest first, one after the other.",
)
@virtual
async def test_each_is_caught_up(world: World) -> None:
    await down_for_an_hour(world, takes=1, catch_up=600, coalesce=False, overlap="wait")
    await world.at(4100)
    slots = minutes(*range(56, 69))
    # The last of the hour is in time still: it is asked for at once.
    assert sorted(world.slots()) == slots
    caught_up = [entry.slot for entry in world.entries if entry.trigger == "catch-up"]
    assert caught_up == slots[:9]
    assert world.diary.most_at_once("job") == 1


@row(
    "catch_up, coalesce=False",
    "some of the slots in the window have run, others were missed",
    "Only the missed ones run.",
)
@virtual
async def test_only_the_missed_are_caught_up(world: World) -> None:
    declare = world.job("* * * * *", max_late=1, catch_up=3600, coalesce=False)
    (instance,) = await world.start(declare)
    for stopped, started in ((110, 125), (230, 305)):
        await world.at(stopped)
        await instance.stop()
        await world.at(started)
        if started > 300:
            world.entries.clear()
        await instance.restart()
    await world.at(350)
    assert world.slots() == minutes(4, 5)


@row(
    "catch_up, coalesce=True",
    "an older slot was missed, and the newest has run",
    "Nothing is caught up.",
)
@virtual
async def test_an_older_one_is_given_up(world: World) -> None:
    declare = world.job("* * * * *", max_late=1, catch_up=3600)
    (instance,) = await world.start(declare)
    await world.at(110)
    await instance.stop()
    await world.at(179.5)
    book = world.backend.book("job")
    assert str(minutes(2)[0]) not in book.records
    declare_plainly = world.job("* * * * *", max_late=1)
    other = world.add(declare_plainly)
    await other.start()
    await world.at(185)
    await instance.restart()
    await world.at(230)
    assert world.slots() == minutes(1, 3)


@row(
    "catch_up",
    "an instance is suspended over several slots, and no other is up",
    "The same as after a restart.",
)
@pytest.mark.parametrize("coalesce", [True, False])
@virtual
async def test_after_a_suspension(world: World, coalesce: bool) -> None:
    settings: JobSettings = {"max_late": 10, "catch_up": 600, "coalesce": coalesce}
    (instance,) = await world.start(world.job("* * * * *", **settings))
    await world.at(330)
    instance.suspend(3600)
    await world.at(4021)
    expected = minutes(65) if coalesce else minutes(*range(56, 66))
    assert world.slots()[5:] == expected + minutes(66, 67)


@row(
    "catch_up",
    "the store is away over several slots",
    "The same, when it is back.",
)
@pytest.mark.parametrize("coalesce", [True, False])
@virtual
async def test_after_an_outage(world: World, coalesce: bool) -> None:
    settings: JobSettings = {"max_late": 10, "catch_up": 3600, "coalesce": coalesce}
    instances = await world.start(world.job("* * * * *", **settings), 2)
    await world.at(90)
    for instance in instances:
        instance.line.cut()
    await world.at(330)
    for instance in instances:
        instance.line.mend()
    await world.at(361)
    assert sorted(world.slots()) == minutes(1, *([5] if coalesce else [2, 3, 4, 5]), 6)


@row(
    "catch_up, coalesce=True",
    "the next slot falls due before the missed one could start",
    "The missed one is given up.",
)
@virtual
async def test_the_next_slot_ends_a_catch_up(world: World) -> None:
    # The only place is taken from 12:01:35 to 12:02:25.
    long = world.job("30 1 12 * * *", 50, name="long")
    job = world.job("* * * * *", max_late=30, catch_up=3600)
    (instance,) = await world.start(several(long, job), max_concurrent_runs=1)
    await world.at(50)
    await instance.stop()
    await world.at(95)
    await instance.restart()
    await world.at(200)
    assert world.slots() == minutes(2, 3)
    assert world.offsets() == pytest.approx([145, 180], abs=0.1)


@row(
    "catch_up, overlap",
    "another run of the job is live",
    'The missed slot waits for its end, also under `"skip"`, and runs while it is within'
    " `catch_up`.",
)
@virtual
async def test_catching_up_waits(world: World) -> None:
    (instance,) = await world.start(world.job("*/5 * * * *", 90, max_late=1, catch_up=3600))
    await world.at(290)
    await instance.stop()
    await world.at(310)
    await instance.start()
    asked = run_now(instance)
    await world.at(311)
    assert [entry.trigger for entry in world.entries] in (["catch-up"], ["manual"])
    await world.at(550)
    assert world.diary.most_at_once("job") == 1
    assert (await world.statuses())[0] == "succeeded"
    asked.cancel()


@row(
    "catch_up",
    "a slot was skipped because of `overlap`, or while the job was paused",
    "It is not caught up: it has been settled.",
)
@virtual
async def test_what_was_skipped_is_not_caught_up(world: World) -> None:
    declare = world.job("* * * * *", 70, catch_up=3600, coalesce=False)
    (instance,) = await world.start(declare)
    await world.at(150)
    await instance.stop()
    await instance.restart()
    await world.backend.connect(timeout=1).pause("job", 0, "")
    await world.at(220)
    await world.backend.connect(timeout=1).resume("job")
    await instance.stop()
    await instance.restart()
    await world.at(235)
    assert world.slots() == minutes(1)
    assert await world.statuses() == ["succeeded", "skipped", "paused"]


@virtual
async def test_a_caught_up_run_is_tried_again(world: World) -> None:
    (instance,) = await world.start(world.job("*/5 * * * *", 0, fail, max_late=1, catch_up=3600))
    await world.at(200)
    await instance.stop()
    await world.at(400)
    await instance.restart()
    await world.at(500)
    assert runs(world) == [(300, 1), (300, 2), (300, 3)]
    assert {entry.trigger for entry in world.entries} == {"catch-up"}


@row(
    "catch_up, coalesce=False",
    "a job of every second was down for a year",
    "The start takes no longer for it; the slots within `catch_up` run, and no others.",
)
@virtual
async def test_a_year(world: World) -> None:
    declare = world.job(EVERY_SECOND, max_late=1, catch_up=20, coalesce=False, overlap="wait")
    (instance,) = await world.start(declare)
    await world.at(10.5)
    await instance.stop()
    world.entries.clear()
    year = 365 * 24 * HOUR
    await world.at(year / 1000 + 10.5)
    began = time.process_time()
    await instance.restart()
    assert time.process_time() - began < 1
    await world.wait(10)
    caught_up = [entry.slot for entry in world.entries if entry.trigger == "catch-up"]
    now = NOON + year + 10_500
    assert caught_up == list(range(now - 19_500, now - 1000, 1000))
    assert instance.line.calls["claim"] < 60


@row(
    "catch_up",
    "a deploy makes it longer, and older runs have been trimmed",
    "Slots up to the newest trimmed one count as done; they are not caught up.",
)
@virtual
async def test_trimmed_slots_are_not_caught_up(world: World) -> None:
    (old,) = await world.start(world.job(10, max_late=1), history_size=10)
    await world.at(605)
    await old.stop()
    world.entries.clear()
    await world.start(world.job(10, max_late=1, catch_up=3600, coalesce=False), history_size=1000)
    await world.at(609)
    assert world.slots() == []
