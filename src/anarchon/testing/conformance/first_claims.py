"""Checks of first claims: who wins a run that nobody has yet."""

from __future__ import annotations

from anarchon.backends.base import ClaimCode, Outcome, Overlap, State
from anarchon.runs import Trigger
from anarchon.testing.conformance.subject import (
    GRACE,
    LEASE,
    SLOT,
    WINDOW,
    B,
    Level,
    Subject,
    collect,
    expect,
)

NEXT = SLOT + 5_000
MANUAL = f"m{SLOT}-x1"


async def a_free_slot_is_won(s: Subject) -> None:
    """The first to ask for a slot wins attempt 1 for a lease, with a fence of at least the time."""
    answer = await s.claim()
    expect(
        "first claim",
        answer,
        code=ClaimCode.WON,
        time=SLOT,
        state=State.RUNNING,
        outcome=Outcome.NONE,
        settled="",
        attempt=1,
        rest=LEASE,
        left=True,
        max_attempts=3,
        fence=SLOT,
        trigger=Trigger.SCHEDULE,
        others=(),
    )


async def the_only_attempt_leaves_none(s: Subject) -> None:
    """With one attempt allowed, the winner is told that none is left."""
    s.set_terms(max_attempts=1)
    expect("first claim", await s.claim(), code=ClaimCode.WON, left=False, max_attempts=1)


async def before_its_slot_it_is_early(s: Subject) -> None:
    """Before the slot, by the store's clock, nobody wins; the answer tells how long to wait."""
    s.at(SLOT - 700)
    expect("claim before the slot", await s.claim(), code=ClaimCode.EARLY, rest=700, attempt=0)
    s.at(SLOT - 1)
    expect("claim 1 ms before", await s.claim(), code=ClaimCode.EARLY, rest=1)
    s.at(SLOT)
    expect("claim at the slot", await s.claim(token=B), code=ClaimCode.WON)


async def a_repeat_wins_again(s: Subject) -> None:
    """A claim repeated with its token is won again: same attempt, same fence, the lease renewed."""
    first = await s.claim()
    s.at(SLOT + 4_000)
    repeat = await s.claim()
    expect("repeat", repeat, code=ClaimCode.WON, attempt=1, fence=first.fence, rest=LEASE)
    s.at(SLOT + 4_000 + LEASE - 1)
    other = await s.claim(token=B)
    expect("another, before the renewed end", other, code=ClaimCode.RUNNING, rest=1)


async def a_repeat_in_its_lease_needs_no_deadline(s: Subject) -> None:
    """A repeat within its own lease is won also after the deadline of the claim."""
    await s.claim(deadline=SLOT)
    s.at(SLOT + 1)
    expect("repeat", await s.claim(deadline=SLOT), code=ClaimCode.WON, attempt=1, rest=LEASE)


async def another_is_told_who_runs(s: Subject) -> None:
    """Everybody else is told running: the attempt, the rest of the lease, whether one is left."""
    won = await s.claim()
    s.at(SLOT + 1_000)
    expect(
        "another's claim",
        await s.claim(token=B),
        code=ClaimCode.RUNNING,
        state=State.RUNNING,
        attempt=1,
        rest=LEASE - 1_000,
        left=True,
        max_attempts=3,
        fence=won.fence,
        trigger=Trigger.SCHEDULE,
    )


async def an_unknown_run_has_no_backups(s: Subject) -> None:
    """Who asks as a backup for a run that is not stored is told gone, and nothing is written."""
    expect("backup's claim", await s.claim(seen=1), code=ClaimCode.GONE, attempt=0)
    expect("first claim after it", await s.claim(), code=ClaimCode.WON, attempt=1)


async def the_deadline_is_in_time(s: Subject) -> None:
    """A first claim wins up to its deadline, inclusive."""
    s.at(SLOT + 500)
    expect("claim at its deadline", await s.claim(deadline=SLOT + 500), code=ClaimCode.WON)


async def after_the_deadline_it_is_late(s: Subject) -> None:
    """A claim that arrives after its deadline wins nothing, and forbids nothing to a later one."""
    s.at(SLOT + 501)
    late = await s.claim(deadline=SLOT + 500)
    expect("claim after its deadline", late, code=ClaimCode.LATE, attempt=0)
    again = await s.claim(token=B, deadline=SLOT + 900)
    expect("claim with a later deadline", again, code=ClaimCode.WON, attempt=1)


async def a_paused_job_skips_its_slot(s: Subject) -> None:
    """A scheduled claim of a paused job is told paused, and the slot stays skipped for good."""
    await s.store.pause(s.job, 0, "")
    expect("claim while paused", await s.claim(), code=ClaimCode.PAUSED, attempt=0)
    await s.store.resume(s.job)
    expect(
        "claim after the resume",
        await s.claim(),
        code=ClaimCode.DONE,
        state=State.SKIPPED,
        outcome=Outcome.PAUSED,
        settled="",
    )
    s.at(NEXT)
    expect("next slot", await s.claim(NEXT), code=ClaimCode.WON)


async def a_pause_holds_back_catch_up(s: Subject) -> None:
    """A catch-up claim of a paused job is told paused; nothing is written, so it may run later."""
    await s.store.pause(s.job, 0, "")
    caught_up = await s.claim(trigger=Trigger.CATCH_UP)
    expect("catch-up while paused", caught_up, code=ClaimCode.PAUSED)
    await s.store.resume(s.job)
    resumed = await s.claim(trigger=Trigger.CATCH_UP)
    expect("catch-up after the resume", resumed, code=ClaimCode.WON, trigger=Trigger.CATCH_UP)


async def a_pause_spares_manual_runs(s: Subject) -> None:
    """A manual run of a paused job is won."""
    await s.store.pause(s.job, 0, "")
    expect("manual while paused", await s.claim(MANUAL), code=ClaimCode.WON)


async def a_pause_ends_by_itself(s: Subject) -> None:
    """A pause with an end forbids up to it, and is none from then on."""
    await s.store.pause(s.job, NEXT, "")
    s.at(NEXT - 1)
    expect("just before its end", await s.claim(), code=ClaimCode.PAUSED)
    s.at(NEXT)
    expect("at its end", await s.claim(NEXT), code=ClaimCode.WON)


async def late_comes_before_paused(s: Subject) -> None:
    """A claim that is late is told so also while the job is paused, and leaves no skipped slot."""
    await s.store.pause(s.job, 0, "")
    s.at(SLOT + 1)
    expect("late while paused", await s.claim(deadline=SLOT), code=ClaimCode.LATE)
    await s.store.resume(s.job)
    expect("in time after it", await s.claim(), code=ClaimCode.WON)


async def paused_comes_before_overlap(s: Subject) -> None:
    """A slot that is both paused and overlapped counts as paused."""
    await s.claim()
    await s.store.pause(s.job, 0, "")
    s.at(NEXT)
    expect("next slot", await s.claim(NEXT), code=ClaimCode.PAUSED)


async def a_live_run_skips_the_next_slot(s: Subject) -> None:
    """Under skip, a slot that falls due while another run is live stays skipped for good."""
    await s.claim()
    s.at(NEXT)
    answer = await s.claim(NEXT)
    expect(
        "next slot",
        answer,
        code=ClaimCode.OVERLAP,
        rest=LEASE - 5_000 + GRACE,
        attempt=0,
        state=None,
    )
    await s.finish()
    expect(
        "next slot after the finish",
        await s.claim(NEXT),
        code=ClaimCode.DONE,
        state=State.SKIPPED,
        outcome=Outcome.OVERLAP,
        trigger=Trigger.SCHEDULE,
    )


async def under_skip_catch_up_waits(s: Subject) -> None:
    """Under skip, a catch-up claim that meets a live run is not skipped: it may ask again."""
    await s.claim()
    s.at(NEXT)
    expect("catch-up", await s.claim(NEXT, trigger=Trigger.CATCH_UP), code=ClaimCode.OVERLAP)
    await s.finish()
    again = await s.claim(NEXT, trigger=Trigger.CATCH_UP)
    expect("catch-up after the finish", again, code=ClaimCode.WON)


async def under_skip_manual_runs_are_refused_only_now(s: Subject) -> None:
    """Under skip, a manual claim that meets a live run writes nothing."""
    await s.claim()
    s.at(SLOT + 1)
    expect("manual", await s.claim(MANUAL), code=ClaimCode.OVERLAP)
    await s.finish()
    expect("manual after the finish", await s.claim(MANUAL), code=ClaimCode.WON)


async def a_manual_run_forbids_a_slot(s: Subject) -> None:
    """A live manual run counts as another run of the job; asked before the slot, it is older."""
    await s.claim(MANUAL)
    s.at(NEXT)
    expect("slot", await s.claim(NEXT), code=ClaimCode.OVERLAP, rest=LEASE - 5_000 + GRACE)


async def under_wait_a_slot_waits(s: Subject) -> None:
    """Under wait, a slot that meets a live run is told to wait, and is won when that has ended."""
    s.set_terms(overlap=Overlap.WAIT)
    await s.claim()
    s.at(NEXT)
    expect("next slot", await s.claim(NEXT), code=ClaimCode.OVERLAP, rest=LEASE - 5_000 + GRACE)
    await s.finish()
    expect("next slot after the finish", await s.claim(NEXT), code=ClaimCode.WON)


async def under_allow_runs_overlap(s: Subject) -> None:
    """Under allow, a live run forbids nothing; it is only named."""
    s.set_terms(overlap=Overlap.ALLOW)
    await s.claim()
    s.at(NEXT)
    answer = await s.claim(NEXT)
    expect("next slot", answer, code=ClaimCode.WON, attempt=1)
    expect("who else is open", answer.others[0], run=str(SLOT), attempt=1, rest=LEASE - 5_000)


async def an_older_slot_needs_no_grace(s: Subject) -> None:
    """A younger live run forbids an older slot too, up to its very end and no longer."""
    s.at(NEXT)
    await s.claim(NEXT)
    s.at(NEXT + LEASE - 1)
    older = await s.claim(trigger=Trigger.CATCH_UP)
    expect("older slot", older, code=ClaimCode.OVERLAP, rest=1)
    s.at(NEXT + LEASE)
    older = await s.claim(trigger=Trigger.CATCH_UP)
    expect("older slot at the end", older, code=ClaimCode.WON)


async def backups_come_first(s: Subject) -> None:
    """A run with attempts left forbids younger ones for a grace after its lease end."""
    await s.claim()
    end = SLOT + LEASE
    s.at(end + GRACE - 1)
    younger = await s.claim(end, trigger=Trigger.CATCH_UP)
    expect("younger slot in the grace", younger, code=ClaimCode.OVERLAP, rest=1)
    s.at(end + GRACE)
    younger = await s.claim(end, trigger=Trigger.CATCH_UP)
    expect("younger slot after it", younger, code=ClaimCode.WON)


async def of_one_moment_none_is_older(s: Subject) -> None:
    """A manual run that was asked for at the very slot has no grace before it."""
    await s.claim(MANUAL)
    s.at(SLOT + LEASE)
    expect("the slot of that moment", await s.claim(), code=ClaimCode.WON)


async def no_grace_without_attempts(s: Subject) -> None:
    """A run on its last attempt forbids nothing after its lease end."""
    s.set_terms(max_attempts=1)
    await s.claim()
    s.at(SLOT + LEASE)
    expect("younger slot", await s.claim(SLOT + LEASE), code=ClaimCode.WON)


async def a_look_back_stops_at_since(s: Subject) -> None:
    """A look-back wins nothing at or below the moment the schedule was first known."""
    await s.register()
    s.at(NEXT)
    answer = await s.claim(SLOT, since_applies=True)
    expect("look-back at since", answer, code=ClaimCode.DONE, state=None, settled="since")
    answer = await s.claim(SLOT + 1, since_applies=True)
    expect("look-back just after", answer, code=ClaimCode.WON)


async def since_stops_look_backs_only(s: Subject) -> None:
    """A claim that is no look-back wins also below since."""
    s.at(NEXT)
    await s.register()
    expect("claim below since", await s.claim(), code=ClaimCode.WON)


async def a_manual_run_knows_no_since(s: Subject) -> None:
    """A manual run asked at or before since is won."""
    s.at(NEXT)
    await s.register()
    expect("manual below since", await s.claim(MANUAL, since_applies=True), code=ClaimCode.WON)


async def a_manual_run_is_never_early(s: Subject) -> None:
    """A manual run that was asked by a clock ahead of the store's is won all the same."""
    s.at(SLOT - 3_000)
    answer = await s.claim(MANUAL)
    expect("manual ahead", answer, code=ClaimCode.WON, trigger=Trigger.MANUAL)


async def fences_grow(s: Subject) -> None:
    """Every attempt of a job has a larger fence, also when the store's clock steps back."""
    s.set_terms(overlap=Overlap.ALLOW)
    expect("first", await s.claim(), fence=SLOT)
    expect("another run at once", await s.claim(SLOT - 1), fence=SLOT + 1)
    s.at(SLOT - 60_000)
    expect("after a step back", await s.claim(SLOT - 90_000), fence=SLOT + 2)
    s.at(NEXT)
    expect("later", await s.claim(NEXT), fence=NEXT)


async def jobs_do_not_meet(s: Subject) -> None:
    """Runs of another job forbid nothing and are not named."""
    await s.claim()
    other = Subject(s.store, s.clock)
    expect("same slot of another job", await other.claim(), code=ClaimCode.WON, others=())


async def a_late_slot_ends_with_its_last_chance(s: Subject) -> None:
    """Being late is no state: it is the deadline of each claim that decides, again and again."""
    s.at(SLOT + WINDOW + 1)
    expect("after the last chance", await s.claim(), code=ClaimCode.LATE)
    expect("and again", await s.claim(), code=ClaimCode.LATE)
    expect("with seen", await s.claim(seen=1), code=ClaimCode.GONE)


CHECKS = collect(
    Level.CLAIMS,
    a_free_slot_is_won,
    the_only_attempt_leaves_none,
    before_its_slot_it_is_early,
    a_repeat_wins_again,
    a_repeat_in_its_lease_needs_no_deadline,
    another_is_told_who_runs,
    an_unknown_run_has_no_backups,
    the_deadline_is_in_time,
    after_the_deadline_it_is_late,
    a_paused_job_skips_its_slot,
    a_pause_holds_back_catch_up,
    a_pause_spares_manual_runs,
    a_pause_ends_by_itself,
    late_comes_before_paused,
    paused_comes_before_overlap,
    a_live_run_skips_the_next_slot,
    under_skip_catch_up_waits,
    under_skip_manual_runs_are_refused_only_now,
    a_manual_run_forbids_a_slot,
    under_wait_a_slot_waits,
    under_allow_runs_overlap,
    an_older_slot_needs_no_grace,
    backups_come_first,
    of_one_moment_none_is_older,
    no_grace_without_attempts,
    a_look_back_stops_at_since,
    since_stops_look_backs_only,
    a_manual_run_knows_no_since,
    a_manual_run_is_never_early,
    fences_grow,
    jobs_do_not_meet,
    a_late_slot_ends_with_its_last_chance,
)
