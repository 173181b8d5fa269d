"""The winner fences itself, and a stale token changes nothing."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from anarchon.backends.base import JobTerms, Overlap
from anarchon.engine.heartbeat import HeldLease
from tests.support.world import World, virtual

if TYPE_CHECKING:
    from anarchon import Run
    from anarchon.testing import Instance

ONCE = "1 12 * * *"


async def with_a_winner_cut_off(world: World, at: float = 65) -> tuple[Instance, Instance]:
    """Two instances; the one that runs the job is cut off from the store."""
    first, second = await world.start(world.job(ONCE, takes=20), 2, lease=6)
    await world.at(at)
    winner = world[world.entries[0].runner]
    winner.line.cut(silent=True)
    return winner, second if winner is first else first


@virtual
async def test_a_holder_stops_at_nine_tenths_of_its_lease(world: World) -> None:
    winner, _ = await with_a_winner_cut_off(world)
    sent = max(call.at for call in world.executed if call.call == "heartbeat")
    await world.at(100)
    entry = world.entries[0]
    assert entry.runner == winner.name
    assert entry.how == "CancelledError"
    assert entry.end == pytest.approx(sent + 0.9 * 6000, abs=20)


@virtual
async def test_it_has_stopped_before_another_starts(world: World) -> None:
    _, other = await with_a_winner_cut_off(world)
    await world.at(100)
    first, second = world.entries
    assert first.end is not None
    assert second.runner == other.name
    assert first.end < second.start <= first.end + 600 + 250 + 50


@virtual
async def test_what_it_fails_to_finish_is_not_written(world: World) -> None:
    winner, _ = await with_a_winner_cut_off(world)
    await world.at(75)
    winner.line.mend()
    await world.at(120)
    assert await world.attempts() == ["interrupted", "succeeded"]
    assert winner.line.calls["finish"] == 0


@virtual
async def test_the_fenced_holder_is_a_backup_again(world: World) -> None:
    winner, other = await with_a_winner_cut_off(world)
    await world.at(75)
    winner.line.mend()
    assert world.entries[1].runner == other.name
    other.crash()
    await world.at(120)
    assert [entry.runner for entry in world.entries] == [winner.name, other.name, winner.name]
    assert await world.attempts() == ["interrupted", "interrupted", "succeeded"]


@virtual
async def test_a_heartbeat_that_says_lost_stops_the_job(world: World) -> None:
    await world.start(world.job(ONCE, takes=20, max_attempts=1), lease=6)
    await world.at(65)
    del world.backend.book("job").records[str(world.entries[0].slot)]
    await world.at(67.1)
    assert world.entries[0].how == "CancelledError"
    await world.at(120)
    assert len(world.entries) == 1


@virtual
async def test_DUP_03_a_paused_owner_comes_back(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "anarchon.runs")
    await world.start(world.job(ONCE, takes=10, max_attempts=2), 2, lease=2, heartbeat=0.5)
    await world.at(63)
    owner = world[world.entries[0].runner]
    owner.suspend(5)
    await world.at(69)
    assert world.entries[0].how == "CancelledError"
    assert any("could not be renewed" in r.getMessage() for r in caplog.records)
    await world.at(100)
    assert [entry.attempt for entry in world.entries] == [1, 2]
    assert world.entries[1].runner != owner.name
    assert await world.attempts() == ["interrupted", "succeeded"]


@virtual
async def test_a_zombie_whose_body_shields_itself_takes_no_step(world: World) -> None:
    steps: list[float] = []

    async def stubborn(run: Run) -> None:
        with world.diary.entry(run):
            while True:
                try:
                    await asyncio.sleep(0.5)
                    steps.append(world.time.seconds)
                except asyncio.CancelledError:
                    pass  # a body that does not want to hear of it

    await world.start(lambda s: s.add_job(stubborn, ONCE, name="job", max_attempts=1), lease=6)
    await world.at(65)
    world["i1"].suspend(60)
    await world.at(124.9)
    before = len(steps)
    await world.at(200)
    assert len(steps) == before
    assert world.entries[0].end is not None


@virtual
async def test_tasks_of_the_body_are_cancelled_with_it(world: World) -> None:
    ticks: list[float] = []
    kept: list[asyncio.Task[None]] = []

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.5)
            ticks.append(world.time.seconds)

    async def body(run: Run) -> None:
        with world.diary.entry(run):
            kept.append(asyncio.create_task(tick()))
            await asyncio.sleep(60)

    await world.start(lambda s: s.add_job(body, ONCE, name="job", max_attempts=1), lease=6)
    await world.at(65)
    world["i1"].line.cut()
    await world.at(100)
    assert kept[0].cancelled()
    assert max(ticks) <= 65 + 5.4


@virtual
async def test_a_thread_is_told_by_run_lost(world: World) -> None:
    def body(run: Run) -> None:
        with world.diary.entry(run):
            while not run.lost.is_set():
                world.time.sleep(0.5)

    await world.start(lambda s: s.add_job(body, ONCE, name="job"), 2, lease=6)
    await world.at(65)
    winner = world[world.entries[0].runner]
    winner.line.cut()
    await world.at(75)
    first, second = world.entries[:2]
    assert first.end is not None
    assert first.end <= second.start
    assert second.attempt == 2
    assert winner.line.calls["finish"] == 0


@virtual
async def test_nothing_is_sent_for_a_run_once_its_finish_is_sent(world: World) -> None:
    await world.start(world.job("* * * * *", takes=7.1), 3, lease=6)
    await world.at(600)
    finished: set[str] = set()
    for call in world.executed:
        if call.call == "heartbeat":
            assert call.arguments[2] not in finished
        if call.call == "finish":
            finished.add(call.arguments[2])
    assert len(finished) == 9


def test_a_thread_that_wakes_past_its_lease_sees_so_at_once() -> None:
    # Nothing has run yet that could set the signal.
    class Watch:
        now = 100.0

        def boot(self) -> float:
            return self.now

        def wall(self) -> int:
            return 0

    terms = JobTerms("job", "key", Overlap.SKIP, 3, 10_000, 1, 1, 1, 0)
    watch = Watch()
    held = HeldLease(watch, terms, "1", "token", 1, sent=100.0)
    assert not held.stop_signal.is_set()
    watch.now = 109.1
    assert held.stop_signal.is_set()
