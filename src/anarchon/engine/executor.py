"""Threads for blocking calls, in a loop of ours: they never keep a process from its end."""

from __future__ import annotations

import os
import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from anarchon.engine.forks import Ended, leave_if_forked

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 64
IDLE = 60.0
"""Seconds after which a thread without work ends."""


class DaemonExecutor(ThreadPoolExecutor):
    """What ``asyncio.to_thread`` and the resolving of host names use in a loop that anarchon runs.

    The usual one refuses work once the interpreter is ending, which is when many applications stop
    their scheduler, and then waits for its threads for ever. Its type is only what asyncio wants.
    """

    def __init__(self) -> None:
        """Start no thread yet."""
        super().__init__(max_workers=1)
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        self._idle = 0
        self._count = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call in a thread. Raises `RuntimeError` where the system has no thread to give."""
        future: Future[T] = Future()
        process = os.getpid()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - whoever waits for it is told
                leave_if_forked(process, Ended(error=error))
                future.set_exception(error)
            else:
                leave_if_forked(process, Ended())
                future.set_result(result)

        with self._lock:
            if self._waiting >= self._idle and self._count < THREADS:
                name = f"anarchon-executor-{self._count}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
                self._count += 1
            self._waiting += 1
            self._work.put(call)
        return future

    # The parameters are those of the class that asyncio wants.
    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Wait for nobody: a function that has been called may never return."""

    def _serve(self) -> None:
        while (call := self._next()) is not None:
            call()
            del call  # what it refers to must not live until the next one

    def _next(self) -> Callable[[], None] | None:
        """Wait for work; None when there was none for long, and the thread is to end."""
        with self._lock:
            self._idle += 1
        call: Callable[[], None] | None = None
        while call is None:
            try:
                call = self._work.get(timeout=IDLE)
            except queue.Empty:
                with self._lock:
                    if not self._waiting:
                        self._idle -= 1
                        self._count -= 1
                        return None
        with self._lock:
            self._idle -= 1
            self._waiting -= 1
        return call
