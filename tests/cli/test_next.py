"""`anarchon next`: exactly what it prints, as text and as JSON, and how it refuses."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from anarchon.cli import main
from anarchon.cli.times import in_words


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run `anarchon next` and return what it printed."""
    assert main(["next", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run `anarchon next` and return the one line by which it refused."""
    assert main(["next", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("anarchon: ")
    return err


def test_a_night_on_which_the_clock_is_put_forward(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("30 2 * * *", "--timezone", "Europe/Berlin", "--from", "2026-03-28T00:00")
    assert told(capsys, *arguments, "-n", "3") == (
        "at 02:30 every day, Europe/Berlin\n"
        "\n"
        "  Sat 2026-03-28 02:30:00 +01:00   2026-03-28 01:30:00 UTC   in 2 h 30 min\n"
        "  Sun 2026-03-29 03:00:00 +02:00   2026-03-29 01:00:00 UTC   in 1 d 2 h\n"
        "  Mon 2026-03-30 02:30:00 +02:00   2026-03-30 00:30:00 UTC   in 2 d 1 h\n"
        "\n"
        "Clock changes until 2027-03-28:\n"
        "  Sun 2026-03-29  moved    02:30 does not exist: runs once, at 03:00\n"
    )


def test_an_interval_through_an_hour_that_comes_twice(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("1h", "-z", "Europe/Berlin", "--from", "2026-10-25T01:30+02:00", "-n", "3")
    assert told(capsys, *arguments) == (
        "every hour\n"
        "\n"
        "  Sun 2026-10-25 02:00:00 +02:00   2026-10-25 00:00:00 UTC   in 30 min\n"
        "  Sun 2026-10-25 02:00:00 +01:00   2026-10-25 01:00:00 UTC   in 1 h 30 min\n"
        "  Sun 2026-10-25 03:00:00 +01:00   2026-10-25 02:00:00 UTC   in 2 h 30 min\n"
        "\n"
        "No clock change until 2027-10-25 moves, skips or doubles a run.\n"
    )


def test_utc_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "@daily", "--from", "2026-01-31T12:00", "-n", "1") == (
        "at 00:00 every day, UTC\n"
        "\n"
        "  Sun 2026-02-01 00:00:00 +00:00   in 12 h\n"
        "\n"
        "No clock change until 2027-01-31 moves, skips or doubles a run.\n"
    )


def test_skipped_and_doubled_runs_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("*/30 2 * * *", "-z", "Europe/Berlin", "--from", "2026-01-01", "-n", "1")
    assert told(capsys, *arguments).endswith(
        "Clock changes until 2027-01-01:\n"
        "  Sun 2026-03-29  skipped  02:00 and 02:30 do not exist and do not run\n"
        "  Sun 2026-10-25  doubled  02:00 and 02:30 come twice: runs both times\n"
    )


def test_fractions_of_a_second_are_shown_on_every_line(capsys: pytest.CaptureFixture[str]) -> None:
    shown = told(capsys, "1.5", "--from", "2026-01-01T00:00:00", "-n", "2").splitlines()
    assert shown[:4] == [
        "every 1.5 seconds",
        "",
        "  Thu 2026-01-01 00:00:01.500 +00:00   in 1 s 500 ms",
        "  Thu 2026-01-01 00:00:03.000 +00:00   in 3 s",
    ]


def test_five_runs_unless_asked_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    shown = told(capsys, "15m").splitlines()
    assert len([line for line in shown if line.startswith("  ")]) == 5


def test_a_schedule_that_is_over_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    shown = told(capsys, "0 0 29 2 *", "--from", "9999-01-01")
    assert "never again" in shown


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("30 2 * * *", "-z", "Europe/Berlin", "--from", "2026-03-28T00:00", "-n", "2")
    assert json.loads(told(capsys, *arguments, "--json")) == {
        "schedule": "at 02:30 every day, Europe/Berlin",
        "key": "cron:30 2 * * *@Europe/Berlin",
        "timezone": "Europe/Berlin",
        "from": "2026-03-28T00:00:00+01:00",
        "runs": [
            {
                "local": "2026-03-28T02:30:00+01:00",
                "utc": "2026-03-28T01:30:00+00:00",
                "in_seconds": 9000.0,
            },
            {
                "local": "2026-03-29T03:00:00+02:00",
                "utc": "2026-03-29T01:00:00+00:00",
                "in_seconds": 93600.0,
            },
        ],
        "clock_changes": [
            {
                "date": "2026-03-29",
                "kind": "moved",
                "text": "02:30 does not exist: runs once, at 03:00",
                "runs": ["2026-03-29T03:00:00+02:00"],
            }
        ],
    }


def test_an_early_year_is_written_with_four_digits(capsys: pytest.CaptureFixture[str]) -> None:
    shown = told(capsys, "@daily", "--from", "0987-01-01T12:00", "-n", "1")
    assert shown.splitlines()[2].startswith("  Tue 0987-01-02 00:00:00")


def test_a_time_that_comes_twice_is_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("30m", "-z", "Europe/Berlin", "--from", "2026-10-25T02:30", "-n", "1")
    assert "02:00:00 +01:00" in told(capsys, *arguments)


def test_an_expression_without_quotes_is_put_together(capsys: pytest.CaptureFixture[str]) -> None:
    shown = told(capsys, "0", "3", "1", "1", "1", "--from", "2026-01-01")
    assert shown == told(capsys, "0 3 1 1 1", "--from", "2026-01-01")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["61 * * * *"], "minute '61'"),
        (["@reboot"], "@reboot"),
        (["0 0 30 2 *"], "never"),
        (["0"], "more than 0 seconds"),
        (["0.0001"], "multiple of 0.001"),
        (["0", "3", "README.md", "src", "tests"], "put the expression in quotes"),
        (["@daily", "-z", "Berlin"], "did you mean 'Europe/Berlin'?"),
        (["1h", "-z", "Berlin"], "did you mean 'Europe/Berlin'?"),
        (["@daily", "--from", "soon"], "--from 'soon'"),
        (["@daily", "-n", "0"], "-n '0': give a whole number from 1 to 1000"),
        (["@daily", "-n", "many"], "-n 'many': give a whole number from 1 to 1000"),
        (["@daily", "-n"], "'-n'"),
        (["1h30"], "'1h30' is no duration"),
        (["1w"], "'1w' is no duration"),
        (["@daily", "-z", "Europe/Berlin", "--from", "2026-03-29T02:30"], "skip that time"),
        (["@daily", "--form", "2026-01-01"], "--form"),
        ([], "EXPR"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert words in refused(capsys, *arguments)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("90", "every 90 seconds"),
        ("15m", "every 15 minutes"),
        ("1h30m", "every 90 minutes"),
        ("2h", "every 2 hours"),
        ("1d", "every day"),
        ("250ms", "every 250 milliseconds"),
        ("0.5h", "every 30 minutes"),
    ],
)
def test_durations(capsys: pytest.CaptureFixture[str], text: str, words: str) -> None:
    assert told(capsys, text).splitlines()[0] == words


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(0), "0 ms"),
        (timedelta(milliseconds=7), "7 ms"),
        (timedelta(seconds=1), "1 s"),
        (timedelta(minutes=59, seconds=59.9), "59 min 59 s"),
        (timedelta(hours=3, minutes=12, seconds=5), "3 h 12 min"),
        (timedelta(hours=3, seconds=5), "3 h"),
        (timedelta(days=400, hours=1), "400 d 1 h"),
    ],
)
def test_lengths_in_words(length: timedelta, words: str) -> None:
    assert in_words(length) == words
