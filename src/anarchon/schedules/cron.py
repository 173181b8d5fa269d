"""The class `Cron`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from anarchon.errors import ScheduleError
from anarchon.schedules.calendar import Calendar
from anarchon.schedules.explain import explain_cron
from anarchon.schedules.expression import Expression, read_expression
from anarchon.schedules.moments import EPOCH, moment_of_seconds, seconds_of
from anarchon.schedules.offsets import offsets_of
from anarchon.schedules.walk import next_slot
from anarchon.schedules.zones import zone_of

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from anarchon.schedules.offsets import Offsets

# Whether a schedule ever fires is asked from a day that does not move: the answer, like the
# slots themselves, should not depend on when a program starts.
_FIXED_DAY = (datetime(2025, 1, 1, tzinfo=UTC) - EPOCH).days * 86_400


@dataclass(frozen=True, init=False)
class Cron:
    """A cron expression in a time zone.

    `expr` has five fields (minute, hour, day of month, month, day of week), or six with seconds
    first, or is one of `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight` and
    `@hourly`. Days and months have names (`MON`, `jan`), 7 is Sunday, `5/15` counts from 5 by 15,
    and `L`, `LW`, `5L`, `MON#1` mean the last day, the last workday, the last Friday and the
    first Monday of the month.

    `timezone` is an IANA name or a `ZoneInfo`; without one it is UTC, or the zone of the job,
    and never that of the host.

    Both day fields and changes of the clock are treated as Debian's cron does: see
    `anarchon.schedules.walk`.

    Raises `ScheduleError` for an expression that cannot be read or never fires, and for an
    unknown zone.
    """

    expr: str = field(compare=False)
    """The expression as given."""
    timezone: ZoneInfo | None
    """The zone as given: None stands for UTC."""
    expression: Expression = field(repr=False)
    """What was read: the same for `@daily` and `0 0 * * *`, in whatever capitals and spaces."""
    zone: ZoneInfo = field(repr=False, compare=False)
    """The zone that the wall times belong to."""
    calendar: Calendar = field(repr=False, compare=False)
    """The wall times of the expression, without any zone."""

    def __init__(self, expr: str, timezone: str | ZoneInfo | None = None) -> None:
        zone = None if timezone is None else zone_of(timezone)
        expression = read_expression(expr)
        calendar = Calendar(expression)
        calendar.check_that_it_fires(expr)
        # A frozen dataclass sets its own fields this way too.
        object.__setattr__(self, "expr", expr)
        object.__setattr__(self, "timezone", zone)
        object.__setattr__(self, "expression", expression)
        object.__setattr__(self, "zone", zone_of("UTC") if zone is None else zone)
        object.__setattr__(self, "calendar", calendar)
        if not expression.fixed_time and self.next_after_seconds(_FIXED_DAY) is None:
            raise ScheduleError(
                f"cron expression {expr!r} never fires in {self.zone.key}: all of its times are "
                "skipped when the clock is put forward. Without a star at the beginning of minute "
                "and hour, skipped times run at the end of the gap"
            )

    @property
    def key(self) -> str:
        """Names expression and zone, as in `cron:0 3 * * *@Europe/Berlin`."""
        return f"cron:{self.expression.text}@{self.zone.key}"

    @property
    def offsets(self) -> Offsets:
        """The offsets of the zone over time."""
        return offsets_of(self.zone)

    def next_after(self, moment: datetime, /) -> datetime | None:
        """Return the first slot strictly after an aware `moment`, in the zone of the schedule.

        None: never again before the year 9999. Raises `ValueError` for a naive datetime.
        """
        slot = self.next_after_seconds(seconds_of(moment))
        return None if slot is None else moment_of_seconds(slot, self.zone)

    def next_after_seconds(self, seconds: int) -> int | None:
        """As `next_after`, in whole seconds since the epoch."""
        return next_slot(
            self.calendar, self.offsets, seconds, fixed_time=self.expression.fixed_time
        )

    def explain(self) -> str:
        """Say in words when it fires: `at 03:00 every day, Europe/Berlin`.

        UTC is left out where the zone changes nothing, as in `every 15 minutes`.
        """
        words = explain_cron(self.expression)
        if self.zone.key == "UTC" and not self.expression.names_a_time:
            return words
        return f"{words}, {self.zone.key}"
