"""Debian's cron, simulated tick by tick: slow, and meant to be obviously right.

It shares nothing with the evaluator under test: expressions are read by cronsim, offsets come
from `zoneinfo` at every tick, and every wall time is looked at.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from cronsim import CronSim

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
THREE_HOURS = 3 * 3600


def utc(text: str) -> int:
    """Seconds since the epoch of an ISO date and time in UTC."""
    moment = datetime.fromisoformat(text)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return (moment - EPOCH) // SECOND


def moment(seconds: int) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def offset_at(zone: ZoneInfo, instant: int) -> int:
    """Seconds by which the wall is ahead of UTC."""
    now = EPOCH + timedelta(seconds=instant)
    return (now.astimezone(zone).replace(tzinfo=UTC) - now) // SECOND


class Matcher:
    """Whether a wall time, in seconds as if it were UTC, matches an expression."""

    def __init__(self, expression: str) -> None:
        self._fields = CronSim(expression, datetime(2000, 1, 1))  # noqa: DTZ001 - a wall time
        self._days: dict[int, bool] = {}
        *seconds, minute, hour, _, _, _ = expression.split()
        self.fixed_time = not (minute.startswith("*") or hour.startswith("*"))
        self.has_seconds = seconds not in ([], ["0"])

    def __call__(self, wall: int) -> bool:
        day, second = divmod(wall, 86_400)
        minute, second = divmod(second, 60)
        return (
            second in self._fields.seconds
            and minute % 60 in self._fields.minutes
            and minute // 60 in self._fields.hours
            and self._matches_day(day)
        )

    def _matches_day(self, day: int) -> bool:
        if day not in self._days:
            local = date(1970, 1, 1) + timedelta(days=day)
            self._days[day] = local.month in self._fields.months and self._fields.match_day(local)
        return self._days[day]


def simulate(matches: Matcher, zone: ZoneInfo, start: int, end: int, tick: int) -> list[int]:
    """Return the slots with `start` <= slot < `end`, as a daemon started at `start` runs them.

    `reached` is the daemon's own clock: it follows the wall, but does not go back with it.
    """
    slots: list[int] = []
    shown = reached = start + offset_at(zone, start) - tick
    for now in range(start, end, tick):
        wall = now + offset_at(zone, now)
        jump = wall - (shown + tick)
        shown = wall
        if abs(jump) >= THREE_HOURS:
            reached = wall - tick
        if matches.fixed_time:
            due = any(matches(passed) for passed in range(reached + tick, wall + 1, tick))
            reached = max(reached, wall)
        else:
            due = matches(wall)
        if due:
            slots.append(now)
    return slots
