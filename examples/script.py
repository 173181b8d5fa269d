"""Jobs in a process of their own: ``python -m examples.script``. Start as many as you like.

Ctrl-C, or SIGTERM, lets what is running end and then ends the process.
"""

from __future__ import annotations

import asyncio
import logging
import os

from anarchon import RedisBackend, Run, Scheduler
from examples.work import SECONDS, at_work

scheduler = Scheduler(
    backend=RedisBackend(redis=os.environ.get("REDIS_URL", "redis://localhost:6379")),
    lease=float(os.environ.get("LEASE", "30")),
    shutdown_timeout=float(os.environ.get("SHUTDOWN_TIMEOUT", "10")),
)


@scheduler.job("* * * * * *")
async def refresh_prices(run: Run) -> None:
    with at_work(run):
        await asyncio.sleep(0)


@scheduler.job("*/2 * * * * *")
def import_orders(run: Run) -> None:
    """A plain function runs in a thread; `run.lost` tells it to stop."""
    with at_work(run):
        if run.lost.wait(SECONDS):
            raise RuntimeError("told to stop")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    scheduler.run()
