"""`Scheduler`: the face of the library. It wires, and decides nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeVar, Unpack, cast

from anarchon.backends.redis.backend import RedisBackend
from anarchon.durations import Duration, milliseconds
from anarchon.engine.core import Engine
from anarchon.engine.descendants import own_context
from anarchon.engine.environment import Environment
from anarchon.engine.log import SCHEDULER, tell
from anarchon.engine.shutdown import shut_down
from anarchon.errors import ConfigurationError, SchedulerStateError, UnknownJobError
from anarchon.jobs import Job, JobSettings, checked_name, job_options, make_job
from anarchon.options import (
    checked_runner,
    did_you_mean,
    engine_options,
    refuse_unknown,
    refuse_what_is_no_backend,
    refuse_what_is_no_environment,
    whole_number,
)
from anarchon.runs import Run, RunRecord, moment
from anarchon.schedules import slots_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from datetime import datetime, timedelta
    from types import TracebackType

    from anarchon.backends.base import Backend
    from anarchon.schedules import Schedule

    JobFunction = Callable[[], object] | Callable[[Run], object]

F = TypeVar("F", bound="JobFunction")

MOST_HISTORY = 10_000


@dataclass(frozen=True, slots=True)
class JobInfo:
    """A declared job: its name, its schedule in words, and its next date (None: never again)."""

    name: str
    schedule: str
    next_run: datetime | None


@dataclass(frozen=True, slots=True)
class Health:
    """How an instance is. `loop_lag` is by how many seconds the event loop was last late.

    `clock_ahead` is by how many seconds the host's clock is ahead of the store's.
    """

    running: bool
    store: bool
    loop_lag: float
    clock_ahead: float


class Scheduler:
    """Runs jobs on their schedules, one instance of the application each time.

    Every instance of an application makes the same scheduler with the same jobs. For each due run
    exactly one of them wins a claim in the store and runs it under a lease that it keeps alive; the
    others wait to take it over if that one dies.

    `backend` is where claims are decided; Redis on this host unless given. `lease` is how long a
    run stays reserved after the last sign of life, `heartbeat` how often that sign is given (a
    third of the lease). An outage of the store that is longer than the lease stops what is running.
    `history_size` is how many runs of a job are kept, `history_ttl` for how long (no limit).
    `max_concurrent_runs` (no limit) and `max_threads` (plain functions) bound what this instance
    takes on; `shutdown_timeout` is how long ``stop()`` waits for running jobs. `runner` names this
    instance; ``host:pid:random`` unless given. Durations are seconds, or a `timedelta`.

    Raises `ConfigurationError`.
    """

    def __init__(  # noqa: PLR0913 - the options of a scheduler
        self,
        *,
        backend: Backend | None = None,
        lease: Duration = 30,
        heartbeat: Duration | None = None,
        history_size: int = 1000,
        history_ttl: Duration | None = None,
        max_concurrent_runs: int | None = None,
        max_threads: int = 64,
        shutdown_timeout: Duration = 10,
        runner: str | None = None,
        environment: Environment | None = None,
    ) -> None:
        """Check the options; nothing is connected before ``start()``."""
        self._backend: Backend = RedisBackend() if backend is None else backend
        refuse_what_is_no_backend(self._backend)
        self._shutdown_timeout = milliseconds(shutdown_timeout, "shutdown_timeout") / 1000
        self._runner = checked_runner(runner)
        self._environment = Environment() if environment is None else environment
        refuse_what_is_no_environment(self._environment)
        self._options = engine_options(
            lease, heartbeat, history_size, history_ttl, max_concurrent_runs, max_threads
        )
        self._jobs: dict[str, Job] = {}
        self._engine: Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Task[None] | None = None
        self._started = False

    # -- jobs ------------------------------------------------------------------------------------

    def job(
        self, schedule: str | float | timedelta | Schedule, **settings: Unpack[JobSettings]
    ) -> Callable[[F], F]:
        """Declare the decorated function as a job; the function itself is unchanged.

        `schedule` is a cron expression, an interval (seconds or `timedelta`), or an object such as
        `Cron`, `Every`, or one of your own. `settings` are those of `JobSettings`. The function is
        async or plain (run in a thread) and takes nothing, or one `Run`.

        Raises `ConfigurationError`, or `ScheduleError` for a schedule that cannot be used.
        """
        given = cast("object", schedule)
        if callable(given) and not hasattr(given, "next_after"):
            message = (
                "job() takes a schedule and is called before it decorates:"
                ' @scheduler.job("0 3 * * *")'
            )
            raise ConfigurationError(message)
        slots_of(schedule, settings.get("timezone"))  # refused here, where it stands

        def declare(function: F) -> F:
            self.add_job(function, schedule, **settings)
            return function

        return declare

    def add_job(
        self,
        function: JobFunction,
        schedule: str | float | timedelta | Schedule,
        **settings: Unpack[JobSettings],
    ) -> None:
        """Declare a job without a decorator; see `job`."""
        if self._engine is not None:
            message = "jobs are declared before the scheduler starts: this one is running"
            raise SchedulerStateError(message)
        refuse_unknown(settings, tuple(JobSettings.__annotations__))
        job = make_job(
            function,
            schedule,
            name=settings.get("name"),
            timezone=settings.get("timezone"),
            options=job_options(settings),
        )
        if (other := self._jobs.get(job.name)) is not None:
            message = (
                f"two jobs are named {job.name!r}: one declared at {other.declared_at}, one at"
                f" {job.declared_at}; give one of them another name"
            )
            raise ConfigurationError(message)
        self._jobs[job.name] = job

    @property
    def jobs(self) -> tuple[JobInfo, ...]:
        """The declared jobs, each with its schedule in words and its next date, in its own zone."""
        engine = self._engine
        now = engine.instance.server.now() if engine else self._environment.clock.wall()
        return tuple(_info(job, now) for job in self._jobs.values())

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to run jobs on the running event loop.

        An unreachable store is waited for: this returns, warns, and goes on trying. What waiting
        does not mend is raised: `StorePermissionError`, `StoreFormatError`, `StoreServerError`,
        another `StoreError`; and `SchedulerStateError` when it is already started.
        """
        if self._engine is not None:
            message = "the scheduler is started already; stop() it first, or make another one"
            raise SchedulerStateError(message)
        runner = self._runner or f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
        self._loop = asyncio.get_running_loop()
        self._stopped = None
        self._started = False
        engine = self._engine = Engine(
            self._backend, self._jobs.values(), self._options, self._environment, runner
        )
        try:
            await engine.start()
        except BaseException:
            await self.stop(timeout=0)
            raise
        if engine.instance.stopping:
            message = "the scheduler was stopped while it started"
            raise SchedulerStateError(message)
        level = logging.INFO if self._jobs else logging.WARNING
        names = ", ".join(sorted(self._jobs)) if self._jobs else "none declared"
        message = f"started as {runner}; jobs: {names}"
        tell(SCHEDULER, level, "scheduler.started", message, runner=runner)
        self._started = True

    async def stop(self, timeout: Duration | None = None) -> None:  # noqa: ASYNC109 - a drain, not a deadline
        """Stop: claim nothing more, let running jobs end, then cancel them and give runs back.

        Running jobs get `timeout` seconds (`shutdown_timeout` unless given). Calling it again, or
        before ``start()``, does nothing more.
        """
        engine = self._engine
        if engine is None:
            return
        self._refuse_other_loops()
        if self._stopped is None:
            seconds = (
                self._shutdown_timeout
                if timeout is None
                else milliseconds(timeout, "timeout") / 1000
            )
            # Not in the context of a job that calls this: it would be cancelled with the job.
            self._stopped = asyncio.get_running_loop().create_task(
                self._shut_down(engine, seconds), context=own_context()
            )
        await asyncio.shield(self._stopped)

    async def _shut_down(self, engine: Engine, seconds: float) -> None:
        try:
            await shut_down(engine, seconds)
        finally:
            self._engine = None
            self._loop = None
        if self._started:
            runner = engine.instance.runner
            tell(SCHEDULER, logging.INFO, "scheduler.stopped", f"stopped {runner}", runner=runner)

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        await self.stop()

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object) -> AsyncGenerator[None]:  # noqa: ARG002 - ASGI passes it
        """Run with an ASGI application: ``FastAPI(lifespan=scheduler.lifespan)``."""
        async with self:
            yield

    def run(self) -> None:
        """Run as a process of its own: blocks until SIGTERM or SIGINT, then stops.

        A second signal ends the wait for running jobs. Raises what `start` raises, and
        `SchedulerStateError` in a thread other than the main one, which alone is told of signals,
        or beside a running event loop (use ``async with scheduler`` there).
        """
        if threading.current_thread() is not threading.main_thread():
            message = "run() needs the main thread, which alone is told of signals"
            raise SchedulerStateError(message)
        if _a_loop_is_running():
            message = "an event loop is running already: use `async with scheduler` inside it"
            raise SchedulerStateError(message)
        asyncio.run(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        asked: asyncio.Queue[int] = asyncio.Queue()
        signals = (signal.SIGTERM, signal.SIGINT)
        for number in signals:
            with contextlib.suppress(NotImplementedError):  # Windows' loops have no handlers
                loop.add_signal_handler(number, asked.put_nowait, number)
        try:
            async with self:
                await asked.get()
                message = f"stopping; running jobs get {self._shutdown_timeout:g} s"
                tell(SCHEDULER, logging.INFO, "scheduler.stopping", message)
                ending = asyncio.create_task(self.stop())
                again = asyncio.create_task(asked.get())
                await asyncio.wait([ending, again], return_when=asyncio.FIRST_COMPLETED)
                again.cancel()
                if self._engine is not None and not ending.done():
                    self._engine.hurried.set()
                await ending
        finally:
            for number in signals:
                with contextlib.suppress(NotImplementedError):
                    loop.remove_signal_handler(number)

    # -- what can be asked -------------------------------------------------------------------------

    async def run_now(self, name: str) -> object:
        """Run a job here and now, besides its schedule; answers what the function returned.

        It runs past this instance's bounds. Raises what the function raised, or `TimeoutError`;
        `RunRefused` when another run is live (``overlap="skip"``), or stayed so for `max_late`
        (``"wait"``); `RunMoved` when another instance took it over; `UnknownJobError`;
        `SchedulerStateError` when not started or stopping; `StoreUnavailable`.
        """
        engine = self._running()
        future = await engine.run_now(self._job_named(name))
        return await asyncio.shield(future)

    async def history(self, job: str, limit: int = 50) -> tuple[RunRecord, ...]:
        """The newest runs of a job, newest first, each with its attempts.

        The job need not be declared here, and the scheduler not be started: then a connection is
        made for this question. `limit` is from 1 to 10,000. Raises `ConfigurationError`, and the
        errors of the store.
        """
        whole_number(limit, "limit", MOST_HISTORY)
        checked_name(job)
        if self._engine is not None and asyncio.get_running_loop() is self._loop:
            return await self._engine.instance.link.store.history(job, limit)
        store = self._backend.connect(timeout=self._options.call_timeout / 1000)
        try:
            return await store.history(job, limit)
        finally:
            await store.close()

    def health(self) -> Health:
        """Whether this instance runs, whether the store answers, and how its clocks are."""
        engine = self._engine
        if engine is None:
            return Health(running=False, store=False, loop_lag=0.0, clock_ahead=0.0)
        return Health(
            running=not (engine.instance.stopping or engine.instance.broken),
            store=engine.instance.health.there,
            loop_lag=engine.instance.loop_lag,
            clock_ahead=engine.instance.server.host_is_ahead() / 1000,
        )

    def _running(self) -> Engine:
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

    def _job_named(self, name: str) -> Job:
        job = self._jobs.get(name)
        if job is None:
            message = f"no job is named {name!r}{did_you_mean(name, self._jobs)}"
            raise UnknownJobError(message)
        return job


def _a_loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _info(job: Job, now: int) -> JobInfo:
    slot = job.slots.next_after(now)
    next_run = None if slot is None else moment(slot, job.slots.timezone)
    return JobInfo(job.name, job.slots.explain(), next_run)
