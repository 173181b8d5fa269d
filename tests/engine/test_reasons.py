"""Why an instance did not run slots that it knew of: what is counted, remembered, and recorded."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from anarchon import Reason, RunStatus
from anarchon.engine.reasons import MOST_NOTES, MOST_STRETCHES, Note, Reasons
from anarchon.runs import moment
from tests.engine.asking import told
from tests.support.world import MINUTE, World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Event, Run, Scheduler
    from anarchon.testing import Instance

AWAY = Note(Reason.STORE_AWAY, "the store was away")
OTHER = Note(Reason.ANOTHER, "another had it")


def counts(instance: Instance, job: str = "job") -> dict[Reason, int]:
    """What `Scheduler.jobs` tells of a job's slots that this instance did not run."""
    (info,) = (info for info in instance.scheduler.jobs if info.name == job)
    return dict(info.not_run)


def total(world: World, job: str = "job") -> Counter[Reason]:
    """The counts of all instances together."""
    counted: Counter[Reason] = Counter()
    for instance in world.instances.values():
        counted.update(counts(instance, job))
    return counted


# -- the memory itself -----------------------------------------------------------------------------


def test_a_note_is_remembered_and_counted() -> None:
    reasons = Reasons()
    reasons.note("a", "10", AWAY)
    reasons.note("a", "20", OTHER)
    reasons.note("b", "10", OTHER)
    assert reasons.of("a", "10", 10) == AWAY
    assert reasons.of("a", "30", 30) is None
    assert reasons.of("c", "10", 10) is None
    assert reasons.counts("a") == {Reason.STORE_AWAY: 1, Reason.ANOTHER: 1}
    assert reasons.counts("b") == {Reason.ANOTHER: 1}
    assert reasons.counts("c") == {}


def test_a_later_note_of_a_slot_stands_for_the_former() -> None:
    reasons = Reasons()
    reasons.note("a", "10", AWAY)
    reasons.note("a", "10", OTHER)
    assert reasons.of("a", "10", 10) == OTHER
    assert reasons.counts("a") == {Reason.ANOTHER: 1}


def test_a_slot_that_was_run_after_all_counts_no_more() -> None:
    reasons = Reasons()
    reasons.note("a", "10", AWAY)
    reasons.note("a", "20", AWAY)
    reasons.ran("a", "10")
    reasons.ran("a", "99")
    assert reasons.of("a", "10", 10) is None
    assert reasons.counts("a") == {Reason.STORE_AWAY: 1}
    reasons.ran("a", "20")
    assert reasons.counts("a") == {}


def test_a_stretch_holds_for_each_slot_in_it_and_counts_as_one() -> None:
    reasons = Reasons()
    reasons.note_stretch("a", 10, 30, AWAY)
    found = {slot: reasons.of("a", str(slot), slot) for slot in (10, 11, 30, 31)}
    assert found == {10: None, 11: AWAY, 30: AWAY, 31: None}
    assert reasons.of("b", "20", 20) is None
    assert reasons.counts("a") == {Reason.STORE_AWAY: 1}


def test_a_stretch_does_not_hold_for_a_slot_in_it_that_was_run_after_all() -> None:
    reasons = Reasons()
    reasons.note_stretch("a", 10, 30, AWAY)
    reasons.ran("a", "20")
    assert reasons.of("a", "20", 20) is None
    assert reasons.of("a", "25", 25) == AWAY
    assert reasons.of("b", "20", 20) is None


def test_the_newest_stretch_and_the_note_of_the_slot_itself_go_first() -> None:
    reasons = Reasons()
    reasons.note_stretch("a", 10, 30, AWAY)
    reasons.note_stretch("a", 20, 40, OTHER)
    reasons.note("a", "25", Note(Reason.PAUSED, "paused"))
    assert reasons.of("a", "15", 15) == AWAY
    assert reasons.of("a", "24", 24) == OTHER
    assert reasons.of("a", "25", 25) == Note(Reason.PAUSED, "paused")


def test_ten_thousand_notes_are_remembered_and_all_are_counted() -> None:
    reasons = Reasons()
    for slot in range(MOST_NOTES + 500):
        reasons.note("ab"[slot % 2], str(slot), OTHER)
    assert MOST_NOTES == 10_000
    kept = [s for s in range(MOST_NOTES + 500) if reasons.of("ab"[s % 2], str(s), s) == OTHER]
    assert kept == list(range(500, MOST_NOTES + 500))
    assert reasons.counts("a") == reasons.counts("b") == {Reason.ANOTHER: 5250}


def test_of_stretches_the_newest_hundred_are_remembered_and_all_are_counted() -> None:
    reasons = Reasons()
    for number in range(MOST_STRETCHES + 5):
        reasons.note_stretch("a", 10 * number, 10 * number + 5, AWAY)
    assert MOST_STRETCHES == 100
    kept = [n for n in range(MOST_STRETCHES + 5) if reasons.of("a", "", 10 * n + 1) == AWAY]
    assert kept == list(range(5, MOST_STRETCHES + 5))
    assert reasons.counts("a") == {Reason.STORE_AWAY: 105}


# -- what is counted -------------------------------------------------------------------------------


@virtual
async def test_of_three_instances_one_ran_each_slot_and_two_say_another_did(world: World) -> None:
    await world.start(world.job("* * * * *"), 3)
    await world.at(10 * 60 + 45)  # a lease after the last slot the losers have asked again
    assert world.slots() == minutes(*range(1, 11))
    assert total(world) == {Reason.ANOTHER: 20}
    for name, instance in world.instances.items():
        ran = sum(entry.runner == name for entry in world.entries)
        assert counts(instance) == ({Reason.ANOTHER: 10 - ran} if ran < 10 else {})


@virtual
async def test_what_is_counted_begins_anew_with_each_start(world: World) -> None:
    await world.start(world.job("* * * * *"), 2)
    await world.at(5 * 60 + 40)
    assert total(world)[Reason.ANOTHER] == 5
    for instance in world.instances.values():
        await instance.stop()
    assert total(world) == {}
    await world.at(8 * 60 + 10)
    await world["i1"].restart()
    await world.at(8 * 60 + 20)
    # Nobody had asked for the last slot, and it was still in time.
    assert world.slots()[-1:] == minutes(8)
    assert total(world) == {}


@virtual
async def test_a_run_that_was_taken_over_counts_no_more(world: World) -> None:
    await world.start(world.job("1 12 * * *", takes=20), 2, lease=6)
    await world.at(61)
    dead = world.entries[0].runner
    world[dead].crash()
    await world.at(120)
    (alive,) = (instance for instance in world.instances.values() if instance.alive)
    assert world.entries[-1].runner == alive.name
    assert counts(alive) == {}


@virtual
async def test_a_manual_run_does_not_count(world: World) -> None:
    first, second = await world.start(world.job(takes=70, overlap="allow"), 2, lease=6)
    asked = asyncio.create_task(first.do(first.scheduler.run_now("job")))
    await world.at(65)  # by its claim the other has learnt of the manual run, and stands by
    (manual,) = (run.id for run in await world.history("job") if run.trigger == "manual")
    assert (await told(second, manual))[-1].startswith("This instance stands by")
    await asked
    await world.at(85)
    assert total(world) == {}
    assert len(await told(second, manual)) == 2


@virtual
async def test_losers_count_also_where_no_attempt_is_left(world: World) -> None:
    await world.start(world.job("1 12 * * *", takes=2, max_attempts=1), 3)
    await world.at(100)
    assert total(world) == {Reason.ANOTHER: 2}


@virtual
async def test_a_slot_that_was_caught_up_after_all_counts_no_more(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job("1 12 * * *", takes=30, name="long")(scheduler)
        world.job("2 1 12 * * *", max_late=5, catch_up=600)(scheduler)

    (instance,) = await world.start(declare, max_concurrent_runs=1)
    await world.at(80)
    assert counts(instance) == {Reason.NO_ROOM: 1}
    await world.at(100)
    assert [entry.trigger for entry in world.entries] == ["schedule", "catch-up"]
    assert counts(instance) == {}


@virtual
async def test_jobs_are_counted_apart(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job("* * * * *", name="one")(scheduler)
        world.job("*/2 * * * *", name="two")(scheduler)

    await world.start(declare, 2)
    await world.at(4 * 60 + 45)
    assert total(world, "one") == {Reason.ANOTHER: 4}
    assert total(world, "two") == {Reason.ANOTHER: 2}


@virtual
async def test_an_outage_of_one_instance_is_counted_there_alone(world: World) -> None:
    first, second = await world.start(world.job("* * * * *", max_late=10), 2, lease=6)
    await world.at(50)
    first.line.cut()
    await world.at(3 * 60 + 50)
    first.line.mend()
    await world.at(4 * 60 + 30)
    assert world.slots() == minutes(1, 2, 3, 4)
    assert counts(first)[Reason.STORE_AWAY] == 3
    assert Reason.STORE_AWAY not in counts(second)


@virtual
async def test_an_outage_that_ends_soon_after_the_last_moment(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *", max_late=20))
    await world.at(50)
    instance.line.cut()
    await world.at(100)  # within a lease of the last moment: it is still asked what became of it
    instance.line.mend()
    await world.at(110)
    assert counts(instance) == {Reason.STORE_AWAY: 1}


@virtual
async def test_slots_without_room_are_counted(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job("1 12 * * *", takes=95, name="long")(scheduler)
        world.job("*/10 * * * * *", max_late=5)(scheduler)

    (instance,) = await world.start(declare, max_concurrent_runs=1)
    await world.at(59)
    assert counts(instance) == {}
    await world.at(154)
    assert set(counts(instance)) == {Reason.NO_ROOM}
    assert counts(instance)[Reason.NO_ROOM] >= 8


@virtual
async def test_a_stretch_of_a_suspended_host_counts_as_one(world: World) -> None:
    (instance,) = await world.start(world.job("* * * * *", max_late=10))
    await world.at(30)
    instance.suspend(10 * 60)
    await world.at(10 * 60 + 50)
    assert counts(instance) == {Reason.MISSED: 2}  # the older slots together, and the newest


@virtual
async def test_a_slot_that_a_suspended_host_was_too_late_for_is_heard(world: World) -> None:
    heard: list[Event] = []
    job = world.job("1 12 * * *", max_late=20)

    def declare(scheduler: Scheduler) -> None:
        job(scheduler)

        @scheduler.on("missed")
        async def hear(event: Event) -> None:
            heard.append(event)

    (instance,) = await world.start(declare)
    await world.at(30)
    instance.suspend(200)
    await world.at(260)
    (event,) = heard
    assert (event.job, event.run) == ("job", str(minutes(1)[0]))
    assert "newer slot" not in event.reason
    assert counts(instance) == {Reason.MISSED: 1}


# -- what the store decides ------------------------------------------------------------------------


@virtual
async def test_an_overlap_is_recorded_once_and_told_by_all(world: World) -> None:
    heard: list[str] = []
    job = world.job("* * * * *", takes=100)

    def declare(scheduler: Scheduler) -> None:
        job(scheduler)

        @scheduler.on("skipped")
        async def hear(event: Event) -> None:
            heard.append(event.runner)

    await world.start(declare, 3, lease=6)
    await world.at(125)
    book = world.backend.book("job")
    own = [result for result in book.results if result.attempt == 0]
    assert [(result.run, result.status) for result in own] == [
        (str(minutes(2)[0]), RunStatus.SKIPPED)
    ]
    assert total(world) == {Reason.OVERLAP: 3}
    assert len(heard) == 1


@virtual
async def test_a_pause_is_recorded_once_a_slot_and_told_by_all(world: World) -> None:
    heard: list[str | None] = []
    job = world.job("* * * * *")

    def declare(scheduler: Scheduler) -> None:
        job(scheduler)

        @scheduler.on("paused")
        async def hear(event: Event) -> None:
            heard.append(event.run)

    first, *_ = await world.start(declare, 3)
    await first.do(first.scheduler.pause("job"))
    await world.at(3 * 60 + 5)
    book = world.backend.book("job")
    own = sorted((r.run, r.status) for r in book.results if r.attempt == 0)
    assert own == [(str(slot), RunStatus.PAUSED) for slot in minutes(1, 2, 3)]
    assert total(world) == {Reason.PAUSED: 9}
    assert heard == [str(slot) for slot in minutes(1, 2, 3)]


@virtual
async def test_a_missed_slot_is_recorded_once_and_told_by_all(world: World) -> None:
    instances = await world.start(world.job("1 12 * * *", max_late=20), 3)
    for instance in instances:
        await instance.stop()
    await world.at(200)
    for instance in instances:
        await instance.restart()
    await world.at(210)
    book = world.backend.book("job")
    assert [(r.run, r.status) for r in book.results] == [(str(minutes(1)[0]), RunStatus.MISSED)]
    assert total(world) == {Reason.MISSED: 3}


@virtual
async def test_a_retry_and_a_takeover_are_no_reasons(world: World) -> None:
    def fail_first(run: Run) -> None:
        if run.attempt == 1:
            raise ValueError

    await world.start(world.job("1 12 * * *", then=fail_first, retry_delay=2), 3)
    await world.at(60 + 45)
    assert [entry.attempt for entry in world.entries] == [1, 2]
    ran = {entry.runner for entry in world.entries}
    assert total(world) == {Reason.ANOTHER: 3 - len(ran)}


@pytest.mark.parametrize("gap", [3 * MINUTE, 60 * MINUTE])
@virtual
async def test_the_work_does_not_grow_with_what_was_missed(world: World, gap: int) -> None:
    (instance,) = await world.start(world.job("* * * * * *", max_late=1))
    await world.at(30)
    before = world.sent("claim")
    instance.suspend(gap / 1000)
    await world.wait(gap / 1000 + 1)
    assert world.sent("claim") - before <= 4
    assert sum(counts(instance).values()) <= 3


@virtual
async def test_it_waited_for_another_run_until_too_late(world: World) -> None:
    (instance,) = await world.start(
        world.job("* * * * *", takes=115, overlap="wait", max_late=20), lease=3
    )
    await world.at(170)
    here = (await told(instance, moment(minutes(2)[0])))[-1]
    assert (
        here
        == "This instance did not run it: another run of the job was live until it was too late."
    )


@virtual
async def test_what_ran_here_counts_for_nobody_else_after_a_step_back(world: World) -> None:
    (instance,) = await world.start(world.job("* * * * *", catch_up=600))
    await world.at(4 * 60 + 30)
    world.server.step(-90)
    await world.at(10 * 60 + 30)
    assert counts(instance) == {}
