"""Many jobs due in the same second, shared by three instances."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from anarchon.testing import Fate
from tests.behaviour.stories import plain, several
from tests.support.world import EVERY_SECOND, World, virtual

if TYPE_CHECKING:
    from typing import Unpack

    from anarchon import Scheduler
    from anarchon.testing import SchedulerSettings


def share_of(world: World, count: int) -> dict[str, int]:
    """How many of the jobs each instance ran, after each has run once."""
    assert sorted(entry.job for entry in world.entries) == sorted(f"job{n}" for n in range(count))
    return Counter(entry.runner for entry in world.entries)


async def burst(
    world: World, *, jobs: int, jitter: float = 0, **settings: Unpack[SchedulerSettings]
) -> list[float]:
    """Let jobs of a quarter of a second fall due; answers how late each was, in order."""
    declared = [world.job(60, 0.25, name=f"job{n}", jitter=jitter) for n in range(jobs)]
    instances = [world.add(several(*declared), **settings) for _ in range(3)]
    rng = random.Random(world.time.rng.random())
    for instance in instances:
        instance.line.chance = lambda _call: Fate(
            there=rng.uniform(0, 0.002), back=rng.uniform(0, 0.002)
        )
    await asyncio.gather(*(instance.start() for instance in instances))
    await world.at(119)
    assert len(share_of(world, jobs)) == 3
    assert {entry.how for entry in world.entries} == {"succeeded"}
    return sorted((entry.start - entry.slot) / 1000 for entry in world.entries)


@virtual
async def test_none_is_late(world: World) -> None:
    late = await burst(world, jobs=1000)
    assert late[-1] < 0.02
    # Three claims and two looks of the backups for each, and one end.
    assert world.sent("claim") <= 5 * 1000
    assert world.sent("finish") == 1000


@virtual
async def test_at_their_bounds_the_instances_are_never_idle(world: World) -> None:
    late = await burst(world, jobs=300, max_concurrent_runs=6)
    # Eighteen at a time: the last twelve cannot start before four seconds have passed.
    assert 4 <= late[-1] < 4.2
    assert all(90 <= share <= 110 for share in share_of(world, 300).values())


@virtual
async def test_jitter_spreads_them(world: World) -> None:
    late = await burst(world, jobs=200, jitter=10)
    in_each_second = Counter(int(seconds) for seconds in late)
    assert max(late) <= 10.02
    assert all(5 <= in_each_second[second] <= 40 for second in range(10))


@virtual
async def test_a_killed_instance_holds_nobody_up(world: World) -> None:
    jobs = [world.job(60, 10, name=f"job{n}") for n in range(100)]
    await world.start(several(*jobs), 3, lease=6)
    await world.at(65)
    dead, share = max(share_of(world, 100).items(), key=lambda item: item[1])
    world[dead].crash()
    await world.at(65 + 6 + 1)
    taken_over = [entry for entry in world.entries if entry.attempt == 2]
    assert len(taken_over) == share
    await world.at(90)
    assert len(world.entries) == 100 + share


@pytest.mark.parametrize("kind", ["async", "plain"])
@virtual
async def test_frequent_jobs_share_what_places_there_are(world: World, kind: str) -> None:
    def declare(scheduler: Scheduler) -> None:
        for number in range(40):
            function = plain(world, 0.1) if kind == "plain" else world.diary.body(0.1)
            scheduler.add_job(function, EVERY_SECOND, name=f"job{number}")

    await world.start(declare, 3, max_concurrent_runs=4, max_threads=4)
    await world.at(10.95)
    # Twelve at a time, a tenth of a second each: all forty are done within the second.
    assert Counter(entry.job for entry in world.entries) == {f"job{n}": 10 for n in range(40)}
    assert max(entry.start - entry.slot for entry in world.entries) < 400
