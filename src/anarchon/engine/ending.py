"""Ends tasks for good."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

PATIENCE = 0.1
"""Seconds after which a task that did not end is cancelled once more."""
MOST_CANCELLATIONS = 10


async def cancel_and_wait(tasks: Iterable[asyncio.Task[T]]) -> set[asyncio.Task[T]]:
    """Cancel tasks and wait for their end; answers those that went on all the same.

    More than once where need be: a library may swallow a cancellation (`asyncio.wait_for` did
    before Python 3.12), and a stop must not wait for ever.
    """
    pending = set(tasks)
    for _ in range(MOST_CANCELLATIONS):
        if not pending:
            break
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=PATIENCE)
    return pending
