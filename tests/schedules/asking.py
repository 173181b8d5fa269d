"""Ways to ask a schedule for many slots."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from anarchon.errors import ScheduleError
from anarchon.schedules import Cron

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from zoneinfo import ZoneInfo

    from anarchon.schedules import Schedule


def legal(expression: str, zone: str | ZoneInfo = "UTC") -> Cron | None:
    """Return the schedule, or None where it never fires: expressions drawn at random may not."""
    try:
        return Cron(expression, zone)
    except ScheduleError as error:
        if "never fires" in str(error):
            return None
        raise


def upcoming(schedule: Schedule, after: datetime, count: int) -> list[datetime]:
    """Return the next `count` slots, in UTC: only there do datetimes compare as expected."""
    slots: list[datetime] = []
    while len(slots) < count:
        slot = schedule.next_after(slots[-1] if slots else after)
        assert slot is not None
        slots.append(slot.astimezone(UTC))
    return slots


def walked(next_after: Callable[[int], int | None], after: int, until: int) -> Iterator[int]:
    """Yield the slots with `after` < slot <= `until`, one question each."""
    slot = next_after(after)
    while slot is not None and slot <= until:
        yield slot
        slot = next_after(slot)
