"""An application that tells which signal handlers there are, before and after the start."""

from __future__ import annotations

import logging
import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI

from anarchon import RedisBackend, Run, Scheduler
from examples.work import note

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

logging.basicConfig(level=logging.INFO)
scheduler = Scheduler(backend=RedisBackend(redis=os.environ["REDIS_URL"]))
seen: dict[str, dict[str, str]] = {}


@scheduler.job(0.2)
async def tick(run: Run) -> None:
    """Write down that it ran."""
    note("end", run)


def handlers() -> dict[str, str]:
    """The handler of each signal, in words."""
    return {
        signal.Signals(number).name: str(signal.getsignal(number))
        for number in signal.valid_signals()
        if number in set(signal.Signals)
    }


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Start the scheduler between two looks at the handlers."""
    seen["before"] = handlers()
    async with scheduler:
        seen["after"] = handlers()
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def tell() -> dict[str, dict[str, str]]:
    """What was seen."""
    return seen
