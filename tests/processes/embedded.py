"""Schedulers inside the test's own process, on a real server: what their bodies and logs tell."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tests.processes.plans import schedule_of
from tests.processes.support import PATIENCE, letters

if TYPE_CHECKING:
    import logging
    from collections.abc import AsyncIterator, Callable, Iterable
    from typing import Unpack

    from anarchon import JobSettings, Run, Scheduler
    from tests.processes.plans import Grid
    from tests.support.server import Server

T = TypeVar("T")


async def until(look: Callable[[], T | None], what: str, patience: float = PATIENCE) -> T:
    """Look until there is something (that counts as true); fails the test after `patience`."""
    deadline = time.monotonic() + patience
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"no {what} within {patience:g} s")
        await asyncio.sleep(0.005)


@dataclass(frozen=True)
class Note:
    """Something that happened to a body. `at` is in seconds since the epoch."""

    what: str
    run: Run
    at: float

    @property
    def late(self) -> float:
        """Seconds after the slot."""
        return self.at - self.run.slot / 1000


class Diary:
    """What the bodies of a test note; a body calls `work` and nothing else."""

    def __init__(self) -> None:
        self.notes: list[Note] = []

    async def work(self, run: Run, seconds: float = 0.0, *, tick: float | None = None) -> None:
        """Be a body that takes so long, in steps of `tick`."""
        self._note("start", run)
        try:
            async for _ in _steps(seconds, tick or seconds):
                self._note("tick", run)
        except asyncio.CancelledError:
            self._note("cancelled", run)
            raise
        self._note("end", run)

    def _note(self, what: str, run: Run) -> None:
        self.notes.append(Note(what, run, time.time()))

    def of(self, what: str, job: str | None = None) -> list[Note]:
        """The notes of a kind, in order."""
        return [n for n in self.notes if n.what == what and job in {None, n.run.job}]

    async def wait(self, what: str, count: int = 1, job: str | None = None) -> list[Note]:
        """Wait until there are `count` notes of a kind, and answer them."""

        def look() -> list[Note] | None:
            notes = self.of(what, job)
            return notes if len(notes) >= count else None

        return await until(look, f"{count} x {what} of {job or 'any job'}")

    def slots(self, job: str) -> list[int]:
        """The slots that were started, in order."""
        return [note.run.slot for note in self.of("start", job)]

    def assert_no_slot_twice(self) -> None:
        """No attempt of a run was started twice."""
        started = [(n.run.job, n.run.slot, n.run.attempt) for n in self.of("start")]
        assert len(set(started)) == len(started), started


def add_job(
    scheduler: Scheduler,
    diary: Diary,
    name: str,
    grid: Grid | str,
    seconds: float = 0.0,
    /,
    **settings: Unpack[JobSettings],
) -> None:
    """Give a scheduler a job that takes so long, and writes the diary at its steps."""

    async def work(run: Run) -> None:
        await diary.work(run, seconds, tick=0.02 if seconds else None)

    named: JobSettings = {**settings, "name": name}
    scheduler.add_job(work, schedule_of(grid), **named)


async def _steps(seconds: float, tick: float) -> AsyncIterator[None]:
    deadline = time.monotonic() + seconds
    while (rest := deadline - time.monotonic()) > 0:
        await asyncio.sleep(min(tick, rest))
        yield


async def until_settled(server: Server, job: str, letter: str = "D") -> None:
    """Wait until all runs of a job are in a state in the store."""
    await until(lambda: set(letters(server, job).values()) == {letter}, f"{letter} of {job}")


def said(records: Iterable[logging.LogRecord], event: str) -> list[logging.LogRecord]:
    """The log records with an event name."""
    return [record for record in records if getattr(record, "event", "") == event]
