"""Schedule objects that users bring: asked carefully, because nothing is known of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from anarchon.errors import ScheduleError
from anarchon.schedules.moments import EARLIEST, EPOCH, LATEST, milliseconds_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from zoneinfo import ZoneInfo

    from anarchon.schedules.protocol import Schedule

_T = TypeVar("_T")
_REST_OF_A_MILLISECOND = timedelta(microseconds=999)


def key_of(schedule: Schedule) -> str:
    """Return the key of a user's schedule. Raises `ScheduleError` if it is no text or empty."""
    name = type(schedule).__name__
    return _checked_key(_guarded(lambda: schedule.key, f"the key of schedule {name}"), name)


def _checked_key(key: object, name: str) -> str:
    if not isinstance(key, str) or not key.strip():
        raise ScheduleError(
            f"schedule {name} has the key {key!r}: "
            "give a text that names the schedule and changes when it does"
        )
    return key


class OwnSlots:
    """The slots of a user's schedule, in milliseconds.

    A slot is the answer rounded down to whole milliseconds. Raises `ScheduleError`, naming the
    key, for answers that are no aware datetimes or not strictly after the moment asked, and
    when the object raises.
    """

    def __init__(self, schedule: Schedule, key: str, zone: ZoneInfo) -> None:
        self._schedule = schedule
        self._place = f"schedule {key!r}"
        self._zone = zone

    def next_after(self, milliseconds: int) -> int | None:
        """Return the first slot strictly after an instant; None: never again."""
        if milliseconds >= LATEST * 1000:
            return None
        asked = EPOCH + timedelta(milliseconds=max(milliseconds, EARLIEST * 1000))
        slot = self._slot_after(asked)
        if slot is not None and slot <= milliseconds:
            # Its answer lies within the millisecond asked about; what counts comes after that.
            slot = self._slot_after(asked + _REST_OF_A_MILLISECOND)
        return slot

    def _slot_after(self, asked: datetime) -> int | None:
        """Ask for the slot after an instant in UTC."""
        moment = asked.astimezone(self._zone)
        answer = _guarded(
            lambda: self._schedule.next_after(moment), f"{self._place}: next_after({moment})"
        )
        return None if answer is None else self._checked(answer, moment)

    def _checked(self, answer: object, moment: datetime) -> int | None:
        if not isinstance(answer, datetime):
            raise ScheduleError(
                f"{self._place}: next_after answered {answer!r}; "
                "it must answer an aware datetime or None"
            )
        if _guarded(answer.utcoffset, f"{self._place}: the zone of {answer!r}") is None:
            raise ScheduleError(f"{self._place}: next_after answered the naive {answer!r}")
        # Against UTC: datetimes of one zone compare by the wall, even where an hour comes twice.
        if answer - EPOCH <= moment - EPOCH:
            raise ScheduleError(
                f"{self._place}: next_after({moment}) answered {answer}, "
                "which is not after the moment asked"
            )
        slot = milliseconds_of(answer)
        return slot if slot <= LATEST * 1000 else None


def _guarded(ask: Callable[[], _T], what: str) -> _T:
    """Ask a user's object; what it raises becomes a `ScheduleError` with the cause kept."""
    try:
        return ask()
    except Exception as error:
        raise ScheduleError(f"{what} raised {type(error).__name__}: {error}") from error
