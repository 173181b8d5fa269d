"""Late slots and jitter.

How late a run may start, and when it starts at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.rows import row
from tests.behaviour.stories import ONCE, runs, several
from tests.support.world import EVERY_SECOND, World, minutes, seconds, virtual

if TYPE_CHECKING:
    from anarchon.jobs import Job
    from anarchon.testing import Instance


async def down(world: World, start: float, end: float, schedule: str, **job: object) -> None:
    """Let a job's only instance be down for a while."""
    (instance,) = await world.start(world.job(schedule, **job))  # type: ignore[arg-type]
    await world.at(start)
    await instance.stop()
    await world.at(end)
    await instance.restart()


@row(
    "max_late",
    "no instance is up at the slot, and one starts within it",
    "The run starts late.",
)
@virtual
async def test_started_late(world: World) -> None:
    await down(world, 50, 89, ONCE, max_late=30)
    await world.at(90)
    assert runs(world) == [(60, 1)]
    assert world.offsets() == pytest.approx([89], abs=0.1)


@row(
    "max_late",
    "no instance is up until it is over",
    "The slot is not run; its history says missed once an instance is up again.",
)
@virtual
async def test_started_too_late(world: World) -> None:
    await down(world, 50, 91, ONCE, max_late=30)
    await world.at(100)
    assert world.entries == []
    assert await world.statuses() == ["missed"]


@row(
    "max_late",
    "an instance is blocked or suspended over several slots, and no other is up",
    "When it goes on, it runs only the newest, if that is still in time.",
)
@pytest.mark.parametrize("how", ["stall", "suspend"])
@virtual
async def test_only_the_newest(world: World, how: str) -> None:
    (instance,) = await world.start(world.job(EVERY_SECOND))
    await world.at(10.5)
    (instance.stall if how == "stall" else instance.suspend)(30)
    await world.at(42.5)
    assert world.slots() == seconds(*range(1, 11), 40, 41, 42)


@row(
    "max_late",
    "one of several instances is blocked or suspended",
    "The others run every slot on time.",
)
@virtual
async def test_others_run_them(world: World) -> None:
    first, _second = await world.start(world.job(EVERY_SECOND), 2)
    await world.at(10.5)
    first.suspend(30)
    await world.at(60.5)
    assert world.slots() == seconds(*range(1, 61))
    assert all(entry.start - entry.slot < 20 for entry in world.entries)


@row(
    "max_late=0",
    "an instance starts less than a second after the slot",
    "The run starts: less than one second counts as one.",
)
@virtual
async def test_a_second_is_always_allowed(world: World) -> None:
    await down(world, 50, 60.9, ONCE, max_late=0)
    await world.at(62)
    assert runs(world) == [(60, 1)]


@row(
    "jitter",
    "a slot falls due on several instances",
    "The run starts later by up to so much, by the same on all instances; its slot stays.",
)
@virtual
async def test_jitter_is_the_same_everywhere(world: World) -> None:
    instances = await world.start(world.job("* * * * *", jitter=30), 3)
    await world.at(20 * 60 + 31)
    slots = minutes(*range(1, 21))
    assert world.slots() == slots
    delays = [entry.start - entry.slot for entry in world.entries]
    assert min(delays) >= 0
    assert 20_000 < max(delays) <= 30_010
    for instance in instances:
        drawn = [delay_of(instance, "job", slot) for slot in slots]
        assert delays == pytest.approx(drawn, abs=3)


def delay_of(instance: Instance, job: str, slot: int) -> int:
    """How much of its jitter a slot gets on an instance, in milliseconds."""
    declared: Job = vars(instance.scheduler)["_jobs"][job]
    return declared.delay_of(slot)


@row(
    "jitter, max_late",
    "no instance is up at the delayed moment",
    "Lateness counts from that moment: a run may start until `max_late` after it.",
)
@pytest.mark.parametrize("late", [8, 12])
@virtual
async def test_lateness_counts_from_the_delayed_moment(world: World, late: float) -> None:
    names = [f"job{number}" for number in range(20)]
    jobs = [world.job(ONCE, name=name, jitter=50, max_late=10) for name in names]
    (instance,) = await world.start(several(*jobs))
    delays = {name: delay_of(instance, name, minutes(1)[0]) / 1000 for name in names}
    job, delay = next((job, delay) for job, delay in delays.items() if 20 < delay < 40)
    await instance.stop()
    await world.at(60 + delay + late)
    await instance.restart()
    await world.wait(1)
    assert len(world.diary.of(job)) == (1 if late < 10 else 0)


@row(
    "jitter, overlap",
    "it is longer than the interval",
    "Runs of neighbouring slots may start in another order.",
)
@virtual
async def test_jitter_above_the_interval(world: World) -> None:
    await world.start(world.job(5, jitter=30, overlap="allow"), 2)
    await world.at(600)
    slots = world.slots()
    assert len(slots) == len(set(slots)) > 100
    assert slots != sorted(slots)
