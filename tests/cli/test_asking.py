"""What asks a scheduler registers no job, runs none, is no instance, and prints no password."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from anarchon import MemoryBackend, RedisBackend, Scheduler
from anarchon.cli.asking import scheduler_of

if TYPE_CHECKING:
    from tests.cli.conftest import Write
    from tests.cli.support import Commands
    from tests.conftest import StartServer
    from tests.support.server import Server

DUE = """
    from anarchon import RedisBackend, Scheduler

    scheduler = Scheduler(backend=RedisBackend(redis="{url}"))

    @scheduler.job("* * * * * *", catch_up=3600)
    def work() -> None:
        raise AssertionError("it was run")
"""
QUESTIONS = [
    (["jobs", "TARGET"], 0),
    (["history", "TARGET", "work"], 0),
    (["why", "TARGET", "work", "2026-11-30"], 0),
    (["resume", "TARGET", "work"], 1),
    (["cancel", "TARGET", "work"], 1),
    (["cancel", "TARGET", "work", "2026-11-30"], 1),
    (["forget", "TARGET", "work", "--yes"], 0),
]


@pytest.mark.parametrize(("arguments", "status"), QUESTIONS)
@pytest.mark.parametrize("as_json", [False, True])
def test_an_empty_store_stays_empty(  # noqa: PLR0913 - parametrised
    valkey9: Server,
    write: Write,
    commands: Commands,
    arguments: list[str],
    status: int,
    as_json: bool,
) -> None:
    name = write(DUE.format(url=valkey9.url))
    given = [f"{name}:scheduler" if each == "TARGET" else each for each in arguments]
    commands(*given, *(["--json"] if as_json else []), status=status)
    assert valkey9.command("KEYS", "*") == []


def test_a_pause_leaves_nothing_but_the_pause(
    server: Server, write: Write, commands: Commands
) -> None:
    name = write(DUE.format(url=server.url))
    commands("pause", f"{name}:scheduler", "work", "--note", "x")
    commands("history", f"{name}:scheduler", "work")
    assert server.command("KEYS", "*") == [b"{cron:work}:state"]
    fields = server.command("HKEYS", "{cron:work}:state")
    assert fields == [b"paused"]


def test_of_an_unknown_job_the_nearest_is_told_that_an_instance_has(
    server: Server, commands: Commands
) -> None:
    async def ask() -> str:
        scheduler = Scheduler(backend=RedisBackend(redis=server.url))
        scheduler.add_job(print, "@yearly", name="nightly_report")
        async with scheduler:
            # In a thread: the command has an event loop of its own.
            why = ("why", server.url, "nightly", "2026-01-01")
            return await asyncio.to_thread(commands.refused, *why)

    assert "did you mean 'nightly_report'?" in asyncio.run(ask())


@pytest.mark.parametrize(
    "arguments",
    [
        ["jobs", "URL"],
        ["history", "URL", "work"],
        ["why", "URL", "work", "2026-11-30"],
        ["pause", "URL", "work"],
        ["resume", "URL", "work"],
        ["cancel", "URL", "work"],
        ["forget", "URL", "work", "--yes"],
    ],
)
def test_no_password_is_printed(
    start_server: StartServer, commands: Commands, arguments: list[str]
) -> None:
    server = start_server(password="the-secret")
    right = [server.url if each == "URL" else each for each in arguments]
    wrong = [each.replace("the-secret", "no-secret") for each in right]
    told = commands.refused(*wrong)
    assert "the store does not accept user and password" in told
    assert "secret" not in told
    server.stop()
    told = commands.refused(*right)
    assert "no connection to the store" in told
    assert "secret" not in told


def test_a_socket_and_valkeys_own_scheme(start_server: StartServer, commands: Commands) -> None:
    server = start_server(settings={"unixsocket": "valkey.sock"})
    for url in (
        f"unix://{server.folder}/valkey.sock?db=0",
        server.url.replace("redis://", "valkey://"),
    ):
        told = commands("jobs", url)
        assert told.out == "No instance is alive with this store and prefix.\n"


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("valkeys://:pw@host:1/2", "rediss://:pw@host:1/2"),
        ("valkey://host", "redis://host"),
        ("rediss://host", "rediss://host"),
    ],
)
def test_what_a_url_becomes(given: str, asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []

    def backend(*, redis: str, prefix: str) -> MemoryBackend:
        seen.append((redis, prefix))
        return MemoryBackend()

    monkeypatch.setattr("anarchon.cli.asking.RedisBackend", backend)
    assert scheduler_of(given, None).jobs == ()
    scheduler_of(given, "shop:")
    assert seen == [(asked, "cron:"), (asked, "shop:")]
