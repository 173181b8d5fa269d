"""The newest slot before a moment, for any schedule that can only look forward."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_REACH = 60_000
_GROWTH = 4


def newest(next_after: Callable[[int], int | None], not_after: int, after: int) -> int | None:
    """Return the newest slot with `after` < slot <= `not_after`, in milliseconds; None if none.

    The gap is not walked: reaching back in growing steps finds some slot, and halving what lies
    between it and the end finds the newest. So the number of questions grows with the logarithm
    of the gap. `next_after` must answer strictly after what it is asked.
    """
    found = _some(next_after, not_after, after)
    if found is None:
        return None
    empty_from = not_after  # No slot lies in (empty_from, not_after].
    while found < empty_from:
        middle = (found + empty_from) // 2
        slot = next_after(middle)
        if slot is None or slot > not_after:
            empty_from = middle
        else:
            found = slot
            following = next_after(found)
            if following is None or following > not_after:
                break
    return found


def _some(next_after: Callable[[int], int | None], not_after: int, after: int) -> int | None:
    """Return any slot with `after` < slot <= `not_after`."""
    reach = _FIRST_REACH
    start = not_after
    while start > after:
        start = max(after, not_after - reach)
        slot = next_after(start)
        if slot is not None and slot <= not_after:
            return slot
        reach *= _GROWTH
    return None
