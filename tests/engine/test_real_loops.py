"""REG-07: one scheduler on several event loops, in real time, where nothing is waited for."""

from __future__ import annotations

import asyncio

import pytest

from anarchon import MemoryBackend, Scheduler, SchedulerStateError

scheduler = Scheduler(backend=MemoryBackend())  # made at import, without a loop


@scheduler.job("0 3 * * *")
async def job() -> int:
    """Tell the loop that it runs on."""
    return id(asyncio.get_running_loop())


async def once() -> bool:
    async with scheduler:
        with pytest.raises(SchedulerStateError, match="started already"):
            await scheduler.start()
        return await scheduler.run_now("job") == id(asyncio.get_running_loop())


def test_REG_07_it_works_on_one_loop_after_the_other() -> None:
    assert asyncio.run(once())
    assert asyncio.run(once())


def test_REG_07_asked_on_another_loop_it_says_so() -> None:
    async def story() -> None:
        async with scheduler:
            with pytest.raises(SchedulerStateError, match="another event loop"):
                await asyncio.to_thread(lambda: asyncio.run(scheduler.run_now("job")))

    asyncio.run(story())


def test_the_blocking_history_of_a_stopped_scheduler() -> None:
    runs = asyncio.run(scheduler.history("job"))
    assert {run.status for run in runs} <= {"succeeded"}
