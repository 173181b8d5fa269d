"""Errors of real servers, as what they mean: refused, unknown, not allowed, or for good."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from anarchon import RedisBackend
from anarchon.backends.base import ClaimCode
from anarchon.backends.redis.clients.base import NoScript, error_of_reply
from anarchon.backends.redis.clients.redis_py import RedisPyClient, from_url
from anarchon.errors import (
    StoreError,
    StorePermissionError,
    StoreRefused,
    StoreServerError,
    StoreUnavailable,
)
from anarchon.testing.conformance import Clock, Subject
from tests.support.resp import ReplyError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.conftest import StartServer
    from tests.support.server import Server

ONCE = Retry(NoBackoff(), 0)
BOTH = pytest.mark.parametrize("name", ["redis7", "valkey9"])

REPLIES: dict[str, type[StoreError]] = {
    "READONLY You can't write against a read only replica.": StoreRefused,
    "OOM command not allowed when used memory > 'maxmemory'.": StoreRefused,
    "MISCONF Errors writing to the AOF file: No space left on device": StoreRefused,
    "NOREPLICAS Not enough good replicas to write.": StoreRefused,
    "CLUSTERDOWN The cluster is down": StoreRefused,
    "LOADING Redis is loading the dataset in memory": StoreRefused,
    "BUSY Redis is busy running a script.": StoreRefused,
    "TRYAGAIN Multiple keys request during rehashing of slot": StoreRefused,
    "MASTERDOWN Link with MASTER is down": StoreRefused,
    "NOSCRIPT No matching script. Please use EVAL.": NoScript,
    "An error was signalled by the server: NoScriptError: No matching script.": NoScript,
    "NOAUTH Authentication required.": StorePermissionError,
    "WRONGPASS invalid username-password pair or user is disabled.": StorePermissionError,
    "ERR invalid password": StorePermissionError,
    "NOPERM User app has no permissions to run the 'evalsha' command": StorePermissionError,
    "ERR ACL failure in script: User app has no permissions": StorePermissionError,
    "ERR The user executing the script can't run this command": StorePermissionError,
    "WRONGTYPE Operation against a key holding the wrong kind of value": StoreError,
    "ERR unknown command 'evalsha'": StoreError,
    "CROSSSLOT Keys in request don't hash to the same slot": StoreError,
}
WRAPPED = "ERR Error running script (call to f_1): @user_script: 8: -{}"


@pytest.mark.parametrize("text", REPLIES)
def test_replies_are_sorted(text: str) -> None:
    assert type(error_of_reply(text)) is REPLIES[text]
    assert text in str(error_of_reply(text))
    assert type(error_of_reply(WRAPPED.format(text))) is REPLIES[text]


WRITE = ("EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", 1, "k", "v")


def error_met_by(client: RedisPyClient, *command: str | int) -> StoreError:
    """Send a command that must fail."""

    async def main() -> StoreError:
        try:
            await client.send(*command)
        except StoreError as error:
            return error
        finally:
            await client.close()
        pytest.fail(f"{command} went well")

    return asyncio.run(main())


def clients_of(url: str) -> list[Callable[[], RedisPyClient]]:
    """Both parsers of redis-py's replies, both protocols."""

    def made(**options: object) -> RedisPyClient:
        client = redis.asyncio.Redis.from_url(url, **options)  # type: ignore[arg-type]
        return RedisPyClient(client, owned=True)

    return [
        lambda: from_url(url, 5.0),
        lambda: made(protocol=3),
        lambda: made(protocol=2, decode_responses=True),
    ]


def check_each_client(server: Server, wanted: type[StoreError], *command: str | int) -> None:
    """Every kind of client must sort the server's error alike."""
    for make in clients_of(server.url):
        error = error_met_by(make(), *command)
        assert type(error) is wanted, error


@BOTH
def test_read_only(start_server: StartServer, name: str) -> None:
    replica = start_server(name, replica_of=start_server(name))
    check_each_client(replica, StoreRefused, *WRITE)
    check_each_client(replica, StoreRefused, "SET", "k", "v")
    for make in clients_of(replica.url):
        assert "READONLY" in str(error_met_by(make(), *WRITE))


@BOTH
def test_full_memory(start_server: StartServer, name: str) -> None:
    server = start_server(name, settings={"maxmemory": "1"})
    check_each_client(server, StoreRefused, *WRITE)
    check_each_client(server, StoreRefused, "SET", "k", "v")


@BOTH
def test_too_few_replicas(start_server: StartServer, name: str) -> None:
    server = start_server(name, settings={"min-replicas-to-write": 1})
    check_each_client(server, StoreRefused, *WRITE)


@BOTH
def test_a_failed_save(start_server: StartServer, name: str) -> None:
    server = start_server(name, settings={"dbfilename": "folder"})
    (server.folder / "folder").mkdir()
    server.command("CONFIG", "SET", "save", "3600 1")
    server.command("BGSAVE")
    while b"rdb_last_bgsave_status:err" not in info(server, "persistence"):
        time.sleep(0.001)  # until the child process has ended
    check_each_client(server, StoreRefused, *WRITE)


@BOTH
def test_no_authentication(start_server: StartServer, name: str) -> None:
    server = start_server(name, password="hunter2")
    for make in clients_of(f"redis://127.0.0.1:{server.port}"):
        assert type(error_met_by(make(), *WRITE)) is StorePermissionError


@BOTH
def test_no_permission(start_server: StartServer, name: str) -> None:
    server = start_server(name, users=["default on nopass ~* +eval +@connection +@read"])
    check_each_client(server, StorePermissionError, *WRITE)
    check_each_client(server, StorePermissionError, "SET", "k", "v")


def test_no_script(server: Server) -> None:
    check_each_client(server, NoScript, "EVALSHA", "0" * 40, 0)


def test_errors_for_good(server: Server) -> None:
    server.command("LPUSH", "k", "v")
    check_each_client(server, StoreError, "EVAL", "return redis.call('GET', KEYS[1])", 1, "k")
    check_each_client(server, StoreError, "NOSUCHCOMMAND")
    check_each_client(server, StoreError, "EVAL", "return nosuch()", 0)


@contextmanager
def busy(server: Server) -> Generator[None]:
    """Keep the server in a long script that writes nothing."""
    server.command("CONFIG", "SET", "lua-time-limit", 1)
    loop = threading.Thread(target=_run_for_ever, args=(server,))
    loop.start()
    with closing(server.connect()) as connection:
        while not _is_busy(connection.command):
            time.sleep(0.001)  # until the script was noticed as slow
        yield
        connection.command("SCRIPT", "KILL")
    loop.join()


def _run_for_ever(server: Server) -> None:
    with server.connect() as connection, pytest.raises(ReplyError):
        connection.command("EVAL", "while true do end", 0)


def _is_busy(command: Callable[[str], object]) -> bool:
    try:
        command("PING")
    except ReplyError as error:
        return error.code == "BUSY"
    return False


@BOTH
def test_a_busy_server(start_server: StartServer, name: str) -> None:
    server = start_server(name)
    with busy(server):
        check_each_client_of_busy(server)


def check_each_client_of_busy(server: Server) -> None:
    error = error_met_by(from_url(server.url, 5.0), *WRITE)
    assert type(error) is StoreRefused
    assert "BUSY" in str(error)


@BOTH
def test_a_loading_server(start_server: StartServer, name: str) -> None:
    server = start_server(
        name,
        settings={"enable-debug-command": "local", "loading-process-events-interval-bytes": 1024},
    )
    for number in range(200):
        server.command("SET", f"k{number}", "x" * 100)
    server.command("SAVE")
    server.command("CONFIG", "SET", "key-load-delay", 20_000)
    reload = threading.Thread(target=_reload, args=(server,))
    reload.start()
    errors: list[StoreError] = []
    while not errors:
        try:
            asyncio.run(_write(from_url(server.url, 5.0)))
        except StoreError as error:
            errors.append(error)
    server.kill()
    reload.join()
    assert type(errors[0]) is StoreRefused
    assert "load" in str(errors[0]).lower()


async def _write(client: RedisPyClient) -> None:
    try:
        await client.send("SET", "k", "v")
    finally:
        await client.close()


def _reload(server: Server) -> None:
    with server.connect() as connection, suppress(OSError, ReplyError):
        connection.command("DEBUG", "RELOAD", "NOSAVE")


@BOTH
def test_nobody_listens(start_server: StartServer, name: str) -> None:
    server = start_server(name)
    server.stop()
    error = error_met_by(from_url(server.url, 5.0), *WRITE)
    assert type(error) is StoreRefused, "no connection: it is known that nothing happened"


def test_nobody_listens_to_a_given_client(start_server: StartServer) -> None:
    server = start_server()
    server.stop()
    client = RedisPyClient(redis.asyncio.Redis(port=server.port, retry=ONCE), owned=False)
    error = error_met_by(client, *WRITE)
    assert type(error) is StoreUnavailable, "a client of the user's may have sent it before"


@BOTH
def test_a_silent_server(start_server: StartServer, name: str) -> None:
    server = start_server(name)

    async def main() -> None:
        store = RedisBackend(redis=server.url).connect(timeout=0.3)
        await store.open()
        now = await store.clock("", "", 0)
        subject = Subject(store, Clock(), job="silent")
        server.pause()
        begun = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await subject.claim(now)
        with pytest.raises(StoreUnavailable):
            await store.open()
        assert time.monotonic() - begun < 2.0
        server.resume()
        answer = await subject.claim(now)
        assert (answer.code, answer.attempt) == (ClaimCode.WON, 1)
        await store.close()

    asyncio.run(main())


def test_the_deadline_holds_whatever_the_client_does(start_server: StartServer) -> None:
    server = start_server()

    async def main() -> None:
        client = redis.asyncio.Redis(port=server.port, socket_timeout=None)
        store = RedisBackend(redis=client).connect(timeout=0.3)
        await store.open()
        server.pause()
        begun = time.monotonic()
        calls = [store.clock("", "", 0) for _ in range(40)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert time.monotonic() - begun < 2.0
        assert {type(answer) for answer in answers} == {StoreUnavailable}
        server.resume()
        await store.close()
        await client.aclose()

    asyncio.run(main())


@BOTH
def test_a_restarted_server(start_server: StartServer, name: str) -> None:
    server = start_server(name)

    async def main() -> None:
        store = RedisBackend(redis=server.url).connect(timeout=5)
        await store.open()
        now = await store.clock("", "", 0)
        subject = Subject(store, Clock(), job="restarted")
        assert (await subject.claim(now)).code is ClaimCode.WON
        server.restart(keep_data=True)
        assert (await subject.heartbeat(now)).ok, "the first call after it, without an error"
        server.restart(keep_data=False)
        assert not (await subject.heartbeat(now)).ok
        assert not (await subject.finish(now)).ok
        assert server.command("KEYS", "{*") == [], "what was lost is not made anew by half"
        await store.close()

    asyncio.run(main())


def test_a_connection_that_was_cut_is_healed(server: Server) -> None:
    async def main() -> None:
        store = RedisBackend(redis=server.url).connect(timeout=5)
        await store.open()
        server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert await store.clock("", "", 0) > 0
        await store.close()

    asyncio.run(main())


def test_an_error_keeps_its_code() -> None:
    assert StoreServerError.code == "ANARCHON_STORE_SERVER"
    assert issubclass(NoScript, StoreRefused)


def info(server: Server, section: str) -> bytes:
    reply = server.command("INFO", section)
    assert isinstance(reply, bytes)
    return reply
