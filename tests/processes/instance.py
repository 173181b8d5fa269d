"""One instance as an operating-system process; started as ``python -m tests.processes.instance``.

It reads its plan from the command line and appends what happens to the plan's log: one JSON object
a line, in one write, so that many processes can share the file.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

from anarchon import RedisBackend, Run, Scheduler
from tests.processes.plans import InstancePlan, JobPlan, schedule_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from anarchon import JobSettings

TICK = 0.02


class Recorder(logging.Handler):
    """Appends to the log; as a handler, also what the library itself says."""

    def __init__(self, path: str, die_before_body: str | None) -> None:
        super().__init__(logging.INFO)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._die_before_body = die_before_body

    def write(self, what: str, **facts: object) -> None:
        """Append a line."""
        line = json.dumps({"what": what, "pid": os.getpid(), "at": time.time(), **facts})
        os.write(self._file, line.encode() + b"\n")

    def emit(self, record: logging.LogRecord) -> None:
        event = getattr(record, "event", "")
        text = record.getMessage()
        self.write("log", level=record.levelname, event=event, text=text)
        # The library says this between the won claim and the first step of the body.
        if event == "run.started" and self._die_before_body is not None:
            self._die_once(self._die_before_body)

    def _die_once(self, marker: str) -> None:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        self.write("died")
        os._exit(9)


class Work:
    """The bodies of the jobs."""

    def __init__(self, recorder: Recorder, plan: JobPlan) -> None:
        self._recorder = recorder
        self._plan = plan

    def function(self) -> Callable[[Run], object]:
        """The function that the plan asks for."""
        if self._plan["body"] == "endless-thread":
            return self._endless
        return self._coroutine

    def _seconds(self, run: Run) -> float:
        seconds = self._plan["seconds"]
        return seconds[min(run.attempt, len(seconds)) - 1]

    def _write(self, what: str, run: Run) -> None:
        facts = {"attempt": run.attempt, "fence": run.fence, "trigger": str(run.trigger)}
        self._recorder.write(what, job=run.job, slot=run.slot, **facts)

    async def _coroutine(self, run: Run) -> None:
        self._write("start", run)
        try:
            await self._work(run)
        except asyncio.CancelledError:
            self._write("cancelled", run)
            raise
        self._write("end", run)

    async def _work(self, run: Run) -> None:
        match self._plan["body"]:
            case "kills-itself":
                os.kill(os.getpid(), signal.SIGKILL)
            case "blocks-loop":
                time.sleep(self._seconds(run))  # noqa: ASYNC251 - the fault under test
            case "ticks":
                until = time.monotonic() + self._seconds(run)
                while time.monotonic() < until:
                    await asyncio.sleep(TICK)
                    self._write("tick", run)
            case "sleep":
                await asyncio.sleep(self._seconds(run))
            case _:
                pass

    def _endless(self, run: Run) -> None:
        self._write("start", run)
        while True:
            time.sleep(0.05)


def wait_for_go(path: Path) -> int:
    """Wait until the fleet may start, and answer when that was."""
    while not path.exists():
        time.sleep(0.005)
    return int(path.read_text())


def scheduler_of(plan: InstancePlan, recorder: Recorder) -> Scheduler:
    """The scheduler that a plan describes, once it may start."""
    backend = RedisBackend(redis=plan["url"], prefix=plan["prefix"])
    recorder.write("ready")
    start = wait_for_go(Path(plan["go"]))
    scheduler = Scheduler(
        backend=backend,
        lease=plan["lease"],
        heartbeat=plan["heartbeat"],
        shutdown_timeout=plan["shutdown_timeout"],
    )
    for name, job in plan["jobs"].items():
        function = Work(recorder, job).function()
        schedule = schedule_of(job["schedule"], start=start)
        settings: JobSettings = {**job["settings"], "name": name}
        scheduler.add_job(function, schedule, **settings)
    return scheduler


async def forget_to_stop(scheduler: Scheduler, seconds: float) -> None:
    """Start, and end without stopping."""
    await scheduler.start()
    await asyncio.sleep(seconds)


def main() -> None:
    """Run as planned."""
    plan = cast("InstancePlan", json.loads(sys.argv[1]))
    recorder = Recorder(plan["log"], plan["die_before_body"])
    logger = logging.getLogger("anarchon")
    logger.addHandler(recorder)
    logger.setLevel(logging.INFO)
    scheduler = scheduler_of(plan, recorder)
    if plan["forget_to_stop"] is None:
        scheduler.run()
    else:
        asyncio.run(forget_to_stop(scheduler, plan["forget_to_stop"]))
    recorder.write("main ended")


if __name__ == "__main__":
    main()
