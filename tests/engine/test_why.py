"""Why a run stands where it does: every sentence about one that took place, or is open."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from anarchon import ConfigurationError, RunStatus, UnknownJobError
from anarchon.runs import moment
from tests.engine.asking import FIRST_SLOT, told, why
from tests.support.world import NOON, World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Run, Scheduler

BERLIN = ZoneInfo("Europe/Berlin")
DIED = (
    "It was interrupted: the instance that ran it died, or lost its lease, and no attempt was"
    " left or nobody took it over in time."
)


def fail(_run: Run) -> None:
    """End a body with an error of two lines."""
    raise ValueError("the disk is full\nvery full")


# -- a run that took place -------------------------------------------------------------------------


@virtual
async def test_it_succeeded(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *", takes=3))
    await world.at(90)
    answer = await why(instance)
    assert answer.sentences == (
        "It succeeded.",
        "Attempt 1 began 2026-01-05 12:01:00+00:00 on i1: succeeded after 3 s.",
    )
    assert (answer.job, answer.run, answer.slot) == ("job", str(minutes(1)[0]), FIRST_SLOT)
    assert answer.status is RunStatus.SUCCEEDED
    assert str(answer) == "\n".join(answer.sentences)


@virtual
async def test_it_failed_each_attempt_with_its_error(world: World) -> None:
    (instance,) = await world.start(
        world.job("1 12 * * *", takes=2, then=fail, max_attempts=2, retry_delay=20)
    )
    await world.at(120)
    how, first, second = await told(instance)
    assert how == "It failed."
    assert first == (
        "Attempt 1 began 2026-01-05 12:01:00+00:00 on i1: failed after 2 s:"
        " ValueError: the disk is full"
    )
    assert second.startswith("Attempt 2 began 2026-01-05 12:01:")
    assert second.endswith("on i1: failed after 2 s: ValueError: the disk is full")


@virtual
async def test_it_timed_out(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *", takes=30, timeout=5, max_attempts=1))
    await world.at(90)
    how, attempt = await told(instance)
    assert how == "It failed: its last attempt ran longer than its timeout."
    assert "on i1: timed-out after 5" in attempt


@virtual
async def test_it_was_cancelled(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *", takes=50), lease=3)
    await world.at(65)
    await instance.do(instance.scheduler.cancel("job", FIRST_SLOT))
    await world.at(70)
    answer = await why(instance)
    assert answer.status is RunStatus.CANCELLED
    assert answer.sentences[0] == "It was cancelled."
    assert "on i1: cancelled after" in answer.sentences[1]


@virtual
async def test_it_was_interrupted(world: World) -> None:
    holder, other = await world.start(world.job("* * * * *", takes=30, max_attempts=1), 2, lease=6)
    await world.at(61)
    if world.entries[0].runner != holder.name:
        holder, other = other, holder
    holder.crash()
    await world.at(125)
    answer = await why(other)
    assert answer.status is RunStatus.INTERRUPTED
    assert answer.sentences[0] == DIED
    assert f"on {holder.name}: interrupted after 6 s." in answer.sentences[1]


@virtual
async def test_it_was_taken_over(world: World) -> None:
    await world.start(world.job("1 12 * * *", takes=30), 2, lease=6)
    await world.at(61)
    dead = world.entries[0].runner
    world[dead].crash()
    await world.at(120)
    (alive,) = (instance for instance in world.instances.values() if instance.alive)
    how, first, second = await told(alive)
    assert how == "It succeeded."
    assert f"on {dead}: interrupted after 6 s." in first
    assert second.startswith("Attempt 2 began")
    assert f"on {alive.name}: succeeded after 30 s." in second


@virtual
async def test_it_was_given_back(world: World) -> None:
    first, second = await world.start(world.job("1 12 * * *", takes=20), 2, shutdown_timeout=1)
    await world.at(61)
    if world.entries[0].runner != first.name:
        first, second = second, first
    await first.stop()
    await world.at(130)
    how, given_back, done = await told(second)
    assert how == "It succeeded."
    assert f"on {first.name}: released after" in given_back
    assert f"on {second.name}: succeeded after 20 s." in done


@virtual
async def test_it_ended_and_the_beginning_is_no_longer_known(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *"))
    await world.at(90)
    world.backend.book("job").attempts.clear()
    assert await told(instance) == ("It succeeded.", "Attempt 1: succeeded.")


@virtual
async def test_how_it_ended_is_unknown(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *"))
    await world.at(90)
    book = world.backend.book("job")
    book.results.clear()
    book.records.clear()
    how, attempt = await told(instance)
    assert how == "How it ended is unknown."
    assert attempt.startswith("Attempt 1 began")
    assert attempt.endswith("on i1: unknown.")


# -- a run that is open ----------------------------------------------------------------------------


@virtual
async def test_it_is_running_here_or_elsewhere(world: World) -> None:
    await world.start(world.job("1 12 * * *", takes=30), 2)
    await world.at(65)
    holder = world[world.entries[0].runner]
    (backup,) = (other for other in world.instances.values() if other is not holder)
    common = (
        "It is running.",
        f"Attempt 1 began 2026-01-05 12:01:00+00:00 on {holder.name} and is under way.",
    )
    assert await told(holder) == (*common, "This instance runs attempt 1.")
    after = "This instance stands by to take over after attempt 1."
    assert await told(backup) == (*common, after)
    assert (await why(holder)).status is RunStatus.RUNNING


@virtual
async def test_nobody_stands_by_for_what_is_over(world: World) -> None:
    await world.start(world.job("1 12 * * *", takes=3), 2)
    await world.at(70)  # the loser would ask again only when the lease is over
    for instance in world.instances.values():
        assert len(await told(instance)) == 2


@virtual
async def test_it_waits_for_its_next_attempt(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *", then=fail, retry_delay=40))
    await world.at(65)
    answer = await why(instance)
    assert answer.status is RunStatus.WAITING
    how, attempt, here = answer.sentences
    assert how.startswith("It waits for its next attempt, which may begin from 2026-01-05 12:01:")
    assert how.endswith("+00:00 on.")
    assert "failed after 0 s: ValueError" in attempt
    assert here == "This instance stands by to take over after attempt 1."


@virtual
async def test_it_waits_for_another_run_of_the_job(world: World) -> None:
    (instance,) = await world.start(
        world.job("* * * * *", takes=80, overlap="wait", max_late=50), lease=3
    )
    await world.at(125)
    nobody, here = await told(instance, moment(minutes(2)[0]))
    assert nobody == (
        "Nobody has started it yet; it may still be started until 2026-01-05 12:02:50+00:00."
    )
    assert here == "This instance waits for another run of the job to end, and asks again."


@virtual
async def test_it_waits_for_a_place(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job("1 12 * * *", takes=30, name="long")(scheduler)
        world.job("2 1 12 * * *", name="job")(scheduler)

    (instance,) = await world.start(declare, max_concurrent_runs=1)
    await world.at(65)
    nobody, here = await told(instance, FIRST_SLOT + timedelta(seconds=2))
    assert nobody.startswith("Nobody has started it yet")
    assert here == "This instance is asking for it, or waits for a place to run it."


@virtual
async def test_a_manual_run_by_its_id(world: World) -> None:
    (instance,) = await world.start(world.job("0 3 * * *"))
    await world.at(5.5)
    await instance.do(instance.scheduler.run_now("job"))
    (run,) = await world.history("job")
    answer = await why(instance, run.id)
    assert answer.run == run.id
    assert answer.slot == run.slot
    assert answer.sentences[0] == "It succeeded."
    forgotten = await told(instance, f"m{NOON}-abcdef")
    assert forgotten == (
        "The store has no record of this manual run: it never began, or is forgotten.",
    )


# -- questions -------------------------------------------------------------------------------------


@virtual
async def test_moments_are_told_in_the_zone_of_the_job(world: World) -> None:
    (instance,) = await world.start(world.job("1 13 * * *", timezone=BERLIN))
    await world.at(90)
    answer = await why(instance)
    assert "began 2026-01-05 13:01:00+01:00 on" in answer.sentences[1]
    assert answer.slot.tzinfo == BERLIN
    assert answer.slot == FIRST_SLOT


@virtual
async def test_a_slot_may_be_given_in_any_zone(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *"))
    await world.at(90)
    there = FIRST_SLOT.astimezone(ZoneInfo("Asia/Kathmandu"))
    assert await why(instance, there) == await why(instance, FIRST_SLOT)
    assert await why(instance, str(minutes(1)[0])) == await why(instance, FIRST_SLOT)


@virtual
async def test_a_job_of_the_store_that_is_not_declared_here(world: World) -> None:
    await world.start(world.job("1 13 * * *", timezone=BERLIN))
    await world.at(90)
    stranger = world.add(lambda scheduler: None)
    how, attempt = await told(stranger)
    assert how == "It succeeded."
    assert "began 2026-01-05 12:01:00+00:00 on i1" in attempt
    # Its schedule is not known here, so nothing is said of whether there is such a slot.
    (nobody,) = await told(stranger, FIRST_SLOT + timedelta(seconds=10))
    assert nobody.startswith("The store has no record of it: nobody asked for it, or")


@virtual
async def test_an_unknown_job_is_refused_with_the_nearest(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *", name="report"))
    with pytest.raises(UnknownJobError, match=r"'reprot'.*did you mean 'report'\?"):
        await why(instance, FIRST_SLOT, "reprot")
    with pytest.raises(UnknownJobError, match="there are: report"):
        await why(instance, FIRST_SLOT, "zzz")
    assert list(world.backend.books) == ["report"]


@virtual
async def test_what_is_no_moment_and_no_run_is_refused(world: World) -> None:
    (instance,) = await world.start(world.job("1 12 * * *"))
    naive = FIRST_SLOT.replace(tzinfo=None)
    wrong: list[Any] = [naive, "yesterday", "", "m", "17x !", 5, None]
    for at in wrong:
        with pytest.raises(ConfigurationError, match="aware datetime"):
            await why(instance, at)
    ancient = datetime(1960, 1, 1, tzinfo=UTC)
    for at in (ancient, "9" * 15, f"m{'9' * 15}-abc"):
        with pytest.raises(ConfigurationError):
            await why(instance, at)


@virtual
async def test_what_an_instance_remembers_ends_with_its_process(world: World) -> None:
    await world.start(world.job("1 12 * * *", takes=1), 2)
    await world.at(95)
    winner = world.entries[0].runner
    (loser,) = (other for other in world.instances.values() if other.name != winner)
    assert len(await told(loser)) == 3
    await loser.stop()
    assert len(await told(loser)) == 2
