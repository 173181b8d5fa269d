"""`anarchon forget`: delete what the store holds of a job."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from anarchon import ConfigurationError
from anarchon.cli.asking import AsJson, JobName, Prefix, Target, ask, scheduler_of
from anarchon.cli.output import plain, say, say_json


def forget(
    target: Target,
    job: JobName,
    *,
    sure: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    prefix: Prefix = None,
    as_json: AsJson = False,
) -> int:
    """Delete all that is stored of a job: its history, its pause, its counters.

    For jobs that are no longer in the code: an instance that has the job registers it again when
    it starts. Asks first; where there is no terminal, --yes is needed. The exit status is 1 if
    nothing was deleted: a run is live, or the answer was no.
    """
    scheduler = scheduler_of(target, prefix)
    if not sure and not _agreed(job):
        sys.stderr.write("Nothing was deleted.\n")
        return 1
    gone = ask(scheduler, job, scheduler.forget(job))
    if as_json:
        say_json({"job": job, "forgotten": gone})
    elif gone:
        say(f"Nothing is stored of {plain(job)} any more.")
    else:
        say(f"A run of {plain(job)} is live: nothing was deleted. Cancel it, or wait for its end.")
    return 0 if gone else 1


def _agreed(job: str) -> bool:
    if not sys.stdin.isatty():
        message = "forget deletes what is stored of a job: without a terminal to ask on, give --yes"
        raise ConfigurationError(message)
    sys.stderr.write(f"Delete all that is stored of {plain(job)}, its history too? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
