"""What becomes of a process that user code forks inside a scheduler: it may not go on in there.

A child that went on would share the parent's event loop: it would read the parent's answers from
common sockets and keep its leases. So it ends where it leaves the code that forked it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
import weakref
from dataclasses import dataclass

from anarchon.errors import SchedulerStateError

STRAYED = 70
"""The exit status of a forked child that would go on in the event loop: an internal error."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How user code ended: with a value, or with an exception of any kind."""

    value: object = None
    error: BaseException | None = None


def leave_if_forked(process: int, ended: Ended | None) -> None:
    """End this process if user code forked it off `process`, as its own end would have.

    `ended` is None where the code is not at its end.
    """
    if os.getpid() == process:
        return
    try:
        status = _status_of(ended)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - nothing may keep the child here
        status = 1
    os._exit(status)


def _status_of(ended: Ended | None) -> int:
    if ended is None:
        sys.stderr.write(
            "anarchon: a process that was forked inside a scheduler's event loop may not await"
            " anything there; it is ended. Use subprocess, or end the child with os._exit()\n"
        )
        return STRAYED
    error = ended.error
    if error is None:
        return 0
    if not isinstance(error, SystemExit):
        traceback.print_exception(error)
        return 1
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    sys.stderr.write(f"{error.code}\n")
    return 1


def forked_from(process: int) -> SchedulerStateError:
    """What to raise where a scheduler that `process` started is asked in a forked process."""
    return SchedulerStateError(
        f"this process ({os.getpid()}) was forked from the one ({process}) in which the scheduler"
        " was started, and only there it runs: start it after the fork, in each worker"
    )


_watched: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()
_forking: list[asyncio.AbstractEventLoop] = []
_hooked: list[bool] = []


def forks_leave(loop: asyncio.AbstractEventLoop) -> None:
    """From now on, a process that is forked inside of `loop` ends when it would turn the loop.

    The driver of a body and the threads of bodies look for themselves, and know how it ended; this
    is for tasks, callbacks and listeners.
    """
    _watched.add(loop)
    if not _hooked and hasattr(os, "register_at_fork"):
        _hooked.append(True)
        os.register_at_fork(
            before=_before_fork,
            after_in_parent=_forking.clear,
            after_in_child=_after_fork_in_child,
        )


def _before_fork() -> None:
    loop = asyncio._get_running_loop()  # noqa: SLF001 - documented for such purposes
    if loop is not None and loop in _watched:
        _forking.append(loop)


def _after_fork_in_child() -> None:
    parent = os.getppid()
    for loop in _forking:
        loop.call_soon(leave_if_forked, parent, None)
        # Before all else that is ready: it would be done a second time, on the parent's sockets.
        ready = getattr(loop, "_ready", None)
        if ready is not None:
            ready.rotate(1)
    _forking.clear()
