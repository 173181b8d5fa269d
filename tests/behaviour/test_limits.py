"""Limits.

What an instance takes on at once.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.rows import row
from tests.behaviour.stories import NEVER, ONCE, fail_first, plain, run_now, several
from tests.support.world import EVERY_SECOND, World, seconds, virtual

if TYPE_CHECKING:
    from typing import Literal

    from anarchon import Scheduler


@row(
    "max_concurrent_runs, max_threads",
    "more runs fall due than one instance has places, and others have some",
    "It does not claim them; the others run them, on time.",
)
@pytest.mark.parametrize("kind", ["async", "plain"])
@virtual
async def test_others_take_what_one_has_no_room_for(world: World, kind: str) -> None:
    def declare(scheduler: Scheduler) -> None:
        for number in range(6):
            function = plain(world, 20) if kind == "plain" else world.diary.body(20)
            scheduler.add_job(function, ONCE, name=f"job{number}")

    if kind == "plain":
        await world.start(declare, 3, max_threads=2)
    else:
        await world.start(declare, 3, max_concurrent_runs=2)
    await world.at(61)
    assert Counter(entry.runner for entry in world.entries) == {"i1": 2, "i2": 2, "i3": 2}
    assert all(entry.start - entry.slot < 20 for entry in world.entries)


@row(
    "max_concurrent_runs",
    "no instance has a place at the slot",
    "The run starts as soon as one has, within `max_late`.",
)
@virtual
async def test_it_waits_for_a_place(world: World) -> None:
    jobs = [world.job(ONCE, 5, name=f"job{number}") for number in range(10)]
    await world.start(several(*jobs), 2, max_concurrent_runs=2)
    await world.at(100)
    starts = sorted(round((entry.start - entry.slot) / 1000, 1) for entry in world.entries)
    assert starts == [0] * 4 + [5] * 4 + [10] * 2


@row(
    "max_concurrent_runs, max_late",
    "no place comes free in time",
    "The slot is not run.",
)
@virtual
async def test_no_place_in_time(world: World) -> None:
    long, short = world.job(ONCE, 60, name="long"), world.job("30 1 12 * * *", max_late=10)
    await world.start(several(long, short), max_concurrent_runs=1)
    await world.at(300)
    assert len(world.slots("long")) == 1
    assert world.slots() == []


@row(
    "max_concurrent_runs",
    "several slots of one job fall due before a place is free",
    "The newest is run. One that has waited for more than a second gives way to it; under"
    ' `overlap="wait"` all of them run, oldest first, within `max_late`.',
)
@pytest.mark.parametrize("overlap", ["skip", "allow", "wait"])
@virtual
async def test_older_slots_give_way_at_the_bound(
    world: World, overlap: Literal["skip", "wait", "allow"]
) -> None:
    long = world.job("5 0 12 * * *", 30, name="long")
    await world.start(
        several(long, world.job(EVERY_SECOND, overlap=overlap)), max_concurrent_runs=1
    )
    await world.at(40.5)
    slots = world.slots()
    assert slots == sorted(slots)
    assert [slot for slot in slots if slot > seconds(34)[0]] == seconds(*range(35, 41))
    old = [slot for slot in slots if seconds(5)[0] < slot <= seconds(34)[0]]
    if overlap == "wait":
        assert old == seconds(*range(6, 35))
    else:
        assert len(old) <= 1


@pytest.mark.parametrize("count", [1, 3])
@virtual
async def test_a_job_longer_than_its_period_stays_on_time_at_the_bound(
    world: World, count: int
) -> None:
    declare = world.job(EVERY_SECOND, 1.5 * count, overlap="allow")
    await world.start(declare, count, max_concurrent_runs=1)
    await world.at(150.5)
    assert max(entry.start - entry.slot for entry in world.entries) <= 1600


@virtual
async def test_who_is_full_does_not_complain_of_what_others_run(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    often = world.job(EVERY_SECOND)
    await world.start(several(world.job(ONCE, 600, name="long"), often), max_concurrent_runs=1)
    await world.start(often)
    await world.at(400.5)
    assert world.slots() == seconds(*range(1, 401))
    assert [record.getMessage() for record in caplog.records] == []


@row(
    "max_concurrent_runs",
    "a retry or a takeover is due at an instance without a place",
    "It waits for one as well.",
)
@virtual
async def test_a_takeover_waits_for_a_place(world: World) -> None:
    job, long = world.job(ONCE, 50), world.job("1 1 12 * * *", 40, name="long")
    (first,) = await world.start(job, lease=6)
    second = (await world.start(several(job, long), max_concurrent_runs=1, lease=6))[0]
    await world.at(59.9)
    second.suspend(0.5)  # so that the first one wins
    await world.at(62)
    first.crash()
    await world.at(120)
    assert [(e.runner, e.attempt) for e in world.diary.of("job")] == [("i1", 1), ("i2", 2)]
    assert world.offsets() == pytest.approx([60, 101], abs=0.1)


@virtual
async def test_a_retry_waits_for_a_place(world: World) -> None:
    bad, long = world.job(ONCE, 1, fail_first), world.job("1 1 12 * * *", 20, name="long")
    await world.start(several(bad, long), max_concurrent_runs=1)
    await world.at(120)
    assert world.offsets() == pytest.approx([60, 81], abs=0.1)


@row(
    "max_concurrent_runs",
    "`run_now()` is called on an instance without a place",
    "The run starts at once.",
)
@virtual
async def test_manual_runs_need_no_place(world: World) -> None:
    long, job = world.job(ONCE, 100, name="long"), world.job(NEVER)
    (instance,) = await world.start(several(long, job), max_concurrent_runs=1)
    await world.at(65)
    await run_now(instance)
    assert world.offsets() == pytest.approx([65], abs=0.1)


@row(
    "max_threads",
    "more runs of plain functions fall due than it says",
    "The others wait for a thread as for a place; coroutines do not.",
)
@virtual
async def test_threads_have_a_bound_of_their_own(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        for number in range(6):
            scheduler.add_job(plain(world, 10), ONCE, name=f"plain{number}")
        world.job(EVERY_SECOND)(scheduler)

    await world.start(declare, max_threads=2)
    await world.at(100.5)
    starts = [round((e.start - e.slot) / 1000) for e in world.entries if e.job != "job"]
    assert starts == [0, 0, 10, 10, 20, 20]
    assert world.slots() == seconds(*range(1, 101))


@row(
    "max_threads, max_concurrent_runs",
    "a run waits for a thread",
    "It takes no other place meanwhile.",
)
@virtual
async def test_who_waits_for_a_thread_takes_no_place(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        for number in range(3):
            scheduler.add_job(plain(world, 10), ONCE, name=f"plain{number}")
        world.job("2 1 12 * * *")(scheduler)

    await world.start(declare, max_threads=1, max_concurrent_runs=2)
    await world.at(65)
    assert world.offsets() == pytest.approx([62], abs=0.1)
