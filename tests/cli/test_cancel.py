"""`anarchon cancel`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.support import Process
from tests.cli.told import TOLD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Write
    from tests.cli.support import Commands
    from tests.support.server import Server


@pytest.fixture
def told(write: Write) -> str:
    text = TOLD + '    CANCELLED = ("1796007600000", "m1796007700123-abcdefgh")\n'
    return f"{write(text)}:scheduler"


def test_screen(told: str, commands: Commands) -> None:
    assert commands("cancel", told, "report").out == (
        "asked to cancel: the run for Mon 2026-11-30 04:00:00 +01:00 (1796007600000)\n"
        "asked to cancel: the manual run asked for Mon 2026-11-30 04:01:40.123 +01:00\n"
        "  (m1796007700123-abcdefgh)\n"
    )


def test_json(told: str, commands: Commands) -> None:
    assert commands("cancel", told, "report", "--json").json == {
        "job": "report",
        "cancelled": ["1796007600000", "m1796007700123-abcdefgh"],
    }


def test_which_run_is_asked_for(told: str, commands: Commands) -> None:
    commands("cancel", told, "report")
    commands("cancel", told, "report", "1796007600000")
    commands("cancel", told, "report", "2026-11-30T04:00")
    every, by_id, by_slot = sys.modules["app"].ASKED
    assert every is None
    assert by_id == "1796007600000"
    assert by_slot.isoformat() == "2026-11-30T04:00:00+01:00"


def test_nothing_to_cancel(shop: str, commands: Commands) -> None:
    cancel = ("cancel", shop, "endless")
    assert commands(*cancel, status=1).out == "No run of endless is open.\n"
    assert commands(*cancel, "2026-01-01", status=1).out == "That run of endless is not open.\n"
    answer = commands(*cancel, "--json", status=1).json
    assert answer == {"job": "endless", "cancelled": []}


def test_what_cannot_be_is_refused(shop: str, commands: Commands) -> None:
    assert "RUN 'x': give a date" in commands.refused("cancel", shop, "endless", "x")
    assert "did you mean 'endless'?" in commands.refused("cancel", shop, "endles")


@pytest.mark.processes
def test_a_run_elsewhere_ends(
    server: Server, write: Write, tmp_path: Path, commands: Commands
) -> None:
    name = write(f"""
        import asyncio
        from anarchon import RedisBackend, Scheduler

        scheduler = Scheduler(backend=RedisBackend(redis="{server.url}"), lease=1)

        @scheduler.job("@yearly")
        async def endless() -> None:
            print("begun", flush=True)
            await asyncio.sleep(600)
    """)
    process = Process(tmp_path, "run-now", f"{name}:scheduler", "endless", "--json")
    process.wait_for(lambda: "begun\n" in process.err, "run that began")
    assert "asked to cancel: the manual run" in commands("cancel", server.url, "endless").out
    told = process.ended()
    assert told.status == 1
    assert told.json["status"] == "moved"
    assert "cancelled" in str(told.json["error"])
    assert "cancelled" in commands("history", server.url, "endless").out
