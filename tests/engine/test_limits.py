"""How many runs an instance takes on, and how starts are spread."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.support.world import EVERY_SECOND, World, minutes, seconds, virtual

if TYPE_CHECKING:
    from anarchon import Run, Scheduler


@virtual
async def test_at_its_bound_an_instance_claims_when_there_is_room(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        for number in range(5):
            world.job("1 12 * * *", takes=5, name=f"job{number}")(scheduler)

    await world.start(declare, max_concurrent_runs=2)
    await world.at(100)
    starts = sorted(round((e.start - minutes(1)[0]) / 1000) for e in world.entries)
    assert starts == [0, 0, 5, 5, 10]


@virtual
async def test_what_one_instance_has_no_room_for_another_runs(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        for number in range(6):
            world.job("1 12 * * *", takes=20, name=f"job{number}")(scheduler)

    await world.start(declare, 3, max_concurrent_runs=2)
    await world.at(61)
    assert Counter(entry.runner for entry in world.entries) == {"i1": 2, "i2": 2, "i3": 2}


@virtual
async def test_a_slot_that_found_no_room_in_time_is_not_run(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job("1 12 * * *", takes=60, name="long")(scheduler)
        world.job("30 1 12 * * *", name="short", max_late=10)(scheduler)

    await world.start(declare, max_concurrent_runs=1)
    await world.at(300)
    assert len(world.slots("long")) == 1
    assert world.slots("short") == []


@virtual
async def test_SYN_03b_threads_have_a_bound_of_their_own(world: World) -> None:
    def plain(run: Run) -> None:
        with world.diary.entry(run):
            world.time.sleep(10)

    def declare(scheduler: Scheduler) -> None:
        for number in range(12):
            scheduler.add_job(plain, "1 12 * * *", name=f"plain{number}")
        world.job(EVERY_SECOND, name="fast")(scheduler)

    (instance,) = await world.start(declare, max_threads=4, lease=3)
    await world.at(60.5)
    running = [name for name in world.backend.books if world.backend.books[name].active]
    assert len([name for name in running if name.startswith("plain")]) == 4
    await world.at(100.5)
    assert world.slots("fast") == seconds(*range(1, 101))
    plain_starts = sorted(
        round((e.start - minutes(1)[0]) / 1000) for e in world.entries if "plain" in e.job
    )
    assert plain_starts == [0] * 4 + [10] * 4 + [20] * 4
    assert {e.attempt for e in world.entries} == {1}
    assert instance.scheduler.health().running


@virtual
async def test_a_run_that_waits_for_a_thread_takes_no_other_place(world: World) -> None:
    def plain(run: Run) -> None:
        with world.diary.entry(run):
            world.time.sleep(10)

    def declare(scheduler: Scheduler) -> None:
        for number in range(3):
            scheduler.add_job(plain, "1 12 * * *", name=f"plain{number}")
        world.job("2 1 12 * * *", name="async")(scheduler)

    await world.start(declare, max_threads=1, max_concurrent_runs=2)
    await world.at(65)
    assert world.slots("async") == seconds(62)


@virtual
async def test_a_retry_waits_for_room_as_well(world: World) -> None:
    def fail_first(run: Run) -> None:
        if run.attempt == 1:
            raise ValueError

    def declare(scheduler: Scheduler) -> None:
        world.job("1 12 * * *", 1, fail_first, name="bad")(scheduler)
        world.job("1 1 12 * * *", 20, name="long")(scheduler)

    await world.start(declare, max_concurrent_runs=1)
    await world.at(120)
    assert [entry.attempt for entry in world.diary.of("bad")] == [1, 2]
    assert world.diary.of("bad")[1].start >= (world.diary.of("long")[0].end or 0)


@virtual
async def test_HERD_01_jitter_spreads_fifty_jobs(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        for number in range(50):
            world.job("* * * * *", name=f"job{number}", jitter=20)(scheduler)

    await world.start(declare, 3)
    await world.at(5 * 60 + 21)
    assert len(world.entries) == 50 * 5
    assert len({(entry.job, entry.slot) for entry in world.entries}) == 50 * 5
    delays = [entry.start - entry.slot for entry in world.entries]
    assert min(delays) >= 0
    assert max(delays) <= 20_050
    for slot in minutes(1, 2, 3, 4, 5):
        at = Counter(int(e.start - slot) // 1000 for e in world.entries if e.slot == slot)
        assert max(at.values()) <= 10  # a fifth of fifty


@virtual
async def test_jitter_is_the_same_on_every_instance(world: World) -> None:
    declare = world.job("* * * * *", jitter=30)
    await world.start(declare)
    await world.at(600)
    alone = world.offsets()
    await world.start(declare, 4)
    world.entries.clear()
    await world.at(1240)
    assert len(alone) >= 9
    assert len(world.entries) in {10, 11}
    assert len(set(world.slots())) == len(world.entries)


@virtual
async def test_the_number_of_calls_at_a_slot(world: World) -> None:
    # One claim each, one finish; the two losers ask again when the lease would have ended.
    instances = await world.start(world.job("0 * * * *"), 3)
    await world.at(3590)
    for instance in instances:
        instance.line.calls.clear()
    await world.at(3650)
    calls: Counter[str] = Counter()
    for instance in instances:
        calls += instance.line.calls
    del calls["clock"]
    assert calls == {"claim": 5, "finish": 1}
