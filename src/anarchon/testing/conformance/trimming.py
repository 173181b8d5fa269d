"""Checks of how long runs are kept, and that what was forgotten is not run again."""

from __future__ import annotations

from anarchon.backends.base import ClaimCode, Outcome, Overlap, State
from anarchon.testing.conformance.subject import (
    SLOT,
    WINDOW,
    B,
    Level,
    Subject,
    collect,
    expect,
    expect_equal,
)

STEP = 1_000


async def _run(s: Subject, run: int | str, moment: int) -> None:
    s.at(moment)
    expect(f"claim of {run}", await s.claim(run), code=ClaimCode.WON)
    await s.finish(run)


async def old_runs_are_forgotten(s: Subject) -> None:
    """Of more than history_size runs, the oldest go; unknown slots up to them are done for good."""
    s.set_terms(history_size=3, keep=STEP)
    for number in range(8):
        await _run(s, SLOT + number * STEP, SLOT + number * STEP)
    forgotten = await s.claim(SLOT + 4 * STEP, B)
    expect("forgotten", forgotten, code=ClaimCode.DONE, settled="floor", state=None, attempt=0)
    never = await s.claim(SLOT + 4 * STEP - 1, B)
    expect("never known", never, code=ClaimCode.DONE, settled="floor")
    remembered = await s.claim(SLOT + 5 * STEP, B)
    expect("remembered", remembered, code=ClaimCode.DONE, settled="", state=State.DONE)
    free = await s.claim(SLOT + 4 * STEP + 1, B)
    expect("a slot after the floor", free, code=ClaimCode.WON)


async def nothing_goes_while_it_can_be_asked_for(s: Subject) -> None:
    """A run stays while a late claim could still ask for it, however small history_size is."""
    s.set_terms(history_size=1, keep=5 * STEP)
    for number in range(6):
        await _run(s, SLOT + number * STEP, SLOT + number * STEP)
    first = await s.claim(SLOT, B)
    expect("the first, at its last moment", first, code=ClaimCode.DONE, settled="")
    await _run(s, SLOT + 6 * STEP, SLOT + 5 * STEP + STEP)
    expect("the first", await s.claim(SLOT, B), code=ClaimCode.DONE, settled="floor")
    expect("the second", await s.claim(SLOT + STEP, B), code=ClaimCode.DONE, settled="")


async def history_is_kept_to_its_size(s: Subject) -> None:
    """History tells of about history_size runs, however many there were."""
    s.set_terms(history_size=3, keep=STEP)
    for number in range(12):
        await _run(s, SLOT + number * STEP, SLOT + number * STEP)
    newest = [str(SLOT + number * STEP) for number in (11, 10, 9)]
    expect_equal("what is told", [run.id for run in await s.runs()], newest)


async def open_runs_are_passed_over(s: Subject) -> None:
    """An open run stays whatever its age; younger ones that are over go."""
    s.set_terms(history_size=2, keep=STEP, overlap=Overlap.ALLOW)
    await s.claim(SLOT)
    for number in range(1, 6):
        await _run(s, SLOT + number * STEP, SLOT + number * STEP)
    open_run = await s.claim(SLOT, B)
    expect("the open run", open_run, code=ClaimCode.RUNNING, attempt=1)
    expect("its holder", await s.heartbeat(SLOT), ok=True)
    expect("a younger one", await s.claim(SLOT + STEP, B), settled="floor")


async def skipped_slots_are_forgotten_too(s: Subject) -> None:
    """A slot that was skipped or paused counts among the runs that are kept."""
    s.set_terms(history_size=2, keep=STEP)
    await s.store.pause(s.job, 0, "")
    for number in range(5):
        s.at(SLOT + number * STEP)
        await s.claim(SLOT + number * STEP)
    forgotten = await s.claim(SLOT + 2 * STEP, B)
    expect("forgotten", forgotten, code=ClaimCode.DONE, settled="floor")
    remembered = await s.claim(SLOT + 3 * STEP, B)
    expect("remembered", remembered, state=State.SKIPPED, outcome=Outcome.PAUSED)


async def manual_runs_have_their_own_floor(s: Subject) -> None:
    """A forgotten manual run settles older manual claims, not slots, and the other way round."""
    s.set_terms(history_size=1, keep=STEP)
    for number in range(4):
        await _run(s, f"m{SLOT + number * STEP}-x", SLOT + number * STEP)
    forgotten = await s.claim(f"m{SLOT + STEP}-other", B)
    expect("older manual", forgotten, code=ClaimCode.DONE, settled="floor")
    expect("older slot", await s.claim(SLOT, B), code=ClaimCode.WON)
    await s.finish(SLOT, B)
    younger = await s.claim(f"m{SLOT + STEP + 1}-other", B)
    expect("younger manual", younger, code=ClaimCode.WON)


async def at_most_ten_go_at_once(s: Subject) -> None:
    """After history_size was made smaller, each new run lets ten old ones go."""
    s.set_terms(keep=STEP)
    for number in range(16):
        await _run(s, SLOT + number, SLOT + number)
    s.set_terms(history_size=2)
    await _run(s, SLOT + 5 * STEP, SLOT + 5 * STEP)
    expect("the tenth", await s.claim(SLOT + 9, B), settled="floor")
    expect("the eleventh", await s.claim(SLOT + 10, B), settled="", state=State.DONE)
    await _run(s, SLOT + 6 * STEP, SLOT + 6 * STEP)
    expect("the eleventh, a run later", await s.claim(SLOT + 10, B), settled="floor")


async def at_most_ten_results_go_at_once(s: Subject) -> None:
    """After history_size was made smaller, each attempt that ends lets ten old results go."""
    for number in range(15):
        await _run(s, SLOT + number, SLOT + number)
    s.set_terms(history_size=2)
    await _run(s, SLOT + 15, SLOT + 15)
    expect_equal("runs told after one run", len(await s.runs()), 16 - 10)
    await _run(s, SLOT + 16, SLOT + 16)
    expect_equal("runs told after the next", len(await s.runs()), 2)


async def trimming_looks_at_128(s: Subject) -> None:
    """Behind 128 open runs nothing is forgotten; what lies among the 128 oldest is, in order."""
    s.set_terms(keep=0, overlap=Overlap.ALLOW, history_size=1_000)
    s.at(SLOT + 200)
    for number in range(131):
        await s.claim(SLOT + number)
    await s.finish(SLOT + 128)
    s.set_terms(history_size=1)
    await s.claim(SLOT + 140, B)
    expect("the 129th", await s.claim(SLOT + 128), settled="", code=ClaimCode.DONE)
    for number in (16, 20, 127):
        await s.finish(SLOT + number)
    s.set_terms(history_size=131)
    await s.claim(SLOT + 141, B)
    expect("the 17th", await s.claim(SLOT + 16), settled="floor")
    expect("the 21st", await s.claim(SLOT + 20), settled="floor")
    expect("the 128th", await s.claim(SLOT + 127), settled="", code=ClaimCode.DONE)
    s.set_terms(history_size=1)
    await s.claim(SLOT + 142, B)
    expect("the 128th, a run later", await s.claim(SLOT + 127), settled="floor")


async def old_age_is_a_reason_too(s: Subject) -> None:
    """With history_ttl, runs older than that go though they are few; younger ones stay."""
    s.set_terms(keep=STEP, history_ttl=5 * STEP)
    await _run(s, SLOT, SLOT)
    await _run(s, SLOT + STEP, SLOT + STEP)
    await _run(s, SLOT + 6 * STEP, SLOT + 6 * STEP)
    expect("older than the ttl", await s.claim(SLOT, B), settled="floor")
    expect("as old as the ttl", await s.claim(SLOT + STEP, B), settled="", state=State.DONE)


async def old_age_spares_what_can_be_asked_for(s: Subject) -> None:
    """With a history_ttl that is shorter than a late claim may come, the run stays that long."""
    s.set_terms(keep=WINDOW, history_ttl=1)
    await _run(s, SLOT, SLOT)
    await _run(s, SLOT + WINDOW, SLOT + WINDOW)
    expect("at its last chance", await s.claim(SLOT, B), code=ClaimCode.DONE, settled="")
    await _run(s, SLOT + WINDOW + 1, SLOT + WINDOW + 1)
    expect("after it", await s.claim(SLOT, B), code=ClaimCode.DONE, settled="floor")


async def the_floor_never_sinks(s: Subject) -> None:
    """An older run that is forgotten later does not lower the floor."""
    s.set_terms(history_size=1, keep=STEP, overlap=Overlap.ALLOW)
    await s.claim(SLOT)
    for number in range(1, 4):
        await _run(s, SLOT + number * STEP, SLOT + number * STEP)
    await s.finish(SLOT)
    await _run(s, SLOT + 4 * STEP, SLOT + 4 * STEP)
    await _run(s, SLOT + 5 * STEP, SLOT + 5 * STEP)
    answer = await s.claim(SLOT + 2 * STEP - 1, B)
    expect("below the floor", answer, code=ClaimCode.DONE, settled="floor")


CHECKS = collect(
    Level.HISTORY,
    old_runs_are_forgotten,
    nothing_goes_while_it_can_be_asked_for,
    history_is_kept_to_its_size,
    open_runs_are_passed_over,
    skipped_slots_are_forgotten_too,
    manual_runs_have_their_own_floor,
    at_most_ten_go_at_once,
    at_most_ten_results_go_at_once,
    trimming_looks_at_128,
    old_age_is_a_reason_too,
    old_age_spares_what_can_be_asked_for,
    the_floor_never_sinks,
)
