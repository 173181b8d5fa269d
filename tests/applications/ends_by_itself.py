"""A program whose main thread ends in the middle of a run, without a word to the scheduler."""

from __future__ import annotations

import asyncio
import logging
import os
import threading

from anarchon import RedisBackend, Run, Scheduler
from examples.work import SECONDS, at_work

logging.basicConfig(level=logging.INFO)
scheduler = Scheduler(
    backend=RedisBackend(redis=os.environ["REDIS_URL"]), lease=float(os.environ["LEASE"])
)
begun = threading.Semaphore(0)


@scheduler.job("0 0 1 1 *")
async def slow(run: Run) -> None:
    """Longer than a lease, and then in need of a thread."""
    with at_work(run):
        begun.release()
        await asyncio.sleep(SECONDS)
        await asyncio.to_thread(str)


@scheduler.job("0 0 1 1 *")
def plain(run: Run) -> None:
    """The same, in a thread."""
    with at_work(run):
        begun.release()
        if run.lost.wait(SECONDS):
            raise RuntimeError("told to stop")


background = scheduler.in_background()
background.start()
for name in ("plain", "slow"):
    threading.Thread(target=background.run_now, args=(name,), daemon=True).start()
    begun.acquire()
