"""The servers of the tests do what the tests rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import QUICK_SERVERS
from tests.support.resp import ReplyError
from tests.support.server import Server, ServerError
from tools import servers

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartServer


@pytest.fixture(params=QUICK_SERVERS)
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def test_shared_server_starts_empty_and_answers(server: Server) -> None:
    assert server.command("DBSIZE") == 0
    assert server.command("RPUSH", "list", "a", 1, 2.5) == 3
    assert server.command("LRANGE", "list", 0, -1) == [b"a", b"1", b"2.5"]


def test_error_reply_is_raised_with_its_code(server: Server) -> None:
    server.command("SET", "text", "x")
    with pytest.raises(ReplyError) as caught:
        server.command("LPUSH", "text", "y")
    assert caught.value.code == "WRONGTYPE"


def test_restart_keeps_data_or_forgets_it(start_server: StartServer, name: str) -> None:
    server = start_server(name)
    port = server.port
    server.command("SET", "key", "value")
    server.restart(keep_data=True)
    assert (server.port, server.command("GET", "key")) == (port, b"value")
    server.restart(keep_data=False)
    assert server.command("GET", "key") is None


def test_append_only_file_survives_a_crash(start_server: StartServer, name: str) -> None:
    server = start_server(name, append_only=True)
    server.command("SET", "key", "value")
    server.kill()
    assert not server.running
    server.start()
    assert server.command("GET", "key") == b"value"


def test_without_persistence_a_crash_loses_everything(start_server: StartServer) -> None:
    server = start_server()
    server.command("SET", "key", "value")
    server.kill()
    server.start()
    assert server.command("DBSIZE") == 0


def test_paused_server_answers_nothing_until_resumed(start_server: StartServer) -> None:
    server = start_server()
    with server.connect() as connection:
        server.pause()
        connection.send("PING")
        with pytest.raises(TimeoutError):
            connection.receive(timeout=0.05)
        assert server.running
        server.resume()
        assert connection.receive() == b"PONG"


def test_users_and_password_are_set(start_server: StartServer, name: str) -> None:
    server = start_server(name, password="owner", users=["app on >secret ~app:* +get +set"])
    assert server.url == f"redis://:owner@127.0.0.1:{server.port}"
    with server.connect() as connection:
        assert connection.command("AUTH", "app", "secret") == b"OK"
        assert connection.command("SET", "app:key", 1) == b"OK"
        with pytest.raises(ReplyError, match="NOPERM"):
            connection.command("SET", "other", 1)


def test_replica_follows_its_primary(start_server: StartServer, name: str) -> None:
    primary = start_server(name, password="owner")
    primary.command("SET", "before", 1)
    replica = start_server(name, replica_of=primary)
    assert replica.command("GET", "before") == b"1"
    primary.command("SET", "after", 2)
    assert primary.command("WAIT", 1, 8000) == 1
    assert replica.command("GET", "after") == b"2"


def test_server_that_does_not_start_says_why(start_server: StartServer) -> None:
    with pytest.raises(ServerError, match="no-such-setting"):
        start_server(settings={"no-such-setting": "yes"})


def test_closed_server_leaves_no_folder(start_server: StartServer) -> None:
    server = start_server()
    server.close()
    assert not server.running
    assert not server.folder.exists()


def test_missing_server_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANARCHON_SERVER_REDIS7", str(tmp_path / "nothing"))
    with pytest.raises(servers.UnavailableError, match="ANARCHON_SERVER_REDIS7"):
        servers.locate("redis7")
    monkeypatch.delenv("ANARCHON_SERVER_REDIS7")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(servers.UnavailableError, match="make servers"):
        servers.locate("redis7")


def test_program_of_another_version_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\necho Redis server v=7.2.4 sha=0\n")
    program.chmod(0o755)
    monkeypatch.setenv("ANARCHON_SERVER_REDIS7", str(program))
    with pytest.raises(servers.UnavailableError, match=r"not a Redis 7\.0 server"):
        servers.locate("redis7")
    program.write_text("#!/bin/sh\necho Redis server v=7.0.99 sha=0\n")
    assert servers.locate("redis7") == program
