"""Calls of user code in threads of their own, and what a fork inside of it would break."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import traceback
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LOOKED_AFTER = 5.0
"""Seconds between looks whether a thread is still there."""
STRAYED = 70
"""The exit status of a forked child that would go on in the event loop: an internal error."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How user code ended: with a value, or with an exception of any kind."""

    value: object = None
    error: BaseException | None = None


def in_thread(
    loop: asyncio.AbstractEventLoop,
    name: str,
    call: Callable[[], object],
    returned: Callable[[Ended], None] = lambda _ended: None,
) -> asyncio.Future[Ended]:
    """Call in a thread of its own: a daemon, since a function may never return.

    `returned` is told in that thread, before the loop is. Raises nothing: a system that has no
    thread to give is an ending as well.
    """
    done: asyncio.Future[Ended] = loop.create_future()
    ends: list[Ended] = []
    process = os.getpid()

    def tell_end(ended: Ended) -> None:
        if not done.done():
            done.set_result(ended)

    def body() -> None:
        try:
            ended = Ended(value=call())
        except BaseException as error:  # noqa: BLE001 - the end of user code, whatever it was
            ended = Ended(error=error)
        leave_if_forked(process, ended)
        ends.append(ended)
        returned(ended)
        from_any_thread(loop, lambda: tell_end(ended))

    thread = threading.Thread(target=body, name=name, daemon=True)

    def look() -> None:
        # A trace function of the application that raises ends a thread before it calls anything.
        if done.done():
            return
        if thread.is_alive():
            loop.call_later(LOOKED_AFTER, look)
        else:
            silent = Ended(error=RuntimeError("its thread ended without a word"))
            tell_end(ends[0] if ends else silent)  # its word may still be on its way

    try:
        thread.start()
        loop.call_later(LOOKED_AFTER, look)
    except RuntimeError as error:
        tell_end(Ended(error=error))
    return done


def from_any_thread(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Call in the loop's thread."""
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        # The loop is closed: the scheduler was stopped and gave this body up.
        logging.getLogger("anarchon.runs").debug("a body ended after its scheduler", exc_info=True)


_watched: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()
_forking: list[asyncio.AbstractEventLoop] = []


def forks_leave(loop: asyncio.AbstractEventLoop) -> None:
    """From now on, a process that is forked inside of `loop` ends when it would turn the loop.

    The driver of a body and the threads of bodies look for themselves, and know how it ended; this
    is for tasks and callbacks that user code started in the loop.
    """
    _watched.add(loop)


def _before_fork() -> None:
    loop = asyncio._get_running_loop()  # noqa: SLF001 - documented for such purposes
    if loop is not None and loop in _watched:
        _forking.append(loop)


def _after_fork_in_parent() -> None:
    _forking.clear()


def _after_fork_in_child() -> None:
    parent = os.getppid()
    for loop in _forking:
        loop.call_soon(leave_if_forked, parent, None)
    _forking.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )


def leave_if_forked(process: int, ended: Ended | None) -> None:
    """End this process if user code forked it off `process`, as its own end would have.

    A child that went on here would share the parent's event loop: it would read the parent's
    answers from common sockets and keep its leases. `ended` is None where it is not at its end.
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
            "anarchon: a process that a job forked may not await anything in the scheduler's event"
            " loop; it is ended. Use subprocess, or end the child with os._exit()\n"
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
