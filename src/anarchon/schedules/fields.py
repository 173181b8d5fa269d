"""Reads single fields of a cron expression, and says precisely what is wrong with one.

The syntax is that of Debian's crontab(5), with what cronsim adds to it: `5/15` (from 5 by 15),
`L` and `LW` as days of the month, `5L` (the last Friday) and `MON#1` (the first Monday).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from anarchon.errors import ScheduleError

LAST = -1
"""Stands for the last one where an ordinal (`MON#2`) is expected."""

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MOST_WEEKS = 5
_MOST_DIGITS = 9
_SUNDAY_AS_SEVEN = 7


@dataclass(frozen=True)
class Kind:
    """What may stand in a field: its range, the names of its values, and how to describe it."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    extras: str = ""

    @property
    def accepted(self) -> str:
        """What the field takes, for people."""
        names = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"{self.low}-{self.high}{names}, *, lists, ranges and steps (*/5){self.extras}"

    def number_of(self, name: str) -> int | None:
        """Return the number that a name such as `MON` stands for."""
        return self.names.index(name) + self.low if name in self.names else None


SECOND = Kind("second", 0, 59)
MINUTE = Kind("minute", 0, 59)
HOUR = Kind("hour", 0, 23)
DAY_OF_MONTH = Kind(
    "day-of-month", 1, 31, extras=", L (the last day), LW (the last Monday-to-Friday day)"
)
MONTH = Kind("month", 1, 12, _MONTHS)
DAY_OF_WEEK = Kind(
    "day-of-week", 0, 7, _WEEKDAYS, extras=", 5L (the last Friday), MON#1 (the first Monday)"
)


@dataclass(frozen=True)
class Field:
    """One field, read. Weekdays count from Sunday, 0 to 6."""

    kind: Kind
    text: str
    values: tuple[int, ...]
    """The plain values, sorted."""
    last_day: bool = False
    """`L`: the last day of the month."""
    last_workday: bool = False
    """`LW`: the last day of the month that is no Saturday or Sunday."""
    nth_weekdays: tuple[tuple[int, int], ...] = ()
    """(weekday, which one of the month): `MON#1` is (1, 1), `5L` is (5, LAST)."""

    @property
    def starts_with_star(self) -> bool:
        """What Debian's rules for days and for clock changes look at: the first character."""
        return self.text.startswith("*")

    @property
    def is_full(self) -> bool:
        """Whether every value is allowed, however it was written."""
        return len(self.values) == self.kind.high - self.kind.low + (self.kind is not DAY_OF_WEEK)


class _Reader:
    """Reads one field of one expression; knows both for the sake of its errors."""

    def __init__(self, kind: Kind, text: str, expression: str) -> None:
        self.kind = kind
        self.text = text
        self.expression = expression
        self.values: set[int] = set()
        self.last_day = False
        self.last_workday = False
        self.nth_weekdays: set[tuple[int, int]] = set()

    def read(self) -> Field:
        for term in self.text.split(","):
            self._term(term)
        if self.kind is DAY_OF_WEEK:
            self.values = {value % 7 for value in self.values}
        return Field(
            self.kind,
            self.text,
            tuple(sorted(self.values)),
            self.last_day,
            self.last_workday,
            tuple(sorted(self.nth_weekdays)),
        )

    def refuse(self, term: str, why: str, *, say_accepted: bool = True) -> NoReturn:
        """Raise with the text at fault, the reason, and what the field accepts."""
        place = f"{self.kind.name} {term!r}"
        if term != self.text:
            place += f" in {self.text!r}"
        accepted = f" Accepted: {self.kind.accepted}." if say_accepted else ""
        raise ScheduleError(f"cron expression {self.expression!r}: {place} {why}.{accepted}")

    def _term(self, term: str) -> None:
        if not term:
            self.refuse(term, "is empty")
        if self.kind is DAY_OF_MONTH and term in {"L", "LW"}:
            self.last_day |= term == "L"
            self.last_workday |= term == "LW"
        elif self.kind is DAY_OF_WEEK and "#" in term:
            self._nth(term)
        elif self.kind is DAY_OF_WEEK and term.endswith("L"):
            self._last(term)
        else:
            self._hint_at_foreign_syntax(term)
            self._range(term)

    def _hint_at_foreign_syntax(self, term: str) -> None:
        """Name what other schedulers write and this syntax does not have."""
        if "?" in term:
            self.refuse(term, "is not known here: write * for any day")
        if self.kind is DAY_OF_MONTH and "W" in term:
            self.refuse(term, "is not known here: of the W forms only LW is")

    def _nth(self, term: str) -> None:
        name, _, which = term.partition("#")
        weekday = self._number(name, term) % 7
        if not (which.isascii() and which.isdigit() and 1 <= int(which[:2]) <= _MOST_WEEKS):
            self.refuse(term, "needs a number from 1 to 5 behind the #")
        self.nth_weekdays.add((weekday, int(which[:2])))

    def _last(self, term: str) -> None:
        digits = term[:-1]
        if not (digits.isascii() and digits.isdigit()):
            self.refuse(term, "needs one number, 0 to 7, before the L: 5L is the last Friday")
        self.nth_weekdays.add((self._number(digits, term) % 7, LAST))

    def _range(self, term: str) -> None:
        span, slash, step_text = term.partition("/")
        step = self._step(step_text, term) if slash else 1
        first_text, dash, last_text = span.partition("-")
        if span == "*":
            first, last = self.kind.low, self.kind.high
        elif dash:
            first, last = self._number(first_text, term), self._number(last_text, term)
            if last < first:
                self._refuse_backwards(term, first, last)
        else:
            first = self._number(span, term)
            last = self.kind.high if slash else first
        self.values.update(range(first, last + 1, step))

    def _step(self, text: str, term: str) -> int:
        if not (text.isascii() and text.isdigit()):
            self.refuse(term, f"has the step {text!r}, which is no whole number")
        step = int(text[:_MOST_DIGITS])
        if step == 0:
            self.refuse(term, "has a step of 0: the least is 1")
        if step > self.kind.high - self.kind.low + 1:
            # crontab(5) lets it pass, for the first value alone: never what is meant.
            self.refuse(
                term,
                f"has a step beyond {self.kind.high}: fields do not carry over into the next hour, "
                "day or month; for an even interval give seconds or a timedelta",
                say_accepted=False,
            )
        return step

    def _number(self, text: str, term: str) -> int:
        named = self.kind.number_of(text)
        if named is not None:
            return named
        if not (text.isascii() and text.isdigit()):
            self.refuse(term, f"cannot be read: {text!r} is no {self.kind.name}")
        number = int(text) if len(text) <= _MOST_DIGITS else self.kind.high + 1
        if not self.kind.low <= number <= self.kind.high:
            self.refuse(term, f"is out of range {self.kind.low}-{self.kind.high}")
        return number

    def _refuse_backwards(self, term: str, first: int, last: int) -> NoReturn:
        """Sunday is 0 at the front of a range: say how to write what was surely meant."""
        high = self.kind.high
        ends = [f"{first}-{high}" if first < high else f"{first}"]
        low = 1 if self.kind is DAY_OF_WEEK else self.kind.low
        if last >= low:
            ends.append(f"{low}-{last}" if last > low else f"{low}")
        counted = f"from {first} to {last}"
        if self.kind is DAY_OF_WEEK and last == 0:
            counted += f" (Sunday is 0, or {_SUNDAY_AS_SEVEN} at the end of a range)"
        self.refuse(term, f"runs backwards, {counted}: write {','.join(ends)}", say_accepted=False)


def read_field(kind: Kind, text: str, expression: str) -> Field:
    """Read one field, in capitals, of `expression` (named in errors).

    Raises `ScheduleError` with the text at fault and what the field accepts.
    """
    return _Reader(kind, text, expression).read()
