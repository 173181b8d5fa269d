"""SIGTERM and SIGINT, while a process lives for its scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import FrameType, TracebackType

UNHEARD = 0.5
"""Seconds after which a loop that has not taken up a signal counts as blocked."""


SIGNALS = (signal.SIGTERM, signal.SIGINT)
_in_force: set[StopSignals] = set()
_masks = threading.local()


class StopSignals:
    """Hears signals, in the main thread; what handled them before does so again at its end.

    Python's own handlers are used and not the loop's: they work on Windows, and are called while a
    job blocks the loop. In a process that a job forks, the signals have their usual meaning.
    """

    def __init__(self) -> None:
        """Before or inside the loop that is told of signals; `attach` it there."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard: asyncio.Queue[int] = asyncio.Queue()
        self._unheard_since: float | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Hear from now on."""
        _in_force.add(self)
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Hear no more."""
        _in_force.discard(self)
        for number, before in self._before.items():
            signal.signal(number, before if before is not None else signal.SIG_DFL)

    def attach(self) -> None:
        """Tell the running loop of signals, also of those that came before."""
        self._loop = asyncio.get_running_loop()

    async def next(self) -> int:
        """Wait for a signal."""
        return await self._heard.get()

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._unheard_since is not None and now - self._unheard_since > UNHEARD:
            # A job blocks the loop, in this thread: this ends the job's step, as it would anywhere.
            self._unheard_since = now
            raise KeyboardInterrupt
        if self._loop is None:
            self._heard.put_nowait(number)
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: what was asked for is done
            self._loop.call_soon_threadsafe(self._take_up, number)
            self._unheard_since = now if self._unheard_since is None else self._unheard_since

    def _take_up(self, number: int) -> None:
        self._unheard_since = None
        self._heard.put_nowait(number)


# A signal that reaches a child before it has its usual handlers again would be lost: a pool that
# ends a worker just after its fork would wait for it for ever. So signals wait until then.


def _before_fork() -> None:
    if _in_force:
        _masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def _after_fork_in_parent() -> None:
    before = vars(_masks).pop("before", None)
    if before is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _after_fork_in_child() -> None:
    if "before" in vars(_masks):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _after_fork_in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
