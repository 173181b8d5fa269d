"""What can be given as a connection: URLs, options, clients of any setting; and what is refused."""

from __future__ import annotations

import asyncio
import gc
import time
import traceback
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio

from anarchon import RedisBackend, ValkeyBackend
from anarchon.backends.base import ClaimCode, Outcome
from anarchon.errors import ConfigurationError, StoreError
from anarchon.runs import RunStatus
from anarchon.testing.conformance import Clock, Subject

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from anarchon.backends.base import Store
    from tests.conftest import StartServer
    from tests.support.server import Server


async def use(store: Store) -> None:
    """A run from its claim to its history."""
    await store.open()
    subject = Subject(store, Clock(), job="jöb")
    now = await store.clock("höst:1:a", "alive", 60_000)
    await subject.register()
    assert (await subject.claim(now, runner="höst:1:a")).code is ClaimCode.WON
    assert (await subject.claim(now, "token-b")).code is ClaimCode.RUNNING
    assert (await subject.heartbeat(now)).ok
    assert (await subject.finish(now, outcome=Outcome.NO_RETRY, error="bäd\x00\n")).ok
    (run,) = await subject.runs()
    assert (run.id, run.status) == (str(now), RunStatus.FAILED)
    assert (run.attempts[0].runner, run.attempts[0].error) == ("höst:1:a", "bäd\x00\n")
    assert (await store.forget("jöb")).ok


def connect_and_use(**options: Any) -> None:
    async def main() -> None:
        store = RedisBackend(**options).connect(timeout=10)
        await use(store)
        await store.close()

    asyncio.run(main())


def test_a_url(server: Server) -> None:
    connect_and_use(redis=f"redis://127.0.0.1:{server.port}/3")
    assert server.command("GET", "cron:format") is None
    server.command("SELECT", 3)
    assert server.command("GET", "cron:format") == b"1"
    server.command("SELECT", 0)


@pytest.mark.parametrize("name", ["redis7", "valkey9"])
def test_a_unix_socket(start_server: StartServer, tmp_path: Path, name: str) -> None:
    path = tmp_path / "socket"
    with pytest.raises(StoreError):
        connect_and_use(redis=f"unix://{path}")
    server = start_server(name, settings={"unixsocket": str(path)})
    connect_and_use(redis=f"unix://{path}")
    assert server.command("GET", "cron:format") == b"1"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"decode_responses": True},
        {"protocol": 3},
        {"protocol": 3, "decode_responses": True},
        {"single_connection_client": True},
    ],
    ids=str,
)
def test_options(server: Server, options: Mapping[str, Any]) -> None:
    connect_and_use(redis={"host": "127.0.0.1", "port": server.port, **options})
    assert server.command("GET", "cron:format") == b"1"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"decode_responses": True},
        {"protocol": 3},
        {"protocol": 2, "decode_responses": True},
        {"protocol": 3, "decode_responses": True},
        {"encoding": "latin-1", "decode_responses": False},
    ],
    ids=str,
)
def test_a_given_client_is_used_and_left_as_it_was(
    server: Server, options: Mapping[str, Any]
) -> None:
    async def main() -> None:
        client: Any = redis.asyncio.Redis(host="127.0.0.1", port=server.port, **options)
        before = dict(client.connection_pool.connection_kwargs)
        callbacks = dict(client.response_callbacks)
        backend = RedisBackend(redis=client)
        assert backend.shares_connection
        for _ in range(2):
            store = backend.connect(timeout=10)
            await use(store)
            await store.close()
        assert client.connection_pool.connection_kwargs == before
        assert client.response_callbacks == callbacks
        assert await client.execute_command("PING"), "it is still open"
        await client.aclose()

    asyncio.run(main())


def test_an_own_connection_is_closed(start_server: StartServer) -> None:
    server = start_server()

    async def main() -> None:
        store = RedisBackend(redis=server.url).connect(timeout=10)
        await store.open()
        assert len(clients(server)) == 2
        await store.close()
        await store.close()

    asyncio.run(main())
    deadline = time.monotonic() + 5
    while len(clients(server)) > 1 and time.monotonic() < deadline:
        time.sleep(0.001)  # until the server has noticed
    assert len(clients(server)) == 1


def clients(server: Server) -> list[bytes]:
    reply = server.command("CLIENT", "LIST")
    assert isinstance(reply, bytes)
    return reply.splitlines()


def test_a_backend_serves_one_loop_after_another(server: Server) -> None:
    backend = RedisBackend(redis=server.url)
    assert not backend.shares_connection

    async def main() -> int:
        store = backend.connect(timeout=10)
        try:
            return await store.clock("", "", 0)
        finally:
            await store.close()

    assert asyncio.run(main()) <= asyncio.run(main())


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_of_another_loop_is_explained(server: Server) -> None:
    client = redis.asyncio.Redis(host="127.0.0.1", port=server.port)
    backends = [RedisBackend(redis=client)]
    del client

    async def main() -> None:
        await backends[0].connect(timeout=10).open()

    asyncio.run(main())
    with pytest.raises(StoreError, match=r"event loop.*URL"):
        asyncio.run(main())
    backends.clear()
    gc.collect()  # complains of the connection in the first loop here, not in a later test


@pytest.mark.parametrize(
    "given",
    [None, 6379, object(), redis.Redis(), ("host", 6379), redis.asyncio.ConnectionPool(), b"redis"],
    ids=lambda given: type(given).__name__,
)
def test_an_unknown_object_is_refused_with_what_is_accepted(given: Any) -> None:
    for option in ("redis", "valkey"):
        backend: Any = RedisBackend if option == "redis" else ValkeyBackend
        with pytest.raises(
            ConfigurationError, match=rf"{option}=.*mapping.*Redis client"
        ) as caught:
            backend(**{option: given})
        assert type(given).__qualname__ in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost",
        "http://hunter2@localhost",
        "redis://:hunter2@localhost:port",
        "redis:hunter2",
    ],
)
def test_a_wrong_url_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match="redis://") as caught:
        RedisBackend(redis=url)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_wrong_options_are_refused_by_name() -> None:
    options: dict[str, object] = dict(
        zip(("host", "pasword"), ("localhost", "hunter2"), strict=True)
    )
    with pytest.raises(ConfigurationError, match="pasword") as caught:
        RedisBackend(redis=options)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_no_password_is_ever_shown(server: Server) -> None:
    backends = [
        RedisBackend(redis=f"redis://app:hunter2@127.0.0.1:{server.port}"),
        ValkeyBackend(valkey={"host": "127.0.0.1", "port": server.port, "password": "hunter2"}),
        RedisBackend(redis="redis://app:hunter2@127.0.0.1:1"),
        RedisBackend(redis="redis://app:hunter2@nowhere.invalid"),
    ]

    async def main(backend: RedisBackend) -> str:
        store = backend.connect(timeout=10)
        try:
            await store.open()
        except StoreError as error:
            return f"{error!r} {''.join(traceback.format_exception(error))}"
        finally:
            await store.close()
        return ""

    for backend in backends:
        shown = f"{backend!r} {backend} {vars(backend)} {asyncio.run(main(backend))}"
        assert "hunter2" not in shown


@pytest.mark.parametrize("text", ["\udcff", "a\x00b", "\n", "x" * 100_000], ids=ascii)
def test_any_text_of_an_error_is_taken(server: Server, text: str) -> None:
    async def main() -> None:
        store = RedisBackend(redis=server.url).connect(timeout=10)
        now = await store.clock("", "", 0)
        subject = Subject(store, Clock(), job="texts")
        await subject.claim(now)
        assert (await subject.finish(now, outcome=Outcome.NO_RETRY, error=text)).ok
        (run,) = await subject.runs()
        assert run.status is RunStatus.FAILED
        assert run.attempts[0].error
        await store.close()

    asyncio.run(main())
