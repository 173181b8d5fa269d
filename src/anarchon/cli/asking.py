"""What the commands that ask a scheduler have in common: TARGET, --prefix, --json."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar
from zoneinfo import ZoneInfo

import typer

from anarchon import ConfigurationError, RedisBackend, Scheduler, UnknownJobError
from anarchon.cli.nearest import did_you_mean
from anarchon.cli.output import plain
from anarchon.cli.target import load
from anarchon.cli.times import moment_of, read_moment, told

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from datetime import datetime

    from anarchon import JobInfo, JobState

T = TypeVar("T")

# valkey-py's names of the two; redis-py, which is what reads the URL here, knows its own only.
_SCHEMES = {"valkey://": "redis://", "valkeys://": "rediss://"}
_PREFIX = "cron:"

Code = Annotated[
    str, typer.Argument(metavar="TARGET", hidden=True, help="The scheduler, as module:name.")
]
Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        hidden=True,
        help="The scheduler, as module:name, or the URL of its store.",
    ),
]
JobName = Annotated[str, typer.Argument(metavar="JOB", hidden=True, help="The job's name.")]
Prefix = Annotated[
    str | None,
    typer.Option(
        "--prefix",
        metavar="TEXT",
        show_default=False,
        help=f"With a URL: what the keys begin with, if not with {_PREFIX}",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def is_url(target: str) -> bool:
    """Whether TARGET is the URL of a store, and not the name of a scheduler."""
    return "://" in target


def code_of(target: str, command: str) -> Scheduler:
    """Return the scheduler that TARGET names. Raises `ConfigurationError`, also for a URL."""
    if is_url(target):
        message = f"{command} needs the code of the jobs: give module:scheduler, not a URL"
        raise ConfigurationError(message)
    return load(target)


def scheduler_of(target: str, prefix: str | None) -> Scheduler:
    """Return the scheduler that TARGET names, or one without jobs for the store at a URL.

    Raises `ConfigurationError`.
    """
    if is_url(target):
        return _without_jobs(target, _PREFIX if prefix is None else prefix)
    if prefix is not None:
        message = "--prefix goes with the URL of a store; a scheduler in a module knows its own"
        raise ConfigurationError(message)
    return load(target)


def _without_jobs(url: str, prefix: str) -> Scheduler:
    scheme, slashes, rest = url.partition("://")
    scheme = _SCHEMES.get(scheme + slashes, scheme + slashes)
    if scheme not in {"redis://", "rediss://", "unix://"}:
        # Not shown: it may hold a password.
        message = (
            "TARGET is no URL of a store: it must begin with redis://, rediss://, valkey://,"
            " valkeys:// or unix://"
        )
        raise ConfigurationError(message)
    try:
        return Scheduler(backend=RedisBackend(redis=scheme + rest, prefix=prefix))
    except ConfigurationError as error:
        raise ConfigurationError(re.sub(r"^prefix=", "--prefix ", str(error))) from None


def ask(scheduler: Scheduler, job: str, question: Coroutine[Any, Any, T]) -> T:
    """Return the answer to a question about a job, asked of a scheduler that is not started.

    Raises what the question raises; where a job is not known, with the job that may have been
    meant.
    """
    return asyncio.run(_asked(scheduler, job, question))


async def _asked(scheduler: Scheduler, job: str, question: Coroutine[Any, Any, T]) -> T:
    try:
        return await question
    except UnknownJobError as error:
        if scheduler.jobs:
            raise
        # Without code at hand the instances are asked what there is.
        names = {name for each in await scheduler.instances() for name in each.jobs or ()}
        raise UnknownJobError(f"{error}{did_you_mean(job, names)}") from error


def declared(scheduler: Scheduler, name: str) -> JobInfo | None:
    """Return the job of that name, if the scheduler has it."""
    return next((job for job in scheduler.jobs if job.name == name), None)


def refuse_unknown(scheduler: Scheduler, name: str, where: str) -> NoReturn:
    """Raise `UnknownJobError`, with the job that may have been meant."""
    known = [job.name for job in scheduler.jobs]
    raise UnknownJobError(f"no job {name!r} is {where}{did_you_mean(name, known)}")


def zone_of(scheduler: Scheduler, name: str) -> ZoneInfo:
    """Return the zone of a job that is declared, else UTC."""
    job = declared(scheduler, name)
    zone = job.next_run.tzinfo if job is not None and job.next_run is not None else None
    return zone if isinstance(zone, ZoneInfo) else ZoneInfo("UTC")


def run_or_moment(text: str, option: str, zone: ZoneInfo) -> datetime | str:
    """Return an argument that names a run: its id as it stands, or its slot."""
    word = text.strip()
    return word if moment_of(word) is not None else read_moment(word, option, zone)


def run_in_words(run: str, zone: ZoneInfo) -> str:
    """Say which run an id stands for, and the id."""
    moment = moment_of(run)
    if moment is None:
        return f"the run {plain(run)}"
    local = moment.astimezone(zone)
    kind = "the manual run asked for" if run.startswith("m") else "the run for"
    return f"{kind} {told(local, fine=bool(local.microsecond))} ({plain(run)})"


def state_as_json(state: JobState) -> dict[str, object]:
    """What the store knows of a job, as an object."""
    return {
        "job": state.job,
        "known": state.known,
        "since": iso(state.since),
        "paused": state.paused,
        "paused_until": iso(state.paused_until),
        "paused_note": state.paused_note,
        "open_runs": list(state.open_runs),
    }


def pause_in_words(state: JobState, zone: ZoneInfo) -> str:
    """Say that a job is paused, until when, and the note."""
    until = "until it is resumed"
    if state.paused_until is not None:
        until = f"until {told(state.paused_until.astimezone(zone))}"
    return f"paused {until}" + (f": {plain(state.paused_note)}" if state.paused_note else "")


def iso(moment: datetime | None) -> str | None:
    """A moment for JSON."""
    return None if moment is None else moment.isoformat()
