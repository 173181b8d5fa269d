"""Finds the time zone that a name means, and says what is wrong where there is none."""

from __future__ import annotations

import contextlib
import difflib
import os
import zoneinfo
from importlib import resources
from pathlib import Path
from zoneinfo import ZoneInfo

from anarchon.errors import ScheduleError

_OF_THE_HOST = frozenset({"localtime", "local"})


def zone_of(timezone: object) -> ZoneInfo:
    """Return the zone of an IANA name such as `Europe/Berlin`, or the `ZoneInfo` itself.

    Raises `ScheduleError` for a name that the time zone database does not have, and for zones
    without a name: instances agree on a zone by its name.
    """
    if isinstance(timezone, ZoneInfo):
        if timezone.key is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise ScheduleError(
                f"timezone {timezone!r} has no name by which all instances could know it: "
                'give ZoneInfo("Europe/Berlin"), or the name alone'
            )
        return timezone
    if not isinstance(timezone, str):
        raise ScheduleError(
            f"timezone {timezone!r}: "
            "give an IANA name such as 'Europe/Berlin', or a zoneinfo.ZoneInfo"
        )
    if timezone.lower() in _OF_THE_HOST:
        raise ScheduleError(
            f"timezone {timezone!r} means something else on every host: "
            "give an IANA name such as 'Europe/Berlin', or 'UTC'"
        )
    try:
        return ZoneInfo(timezone)
    # A name of a directory, or one that is no path at all, raises what the file system says.
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ScheduleError(_unknown(timezone)) from None


def _unknown(name: str) -> str:
    known = _names()
    if not known:
        return (
            f"timezone {name!r}: this system has no time zone database; "
            "install the package tzdata (pip install tzdata)"
        )
    near = _nearest(name, known)
    hint = f"did you mean {near!r}? " if near else ""
    return (
        f"unknown timezone {name!r}: {hint}Accepted are IANA names "
        "such as 'Europe/Berlin', 'America/New_York' or 'UTC'"
    )


def _nearest(name: str, known: list[str]) -> str | None:
    """Return the name that was probably meant: other capitals, the city alone, a slip."""
    wanted = name.strip().replace(" ", "_").casefold()
    folded = {each.casefold(): each for each in known}
    cities = {each.rpartition("/")[2]: original for each, original in folded.items()}
    if wanted in folded or wanted in cities:
        return folded.get(wanted) or cities[wanted]
    near = difflib.get_close_matches(wanted[:40], folded, n=1, cutoff=0.75)
    return folded[near[0]] if near else None


def _names() -> list[str]:
    """Return the zone names there are.

    Unlike `zoneinfo.available_timezones`, which opens every file, this only lists them: an error
    at start-up should not take a tenth of a second.
    """
    names: set[str] = set()
    # Without that package the system's files are what there is.
    with contextlib.suppress(ModuleNotFoundError, OSError):
        names.update((resources.files("tzdata") / "zones").read_text("utf-8").split())
    for root in zoneinfo.TZPATH:
        for folder, folders, files in os.walk(root):
            folders[:] = [each for each in folders if each not in {"posix", "right"}]
            base = Path(folder).relative_to(root)
            names.update((base / each).as_posix() for each in files if each[:1].isupper())
    return sorted(names)
