"""Checks of what the store knows of a job itself: its schedule, a pause, its name."""

from __future__ import annotations

from anarchon.backends.base import ClaimCode, OpenRun, Outcome, Overlap, Presence
from anarchon.testing.conformance.subject import (
    LEASE,
    SLOT,
    WINDOW,
    B,
    C,
    Level,
    Subject,
    collect,
    expect,
    expect_equal,
)

LATER = SLOT + 5_000


async def a_new_job_is_known_from_now_on(s: Subject) -> None:
    """The first registration sets since to the store's time."""
    expect(
        "first registration",
        await s.register(),
        time=SLOT,
        since=SLOT,
        changed=True,
        paused_until=None,
        paused_note="",
        open_runs=(),
    )


async def the_same_schedule_keeps_since(s: Subject) -> None:
    """Registering the same schedule again changes nothing."""
    await s.register()
    s.at(LATER)
    expect("second registration", await s.register(), time=LATER, since=SLOT, changed=False)


async def another_schedule_is_known_from_now_on(s: Subject) -> None:
    """A changed schedule moves since to the store's time."""
    await s.register()
    s.at(LATER)
    s.set_terms(schedule_key="0 * * * *")
    expect("changed schedule", await s.register(), since=LATER, changed=True)
    expect("and again", await s.register(), since=LATER, changed=False)


async def registering_tells_of_a_pause(s: Subject) -> None:
    """The pause in force is told with its end (0: until resumed) and note; after a resume, none."""
    await s.store.pause(s.job, 0, "until the move is over")
    expect("open end", await s.register(), paused_until=0, paused_note="until the move is over")
    answer = await s.store.pause(s.job, LATER, "")
    expect("pause", answer, ok=True, time=SLOT)
    expect("with an end", await s.register(), paused_until=LATER, paused_note="")
    expect("resume", await s.store.resume(s.job), ok=True, time=SLOT)
    expect("resumed", await s.register(), paused_until=None, paused_note="")
    expect("resume again", await s.store.resume(s.job), ok=True)


async def registering_names_open_runs(s: Subject) -> None:
    """An instance that starts hears of runs that can still be had."""
    await s.claim()
    s.at(SLOT + 4_000)
    expected = (OpenRun(str(SLOT), 1, LEASE - 4_000),)
    expect("registration", await s.register(), open_runs=expected)
    s.at(SLOT + LEASE + 1)
    expect("its lease over", await s.register(), open_runs=(OpenRun(str(SLOT), 1, 0),))
    await s.claim(token=B, seen=1)
    await s.finish(token=B)
    expect("finished", await s.register(), open_runs=())


async def registering_closes_what_nobody_may_take(s: Subject) -> None:
    """A start closes runs whose lease is over and whose attempts are used up."""
    s.set_terms(max_attempts=1)
    await s.claim()
    s.at(SLOT + LEASE)
    expect("registration", await s.register(), open_runs=())
    s.at(SLOT + LEASE - 1)
    closed = await s.claim(token=B)
    expect("the run", closed, code=ClaimCode.DONE, outcome=Outcome.INTERRUPTED)


async def a_live_job_is_not_forgotten(s: Subject) -> None:
    """While a run is live, forgetting is refused and deletes nothing."""
    await s.claim()
    expect("forget while live", await s.store.forget(s.job), ok=False, time=SLOT)
    expect("the run after it", await s.claim(token=B), code=ClaimCode.RUNNING)
    s.at(SLOT + LEASE - 1)
    expect("forget just before the end", await s.store.forget(s.job), ok=False)
    await s.finish(outcome=Outcome.FAILED, delay=20_000)
    expect("forget during a retry wait", await s.store.forget(s.job), ok=False)


async def a_quiet_job_is_forgotten(s: Subject) -> None:
    """Once no run is live, all that is stored of the job goes: it is new again."""
    await s.register()
    await s.store.pause(s.job, LATER, "")
    await s.claim(f"m{SLOT}-x")
    s.at(SLOT + LEASE)
    expect("forget", await s.store.forget(s.job), ok=True, time=SLOT + LEASE)
    expect_equal("history", await s.runs(), ())
    expect("claim of a known slot", await s.claim(f"m{SLOT}-x"), code=ClaimCode.WON, attempt=1)
    registered = await s.register()
    expect("registration", registered, since=SLOT + LEASE, changed=True, paused_until=None)


async def an_unknown_job_can_be_forgotten(s: Subject) -> None:
    """Forgetting what is not there is no error."""
    expect("forget", await s.store.forget(s.job), ok=True)


async def names_are_free(s: Subject) -> None:
    """Job and runner names may hold any text; no two jobs are taken for one."""
    names = [
        "a",
        "a:b",
        "a:state",
        "state",
        "{a}",
        "a}b",
        "%7B",
        "{",
        " a",
        "a\nb",
        "ä\u2028",
        "a%",
    ]
    subjects = [Subject(s.store, s.clock, job=f"{s.job}{name}") for name in names]
    for subject in subjects:
        answer = await subject.claim(runner="my host:1:{ä}\n x")
        expect(f"job {subject.job!r}", answer, code=ClaimCode.WON, others=())
    for subject in subjects:
        again = await subject.claim(token=B)
        expect(f"job {subject.job!r}", again, code=ClaimCode.RUNNING, attempt=1)
        await subject.finish()


async def the_clock_is_the_stores(s: Subject) -> None:
    """The time is answered with and without a presence, and when the presence is taken away."""
    s.at(SLOT + 3)
    for told in ("alive", "still alive", ""):
        expect_equal("time", await s.store.clock("host:1:a", told, WINDOW), SLOT + 3)
    expect_equal("time for nobody", await s.store.clock("", "", WINDOW), SLOT + 3)


async def a_look_tells_of_a_job(s: Subject) -> None:
    """A look tells of schedule, pause and open runs, and makes nothing known."""
    unknown = await s.store.look(s.job, str(SLOT))
    expect("an unknown job", unknown, time=SLOT, schedule_key="", since=0, floor=0, run=None)
    expect("an unknown job", unknown, paused_until=None, paused_note="", open_runs=(), known=False)
    await s.register()
    await s.store.pause(s.job, LATER, "a note")
    await s.claim(f"m{SLOT}-x")
    s.at(SLOT + 1)
    facts = await s.store.look(s.job, "")
    expect("the job", facts, time=SLOT + 1, since=SLOT, schedule_key=s.terms.schedule_key)
    expect("its pause", facts, paused_until=LATER, paused_note="a note", known=True, run=None)
    expect_equal("open runs", facts.open_runs, (f"m{SLOT}-x",))
    s.at(LATER)
    await s.finish(f"m{SLOT}-x")
    facts = await s.store.look(s.job, "")
    expect("later", facts, paused_until=None, paused_note="", open_runs=())


async def a_look_tells_of_a_run(s: Subject) -> None:
    """A look tells of one run what history tells, and of no other."""
    s.set_terms(overlap=Overlap.ALLOW)
    await s.claim(SLOT + 1000, token=C)
    await s.claim()
    await s.finish(outcome=Outcome.FAILED, error="broken", delay=0)
    s.at(SLOT + 2000)
    await s.claim(token=B, seen=1)
    facts = await s.store.look(s.job, str(SLOT))
    expect_equal("the run", facts.run, await s.run_of(SLOT))
    await s.finish(token=B)
    facts = await s.store.look(s.job, str(SLOT))
    expect_equal("the run when it ended", facts.run, await s.run_of(SLOT))
    expect("a run that nobody knows", await s.store.look(s.job, str(SLOT + 1)), run=None)


async def a_look_tells_of_skipped_and_missed_runs(s: Subject) -> None:
    """What never ran is told as history tells it."""
    await s.claim()
    s.at(LATER)
    await s.claim(LATER, token=B)
    late = SLOT - WINDOW - 1000
    await s.claim(late, token=C)
    for run in (LATER, late):
        facts = await s.store.look(s.job, str(run))
        expect_equal(f"run {run}", facts.run, await s.run_of(run))


async def presence_is_told(s: Subject) -> None:
    """Instances are told with what they said last and when; one that took leave is not."""
    runner = f"{s.job} host:1:ä"
    s.at(SLOT + 5)
    await s.store.clock(runner, '{"a": 1}', WINDOW)
    found = await s.store.instances()
    expect("instances", found, time=SLOT + 5)
    mine = [shown for shown in found.instances if shown.runner == runner]
    expect_equal("presence", mine, [Presence(runner, SLOT + 5, '{"a": 1}')])
    await s.store.clock(runner, "", WINDOW)
    gone = [i for i in (await s.store.instances()).instances if i.runner == runner]
    expect_equal("after leave", gone, [])


async def a_visit_needs_no_start(s: Subject) -> None:
    """A store that is open can be visited, and tells of itself."""
    await s.store.visit()
    facts = await s.store.facts()
    expect_equal("its name is a text", type(facts.server), str)


async def a_changed_overlap_counts_at_once(s: Subject) -> None:
    """What overlap means is said by each claim, not stored with the job."""
    await s.claim()
    s.set_terms(overlap=Overlap.ALLOW)
    s.at(LATER)
    expect("under allow", await s.claim(LATER), code=ClaimCode.WON)


CHECKS = (
    *collect(
        Level.CLAIMS,
        a_new_job_is_known_from_now_on,
        the_same_schedule_keeps_since,
        another_schedule_is_known_from_now_on,
        registering_tells_of_a_pause,
        registering_names_open_runs,
        registering_closes_what_nobody_may_take,
        a_live_job_is_not_forgotten,
        a_quiet_job_is_forgotten,
        an_unknown_job_can_be_forgotten,
        names_are_free,
        the_clock_is_the_stores,
        presence_is_told,
        a_visit_needs_no_start,
        a_changed_overlap_counts_at_once,
    ),
    *collect(
        Level.HISTORY,
        a_look_tells_of_a_job,
        a_look_tells_of_a_run,
        a_look_tells_of_skipped_and_missed_runs,
    ),
)
