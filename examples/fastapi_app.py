"""A FastAPI application with jobs. Start it with several workers, and each run takes place in one.

uvicorn --workers 3 examples.fastapi_app:app
gunicorn -w 4 -k uvicorn_worker.UvicornWorker examples.fastapi_app:app
uvicorn --reload examples.fastapi_app:app
"""

from __future__ import annotations

import asyncio
import logging
import os

from fastapi import FastAPI, HTTPException

from anarchon import RedisBackend, Run, RunRefused, Scheduler, UnknownJobError
from examples.work import SECONDS, at_work

logging.basicConfig(level=logging.INFO)

scheduler = Scheduler(
    backend=RedisBackend(redis=os.environ.get("REDIS_URL", "redis://localhost:6379")),
    lease=float(os.environ.get("LEASE", "30")),
    shutdown_timeout=float(os.environ.get("SHUTDOWN_TIMEOUT", "10")),
)


@scheduler.job("* * * * * *")
async def refresh_prices(run: Run) -> str:
    with at_work(run):
        return "refreshed"


@scheduler.job("*/2 * * * * *")
async def send_newsletter(run: Run) -> None:
    with at_work(run):
        await asyncio.sleep(SECONDS)


app = FastAPI(lifespan=scheduler.lifespan)


@app.get("/")
async def about() -> dict[str, object]:
    return {"pid": os.getpid(), "running": scheduler.health().running}


@app.post("/jobs/{name}")
async def run_now(name: str) -> dict[str, object]:
    try:
        result = await scheduler.run_now(name)
    except UnknownJobError as error:
        raise HTTPException(404, str(error)) from error
    except RunRefused as error:
        raise HTTPException(409, str(error)) from error
    return {"pid": os.getpid(), "result": result}


@app.get("/jobs/{name}/runs")
async def runs(name: str) -> list[dict[str, object]]:
    return [
        {"slot": run.slot, "trigger": run.trigger, "status": run.status}
        for run in await scheduler.history(name, limit=20)
    ]
