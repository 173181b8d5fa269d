"""Moments and lengths of time, as arguments and in words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from anarchon import ConfigurationError

if TYPE_CHECKING:
    from datetime import date
    from zoneinfo import ZoneInfo

_LENGTH = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+|\d+(?:\.\d+)?", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?", re.ASCII)
_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1))
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHORT = 0.1  # seconds below which tenths would say nothing
_LONG = 120.0  # seconds above which they do not matter


def day(moment: date) -> str:
    """Say a date with its weekday: `Mon 2026-11-30`."""
    # Not by strftime: its names depend on the host's language.
    return f"{_WEEKDAYS[moment.weekday()]} {moment.isoformat()[: len('2027-03-27')]}"


def clock(moment: datetime, *, fine: bool = False) -> str:
    """Say the time of day: `03:00:00`, with milliseconds if `fine`."""
    return moment.time().isoformat("milliseconds" if fine else "seconds")


def told(moment: datetime, *, fine: bool = False) -> str:
    """Say an aware datetime: `Mon 2026-11-30 03:00:00 +01:00`, with milliseconds if `fine`."""
    offset = moment.isoformat(timespec="seconds")[len("2027-03-27T12:00:00") :]
    return f"{day(moment)} {clock(moment, fine=fine)} {offset}"


def in_words(length: timedelta) -> str:
    """Say a length of time in its two largest units: `3 h 12 min`."""
    rest = max(0, round(length / timedelta(milliseconds=1)))
    counts: list[tuple[int, str]] = []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        counts.append((count, unit))
    for (count, unit), (further, smaller) in pairwise(counts):
        if count:
            return f"{count} {unit} {further} {smaller}" if further else f"{count} {unit}"
    return f"{counts[-1][0]} ms"


def took(seconds: float) -> str:
    """Say how long something took: `12 ms`, `1.2 s`, `3 min 12 s`."""
    if seconds < _SHORT:
        return f"{max(0, round(seconds * 1000))} ms"
    if seconds < _LONG:
        return f"{seconds:.1f} s"
    return in_words(timedelta(seconds=round(seconds)))


def seconds_in(text: str) -> float | None:
    """How many seconds `90`, `15m` or `1h30m` stand for; None if the text is no length of time."""
    if _LENGTH.fullmatch(text) is None:
        return None
    return sum(float(number) * _MS[unit or "s"] / 1000 for number, unit in _PART.findall(text))


def read_length(text: str, option: str) -> timedelta:
    """Return the length of time that an option's text stands for. Raises `ConfigurationError`."""
    seconds = seconds_in(text.strip())
    try:
        length = timedelta(seconds=seconds or 0)
    except OverflowError as error:
        message = f"{option} {text[:40]!r}: that is longer than any calendar"
        raise ConfigurationError(message) from error
    if not length:
        message = (
            f"{option} {text[:40]!r}: give seconds, or numbers each with its unit (ms, s, m, h,"
            " d), such as 90, 15m or 1h30m"
        )
        raise ConfigurationError(message)
    return length


def read_moment(text: str, option: str, zone: ZoneInfo) -> datetime:
    """Return the moment that an option's text stands for, in `zone`, where it is read if it can be.

    Raises `ConfigurationError`; `option` names it.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        message = (
            f"{option} {text[:40]!r}: give a date and time such as 2027-03-27T12:00, or ...+01:00"
        )
        raise ConfigurationError(message) from error
    try:
        local = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
        local = local.astimezone(zone)
    except OverflowError as error:
        message = f"{option} {text[:40]!r}: that is too near to the first or last year there is"
        raise ConfigurationError(message) from error
    if moment.tzinfo is None and local.replace(tzinfo=None) != moment:
        message = (
            f"{option} {text[:40]!r}: the clocks of {zone.key} skip that time; give it with its"
            f" offset from UTC, as in {local.isoformat(timespec='minutes')}"
        )
        raise ConfigurationError(message)
    return local


_RUN = re.compile(r"m([0-9]{1,15})(?:-.*)?|([0-9]{9,15})")


def moment_of(run: str) -> datetime | None:
    """When a run was due, or a manual one asked for, by its id; None if the text is no id.

    Digits alone are an id from nine on: fewer may be a date.
    """
    match = _RUN.fullmatch(run)
    if match is None:
        return None
    try:
        return _EPOCH + timedelta(milliseconds=int(match[1] or match[2]))
    except OverflowError:
        return None
