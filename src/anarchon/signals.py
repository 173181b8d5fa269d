"""SIGTERM and SIGINT, while a process lives for its scheduler."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import FrameType, TracebackType

UNHEARD = 0.5
"""Seconds after which a loop that has not taken up a signal counts as blocked."""


class StopSignals:
    """Hears signals, in the main thread; what handled them before does so again at its end.

    Python's own handlers are used and not the loop's: they work on Windows, are called while a job
    blocks the loop, and do nothing to a process that a job forks.
    """

    def __init__(self) -> None:
        """Inside the running loop."""
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._heard: asyncio.Queue[int] = asyncio.Queue()
        self._unheard_since: float | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Hear from now on."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Hear no more."""
        for number, before in self._before.items():
            signal.signal(number, before if before is not None else signal.SIG_DFL)

    async def next(self) -> int:
        """Wait for a signal."""
        return await self._heard.get()

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            # In a process that a job forked a signal has its usual meaning.
            usual = signal.SIG_DFL if number == signal.SIGTERM else signal.default_int_handler
            signal.signal(number, usual)
            signal.raise_signal(number)
            return
        now = time.monotonic()
        if self._unheard_since is not None and now - self._unheard_since > UNHEARD:
            # A job blocks the loop, in this thread: this ends the job's step, as it would anywhere.
            self._unheard_since = now
            raise KeyboardInterrupt
        if self._unheard_since is None:
            self._unheard_since = now
        self._loop.call_soon_threadsafe(self._take_up, number)

    def _take_up(self, number: int) -> None:
        self._unheard_since = None
        self._heard.put_nowait(number)
