"""Small pieces of English for the explanations of schedules."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SHORTEST_RUN = 3
_TEENS = range(11, 14)


def joined(items: Sequence[str], conjunction: str = "and") -> str:
    """Return `a`, `a and b`, or `a, b and c`."""
    if len(items) == 1:
        return items[0]
    return f"{', '.join(items[:-1])} {conjunction} {items[-1]}"


def ordinal(number: int) -> str:
    """Return `1st`, `2nd`, `13th`."""
    last_digit = 0 if number % 100 in _TEENS else number % 10
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last_digit, 'th') }"


def listed(values: Sequence[int], show: Callable[[int], str]) -> list[str]:
    """Show sorted numbers one by one, but three and more in a row as `a through b`."""
    shown: list[str] = []
    run: list[int] = []
    for value in (*values, None):
        if run and (value is None or value != run[-1] + 1):
            long = len(run) >= _SHORTEST_RUN
            shown += [f"{show(run[0])} through {show(run[-1])}"] if long else map(show, run)
            run = []
        if value is not None:
            run.append(value)
    return shown


def step_of(values: Sequence[int]) -> int | None:
    """Return the distance of three or more sorted numbers that are evenly spaced, else None."""
    if len(values) < _SHORTEST_RUN:
        return None
    step = values[1] - values[0]
    even = all(after - before == step for before, after in pairwise(values))
    return step if even else None
