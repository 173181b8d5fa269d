"""What the engine asks: one interface, in milliseconds, for every kind of schedule."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from anarchon.errors import ScheduleError
from anarchon.schedules.cron import Cron
from anarchon.schedules.every import Every
from anarchon.schedules.newest import newest
from anarchon.schedules.own import OwnSlots, key_of
from anarchon.schedules.zones import zone_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from anarchon.schedules.protocol import Schedule

_UTC = "UTC"


@dataclass(frozen=True)
class Slots:
    """The slots of a job: integers, milliseconds since the epoch. Made by `slots_of`."""

    key: str
    """Names the schedule; a changed key means a changed schedule."""
    timezone: ZoneInfo
    """The zone for showing slots to people; UTC unless the job or its schedule has one."""
    schedule: Schedule = field(compare=False)
    """The schedule itself, with the job's zone."""
    _next_after: Callable[[int], int | None] = field(repr=False, compare=False)

    def next_after(self, ms: int) -> int | None:
        """Return the first slot strictly after `ms`; None: never again.

        Raises `ScheduleError` when a user's schedule answers nonsense or raises.
        """
        return self._next_after(ms)

    def newest(self, not_after: int, after: int) -> int | None:
        """Return the newest slot with `after` < slot <= `not_after`; None if there is none.

        The work grows with the logarithm of the gap, not with the slots in it.
        """
        return newest(self._next_after, not_after, after)

    def explain(self) -> str:
        """Say in words when the slots are."""
        if isinstance(self.schedule, (Cron, Every)):
            return self.schedule.explain()
        return f"by the schedule {self.key}"


def slots_of(
    schedule: str | float | timedelta | Schedule, timezone: str | ZoneInfo | None = None
) -> Slots:
    """Return the slots of a job's schedule in the job's time zone.

    A string is a cron expression, a number (of seconds) or a timedelta an interval; an object
    needs `key` and `next_after`, as in `Schedule`. Without a zone it is UTC.

    Raises `ScheduleError` for whatever cannot work, here where the job is declared: among that a
    zone given both in the schedule and in the job.
    """
    zone = None if timezone is None else zone_of(timezone)
    if isinstance(schedule, str):
        return _cron_slots(Cron(schedule, zone))
    if isinstance(schedule, (int, float, timedelta)):
        return _every_slots(Every(schedule), zone)
    if isinstance(schedule, Every):
        return _every_slots(schedule, zone)
    if isinstance(schedule, Cron):
        if zone is None:
            return _cron_slots(schedule)
        _refuse_two_zones(schedule.key, schedule.timezone, zone)
        return _cron_slots(Cron(schedule.expr, zone))
    return _own_slots(schedule, zone)


def _cron_slots(cron: Cron) -> Slots:
    def next_after(ms: int) -> int | None:
        slot = cron.next_after_seconds(ms // 1000)
        return None if slot is None else slot * 1000

    return Slots(cron.key, cron.zone, cron, next_after)


def _every_slots(every: Every, zone: ZoneInfo | None) -> Slots:
    shown_in = zone_of(_UTC) if zone is None else zone
    return Slots(every.key, shown_in, every, every.next_after_milliseconds)


def _own_slots(schedule: Schedule, zone: ZoneInfo | None) -> Slots:
    if isinstance(schedule, type) or not callable(getattr(schedule, "next_after", None)):
        raise ScheduleError(
            f"schedule {schedule!r}: give a cron expression, seconds as a number, a timedelta, "
            "or an object with key and next_after(moment)"
        )
    key = key_of(schedule)
    its_zone: object = getattr(schedule, "timezone", None)
    if zone is not None:
        _refuse_two_zones(key, its_zone, zone)
    if zone is None:
        zone = its_zone if isinstance(its_zone, ZoneInfo) else zone_of(_UTC)
    return Slots(key, zone, schedule, OwnSlots(schedule, key, zone).next_after)


def _refuse_two_zones(key: str, of_schedule: object, of_job: ZoneInfo) -> None:
    if of_schedule is not None:
        raise ScheduleError(
            f"schedule {key!r} has a time zone of its own ({of_schedule}), and the job has "
            f"timezone={of_job.key!r}: give it in one of the two places"
        )
