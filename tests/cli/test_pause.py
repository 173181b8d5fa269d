"""`anarchon pause` and `anarchon resume`."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.cli.told import TOLD

if TYPE_CHECKING:
    from tests.cli.conftest import Write
    from tests.cli.support import Commands
    from tests.support.server import Server

STATE = """
    STATES["report"] = JobState("report", True, at("01:00"), True, at("12:00"), "move\\x07", (
        "1796007600000", "m1796007700000-abcdefgh"))
"""


@pytest.fixture
def told(write: Write) -> str:
    return f"{write(TOLD + STATE)}:scheduler"


def test_screen(told: str, commands: Commands) -> None:
    assert commands("pause", told, "report").out == (
        "report is paused until Mon 2026-11-30 13:00:00 +01:00: move\\x07\n"
        "  It does not stop the run for Mon 2026-11-30 04:00:00 +01:00 (1796007600000)\n"
        "  It does not stop the manual run asked for Mon 2026-11-30 04:01:40 +01:00\n"
        "  (m1796007700000-abcdefgh)\n"
    )


def test_json(told: str, commands: Commands) -> None:
    assert commands("pause", told, "report", "--json").json == {
        "job": "report",
        "known": True,
        "since": "2026-11-30T01:00:00+00:00",
        "paused": True,
        "paused_until": "2026-11-30T12:00:00+00:00",
        "paused_note": "move\x07",
        "open_runs": ["1796007600000", "m1796007700000-abcdefgh"],
    }


def test_what_is_asked_for(told: str, commands: Commands) -> None:
    now = datetime.now(UTC)
    commands("pause", told, "report", "--note", "moving house")
    commands("pause", told, "report", "--for", "1h30m")
    commands("pause", told, "report", "--until", "2999-06-01T12:00")
    commands("pause", told, "sync", "--until", "2999-06-01T12:00")
    plainly, for_long, until, elsewhere = sys.modules["app"].ASKED
    assert plainly == ("report", None, "moving house")
    assert timedelta(0) <= for_long[1] - now - timedelta(hours=1.5) < timedelta(minutes=1)
    assert until[1].isoformat() == "2999-06-01T12:00:00+02:00"
    assert elsewhere[1].isoformat() == "2999-06-01T12:00:00+00:00"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--for", "soon"], "--for 'soon': give seconds"),
        (["--for", "0"], "--for '0': give seconds"),
        (["--for", "9999999d"], "--for '9999999d': that is longer than the calendar goes"),
        (["--until", "soon"], "--until 'soon': give a date and time"),
        (["--until", "2020-01-01"], "Wed 2020-01-01 00:00:00 +01:00 is over already"),
        (["--for", "1h", "--until", "2999-01-01"], "give one of them"),
        (["--note", "x" * 1001], "1000"),
    ],
)
def test_what_cannot_be_is_refused(
    shop: str, commands: Commands, arguments: list[str], words: str
) -> None:
    assert words in commands.refused("pause", shop, "nightly_report", *arguments)


def test_an_unknown_job(shop: str, commands: Commands) -> None:
    for command in ("pause", "resume"):
        assert "did you mean 'nightly_report'?" in commands.refused(command, shop, "nightly")


def test_resume_of_a_paused_job(shop: str, commands: Commands) -> None:
    assert commands("pause", shop, "endless").out == "endless is paused until it is resumed\n"
    told = commands("resume", shop, "endless").out
    assert re.fullmatch(
        r"endless goes on; its next run is due \w{3} \d{4}-01-01 00:00:00 \+00:00\n", told
    )
    assert commands("resume", shop, "endless", status=1).out == "endless was not paused.\n"


def test_resume_as_json(shop: str, commands: Commands) -> None:
    commands("pause", shop, "endless")
    resume = ("resume", shop, "endless", "--json")
    assert commands(*resume).json == {"job": "endless", "resumed": True}
    assert commands(*resume, status=1).json == {"job": "endless", "resumed": False}


def test_by_the_url_of_the_store(server: Server, write: Write, commands: Commands) -> None:
    name = write(f"""
        from anarchon import RedisBackend, Scheduler
        scheduler = Scheduler(backend=RedisBackend(redis="{server.url}"))
        scheduler.add_job(print, "@yearly", name="count")
    """)
    target = f"{name}:scheduler"
    assert "the store knows of none" in commands.refused("pause", server.url, "count")
    commands("pause", target, "count", "--note", "by code")
    assert "resumed: by url" in commands("pause", server.url, "count", "--note", "by url").out
    assert "  paused until it is resumed: by url\n" in commands("jobs", target).out
    assert commands("resume", server.url, "count").out == "count goes on\n"
    assert "paused" not in commands("jobs", target).out
