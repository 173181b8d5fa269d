"""`anarchon cancel`: end open runs of a job, wherever they are."""

from __future__ import annotations

from typing import Annotated

import typer

from anarchon.cli.asking import (
    AsJson,
    JobName,
    Prefix,
    Target,
    ask,
    run_in_words,
    run_or_moment,
    scheduler_of,
    zone_of,
)
from anarchon.cli.output import plain, say, say_json, wrapped


def cancel(
    target: Target,
    job: JobName,
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            hidden=True,
            show_default=False,
            help="The run, by its id or by when it was due; all open runs unless given.",
        ),
    ] = None,
    *,
    prefix: Prefix = None,
    as_json: AsJson = False,
) -> int:
    """Cancel the open runs of a job, or one of them, in all instances.

    A run that is under way ends with its instance's next heartbeat; none of them is tried again.
    The exit status is 1 if there was nothing to cancel.
    """
    scheduler = scheduler_of(target, prefix)
    zone = zone_of(scheduler, job)
    which = None if run is None else run_or_moment(run, "RUN", zone)
    cancelled = ask(scheduler, job, scheduler.cancel(job, which))
    if as_json:
        say_json({"job": job, "cancelled": list(cancelled)})
    elif cancelled:
        for each in cancelled:
            say(wrapped(f"asked to cancel: {run_in_words(each, zone)}", "", "  "))
    elif which is None:
        say(f"No run of {plain(job)} is open.")
    else:
        say(f"That run of {plain(job)} is not open.")
    return 0 if cancelled else 1
