"""Cron expressions in plain English: `at 12:00 on the 13th of the month or on Fridays`.

The words come from the values that a field stands for, not from how it was written, so they
are true for every legal expression.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from anarchon.schedules.fields import LAST
from anarchon.schedules.moments import wall_text
from anarchon.schedules.wording import joined, listed, ordinal, step_of

if TYPE_CHECKING:
    from anarchon.schedules.expression import Expression
    from anarchon.schedules.fields import Field

_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_MOST_CLOCK_TIMES = 6
_TICKS = 60
_ON_THE_MINUTE = (0,)


def explain_cron(expression: Expression) -> str:
    """Say in words when an expression fires, without the zone."""
    clock_times = _clock_times(expression)
    days = _days(expression)
    if clock_times is None:
        return f"{_rhythm(expression)} {days}".rstrip()
    if not days or days.startswith("in "):
        days = f"every day {days}".rstrip()
    return f"at {joined(clock_times)} {days}"


def _clock_times(expression: Expression) -> list[str] | None:
    """Return the times of day where there are few of them."""
    hours, minutes = expression.hour.values, expression.minute.values
    seconds = expression.second.values
    if len(hours) * len(minutes) * len(seconds) > _MOST_CLOCK_TIMES:
        return None
    return [
        wall_text(hour * 3600 + minute * 60 + second)
        for hour, minute, second in product(hours, minutes, seconds)
    ]


def _rhythm(expression: Expression) -> str:
    """Say the time of day where there are too many times to list."""
    hours, minutes, seconds = expression.hour, expression.minute, expression.second
    if len(minutes.values) == len(seconds.values) == 1:
        if hours.is_full:
            return _hourly(minutes.values[0], seconds.values[0])
        if step := step_of(hours.values):
            return f"{_every(step, 'hour')} {_first_to_last(expression)}"
    even = _even(expression)
    if even is not None:
        ticking, step = even
        every = _every(step, ticking.kind.name)
        if not hours.is_full:
            return f"{every} {_first_to_last(expression)}"
        first = ticking.values[0]
        return f"{every} from {ticking.kind.name} {first}" if first else every
    parts = [_noun(seconds)] if seconds.values != _ON_THE_MINUTE else []
    parts.append(_noun(minutes))
    if not (hours.is_full and minutes.is_full):
        parts.append(_noun(hours))
    return f"at {' of '.join(parts)}"


def _hourly(minute: int, second: int) -> str:
    if minute == second == 0:
        return "every hour, on the hour"
    at_second = f" and second {second}" if second else ""
    return f"every hour, at minute {minute}{at_second}"


def _every(step: int, unit: str) -> str:
    return f"every {unit}" if step == 1 else f"every {step} {unit}s"


def _first_to_last(expression: Expression) -> str:
    hours, minutes = expression.hour.values, expression.minute.values
    seconds = expression.second.values
    first = hours[0] * 3600 + minutes[0] * 60 + seconds[0]
    last = hours[-1] * 3600 + minutes[-1] * 60 + seconds[-1]
    return f"from {wall_text(first)} through {wall_text(last)}"


def _even(expression: Expression) -> tuple[Field, int] | None:
    """Return the field that ticks, and its step, where all times keep the same distance."""
    hours, minutes, seconds = expression.hour, expression.minute, expression.second
    if hours.values[-1] - hours.values[0] + 1 != len(hours.values):
        return None
    if seconds.values == _ON_THE_MINUTE:
        ticking = minutes
    elif minutes.is_full:
        ticking = seconds
    else:
        return None
    values = ticking.values
    step = _TICKS // len(values)
    evenly = values == tuple(range(values[0], _TICKS, step))
    return (ticking, step) if evenly and len(values) * step == _TICKS and len(values) > 1 else None


def _noun(field: Field) -> str:
    """Name the values of a time field: `every minute`, `every 7th minute`, `minutes 5 and 7`."""
    name, values = field.kind.name, field.values
    if field.is_full:
        return f"every {name}"
    step = step_of(values)
    if step is None or step == 1:
        plural = "" if len(values) == 1 else "s"
        return f"{name}{plural} {joined(listed(values, str))}"
    every = f"every {ordinal(step)} {name}"
    if values[-1] + step <= field.kind.high:
        return f"{every} from {values[0]} through {values[-1]}"
    return f"{every} from {values[0]}" if values[0] else every


def _days(expression: Expression) -> str:
    """Say which days: empty for every day of the year."""
    months = "" if expression.month.is_full else joined(listed(expression.month.values, _month))
    any_date = expression.day_of_month.is_full
    any_weekday = expression.day_of_week.is_full
    if (any_date and any_weekday) or (
        (any_date or any_weekday) and not expression.both_days_must_match
    ):
        return f"in {months}" if months else ""
    of_month = f"of {months}" if months else "of the month"
    dates = f"on {_dates(expression.day_of_month, of_month)}"
    if any_weekday:
        return dates
    if expression.both_days_must_match and not any_date:
        return f"{dates} that is {_one_weekday(expression.day_of_week)}"
    weekdays = f"on {_weekdays(expression.day_of_week, of_month)}"
    if months and expression.day_of_week.values:
        weekdays += f" in {months}"
    return weekdays if any_date else f"{dates} or {weekdays}"


def _month(number: int) -> str:
    return _MONTHS[number - 1]


def _dates(field: Field, of_month: str) -> str:
    """Name days of the month: `the 1st, the 15th and the last day of the month`."""
    step = step_of(field.values)
    dates = [f"the {each}" for each in listed(field.values, ordinal)]
    if step is not None and step > 1:
        dates = [_every_nth_date(field, step)]
    if field.last_day:
        dates.append("the last day")
    if field.last_workday:
        dates.append("the last workday (Monday to Friday)")
    return f"{joined(dates)} {of_month}"


def _every_nth_date(field: Field, step: int) -> str:
    first, last = field.values[0], field.values[-1]
    every = f"every {ordinal(step)} day"
    if last + step <= field.kind.high:
        return f"{every} from the {ordinal(first)} through the {ordinal(last)}"
    return every if first == 1 else f"{every} from the {ordinal(first)}"


def _weekdays(field: Field, of_month: str) -> str:
    """Name weekdays: `Mondays through Fridays`, `the 1st Monday of the month`."""
    from_monday = sorted(value or 7 for value in field.values)
    days = listed(from_monday, lambda value: f"{_WEEKDAYS[value % 7]}s")
    days += [f"{each} {of_month}" for each in _nth_weekdays(field)]
    return joined(days)


def _one_weekday(field: Field) -> str:
    """Name weekdays as a condition on one day: `a Monday or Friday`."""
    names = [_WEEKDAYS[value % 7] for value in sorted(value or 7 for value in field.values)]
    days = [f"a {joined(names, 'or')}"] if names else []
    return joined(days + _nth_weekdays(field), "or")


def _nth_weekdays(field: Field) -> list[str]:
    return [
        f"the {'last' if which == LAST else ordinal(which)} {_WEEKDAYS[weekday]}"
        for weekday, which in field.nth_weekdays
    ]
