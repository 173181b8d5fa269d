"""Which instances are there: kept by the clock check, dropped after a silence."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from anarchon.backends.memory import MemoryBackend
from anarchon.testing.conformance import Clock
from tests.store.blocking import KEYS, blocking_store
from tests.store.books import pairs, texts

if TYPE_CHECKING:
    from anarchon.backends.base import Store
    from tests.support.resp import Reply
    from tests.support.server import Server

SILENT = 5_000


async def come_and_go(store: Store, clock: Clock) -> None:
    """One left, one has been silent for as long as it may, one for longer, one is new."""
    begun = clock.now
    await store.clock("too-long", "x", SILENT)
    clock.now = begun + 1
    await store.clock("just-so", "it said this", SILENT)
    await store.clock("left", "x", SILENT)
    await store.clock("left", "", SILENT)
    clock.now = begun + 1 + SILENT
    await store.clock("", "ignored", SILENT)
    await store.clock("new", "y z", SILENT)


def expected(begun: int) -> dict[str, str]:
    return {"just-so": f"{begun + 1} it said this", "new": f"{begun + 1 + SILENT} y z"}


def test_presence_on_a_server(server: Server) -> None:
    clock = Clock()
    begun = clock.now
    with server.connect() as connection:
        asyncio.run(come_and_go(blocking_store(connection, clock), clock))
    assert pairs(server.command("HGETALL", KEYS.instances)) == expected(begun)


def test_presence_in_memory() -> None:
    clock = Clock()
    begun = clock.now
    backend = MemoryBackend(clock=clock)
    asyncio.run(come_and_go(backend.connect(timeout=1), clock))
    told = {name: f"{seen} {told}" for name, (seen, told) in backend.instances.items()}
    assert told == expected(begun)


def test_presence_that_makes_no_sense_is_dropped(server: Server) -> None:
    clock = Clock()
    for name, value in {"a": "", "b": "nonsense", "c": "² x"}.items():
        server.command("HSET", KEYS.instances, name, value)
    with server.connect() as connection:
        asyncio.run(blocking_store(connection, clock).clock("new", "x", SILENT))
    assert list(pairs(server.command("HGETALL", KEYS.instances))) == ["new"]


def test_the_time_comes_from_the_server(server: Server) -> None:
    async def main() -> None:
        with server.connect() as connection:
            store = blocking_store(connection, None)
            before = connection.command("TIME")
            time = await store.clock("", "", 0)
            registered = await store.resume("timed")
            after = connection.command("TIME")
            assert _ms(before) <= time <= registered.time <= _ms(after)

    asyncio.run(main())


def _ms(reply: Reply) -> int:
    seconds, micros = (int(part) for part in texts(reply))
    return seconds * 1000 + micros // 1000
