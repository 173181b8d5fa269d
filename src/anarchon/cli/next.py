"""`anarchon next`: when a schedule fires, and what changes of the clock do to it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import typer

from anarchon import ConfigurationError, Cron, Every, ScheduleError, clock_changes
from anarchon.cli.numbers import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date
    from zoneinfo import ZoneInfo

    from anarchon import ClockChange

_MOST_RUNS = 1000
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+|\d+(?:\.\d+)?", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?", re.ASCII)
_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1))
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def next_runs(
    context: typer.Context,
    *,
    timezone: Annotated[
        str, typer.Option("--timezone", "-z", metavar="TZ", help="The zone that EXPR is read in.")
    ] = "UTC",
    count: Annotated[
        str, typer.Option("-n", metavar="N", help=f"How many runs to show, 1 to {_MOST_RUNS}.")
    ] = "5",
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="ISO", help="Look from this moment on, such as 2027-03-27T12:00."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show when a schedule fires next, and which clock changes touch it.

    EXPR is a cron expression in quotes, a name such as @daily, or a duration such as 90, 15m or
    1h30m.
    """
    number = whole_number(count, "-n", 1, _MOST_RUNS)
    # The schedule knows the zones and says what is wrong with a name, also for an interval.
    zone = Cron("@daily", timezone).zone
    schedule = _schedule(context.args, zone)
    since = datetime.now(UTC).astimezone(zone) if start is None else _moment(start, zone)
    until = _a_year_after(since)
    runs = list(_runs(schedule, since, number))
    changes = clock_changes(schedule, since, until) if isinstance(schedule, Cron) else ()
    if as_json:
        typer.echo(_as_json(schedule, zone, since, runs, changes))
        return
    typer.echo(schedule.explain())
    typer.echo()
    for line in _aligned(runs, zone, since):
        typer.echo(line)
    typer.echo()
    for line in _told_changes(changes, until):
        typer.echo(line)


def read_schedule(expr: str, zone: ZoneInfo) -> Cron | Every:
    """Return the schedule that an argument stands for. Raises `ScheduleError`."""
    text = expr.strip()
    if _DURATION.fullmatch(text) is None:
        # No cron expression is a single word that begins with a digit.
        if text[:1].isdecimal() and len(text.split()) == 1:
            message = (
                f"{text[:40]!r} is no duration: give seconds, or numbers each with its unit (ms, s,"
                " m, h, d), such as 90, 15m or 1h30m"
            )
            raise ScheduleError(message)
        return Cron(text, zone)
    seconds = sum(float(number) * _MS[unit or "s"] / 1000 for number, unit in _PART.findall(text))
    return Every(seconds)


def _schedule(words: list[str], zone: ZoneInfo) -> Cron | Every:
    if not words:
        message = (
            "EXPR is missing: give a cron expression in quotes, a name such as @daily, or a"
            " duration such as 15m; see anarchon next --help"
        )
        raise ScheduleError(message)
    try:
        return read_schedule(" ".join(words), zone)
    except ScheduleError as error:
        if len(words) == 1:
            raise
        message = (
            f"cannot read {' '.join(words)[:40]!r}: put the expression in quotes, as in"
            " '0 3 * * *'; a shell replaces a bare * by the names of files"
        )
        raise ScheduleError(message) from error


def in_words(length: timedelta) -> str:
    """Say a length of time in its two largest units: `3 h 12 min`."""
    rest = max(0, round(length / timedelta(milliseconds=1)))
    counts: list[tuple[int, str]] = []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        counts.append((count, unit))
    for (count, unit), (further, smaller) in pairwise(counts):
        if count:
            return f"{count} {unit} {further} {smaller}" if further else f"{count} {unit}"
    return f"{counts[-1][0]} ms"


def _moment(text: str, zone: ZoneInfo) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        message = f"--from {text!r}: give a date and time such as 2027-03-27T12:00, or ...+01:00"
        raise ConfigurationError(message) from error
    try:
        local = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
        local = local.astimezone(zone)
    except OverflowError as error:
        message = f"--from {text!r}: that is too near to the first or last year there is"
        raise ConfigurationError(message) from error
    if moment.tzinfo is None and local.replace(tzinfo=None) != moment:
        message = (
            f"--from {text!r}: the clocks of {zone.key} skip that time; give it with its offset"
            f" from UTC, as in {local.isoformat(timespec='minutes')}"
        )
        raise ConfigurationError(message)
    return local


def _a_year_after(moment: datetime) -> datetime:
    try:
        return moment + timedelta(days=365)
    except OverflowError:
        return moment


def _runs(schedule: Cron | Every, since: datetime, count: int) -> Iterator[datetime]:
    found = schedule.next_after(since)
    while found is not None and count:
        yield found
        count -= 1
        found = schedule.next_after(found) if count else None


def _aligned(runs: list[datetime], zone: ZoneInfo, since: datetime) -> Iterator[str]:
    if not runs:
        yield "  never again"
    # A run of a fraction of a second shows it, and then all do, so that the columns stay.
    fine = "milliseconds" if any(run.microsecond for run in runs) else "seconds"
    for run in runs:
        local, utc = run.astimezone(zone), run.astimezone(UTC)
        shown = f"{_day(local)} {local.time().isoformat(fine)} {_offset(local)}"
        if zone.key != "UTC":
            shown += f"   {utc.date()} {utc.time().isoformat(fine)} UTC"
        yield f"  {shown}   in {in_words(_wait(run, since))}"


def _wait(run: datetime, since: datetime) -> timedelta:
    # In UTC: within one zone datetimes subtract by the wall, as if its clock were never changed.
    return run.astimezone(UTC) - since.astimezone(UTC)


def _day(moment: date) -> str:
    # Not by strftime: its names depend on the host's language.
    return f"{_WEEKDAYS[moment.weekday()]} {moment.isoformat()[: len('2027-03-27')]}"


def _offset(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")[len("2027-03-27T12:00:00") :]


def _told_changes(changes: tuple[ClockChange, ...], until: datetime) -> Iterator[str]:
    if not changes:
        yield f"No clock change until {until.date()} moves, skips or doubles a run."
        return
    yield f"Clock changes until {until.date()}:"
    for change in changes:
        yield f"  {_day(change.date)}  {change.kind:<7}  {change.text}"


def _as_json(
    schedule: Cron | Every,
    zone: ZoneInfo,
    since: datetime,
    runs: list[datetime],
    changes: tuple[ClockChange, ...],
) -> str:
    answer = {
        "schedule": schedule.explain(),
        "key": schedule.key,
        "timezone": zone.key,
        "from": since.isoformat(),
        "runs": [
            {
                "local": run.astimezone(zone).isoformat(),
                "utc": run.astimezone(UTC).isoformat(),
                "in_seconds": _wait(run, since).total_seconds(),
            }
            for run in runs
        ],
        "clock_changes": [
            {
                "date": change.date.isoformat(),
                "kind": change.kind,
                "text": change.text,
                "runs": [slot.isoformat() for slot in change.slots],
            }
            for change in changes
        ],
    }
    return json.dumps(answer, indent=2, ensure_ascii=False)
