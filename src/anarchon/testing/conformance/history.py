"""Checks of history: what is told of runs and their attempts."""

from __future__ import annotations

from anarchon.backends.base import Outcome, Overlap
from anarchon.runs import RunStatus, Trigger, moment
from anarchon.testing.conformance.subject import (
    LEASE,
    SLOT,
    WINDOW,
    B,
    Level,
    Subject,
    collect,
    expect,
    expect_equal,
)

END = SLOT + LEASE


async def nothing_is_told_of_an_unknown_job(s: Subject) -> None:
    """A job that never ran has an empty history."""
    expect_equal("history", await s.runs(), ())


async def a_running_run_is_told(s: Subject) -> None:
    """A run shows from its claim on: who runs it since when."""
    s.at(SLOT + 5)
    await s.claim(runner="my host:1:ä x")
    run = await s.run_of()
    expect(
        "the run",
        run,
        job=s.job,
        slot=moment(SLOT),
        trigger=Trigger.SCHEDULE,
        status=RunStatus.RUNNING,
    )
    expect(
        "its attempt",
        run.attempts[0],
        number=1,
        status=RunStatus.RUNNING,
        runner="my host:1:ä x",
        start=moment(SLOT + 5),
        end=None,
        error=None,
    )


async def ended_attempts_are_told(s: Subject) -> None:
    """Each way for an attempt to end shows at the attempt and at the run."""
    s.set_terms(max_attempts=1, overlap=Overlap.ALLOW)
    ends = {
        Outcome.SUCCEEDED: RunStatus.SUCCEEDED,
        Outcome.FAILED: RunStatus.FAILED,
        Outcome.TIMED_OUT: RunStatus.TIMED_OUT,
        Outcome.NO_RETRY: RunStatus.FAILED,
        Outcome.CANCELLED: RunStatus.CANCELLED,
    }
    for number, (outcome, status) in enumerate(ends.items()):
        slot = SLOT - number
        s.at(SLOT)
        await s.claim(slot)
        s.at(SLOT + 2_000)
        error = "" if outcome is Outcome.SUCCEEDED else "Boom: 1 2\n3 ä"
        await s.finish(slot, outcome=outcome, error=error)
        run = await s.run_of(slot)
        expect(f"the run after {outcome.name}", run, status=status)
        expect(
            f"its attempt after {outcome.name}",
            run.attempts[0],
            status=status,
            start=moment(SLOT),
            end=moment(SLOT + 2_000),
            duration=2.0,
            error=error or None,
        )


async def a_retried_run_is_told(s: Subject) -> None:
    """A run that failed once waits; once it succeeds, both attempts are told, in order."""
    await s.claim()
    await s.finish(outcome=Outcome.FAILED, error="no", delay=1_000)
    run = await s.run_of()
    expect("waiting", run, status=RunStatus.WAITING)
    expect("the first attempt", run.attempts[0], status=RunStatus.FAILED, error="no")
    s.at(SLOT + 1_000)
    await s.claim(token=B, seen=1, runner="host:2:b")
    expect("running again", await s.run_of(), status=RunStatus.RUNNING)
    await s.finish(token=B)
    run = await s.run_of()
    expect("succeeded", run, status=RunStatus.SUCCEEDED)
    expect_equal("attempts", [a.number for a in run.attempts], [1, 2])
    expect_equal("runners", [a.runner for a in run.attempts], ["host:1:a", "host:2:b"])
    expect("the second attempt", run.attempts[1], start=moment(SLOT + 1_000))


async def a_takeover_is_told(s: Subject) -> None:
    """An attempt that was taken over is interrupted, at its lease end."""
    await s.claim()
    s.at(END + 500)
    await s.claim(token=B, seen=1)
    run = await s.run_of()
    expect("the run", run, status=RunStatus.RUNNING)
    first, second = run.attempts
    expect("the first attempt", first, status=RunStatus.INTERRUPTED, end=moment(END))
    expect("the second attempt", second, status=RunStatus.RUNNING, start=moment(END + 500))


async def an_abandoned_run_is_told(s: Subject) -> None:
    """A run that nobody may take over shows as interrupted, its attempt ended at the lease end."""
    s.set_terms(max_attempts=1)
    await s.claim()
    s.at(END + 500)
    await s.claim(token=B, seen=1)
    run = await s.run_of()
    expect("the run", run, status=RunStatus.INTERRUPTED)
    expect("its attempt", run.attempts[0], status=RunStatus.INTERRUPTED, end=moment(END))


async def an_abandoned_wait_is_told(s: Subject) -> None:
    """A run that waited for a retry which nobody took is interrupted; its attempt has failed."""
    await s.claim()
    await s.finish(outcome=Outcome.FAILED, delay=1_000)
    s.at(SLOT + 1_001 + WINDOW)
    await s.claim(token=B, seen=1)
    run = await s.run_of()
    expect("the run", run, status=RunStatus.INTERRUPTED)
    expect_equal("attempts", [a.status for a in run.attempts], [RunStatus.FAILED])


async def what_was_given_back_is_told(s: Subject) -> None:
    """A lease given back shows as released, and the run as waiting."""
    await s.claim()
    s.at(SLOT + 1_000)
    await s.release()
    run = await s.run_of()
    expect("the run", run, status=RunStatus.WAITING)
    attempt = run.attempts[0]
    expect("its attempt", attempt, status=RunStatus.RELEASED, end=moment(SLOT + 1_000))
    other = Subject(s.store, s.clock)
    await other.claim()
    await other.release(kind=Outcome.UNSTARTED)
    unstarted = (await other.run_of()).attempts[0]
    expect("an attempt that was not started", unstarted, status=RunStatus.RELEASED)


async def a_cancelled_wait_is_told(s: Subject) -> None:
    """A run cancelled while it waited is cancelled; its attempt has failed."""
    await s.claim()
    await s.finish(outcome=Outcome.FAILED)
    await s.cancel()
    run = await s.run_of()
    expect("the run", run, status=RunStatus.CANCELLED)
    expect_equal("attempts", [a.status for a in run.attempts], [RunStatus.FAILED])


async def a_cancelled_holder_is_told(s: Subject) -> None:
    """A run cancelled after its holder died is cancelled, as is its attempt, at its lease end."""
    await s.claim()
    s.at(END + 700)
    await s.cancel()
    run = await s.run_of()
    expect("the run", run, status=RunStatus.CANCELLED)
    expect("its attempt", run.attempts[0], status=RunStatus.CANCELLED, end=moment(END))


async def what_never_ran_is_told(s: Subject) -> None:
    """Skipped, paused and missed slots are told, without attempts."""
    await s.claim()
    await s.claim(SLOT - 1, B)
    await s.store.pause(s.job, 0, "")
    await s.claim(SLOT - 2, B)
    await s.claim(SLOT - WINDOW - 3, B)
    statuses = [(run.status, len(run.attempts)) for run in await s.runs()]
    wanted = [
        (RunStatus.RUNNING, 1),
        (RunStatus.SKIPPED, 0),
        (RunStatus.PAUSED, 0),
        (RunStatus.MISSED, 0),
    ]
    expect_equal("statuses, newest first", statuses, wanted)


async def a_slot_is_missed_after_its_last_chance(s: Subject) -> None:
    """Late is not missed: a slot shows as missed once nobody may ask for it any more."""
    s.at(SLOT + WINDOW)
    await s.claim(deadline=SLOT)
    expect_equal("late", await s.runs(), ())
    s.at(SLOT + WINDOW + 1)
    await s.claim(deadline=SLOT)
    s.at(SLOT + WINDOW + 9)
    await s.claim(token=B, deadline=SLOT)
    expect_equal("missed", [run.status for run in await s.runs()], [RunStatus.MISSED])


async def triggers_are_told(s: Subject) -> None:
    """Each run tells what made it due."""
    s.set_terms(overlap=Overlap.ALLOW)
    await s.claim(SLOT)
    await s.claim(SLOT - 1, trigger=Trigger.CATCH_UP)
    await s.claim(f"m{SLOT - 2}-x")
    runs = await s.runs()
    wanted = [Trigger.SCHEDULE, Trigger.CATCH_UP, Trigger.MANUAL]
    expect_equal("triggers", [run.trigger for run in runs], wanted)
    expect("the manual run", runs[2], id=f"m{SLOT - 2}-x", slot=moment(SLOT - 2))


async def the_newest_come_first(s: Subject) -> None:
    """History is by slot, newest first, and no longer than asked for."""
    s.set_terms(overlap=Overlap.ALLOW)
    for number in (3, 1, 4, 0, 2):
        await s.claim(SLOT - number)
        await s.finish(SLOT - number)
    newest = [str(SLOT - number) for number in range(5)]
    expect_equal("all", [run.id for run in await s.runs()], newest)
    limited = [run.id for run in await s.runs(limit=2)]
    expect_equal("how many were asked for", len(limited), 2)


async def repeats_are_told_once(s: Subject) -> None:
    """Repeated calls leave one attempt with one result."""
    for _ in range(3):
        await s.claim()
    for step in range(3):
        s.at(SLOT + step)
        await s.finish(error="")
    runs = await s.runs()
    expect_equal("runs", len(runs), 1)
    expect_equal("attempts", len(runs[0].attempts), 1)
    expect("the attempt", runs[0].attempts[0], end=moment(SLOT))


CHECKS = collect(
    Level.HISTORY,
    nothing_is_told_of_an_unknown_job,
    a_running_run_is_told,
    ended_attempts_are_told,
    a_retried_run_is_told,
    a_takeover_is_told,
    an_abandoned_run_is_told,
    an_abandoned_wait_is_told,
    what_was_given_back_is_told,
    a_cancelled_wait_is_told,
    a_cancelled_holder_is_told,
    what_never_ran_is_told,
    a_slot_is_missed_after_its_last_chance,
    triggers_are_told,
    the_newest_come_first,
    repeats_are_told_once,
)
