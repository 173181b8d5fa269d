"""What tests of schedulers in the background share: calls, threads, and jobs that wait."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from anarchon import AnarchonError, MemoryBackend, Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable

    from anarchon import BackgroundScheduler

PATIENCE = 20.0
"""Seconds after which a test gives up waiting; nothing that is tested takes as long."""
NEVER = "0 0 29 2 *"

CALLS: dict[str, Callable[[BackgroundScheduler], object]] = {
    "run_now": lambda s: s.run_now("job"),
    "history": lambda s: s.history("job"),
    "why": lambda s: s.why("job", datetime(2026, 1, 5, tzinfo=UTC)),
    "state": lambda s: s.state("job"),
    "instances": lambda s: s.instances(),
    "check": lambda s: s.check(),
    "pause": lambda s: s.pause("job"),
    "resume": lambda s: s.resume("job"),
    "cancel": lambda s: s.cancel("job"),
    "forget": lambda s: s.forget("job"),
}
"""Each method that asks for something."""
EACH = pytest.mark.parametrize("call", CALLS)


def scheduler_of(job: Callable[[], object] = lambda: 7, schedule: str | float = NEVER) -> Scheduler:
    """A scheduler with one job, over a store of its own."""
    made = Scheduler(backend=MemoryBackend(), shutdown_timeout=0.1)
    made.add_job(job, schedule, name="job", overlap="allow")
    return made


def in_thread(call: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Call in a thread; what it answers or raises is appended to the list."""
    told: list[object] = []

    def body() -> None:
        try:
            told.append(call())
        except AnarchonError as error:
            told.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    return thread, told


def ended(thread: threading.Thread) -> bool:
    """Whether a thread ends in time."""
    thread.join(PATIENCE)
    return not thread.is_alive()


def own_threads() -> list[str]:
    """The names of the threads that schedulers have."""
    return [t.name for t in threading.enumerate() if t.name.startswith("anarchon-")]


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether something holds within `PATIENCE` seconds."""
    until = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < until:
        time.sleep(0.01)
    return holds()


class Gate:
    """A job that waits until it may go on; `begun` is set each time it is called."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.open = threading.Event()

    def plain(self) -> str:
        """Wait in a thread."""
        self.begun.set()
        assert self.open.wait(PATIENCE)
        return "through"

    async def polite(self) -> str:
        """Wait on the loop."""
        self.begun.set()
        while not self.open.is_set():  # noqa: ASYNC110 - the event is a thread's
            await asyncio.sleep(0.01)
        return "through"

    async def rude(self) -> str:
        """Block the loop."""
        return self.plain()
