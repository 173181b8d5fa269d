"""`anarchon next`: when a schedule fires, and what changes of the clock do to it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from anarchon import Cron, Every, ScheduleError, clock_changes
from anarchon.cli.numbers import whole_number
from anarchon.cli.times import clock, day, in_words, read_moment, seconds_in, told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from anarchon import ClockChange

_MOST_RUNS = 1000


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
    since = (
        datetime.now(UTC).astimezone(zone) if start is None else read_moment(start, "--from", zone)
    )
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
    seconds = seconds_in(text)
    if seconds is None:
        # No cron expression is a single word that begins with a digit.
        if text[:1].isdecimal() and len(text.split()) == 1:
            message = (
                f"{text[:40]!r} is no duration: give seconds, or numbers each with its unit (ms, s,"
                " m, h, d), such as 90, 15m or 1h30m"
            )
            raise ScheduleError(message)
        return Cron(text, zone)
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
    fine = any(run.microsecond for run in runs)
    for run in runs:
        local, utc = run.astimezone(zone), run.astimezone(UTC)
        shown = told(local, fine=fine)
        if zone.key != "UTC":
            shown += f"   {utc.date()} {clock(utc, fine=fine)} UTC"
        yield f"  {shown}   in {in_words(_wait(run, since))}"


def _wait(run: datetime, since: datetime) -> timedelta:
    # In UTC: within one zone datetimes subtract by the wall, as if its clock were never changed.
    return run.astimezone(UTC) - since.astimezone(UTC)


def _told_changes(changes: tuple[ClockChange, ...], until: datetime) -> Iterator[str]:
    if not changes:
        yield f"No clock change until {until.date()} moves, skips or doubles a run."
        return
    yield f"Clock changes until {until.date()}:"
    for change in changes:
        yield f"  {day(change.date)}  {change.kind:<7}  {change.text}"


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
