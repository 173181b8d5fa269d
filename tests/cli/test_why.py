"""`anarchon why`: the sentences, and how its moment is read."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.told import TOLD

if TYPE_CHECKING:
    from tests.cli.conftest import Write
    from tests.cli.support import Commands

WHY = """
    WHY = Explanation("report", "1796007600000", at("03:00"), S.SKIPPED, (
        "It was skipped: another run of the job was live when it was due, and it went on.",
        "The job is paused now: \\x07",
    ))
"""


@pytest.fixture
def told(write: Write) -> str:
    return f"{write(TOLD + WHY)}:scheduler"


def test_screen(told: str, commands: Commands) -> None:
    assert commands("why", told, "report", "2026-11-30T04:00").out == (
        "report, Mon 2026-11-30 04:00:00 +01:00: skipped\n"
        "\n"
        "  It was skipped: another run of the job was live when it was due, and it went\n"
        "  on.\n"
        "  The job is paused now: \\x07\n"
    )


def test_json(told: str, commands: Commands) -> None:
    assert commands("why", told, "report", "1796007600000", "--json").json == {
        "job": "report",
        "run": "1796007600000",
        "slot": "2026-11-30T03:00:00+00:00",
        "status": "skipped",
        "sentences": [
            "It was skipped: another run of the job was live when it was due, and it went on.",
            "The job is paused now: \x07",
        ],
    }


@pytest.mark.parametrize(
    ("job", "text", "asked"),
    [
        ("report", "2026-11-30T04:00", "2026-11-30T04:00:00+01:00"),
        ("report", "2026-11-30T04:00Z", "2026-11-30T05:00:00+01:00"),
        ("sync", "2026-11-30T04:00", "2026-11-30T04:00:00+00:00"),
        ("gone", "2026-11-30T04:00", "2026-11-30T04:00:00+00:00"),
        ("gone", "20261130", "2026-11-30T00:00:00+00:00"),
        ("gone", "1796007600000", "1796007600000"),
        ("gone", "m1796007600000-x", "m1796007600000-x"),
    ],
)
def test_a_moment_without_an_offset_is_in_the_zone_of_the_job(
    told: str, commands: Commands, job: str, text: str, asked: str
) -> None:
    commands("why", told, job, text)
    [seen] = sys.modules["app"].ASKED
    assert (seen if isinstance(seen, str) else seen.isoformat()) == asked


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("now", "AT 'now': give a date and time such as 2027-03-27T12:00"),
        ("2027-03-28T02:30", "the clocks of Europe/Berlin skip that time"),
        ("0001-01-01", "too near to the first or last year"),
    ],
)
def test_what_is_no_moment_is_refused(told: str, commands: Commands, text: str, words: str) -> None:
    assert words in commands.refused("why", told, "report", text)


def test_a_run_that_took_place(shop: str, commands: Commands) -> None:
    commands("run-now", shop, "nightly_report")
    [run] = commands("history", shop, "nightly_report", "--json").json["runs"]
    shown = commands("why", shop, "nightly_report", run["id"]).lines
    assert shown[0].startswith("nightly_report, ")
    assert shown[0].endswith("+01:00: succeeded") or shown[0].endswith("+02:00: succeeded")
    assert shown[2] == "  It succeeded."


def test_a_run_that_is_not_recorded(shop: str, commands: Commands) -> None:
    told = commands("why", shop, "nightly_report", "2020-01-01T03:30")
    assert told.lines[0] == "nightly_report, Wed 2020-01-01 03:30:00 +01:00"
    assert "has no slot at" in told.out
    asked = ("why", shop, "nightly_report", "2020-01-01T03:30", "--json")
    assert commands(*asked).json["status"] is None


def test_an_unknown_job(shop: str, commands: Commands) -> None:
    told = commands.refused("why", shop, "nightly", "2020-01-01")
    assert "did you mean 'nightly_report'?" in told
