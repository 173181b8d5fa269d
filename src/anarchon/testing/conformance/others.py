"""Checks of what a claim does about the job's other open runs: close them, or name them."""

from __future__ import annotations

from anarchon.backends.base import ClaimCode, OpenRun, Outcome, Overlap, State
from anarchon.runs import RunStatus, Trigger
from anarchon.testing.conformance.subject import (
    LEASE,
    SLOT,
    WINDOW,
    B,
    C,
    D,
    Level,
    Subject,
    collect,
    expect,
    expect_equal,
)

END = SLOT + LEASE


async def a_claim_names_what_can_be_had(s: Subject) -> None:
    """Every answer names the other open runs with attempts left, live or not, oldest first."""
    s.set_terms(overlap=Overlap.ALLOW)
    await s.claim(SLOT)
    s.at(SLOT + 4_000)
    await s.claim(SLOT - 7, B)
    await s.claim(f"m{SLOT + 1}-x", C)
    s.at(END + 1)
    named = (
        OpenRun(str(SLOT - 7), 1, 3_999),
        OpenRun(str(SLOT), 1, 0),
        OpenRun(f"m{SLOT + 1}-x", 1, 3_999),
    )
    expect("early", await s.claim(END + 2, D), code=ClaimCode.EARLY, others=named)
    expect("won", await s.claim(END, D), code=ClaimCode.WON, others=named)
    new = OpenRun(str(END), 1, LEASE)
    gone = await s.claim(SLOT - 1, seen=1)
    expect("gone", gone, code=ClaimCode.GONE, others=(*named, new))
    own = await s.claim(f"m{SLOT + 1}-x", C)
    expect("a repeat, without itself", own, others=(*named[:2], new))


async def the_last_attempt_is_not_named(s: Subject) -> None:
    """A live run without an attempt left needs nobody, and is not named."""
    s.set_terms(overlap=Overlap.ALLOW, max_attempts=1)
    await s.claim(SLOT)
    expect("another slot", await s.claim(SLOT - 1, B), code=ClaimCode.WON, others=())


async def a_waiting_run_is_named(s: Subject) -> None:
    """A run that waits for its retry is named with the rest of its wait."""
    await s.claim(SLOT)
    await s.finish(outcome=Outcome.FAILED, delay=7_000)
    s.at(SLOT + 1_000)
    answer = await s.claim(SLOT + 1_000, B)
    expect("another slot", answer, others=(OpenRun(str(SLOT), 1, 6_000),))


async def at_most_ten_are_named(s: Subject) -> None:
    """An answer names at most ten runs, the oldest."""
    s.set_terms(overlap=Overlap.ALLOW)
    for number in range(12):
        await s.claim(SLOT - number)
    s.at(SLOT + 1)
    answer = await s.claim(SLOT + 1)
    oldest = [str(SLOT - number) for number in range(11, 1, -1)]
    expect_equal("the names", [other.run for other in answer.others], oldest)
    started = await s.register()
    expect_equal("the names at a start", len(started.open_runs), 10)


async def runs_of_one_moment_are_named_by_name(s: Subject) -> None:
    """Manual runs asked for at the same moment are named in the order of their names."""
    s.set_terms(overlap=Overlap.ALLOW)
    names = [f"m{SLOT}-{letter}" for letter in "dagcfbe"]
    for name in names:
        await s.claim(name)
    answer = await s.claim(SLOT + 1)
    expect_equal("the names", [other.run for other in answer.others], sorted(names))


async def a_claim_closes_what_nobody_may_take(s: Subject) -> None:
    """Any claim closes other runs whose lease is over and whose attempts are used up."""
    s.set_terms(max_attempts=1)
    await s.claim()
    s.at(END - 1)
    await s.claim(END + 1, B)
    expect("live until its end", await s.run_of(), status=RunStatus.RUNNING)
    s.at(END)
    answer = await s.claim(END + 1, B)
    expect("a claim that is early", answer, code=ClaimCode.EARLY, others=())
    expect("the other run", await s.run_of(), status=RunStatus.INTERRUPTED)


async def a_claim_closes_what_is_out_of_reach(s: Subject) -> None:
    """Any claim closes other runs that may not be taken over any more; up to then it names them."""
    await s.claim()
    s.at(END + WINDOW)
    named = await s.claim(END + WINDOW + 5, B)
    expect("in reach", named, others=(OpenRun(str(SLOT), 1, 0),))
    s.at(END + WINDOW + 1)
    expect("out of reach", await s.claim(END + WINDOW + 5, B), others=())
    s.at(END)
    done = await s.claim(token=C, seen=1)
    expect("the run", done, code=ClaimCode.DONE, state=State.INTERRUPTED)


async def a_claim_closes_what_was_to_be_cancelled(s: Subject) -> None:
    """Any claim closes other runs that were to be cancelled and whose lease is over."""
    await s.claim()
    await s.cancel()
    s.at(END)
    expect("next slot", await s.claim(END, B), code=ClaimCode.WON, others=())
    expect("the run", await s.run_of(), status=RunStatus.CANCELLED)


async def the_longest_forbids(s: Subject) -> None:
    """Of several live runs, the one that forbids longest is what an overlap tells."""
    s.set_terms(overlap=Overlap.ALLOW)
    for slot, begun in ((SLOT - 1, 0), (SLOT - 3, 1_000), (SLOT - 2, 3_000)):
        s.at(SLOT + begun)
        await s.claim(slot)
    s.set_terms(overlap=Overlap.WAIT)
    s.at(SLOT + 4_000)
    answer = await s.claim(SLOT - 10, D, trigger=Trigger.CATCH_UP)
    expect("an older slot", answer, code=ClaimCode.OVERLAP, rest=LEASE - 1_000)


async def under_allow_only_some_are_looked_at(s: Subject) -> None:
    """Under allow, however many runs are open, a claim stays cheap: it looks at no more than 32."""
    s.set_terms(overlap=Overlap.ALLOW, max_attempts=1)
    for number in range(80):
        await s.claim(SLOT - number)
    s.at(END)
    s.set_terms(max_attempts=3)
    expect("next slot", await s.claim(END), code=ClaimCode.WON)
    closed = [run for run in await s.runs(100) if run.status is RunStatus.INTERRUPTED]
    expect_equal("how many were closed", len(closed), 32)


async def a_damaged_record_wins_nothing(s: Subject) -> None:
    """A run whose record makes no sense is told so, and every other call of it is refused."""
    await _damage(s, SLOT)
    expect("claim", await s.claim(), code=ClaimCode.BAD, attempt=0)
    expect("takeover", await s.claim(seen=1), code=ClaimCode.BAD)
    expect("heartbeat", await s.heartbeat(), ok=False)
    expect("finish", await s.finish(), ok=False)
    expect("release", await s.release(), ok=False)
    expect("cancel", await s.cancel(), ok=False)
    s.at(SLOT - 1)
    expect("before the slot", await s.claim(), code=ClaimCode.EARLY)


async def a_damaged_record_counts_as_live(s: Subject) -> None:
    """A run whose record makes no sense forbids others, and is named with attempt 0."""
    await _damage(s, SLOT)
    s.at(SLOT + 1)
    answer = await s.claim(SLOT + 1)
    named = (OpenRun(str(SLOT), 0, LEASE),)
    expect("another slot", answer, code=ClaimCode.OVERLAP, rest=LEASE, others=named)
    expect("a start", await s.register(), open_runs=named)
    expect("forget", await s.store.forget(s.job), ok=False)


async def a_damaged_record_harms_no_other(s: Subject) -> None:
    """Under allow, and in history, the other runs of the job go on."""
    s.set_terms(overlap=Overlap.ALLOW)
    await _damage(s, SLOT)
    s.at(SLOT + 1)
    expect("another slot", await s.claim(SLOT + 1), code=ClaimCode.WON)
    await s.finish(SLOT + 1)
    expect("its history", await s.run_of(SLOT + 1), status=RunStatus.SUCCEEDED)


async def a_damaged_record_ends_late_heartbeats(s: Subject) -> None:
    """After its end a lease is not kept while a record that makes no sense counts as live."""
    await s.claim(SLOT - 1)
    await _damage(s, SLOT)
    s.at(END - 1)
    expect("in time", await s.heartbeat(SLOT - 1), ok=True)
    s.at(END + LEASE)
    expect("late", await s.heartbeat(SLOT - 1), ok=False)


async def _damage(s: Subject, slot: int) -> None:
    if s.damage is not None:
        await s.damage(s.job, str(slot))


CHECKS = collect(
    Level.LEASES,
    a_claim_names_what_can_be_had,
    the_last_attempt_is_not_named,
    a_waiting_run_is_named,
    at_most_ten_are_named,
    runs_of_one_moment_are_named_by_name,
    a_claim_closes_what_nobody_may_take,
    a_claim_closes_what_is_out_of_reach,
    a_claim_closes_what_was_to_be_cancelled,
    the_longest_forbids,
    under_allow_only_some_are_looked_at,
    a_damaged_record_wins_nothing,
    a_damaged_record_counts_as_live,
    a_damaged_record_harms_no_other,
    a_damaged_record_ends_late_heartbeats,
)
