"""Cron expressions drawn at random, in every shape that the syntax has."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from anarchon.schedules.offsets import Change

HOUR = 3600
MONTHS = ("JAN", "feb", "Mar", "APR", "may", "Jun", "JUL", "aug", "Sep", "OCT", "nov", "Dec")
WEEKDAYS = ("SUN", "mon", "Tue", "WED", "thu", "Fri", "SAT")


def expression(rng: random.Random, *, seconds: float = 0.2, specials: bool = True) -> str:
    """Return any expression; `seconds` is the probability of six fields."""
    parts = [
        time_field(rng, 59, rng.randrange(60)),
        time_field(rng, 23, rng.randrange(24)),
        _day_of_month(rng, rng.randrange(1, 32), specials=specials),
        _month(rng, rng.randrange(1, 13)),
        _day_of_week(rng, rng.randrange(7), specials=specials),
    ]
    if rng.random() < seconds:
        parts.insert(0, time_field(rng, 59, rng.randrange(60)))
    return " ".join(parts)


def expression_near(change: Change, rng: random.Random) -> str:
    """Return an expression that probably has something to do around a change of the clock."""
    low, high = sorted((change.instant + change.before, change.instant + change.after))
    wall = rng.randrange(low - HOUR, high + HOUR)
    day = date(1970, 1, 1) + timedelta(days=wall // 86_400)
    minute = wall // 60 % 60
    parts = [
        time_field(rng, 59, minute),
        time_field(rng, 23, wall // HOUR % 24),
        _day_of_month(rng, day.day, specials=True),
        _month(rng, day.month),
        _day_of_week(rng, day.isoweekday() % 7, specials=True),
    ]
    if rng.random() < 0.04:
        parts.insert(0, time_field(rng, 59, wall % 60))
    return " ".join(parts)


def time_field(rng: random.Random, high: int, near: int) -> str:
    """Return a field of 0 to `high` that mostly holds `near`."""
    shapes = {
        "*": 4,
        f"{near}": 6,
        f"*/{rng.randrange(1, high // 2)}": 4,
        f"{rng.randrange(near + 1)}-{rng.randint(near, high)}": 3,
        f"{near},{rng.randint(0, high)}": 2,
        f"{rng.randrange(near + 1)}/{rng.randrange(1, high // 2)}": 1,
        f"*,{near}": 1,
        f"{near},*": 1,
        f"0-{high}": 1,
        f"0-{high}/{rng.randrange(1, high // 2)}": 1,
    }
    return _one_of(shapes, rng)


def _day_of_month(rng: random.Random, near: int, *, specials: bool) -> str:
    shapes = {
        "*": 12,
        f"{near}": 2,
        f"*/{rng.randrange(1, 16)}": 1,
        f"{rng.randint(1, near)}-{rng.randint(near, 31)}": 1,
        f"{near},{rng.randrange(1, 32)}": 1,
        f"{rng.randint(1, near)}/{rng.randrange(1, 10)}": 1,
        f"{near},*": 1,
    }
    if specials:
        shapes |= {"L": 1, "LW": 1, f"{near},L": 1}
    return _one_of(shapes, rng)


def _month(rng: random.Random, near: int) -> str:
    shapes = {
        "*": 12,
        f"{near}": 1,
        MONTHS[near - 1]: 1,
        f"*/{rng.randrange(1, 6)}": 1,
        f"{MONTHS[rng.randrange(near)]}-{MONTHS[rng.randrange(near - 1, 12)]}": 1,
        f"{near}/3": 1,
    }
    return _one_of(shapes, rng)


def _day_of_week(rng: random.Random, near: int, *, specials: bool) -> str:
    shapes = {
        "*": 12,
        f"{near or rng.choice((0, 7))}": 1,
        WEEKDAYS[near]: 1,
        f"{rng.randint(0, near)}-{rng.randint(near, 7)}": 1,
        f"{WEEKDAYS[near]},{rng.randrange(8)}": 1,
        f"*/{rng.randrange(1, 5)}": 1,
        f"{near}/2": 1,
    }
    if specials:
        shapes |= {f"{near}L": 1, f"{WEEKDAYS[near]}#{rng.randrange(1, 6)}": 1, f"{near}#5,1L": 1}
    return _one_of(shapes, rng)


def _one_of(shapes: dict[str, int], rng: random.Random) -> str:
    return rng.choices(list(shapes), list(shapes.values()))[0]
