"""A Flask application with jobs, whose scheduler runs in a thread of each worker.

gunicorn -w 4 -c examples/gunicorn_conf.py examples.flask_app:app
flask --app examples.flask_app run --debug
"""

from __future__ import annotations

import logging
import os

from flask import Flask
from werkzeug.serving import is_running_from_reloader

from anarchon import (
    RedisBackend,
    Run,
    RunMoved,
    RunRefused,
    Scheduler,
    SchedulerStateError,
    StoreError,
    UnknownJobError,
)
from examples.work import SECONDS, at_work

logging.basicConfig(level=logging.INFO)

scheduler = Scheduler(
    backend=RedisBackend(redis=os.environ.get("REDIS_URL", "redis://localhost:6379")),
    lease=float(os.environ.get("LEASE", "30")),
    shutdown_timeout=float(os.environ.get("SHUTDOWN_TIMEOUT", "10")),
)
jobs = scheduler.in_background()  # made here, started in the processes that serve


@scheduler.job("* * * * * *")
def refresh_prices(run: Run) -> str:
    with at_work(run):
        return "refreshed"


@scheduler.job("*/2 * * * * *")
def send_newsletter(run: Run) -> None:
    """A plain function runs in a thread; `run.lost` tells it to stop."""
    with at_work(run):
        if run.lost.wait(SECONDS):
            raise RuntimeError("told to stop")


app = Flask(__name__)


@app.get("/")
def about() -> dict[str, object]:
    return {"pid": os.getpid(), "running": jobs.health().running}


@app.post("/jobs/<name>")
def run_now(name: str) -> dict[str, object]:
    return {"pid": os.getpid(), "result": jobs.run_now(name, timeout=20)}


@app.get("/jobs/<name>/runs")
def runs(name: str) -> list[dict[str, object]]:
    return [
        {"slot": run.slot.isoformat(), "trigger": run.trigger, "status": run.status}
        for run in jobs.history(name, limit=20)
    ]


@app.errorhandler(UnknownJobError)
def unknown(error: Exception) -> tuple[dict[str, str], int]:
    return {"error": str(error)}, 404


@app.errorhandler(RunMoved)
@app.errorhandler(RunRefused)
def conflict(error: Exception) -> tuple[dict[str, str], int]:
    return {"error": str(error)}, 409


@app.errorhandler(SchedulerStateError)
@app.errorhandler(StoreError)
def unavailable(error: Exception) -> tuple[dict[str, str], int]:
    return {"error": str(error)}, 503


if is_running_from_reloader():  # Flask's own server: in the process that serves, not its parent
    jobs.start()
