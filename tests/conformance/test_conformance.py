"""The conformance suite over every backend of the package, and what the suite itself promises."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING

import pytest

from anarchon.backends.base import ClaimCode
from anarchon.backends.memory import MemoryBackend
from anarchon.backends.reference import JobBook, Nonsense
from anarchon.testing import conformance
from anarchon.testing.conformance import CHECKS, Check, Clock, ConformanceError, Level, Subject
from anarchon.testing.conformance.subject import expect, expect_equal
from tests.store.blocking import KEYS, blocking_store

if TYPE_CHECKING:
    from tests.support.server import Server

each_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)


@each_check
def test_memory(check: Check) -> None:
    clock = Clock()
    backend = MemoryBackend(clock=clock)

    async def damage(job: str, run: str) -> None:
        backend.book(job).records[run] = Nonsense()
        backend.book(job).active.add(run)

    subject = Subject(backend.connect(timeout=1), clock, damage)
    asyncio.run(conformance.run(check, subject))
    for book in backend.books.values():
        closed = {r for r, record in book.records.items() if getattr(record, "open", True) is False}
        assert book.active == set(book.records) - closed


def run_on_server(server: Server, check: Check) -> None:
    """Run a check against the scripts on a server."""

    async def damage(job: str, run: str) -> None:
        state, active, *_ = KEYS.of_job(job)
        server.command("HSET", state, run, "R 1 soon")
        server.command("SADD", active, run)

    clock = Clock()
    with server.connect() as connection:
        subject = Subject(blocking_store(connection, clock), clock, damage)
        asyncio.run(conformance.run(check, subject))


@each_check
def test_redis7(redis7: Server, check: Check) -> None:
    run_on_server(redis7, check)
    assert not strange_keys(redis7)


@each_check
def test_valkey9(valkey9: Server, check: Check) -> None:
    run_on_server(valkey9, check)
    assert not strange_keys(valkey9)


def strange_keys(server: Server) -> list[bytes]:
    """Keys that are no part of a job nor the instances, or that expire."""
    reply = server.command("KEYS", "*")
    assert isinstance(reply, list)
    keys = [key for key in reply if isinstance(key, bytes)]
    parts = (b"}:state", b"}:active", b"}:slots", b"}:runs", b"}:results")
    expected = [key for key in keys if key.startswith(b"{cron:") and key.endswith(parts)]
    expiring = [key for key in keys if server.command("TTL", key) != -1]
    return [k for k in keys if k not in expected and k != b"cron:instances"] + expiring


def test_names_are_unique_and_explained() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert [check.name for check in CHECKS if len(check.about.split()) < 5] == []
    assert {check.level for check in CHECKS} == set(Level)


def test_every_check_is_listed() -> None:
    listed = {check.function for check in CHECKS}
    modules = [
        conformance.first_claims,
        conformance.jobs,
        conformance.heartbeats,
        conformance.takeovers,
        conformance.attempts,
        conformance.cancelling,
        conformance.others,
        conformance.history,
        conformance.trimming,
    ]
    written = {
        function
        for module in modules
        for name, function in inspect.getmembers(module, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    assert written == listed


def test_a_difference_is_explained() -> None:
    with pytest.raises(ConformanceError, match=r"first claim: code is .*'won'.*, not .*'late'"):
        asyncio.run(_claim_and_expect_late())
    with pytest.raises(ConformanceError, match="names: got 1, not 2"):
        expect_equal("names", 1, 2)


async def _claim_and_expect_late() -> None:
    clock = Clock()
    subject = Subject(MemoryBackend(clock=clock).connect(timeout=1), clock)
    expect("first claim", await subject.claim(), code=ClaimCode.LATE)


def test_a_failing_check_names_itself() -> None:
    class Generous(MemoryBackend):
        """Forgets every job at once, so that everybody wins."""

        def book(self, job: str) -> JobBook:
            self.books.pop(job, None)
            return super().book(job)

    clock = Clock()
    subject = Subject(Generous(clock=clock).connect(timeout=1), clock)
    check = next(check for check in CHECKS if check.name == "another_is_told_who_runs")
    with pytest.raises(ConformanceError, match=r"^another_is_told_who_runs: another's claim: "):
        asyncio.run(conformance.run(check, subject))
