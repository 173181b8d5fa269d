"""How many runs an instance takes on at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anarchon.jobs import Job


class Room:
    """Places for runs, and for those in threads. A run without a place is not claimed."""

    def __init__(self, runs: int | None, threads: int) -> None:
        """At most `runs` runs (None: any number), and `threads` of them in threads."""
        self._runs = asyncio.Semaphore(runs) if runs is not None else None
        self._threads = asyncio.Semaphore(threads)

    async def take(self, job: Job, seconds: float) -> bool:
        """Wait for a place for a run of `job`, at most so long; False when there was none."""
        taken: list[asyncio.Semaphore] = []
        try:
            async with asyncio.timeout(seconds):
                for places in self._needed(job):
                    await places.acquire()
                    taken.append(places)
        except TimeoutError:
            for places in taken:
                places.release()
            return False
        except asyncio.CancelledError:
            for places in taken:
                places.release()
            raise
        return True

    def leave(self, job: Job) -> None:
        """Give a place back."""
        for places in self._needed(job):
            places.release()

    def _needed(self, job: Job) -> tuple[asyncio.Semaphore, ...]:
        # The thread first: who waits for one should not keep a place from a run that needs none.
        runs = (self._runs,) if self._runs is not None else ()
        return (self._threads, *runs) if job.in_thread else runs
