"""Checks of how attempts end: finished, to be retried, or given back."""

from __future__ import annotations

from anarchon.backends.base import ClaimCode, Outcome, State
from anarchon.runs import Trigger
from anarchon.testing.conformance.subject import (
    LEASE,
    SLOT,
    WINDOW,
    A,
    B,
    C,
    D,
    Level,
    Subject,
    collect,
    expect,
)

END = SLOT + LEASE


async def success_ends_a_run(s: Subject) -> None:
    """A run that succeeded is done, and never won again."""
    won = await s.claim()
    s.at(SLOT + 1_000)
    finished = await s.finish()
    expect("finish", finished, ok=True, time=SLOT + 1_000, waiting=False, attempt=1, rest=0)
    expect(
        "another",
        await s.claim(token=B, seen=1),
        code=ClaimCode.DONE,
        state=State.DONE,
        outcome=Outcome.SUCCEEDED,
        attempt=1,
        left=False,
        fence=won.fence,
        trigger=Trigger.SCHEDULE,
    )
    s.at(END + WINDOW - LEASE)
    expect("the winner itself", await s.claim(token=A), code=ClaimCode.DONE)


async def a_failure_waits_for_its_retry(s: Subject) -> None:
    """A failed attempt with attempts left puts the run back, live until its delay is over."""
    await s.claim()
    s.at(SLOT + 1_000)
    answer = await s.finish(outcome=Outcome.FAILED, delay=5_000)
    expect("finish", answer, ok=True, waiting=True, attempt=1, rest=5_000)
    s.at(SLOT + 2_000)
    expect(
        "another",
        await s.claim(token=B, seen=1),
        code=ClaimCode.WAITING,
        state=State.WAITING,
        outcome=Outcome.FAILED,
        attempt=1,
        rest=4_000,
        left=True,
        max_attempts=3,
    )
    overlapped = await s.claim(SLOT + 2_000, B, trigger=Trigger.CATCH_UP)
    expect("another slot", overlapped, code=ClaimCode.OVERLAP, rest=5_000)
    s.at(SLOT + 6_000)
    expect("the same instance", await s.claim(token=C, seen=1), code=ClaimCode.WON, attempt=2)


async def the_claim_of_a_failed_attempt_wins_no_retry(s: Subject) -> None:
    """A copy of the claim that won the failed attempt does not win the next."""
    await s.claim()
    await s.finish(outcome=Outcome.FAILED, delay=0)
    expect("old claim", await s.claim(), code=ClaimCode.RUNNING, attempt=1, rest=0, left=True)


async def the_last_failure_ends_a_run(s: Subject) -> None:
    """A failure or timeout of the last attempt ends the run with that outcome."""
    s.set_terms(max_attempts=1)
    for number, outcome in enumerate((Outcome.FAILED, Outcome.TIMED_OUT)):
        await s.claim(SLOT - number)
        answer = await s.finish(SLOT - number, outcome=outcome)
        expect(f"finish {outcome.name}", answer, ok=True, waiting=False, attempt=1, rest=0)
        done = await s.claim(SLOT - number, B, seen=1)
        expect("another", done, code=ClaimCode.DONE, state=State.DONE, outcome=outcome)


async def a_timeout_is_retried(s: Subject) -> None:
    """A timed out attempt with attempts left is retried like a failed one."""
    await s.claim()
    answer = await s.finish(outcome=Outcome.TIMED_OUT, delay=2_000)
    expect("finish", answer, ok=True, waiting=True, rest=2_000)


async def no_retry_ends_a_run_at_once(s: Subject) -> None:
    """An attempt that forbids another one ends the run, whatever attempts are left."""
    await s.claim()
    expect("finish", await s.finish(outcome=Outcome.NO_RETRY), ok=True, waiting=False)
    done = await s.claim(token=B, seen=1)
    expect("another", done, code=ClaimCode.DONE, state=State.DONE, outcome=Outcome.NO_RETRY)


async def a_repeated_finish_is_answered_again(s: Subject) -> None:
    """A finish repeated with its token and outcome is answered as before, and changes nothing."""
    await s.claim()
    await s.finish(outcome=Outcome.FAILED, delay=5_000)
    s.at(SLOT + 2_000)
    repeat = await s.finish(outcome=Outcome.FAILED, delay=5_000)
    expect("while waiting", repeat, ok=True, waiting=True, attempt=1, rest=3_000)
    s.at(SLOT + 9_000)
    repeat = await s.finish(outcome=Outcome.FAILED, delay=5_000)
    expect("after the wait", repeat, ok=True, waiting=True, attempt=1, rest=0)
    await s.claim(token=B, seen=1)
    await s.finish(token=B)
    expect("success", await s.finish(token=B), ok=True, waiting=False, attempt=2, rest=0)


async def another_word_is_lost(s: Subject) -> None:
    """A finish by another token, or with another outcome than was written, is lost."""
    await s.claim()
    expect("another's finish", await s.finish(token=B), ok=False, time=SLOT, attempt=0)
    await s.finish()
    expect("another outcome", await s.finish(outcome=Outcome.FAILED), ok=False)
    done = await s.claim(token=B)
    expect("the run", done, state=State.DONE, outcome=Outcome.SUCCEEDED)


async def another_word_while_waiting_is_lost(s: Subject) -> None:
    """A finish with another outcome than the one that put the run back is lost."""
    await s.claim()
    await s.finish(outcome=Outcome.FAILED, delay=5_000)
    expect("success after failure", await s.finish(), ok=False)
    expect("the run", await s.claim(token=B, seen=1), code=ClaimCode.WAITING)


async def a_finish_makes_no_run(s: Subject) -> None:
    """A finish of a run that the store forgot is lost, and the run stays unknown."""
    expect("finish", await s.finish(), ok=False)
    expect("backup", await s.claim(seen=1), code=ClaimCode.GONE)


async def a_late_finish_counts(s: Subject) -> None:
    """A finish after the lease end stands while nobody took the run over."""
    await s.claim()
    s.at(END + 20_000)
    expect("finish", await s.finish(), ok=True, waiting=False)
    expect("backup", await s.claim(token=B, seen=1), code=ClaimCode.DONE, state=State.DONE)


async def a_finish_after_a_takeover_is_lost(s: Subject) -> None:
    """Once another attempt was granted, the former one's finish changes nothing."""
    await s.claim()
    s.at(END)
    await s.claim(token=B, seen=1)
    expect("former finish", await s.finish(token=A), ok=False)
    expect("a third", await s.claim(token=C), code=ClaimCode.RUNNING, attempt=2)
    expect("present finish", await s.finish(token=B), ok=True, attempt=2)


async def what_was_given_back_can_be_had(s: Subject) -> None:
    """A lease given back with attempts left is free at once, for the next attempt."""
    await s.claim()
    s.at(SLOT + 1_000)
    expect("release", await s.release(delay=9_000), ok=True, time=SLOT + 1_000)
    answer = await s.claim(token=B, seen=1)
    expect("backup", answer, code=ClaimCode.WON, attempt=2, max_attempts=3)


async def a_repeated_release_is_answered_again(s: Subject) -> None:
    """A release repeated with its token is answered ok until another attempt is granted."""
    await s.claim()
    await s.release()
    expect("repeat", await s.release(), ok=True)
    expect("another's", await s.release(token=B), ok=False)
    expect("finish after it", await s.finish(), ok=False)
    await s.claim(token=B, seen=1)
    expect("after a takeover", await s.release(token=A), ok=False)
    expect("the new holder", await s.heartbeat(token=B), ok=True)


async def the_last_attempt_given_back_ends_a_run(s: Subject) -> None:
    """A lease given back with no attempt left ends the run as interrupted."""
    s.set_terms(max_attempts=1)
    await s.claim()
    expect("release", await s.release(), ok=True)
    expect("cancel", await s.cancel(), ok=False)
    done = await s.claim(token=B, seen=1)
    expect("backup", done, code=ClaimCode.DONE, state=State.INTERRUPTED, outcome=Outcome.RELEASED)
    expect("repeat", await s.release(), ok=True)


async def only_a_running_attempt_is_given_back(s: Subject) -> None:
    """A release after a finish, or of an unknown run, is lost."""
    expect("unknown", await s.release(), ok=False)
    await s.claim()
    await s.finish()
    expect("after success", await s.release(), ok=False)
    expect("another", await s.claim(token=B), state=State.DONE, outcome=Outcome.SUCCEEDED)


async def an_unstarted_attempt_is_not_counted(s: Subject) -> None:
    """An attempt given back as not started leaves one more; its number is not used again."""
    s.set_terms(max_attempts=1)
    await s.claim()
    expect("release", await s.release(kind=Outcome.UNSTARTED, delay=3_000), ok=True)
    waiting = await s.claim(token=B, seen=1)
    expect("at once", waiting, code=ClaimCode.WAITING, rest=3_000, outcome=Outcome.UNSTARTED)
    expect("what is left", waiting, attempt=1, max_attempts=2, left=True)
    expect("repeat", await s.release(kind=Outcome.UNSTARTED, delay=3_000), ok=True)
    s.at(SLOT + 3_000)
    answer = await s.claim(token=B, seen=1)
    expect("after the delay", answer, code=ClaimCode.WON, attempt=2, max_attempts=2, left=False)


async def an_unstarted_run_has_a_last_chance(s: Subject) -> None:
    """Given back as not started after its last chance, a run is interrupted; at it, it waits."""
    await s.claim()
    await s.release(kind=Outcome.UNSTARTED, delay=0, last=SLOT)
    expect("at the last chance", await s.claim(token=B, seen=1), code=ClaimCode.WON, attempt=2)
    await s.release(token=B, kind=Outcome.UNSTARTED, delay=0, last=SLOT - 1)
    done = await s.claim(token=C, seen=2)
    expect("after it", done, code=ClaimCode.DONE, state=State.INTERRUPTED)
    expect("outcome", done, outcome=Outcome.UNSTARTED)


async def a_retry_is_told_from_a_takeover(s: Subject) -> None:
    """An attempt that the run waited for is won with the outcome of the one before; others none."""
    first = await s.claim()
    expect("the first attempt", first, code=ClaimCode.WON, outcome=Outcome.NONE)
    await s.finish(outcome=Outcome.FAILED, delay=0)
    for what in ("a retry", "and asked again"):
        retry = await s.claim(token=B, seen=1)
        expect(what, retry, code=ClaimCode.WON, attempt=2, outcome=Outcome.FAILED)
    s.at(SLOT + 2 * LEASE)
    taken = await s.claim(token=C, seen=2)
    expect("a takeover", taken, code=ClaimCode.WON, attempt=3, outcome=Outcome.NONE)
    await s.release(token=C, kind=Outcome.UNSTARTED, delay=0)
    again = await s.claim(token=D, seen=3)
    expect("after a release", again, code=ClaimCode.WON, attempt=4, outcome=Outcome.UNSTARTED)


CHECKS = collect(
    Level.LEASES,
    a_retry_is_told_from_a_takeover,
    success_ends_a_run,
    a_failure_waits_for_its_retry,
    the_claim_of_a_failed_attempt_wins_no_retry,
    the_last_failure_ends_a_run,
    a_timeout_is_retried,
    no_retry_ends_a_run_at_once,
    a_repeated_finish_is_answered_again,
    another_word_is_lost,
    another_word_while_waiting_is_lost,
    a_finish_makes_no_run,
    a_late_finish_counts,
    a_finish_after_a_takeover_is_lost,
    what_was_given_back_can_be_had,
    a_repeated_release_is_answered_again,
    the_last_attempt_given_back_ends_a_run,
    only_a_running_attempt_is_given_back,
    an_unstarted_attempt_is_not_counted,
    an_unstarted_run_has_a_last_chance,
)
