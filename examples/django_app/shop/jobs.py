"""The scheduler of this application and its jobs, which use the ORM."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connections

from anarchon import RedisBackend, Run, Scheduler
from shop.models import Work

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = float(os.environ.get("WORK_SECONDS", "2"))

scheduler = Scheduler(
    backend=RedisBackend(redis=settings.REDIS_URL),
    lease=float(os.environ.get("LEASE", "30")),
    shutdown_timeout=float(os.environ.get("SHUTDOWN_TIMEOUT", "10")),
)
background = scheduler.in_background()


def closes_connections(function: Callable[[Run], None]) -> Callable[[Run], None]:
    """Each run of a plain function has a thread of its own, and so has its database connection."""

    @functools.wraps(function)
    def job(run: Run) -> None:
        try:
            function(run)
        finally:
            connections.close_all()

    return job


def begin(run: Run) -> Work:
    return Work.objects.create(
        job=run.job,
        slot=run.slot,
        attempt=run.attempt,
        fence=run.fence,
        trigger=run.trigger,
        pid=os.getpid(),
    )


@scheduler.job("* * * * * *")
@closes_connections
def expire_carts(run: Run) -> None:
    work = begin(run)
    work.state = "ended"
    work.save()


@scheduler.job("*/2 * * * * *")
@closes_connections
def import_orders(run: Run) -> None:
    work = begin(run)
    stopped = run.lost.wait(SECONDS)
    work.state = "cut short" if stopped else "ended"
    work.save()
