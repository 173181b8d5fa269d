"""Reads a whole cron expression: five fields, six with seconds first, or an `@daily`-style name."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from anarchon.errors import ScheduleError
from anarchon.schedules import fields
from anarchon.schedules.fields import Field, Kind, read_field

NAMED = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}
"""The names that crontab(5) gives to whole expressions."""

_KINDS = (
    fields.SECOND,
    fields.MINUTE,
    fields.HOUR,
    fields.DAY_OF_MONTH,
    fields.MONTH,
    fields.DAY_OF_WEEK,
)
_LONGEST = 1000
_ORDER = "minute hour day-of-month month day-of-week"


@dataclass(frozen=True)
class Expression:
    """The six fields of a cron expression."""

    text: str
    """In one spelling: capitals, single spaces, names written out, no seconds where they are 0."""
    second: Field
    minute: Field
    hour: Field
    day_of_month: Field
    month: Field
    day_of_week: Field

    @property
    def fixed_time(self) -> bool:
        """Whether this is a fixed-time job to Debian's cron(8): no star begins minute or hour."""
        return not (self.minute.starts_with_star or self.hour.starts_with_star)

    @property
    def both_days_must_match(self) -> bool:
        """Debian's crontab(5): both day fields, where a star begins either; else one is enough."""
        return self.day_of_month.starts_with_star or self.day_of_week.starts_with_star

    @property
    def names_a_time(self) -> bool:
        """Whether more than minutes and seconds are restricted, so that the zone matters much."""
        restricted = (self.hour, self.day_of_month, self.month, self.day_of_week)
        return not all(each.is_full for each in restricted)


def read_expression(text: str) -> Expression:
    """Read a cron expression.

    Raises `ScheduleError` if it cannot be read, with the text at fault and what is accepted.
    """
    _check_text(text)
    parts = _expand(text).upper().split()
    _check_count(text, parts)
    if len(parts) == len(_KINDS) - 1:
        parts.insert(0, "0")
    elif parts[0].strip("0") == "":
        parts[0] = "0"
    pairs: list[tuple[Kind, str]] = list(zip(_KINDS, parts, strict=True))
    second, minute, hour, day_of_month, month, day_of_week = (
        read_field(kind, part, text) for kind, part in pairs
    )
    shown = parts[1:] if parts[0] == "0" else parts
    return Expression(" ".join(shown), second, minute, hour, day_of_month, month, day_of_week)


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise ScheduleError(f"a cron expression is a string, not {text!r}")
    if len(text) > _LONGEST:
        raise ScheduleError(
            f"cron expression {text[:40]!r}...: {len(text)} characters; at most {_LONGEST} are read"
        )


def _expand(text: str) -> str:
    """Replace an `@daily`-style name by what it stands for."""
    name = text.strip().upper()
    if not name.startswith("@"):
        return text
    if name == "@REBOOT":
        raise ScheduleError(
            f"cron expression {text!r}: a restart is no point in time that instances could share; "
            "call the function when your program starts instead"
        )
    if name.startswith("@EVERY"):
        raise ScheduleError(
            f"cron expression {text!r}: give an interval as a number of seconds or a timedelta, "
            "such as 300 or timedelta(minutes=5)"
        )
    if name not in NAMED:
        near = difflib.get_close_matches(name, NAMED, n=1)
        hint = f"did you mean {near[0].lower()}? " if near else ""
        known = ", ".join(each.lower() for each in NAMED)
        raise ScheduleError(f"cron expression {text!r}: {hint}The names known are {known}")
    return NAMED[name]


def _check_count(text: str, parts: list[str]) -> None:
    """Refuse anything but five or six fields, with a hint where the mistake is a known one."""
    if not parts:
        raise ScheduleError(f"cron expression {text!r} is empty: give 5 fields, {_ORDER}")
    if "=" in parts[0]:
        raise ScheduleError(
            f"cron expression {text!r}: {text.split(maxsplit=1)[0]!r} is no field; "
            "the time zone goes into timezone=, the expression has the fields alone"
        )
    if len(parts) in {len(_KINDS) - 1, len(_KINDS)}:
        return
    year = "; there is no field for years" if len(parts) == len(_KINDS) + 1 else ""
    count = "1 field" if len(parts) == 1 else f"{len(parts)} fields"
    raise ScheduleError(
        f"cron expression {text!r} has {count}{year}. "
        f"Accepted: 5 ({_ORDER}), or 6 with seconds first"
    )
