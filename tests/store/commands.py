"""The same commands to real servers and to the reference, with every answer and state compared."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anarchon.backends.memory import MemoryBackend, MemoryStore
from anarchon.backends.reference import TRIMMED, JobBook, Nonsense
from tests.store.blocking import KEYS, blocking_store
from tests.store.books import pairs, read_book, read_server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anarchon.backends.redis.strategies.lease import LeaseStore
    from tests.support.resp import Connection
    from tests.support.server import Server

PAST, FUTURE = 10**12, 4 * 10**12
"""Moments long before and long after the real time at which any test runs."""


class ComparedBook(JobBook):
    """A reference whose attempts are dropped by age as the scripts drop them.

    They go by the ids of the stream, which the server gives by its real clock whatever `now` a test
    passes. All moments here lie far before or far after the real time, so that by the tests' clock
    either every entry is too old or none is.
    """

    def _drop_expired_history(self, oldest: int) -> None:
        if oldest > (PAST + FUTURE) // 2:
            del self.attempts[:TRIMMED]
        kept = list(self.attempts)
        self.attempts.clear()
        super()._drop_expired_history(oldest)
        self.attempts.extend(kept)


class ComparedMemory(MemoryBackend):
    """A memory backend of such books."""

    def book(self, job: str) -> JobBook:
        return self.books.setdefault(job, ComparedBook())


@dataclass
class Target:
    """A server under test."""

    name: str
    connection: Connection
    store: LeaseStore


class Comparison:
    """Servers and the reference, all by the same clock."""

    def __init__(self, servers: Sequence[tuple[str, Server]], job: str) -> None:
        self.now = 0
        self.job = job
        self._runner = asyncio.Runner()
        self.memory = ComparedMemory(clock=lambda: self.now)
        self._reference = self.memory.connect(timeout=10)
        self.targets: list[Target] = []
        for name, server in servers:
            connection = server.connect()
            store = blocking_store(connection, lambda: self.now)
            self.targets.append(Target(name, connection, store))

    def close(self) -> None:
        """Remove the job from the servers and end the connections."""
        for target in self.targets:
            target.connection.command("DEL", *KEYS.of_job(self.job), KEYS.instances)
            target.connection.close()
        self._runner.close()

    @property
    def book(self) -> JobBook:
        """The reference."""
        return self.memory.book(self.job)

    def ask(self, name: str, *arguments: object) -> object:
        """Send one call of the store everywhere; answer what all answered, after comparing."""
        return self._runner.run(self._ask(name, arguments))

    async def _ask(self, name: str, arguments: tuple[object, ...]) -> object:
        wanted = await _call(self._reference, name, arguments)
        for target in self.targets:
            got = await _call(target.store, name, arguments)
            assert got == wanted, f"{target.name}: {name}{arguments} at {self.now}"
        return wanted

    def write_nonsense(self, run: str, record: str, *, active: bool) -> None:
        """Overwrite a record by hand."""
        self.book.records[run] = Nonsense()
        self._everywhere(lambda c, keys: c.command("HSET", keys[0], run, record))
        if active:
            self.add_to_active(run)

    def add_to_active(self, run: str) -> None:
        """List a run among the open ones by hand."""
        self.book.active.add(run)
        self._everywhere(lambda c, keys: c.command("SADD", keys[1], run))

    def remove_nonsense(self) -> None:
        """Take away every record that was overwritten by hand."""
        book = self.book
        bad = [run for run, record in book.records.items() if isinstance(record, Nonsense)]
        for run in bad:
            del book.records[run]
        self._everywhere(lambda c, keys: c.command("HDEL", keys[0], *bad))

    def _everywhere(self, do: Callable[[Connection, tuple[str, ...]], object]) -> None:
        for target in self.targets:
            do(target.connection, KEYS.of_job(self.job))

    def compare_contents(self) -> None:
        """Compare all that is stored."""
        wanted = read_book(self.book)
        instances = {n: f"{seen} {told}" for n, (seen, told) in self.memory.instances.items()}
        for target in self.targets:
            got = read_server(target.connection, KEYS, self.job)
            assert got == wanted, target.name
            kept = pairs(target.connection.command("HGETALL", KEYS.instances))
            assert kept == instances, target.name


async def _call(
    store: LeaseStore | MemoryStore, name: str, arguments: tuple[object, ...]
) -> object:
    answer: object = await getattr(store, name)(*arguments)
    return answer
