"""The newest slot before a moment, without walking what lies before it."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anarchon.schedules import slots_of
from anarchon.schedules.newest import newest
from tests.schedules.debian import utc

if TYPE_CHECKING:
    from datetime import timedelta

HUNDRED_YEARS = 100 * 365 * 86_400_000


class Counted:
    """A schedule of given slots that counts the questions."""

    def __init__(self, slots: list[int]) -> None:
        self.slots = slots
        self.questions = 0

    def next_after(self, ms: int) -> int | None:
        self.questions += 1
        index = bisect_right(self.slots, ms)
        return self.slots[index] if index < len(self.slots) else None


@given(
    slots=st.sets(st.integers(0, HUNDRED_YEARS), max_size=50).map(sorted),
    not_after=st.integers(-10, HUNDRED_YEARS),
    gap=st.integers(-10, HUNDRED_YEARS),
)
def test_it_is_the_last_slot_of_the_gap(slots: list[int], not_after: int, gap: int) -> None:
    schedule = Counted(slots)
    after = not_after - gap
    wanted = max((slot for slot in slots if after < slot <= not_after), default=None)
    assert newest(schedule.next_after, not_after, after) == wanted
    assert schedule.questions < 120


@given(
    slots=st.sets(st.integers(0, 100), max_size=30).map(sorted),
    not_after=st.integers(-3, 103),
    after=st.integers(-3, 103),
)
def test_it_is_exact_among_dense_slots(slots: list[int], not_after: int, after: int) -> None:
    wanted = max((slot for slot in slots if after < slot <= not_after), default=None)
    assert newest(Counted(slots).next_after, not_after, after) == wanted


@pytest.mark.parametrize("schedule", ["* * * * * *", "0 0 29 2 *", "0 3 * * *", 0.001, 86_400])
def test_a_long_gap_takes_few_questions(schedule: str | float | timedelta) -> None:
    slots = slots_of(schedule)
    questions = 0

    def ask(ms: int) -> int | None:
        nonlocal questions
        questions += 1
        return slots.next_after(ms)

    end = utc("2026-01-01T12:34:56") * 1000 + 789
    found = newest(ask, end, 0)
    assert found is not None
    assert questions < 120
    following = slots.next_after(found)
    assert following is not None
    assert found <= end < following
    assert slots.newest(end, 0) == found
    assert slots.newest(found - 1, found - 1) is None
    assert slots.newest(end, found) is None
