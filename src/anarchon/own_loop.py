"""Runs a coroutine on an event loop of its own, and ends that loop whatever is left on it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, TypeVar

from anarchon.engine.ending import cancel_and_wait
from anarchon.engine.executor import DaemonExecutor
from anarchon.engine.log import SCHEDULER, tell

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

LAST_STEPS = 1.0
"""Seconds that generators get to be closed."""


def run_on_own_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end.

    Unlike `asyncio.run` it waits neither for tasks that swallow their cancellation nor for threads
    that do not return, which a job may have left; and it may be called while the interpreter ends.
    """
    loop = asyncio.new_event_loop()
    loop.set_default_executor(DaemonExecutor())
    asyncio.set_event_loop(loop)
    try:
        task = loop.create_task(main)
        try:
            return loop.run_until_complete(task)
        except KeyboardInterrupt:  # raised by a signal's handler: end in good order all the same
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
            raise
    finally:
        try:
            loop.run_until_complete(_end_what_is_left(loop))
        finally:
            asyncio.set_event_loop(None)
            loop.close()


async def _end_what_is_left(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in await cancel_and_wait(left):
        message = f"a task goes on though it was cancelled, and is left: {task.get_name()}"
        tell(SCHEDULER, logging.WARNING, "scheduler.leftover", message)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LAST_STEPS):
            await loop.shutdown_asyncgens()
