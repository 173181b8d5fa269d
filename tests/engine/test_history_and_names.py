"""What is kept, for how long, and that names do not meet."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from anarchon import RunRefused
from tests.support.world import World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Run, Scheduler


@virtual
async def test_HIS_01_what_is_stored_does_not_grow(world: World) -> None:
    def fail_each_fifth(run: Run) -> None:
        if run.slot // 1000 % 5 == 0:
            raise ValueError

    (instance,) = await world.start(
        world.job(1, then=fail_each_fifth, max_attempts=2, max_late=5), history_size=100
    )
    book = world.backend.book("job")
    largest = 0
    for number in range(1, 15):
        await world.at(number * 50 + 0.5)
        for _ in range(5):
            with contextlib.suppress(RunRefused, ValueError):
                await instance.do(instance.scheduler.run_now("job"))
        if number > 4:
            sizes = (len(book.records), len(book.slots), len(book.attempts), len(book.results))
            largest = max(largest, *sizes)
    assert largest <= 125
    assert len(book.active) <= 2


@virtual
async def test_HIS_03_a_finished_slot_is_known_longer_than_history_lasts(world: World) -> None:
    declare = world.job(10, max_late=60)
    first, second = await world.start(declare, 2, history_size=1, history_ttl=0.001)
    await world.at(5)
    second.suspend(100)
    await world.at(300)
    assert len(world.entries) == len(set(world.slots())) == 29
    assert first.line.calls["claim"] >= 29


@virtual
async def test_HIS_03_a_late_instance_that_asks_for_a_trimmed_slot(world: World) -> None:
    declare = world.job("* * * * *", max_late=600)
    await world.start(declare, history_size=1, history_ttl=0.001)
    await world.at(330)
    for _ in range(3):
        await world["i1"].stop()
        await world["i1"].restart()
    await world.at(350)
    assert world.slots() == minutes(1, 2, 3, 4, 5)


@virtual
async def test_NAM_01_names_that_look_like_keys(world: World) -> None:
    names = ["a", "a:b", "a:state", "state", "{a}", "a b", "ä\n", "%7B"]

    def declare(scheduler: Scheduler) -> None:
        for name in names:
            world.job("* * * * *", name=name)(scheduler)

    await world.start(declare, 2)
    await world.at(121)
    for name in names:
        assert world.slots(name) == minutes(1, 2)
        history = await world.history(name)
        assert [run.job for run in history] == [name, name]


@virtual
async def test_every_moment_that_comes_out_is_aware(world: World) -> None:
    runs: list[Run] = []
    (instance,) = await world.start(
        world.job("* * * * *", then=runs.append, timezone="Asia/Kathmandu")
    )
    await world.at(121)
    assert [run.scheduled_for.utcoffset() is not None for run in runs] == [True, True]
    for record in await instance.scheduler.history("job"):
        assert record.slot.utcoffset() is not None
        for attempt in record.attempts:
            assert attempt.start is not None
            assert attempt.end is not None
            assert attempt.start.utcoffset() is not None
            assert attempt.end.utcoffset() is not None
