"""`anarchon pause` and `anarchon resume`: whether a job is run on its schedule, anywhere."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from anarchon import ConfigurationError
from anarchon.cli.asking import (
    AsJson,
    JobName,
    Prefix,
    Target,
    ask,
    declared,
    pause_in_words,
    run_in_words,
    scheduler_of,
    state_as_json,
    zone_of,
)
from anarchon.cli.output import plain, say, say_json, wrapped
from anarchon.cli.times import read_length, read_moment, told

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from anarchon import JobState, Scheduler


def pause(  # noqa: PLR0913 - the options of the command
    target: Target,
    job: JobName,
    *,
    length: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", show_default=False, help="For so long: 90, 15m, 2h."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until", metavar="ISO", show_default=False, help="Until then: 2027-03-27T12:00."
        ),
    ] = None,
    note: Annotated[
        str, typer.Option("--note", metavar="TEXT", show_default=False, help="Why, for others.")
    ] = "",
    prefix: Prefix = None,
    as_json: AsJson = False,
) -> None:
    """Hold back the scheduled runs of a job in all instances.

    Without --for and --until the job stays paused until it is resumed. A run that is under way
    goes on.
    """
    scheduler = scheduler_of(target, prefix)
    zone = zone_of(scheduler, job)
    state = ask(scheduler, job, _pause(scheduler, job, _end(length, until, zone), note))
    if as_json:
        say_json(state_as_json(state))
        return
    say(wrapped(f"{plain(job)} is {pause_in_words(state, zone)}"))
    for run in state.open_runs:
        say(wrapped(f"It does not stop {run_in_words(run, zone)}", "  "))


async def _pause(scheduler: Scheduler, job: str, until: datetime | None, note: str) -> JobState:
    await scheduler.pause(job, until=until, note=note)
    return await scheduler.state(job)


def _end(length: str | None, until: str | None, zone: ZoneInfo) -> datetime | None:
    if length is not None and until is not None:
        message = "--for and --until say the same thing in two ways: give one of them"
        raise ConfigurationError(message)
    now = datetime.now(UTC)
    if length is not None:
        try:
            return now + read_length(length, "--for")
        except OverflowError as error:
            message = f"--for {length!r}: that is longer than the calendar goes"
            raise ConfigurationError(message) from error
    if until is None:
        return None
    end = read_moment(until, "--until", zone)
    if end <= now:
        message = f"--until {until!r}: {told(end)} is over already"
        raise ConfigurationError(message)
    return end


def resume(target: Target, job: JobName, *, prefix: Prefix = None, as_json: AsJson = False) -> int:
    """Let a paused job go on. The exit status is 1 if it was not paused."""
    scheduler = scheduler_of(target, prefix)
    resumed = ask(scheduler, job, scheduler.resume(job))
    if as_json:
        say_json({"job": job, "resumed": resumed})
    elif not resumed:
        say(f"{plain(job)} was not paused.")
    else:
        info = declared(scheduler, job)
        due = info.next_run if info is not None else None
        following = "" if due is None else f"; its next run is due {told(due)}"
        say(wrapped(f"{plain(job)} goes on{following}"))
    return 0 if resumed else 1
