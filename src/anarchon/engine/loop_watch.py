"""Notices that the event loop does not turn, from the thread that carries heartbeats."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from anarchon.engine.log import SCHEDULER, tell
from anarchon.engine.threads import from_any_thread

if TYPE_CHECKING:
    import asyncio

    from anarchon.engine.clock import Clock

BLOCKED = 1.0
"""Seconds after which a loop that did not turn counts as blocked."""


class LoopWatch:
    """Watches the loop that runs jobs; looked at with each heartbeat, so idle loops are let be."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        """Watch `loop`."""
        self._loop = loop
        self._clock = clock
        self._asked_at: float | None = None
        self._told = False
        self.step = ""
        """The job whose step the loop is in, if it is in one."""

    def look(self) -> None:
        """Ask the loop for a sign of life, and tell once if it still owes one."""
        now = self._clock.boot()
        asked_at = self._asked_at  # read once: the loop's thread sets it
        if asked_at is None:
            self._asked_at, self._told = now, False
            from_any_thread(self._loop, self._answer)
        elif now - asked_at > BLOCKED and not self._told:
            self._told = True
            by = f"the job {self.step} blocks it" if self.step else "something blocks it"
            message = (
                f"the event loop has not turned for {now - asked_at:.1f} s: {by}. Nothing"
                " else runs meanwhile; a blocking job should be a plain function"
            )
            tell(SCHEDULER, logging.WARNING, "loop.blocked", message)

    def _answer(self) -> None:
        self._asked_at = None
