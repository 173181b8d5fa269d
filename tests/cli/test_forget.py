"""`anarchon forget`: asks, and deletes nothing unless told to."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from tests.cli.support import Process

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Write
    from tests.cli.support import Commands
    from tests.support.server import Server


class Terminal(io.StringIO):
    """A standard input that is a terminal, on which something is typed."""

    def isatty(self) -> bool:
        return True


def runs(commands: Commands, target: str, job: str) -> int:
    return len(commands("history", target, job).lines) - 1


def test_without_a_terminal_it_needs_yes(
    shop: str, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands("run-now", shop, "nightly_report")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert "without a terminal to ask on, give --yes" in commands.refused(
        "forget", shop, "nightly_report"
    )
    assert runs(commands, shop, "nightly_report") == 2
    told = commands("forget", shop, "nightly_report", "--yes")
    assert told.out == "Nothing is stored of nightly_report any more.\n"
    assert runs(commands, shop, "nightly_report") == 0


@pytest.mark.parametrize("typed", ["y\n", "YES\n"])
def test_a_yes_on_the_terminal(
    shop: str, commands: Commands, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    commands("run-now", shop, "nightly_report")
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    told = commands("forget", shop, "nightly_report", "--json")
    assert told.json == {"job": "nightly_report", "forgotten": True}
    assert told.err == "Delete all that is stored of nightly_report, its history too? [y/N] "
    assert runs(commands, shop, "nightly_report") == 0


@pytest.mark.parametrize("typed", ["n\n", "\n", "", "yess\n"])
def test_anything_else_on_the_terminal(
    shop: str, commands: Commands, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    commands("run-now", shop, "nightly_report")
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    told = commands("forget", shop, "nightly_report", status=1)
    assert told.out == ""
    assert told.err.endswith("[y/N] Nothing was deleted.\n")
    assert runs(commands, shop, "nightly_report") == 2


def test_an_unknown_job(shop: str, commands: Commands) -> None:
    told = commands.refused("forget", shop, "nightly", "--yes")
    assert "did you mean 'nightly_report'?" in told


@pytest.mark.processes
def test_a_live_run_forbids_it(
    valkey9: Server, write: Write, tmp_path: Path, commands: Commands
) -> None:
    name = write(f"""
        import asyncio
        from anarchon import RedisBackend, Scheduler

        scheduler = Scheduler(backend=RedisBackend(redis="{valkey9.url}"), lease=1)

        @scheduler.job("@yearly")
        async def endless() -> None:
            print("begun", flush=True)
            await asyncio.sleep(600)
    """)
    process = Process(tmp_path, "run-now", f"{name}:scheduler", "endless")
    process.wait_printed("begun")
    forget = ("forget", valkey9.url, "endless", "--yes")
    assert "A run of endless is live: nothing was deleted." in commands(*forget, status=1).out
    told = commands(*forget, "--json", status=1)
    assert told.json == {"job": "endless", "forgotten": False}
    commands("cancel", valkey9.url, "endless")
    process.ended()
    told = commands("forget", f"{name}:scheduler", "endless", "--yes")
    assert told.out == "Nothing is stored of endless any more.\n"
    assert "knows of none" in commands.refused(*forget)
