"""A store in this process's memory: for tests, and for one process that needs no server."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from anarchon.backends.base import (
    Answer,
    ClaimAnswer,
    ClaimRequest,
    FinishAnswer,
    HeartbeatAnswer,
    JobFacts,
    JobTerms,
    Outcome,
    Presence,
    Presences,
    Registered,
    StoreFacts,
)
from anarchon.backends.history import ATTEMPTS_READ_PER_RUN, Standing, compose, compose_run
from anarchon.backends.reference import JobBook, Record
from anarchon.runs import FARTHEST

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from anarchon.runs import RunRecord


RUNS_NAMED = 100
"""How many open runs of a job are told at most."""


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000


class MemoryBackend:
    """Claims decided in this process: schedulers that share one object share its jobs.

    It follows every rule of the lease strategy but outlives nothing: what it knows is gone with the
    process. `clock` answers the store's time in milliseconds; by default this host's.
    """

    def __init__(self, *, clock: Callable[[], int] = _wall_clock) -> None:
        """Make an empty store."""
        self._clock = clock
        self.books: dict[str, JobBook] = {}
        self.instances: dict[str, tuple[int, str]] = {}
        self.lock: AbstractContextManager[object] = threading.Lock()
        """Held during each call: schedulers may run in several threads."""

    @property
    def shares_connection(self) -> bool:
        """There is no connection: any loop and thread may call."""
        return True

    def connect(self, *, timeout: float) -> MemoryStore:  # noqa: ARG002 - nothing here waits
        """A store over this memory."""
        return MemoryStore(self, self._clock)

    def book(self, job: str) -> JobBook:
        """What is stored of a job."""
        return self.books.setdefault(job, JobBook())


class MemoryStore:
    """One connection to a `MemoryBackend`."""

    def __init__(self, backend: MemoryBackend, now: Callable[[], int]) -> None:
        """Serve `backend` by the clock `now`."""
        self._backend = backend
        self._now = now

    async def open(self) -> tuple[str, ...]:
        """Nothing to look at."""
        return ()

    async def visit(self) -> None:
        """Nothing to look at."""

    async def close(self) -> None:
        """Nothing to close."""

    def place(self, job: str) -> str:
        """The book of the job."""
        return f"MemoryBackend.books[{job!r}]"

    async def clock(self, runner: str, told: str, silent: int) -> int:
        """The store's time; keeps this runner's presence."""
        instances = self._backend.instances
        with self._backend.lock:
            now = self._now()
            if runner and told:
                instances[runner] = (now, told)
                for name in [n for n, (seen, _) in instances.items() if seen + silent < now]:
                    del instances[name]
            elif runner:
                instances.pop(runner, None)
        return now

    async def register(self, terms: JobTerms) -> Registered:
        """Tell the store of a job and its schedule."""
        with self._backend.lock:
            return self._backend.book(terms.job).register(terms, self._now())

    async def claim(self, terms: JobTerms, request: ClaimRequest) -> ClaimAnswer:
        """Ask for a run."""
        with self._backend.lock:
            return self._backend.book(terms.job).claim(terms, request, self._now())

    async def heartbeat(self, terms: JobTerms, run: str, token: str) -> HeartbeatAnswer:
        """Keep a lease."""
        with self._backend.lock:
            return self._backend.book(terms.job).heartbeat(terms, run, token, self._now())

    async def finish(  # noqa: PLR0913 - the call's own parts
        self, terms: JobTerms, run: str, token: str, outcome: Outcome, error: str, delay: int
    ) -> FinishAnswer:
        """Tell how an attempt ended."""
        with self._backend.lock:
            book = self._backend.book(terms.job)
            return book.finish(terms, run, token, outcome, error, delay, self._now())

    async def release(  # noqa: PLR0913 - the call's own parts
        self, terms: JobTerms, run: str, token: str, kind: Outcome, delay: int = 0, last: int = 0
    ) -> Answer:
        """Give a lease back."""
        with self._backend.lock:
            book = self._backend.book(terms.job)
            return book.release(terms, run, token, kind, delay, last, self._now())

    async def cancel(self, job: str, run: str, history_size: int) -> Answer:
        """Cancel a run for the whole cluster."""
        with self._backend.lock:
            return self._backend.book(job).cancel(history_size, run, self._now())

    async def pause(self, job: str, until: int, note: str) -> Answer:
        """Hold back a job's scheduled runs."""
        with self._backend.lock:
            self._backend.book(job).paused = (min(until, FARTHEST), note)
            return Answer(ok=True, time=self._now())

    async def resume(self, job: str) -> Answer:
        """Let a paused job go on."""
        with self._backend.lock:
            self._backend.book(job).paused = None
            return Answer(ok=True, time=self._now())

    async def forget(self, job: str) -> Answer:
        """Delete all that is stored of a job, unless a run of it is live."""
        with self._backend.lock:
            now = self._now()
            if not self._backend.book(job).forgettable(now):
                return Answer(ok=False, time=now)
            del self._backend.books[job]
            return Answer(ok=True, time=now)

    async def history(self, job: str, limit: int) -> tuple[RunRecord, ...]:
        """The newest runs of a job, newest first."""
        with self._backend.lock:
            book = self._backend.books.get(job) or JobBook()
            read = limit * ATTEMPTS_READ_PER_RUN
            standings = {
                run: standing for run in book.records if (standing := _standing(book, run))
            }
            began = book.attempts[::-1][:read]
            results = book.results_in_order()[::-1][:read]
            return compose(job, began, results, standings, limit)

    async def look(self, job: str, run: str) -> JobFacts:
        """What is known of a job, and of a run of it."""
        with self._backend.lock:
            book, now = self._backend.books.get(job) or JobBook(), self._now()
            until, note = book.pause_in_force(now)
            record, standing = None, None
            if run:
                standing = _standing(book, run)
                began = [entry for entry in book.attempts if entry.run == run]
                results = [result for result in book.results if result.run == run]
                record = compose_run(job, run, began, results, standing)
            return JobFacts(
                time=now,
                schedule_key=book.schedule_key,
                since=book.since or 0,
                floor=book.floor,
                fence=book.fence,
                paused_until=until,
                paused_note=note,
                open_runs=tuple(r for r in sorted(book.active) if book.is_open(r))[:RUNS_NAMED],
                run=record,
                run_end=standing.end if standing else 0,
            )

    async def instances(self) -> Presences:
        """The instances that have shown themselves."""
        with self._backend.lock:
            shown = self._backend.instances.items()
            return Presences(
                self._now(), tuple(Presence(r, seen, told) for r, (seen, told) in shown)
            )

    async def facts(self) -> StoreFacts:
        """The memory of this process."""
        return StoreFacts(server="the memory of this process")


def _standing(book: JobBook, run: str) -> Standing | None:
    record = book.records.get(run)
    if not isinstance(record, Record):
        return None
    end = record.end if record.open else 0
    return Standing(record.state, record.attempt, record.outcome, end)
