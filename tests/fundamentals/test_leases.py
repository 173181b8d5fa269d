"""The winner holds a lease; a backup takes over when it dies."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest

from anarchon import NoRetry, Run
from tests.support.world import World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Scheduler


@virtual
async def test_a_lease_is_kept_while_the_job_runs(world: World) -> None:
    await world.start(world.job("0 * * * *", takes=100), 3, lease=6)
    await world.at(3600 + 101)
    (entry,) = world.entries
    assert entry.how == "succeeded"
    assert await world.attempts() == ["succeeded"]


@virtual
async def test_heartbeats_are_sent_every_third_of_the_lease(world: World) -> None:
    await world.start(world.job("0 * * * *", takes=60), 3, lease=6)
    await world.at(3600 + 61)
    assert 28 <= world.sent("heartbeat") <= 30


@virtual
async def test_a_backup_takes_over_when_the_winner_dies(world: World) -> None:
    await world.start(world.job("* * * * *", takes=20), 3, lease=6)
    await world.at(65)
    (first,) = world.entries
    world[first.runner].crash()
    await world.at(65 + 6 + 1)
    second = world.entries[1]
    assert (second.slot, second.attempt) == (first.slot, 2)
    assert second.runner != first.runner
    await world.at(92)
    assert await world.attempts() == ["interrupted", "succeeded"]


@virtual
async def test_a_run_is_not_tried_more_often_than_max_attempts(world: World) -> None:
    def crash(run: Run) -> None:
        world[run.runner].crash()

    await world.start(world.job("0 * * * *", 1, crash, max_attempts=2), 4, lease=6)
    await world.at(3600 + 120)
    assert [entry.attempt for entry in world.entries] == [1, 2]


@virtual
async def test_a_run_whose_last_attempt_died_is_closed_at_the_next_slot(world: World) -> None:
    def crash_once(run: Run) -> None:
        if run.slot == minutes(1)[0]:
            world[run.runner].crash()

    await world.start(world.job(60, 1, crash_once, max_attempts=1), 2, lease=6)
    await world.at(122)
    assert await world.statuses() == ["interrupted", "succeeded"]


@virtual
async def test_a_new_instance_goes_on_with_what_a_dead_cluster_left(world: World) -> None:
    (first,) = await world.start(world.job("0 * * * *", takes=30), lease=6)
    await world.at(3610)
    first.crash()
    await first.restart()
    await world.at(3700)
    assert [entry.attempt for entry in world.entries] == [1, 2]
    assert await world.attempts() == ["interrupted", "succeeded"]


@virtual
async def test_a_failed_attempt_is_tried_again(world: World) -> None:
    def fail_first(run: Run) -> None:
        if run.attempt == 1:
            raise ValueError("not yet")

    await world.start(world.job("0 * * * *", then=fail_first), 3)
    await world.at(3610)
    assert [entry.attempt for entry in world.entries] == [1, 2]
    assert await world.attempts() == ["failed", "succeeded"]


@virtual
async def test_retries_wait_longer_each_time(world: World) -> None:
    def fail(_run: Run) -> None:
        raise ValueError

    await world.start(world.job("0 * * * *", then=fail, max_attempts=4, retry_delay=8))
    await world.at(3700)
    starts = world.offsets()
    waits = [later - earlier for earlier, later in itertools.pairwise(starts)]
    longest = [8, 16, 32]
    assert len(waits) == 3
    for wait, most in zip(waits, longest, strict=True):
        assert most / 2 <= wait <= most + 0.3  # the last part is the spread of backups
    assert await world.statuses() == ["failed"]


@virtual
async def test_no_retry_ends_a_run_at_once(world: World) -> None:
    def give_up(_run: Run) -> None:
        raise NoRetry("there is no such customer")

    await world.start(world.job("0 * * * *", then=give_up), 2)
    await world.at(3700)
    assert len(world.entries) == 1
    assert await world.statuses() == ["failed"]


@virtual
async def test_a_timeout_ends_an_attempt_that_runs_too_long(world: World) -> None:
    await world.start(world.job("0 * * * *", takes=100, timeout=5, max_attempts=1))
    await world.at(3700)
    (entry,) = world.entries
    assert entry.how == "CancelledError"
    assert entry.end == pytest.approx(entry.start + 5000, abs=10)
    assert await world.statuses() == ["timed-out"]


@virtual
async def test_a_job_that_blocks_its_loop_keeps_its_lease(world: World) -> None:
    async def block(run: Run) -> None:
        with world.diary.entry(run):
            world[run.runner].stall(30)
            await asyncio.sleep(0)

    def declare(scheduler: Scheduler) -> None:
        scheduler.add_job(block, "0 * * * *", name="job")

    await world.start(declare, 2, lease=6)
    await world.at(3640)
    assert await world.attempts() == ["succeeded"]
