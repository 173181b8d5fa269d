"""The clock on the wall, without any zone: which wall times does an expression name?

A wall time is counted in seconds as if the local date and time were UTC. Dates are found month
by month: which days of a month match depends only on its length and on the weekday of its
first, so there are 28 possible answers, each worked out once.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from anarchon.errors import ScheduleError
from anarchon.schedules.fields import LAST
from anarchon.schedules.moments import DAY

if TYPE_CHECKING:
    from anarchon.schedules.expression import Expression
    from anarchon.schedules.fields import Field

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FEBRUARY = 2
_DECEMBER = 12
_SATURDAY = 6
_SUNDAY = 0


def _following(values: tuple[int, ...], size: int) -> tuple[int | None, ...]:
    """Return a table: at index v, the smallest of `values` that is v or more. It has size + 1."""
    table: list[int | None] = [None] * (size + 1)
    for index in range(size - 1, -1, -1):
        table[index] = index if index in values else table[index + 1]
    return tuple(table)


class Calendar:
    """All wall times of one expression, in order."""

    def __init__(self, expression: Expression) -> None:
        self._expression = expression
        self._months = frozenset(expression.month.values)
        self._hours = _following(expression.hour.values, 24)
        self._minutes = _following(expression.minute.values, 60)
        self._seconds = _following(expression.second.values, 60)
        self._first_second = expression.second.values[0]
        self._first_in_hour = expression.minute.values[0] * 60 + self._first_second
        self._first_in_day = expression.hour.values[0] * 3600 + self._first_in_hour
        self._days_by_shape: dict[tuple[int, int], tuple[int, ...]] = {}

    def check_that_it_fires(self, text: str) -> None:
        """Raise `ScheduleError` for an expression such as 30 February that names no date.

        Exact: a month of every length begins on every weekday, sooner or later.
        """
        lengths = {_LONGEST[month - 1] for month in self._months}
        if any(self._days(length, first) for length in lengths for first in range(7)):
            return
        expression = self._expression
        parts = [f"day-of-month {expression.day_of_month.text!r}"]
        if not expression.day_of_week.is_full:
            joint = "and" if expression.both_days_must_match else "or"
            parts.append(f"{joint} day-of-week {expression.day_of_week.text!r}")
        parts.append(f"in month {expression.month.text!r}")
        rule = (
            " Where a day field begins with a star, both day fields must match."
            if expression.both_days_must_match and not expression.day_of_week.is_full
            else ""
        )
        raise ScheduleError(
            f"cron expression {text!r} never fires: no date has {' '.join(parts)}.{rule} "
            "Correct the day or the month"
        )

    def at_or_after(self, wall: int) -> int | None:
        """Return the first matching wall time at or after `wall`; None after the year 9999."""
        days, second = divmod(wall, DAY)
        ordinal = days + _EPOCH_ORDINAL
        found = self._date_from(ordinal)
        if found == ordinal:
            time = self._time_from(second)
            if time is not None:
                return wall - second + time
            found = self._date_from(ordinal + 1)
        if found is None:
            return None
        return (found - _EPOCH_ORDINAL) * DAY + self._first_in_day

    def _time_from(self, second_of_day: int) -> int | None:
        """Return the first matching second of the day at or after the given one."""
        hour, rest = divmod(second_of_day, 3600)
        if self._hours[hour] == hour:
            minute, second = divmod(rest, 60)
            if self._minutes[minute] == minute:
                match = self._seconds[second]
                if match is not None:
                    return hour * 3600 + minute * 60 + match
            later = self._minutes[minute + 1]
            if later is not None:
                return hour * 3600 + later * 60 + self._first_second
            hour += 1
        next_hour = self._hours[hour]
        return None if next_hour is None else next_hour * 3600 + self._first_in_hour

    def _date_from(self, ordinal: int) -> int | None:
        """Return the ordinal of the first matching date at or after the given one."""
        if ordinal > date.max.toordinal():
            return None
        start = date.fromordinal(max(ordinal, 1))
        year, month, day = start.year, start.month, start.day
        while year <= date.max.year:
            if month in self._months:
                first = date(year, month, 1).toordinal()
                # Ordinal 1 was a Monday, so the ordinal modulo 7 counts weekdays from Sunday.
                for match in self._days(_length(year, month), first % 7):
                    if match >= day:
                        return first + match - 1
            day = 1
            year, month = (year, month + 1) if month < _DECEMBER else (year + 1, 1)
        return None

    def _days(self, length: int, first_weekday: int) -> tuple[int, ...]:
        """Return the matching days of a month of that length that begins on that weekday."""
        shape = (length, first_weekday)
        days = self._days_by_shape.get(shape)
        if days is None:
            days = tuple(day for day in range(1, length + 1) if self._matches(day, shape))
            self._days_by_shape[shape] = days
        return days

    def _matches(self, day: int, shape: tuple[int, int]) -> bool:
        length, first_weekday = shape
        weekday = (first_weekday + day - 1) % 7
        by_date = _matches_day_of_month(self._expression.day_of_month, day, weekday, length)
        by_weekday = _matches_day_of_week(self._expression.day_of_week, day, weekday, length)
        if self._expression.both_days_must_match:
            return by_date and by_weekday
        return by_date or by_weekday


def _matches_day_of_month(field: Field, day: int, weekday: int, length: int) -> bool:
    if day in field.values or (field.last_day and day == length):
        return True
    if not field.last_workday or weekday in {_SATURDAY, _SUNDAY}:
        return False
    # A workday is the last one if nothing but a weekend can follow in this month.
    days_left_to_friday = 5 - weekday
    return length - day <= (2 if days_left_to_friday == 0 else 0)


def _matches_day_of_week(field: Field, day: int, weekday: int, length: int) -> bool:
    if weekday in field.values:
        return True
    return (weekday, (day + 6) // 7) in field.nth_weekdays or (
        day + 7 > length and (weekday, LAST) in field.nth_weekdays
    )


def _length(year: int, month: int) -> int:
    if month == _FEBRUARY:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return _LONGEST[month - 1]
