"""Checks of cancelling a run for the whole cluster."""

from __future__ import annotations

from anarchon.backends.base import ClaimCode, Outcome, State
from anarchon.testing.conformance.subject import (
    LEASE,
    SLOT,
    A,
    B,
    Level,
    Subject,
    collect,
    expect,
)

END = SLOT + LEASE


async def a_live_run_is_asked_to_end(s: Subject) -> None:
    """Cancelling a running run is ok; its holder goes on until it hears of it."""
    await s.claim()
    expect("cancel", await s.cancel(), ok=True, time=SLOT)
    expect("cancel again", await s.cancel(), ok=True)
    expect("another", await s.claim(token=B), code=ClaimCode.RUNNING, attempt=1)
    expect("finish", await s.finish(outcome=Outcome.CANCELLED), ok=True, waiting=False)
    done = await s.claim(token=B)
    expect("the run", done, state=State.CANCELLED, outcome=Outcome.CANCELLED)
    expect("repeat", await s.finish(outcome=Outcome.CANCELLED), ok=True, waiting=False, attempt=1)


async def a_holder_that_died_ends_cancelled(s: Subject) -> None:
    """A run that was to be cancelled and let its lease end is closed by whoever asks."""
    await s.claim()
    await s.cancel()
    s.at(END)
    done = await s.claim(token=B, seen=1)
    expect("backup", done, code=ClaimCode.DONE, state=State.CANCELLED, outcome=Outcome.CANCELLED)


async def a_run_to_be_cancelled_has_no_grace(s: Subject) -> None:
    """A run that is to be cancelled forbids nothing after its lease end."""
    await s.claim()
    await s.cancel()
    s.at(END - 1)
    expect("before the end", await s.heartbeat(), ok=True)
    s.at(END + LEASE - 2)
    next_slot = await s.claim(END, B)
    expect("next slot", next_slot, code=ClaimCode.OVERLAP, rest=1)


async def an_abandoned_run_is_cancelled_at_once(s: Subject) -> None:
    """A run whose lease is over is closed by the cancelling itself."""
    await s.claim()
    s.at(END)
    expect("cancel", await s.cancel(), ok=True)
    s.at(END - 1)
    done = await s.claim(token=B, seen=1)
    expect("backup", done, code=ClaimCode.DONE, state=State.CANCELLED, outcome=Outcome.CANCELLED)
    expect("former holder", await s.heartbeat(), ok=False)


async def a_waiting_run_is_cancelled_at_once(s: Subject) -> None:
    """A run that waits for its retry is closed at once; the failed attempt keeps its outcome."""
    await s.claim()
    await s.finish(outcome=Outcome.FAILED, delay=5_000)
    expect("cancel", await s.cancel(), ok=True)
    done = await s.claim(token=B, seen=1)
    expect("backup", done, code=ClaimCode.DONE, state=State.CANCELLED, outcome=Outcome.FAILED)


async def what_is_over_is_not_cancelled(s: Subject) -> None:
    """A finished, cancelled or unknown run is not cancelled, and stays what it is."""
    expect("unknown run", await s.cancel(), ok=False, time=SLOT)
    await s.claim()
    await s.finish()
    expect("finished run", await s.cancel(), ok=False)
    expect("the run", await s.claim(token=B), state=State.DONE, outcome=Outcome.SUCCEEDED)


async def a_failure_after_the_cancelling_is_final(s: Subject) -> None:
    """An attempt that fails or times out after cancelling was asked for is not retried."""
    await s.claim()
    await s.cancel()
    expect("finish", await s.finish(outcome=Outcome.FAILED), ok=True, waiting=False, rest=0)
    done = await s.claim(token=B, seen=1)
    expect("the run", done, code=ClaimCode.DONE, state=State.CANCELLED, outcome=Outcome.FAILED)
    expect("repeat", await s.finish(outcome=Outcome.FAILED), ok=True, waiting=False, attempt=1)


async def success_beats_cancelling(s: Subject) -> None:
    """An attempt that succeeds although cancelling was asked for has succeeded."""
    await s.claim()
    await s.cancel()
    await s.finish()
    expect("the run", await s.claim(token=B), state=State.DONE, outcome=Outcome.SUCCEEDED)


async def an_attempt_may_end_cancelled(s: Subject) -> None:
    """An attempt that tells it was cancelled ends the run, asked for or not."""
    await s.claim()
    answer = await s.finish(outcome=Outcome.CANCELLED)
    expect("finish", answer, ok=True, waiting=False)
    done = await s.claim(token=B, seen=1)
    expect("the run", done, code=ClaimCode.DONE, state=State.CANCELLED)


async def what_is_given_back_cancelled_is_over(s: Subject) -> None:
    """A lease given back after cancelling was asked for ends the run, started or not."""
    for number, kind in enumerate((Outcome.RELEASED, Outcome.UNSTARTED)):
        slot = SLOT - number
        await s.claim(slot)
        await s.cancel(slot)
        expect(f"release {kind.name}", await s.release(slot, kind=kind), ok=True)
        done = await s.claim(slot, B, seen=1)
        expect("the run", done, code=ClaimCode.DONE, state=State.CANCELLED, outcome=kind)


async def the_holder_may_still_ask(s: Subject) -> None:
    """A claim repeated by the holder is won again although cancelling was asked for."""
    await s.claim()
    await s.cancel()
    s.at(SLOT + 1_000)
    expect("repeat", await s.claim(token=A), code=ClaimCode.WON, attempt=1, rest=LEASE)
    expect("heartbeat", await s.heartbeat(), ok=True, cancel=True)


CHECKS = collect(
    Level.LEASES,
    a_live_run_is_asked_to_end,
    a_holder_that_died_ends_cancelled,
    a_run_to_be_cancelled_has_no_grace,
    an_abandoned_run_is_cancelled_at_once,
    a_waiting_run_is_cancelled_at_once,
    what_is_over_is_not_cancelled,
    a_failure_after_the_cancelling_is_final,
    success_beats_cancelling,
    an_attempt_may_end_cancelled,
    what_is_given_back_cancelled_is_over,
    the_holder_may_still_ask,
)
