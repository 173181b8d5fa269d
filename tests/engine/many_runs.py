"""A program that runs its scheduler again and again, until signals end it.

It prints what belonged to schedulers after the first run, and after the last.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import random
import signal
import sys
import threading

from anarchon import RedisBackend, Scheduler
from tests.engine.test_start_stop_stress import Left, declare


class Ends(logging.Handler):
    """Sends a signal some time after a scheduler has said that it started."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._random = rng

    def emit(self, record: logging.LogRecord) -> None:
        """Be told of the start."""
        if record.__dict__["event"] == "scheduler.started":
            number = self._random.choice([signal.SIGTERM, signal.SIGINT])
            seconds = self._random.uniform(0, 0.06)
            threading.Timer(seconds, os.kill, (os.getpid(), number)).start()


def main() -> None:
    """Run as often as the plan says."""
    plan = json.loads(sys.argv[1])
    logger = logging.getLogger("anarchon.scheduler")
    logger.addHandler(Ends(random.Random(plan["seed"])))
    logger.setLevel(logging.INFO)
    logging.getLogger("anarchon.runs").setLevel(logging.CRITICAL)
    scheduler = Scheduler(backend=RedisBackend(redis=plan["url"]), shutdown_timeout=0.01)
    declare(scheduler)
    scheduler.run()
    first = Left.now()
    for _ in range(plan["times"]):
        scheduler.run()
    sys.stdout.write(json.dumps([dataclasses.asdict(first), dataclasses.asdict(Left.now())]))


if __name__ == "__main__":
    main()
