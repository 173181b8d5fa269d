"""A slot that falls due while another run of its job is live: skip, wait, allow."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Literal

import pytest

from anarchon import NoRetry
from tests.support.world import World, minutes, seconds, virtual

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anarchon import Run


@virtual
async def test_OVL_01_a_run_longer_than_its_period_under_skip(world: World) -> None:
    await world.start(world.job(20, takes=50), 3)
    await world.at(20 * 20 + 1)
    assert world.diary.most_at_once("job") == 1
    assert world.slots() == seconds(*range(20, 401, 60))
    assert all(0 <= entry.start - entry.slot < 50 for entry in world.entries)
    statuses = await world.statuses()
    assert statuses == ["succeeded", "skipped", "skipped"] * 6 + ["running", "skipped"]


@virtual
async def test_OVL_01_under_allow(world: World) -> None:
    await world.start(world.job(20, takes=50, overlap="allow"), 3)
    await world.at(20 * 20 + 1)
    assert world.slots() == seconds(*range(20, 401, 20))
    assert world.diary.most_at_once("job") == 3


@virtual
async def test_OVL_01_under_wait(world: World) -> None:
    await world.start(world.job(20, takes=50, overlap="wait", max_late=45), 3)
    await world.at(20 * 20 + 1)
    assert world.diary.most_at_once("job") == 1
    starts = world.offsets()
    # The next one starts as soon as it is known that the last one ended: there at once.
    assert all(later - sooner <= 51.1 for sooner, later in itertools.pairwise(starts))
    assert all(entry.start - entry.slot <= 46_000 for entry in world.entries)
    assert world.slots() == sorted(world.slots())


@virtual
async def test_waiting_slots_start_oldest_first(world: World) -> None:
    (instance,) = await world.start(world.job(10, takes=35, overlap="wait", max_late=600))
    await world.at(300)
    assert world.slots() == seconds(*range(10, 10 * len(world.slots()) + 1, 10))
    assert len(world.slots()) == 9
    await instance.stop(timeout=0)


@virtual
async def test_waiting_for_a_run_elsewhere(world: World) -> None:
    first, second = await world.start(world.job("* * * * *", takes=70, overlap="wait"), 2)
    await world.at(61)
    runner = world[world.entries[0].runner]
    await world.at(190)
    assert world.slots() == minutes(1, 2)
    assert 130 <= world.offsets()[1] <= 131.1
    assert runner in {first, second}


@virtual
async def test_waiting_for_a_dead_holder(world: World) -> None:
    await world.start(world.job("* * * * *", takes=70, overlap="wait", max_attempts=1), 2, lease=6)
    await world.at(115)
    world[world.entries[0].runner].crash()
    await world.at(140)
    assert world.slots() == minutes(1, 2)
    assert 120 <= world.offsets()[1] <= 115 + 6 + 1.1


@virtual
async def test_a_dead_holder_goes_to_its_backups_before_the_next_slot(world: World) -> None:
    # The lease ends just at the next slot: the grace lets the older run go first.
    await world.start(world.job(10, takes=2, max_attempts=2), 2, lease=5)

    def crash_once() -> None:
        world[world.entries[-1].runner].crash()

    await world.at(10.5)
    crash_once()
    await world.at(40)
    assert [(e.slot, e.attempt) for e in world.entries[:2]] == [
        (seconds(10)[0], 1),
        (seconds(10)[0], 2),
    ]


@pytest.mark.parametrize("overlap", ["skip", "wait", "allow"])
@virtual
async def test_a_waiting_retry_is_live(
    world: World, overlap: Literal["skip", "wait", "allow"]
) -> None:
    def fail_first(run: Run) -> None:
        if run.attempt == 1 and run.slot == minutes(1)[0]:
            raise ValueError

    declare = world.job("* * * * *", 1, fail_first, retry_delay=200, overlap=overlap, max_late=30)
    await world.start(declare, 2)
    await world.at(300)
    slots = world.slots()
    assert slots.count(minutes(1)[0]) == 2
    assert (minutes(2)[0] in slots) is (overlap == "allow")


@virtual
async def test_OVL_02_every_ending_frees_the_job(world: World) -> None:
    async def hang() -> None:
        await asyncio.sleep(100)

    class Unwritable(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise RuntimeError("no text")

    async def raise_in_finally() -> None:
        try:
            await asyncio.sleep(0.1)
        finally:
            raise KeyError("in finally")

    async def cancel_itself() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    async def raises(error: BaseException) -> None:
        raise error

    endings: list[Callable[[], Awaitable[object]]] = [
        lambda: asyncio.sleep(0),
        lambda: raises(ValueError("\ud800 is no text")),
        raise_in_finally,
        cancel_itself,
        hang,
        lambda: raises(Unwritable()),
        lambda: raises(asyncio.CancelledError()),
        lambda: raises(SystemExit(3)),
        lambda: raises(NoRetry()),
        lambda: raises(StopAsyncIteration()),
    ]
    count = 0

    async def body(run: Run) -> object:
        nonlocal count
        count += 1
        with world.diary.entry(run):
            await endings[count % len(endings)]()
        return object()

    await world.start(
        lambda s: s.add_job(body, 10, name="job", max_attempts=1, timeout=3), 2, lease=6
    )
    await world.at(2010.5)
    assert count == 201
    assert world.backend.book("job").active == set()
    assert "running" not in await world.statuses(limit=300)


@virtual
async def test_queued_slots_survive_a_short_outage(world: World) -> None:
    instances = await world.start(world.job(10, takes=45, overlap="wait", max_late=600), 2)
    await world.at(41)  # the run of :10 goes on until :55; the slots after it wait
    for instance in instances:
        instance.line.cut()
    await world.at(42)
    for instance in instances:
        instance.line.mend()
    await world.at(250)
    assert world.slots()[:5] == seconds(10, 20, 30, 40, 50)
