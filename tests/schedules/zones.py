"""Time zones for tests: those of the database, and made-up ones that are worse."""

from __future__ import annotations

import struct
import zoneinfo
from functools import cache
from importlib import resources
from io import BytesIO
from pathlib import Path
from zoneinfo import ZoneInfo

from tests.schedules.debian import offset_at, utc

FROM = utc("1970-01-01")
TO = utc("2040-01-01")
_HEADER = struct.Struct(">4s1s15x6l")
# Names of the host's own zone, not of a place.
_NO_PLACES = {"localtime", "posixrules"}


@cache
def zone_names() -> list[str]:
    return sorted(zoneinfo.available_timezones() - _NO_PLACES)


@cache
def names_of_distinct_zones() -> list[str]:
    """Return one name for each history: many names are links to the same file."""
    return sorted({_file(name): name for name in reversed(zone_names())}.values())


def made_up_zone(first_offset: int, changes: list[tuple[int, int]]) -> ZoneInfo:
    """Return a zone that changes to an offset at an instant, for each of `changes`."""
    offsets = [first_offset, *(offset for _, offset in changes)]
    header = _HEADER.pack(b"TZif", b"\0", 0, 0, 0, len(changes), len(offsets), 4)
    times = b"".join(struct.pack(">l", instant) for instant, _ in changes)
    kinds = bytes(range(1, len(offsets)))
    infos = b"".join(struct.pack(">lBB", offset, 0, 0) for offset in offsets)
    return ZoneInfo.from_file(BytesIO(header + times + kinds + infos + b"XXX\0"), key="Made/Up")


def listed_changes(name: str) -> list[tuple[int, int, int]]:
    """Return (instant, offset before, offset after) from the table in the zone's own file.

    The table may end where a rule for all later years begins.
    """
    data = _file(name)
    first = _counts(data)
    body = _HEADER.size + _size(first, 4)
    count = _counts(data[body:])[3]
    start = body + _HEADER.size
    instants = struct.unpack(f">{count}q", data[start : start + 8 * count])
    zone = ZoneInfo(name)
    changes = [(each, offset_at(zone, each - 1), offset_at(zone, each)) for each in instants
               if FROM <= each < TO]  # fmt: skip
    return [change for change in changes if change[1] != change[2]]


def _file(name: str) -> bytes:
    for root in zoneinfo.TZPATH:
        path = Path(root, name)
        if path.is_file():
            return path.read_bytes()
    return resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


def _counts(data: bytes) -> tuple[int, ...]:
    """Counts of: UTC marks, standard marks, leap seconds, changes, kinds, characters."""
    return tuple(int(each) for each in _HEADER.unpack(data[: _HEADER.size])[2:])


def _size(counts: tuple[int, ...], time_size: int) -> int:
    utc_marks, standard_marks, leaps, changes, kinds, characters = counts
    leap_size = time_size + 4
    return (
        changes * (time_size + 1)
        + kinds * 6
        + characters
        + leaps * leap_size
        + standard_marks
        + utc_marks
    )
