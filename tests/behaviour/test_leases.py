"""Leases.

What happens to a run when its instance, its host, or the store fails.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from anarchon.testing import Fate
from tests.behaviour.rows import row
from tests.behaviour.stories import ONCE, holder, plain, runs
from tests.support.world import EVERY_SECOND, World, minutes, seconds, virtual

if TYPE_CHECKING:
    from anarchon import Run


@row(
    "lease",
    "a run takes longer than it",
    "The run keeps its lease by heartbeats, for as long as it takes.",
)
@virtual
async def test_a_long_run(world: World) -> None:
    await world.start(world.job(ONCE, 300), 3, lease=6)
    await world.at(400)
    assert len(world.entries) == 1
    assert await world.attempts() == ["succeeded"]


@row(
    "heartbeat",
    "a run is under way",
    "Its instance sends one so often: a third of `lease` unless given.",
)
@pytest.mark.parametrize(("heartbeat", "most"), [(None, 30), (1, 60), (4.5, 13)])
@virtual
async def test_heartbeats(world: World, heartbeat: float | None, most: int) -> None:
    declare = world.job(ONCE, 60)
    if heartbeat is None:
        await world.start(declare, 2, lease=6)
    else:
        await world.start(declare, 2, lease=6, heartbeat=heartbeat)
    await world.at(125)
    assert most - 2 <= world.sent("heartbeat") <= most


@row(
    "lease",
    "the instance that has a run is killed, and another is up",
    "The other one takes the run over, at most a lease and a second later, as its next attempt.",
)
@virtual
async def test_a_kill(world: World) -> None:
    await world.start(world.job(ONCE, 20), 3, lease=6)
    await world.at(67)
    holder(world).crash()
    await world.at(74)
    assert runs(world) == [(60, 1), (60, 2)]
    assert world.entries[0].runner != world.entries[1].runner
    await world.at(100)
    assert await world.attempts() == ["interrupted", "succeeded"]


@row(
    "lease, max_late",
    "every instance is killed during a run",
    "The first that starts goes on with the run, until `max_late` after the end of its lease (or"
    " `catch_up` or `lease`, if that is longer); after that it is closed as interrupted.",
)
@pytest.mark.parametrize("longest", ["max_late", "catch_up", "lease"])
@pytest.mark.parametrize("late", [False, True])
@virtual
async def test_a_power_cut(world: World, longest: str, late: bool) -> None:
    long = {"max_late": 1, "catch_up": 0, "lease": 6} | {longest: 60}
    declare = world.job(ONCE, 20, max_late=long["max_late"], catch_up=long["catch_up"])
    instances = await world.start(declare, 2, lease=long["lease"])
    await world.at(61)  # before the first heartbeat
    up_again = 60 + long["lease"] + (65 if late else 55)
    for instance in instances:
        instance.crash()
    await world.at(up_again)
    await instances[0].restart()
    await world.at(up_again + 25)
    assert await world.statuses() == ["interrupted" if late else "succeeded"]


@row(
    "lease",
    "the host of a run is suspended for longer than it",
    "Another instance takes the run over. When the host wakes, the coroutine is cancelled and takes"
    " no further step; a plain function finds `run.lost` set.",
)
@pytest.mark.parametrize("in_thread", [False, True])
@virtual
async def test_a_suspended_host(world: World, in_thread: bool) -> None:
    looks: list[bool] = []

    def looking(run: Run) -> None:
        with world.diary.entry(run):
            for _ in range(20 if run.attempt == 1 else 1):
                world.time.sleep(5)
                if run.attempt == 1:
                    looks.append(run.lost.is_set())

    if in_thread:
        await world.start(lambda s: s.add_job(looking, ONCE, name="job"), 2, lease=6)
    else:
        await world.start(world.job(ONCE, 100), 2, lease=6)
    await world.at(64)
    first = world.entries[0]
    steps = len(first.steps)
    world[first.runner].suspend(60)
    await world.at(300)
    assert [entry.attempt for entry in world.entries] == [1, 2]
    assert await world.attempts() == ["interrupted", "succeeded"]
    assert first.how == ("succeeded" if in_thread else "CancelledError")
    assert len(first.steps) == steps
    assert not in_thread or looks[-1]


@row(
    "lease, heartbeat",
    "it is suspended for less than 0.9 of the lease minus one interval of heartbeats",
    "The run goes on.",
)
@pytest.mark.parametrize("start", [64.1, 64.6, 65.2, 65.9])
@virtual
async def test_a_short_suspension(world: World, start: float) -> None:
    await world.start(world.job(ONCE, 20), 2, lease=6)
    await world.at(start)
    holder(world).suspend(3.3)
    await world.at(100)
    assert await world.attempts() == ["succeeded"]


@row(
    "lease",
    "a job blocks its event loop for longer than it",
    "The run goes on: heartbeats do not need that loop.",
)
@virtual
async def test_a_blocked_loop(world: World) -> None:
    async def block(run: Run) -> None:
        with world.diary.entry(run):
            world[run.runner].stall(30)
            await asyncio.sleep(0)

    await world.start(lambda s: s.add_job(block, ONCE, name="job"), 2, lease=6)
    await world.at(120)
    assert await world.attempts() == ["succeeded"]


@row(
    "lease=30, heartbeat=10",
    "the store is away for ten seconds while a job runs",
    "The run goes on.",
)
@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("start", [60.5, 64, 69.9, 73])
@virtual
async def test_a_short_outage(world: World, start: float, silent: bool) -> None:
    instances = await world.start(world.job(ONCE, 60), 2)
    await world.at(start)
    for instance in instances:
        instance.line.cut(silent=silent)
    await world.at(start + 10)
    for instance in instances:
        instance.line.mend()
    await world.at(130)
    assert await world.attempts() == ["succeeded"]


@row(
    "lease",
    "the store is away for longer than 0.9 of it while a job runs",
    "0.9 of the lease after its last heartbeat the run is stopped. When the store is back, it goes"
    " on with its next attempt, if one is left.",
)
@virtual
async def test_a_long_outage(world: World) -> None:
    instances = await world.start(world.job(ONCE, 60), 2, lease=30)
    await world.at(75)  # the last heartbeat was at 70
    for instance in instances:
        instance.line.cut()
    await world.at(120)
    assert world.entries[0].how == "CancelledError"
    assert (world.entries[0].end or 0) / 1000 == pytest.approx(
        world.time.start.timestamp() + 70 + 27, abs=0.1
    )
    for instance in instances:
        instance.line.mend()
    await world.at(220)
    assert await world.attempts() == ["interrupted", "succeeded"]


@row(
    "lease",
    "one instance is cut off from the store, and the others are not",
    "Its run is stopped there before another instance takes it over.",
)
@virtual
async def test_one_is_cut_off(world: World) -> None:
    await world.start(world.job(ONCE, 60), 3, lease=6)
    await world.at(65)
    holder(world).line.cut(silent=True)
    await world.at(200)
    first, second = world.entries
    assert first.how == "CancelledError"
    assert (first.end or 0) < second.start
    assert second.start <= minutes(1)[0] + 5000 + 7000


@row(
    "max_late",
    "the store is away at the slot, and comes back",
    "The run starts late, if it is in time and no newer slot is due by then.",
)
@pytest.mark.parametrize(("back", "expected"), [(80, [1, 2, 3]), (125, [2, 3])])
@virtual
async def test_the_store_is_away_at_the_slot(
    world: World, back: float, expected: list[int]
) -> None:
    instances = await world.start(world.job("* * * * *", max_late=300), 2)
    await world.at(50)
    for instance in instances:
        instance.line.cut()
    await world.at(back)
    for instance in instances:
        instance.line.mend()
    await world.at(185)
    assert world.slots() == minutes(*expected)
    # The pauses between repeats are at most two seconds long.
    assert back <= world.offsets()[0] <= back + 2.1


@row(
    "lease",
    "a job ends while the store is away",
    "Its end is told as soon as the store is back; the run is not run again.",
)
@virtual
async def test_an_end_during_an_outage(world: World) -> None:
    instances = await world.start(world.job(ONCE, 10), 2, lease=30)
    await world.at(65)
    for instance in instances:
        instance.line.cut()
    await world.at(150)  # its lease has been over for a minute
    for instance in instances:
        instance.line.mend()
    await world.at(170)
    assert len(world.entries) == 1
    assert await world.attempts() == ["succeeded"]


@virtual
async def test_a_lost_answer(world: World) -> None:
    instances = await world.start(world.job(ONCE, 5), 2)
    for instance in instances:
        instance.line.plan("claim", Fate(answered=False))
    await world.at(80)
    assert runs(world) == [(60, 1)]
    assert await world.attempts() == ["succeeded"]


@row(
    "lease",
    "the store loses all it knows, while a job runs",
    "The run is stopped at its next heartbeat, and not tried again; later slots run.",
)
@virtual
async def test_a_store_that_forgets(world: World) -> None:
    await world.start(world.job("* * * * *", 30), 2, lease=6)
    await world.at(65)
    world.backend.books.clear()
    await world.at(68)
    assert world.entries[0].how == "CancelledError"
    await world.at(155)
    assert runs(world) == [(60, 1), (120, 1)]


@row(
    "max_late",
    "the store cannot be reached when an instance starts",
    "It starts all the same, and runs what is due once the store is there.",
)
@virtual
async def test_the_store_is_away_at_the_start(world: World) -> None:
    instance = world.add(world.job(EVERY_SECOND))
    instance.line.cut()
    await instance.start()
    await world.at(10)
    assert instance.scheduler.health().running
    assert not instance.scheduler.health().store
    instance.line.mend()
    await world.at(20.5)
    assert world.slots()[-8:] == seconds(*range(13, 21))


@row(
    "lease",
    "a plain function goes on although its lease is lost",
    "Nothing of it is written. It can be at work beside its successor: look at `run.lost`.",
)
@virtual
async def test_a_thread_that_goes_on(world: World) -> None:
    def first_goes_on(run: Run) -> None:
        plain(world, 60 if run.attempt == 1 else 20)(run)

    await world.start(lambda s: s.add_job(first_goes_on, ONCE, name="job"), 2, lease=6)
    await world.at(65)
    holder(world).line.cut()
    await world.at(100)
    world[world.entries[0].runner].line.mend()
    await world.at(200)
    first, second = world.entries
    assert second.start < (first.end or 0)
    assert await world.attempts() == ["interrupted", "succeeded"]
    world.entries.remove(first)  # its steps are what the judges would complain of, rightly
