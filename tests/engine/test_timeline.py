"""What a look at a schedule decides, against the words of its docstring."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from anarchon.engine.timeline import PROMPT_MS, look
from anarchon.jobs import Job, job_options, make_job

if TYPE_CHECKING:
    from anarchon import Schedule

NOW = 1_767_614_400_000


async def nothing() -> None:
    """A job."""


def job(period: float | Schedule, jitter: float) -> Job:
    """A job, its interval and jitter in seconds."""
    options = job_options({"jitter": jitter, "max_attempts": 1})
    return make_job(nothing, period, name=None, timezone=None, options=options)


@given(
    period=st.integers(1, 90_000),
    jitter=st.integers(0, 30_000),
    gap=st.integers(0, 200_000),
    now=st.integers(NOW, NOW + 100_000),
)
def test_every_slot_is_dealt_with(period: int, jitter: int, gap: int, now: int) -> None:
    gap = min(gap, period * 300)
    made = job(period / 1000, jitter / 1000)
    before = now - gap
    seen = look(made, before, now)

    slots = range(-(-(before + 1) // period) * period, now + 1, period)
    due = [slot for slot in slots if slot + made.delay_of(slot) <= now]
    assert set(seen.ask) <= set(due)
    assert set(seen.later) == set(slots) - set(due)
    assert not due or due[-1] in seen.ask
    left_out = set(due) - set(seen.ask)
    assert (seen.missed_until is None) == (not left_out)
    assert all(slot <= (seen.missed_until or 0) for slot in left_out)
    assert seen.next_slot == (now // period + 1) * period
    assert before <= seen.cursor <= now
    assert not slots or seen.cursor >= slots[-1]


@given(period=st.integers(1001, 90_000), late=st.integers(0, PROMPT_MS - 1))
def test_a_short_stall_leaves_nothing_out(period: int, late: int) -> None:
    made = job(period / 1000, 0)
    slot = NOW // period * period
    seen = look(made, slot - 1, slot + late)
    assert seen.ask == (slot,)
    assert seen.missed_until is None


class Counted:
    """A schedule of every second that counts how often it is asked."""

    key = "counted"

    def __init__(self) -> None:
        self.asked = 0

    def next_after(self, moment: datetime, /) -> datetime:
        self.asked += 1
        return moment.replace(microsecond=0) + timedelta(seconds=1)


def test_the_work_does_not_grow_with_the_gap() -> None:
    schedule = Counted()
    made = job(schedule, 0)
    schedule.asked = 0
    seen = look(made, NOW - 10 * 365 * 24 * 3600 * 1000, NOW)
    assert seen.ask == (NOW - PROMPT_MS, NOW)
    assert seen.missed_until is not None
    assert schedule.asked < 200
