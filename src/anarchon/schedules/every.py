"""The class `Every`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from anarchon.errors import ScheduleError
from anarchon.schedules.moments import EARLIEST, LATEST, milliseconds_of, moment_of_milliseconds

_LONGEST = timedelta(days=100 * 366)
_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000))
_ROUNDING = 1e-6  # Of a millisecond: what 0.1 + 0.2 is off by is no wish for microseconds.


@dataclass(frozen=True, init=False)
class Every:
    """An interval: slots are the multiples of `duration` since 1970-01-01 00:00 UTC.

    So all instances agree on the slots, whenever they were started. `duration` is a number of
    seconds or a `timedelta`, in whole milliseconds, from 1 ms to 100 years.

    Raises `ScheduleError` for anything else.
    """

    milliseconds: int
    """The interval."""

    def __init__(self, duration: float | timedelta) -> None:
        object.__setattr__(self, "milliseconds", _whole_milliseconds(duration))

    @property
    def key(self) -> str:
        """Names the interval in milliseconds, as in `every:60000`."""
        return f"every:{self.milliseconds}"

    def next_after(self, moment: datetime, /) -> datetime | None:
        """Return the first slot strictly after an aware `moment`, in UTC.

        None: never again before the year 9999. Raises `ValueError` for a naive datetime.
        """
        slot = self.next_after_milliseconds(milliseconds_of(moment))
        return None if slot is None else moment_of_milliseconds(slot, UTC)

    def next_after_milliseconds(self, milliseconds: int) -> int | None:
        """As `next_after`, in milliseconds since the epoch."""
        asked = max(milliseconds, EARLIEST * 1000)
        slot = (asked // self.milliseconds + 1) * self.milliseconds
        return slot if slot <= LATEST * 1000 else None

    def explain(self) -> str:
        """Say in words when it fires: `every 15 minutes`."""
        for unit, size in _UNITS:
            if self.milliseconds % size == 0:
                count = self.milliseconds // size
                return f"every {unit}" if count == 1 else f"every {count} {unit}s"
        if self.milliseconds < _UNITS[-1][1]:
            unit = "millisecond" if self.milliseconds == 1 else "milliseconds"
            return f"every {self.milliseconds} {unit}"
        return f"every {self.milliseconds / 1000:.3f}".rstrip("0") + " seconds"


def _whole_milliseconds(duration: object) -> int:
    place = f"interval {duration!r}"
    if isinstance(duration, timedelta):
        whole, rest = divmod(duration, timedelta(milliseconds=1))
        exact = not rest
    elif isinstance(duration, int) and not isinstance(duration, bool):
        whole, exact = duration * 1000, True
    elif isinstance(duration, float):
        if not math.isfinite(duration):
            raise ScheduleError(f"{place}: give a finite number of seconds")
        whole = round(duration * 1000)
        exact = abs(duration * 1000 - whole) <= _ROUNDING
    else:
        raise ScheduleError(f"{place}: give seconds as a number, or a timedelta")
    if whole < 0 or (whole == 0 and exact):
        raise ScheduleError(f"{place}: give more than 0 seconds")
    if not exact:
        raise ScheduleError(f"{place}: slots are whole milliseconds; give a multiple of 0.001")
    if whole > _LONGEST // timedelta(milliseconds=1):
        raise ScheduleError(f"{place}: give at most {_LONGEST.days} days")
    return whole
