"""Fields and keys that somebody damaged or took away: the next calls put things right again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from anarchon import StoreError
from anarchon.backends.base import STORE_FORMAT, ClaimCode
from anarchon.backends.redis.connection import Connection
from anarchon.backends.redis.strategies.lease import LeaseStore
from anarchon.testing.conformance import Clock, Subject
from anarchon.testing.conformance.subject import SLOT, B
from tests.store.blocking import KEYS, BlockingClient, blocking_store, scripts_over
from tests.store.books import texts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anarchon.backends.redis.clients.base import Argument, Reply
    from tests.support import resp
    from tests.support.server import Server

JOB = "damaged"
STATE, _ACTIVE, SLOTS, RUNS, _RESULTS = KEYS.of_job(JOB)
LATER = 10_000_000
"""Milliseconds after which nobody asks for a slot any more."""

# What Lua reads as a number, or nearly, and what is too large to be held exactly.
NO_WHOLE_NUMBERS = (
    "inf",
    "-inf",
    "nan",
    "1e300",
    "1e15",
    "0x7fffffffffff",
    "1.5",
    " 7",
    "7 ",
    "-7",
    "+7",
    "",
    "x",
    "9" * 15,  # held, but its successor would not be
    "9" * 16,
    "9" * 400,
)
each_damage = pytest.mark.parametrize("value", NO_WHOLE_NUMBERS, ids=lambda value: value[:20])


def with_subject(server: Server, use: Callable[[Subject], Awaitable[None]]) -> None:
    """Use a job over a server."""

    async def main() -> None:
        clock = Clock()
        with server.connect() as connection:
            await use(Subject(blocking_store(connection, clock), clock, job=JOB))

    asyncio.run(main())


def field(server: Server, name: str) -> str:
    """A field of the job's own."""
    return texts([server.command("HGET", STATE, name)])[0]


@each_damage
def test_a_damaged_fence_is_replaced_by_the_time(server: Server, value: str) -> None:
    async def use(s: Subject) -> None:
        server.command("HSET", STATE, "fence", value)
        won = await s.claim()
        assert (won.code, won.fence) == (ClaimCode.WON, SLOT)
        assert field(server, "fence") == str(SLOT)
        # Its record can be read, by whoever asks next.
        assert (await s.claim(token=B)).code is ClaimCode.RUNNING
        assert (await s.heartbeat()).ok
        assert (await s.finish()).ok

    with_subject(server, use)


def test_the_largest_fence_is_kept(server: Server) -> None:
    async def use(s: Subject) -> None:
        server.command("HSET", STATE, "fence", "9" * 14)
        assert (await s.claim()).fence == 10**14
        assert (await s.finish()).ok

    with_subject(server, use)


@pytest.mark.parametrize("run", [SLOT, f"m{SLOT}-x"])
@each_damage
def test_a_damaged_floor_settles_nothing(server: Server, run: int | str, value: str) -> None:
    async def use(s: Subject) -> None:
        server.command("HSET", STATE, "floor", value, "floor:manual", value)
        assert (await s.claim(run)).code is ClaimCode.WON

    with_subject(server, use)


@each_damage
def test_a_damaged_floor_is_raised_again_by_trimming(server: Server, value: str) -> None:
    async def use(s: Subject) -> None:
        s.set_terms(history_size=1)
        await s.claim()
        await s.finish()
        server.command("HSET", STATE, "floor", value)
        s.at(SLOT + LATER)
        await s.claim(SLOT + LATER)
        assert field(server, "floor") == str(SLOT)
        assert (await s.claim(token=B)).settled == "floor"

    with_subject(server, use)


@each_damage
def test_a_damaged_since_is_set_anew_at_the_next_start(server: Server, value: str) -> None:
    async def use(s: Subject) -> None:
        await s.register()
        server.command("HSET", STATE, "since", value)
        assert (await s.claim(SLOT - 1, since_applies=True)).code is ClaimCode.WON
        assert (await s.register()).since == SLOT
        assert (await s.claim(SLOT, B, since_applies=True)).settled == "since"

    with_subject(server, use)


@pytest.mark.parametrize("ttl", [60 * 366 * 86_400_000, 100 * 366 * 86_400_000, SLOT, SLOT + 1])
def test_a_history_ttl_that_reaches_back_beyond_the_epoch(server: Server, ttl: int) -> None:
    async def use(s: Subject) -> None:
        s.set_terms(history_ttl=ttl)
        assert (await s.claim()).code is ClaimCode.WON
        assert (await s.finish()).ok
        assert len(await s.runs()) == 1

    with_subject(server, use)


def test_a_run_whose_claim_stopped_halfway_is_trimmed_like_any_other(server: Server) -> None:
    async def use(s: Subject) -> None:
        s.set_terms(history_size=3)
        server.command("SET", RUNS, "of another type")
        for slot in range(SLOT, SLOT + 8 * LATER, LATER):
            s.at(slot)
            with pytest.raises(StoreError, match="WRONGTYPE"):
                await s.claim(slot)
            # It is won all the same, as the repeat of the call is told.
            assert (await s.claim(slot)).code is ClaimCode.WON
            assert (await s.finish(slot)).ok
        server.command("DEL", RUNS)
        for slot in range(SLOT + 8 * LATER, SLOT + 11 * LATER, LATER):
            s.at(slot)
            assert (await s.claim(slot)).code is ClaimCode.WON
            assert (await s.finish(slot)).ok
        assert server.command("ZCARD", SLOTS) == 3
        kept = [name for name in texts(server.command("HKEYS", STATE)) if name.isdigit()]
        assert len(kept) == 3

    with_subject(server, use)


class Flushing(BlockingClient):
    """A client whose server is emptied before a command of a number."""

    def __init__(self, connection: resp.Connection, number: int) -> None:
        super().__init__(connection)
        self._server = connection
        self._left = number

    async def send(self, *command: Argument) -> Reply:
        self._left -= 1
        if self._left == 0:
            self._server.command("FLUSHALL")
        return await super().send(*command)


@pytest.mark.parametrize("number", range(1, 8))
def test_a_server_emptied_during_a_start_can_be_started_on_again(
    server: Server, number: int
) -> None:
    async def main() -> None:
        with server.connect() as connection:
            client = Flushing(connection, number)
            store = LeaseStore(Connection(lambda _timeout: client, KEYS, 10.0))
            await store.open()
            assert server.command("GET", KEYS.format) in {None, str(STORE_FORMAT).encode()}
            again = LeaseStore(scripts_over(connection))
            assert await again.open() == ()
            assert server.command("GET", KEYS.format) == str(STORE_FORMAT).encode()

    asyncio.run(main())
