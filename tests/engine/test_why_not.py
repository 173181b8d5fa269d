"""Why a slot was not run: every sentence about one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from anarchon import RunStatus
from anarchon.runs import moment
from anarchon.testing import Fate
from tests.engine.asking import FIRST_SLOT, told, why
from tests.support.world import NOON, World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Scheduler

BERLIN = ZoneInfo("Europe/Berlin")


# -- a slot that was not run -----------------------------------------------------------------------


@virtual
async def test_another_instance_won(world: World) -> None:
    await world.start(world.job("1 12 * * *", takes=3), 3)
    await world.at(95)  # a lease later, when the others have asked again
    winner = world.entries[0].runner
    for name, instance in world.instances.items():
        here = (await told(instance))[2:]
        lost = ("This instance did not run it: another instance had run it already.",)
        assert here == (() if name == winner else lost)


@virtual
async def test_another_instance_had_run_it_already(world: World) -> None:
    await world.start(world.job("1 12 * * *"))
    await world.at(50)
    (late,) = await world.start(world.job("1 12 * * *"))
    late.line.plan("claim", Fate(there=0.5))
    await world.at(90)
    assert (await told(late))[-1] == (
        "This instance did not run it: another instance had run it already."
    )


@virtual
async def test_it_was_skipped_for_an_overlap(world: World) -> None:
    await world.start(world.job("* * * * *", takes=80), 3, lease=6)
    await world.at(125)
    notes: set[str] = set()
    for instance in world.instances.values():
        answer = await why(instance, moment(minutes(2)[0]))
        assert answer.status is RunStatus.SKIPPED
        how, here = answer.sentences
        assert how == "It was skipped: another run of the job was live when it was due."
        notes.add(here)
    assert notes == {
        "This instance did not run it: another run of the job is live (overlap=skip).",
        "This instance did not run it: another run of the job was live.",
    }


@virtual
async def test_it_was_paused(world: World) -> None:
    await world.start(world.job("* * * * *"), 2)
    await world.at(10)
    first = world["i1"]
    await first.do(first.scheduler.pause("job", note="the disk is full"))
    await world.at(90)
    notes: set[str] = set()
    for instance in world.instances.values():
        how, here, now = await told(instance)
        assert how == "It was not started: the job was paused when an instance asked for it."
        assert now == "The job is paused now, until resumed: the disk is full."
        notes.add(here)
    assert notes == {
        "This instance did not run it: the job is paused in the store.",
        "This instance did not run it: the job was paused in the store.",
    }
    await first.do(first.scheduler.resume("job"))
    assert len(await told(first)) == 2


@virtual
async def test_until_when_it_is_paused_is_told_in_the_zone_of_the_job(world: World) -> None:
    (instance,) = await world.start(world.job("* * * * *", timezone=BERLIN))
    until = datetime(2026, 7, 1, tzinfo=UTC)
    await instance.do(instance.scheduler.pause("job", until=until))
    told_now = (await told(instance))[-1]
    assert told_now == "The job is paused now, until 2026-07-01 02:00:00+02:00."


@virtual
async def test_it_was_missed_and_by_how_much(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *", max_late=30))
    await world.at(30)
    await instance.stop()
    await world.at(300)
    await instance.restart()
    await world.at(301)
    answer = await why(instance)
    assert answer.status is RunStatus.MISSED
    how, here = answer.sentences
    assert how == "It was missed: no instance had started it when it was too late."
    assert here == (
        "This instance did not run it: it was asked for 240.0 s after its slot, which is too late."
    )


@virtual
async def test_it_was_passed_over_by_an_instance_that_was_suspended(world: World) -> None:
    (instance,) = await world.start(world.job("* * * * *", max_late=10))
    await world.at(30)
    instance.suspend(200)
    await world.at(260)
    for slot in minutes(1, 2, 3):
        nobody, here = await told(instance, moment(slot))
        assert nobody.startswith("Nobody asked for it")
        assert here.startswith("This instance did not run it: it was busy or suspended until")


@virtual
async def test_the_store_was_away(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *", max_late=20), lease=6)
    await world.at(50)
    instance.line.cut()
    await world.at(100)
    instance.line.mend()
    await world.at(110)
    nobody, here = await told(instance)
    assert nobody.startswith("Nobody asked for it")
    assert here == (
        "This instance did not run it: the store did not answer in time (connection refused)."
    )


@virtual
async def test_the_store_was_away_until_a_newer_slot_was_due(world: World) -> None:
    (instance,) = await world.start(world.job("* * * * *", max_late=600))
    await world.at(59)
    instance.line.plan("claim", Fate(arrives=False))
    await world.at(61)
    instance.line.cut()
    await world.at(130)
    instance.line.mend()
    await world.at(140)
    here = (await told(instance))[-1]
    assert here == (
        "This instance did not run it: the store was away, and a newer slot is due by now."
    )


@virtual
async def test_there_was_no_room_in_time(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job("1 12 * * *", takes=100, name="long")(scheduler)
        world.job("1 1 12 * * *", name="job", max_late=10)(scheduler)

    (instance,) = await world.start(declare, max_concurrent_runs=1)
    await world.at(90)
    nobody, here = await told(instance, FIRST_SLOT + timedelta(seconds=1))
    assert nobody == (
        "Nobody asked for it: between its slot and its last moment no instance that has the job"
        " was running, reached the store and had room."
    )
    assert here == "This instance did not run it: no place came free here in time."


@virtual
async def test_there_was_no_room_before_a_newer_slot_was_due(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job("1 12 * * *", takes=30, name="long")(scheduler)
        world.job("*/10 * * * * *", name="job")(scheduler)

    (instance,) = await world.start(declare, max_concurrent_runs=1)
    await world.at(95)
    here = (await told(instance, FIRST_SLOT + timedelta(seconds=10)))[-1]
    assert here == (
        "This instance did not run it: no place came free here before a newer slot was due."
    )


# -- a slot that nobody knows of -------------------------------------------------------------------


@virtual
async def test_it_is_not_due_yet(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *"))
    await world.at(10)
    assert await told(instance) == (
        "It is not due yet: the store's clock says 2026-01-05 12:00:10+00:00.",
    )


@virtual
async def test_it_is_not_in_the_schedule_and_what_is_near(world: World) -> None:
    (instance,) = await world.start(world.job("30 13 * * *", timezone=BERLIN))
    answer = await why(instance, FIRST_SLOT)
    (sentence,) = answer.sentences
    assert sentence == (
        "The schedule (at 13:30 every day, Europe/Berlin) has no slot at"
        " 2026-01-05 13:01:00+01:00. The nearest slots are 2026-01-04 13:30:00+01:00 and"
        " 2026-01-05 13:30:00+01:00."
    )
    assert answer.slot == FIRST_SLOT
    assert answer.slot.tzinfo == BERLIN


@virtual
async def test_the_schedule_cannot_be_asked(world: World) -> None:
    class Moody:
        key = "moody"
        fails = False

        def next_after(self, moment: datetime) -> datetime:
            if self.fails:
                raise RuntimeError("not today")
            return moment.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)

    schedule = Moody()
    (instance,) = await world.start(world.job(schedule))
    schedule.fails = True
    (sentence,) = await told(instance)
    schedule.fails = False
    assert sentence.startswith("The schedule of the job cannot be asked: ")
    assert "not today" in sentence


@virtual
async def test_the_job_was_never_registered(world: World) -> None:
    instance = world.add(world.job("* * * * *"))
    assert await told(instance, moment(NOON)) == (
        "No instance has registered the job in this store: is one running, with this prefix?",
    )
    assert world.backend.books == {}


@virtual
async def test_it_was_not_due_before_the_job_was_registered(world: World) -> None:
    await world.at(30)
    (instance,) = await world.start(world.job("* * * * *", timezone=BERLIN))
    (sentence,) = await told(instance, moment(NOON))
    assert sentence == (
        "It was not due: the job was first registered, or its schedule was changed, only at"
        " 2026-01-05 13:00:30+01:00."
    )


@virtual
async def test_it_was_not_due_under_the_schedule_that_stood_then(world: World) -> None:
    old, new = world.add(world.job("0 3 * * *")), world.add(world.job("* * * * *"))
    await old.start()
    await world.at(90)
    await old.stop()
    await new.start()
    (sentence,) = await told(new)
    assert "its schedule was changed, only at 2026-01-05 12:01:30" in sentence


@virtual
async def test_it_is_older_than_what_is_kept(world: World) -> None:
    (instance,) = await world.start(world.job("* * * * *", max_late=1), history_size=2)
    await world.at(10 * 60 + 1)
    old = await told(instance)
    assert old == ("It is older than what is kept of the job, so nothing is known of it any more.",)
    assert (await told(instance, moment(minutes(9)[0])))[0] == "It succeeded."


@virtual
async def test_nobody_has_started_it_yet(world: World) -> None:
    (instance,) = await world.start(
        world.job("1 13 * * *", jitter=20, max_late=40, timezone=BERLIN)
    )
    await instance.stop()
    await world.at(119)
    yet = "Nobody has started it yet; it may still be started until 2026-01-05 13:02:00+01:00."
    assert await told(instance) == (yet,)
    await world.at(121)
    assert await told(instance) != (yet,)


@virtual
async def test_nobody_asked_for_it(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *"))
    await instance.stop()
    await world.at(600)
    (sentence,) = await told(instance)
    assert sentence == (
        "Nobody asked for it: between its slot and its last moment no instance that has the job"
        " was running, reached the store and had room."
    )
