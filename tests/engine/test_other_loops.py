"""A scheduler asked from another event loop than its own, and loops that run tasks eagerly."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from anarchon import MemoryBackend, RunStatus, Scheduler, SchedulerStateError, Trigger
from anarchon.engine.chase import Chase
from tests.support.world import HOUR, NOON

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anarchon.backends.memory import MemoryStore


class NotingLoops(MemoryBackend):
    """Tells on which loops it was connected."""

    def __init__(self) -> None:
        super().__init__()
        self.loops: list[asyncio.AbstractEventLoop] = []

    def connect(self, *, timeout: float) -> MemoryStore:
        self.loops.append(asyncio.get_running_loop())
        return super().connect(timeout=timeout)


async def job() -> str:
    """A job."""
    return "done"


def on_another_loop(call: Callable[[], Awaitable[object]]) -> object:
    """Await something on a loop of its own, in this thread."""

    async def main() -> object:
        return await call()

    return asyncio.run(main())


CALLS: dict[str, Callable[[Scheduler], Awaitable[object]]] = {
    "stop": lambda scheduler: scheduler.stop(timeout=0),
    "run_now": lambda scheduler: scheduler.run_now("job"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_another_loop_may_not_ask_changes_nothing(
    call: Callable[[Scheduler], Awaitable[object]],
) -> None:
    async def story() -> None:
        scheduler = Scheduler(backend=MemoryBackend())
        scheduler.add_job(job, 3600)
        await scheduler.start()
        with pytest.raises(SchedulerStateError, match="another event loop"):
            await asyncio.to_thread(on_another_loop, lambda: call(scheduler))
        assert scheduler.health().running
        assert await scheduler.run_now("job") == "done"
        await scheduler.stop()
        assert not scheduler.health().running
        assert asyncio.get_running_loop().get_task_factory() is None
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(story())


def test_history_is_answered_on_any_loop_by_a_connection_of_that_loop() -> None:
    async def story() -> None:
        backend = NotingLoops()
        scheduler = Scheduler(backend=backend)
        scheduler.add_job(job, 3600)
        async with scheduler:
            await scheduler.run_now("job")
            here = await scheduler.history("job")
            assert set(backend.loops) == {asyncio.get_running_loop()}
            there: Any = await asyncio.to_thread(on_another_loop, lambda: scheduler.history("job"))
            assert len(set(backend.loops)) == 2
        assert there == here
        assert [run.status for run in there] == [RunStatus.SUCCEEDED]

    asyncio.run(story())


# Named so, since type checkers look at the oldest Python that is supported.
EAGER: Any = getattr(asyncio, "eager_task_factory", None)


def test_a_pursuit_that_ends_while_it_is_begun_is_not_kept() -> None:
    async def story() -> None:
        # Before Python 3.12 there are no eager tasks, and what is told of them holds of itself.
        asyncio.get_running_loop().set_task_factory(EAGER)
        backend = MemoryBackend()
        schedulers = [Scheduler(backend=backend, runner=name) for name in ("one", "two")]
        for scheduler in schedulers:
            scheduler.add_job(job, 3600)
            await scheduler.start()
        first, second = (vars(scheduler)["_engine"] for scheduler in schedulers)
        for number in range(5):
            slot = NOON + number * HOUR
            chase = Chase(
                vars(schedulers[0])["_jobs"]["job"], str(slot), Trigger.SCHEDULE, 2 * slot, 2 * slot
            )
            won = first.pursuits.start(chase)
            assert won is not None
            await won
            over = second.pursuits.start(chase)
            assert over is not None
            assert over.done() or EAGER is None, "it was told at once that the run is done"
            await over
            for pursuits in (first.pursuits, second.pursuits):
                assert (pursuits.tasks, pursuits._pursuits) == ({}, {})
        assert [run.status for run in await schedulers[0].history("job")] == ["succeeded"] * 5
        for scheduler in schedulers:
            assert await scheduler.run_now("job") == "done"
            await scheduler.stop()
        assert asyncio.get_running_loop().get_task_factory() is EAGER

    asyncio.run(story())
