"""What job functions did, written down by themselves."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from anarchon import Run
    from anarchon.testing import Cluster

STEP = 0.25
"""Seconds between two steps of a body that takes its time."""


@dataclass
class Entry:
    """One call of a job function. Moments are true time in ms; `server_start` is the store's."""

    job: str
    slot: int
    attempt: int
    runner: str
    trigger: str
    token: str
    start: float
    server_start: int
    steps: list[float] = field(default_factory=list[float], repr=False)
    end: float | None = None
    how: str = "running"


class Diary:
    """Entries in the order of their starts."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.entries: list[Entry] = []

    @contextlib.contextmanager
    def entry(self, run: Run) -> Generator[Entry]:
        """Write down one call."""
        now = self._cluster.time.now()
        entry = Entry(
            run.job,
            run.slot,
            run.attempt,
            run.runner,
            str(run.trigger),
            run.token,
            now,
            self._cluster.server(),
        )
        self.entries.append(entry)
        how = "succeeded"
        try:
            yield entry
        except BaseException as error:
            how = type(error).__name__
            raise
        finally:
            entry.how, entry.end = how, self._cluster.time.now()

    def body(
        self, takes: float = 0.0, then: Callable[[Run], object] = lambda _run: None
    ) -> Callable[[Run], Coroutine[None, None, object]]:
        """A job function that takes so many seconds, in small steps, and ends with `then`."""

        async def function(run: Run) -> object:
            with self.entry(run) as entry:
                until = self._cluster.time.seconds + takes
                while (rest := until - self._cluster.time.seconds) > 1e-4:
                    await asyncio.sleep(min(rest, STEP))
                    entry.steps.append(self._cluster.time.now())
                return then(run)

        return function

    def of(self, job: str) -> list[Entry]:
        """The entries of a job."""
        return [entry for entry in self.entries if entry.job == job]

    def most_at_once(self, job: str) -> int:
        """How many calls of a job were under way at most at the same time."""
        changes = [(e.start, 1) for e in self.of(job)]
        changes += [(e.end, -1) for e in self.of(job) if e.end is not None]
        count = most = 0
        for _, change in sorted(changes):
            count += change
            most = max(most, count)
        return most
