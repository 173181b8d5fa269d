"""Checks of takeovers: who may go on with a run whose lease is over."""

from __future__ import annotations

from anarchon.backends.base import ClaimCode, Outcome, Overlap, State
from anarchon.runs import Trigger
from anarchon.testing.conformance.subject import (
    GRACE,
    LEASE,
    SLOT,
    WINDOW,
    A,
    B,
    C,
    Level,
    Subject,
    collect,
    expect,
)

END = SLOT + LEASE


async def a_backup_takes_over_at_the_end(s: Subject) -> None:
    """At its lease end a run goes to the backup that knows of its attempt; not 1 ms before."""
    first = await s.claim()
    s.at(END - 1)
    early = await s.claim(token=B, seen=1)
    expect("just before the end", early, code=ClaimCode.RUNNING, attempt=1, rest=1)
    s.at(END)
    expect(
        "at the end",
        await s.claim(token=B, seen=1, runner="host:2:b"),
        code=ClaimCode.WON,
        attempt=2,
        rest=LEASE,
        left=True,
        max_attempts=3,
        state=State.RUNNING,
        outcome=Outcome.NONE,
        fence=first.fence + LEASE,
        trigger=Trigger.SCHEDULE,
    )
    s.at(END + LEASE)
    last = await s.claim(token=C, seen=2)
    expect("the last attempt", last, code=ClaimCode.WON, attempt=3, left=False)


async def a_takeover_needs_the_attempt(s: Subject) -> None:
    """Who was told of another attempt wins nothing, and is told of the present one to ask again."""
    await s.claim()
    s.at(END)
    for seen in (0, 2):
        answer = await s.claim(token=B, seen=seen)
        expect(f"seen {seen}", answer, code=ClaimCode.RUNNING, attempt=1, rest=0, left=True)
    expect("seen 1", await s.claim(token=B, seen=1), code=ClaimCode.WON, attempt=2)


async def stray_copies_win_nothing(s: Subject) -> None:
    """Copies of calls of an earlier attempt change nothing."""
    await s.claim()
    s.at(END)
    await s.claim(token=B, seen=1)
    s.at(END + 1_000)
    expect("old claim", await s.claim(token=A), code=ClaimCode.RUNNING, attempt=2)
    expect("old finish", await s.finish(token=A), ok=False)
    expect("old release", await s.release(token=A), ok=False)
    expect("old heartbeat", await s.heartbeat(token=A), ok=False)
    answer = await s.claim(token=C, seen=2)
    expect("a third", answer, code=ClaimCode.RUNNING, attempt=2, rest=LEASE - 1_000)
    s.at(END + LEASE)
    expect("old takeover claim", await s.claim(token=B, seen=1), code=ClaimCode.WON, attempt=2)


async def a_takeover_has_a_deadline(s: Subject) -> None:
    """A takeover that arrives after its deadline wins nothing, and may be asked again."""
    await s.claim()
    s.at(END + 10)
    late = await s.claim(token=B, seen=1, deadline=END + 9)
    expect("after the deadline", late, code=ClaimCode.LATE, attempt=1, state=State.RUNNING)
    in_time = await s.claim(token=B, seen=1, deadline=END + 10)
    expect("at the deadline", in_time, code=ClaimCode.WON, attempt=2)


async def a_takeover_waits_for_others(s: Subject) -> None:
    """While another run of the job is live, nobody takes over; under allow, it is no matter."""
    s.set_terms(overlap=Overlap.ALLOW)
    await s.claim()
    s.at(SLOT + 4_000)
    await s.claim(SLOT + 4_000, B)
    s.at(END)
    s.set_terms(overlap=Overlap.SKIP)
    refused = await s.claim(token=C, seen=1)
    expect("takeover", refused, code=ClaimCode.OVERLAP, attempt=1, rest=4_000)
    s.set_terms(overlap=Overlap.ALLOW)
    expect("under allow", await s.claim(token=C, seen=1), code=ClaimCode.WON, attempt=2)


async def without_attempts_a_run_is_interrupted(s: Subject) -> None:
    """A run whose last attempt let its lease end is closed as interrupted by whoever asks."""
    s.set_terms(max_attempts=1)
    won = await s.claim()
    s.at(END)
    expect(
        "backup at the end",
        await s.claim(token=B, seen=1),
        code=ClaimCode.DONE,
        state=State.INTERRUPTED,
        outcome=Outcome.INTERRUPTED,
        attempt=1,
        rest=0,
        left=False,
        max_attempts=0,
        fence=won.fence,
    )
    expect("heartbeat after it", await s.heartbeat(), ok=False)
    expect("finish after it", await s.finish(), ok=False)


async def a_run_may_be_taken_for_a_while(s: Subject) -> None:
    """A run may be taken over up to its reach after its lease end; later it is interrupted."""
    await s.claim()
    s.at(END + WINDOW + 1)
    answer = await s.claim(token=B, seen=1)
    expect("after the reach", answer, code=ClaimCode.DONE, state=State.INTERRUPTED)
    other = Subject(s.store, s.clock)
    await other.claim()
    other.at(END + WINDOW)
    expect("at the reach", await other.claim(token=B, seen=1), code=ClaimCode.WON, attempt=2)


async def attempts_are_counted_by_the_first(s: Subject) -> None:
    """How many attempts a run has is what its first attempt stored, whatever others say later."""
    s.set_terms(max_attempts=2)
    await s.claim()
    s.set_terms(max_attempts=9)
    s.at(END)
    answer = await s.claim(token=B, seen=1)
    expect("takeover", answer, code=ClaimCode.WON, attempt=2, max_attempts=2, left=False)


async def a_takeover_keeps_the_trigger(s: Subject) -> None:
    """Whoever takes over is told what made the run due in the first place."""
    await s.claim(trigger=Trigger.CATCH_UP)
    s.at(END)
    answer = await s.claim(token=B, seen=1, trigger=Trigger.SCHEDULE)
    expect("takeover", answer, code=ClaimCode.WON, trigger=Trigger.CATCH_UP)


async def a_pause_lets_open_runs_go_on(s: Subject) -> None:
    """A pause holds back first claims only: a run that was begun is taken over."""
    await s.claim()
    await s.store.pause(s.job, 0, "")
    s.at(END)
    expect("takeover", await s.claim(token=B, seen=1), code=ClaimCode.WON, attempt=2)


async def the_holder_may_ask_after_its_end(s: Subject) -> None:
    """A claim repeated after its own lease end is won again while nobody else was given any."""
    first = await s.claim()
    s.at(END + 5_000)
    answer = await s.claim()
    expect("repeat", answer, code=ClaimCode.WON, attempt=1, fence=first.fence, rest=LEASE)


async def a_repeat_after_its_end_has_a_deadline(s: Subject) -> None:
    """A claim repeated after its own lease end and its deadline wins nothing."""
    await s.claim()
    s.at(END)
    late = await s.claim(deadline=END - 1)
    expect("repeat", late, code=ClaimCode.RUNNING, attempt=1, rest=0)
    expect("repeat in time", await s.claim(deadline=END), code=ClaimCode.WON, attempt=1)


async def a_repeat_after_its_end_yields(s: Subject) -> None:
    """A claim repeated after its own lease end wins nothing while another run is live."""
    s.set_terms(overlap=Overlap.ALLOW)
    await s.claim()
    s.at(SLOT + 4_000)
    await s.claim(SLOT + 4_000, B)
    s.set_terms(overlap=Overlap.WAIT)
    s.at(END - 1)
    expect("before the end", await s.claim(), code=ClaimCode.WON, rest=LEASE)
    s.at(END + 1_000)
    await s.heartbeat(SLOT + 4_000, B)
    s.at(END + LEASE)
    expect("after it", await s.claim(), code=ClaimCode.RUNNING, attempt=1, rest=0)


async def an_old_run_comes_before_a_young_one(s: Subject) -> None:
    """In the grace after an older run's end, a younger one is not taken over."""
    s.set_terms(overlap=Overlap.ALLOW)
    await s.claim()
    await s.claim(SLOT - 5_000, B)
    s.set_terms(overlap=Overlap.WAIT)
    s.at(END + GRACE - 1)
    young = await s.claim(token=C, seen=1)
    expect("the younger", young, code=ClaimCode.OVERLAP, rest=1)
    old = await s.claim(SLOT - 5_000, C, seen=1)
    expect("the older", old, code=ClaimCode.WON, attempt=2)


CHECKS = collect(
    Level.LEASES,
    a_backup_takes_over_at_the_end,
    a_takeover_needs_the_attempt,
    stray_copies_win_nothing,
    a_takeover_has_a_deadline,
    a_takeover_waits_for_others,
    without_attempts_a_run_is_interrupted,
    a_run_may_be_taken_for_a_while,
    attempts_are_counted_by_the_first,
    a_takeover_keeps_the_trigger,
    a_pause_lets_open_runs_go_on,
    the_holder_may_ask_after_its_end,
    a_repeat_after_its_end_has_a_deadline,
    a_repeat_after_its_end_yields,
    an_old_run_comes_before_a_young_one,
)
