"""Calls of user code in threads of their own."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING

from anarchon.engine.forks import Ended, leave_if_forked

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

LOOKED_AFTER = 5.0
"""Seconds between looks whether a thread is still there."""


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
    timer: asyncio.TimerHandle | None = None

    def look() -> None:
        # A trace function of the application that raises ends a thread before it calls anything.
        nonlocal timer
        if thread.is_alive():
            timer = loop.call_later(LOOKED_AFTER, look)
            return
        silent = Ended(error=RuntimeError("its thread ended without a word"))
        tell_end(ends[0] if ends else silent)  # its word may still be on its way

    def forget(_done: asyncio.Future[Ended]) -> None:
        if timer is not None:
            timer.cancel()

    done.add_done_callback(forget)
    try:
        thread.start()
        timer = loop.call_later(LOOKED_AFTER, look)
    except RuntimeError as error:
        tell_end(Ended(error=error))
    return done


def from_any_thread(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Call in the loop's thread; a closed loop belongs to a scheduler that gave the caller up."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call)
