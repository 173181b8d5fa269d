"""What `open` finds out about a server: the store's format, replicas, eviction, full memory."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from anarchon import RedisBackend
from anarchon.backends.base import STORE_FORMAT, ClaimCode, Outcome
from anarchon.errors import StoreFormatError, StoreRefused, StoreServerError
from anarchon.testing.conformance import Clock, Subject
from tests.store.blocking import scripts_over

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anarchon.backends.redis.strategies.lease import LeaseStore
    from tests.conftest import StartServer
    from tests.support.server import Server

BOTH = pytest.mark.parametrize("name", ["redis7", "valkey9"])


def with_store(server: Server, use: Callable[[LeaseStore], Awaitable[None]]) -> None:
    """Use a store that is not open yet, and close it."""

    async def main() -> None:
        store = RedisBackend(redis=server.url).connect(timeout=10)
        try:
            await use(store)
        finally:
            await store.close()

    asyncio.run(main())


async def opens(store: LeaseStore) -> None:
    assert await store.open() == ()


def test_the_first_start_writes_the_format(server: Server) -> None:
    with_store(server, opens)
    assert server.command("GET", "cron:format") == str(STORE_FORMAT).encode()
    with_store(server, opens)
    assert server.command("KEYS", "*") == [b"cron:format"]


def test_the_format_is_answered_with_the_servers_time(server: Server) -> None:
    async def use(store: LeaseStore) -> None:
        before = await store.clock("", "", 0)
        with server.connect() as connection:
            reply = await scripts_over(connection).call("format", ["cron:format"], [7])
        assert reply[0] == "ok"
        assert before <= int(str(reply[1])) <= await store.clock("", "", 0)
        assert reply[2] == "7"
        assert server.command("GET", "cron:format") == b"7"

    with_store(server, use)


def test_first_starts_at_once_agree(server: Server) -> None:
    async def main() -> None:
        stores = [RedisBackend(redis=server.url).connect(timeout=10) for _ in range(20)]
        found = await asyncio.gather(*(store.open() for store in stores))
        assert found == [()] * 20
        for store in stores:
            await store.close()

    asyncio.run(main())
    assert server.command("KEYS", "*") == [b"cron:format"]


def test_a_newer_format_is_refused_and_kept(server: Server) -> None:
    server.command("SET", "cron:format", str(STORE_FORMAT + 1))

    async def use(store: LeaseStore) -> None:
        with pytest.raises(StoreFormatError, match=r"format 2.*upgrade") as caught:
            await store.open()
        assert caught.value.code == "ANARCHON_STORE_FORMAT"

    with_store(server, use)
    assert server.command("GET", "cron:format") == str(STORE_FORMAT + 1).encode()


@pytest.mark.parametrize("nonsense", ["", "one", "-1", "1.0", "²", "1 ", "9" * 5000])
def test_a_format_that_makes_no_sense_is_refused(server: Server, nonsense: str) -> None:
    server.command("SET", "cron:format", nonsense)

    async def use(store: LeaseStore) -> None:
        with pytest.raises(StoreFormatError, match=r"cron:format|upgrade"):
            await store.open()

    with_store(server, use)
    assert server.command("GET", "cron:format") == nonsense.encode()


def test_a_format_key_of_another_type_is_refused(server: Server) -> None:
    server.command("LPUSH", "cron:format", "x")

    async def use(store: LeaseStore) -> None:
        with pytest.raises(StoreFormatError, match="cron:format"):
            await store.open()

    with_store(server, use)


@BOTH
def test_a_replica_is_refused(start_server: StartServer, name: str) -> None:
    primary = start_server(name)
    replica = start_server(name, replica_of=primary)
    wait_for_link(replica)

    async def use(store: LeaseStore) -> None:
        with pytest.raises(StoreServerError, match="replica"):
            await store.open()

    with_store(replica, use)
    with_store(primary, opens)
    with_store(replica, use)


@BOTH
def test_a_demoted_server_answers_nothing_stale(start_server: StartServer, name: str) -> None:
    primary, server = start_server(name), start_server(name)

    async def use(store: LeaseStore) -> None:
        await store.open()
        subject = Subject(store, Clock(), job="stale")
        now = await store.clock("", "", 0)
        assert (await subject.claim(now)).code is ClaimCode.WON
        done = now - 1
        server.command("REPLICAOF", "127.0.0.1", primary.port)
        refused: dict[str, Callable[[], Awaitable[object]]] = {
            "claim that would be told running": lambda: subject.claim(now, "token-b"),
            "claim that would be told gone": lambda: subject.claim(done, seen=1),
            "heartbeat that would be lost": lambda: subject.heartbeat(now, "token-b"),
            "finish that would be lost": lambda: subject.finish(now, "token-b"),
            "release that would be lost": lambda: subject.release(now, "token-b"),
            "cancel of nothing": lambda: subject.cancel(done),
            "register": subject.register,
            "pause": lambda: store.pause("stale", 0, ""),
            "resume": lambda: store.resume("stale"),
            "forget": lambda: store.forget("stale"),
            "presence": lambda: store.clock("host:1:a", "alive", 1_000),
        }
        asked: list[str] = []
        for what, call in refused.items():
            with pytest.raises(StoreRefused, match="READONLY"):
                await call()
            asked.append(what)
        assert asked == list(refused)
        server.command("REPLICAOF", "NO", "ONE")

    with_store(server, use)


@BOTH
def test_possible_eviction_is_warned_of(start_server: StartServer, name: str) -> None:
    evicting = start_server(name, settings={"maxmemory": "64mb", "maxmemory-policy": "allkeys-lru"})

    async def use(store: LeaseStore) -> None:
        (warning,) = await store.open()
        assert "allkeys-lru" in warning
        assert "noeviction" in warning

    with_store(evicting, use)
    evicting.command("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
    with_store(evicting, opens)
    evicting.command("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
    evicting.command("CONFIG", "SET", "maxmemory", "0")
    with_store(evicting, opens)


@BOTH
def test_full_memory_stops_nothing(start_server: StartServer, name: str) -> None:
    server = start_server(name, settings={"maxmemory-policy": "noeviction"})

    async def use(store: LeaseStore) -> None:
        await store.open()
        now = await store.clock("", "", 0)
        subject = Subject(store, Clock(), job="full")
        assert (await subject.claim(now)).code is ClaimCode.WON
        server.command("CONFIG", "SET", "maxmemory", "1mb")
        server.command("SCRIPT", "FLUSH")
        await opens(store)
        assert (await subject.heartbeat(now)).ok
        assert (await subject.finish(now, outcome=Outcome.FAILED, delay=0)).ok
        taken = await subject.claim(now, "token-b", seen=1, deadline=now + 60_000)
        assert taken.code is ClaimCode.WON
        assert (await subject.release(now, "token-b")).ok
        assert (await store.clock("host:1:a", "alive", 1_000)) >= now
        other = Subject(store, Clock(), job="another")
        assert (await other.register()).changed
        assert (await store.pause("another", 0, "")).ok
        assert (await other.claim(now)).code is ClaimCode.PAUSED

    with_store(server, use)


@BOTH
def test_an_empty_store_opens_with_full_memory(start_server: StartServer, name: str) -> None:
    server = start_server(name, settings={"maxmemory": "1mb"})
    with_store(server, opens)
    assert server.command("GET", "cron:format") == str(STORE_FORMAT).encode()


def wait_for_link(replica: Server) -> None:
    """Wait until a replica has its primary's data."""
    with replica.connect() as connection:
        while "master_link_status:up" not in str(connection.command("INFO", "replication")):
            time.sleep(0.001)  # until the first synchronisation is over
