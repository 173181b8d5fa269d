"""Ends tasks for good."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PATIENCE = 0.1
"""Seconds after which a task that did not end is cancelled once more."""
MOST_CANCELLATIONS = 10


async def cancel_and_wait(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait for their end.

    More than once where need be: a library may swallow a cancellation (`asyncio.wait_for` did
    before Python 3.12), and a stop must not wait for ever.
    """
    pending = set(tasks)
    for _ in range(MOST_CANCELLATIONS):
        if not pending:
            return
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=PATIENCE)
