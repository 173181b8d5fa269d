"""`anarchon history`: the newest runs of a job, and how their attempts ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from anarchon import RunStatus, Trigger
from anarchon.cli.asking import (
    AsJson,
    JobName,
    Prefix,
    Target,
    ask,
    declared,
    iso,
    refuse_unknown,
    scheduler_of,
    zone_of,
)
from anarchon.cli.numbers import whole_number
from anarchon.cli.output import first_line, plain, say, say_json
from anarchon.cli.table import Row, table
from anarchon.cli.times import told, took

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from zoneinfo import ZoneInfo

    from anarchon import AttemptRecord, RunRecord, Scheduler

_MOST_RUNS = 10_000


def history(
    target: Target,
    job: JobName,
    *,
    count: Annotated[
        str, typer.Option("-n", metavar="N", help=f"How many runs to show, 1 to {_MOST_RUNS}.")
    ] = "20",
    prefix: Prefix = None,
    as_json: AsJson = False,
) -> None:
    """Show the newest runs of a job, the newest first, and how they ended."""
    number = whole_number(count, "-n", 1, _MOST_RUNS)
    scheduler = scheduler_of(target, prefix)
    runs = ask(scheduler, job, _runs(scheduler, job, number))
    if as_json:
        say_json({"job": job, "runs": [_as_json(run) for run in runs]})
    elif runs:
        say(_lines(runs, zone_of(scheduler, job)))
    else:
        say(f"No run of {plain(job)} is stored.")


async def _runs(scheduler: Scheduler, job: str, number: int) -> tuple[RunRecord, ...]:
    runs = await scheduler.history(job, number)
    if not runs and declared(scheduler, job) is None and not (await scheduler.state(job)).known:
        refuse_unknown(scheduler, job, "declared here, and the store knows of none")
    return runs


def _lines(runs: Sequence[RunRecord], zone: ZoneInfo) -> Iterator[str]:
    # A manual run's moment has a fraction always, and is looked up by its id.
    fine = any(run.slot.microsecond for run in runs if run.trigger is not Trigger.MANUAL)
    rows: list[Row] = []
    for run in runs:
        last = run.attempts[-1] if run.attempts else None
        duration = None if last is None else last.duration
        cells = (
            told(run.slot.astimezone(zone), fine=fine),
            str(run.status),
            "" if duration is None else took(duration),
            "" if last is None else plain(last.runner),
        )
        rows.append(Row(cells, tuple(_notes(run, zone))))
    yield from table(("RUN", "STATUS", "TOOK", "INSTANCE"), rows)


def _notes(run: RunRecord, zone: ZoneInfo) -> Iterator[str]:
    if run.trigger is Trigger.MANUAL:
        yield f"manual: {plain(run.id)}"
    elif run.trigger is not Trigger.SCHEDULE:
        yield str(run.trigger)
    if len(run.attempts) == 1 and str(run.attempts[0].status) == str(run.status):
        [only] = run.attempts
        if only.error:
            yield first_line(only.error)
        return
    for attempt in run.attempts:
        yield _told_attempt(attempt, zone)


def _told_attempt(attempt: AttemptRecord, zone: ZoneInfo) -> str:
    words = f"attempt {attempt.number} {attempt.status}"
    if attempt.duration is not None:
        words += f" after {took(attempt.duration)}"
    elif attempt.start is not None and attempt.status is RunStatus.RUNNING:
        words += f" since {told(attempt.start.astimezone(zone))}"
    words += f" on {plain(attempt.runner)}"
    return f"{words}: {first_line(attempt.error)}" if attempt.error else words


def _as_json(run: RunRecord) -> dict[str, object]:
    return {
        "id": run.id,
        "slot": iso(run.slot),
        "trigger": str(run.trigger),
        "status": str(run.status),
        "attempts": [
            {
                "number": attempt.number,
                "status": str(attempt.status),
                "runner": attempt.runner,
                "start": iso(attempt.start),
                "end": iso(attempt.end),
                "duration": attempt.duration,
                "error": attempt.error,
            }
            for attempt in run.attempts
        ],
    }
