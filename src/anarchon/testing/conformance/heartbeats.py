"""Checks of heartbeats: whose lease is kept, and until when."""

from __future__ import annotations

from anarchon.backends.base import ClaimCode, Outcome, Overlap
from anarchon.runs import Trigger
from anarchon.testing.conformance.subject import (
    GRACE,
    LEASE,
    SLOT,
    A,
    B,
    C,
    Level,
    Subject,
    collect,
    expect,
)

END = SLOT + LEASE


async def a_heartbeat_renews_the_lease(s: Subject) -> None:
    """A heartbeat moves the lease end to a lease from now."""
    await s.claim()
    s.at(SLOT + 3_000)
    expect("heartbeat", await s.heartbeat(), ok=True, time=SLOT + 3_000, cancel=False)
    expect("another", await s.claim(token=B), code=ClaimCode.RUNNING, rest=LEASE)


async def a_strange_token_keeps_nothing(s: Subject) -> None:
    """A heartbeat with another token is lost and changes nothing."""
    await s.claim()
    s.at(SLOT + 3_000)
    expect("strange heartbeat", await s.heartbeat(token=B), ok=False, time=SLOT + 3_000)
    expect("another", await s.claim(token=B), code=ClaimCode.RUNNING, rest=LEASE - 3_000)


async def a_heartbeat_makes_no_run(s: Subject) -> None:
    """A heartbeat of a run that the store forgot is lost, and the run stays unknown."""
    expect("heartbeat", await s.heartbeat(), ok=False, cancel=False)
    expect("backup", await s.claim(seen=1), code=ClaimCode.GONE)


async def a_late_heartbeat_is_good_enough(s: Subject) -> None:
    """After the end, while nobody else was given anything, a heartbeat still keeps the lease."""
    await s.claim()
    s.at(END + 20_000)
    expect("late heartbeat", await s.heartbeat(), ok=True)
    expect("another", await s.claim(token=B, seen=1), code=ClaimCode.RUNNING, rest=LEASE)


async def a_late_heartbeat_yields_to_another_run(s: Subject) -> None:
    """After the end, with another run of the job live, a heartbeat is lost."""
    await s.claim()
    s.at(END)
    await s.claim(SLOT - 5_000, C, trigger=Trigger.CATCH_UP)
    expect("heartbeat at the end", await s.heartbeat(), ok=False)
    expect("heartbeat of the other", await s.heartbeat(SLOT - 5_000, C), ok=True)


async def a_late_heartbeat_yields_to_an_older_runs_backups(s: Subject) -> None:
    """After the end, an older run in its grace counts as live for a heartbeat too."""
    s.set_terms(overlap=Overlap.ALLOW)
    await s.claim()
    await s.claim(SLOT - 5_000, B)
    s.set_terms(overlap=Overlap.WAIT)
    s.at(END + GRACE - 1)
    expect("younger, in the grace", await s.heartbeat(), ok=False)
    expect("older", await s.heartbeat(SLOT - 5_000, B), ok=True)


async def a_late_heartbeat_yields_to_no_spent_run(s: Subject) -> None:
    """An older run on its last attempt, its lease over, is no reason to lose a late lease."""
    s.set_terms(overlap=Overlap.ALLOW, max_attempts=1)
    await s.claim()
    await s.claim(SLOT - 5_000, B)
    s.set_terms(overlap=Overlap.WAIT)
    s.at(END)
    expect("heartbeat", await s.heartbeat(), ok=True)


async def in_time_a_heartbeat_asks_nobody(s: Subject) -> None:
    """Before its end a lease is kept whatever else is live; under allow, also after it."""
    s.set_terms(overlap=Overlap.ALLOW)
    await s.claim()
    s.at(SLOT + 5_000)
    await s.claim(SLOT + 5_000, B)
    s.at(END)
    expect("under allow, at the end", await s.heartbeat(), ok=True)
    s.set_terms(overlap=Overlap.SKIP)
    s.at(END + LEASE - 1)
    expect("under skip, before the end", await s.heartbeat(), ok=True)


async def heartbeats_end_with_the_attempt(s: Subject) -> None:
    """After a finish, a release or a takeover, a heartbeat is lost."""
    await s.claim()
    await s.finish(outcome=Outcome.FAILED, delay=5_000)
    expect("after a failure", await s.heartbeat(), ok=False)
    s.at(SLOT + 5_000)
    await s.claim(token=B, seen=1)
    expect("the first holder, after a takeover", await s.heartbeat(token=A), ok=False)
    await s.release(token=B)
    expect("after a release", await s.heartbeat(token=B), ok=False)
    await s.claim(token=C, seen=2)
    await s.finish(token=C)
    expect("after success", await s.heartbeat(token=C), ok=False)


async def a_heartbeat_tells_of_a_cancelling(s: Subject) -> None:
    """Once cancelling was asked for, every heartbeat tells, and still keeps the lease."""
    await s.claim()
    await s.cancel()
    s.at(SLOT + 1_000)
    expect("first", await s.heartbeat(), ok=True, cancel=True)
    expect("second", await s.heartbeat(), ok=True, cancel=True)
    expect("another", await s.claim(token=B), code=ClaimCode.RUNNING, rest=LEASE)


async def a_step_back_makes_no_long_lease(s: Subject) -> None:
    """After the clock stepped back, a lease lasts no longer from now than it was granted for.

    What was put right stays so when the clock is right again.
    """
    await s.claim(SLOT - 60_000)
    s.at(SLOT - 60_000)
    stepped = await s.claim(SLOT - 60_000, B)
    expect("another, after the step", stepped, code=ClaimCode.RUNNING, rest=LEASE)
    s.at(SLOT - 60_000 + LEASE)
    late = await s.claim(SLOT - 60_000, B, seen=1)
    expect("another, a lease later", late, code=ClaimCode.WON, attempt=2)


async def a_step_back_makes_no_long_retry_wait(s: Subject) -> None:
    """After the clock stepped back, a retry wait lasts no longer from now than its delay."""
    await s.claim(SLOT - 60_000)
    await s.finish(SLOT - 60_000, outcome=Outcome.FAILED, delay=7_000)
    s.at(SLOT - 60_000)
    answer = await s.claim(SLOT - 60_000, B, seen=1)
    expect("another, after the step", answer, code=ClaimCode.WAITING, rest=7_000)


async def a_step_back_makes_no_long_overlap(s: Subject) -> None:
    """After the clock stepped back, other runs forbid no longer than their leases were granted."""
    s.at(SLOT + 60_000)
    await s.claim(SLOT + 60_000)
    s.at(SLOT)
    answer = await s.claim(trigger=Trigger.CATCH_UP)
    expect("another slot", answer, code=ClaimCode.OVERLAP, rest=LEASE)


CHECKS = collect(
    Level.LEASES,
    a_heartbeat_renews_the_lease,
    a_strange_token_keeps_nothing,
    a_heartbeat_makes_no_run,
    a_late_heartbeat_is_good_enough,
    a_late_heartbeat_yields_to_another_run,
    a_late_heartbeat_yields_to_an_older_runs_backups,
    a_late_heartbeat_yields_to_no_spent_run,
    in_time_a_heartbeat_asks_nobody,
    heartbeats_end_with_the_attempt,
    a_heartbeat_tells_of_a_cancelling,
    a_step_back_makes_no_long_lease,
    a_step_back_makes_no_long_retry_wait,
    a_step_back_makes_no_long_overlap,
)
