"""Durations as users write them (seconds, `timedelta`) and as the engine counts: milliseconds."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TypeAlias

from anarchon.errors import ConfigurationError

Duration: TypeAlias = float | timedelta
"""Seconds as a number, or a `datetime.timedelta`."""

_LONGEST_MS = 100 * 366 * 24 * 3600 * 1000


def milliseconds(value: object, option: str, *, least: int = 0, most: int = _LONGEST_MS) -> int:
    """Turn a duration into whole milliseconds, rounded to the nearest.

    `option` names it in errors; `least` and `most` are bounds in milliseconds.
    Raises `ConfigurationError` for anything that is no number of seconds, not finite, or out of
    bounds.
    """
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = float(value) if abs(value) <= _LONGEST_MS else math.inf
    else:
        message = f"{option}={value!r}: give seconds as a number, or a timedelta"
        raise ConfigurationError(message)
    if not math.isfinite(seconds):
        message = f"{option}={str(value)[:40]}: give a finite number of seconds, of a sensible size"
        raise ConfigurationError(message)
    result = round(seconds * 1000)
    if not least <= result <= most:
        days = timedelta(milliseconds=most).days
        message = f"{option}={value!r}: give at least {least / 1000:g} seconds, at most {days} days"
        raise ConfigurationError(message)
    return result
