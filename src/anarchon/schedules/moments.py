"""Between aware datetimes and whole seconds or milliseconds since the epoch.

Everything here stays two days inside what `datetime` can hold, so that no zone's offset
pushes a moment over the edge.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import tzinfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400
"""Seconds of a calendar day: the clock on the wall knows no leap seconds."""

_SECOND = timedelta(seconds=1)
_MILLISECOND = timedelta(milliseconds=1)

EARLIEST = (datetime(1, 1, 3, tzinfo=UTC) - EPOCH) // _SECOND
LATEST = (datetime(9999, 12, 29, tzinfo=UTC) - EPOCH) // _SECOND


def require_aware(moment: datetime) -> None:
    """Raise `ValueError` for a naive datetime: it says a time of day, but not where."""
    if moment.utcoffset() is None:
        raise ValueError(
            f"{moment!r} is naive: give an aware datetime, such as datetime.now(timezone.utc)"
        )


def seconds_of(moment: datetime) -> int:
    """Return the whole seconds since the epoch, rounded down. Raises `ValueError` if naive."""
    require_aware(moment)
    return (moment - EPOCH) // _SECOND


def milliseconds_of(moment: datetime) -> int:
    """Return the whole milliseconds since the epoch, rounded down. Raises `ValueError` if naive."""
    require_aware(moment)
    return (moment - EPOCH) // _MILLISECOND


def moment_of_seconds(seconds: int, zone: tzinfo) -> datetime:
    """Return the aware datetime in `zone` of whole seconds since the epoch."""
    return (EPOCH + timedelta(seconds=seconds)).astimezone(zone)


def moment_of_milliseconds(milliseconds: int, zone: tzinfo) -> datetime:
    """Return the aware datetime in `zone` of whole milliseconds since the epoch."""
    return (EPOCH + timedelta(milliseconds=milliseconds)).astimezone(zone)


def wall_date(wall: int) -> date:
    """Return the local date of a count of wall seconds."""
    return date(1970, 1, 1) + timedelta(days=wall // DAY)


def wall_text(wall: int) -> str:
    """Show a time of day from a count of wall seconds: `HH:MM`, or `HH:MM:SS` where needed."""
    minutes, second = divmod(wall % DAY, 60)
    text = f"{minutes // 60:02}:{minutes % 60:02}"
    return f"{text}:{second:02}" if second else text
