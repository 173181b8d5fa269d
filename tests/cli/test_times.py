"""Moments and lengths of time: read from arguments, and in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from anarchon import ConfigurationError
from anarchon.cli.times import moment_of, read_length, read_moment, told, took

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-0.001, "0 ms"),
        (0.0004, "0 ms"),
        (0.012, "12 ms"),
        (0.1, "0.1 s"),
        (1.24, "1.2 s"),
        (119.94, "119.9 s"),
        (192.3, "3 min 12 s"),
        (86400.0, "1 d"),
    ],
)
def test_how_long_it_took(seconds: float, words: str) -> None:
    assert took(seconds) == words


def test_a_moment_is_told_with_weekday_and_offset() -> None:
    moment = datetime(2026, 11, 30, 3, 0, 0, 7000, BERLIN)
    assert told(moment) == "Mon 2026-11-30 03:00:00 +01:00"
    assert told(moment, fine=True) == "Mon 2026-11-30 03:00:00.007 +01:00"
    odd = datetime(1890, 1, 1, tzinfo=timezone(timedelta(minutes=53, seconds=28)))
    assert told(odd) == "Wed 1890-01-01 00:00:00 +00:53:28"


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90", timedelta(seconds=90)),
        (" 1h30m ", timedelta(hours=1.5)),
        ("2d", timedelta(days=2)),
        ("250ms", timedelta(milliseconds=250)),
    ],
)
def test_lengths_are_read(text: str, length: timedelta) -> None:
    assert read_length(text, "--for") == length


@pytest.mark.parametrize("text", ["", "0", "0m", "-1h", "2x", "1h30", "h", "9" * 30 + "d"])
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^--for '"):
        read_length(text, "--for")


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-11-30T03:00", "2026-11-30T02:00:00+00:00"),
        ("2026-11-30 03:00", "2026-11-30T02:00:00+00:00"),
        ("2026-11-30T03:00Z", "2026-11-30T03:00:00+00:00"),
        ("2026-11-30T03:00-05:00", "2026-11-30T08:00:00+00:00"),
        ("2026-11-30", "2026-11-29T23:00:00+00:00"),
    ],
)
def test_moments_are_read_in_the_zone_given(text: str, utc: str) -> None:
    found = read_moment(text, "AT", BERLIN)
    assert found.astimezone(UTC).isoformat() == utc
    assert found.tzinfo is BERLIN


@pytest.mark.parametrize(
    ("run", "moment"),
    [
        ("1796039760693", datetime(2026, 11, 30, 11, 56, 0, 693000, UTC)),
        ("m1796039760693-Q0z1EY_k", datetime(2026, 11, 30, 11, 56, 0, 693000, UTC)),
        ("m0-x", datetime(1970, 1, 1, tzinfo=UTC)),
        ("20261130", None),
        ("2026-11-30", None),
        ("m", None),
        ("9" * 16, None),
        ("9" * 15, None),
    ],
)
def test_ids_of_runs_are_told_from_dates(run: str, moment: datetime | None) -> None:
    assert moment_of(run) == moment
