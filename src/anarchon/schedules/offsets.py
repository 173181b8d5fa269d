"""The offset from UTC of a zone, as stretches of time in which it does not change.

`zoneinfo` tells the offset at an instant but not when it changes, so changes are found by
asking: once a day, then by halving. No two changes of any zone have ever been less than three
days apart, and changes that lie closer are still found unless they undo each other in a day.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from anarchon.schedules.moments import DAY, EARLIEST, EPOCH, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

_STEP = DAY
_CHUNK = 32 * DAY
_MOST_CHUNKS = 1024  # Ninety years; a few hundred bytes each.
# Chunks reach beyond what `datetime` can hold; there the offset is taken to stay what it was.
_FIRST, _LAST = EARLIEST - DAY, LATEST + DAY


class Stretch(NamedTuple):
    """A time in which the offset stays the same: from `start` up to, but not including, `end`.

    All in seconds; the wall shows `instant + offset`. Two neighbours may have the same offset.
    """

    start: int
    end: int
    offset: int


class Change(NamedTuple):
    """A change of offset: at `instant` the wall jumps by `after - before` seconds."""

    instant: int
    before: int
    after: int


class Offsets:
    """The stretches of one zone, found as they are needed and kept."""

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone
        self._chunks: dict[int, tuple[Stretch, ...]] = {}
        self.probes: int = 0
        """How often the zone was asked: what the work of this class is made of."""

    def at(self, instant: int) -> Stretch:
        """Return the stretch around an instant, given in seconds since the epoch."""
        for stretch in self._chunk(instant // _CHUNK):
            if instant < stretch.end:
                return stretch
        raise AssertionError  # pragma: no cover - a chunk covers all of its time

    def changes(self, start: int, end: int) -> Iterator[Change]:
        """Yield the changes of offset with `start` <= instant < `end`, in order."""
        before = self.at(start - 1)
        while before.end < end:
            after = self.at(before.end)
            if after.offset != before.offset:
                yield Change(after.start, before.offset, after.offset)
            before = after

    def _chunk(self, index: int) -> tuple[Stretch, ...]:
        chunk = self._chunks.get(index)
        if chunk is None:
            if len(self._chunks) >= _MOST_CHUNKS:
                self._chunks.clear()
            chunk = self._chunks[index] = tuple(self._stretches(index))
        return chunk

    def _stretches(self, index: int) -> Iterator[Stretch]:
        start = index * _CHUNK
        end = start + _CHUNK
        offset = self._offset(start)
        asked = start
        while True:
            ahead = min(asked + _STEP, end - 1)
            if self._offset(ahead) != offset:
                ahead = self._first_change(asked, ahead, offset)
                yield Stretch(start, ahead, offset)
                start, offset = ahead, self._offset(ahead)
            elif ahead == end - 1:
                break
            asked = ahead
        yield Stretch(start, end, offset)

    def _first_change(self, same: int, other: int, offset: int) -> int:
        """Return where `offset` ends, between an instant that has it and one that has not."""
        while other - same > 1:
            middle = (same + other) // 2
            if self._offset(middle) == offset:
                same = middle
            else:
                other = middle
        return other

    def _offset(self, instant: int) -> int:
        self.probes += 1
        now = EPOCH + timedelta(seconds=min(max(instant, _FIRST), _LAST))
        # What the wall shows, not `utcoffset`: that works back from the wall and a fold, which
        # cannot tell apart the passes of a time that comes three times.
        offset = now.astimezone(self._zone).replace(tzinfo=UTC) - now
        return offset.days * DAY + offset.seconds


@lru_cache(maxsize=256)
def offsets_of(zone: ZoneInfo) -> Offsets:
    """Return the stretches of a zone, shared by all schedules in it."""
    return Offsets(zone)
