"""Intervals aligned to the epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anarchon.errors import ScheduleError
from anarchon.schedules import Every

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(
    interval=st.integers(1, 10**12),
    moment=st.datetimes(datetime(1600, 1, 1), datetime(2400, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_slots_are_the_multiples_of_the_interval(interval: int, moment: datetime) -> None:
    every = Every(timedelta(milliseconds=interval))
    slot = every.next_after(moment)
    assert slot is not None
    step = timedelta(milliseconds=interval)
    assert moment < slot <= moment + step
    assert (slot - EPOCH) % step == timedelta(0)
    assert every.key == f"every:{interval}"


@pytest.mark.parametrize(
    ("duration", "milliseconds"),
    [
        (1, 1000),
        (0.001, 1),
        (0.1, 100),
        (0.1 + 0.2, 300),
        (4.35, 4350),
        (timedelta(minutes=1), 60_000),
        (timedelta(milliseconds=1), 1),
        (100 * 366 * 86_400, 3_162_240_000_000),
    ],
)
def test_durations_become_whole_milliseconds(
    duration: float | timedelta, milliseconds: int
) -> None:
    assert Every(duration).milliseconds == milliseconds
    assert Every(duration) == Every(timedelta(milliseconds=milliseconds))
    assert hash(Every(duration)) == hash(Every(timedelta(milliseconds=milliseconds)))


@pytest.mark.parametrize(
    ("duration", "advice"),
    [
        (0, "more than 0"),
        (-5, "more than 0"),
        (-0.0001, "whole milliseconds"),
        (timedelta(0), "more than 0"),
        (timedelta(days=-1), "more than 0"),
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        (float("-inf"), "finite"),
        (0.0001, "multiple of 0.001"),
        (1.0005, "multiple of 0.001"),
        (timedelta(microseconds=1500), "multiple of 0.001"),
        (10**400, "at most 36600 days"),
        (1e300, "at most 36600 days"),
        (timedelta.max - timedelta(microseconds=999_999), "at most 36600 days"),
        (True, "seconds as a number, or a timedelta"),
        ("5", "seconds as a number, or a timedelta"),
        (None, "seconds as a number, or a timedelta"),
    ],
)
def test_what_is_no_interval_is_refused(duration: float, advice: str) -> None:
    with pytest.raises(ScheduleError, match="interval") as refused:
        Every(duration)
    assert advice in str(refused.value)
    assert repr(duration) in str(refused.value)


def test_the_end_of_time_is_none_and_no_error() -> None:
    assert Every(60).next_after(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)) is None
    assert Every(60).next_after(datetime.min.replace(tzinfo=UTC)) is not None


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        (900, "every 15 minutes"),
        (1, "every second"),
        (60, "every minute"),
        (90, "every 90 seconds"),
        (7200, "every 2 hours"),
        (86_400, "every day"),
        (604_800, "every 7 days"),
        (1.5, "every 1.5 seconds"),
        (0.25, "every 250 milliseconds"),
        (0.001, "every 1 millisecond"),
        (12.345, "every 12.345 seconds"),
    ],
)
def test_explanation(duration: float, words: str) -> None:
    assert Every(duration).explain() == words
