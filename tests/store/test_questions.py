"""What questions to real servers take and leave: permissions, formats, and nothing written."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from anarchon.backends.base import STORE_FORMAT, StoreFacts
from anarchon.errors import (
    StoreError,
    StoreFormatError,
    StorePermissionError,
    StoreRefused,
    StoreServerError,
)
from anarchon.testing.conformance import Clock, Subject
from tests.docs.test_permissions import RULES
from tests.store.blocking import KEYS, blocking_store
from tests.store.test_look import JOB, with_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anarchon.backends.redis.strategies.lease import LeaseStore
    from tests.conftest import StartServer
    from tests.support.server import Server

QUESTIONS: dict[str, Callable[[LeaseStore], Awaitable[object]]] = {
    "look": lambda store: store.look(JOB, ""),
    "look at a run": lambda store: store.look(JOB, "1700000000000"),
    "history": lambda store: store.history(JOB, 10),
    "instances": lambda store: store.instances(),
    "facts": lambda store: store.facts(),
    "time": lambda store: store.clock("", "", 0),
}


def test_questions_write_nothing_into_an_empty_store(server: Server) -> None:
    for ask in QUESTIONS.values():
        with_store(server.url, ask)
    assert server.command("DBSIZE") == 0


def test_questions_change_nothing_of_a_job(server: Server) -> None:
    with server.connect() as connection:
        clock = Clock()
        _ask_a_while_later(server, Subject(blocking_store(connection, clock), clock, job=JOB))


def _ask_a_while_later(server: Server, subject: Subject) -> None:
    slot = subject.clock.now

    async def live() -> None:
        await subject.register()
        await subject.claim(slot - 100_000_000, deadline=slot + 1)
        await subject.store.pause(JOB, 0, "x")

    asyncio.run(live())
    subject.clock.now += 100_000_000  # its lease is over long since
    keys = [*KEYS.of_job(JOB)]
    before = [server.command("DUMP", key) for key in keys]
    asyncio.run(subject.store.look(JOB, str(slot)))
    asyncio.run(subject.store.history(JOB, 10))
    asyncio.run(subject.store.instances())
    assert [server.command("DUMP", key) for key in keys] == before


@pytest.mark.parametrize("name", ["redis7", "valkey9"])
def test_the_minimal_permissions_are_enough_for_questions(
    start_server: StartServer, name: str
) -> None:
    server = start_server(name, users=[RULES])
    url = f"redis://anarchon:secret@127.0.0.1:{server.port}"
    for what, ask in QUESTIONS.items():
        answer = with_store(url, ask)
        if what == "facts":
            assert answer == StoreFacts()  # INFO is left out of them
    assert server.command("DBSIZE") == 0


@pytest.mark.parametrize(
    ("missing", "asked"),
    [
        ("~{cron:*}:*", "look"),
        ("~cron:instances", "instances"),
        ("~cron:format", "time"),
        ("+smembers", "look"),
        ("+zrangebyscore", "look at a run"),
        ("+hgetall", "instances"),
        ("+evalsha", "time"),
    ],
)
def test_a_missing_permission_is_told_of(
    start_server: StartServer, missing: str, asked: str
) -> None:
    rules = " ".join(word for word in RULES.split() if word != missing)
    server = start_server("valkey9", users=[rules])
    url = f"redis://anarchon:secret@127.0.0.1:{server.port}"
    with pytest.raises(StorePermissionError) as caught:
        with_store(url, QUESTIONS[asked])
    assert "secret" not in str(caught.value)


def test_a_newer_format_refuses_questions(server: Server) -> None:
    server.command("SET", "cron:format", str(STORE_FORMAT + 1))
    with pytest.raises(StoreFormatError, match=r"format 2.*upgrade"):
        with_store(server.url, QUESTIONS["look"])
    server.command("SET", "cron:format", "nonsense")
    with pytest.raises(StoreFormatError, match="did not write"):
        with_store(server.url, QUESTIONS["look"])
    server.command("SET", "cron:format", str(STORE_FORMAT))
    assert not with_store(server.url, QUESTIONS["look"]).known


def test_a_replica_refuses_questions(start_server: StartServer) -> None:
    replica = start_server(replica_of=start_server())
    with pytest.raises(StoreServerError, match="replica"):
        with_store(replica.url, QUESTIONS["look"])


def test_a_server_that_is_down(start_server: StartServer) -> None:
    server = start_server()
    server.stop()
    with pytest.raises(StoreRefused, match="no connection"):
        with_store(server.url, QUESTIONS["look"])


def test_a_key_of_another_type_is_named(server: Server) -> None:
    server.command("SET", KEYS.of_job(JOB)[0], "x")
    with pytest.raises(StoreError, match="looked at"):
        with_store(server.url, QUESTIONS["look"])
    server.command("SET", KEYS.instances, "x")
    with pytest.raises(StoreError, match="cron:instances"):
        with_store(server.url, QUESTIONS["instances"])
