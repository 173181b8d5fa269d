"""Timeouts.

What ends an attempt that runs too long, and what does not.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from anarchon import NoRetry
from anarchon.engine.attempt import CANCEL_AGAIN
from tests.behaviour.rows import row
from tests.behaviour.stories import ONCE, plain, waits
from tests.support.world import World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Run, Scheduler


@row(
    "timeout",
    "a coroutine runs too long",
    "It is cancelled. The attempt counts as timed out and is followed by another, as a failure is;"
    " that one has as much time again.",
)
@virtual
async def test_a_coroutine_is_cancelled(world: World) -> None:
    await world.start(world.job(ONCE, takes=100, timeout=5, max_attempts=2), 2)
    await world.at(200)
    assert [entry.how for entry in world.entries] == ["CancelledError", "CancelledError"]
    assert [e.end for e in world.entries] == pytest.approx([e.start + 5000 for e in world.entries])
    assert 0.5 <= waits(world.entries)[0] <= 1.3
    assert await world.attempts() == ["timed-out", "timed-out"]
    assert await world.statuses() == ["timed-out"]


@row(
    "timeout",
    "a plain function runs too long and looks at `run.lost`",
    "It finds it set, and returns; the attempt counts as timed out and is followed by another.",
)
@virtual
async def test_a_thread_that_heeds(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        body = plain(world, 100, heeds=True)
        scheduler.add_job(body, ONCE, name="job", timeout=5, max_attempts=2)

    await world.start(declare, 2)
    await world.at(200)
    assert [round((e.end or 0) - e.start, -2) for e in world.entries] == [5000, 5000]
    assert await world.attempts() == ["timed-out", "timed-out"]


@row(
    "timeout",
    "a plain function runs too long and does not look",
    "It goes on, with its lease and its place among `max_threads`, so nobody starts beside it; the"
    " log names it. When it returns, the attempt counts as timed out.",
)
@virtual
async def test_a_thread_that_does_not_heed(world: World, caplog: pytest.LogCaptureFixture) -> None:
    def declare(scheduler: Scheduler) -> None:
        scheduler.add_job(plain(world, 45), ONCE, name="job", timeout=5, max_attempts=1)
        scheduler.add_job(plain(world, 1), "10 1 12 * * *", name="other")

    (instance,) = await world.start(declare, lease=6, max_threads=1)
    await world.at(104)
    assert await world.statuses() == ["running"]
    assert instance.line.calls["heartbeat"] > 10
    assert world.slots("other") == []
    overdue = [r for r in caplog.records if vars(r).get("event") == "run.overdue"]
    assert [r.__dict__["job"] for r in overdue] == ["job"]
    await world.at(110)
    assert await world.attempts() == ["timed-out"]
    assert len(world.slots("other")) == 1


@row(
    "timeout, overlap",
    'a plain function that never ends, under `"skip"`',
    "Its run stays live, on the instance that has it, and the job's later slots are skipped, until"
    " that instance stops or dies.",
)
@virtual
async def test_a_thread_that_never_ends(world: World) -> None:
    def stuck_once(run: Run) -> None:
        with world.diary.entry(run):
            while run.slot == minutes(1)[0]:
                world.time.sleep(1)

    def declare(scheduler: Scheduler) -> None:
        scheduler.add_job(stuck_once, "* * * * *", name="job", timeout=5, max_attempts=1)

    await world.start(declare, 2, lease=6)
    await world.at(190)
    assert await world.statuses() == ["running", "skipped", "skipped"]
    stuck = world[world.entries[0].runner]
    await stuck.stop(timeout=1)
    await world.at(301)
    assert await world.statuses() == ["interrupted", "skipped", "skipped", "succeeded", "succeeded"]


@row(
    "timeout",
    "a coroutine swallows its cancellation",
    "It goes on, with its lease, and is cancelled again every ten seconds; the log names it once.",
)
@virtual
async def test_a_coroutine_that_swallows_it(world: World, caplog: pytest.LogCaptureFixture) -> None:
    told: list[float] = []

    async def stubborn(run: Run) -> None:
        with world.diary.entry(run):
            while len(told) < 4:
                try:
                    await asyncio.sleep(1000)
                except asyncio.CancelledError:
                    told.append(round(world.time.seconds, 1))

    await world.start(
        lambda s: s.add_job(stubborn, ONCE, name="job", timeout=5, max_attempts=1), 2, lease=6
    )
    await world.at(65 + 3 * CANCEL_AGAIN - 1)
    assert await world.attempts() == ["running"]
    assert len(world.entries) == 1
    await world.at(65 + 3 * CANCEL_AGAIN + 1)
    assert told == [65, 75, 85, 95]
    assert await world.attempts() == ["timed-out"]
    overdue = [r for r in caplog.records if vars(r).get("event") == "run.overdue"]
    assert len(overdue) == 1


@virtual
async def test_a_late_success(world: World) -> None:
    async def body() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(100)
        return "done after all"

    await world.start(lambda s: s.add_job(body, ONCE, name="job", timeout=5, max_attempts=1))
    await world.at(100)
    assert await world.statuses() == ["timed-out"]


@row(
    "timeout",
    "a job that is told of it raises `NoRetry`",
    "The run is over at once, as failed.",
)
@pytest.mark.parametrize("in_thread", [False, True])
@virtual
async def test_no_retry_is_heard_after_a_timeout(world: World, in_thread: bool) -> None:
    calls: list[int] = []

    async def gives_up(run: Run) -> None:
        calls.append(run.attempt)
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            raise NoRetry("not again") from None

    def plainly(run: Run) -> None:
        calls.append(run.attempt)
        while not run.lost.is_set():
            world.time.sleep(0.1)
        raise NoRetry("not again")

    body = plainly if in_thread else gives_up
    await world.start(lambda s: s.add_job(body, ONCE, name="job", timeout=5), 2)
    await world.at(200)
    assert calls == [1]
    assert await world.attempts() == ["failed"]


@row(
    "timeout, max_concurrent_runs",
    "a run waits for a place before it starts",
    "The wait does not count: the time runs from the start of the function.",
)
@virtual
async def test_waiting_for_a_place_is_no_running(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job(ONCE, takes=20, name="long")(scheduler)
        world.job("1 1 12 * * *", takes=4, timeout=5)(scheduler)

    await world.start(declare, max_concurrent_runs=1)
    await world.at(100)
    assert world.offsets() == pytest.approx([80], abs=0.5)
    assert await world.statuses() == ["succeeded"]
