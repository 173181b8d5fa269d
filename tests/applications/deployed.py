"""Two versions of an application, as a deploy has them; `python -m tests.applications.deployed`.

An instance takes its version, the store's URL and the log's path from the command line.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from anarchon import RedisBackend, Run, Scheduler
from tests.processes.instance import Recorder
from tests.processes.plans import GridSchedule

if TYPE_CHECKING:
    from collections.abc import Callable

Body = Literal["quick", "coroutine", "thread"]
LEASE = 2.0
SHUTDOWN_TIMEOUT = 0.3


@dataclass(frozen=True)
class Plan:
    """A job: slots at `first` and every `every` milliseconds, and what a run does for how long."""

    first: int
    every: int
    body: Body = "quick"
    seconds: float = 0.0
    overlap: Literal["skip", "wait", "allow"] = "allow"


def quick(name: str, count: int, every: int, first: int = 0) -> dict[str, Plan]:
    """Quick jobs of one kind, their slots spread evenly.

    Each has few slots: whoever is held up for longer than from one to the next claims the newest
    only, and a busy machine may hold all instances up for a second.
    """
    step = every // count
    return {f"{name}-{number}": Plan(first + number * step, every) for number in range(count)}


LONG = {
    **{f"long-{number}": Plan(number * 300, 1500, "coroutine", 0.8, "wait") for number in range(4)},
    **{f"thread-{number}": Plan(number * 500, 1500, "thread", 0.5, "wait") for number in range(2)},
}
BOTH = {**quick("stays", 75, 3000), **LONG}
VERSIONS: dict[str, dict[str, Plan]] = {
    "1": {
        **BOTH,
        **quick("changes", 6, 3000),
        **quick("removed", 6, 3000, 50),
        **quick("former-name", 6, 3000, 100),
    },
    "2": {
        **BOTH,
        **quick("changes", 6, 2400, 100),
        **quick("added", 6, 3000, 50),
        **quick("later-name", 6, 3000, 100),
    },
}


def function_of(plan: Plan, recorder: Recorder) -> Callable[[Run], object]:
    """The job function of a plan; it writes down its start and how it ended."""

    def write(what: str, run: Run) -> None:
        recorder.write(what, job=run.job, slot=run.slot, attempt=run.attempt, fence=run.fence)

    async def coroutine(run: Run) -> None:
        write("start", run)
        try:
            await asyncio.sleep(plan.seconds)
        except asyncio.CancelledError:
            write("cut short", run)
            raise
        write("end", run)

    def in_thread(run: Run) -> None:
        write("start", run)
        if run.lost.wait(plan.seconds):
            write("cut short", run)
        else:
            write("end", run)

    return in_thread if plan.body == "thread" else coroutine


def main() -> None:
    """Be an instance of a version."""
    version, url, path = sys.argv[1:]
    recorder = Recorder(path, None)
    logger = logging.getLogger("anarchon")
    logger.addHandler(recorder)
    logger.setLevel(logging.INFO)
    scheduler = Scheduler(
        backend=RedisBackend(redis=url),
        lease=LEASE,
        shutdown_timeout=SHUTDOWN_TIMEOUT,
    )
    for name, plan in VERSIONS[version].items():
        scheduler.add_job(
            function_of(plan, recorder),
            GridSchedule({"first": plan.first, "every": plan.every}),
            name=name,
            overlap=plan.overlap,
            max_attempts=8,
        )
    scheduler.run()
    recorder.write("main ended", version=version, seconds=time.process_time())


if __name__ == "__main__":
    main()
