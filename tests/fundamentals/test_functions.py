"""What a job can be."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tests.support.world import World, virtual

if TYPE_CHECKING:
    from anarchon import Run, Scheduler


@virtual
async def test_a_plain_function_runs_in_a_thread(world: World) -> None:
    threads: list[str] = []

    def plain() -> None:
        threads.append(threading.current_thread().name)

    await world.start(lambda scheduler: scheduler.add_job(plain, 60, name="plain"))
    await world.at(61)
    assert threads == ["anarchon-plain"]
    assert await world.statuses("plain") == ["succeeded"]


@virtual
async def test_a_plain_function_may_take_its_time(world: World) -> None:
    def plain(run: Run) -> None:
        with world.diary.entry(run):
            world.time.sleep(30)

    await world.start(lambda s: s.add_job(plain, 3600, name="plain"), 2, lease=6)
    await world.at(3640)
    assert await world.attempts("plain") == ["succeeded"]


@virtual
async def test_the_decorator_gives_the_function_back(world: World) -> None:
    kept: list[object] = []

    async def function(run: Run) -> None: ...

    def declare(scheduler: Scheduler) -> None:
        kept.append(scheduler.job(60, name="job")(function))

    await world.start(declare)
    assert kept == [function]


class Shop:
    """Something with a method that is a job."""

    def __init__(self) -> None:
        self.opened = 0

    async def open(self) -> None:
        self.opened += 1


@virtual
async def test_a_bound_method_is_a_job(world: World) -> None:
    shop = Shop()
    (instance,) = await world.start(lambda scheduler: scheduler.add_job(shop.open, 60))
    await world.at(121)
    assert shop.opened == 2
    assert [job.name for job in instance.scheduler.jobs] == ["Shop.open"]
