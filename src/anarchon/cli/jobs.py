"""`anarchon jobs`: which jobs there are, when each is due, and which are paused."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from anarchon import StoreError
from anarchon.cli.asking import (
    AsJson,
    Prefix,
    Target,
    is_url,
    iso,
    pause_in_words,
    run_in_words,
    scheduler_of,
    state_as_json,
    zone_of,
)
from anarchon.cli.instances import definitions, instance_as_json, instance_lines
from anarchon.cli.output import plain, say, say_json, wrapped
from anarchon.cli.table import Row, table
from anarchon.cli.times import told

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from anarchon import InstanceInfo, JobState, Scheduler

_AT_ONCE = 8


def jobs(target: Target, *, prefix: Prefix = None, as_json: AsJson = False) -> None:
    """List the jobs, with their next runs, and whether they are paused.

    Of a scheduler in a module: the jobs that it declares. Of a store: the jobs that its live
    instances say they have, and these instances.
    """
    scheduler = scheduler_of(target, prefix)
    if is_url(target):
        asyncio.run(_of_instances(scheduler, as_json=as_json))
    else:
        asyncio.run(_of_code(scheduler, as_json=as_json))


# -- of a module -----------------------------------------------------------------------------------


async def _of_code(scheduler: Scheduler, *, as_json: bool) -> None:
    states, away = await _states(scheduler, [job.name for job in scheduler.jobs])
    if as_json:
        answer = [
            {
                "job": job.name,
                "schedule": job.schedule,
                "next_run": iso(job.next_run),
                **_state(states.get(job.name)),
            }
            for job in scheduler.jobs
        ]
        say_json({"jobs": answer, "store_error": away})
        return
    if scheduler.jobs:
        rows = [
            Row(
                (
                    plain(job.name),
                    "never again" if job.next_run is None else told(job.next_run),
                    plain(job.schedule),
                ),
                tuple(_notes(states.get(job.name), zone_of(scheduler, job.name))),
            )
            for job in scheduler.jobs
        ]
        say(table(("JOB", "NEXT RUN", "SCHEDULE"), rows))
    else:
        say("No job is declared.")
    if away is not None:
        say("")
        say(wrapped(f"Whether any is paused is not known: {plain(away)}"))


async def _states(
    scheduler: Scheduler, names: Iterable[str]
) -> tuple[dict[str, JobState], str | None]:
    """What the store knows of the jobs, or why it is not known."""
    few = asyncio.Semaphore(_AT_ONCE)

    async def ask(name: str) -> JobState:
        async with few:  # each question has a connection of its own
            return await scheduler.state(name)

    try:
        states = await asyncio.gather(*map(ask, names))
    except StoreError as error:
        return {}, str(error)
    return {state.job: state for state in states}, None


def _state(state: JobState | None) -> dict[str, object]:
    keys = ("paused", "paused_until", "paused_note", "open_runs")
    known = {} if state is None else state_as_json(state)
    return {key: known.get(key) for key in keys}


def _notes(state: JobState | None, zone: ZoneInfo) -> Iterator[str]:
    if state is None:
        return
    if state.paused:
        yield pause_in_words(state, zone)
    for run in state.open_runs:
        yield f"open: {run_in_words(run, zone)}"


# -- of the instances of a store -------------------------------------------------------------------


async def _of_instances(scheduler: Scheduler, *, as_json: bool) -> None:
    instances = await scheduler.instances()
    found = definitions(instances)
    states, away = await _states(scheduler, found)
    if as_json:
        answer = [
            {"job": name, "definitions": told_by, **_state(states.get(name))}
            for name, told_by in found.items()
        ]
        say_json(
            {
                "instances": [instance_as_json(each) for each in instances],
                "jobs": answer,
                "store_error": away,
            }
        )
        return
    if not instances:
        say("No instance is alive with this store and prefix.")
        return
    say(instance_lines(instances, datetime.now(UTC)))
    say("")
    say(_job_lines(found, states, instances))


def _job_lines(
    found: dict[str, dict[str, list[str]]],
    states: dict[str, JobState],
    instances: tuple[InstanceInfo, ...],
) -> Iterator[str]:
    zone = ZoneInfo("UTC")
    telling = [each for each in instances if each.jobs is not None]
    rows: list[Row] = []
    for name, told_by in found.items():
        # Where instances differ, the first line has what most say.
        for number, (definition, runners) in enumerate(
            sorted(told_by.items(), key=lambda each: -len(each[1]))
        ):
            share = f"{len(runners)}/{len(telling)}"
            notes = () if number else tuple(_notes(states.get(name), zone))
            rows.append(Row(("" if number else plain(name), share, plain(definition)), notes))
    if rows:
        yield from table(("JOB", "ON", "DEFINITION"), rows)
    elif telling:
        yield "None of them has a job."
    if len(telling) < len(instances):
        yield ""
        yield from wrapped(
            f"{len(instances) - len(telling)} of them do not tell their jobs: too many, or run on"
            " demand only"
        )
