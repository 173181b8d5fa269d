"""From wall times to instants: the first slot after an instant, by Debian's clock-change rule.

The rule, from Debian's cron(8) and crontab(5):

- A *fixed-time* job has no star at the beginning of its minute or hour field. When the clock is
  put forward, the wall times that were skipped are made up for at once, at the end of the gap;
  when it is put back, wall times that come again are not run again.
- A *wildcard* job follows the wall clock as it is shown.
- A change of three hours or more is a correction for all jobs: nothing made up, nothing held back.

Said in one sentence for all of them: time falls into *eras*, and within an era a wall time is
run at the first instant at which the wall shows it or a later one. For a fixed-time job an era
ends at a correction, for a wildcard job at every change of offset. An era opens with the wall
time shown at its first instant.

Offsets are less than a day in size. So two days after an instant the wall shows later times than
ever before, and a wall time comes at most a day before the instant that UTC would give it: that
is why no more than two days around a question and around its answer need to be looked at.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from anarchon.schedules.moments import DAY, EARLIEST, EPOCH, LATEST

if TYPE_CHECKING:
    from anarchon.schedules.calendar import Calendar
    from anarchon.schedules.offsets import Offsets

CORRECTION = 3 * 3600
"""From this size on, a change of the clock is a correction, in seconds."""

_TWO_DAYS = 2 * DAY
_YEAR = 366 * DAY
# By then every zone's irregular past is over (Morocco's is listed up to 2087), and all that
# matters of a year is its length and the weekday it begins with: 60 years have all of them.
_REGULAR_FROM = (datetime(2101, 1, 1, tzinfo=UTC) - EPOCH).days * DAY
_ALL_KINDS_OF_YEARS = 60 * _YEAR


def next_slot(calendar: Calendar, offsets: Offsets, after: int, *, fixed_time: bool) -> int | None:
    """Return the first slot strictly after an instant, both in seconds; None: never again."""
    seen_to = max(after, EARLIEST)
    give_up = max(seen_to, _REGULAR_FROM) + _ALL_KINDS_OF_YEARS
    wall = calendar.at_or_after(_first_open(offsets, seen_to, fixed_time=fixed_time))
    stretch = offsets.at(seen_to + 1)
    while wall is not None and stretch.start < give_up:
        # A wall time that was skipped, in this era, comes at the end of the gap: the start here.
        instant = max(wall - stretch.offset, stretch.start)
        if instant < stretch.end:
            return instant if instant <= LATEST else None
        if stretch.end >= seen_to + _TWO_DAYS and wall - DAY > stretch.end:
            stretch = offsets.at(wall - DAY)
            continue
        following = offsets.at(stretch.end)
        if ends_era(following.offset - stretch.offset, fixed_time=fixed_time):
            seen_to = following.start
            wall = calendar.at_or_after(following.start + following.offset)
        stretch = following
    return None


def ends_era(jump: int, *, fixed_time: bool) -> bool:
    """Whether the wall, jumping by so many seconds, leaves behind all it showed before."""
    return abs(jump) >= CORRECTION if fixed_time else jump != 0


def _first_open(offsets: Offsets, after: int, *, fixed_time: bool) -> int:
    """Return the first wall time that has not come yet, up to and including an instant."""
    stretch = offsets.at(after)
    following = offsets.at(after + 1)
    if ends_era(following.offset - stretch.offset, fixed_time=fixed_time):
        return after + 1 + following.offset
    first_open = after + 1 + stretch.offset
    while fixed_time and stretch.start > after - _TWO_DAYS:
        earlier = offsets.at(stretch.start - 1)
        if ends_era(stretch.offset - earlier.offset, fixed_time=fixed_time):
            break
        first_open = max(first_open, earlier.end + earlier.offset)
        stretch = earlier
    return first_open
