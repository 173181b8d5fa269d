"""`anarchon why`: what became of one run, in sentences."""

from __future__ import annotations

from typing import Annotated

import typer

from anarchon.cli.asking import (
    AsJson,
    JobName,
    Prefix,
    Target,
    ask,
    iso,
    run_or_moment,
    scheduler_of,
    zone_of,
)
from anarchon.cli.output import plain, say, say_json, wrapped
from anarchon.cli.times import told


def why(
    target: Target,
    job: JobName,
    moment: Annotated[
        str,
        typer.Argument(
            metavar="AT",
            hidden=True,
            help="When it was due, such as 2027-03-27T03:00, or the id of a run.",
        ),
    ],
    *,
    prefix: Prefix = None,
    as_json: AsJson = False,
) -> None:
    """Say why a run took place or did not, and how it went.

    AT without an offset from UTC is read in the job's time zone if TARGET declares the job, else
    in UTC. The history of a job shows the ids of its manual runs.
    """
    scheduler = scheduler_of(target, prefix)
    zone = zone_of(scheduler, job)
    found = ask(scheduler, job, scheduler.why(job, run_or_moment(moment, "AT", zone)))
    if as_json:
        say_json(
            {
                "job": found.job,
                "run": found.run,
                "slot": iso(found.slot),
                "status": None if found.status is None else str(found.status),
                "sentences": list(found.sentences),
            }
        )
        return
    slot = found.slot.astimezone(zone)
    status = "" if found.status is None else f": {found.status}"
    say(wrapped(f"{plain(found.job)}, {told(slot, fine=bool(slot.microsecond))}{status}"))
    say("")
    for sentence in found.sentences:
        say(wrapped(plain(sentence), "  "))
