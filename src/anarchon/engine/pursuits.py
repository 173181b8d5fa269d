"""The pursuits of an instance: one for each run that it goes after."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from anarchon.backends.base import OpenRun, order_of
from anarchon.engine.chase import Chase
from anarchon.engine.claimant import BACKUP_SPREAD
from anarchon.engine.log import SCHEDULER, STORE, tell
from anarchon.engine.pursuit import Pursuit
from anarchon.runs import Trigger

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from anarchon.engine.caller import Caller
    from anarchon.engine.instance import Instance
    from anarchon.jobs import Job

MOST_BAD_TOLD = 1000
"""Of how many records that make no sense an instance remembers that it told of them."""


class Pursuits:
    """Starts pursuits, and knows those under way."""

    def __init__(self, instance: Instance, given_up: Callable[[Job, int], None]) -> None:
        """`given_up` is told of slots that were due here and not asked for in time."""
        self._instance = instance
        self._given_up = given_up
        self._pursuits: dict[tuple[str, str], Pursuit] = {}
        self._of_job: dict[str, set[Pursuit]] = {}
        self._bad: set[tuple[str, str]] = set()
        self.tasks: dict[Pursuit, asyncio.Task[None]] = {}

    def start(
        self, chase: Chase, *, first_wait: float = 0.0, caller: Caller | None = None
    ) -> asyncio.Task[None] | None:
        """Go after a run, unless this instance already does, or is stopping."""
        key = (chase.job.name, chase.run)
        if self._instance.stopping or key in self._pursuits:
            return None
        pursuit = Pursuit(self._instance, self, chase, first_wait=first_wait, caller=caller)
        self._pursuits[key] = pursuit
        self._of_job.setdefault(chase.job.name, set()).add(pursuit)
        task = self._instance.spawn(self._guarded(pursuit))
        if not task.done():  # an eager loop may have ended it already
            self.tasks[pursuit] = task
        return task

    def adopt(self, job: Job, open_runs: Iterable[OpenRun]) -> None:
        """Go after open runs of a job that the store named, as their backup."""
        if not self._instance.scheduled:
            return
        for other in open_runs:
            if other.attempt == 0:
                self._tell_bad(job, other.run)
                continue
            manual = other.run.startswith("m")
            chase = Chase(
                job,
                other.run,
                Trigger.MANUAL if manual else Trigger.SCHEDULE,
                deadline=0,
                last=order_of(other.run) + job.keep,
                seen=other.attempt,
            )
            spread = self._instance.env.rng.uniform(0, BACKUP_SPREAD) if other.rest else 0.0
            self.start(chase, first_wait=other.rest / 1000 + spread)

    def doing(self, job: str, run: str) -> str:
        """What is done here about a run just now, in words; empty for nothing."""
        pursuit = self._pursuits.get((job, run))
        return pursuit.doing if pursuit else ""

    def waits_behind(self, pursuit: Pursuit) -> bool:
        """Whether an older run of the same job waits here for others to end: it goes first."""
        order = order_of(pursuit.run)
        return any(
            other.waits_for_others and order_of(other.run) < order
            for other in self._of_job[pursuit.job.name]
        )

    async def _guarded(self, pursuit: Pursuit) -> None:
        try:
            await pursuit.go()
        except Exception as error:  # noqa: BLE001 - one run's trouble never stops the others
            message = f"{pursuit.job.name}: going after run {pursuit.run} failed: {error}"
            tell(SCHEDULER, logging.ERROR, "run.broken", message, error, job=pursuit.job.name)
        finally:
            self._pursuits.pop((pursuit.job.name, pursuit.run), None)
            self._of_job[pursuit.job.name].discard(pursuit)
            self.tasks.pop(pursuit, None)
            self._instance.ended(pursuit.job.name)
            pursuit.settle()
            if pursuit.given_up and not self._instance.stopping:
                self._given_up(pursuit.job, order_of(pursuit.run))

    def _tell_bad(self, job: Job, run: str) -> None:
        if (job.name, run) in self._bad or len(self._bad) > MOST_BAD_TOLD:
            return
        self._bad.add((job.name, run))
        place = self._instance.link.store.place(job.name)
        message = (
            f"{job.name}: the record of run {run} in {place} makes no sense; it counts as live"
        )
        tell(STORE, logging.ERROR, "store.bad-record", message, job=job.name, run=run)
