"""What can be asked of a scheduler: to run a job now, and what the store knows and should do.

All but `run_now` can be asked of a scheduler that is not started as well: then a connection is made
for the question.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from datetime import datetime
from typing import TYPE_CHECKING

from anarchon.backends.base import RUN_ID, order_of
from anarchon.checkup import check_up, instances_of
from anarchon.engine.forks import forked_from
from anarchon.engine.log import SCHEDULER, tell
from anarchon.errors import (
    ConfigurationError,
    ScheduleError,
    SchedulerStateError,
    UnknownJobError,
)
from anarchon.explaining import Here, explain
from anarchon.jobs import Job, checked_name
from anarchon.options import whole_number
from anarchon.reports import Explanation, Finding, Health, InstanceInfo, JobInfo, JobState
from anarchon.runs import FARTHEST, RunRecord, moment
from anarchon.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anarchon.backends.base import Backend, JobFacts, Store
    from anarchon.engine.core import Engine
    from anarchon.engine.environment import Environment
    from anarchon.engine.instance import EngineOptions

MOST_HISTORY = 10_000
LONGEST_NOTE = 1000
"""Characters of the note that a pause may have."""


class Operations:
    """The questions and orders of a `Scheduler`."""

    def __init__(self, backend: Backend, options: EngineOptions, environment: Environment) -> None:
        """Ask `backend`."""
        self._backend = backend
        self._options = options
        self._environment = environment
        self._jobs: dict[str, Job] = {}
        self._engine: Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = os.getpid()

    # -- this instance -----------------------------------------------------------------------------

    @property
    def jobs(self) -> tuple[JobInfo, ...]:
        """The declared jobs, each with its schedule in words and its next date, in its own zone."""
        engine = self._engine
        now = engine.instance.server.now() if engine else self._environment.clock.wall()
        return tuple(self._info(job, now) for job in self._jobs.values())

    def health(self) -> Health:
        """Whether this instance runs, whether the store answers, and how its clocks are.

        It may be asked from any thread; it does not ask the store.
        """
        engine = self._engine
        if engine is None or self._forked():
            return Health(running=False, store=False, loop_lag=0.0, clock_ahead=0.0)
        instance = engine.instance
        return Health(
            running=not (instance.stopping or instance.broken),
            store=instance.health.there and instance.health.serves,
            loop_lag=instance.lag(),
            clock_ahead=instance.server.host_is_ahead() / 1000,
        )

    async def run_now(self, name: str) -> object:
        """Run a job here and now, besides its schedule; answers what the function returned.

        It runs past this instance's bounds, paused or not. Raises what the function raised, or
        `TimeoutError`; `RunRefused` when another run is live (``overlap="skip"``), or stayed so for
        `max_late` (``"wait"``); `RunMoved` when another instance took it over; `UnknownJobError`;
        `SchedulerStateError` when not started or stopping; `StoreUnavailable`.
        """
        checked_name(name)
        engine = self._running()
        future = await engine.run_now(self._job_named(name))
        return await asyncio.shield(future)

    # -- what the store knows ----------------------------------------------------------------------

    async def history(self, job: str, limit: int = 50) -> tuple[RunRecord, ...]:
        """The newest runs of a job, newest first, each with its attempts.

        The job need not be declared here. `limit` is from 1 to 10,000. Raises `ConfigurationError`,
        and the errors of the store.
        """
        whole_number(limit, "limit", MOST_HISTORY)
        checked_name(job)
        async with self._asking() as store:
            return await store.history(job, limit)

    async def why(self, job: str, at: datetime | str) -> Explanation:
        """Tell in sentences why a run of a job did or did not take place.

        `at` is the slot as an aware datetime, or a `RunRecord.id`. Known are what the store
        recorded and what this instance remembers of the 10,000 slots that it last did not run.
        Raises `ConfigurationError`, `UnknownJobError`, and the errors of the store.
        """
        run = _run_at(at, "at")
        facts = await self._facts_of(job, run)
        here = Here()
        if self._engine is not None and not self._forked():
            note = self._engine.instance.reasons.of(job, run, order_of(run))
            doing = self._engine.pursuits.doing(job, run)
            here = Here(doing=doing, note=note.sentence if note else "")
        return explain(job, run, facts, self._jobs.get(job), here)

    async def state(self, job: str) -> JobState:
        """What the store knows of a job: its pause, its open runs, since when it is scheduled.

        Raises `ConfigurationError`, and the errors of the store.
        """
        checked_name(job)
        async with self._asking() as store:
            facts = await store.look(job, "")
        until = facts.paused_until
        return JobState(
            job=job,
            known=facts.known,
            since=moment(facts.since) if facts.since else None,
            paused=until is not None,
            paused_until=moment(until) if until else None,
            paused_note=facts.paused_note,
            open_runs=facts.open_runs,
        )

    async def instances(self) -> tuple[InstanceInfo, ...]:
        """The instances that share the store, as each showed itself in the last three minutes.

        Raises the errors of the store.
        """
        async with self._asking() as store:
            return instances_of(await store.instances())

    async def check(self) -> tuple[Finding, ...]:
        """Look at the server, the way to it, the clocks, and the instances; say what to do.

        It looks at version, latency, clocks, eviction, persistence, permissions, store format, and
        at differences between the jobs that instances declare. What is wrong is a finding, not an
        exception. Like any start, it writes the store's format into a store that is new.
        """
        store = self._backend.connect(timeout=self._options.call_timeout / 1000)
        try:
            return await check_up(store, self._environment.clock, self._jobs.values())
        finally:
            await store.close()

    # -- what the store should do ------------------------------------------------------------------

    async def pause(self, job: str, *, until: datetime | None = None, note: str = "") -> None:
        """Hold back a job's scheduled runs, and its catch-up, on all instances.

        It lasts until `until` (aware, by the store's clock) or ``resume()``, through restarts and
        deploys. What is running goes on, failed runs are still retried, and ``run_now`` is served.
        `note` says why, in at most 1000 characters. Slots that fall due meanwhile are recorded as
        paused. Raises `ConfigurationError`, `UnknownJobError`, and the errors of the store.
        """
        end = 0 if until is None else _moment_of(until, "until")
        checked_note(note)
        facts = await self._facts_of(job, "")
        if until is not None and end <= facts.time:
            message = (
                f"until={until.isoformat()}: give a moment that is yet to come; without it,"
                " the pause lasts until resume()"
            )
            raise ConfigurationError(message)
        async with self._asking() as store:
            await store.pause(job, end, note)
        till = f"until {until.isoformat()}" if until else "until it is resumed"
        tell(SCHEDULER, logging.INFO, "job.paused", f"{job}: paused here, {till}", job=job)

    async def resume(self, job: str) -> bool:
        """Let a paused job go on; False if it was not paused.

        Slots of the time of the pause are not run. Raises as `pause` does.
        """
        facts = await self._facts_of(job, "")
        async with self._asking() as store:
            await store.resume(job)
        if facts.paused_until is None:
            return False
        tell(SCHEDULER, logging.INFO, "job.resumed", f"{job}: resumed here", job=job)
        return True

    async def cancel(self, job: str, run: datetime | str | None = None) -> tuple[str, ...]:
        """Cancel a run for all instances: the slot, the `RunRecord.id`, or all open ones (None).

        Its holder stops it at the latest at its next heartbeat; a run that waits for its next
        attempt is over at once. Answers the ids of the runs that were open. Raises
        `ConfigurationError`, `UnknownJobError`, and the errors of the store.
        """
        wanted = () if run is None else (_run_at(run, "run"),)
        facts = await self._facts_of(job, "")
        cancelled: list[str] = []
        async with self._asking() as store:
            for name in wanted or facts.open_runs:
                if (await store.cancel(job, name, self._options.history_size)).ok:
                    cancelled.append(name)
                    message = f"{job}: cancelling the run {name} was asked for here"
                    tell(SCHEDULER, logging.INFO, "run.cancel-asked", message, job=job, run=name)
        return tuple(cancelled)

    async def forget(self, job: str) -> bool:
        """Delete all that is stored of a job: for one that no instance has any more.

        False, and nothing is deleted, while a run of it is running or waiting. Raises
        `SchedulerStateError` while an instance shows that it runs the job (one with too many jobs
        to tell does not: see `InstanceInfo`); `ConfigurationError`,
        `UnknownJobError`, and the errors of the store.
        """
        await self._facts_of(job, "")
        async with self._asking() as store:
            for info in instances_of(await store.instances()):
                if info.jobs and job in info.jobs:
                    message = (
                        f"{info.runner} still runs {job}, and would go on without its memory of"
                        " past runs: forget it when no instance declares it any more"
                    )
                    raise SchedulerStateError(message)
            gone = (await store.forget(job)).ok
        if gone:
            tell(SCHEDULER, logging.INFO, "job.forgotten", f"{job}: forgotten", job=job)
        return gone

    # -- how it is asked ---------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _asking(self) -> AsyncGenerator[Store]:
        """The store of this instance, or one that is connected for the question."""
        if self._engine is not None and asyncio.get_running_loop() is self._loop:
            yield self._engine.instance.link.store
            return
        store = self._backend.connect(timeout=self._options.call_timeout / 1000)
        try:
            await store.visit()
            yield store
        finally:
            await store.close()

    async def _facts_of(self, job: str, run: str) -> JobFacts:
        """What the store knows of a job. Raises `UnknownJobError` if it is known nowhere."""
        checked_name(job)
        async with self._asking() as store:
            facts = await store.look(job, run)
        if job not in self._jobs and not facts.known:
            message = (
                f"no job {job!r} is declared here, and the store knows of none"
                f"{did_you_mean(job, self._jobs)}"
            )
            raise UnknownJobError(message)
        return facts

    def _info(self, job: Job, now: int) -> JobInfo:
        slot: int | None = None
        with contextlib.suppress(ScheduleError):  # a user's schedule may fail just now
            slot = job.slots.next_after(now)
        next_run = None if slot is None else moment(slot, job.slots.timezone)
        engine = self._engine  # asked for once: another thread may be asking
        counts = engine.instance.reasons.counts(job.name) if engine else {}
        return JobInfo(job.name, job.slots.explain(), next_run, counts)

    def _job_named(self, name: str) -> Job:
        job = self._jobs.get(name)
        if job is None:
            message = f"no job is named {name!r}{did_you_mean(name, self._jobs)}"
            raise UnknownJobError(message)
        return job

    def _running(self) -> Engine:
        self._refuse_forked()
        engine = self._engine
        if engine is None or engine.instance.stopping:
            state = "not started" if engine is None else "stopping"
            message = f"the scheduler is {state}: start() it first"
            raise SchedulerStateError(message)
        self._refuse_other_loops()
        return engine

    def _refuse_other_loops(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            message = "the scheduler runs on another event loop: ask it there"
            raise SchedulerStateError(message)

    def _forked(self) -> bool:
        """Whether this is the copy of a started scheduler in a forked process."""
        return self._engine is not None and self._process != os.getpid()

    def _refuse_forked(self) -> None:
        if self._forked():
            raise forked_from(self._process)


def checked_note(note: object) -> None:
    """Raise `ConfigurationError` for what cannot be the note of a pause."""
    text = note if isinstance(note, str) else None
    if text is None or len(text) > LONGEST_NOTE or text != text.encode("utf-8", "ignore").decode():
        message = (
            f"note={str(note)[:40]!r}: give a text of at most {LONGEST_NOTE} characters, which"
            " UTF-8 can write"
        )
        raise ConfigurationError(message)


def _moment_of(value: object, option: str) -> int:
    """The milliseconds of an aware datetime. Raises `ConfigurationError`."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        message = (
            f"{option}={value!r}: give an aware datetime, such as"
            " datetime(2026, 3, 29, 3, tzinfo=ZoneInfo('Europe/Berlin'))"
        )
        raise ConfigurationError(message)
    moment_ms = round(value.timestamp() * 1000)
    if not 0 <= moment_ms <= FARTHEST:
        message = f"{option}={value.isoformat()}: give a moment between 1970 and the year 3000"
        raise ConfigurationError(message)
    return moment_ms


def _run_at(at: object, option: str) -> str:
    """The identity of a run from a slot, or as it is. Raises `ConfigurationError`."""
    if not isinstance(at, str):
        return str(_moment_of(at, option))
    if not RUN_ID.fullmatch(at) or order_of(at) > FARTHEST:
        message = f"{option}={at[:40]!r}: give an aware datetime, or the id of a RunRecord"
        raise ConfigurationError(message)
    return at
