"""The memory backend, asked from several threads at once."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from anarchon import MemoryBackend
from anarchon.backends.base import ClaimCode
from anarchon.testing.conformance import Clock, Subject
from anarchon.testing.conformance.subject import SLOT, B

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

JOB = "shared"


class NotingLock:
    """A lock that calls back when somebody has to wait for it."""

    def __init__(self, on_wait: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._on_wait = on_wait

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._on_wait()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Interrupted(dict[str, Any]):
    """Records whose first look-up is interrupted."""

    def __init__(self, records: dict[str, Any], interruption: Callable[[], None]) -> None:
        super().__init__(records)
        self._interruptions = [interruption]

    def get(self, key: str, default: Any = None) -> Any:
        found = super().get(key, default)
        if self._interruptions:
            self._interruptions.pop()()
        return found


CALLS: dict[str, Callable[[Subject], Awaitable[object]]] = {
    "claim": lambda s: s.claim(seen=1),
    "register": lambda s: s.register(),
    "heartbeat": lambda s: s.heartbeat(),
    "finish": lambda s: s.finish(),
    "release": lambda s: s.release(),
    "cancel": lambda s: s.cancel(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_is_over_before_that_of_another_thread_begins(
    call: Callable[[Subject], Awaitable[object]],
) -> None:
    clock = Clock()
    backend = MemoryBackend(clock=clock)
    one, other = (Subject(backend.connect(timeout=1), clock, job=JOB) for _ in range(2))
    done: list[str] = []
    waits_or_done = threading.Event()

    async def begin() -> None:
        assert (await one.claim()).code is ClaimCode.WON
        one.at(SLOT + one.terms.lease + 1)  # the run may be taken over now

    async def make(subject: Subject, name: str) -> None:
        await (call(subject) if name == "one" else other.claim(token=B, seen=1))
        done.append(name)

    def make_another() -> None:
        asyncio.run(make(other, "other"))
        waits_or_done.set()

    thread = threading.Thread(target=make_another)

    def interrupt() -> None:
        thread.start()
        waits_or_done.wait()

    asyncio.run(begin())
    book = backend.book(JOB)
    book.records = Interrupted(book.records, interrupt)
    vars(backend)["lock"] = NotingLock(waits_or_done.set)
    asyncio.run(make(one, "one"))
    thread.join()
    assert done == ["one", "other"]
