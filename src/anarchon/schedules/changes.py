"""Which runs of a cron expression a change of the clock moves, skips or doubles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from anarchon.schedules.cron import Cron
from anarchon.schedules.moments import moment_of_seconds, seconds_of, wall_date, wall_text
from anarchon.schedules.walk import CORRECTION
from anarchon.schedules.wording import joined

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date, datetime

    from anarchon.schedules.offsets import Change
    from anarchon.schedules.protocol import Schedule
    from anarchon.schedules.slots import Slots

_MOST_SHOWN = 3


@dataclass(frozen=True)
class ClockChange:
    """What one change of the clock does to the runs of a cron expression."""

    date: date
    """The local date of the wall times concerned."""
    kind: Literal["moved", "skipped", "doubled"]
    """`moved`: skipped wall times run at the end of the gap. `skipped`: they do not run at all.
    `doubled`: wall times that come twice run twice."""
    text: str
    """In words and local time: `02:30 does not exist: runs once, at 03:00`."""
    slots: tuple[datetime, ...]
    """The slots concerned, in the zone of the expression: none for `skipped`."""


def clock_changes(
    schedule: Schedule | Slots, start: datetime, end: datetime
) -> tuple[ClockChange, ...]:
    """Return what changes of the clock do to a cron expression, `start` <= change < `end`.

    Nothing is said of runs that keep their distance in real time, as those of `*/15 * * * *` do,
    nor of fixed-time jobs in an hour that comes twice: they run once, in its first pass. Empty
    for a schedule that is no cron expression. Raises `ValueError` for naive datetimes.
    """
    cron = getattr(schedule, "schedule", schedule)
    if not isinstance(cron, Cron):
        return ()
    found = (
        _effect(cron, change) for change in cron.offsets.changes(seconds_of(start), seconds_of(end))
    )
    return tuple(effect for effect in found if effect is not None)


def _effect(cron: Cron, change: Change) -> ClockChange | None:
    jump = change.after - change.before
    low, high = sorted((change.instant + change.before, change.instant + change.after))
    walls = tuple(_walls(cron, low, high))
    if not walls or _keeps_its_rhythm(cron, change):
        return None
    fixed = cron.expression.fixed_time and abs(jump) < CORRECTION
    times = _times(walls)
    if jump < 0:
        if fixed:
            return None
        twice = sorted(wall - offset for wall in walls for offset in (change.before, change.after))
        verb = "comes" if len(walls) == 1 else "come"
        return _change(cron, "doubled", walls, f"{times} {verb} twice: runs both times", twice)
    verb = "does" if len(walls) == 1 else "do"
    if fixed:
        text = f"{times} {verb} not exist: runs once, at {wall_text(high)}"
        return _change(cron, "moved", walls, text, [change.instant])
    return _change(cron, "skipped", walls, f"{times} {verb} not exist and {verb} not run", [])


def _change(
    cron: Cron,
    kind: Literal["moved", "skipped", "doubled"],
    walls: tuple[int, ...],
    text: str,
    instants: list[int],
) -> ClockChange:
    slots = tuple(moment_of_seconds(instant, cron.zone) for instant in instants)
    return ClockChange(wall_date(walls[0]), kind, text, slots)


def _walls(cron: Cron, low: int, high: int) -> Iterator[int]:
    """Yield the matching wall times from `low` up to, but not including, `high`."""
    wall = cron.calendar.at_or_after(low)
    while wall is not None and wall < high:
        yield wall
        wall = cron.calendar.at_or_after(wall + 1)


def _keeps_its_rhythm(cron: Cron, change: Change) -> bool:
    """Whether nobody could tell from the distances of the slots that the clock was changed.

    That is so for an expression of all hours whose slots just after the change are those that
    would have come without it.
    """
    if not cron.expression.hour.is_full:
        return False
    end = change.instant + abs(change.after - change.before)
    unchanged = {
        wall - change.before
        for wall in _walls(cron, change.instant + change.before, end + change.before)
    }
    slots: set[int] = set()
    slot = cron.next_after_seconds(change.instant - 1)
    while slot is not None and slot < end:
        slots.add(slot)
        slot = cron.next_after_seconds(slot)
    return slots == unchanged


def _times(walls: tuple[int, ...]) -> str:
    """Name a few wall times and count the rest."""
    shown = [wall_text(wall) for wall in walls[:_MOST_SHOWN]]
    more = len(walls) - len(shown)
    if more:
        shown.append(f"{more} more time{'s' if more > 1 else ''}")
    return joined(shown)
