"""`Scheduler`: the face of the library. It wires, and decides nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import threading
from typing import TYPE_CHECKING, Self, TypeVar, Unpack, cast

from anarchon.backends.redis.backend import RedisBackend
from anarchon.background import BackgroundScheduler
from anarchon.durations import Duration, milliseconds
from anarchon.engine.core import Engine
from anarchon.engine.descendants import own_context
from anarchon.engine.environment import Environment
from anarchon.engine.listeners import Listener, checked_events, make_listener
from anarchon.engine.log import SCHEDULER, tell
from anarchon.engine.shutdown import shut_down
from anarchon.errors import ConfigurationError, SchedulerStateError
from anarchon.jobs import JobSettings, job_options, make_job
from anarchon.operations import Operations
from anarchon.options import (
    checked_runner,
    engine_options,
    refuse_unknown,
    refuse_what_is_no_backend,
    refuse_what_is_no_environment,
)
from anarchon.own_loop import run_on_own_loop
from anarchon.schedules import slots_of
from anarchon.signals import StopSignals

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from datetime import timedelta
    from types import TracebackType

    from anarchon.backends.base import Backend
    from anarchon.events import Event, EventName
    from anarchon.jobs import Job
    from anarchon.runs import Run
    from anarchon.schedules import Schedule

    JobFunction = Callable[[], object] | Callable[[Run], object]
    ListenerFunction = Callable[[], object] | Callable[[Event], object]

F = TypeVar("F", bound="JobFunction")
L = TypeVar("L", bound="ListenerFunction")

LONGEST_STOP = 10.0
"""Seconds that a stop may take beyond its timeout before its loop counts as blocked for good."""
MOST_NAMED = 20
"""How many jobs the log names at a start."""


class Scheduler(Operations):
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
        backend = RedisBackend() if backend is None else backend
        refuse_what_is_no_backend(backend)
        self._shutdown_timeout = milliseconds(shutdown_timeout, "shutdown_timeout") / 1000
        self._runner = checked_runner(runner)
        environment = Environment() if environment is None else environment
        refuse_what_is_no_environment(environment)
        options = engine_options(
            lease, heartbeat, history_size, history_ttl, max_concurrent_runs, max_threads
        )
        super().__init__(backend, options, environment)
        self._listeners: list[Listener] = []
        self._stopped: asyncio.Task[None] | None = None
        self._started = False
        self._over = asyncio.Event()

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

    def on(self, *events: EventName) -> Callable[[L], L]:
        """Declare the decorated function as a listener; the function itself is unchanged.

        It is called with the `Event`, or with nothing, each time one of `events` happens on this
        instance: ``@scheduler.on("failed", "missed")``. An async listener runs on the event loop, a
        plain one in a thread. It hears one event at a time, in order; while it is 1000 events
        behind, further ones are not told to it. What it raises is logged, and harms nothing.

        Raises `ConfigurationError`, and `SchedulerStateError` once the scheduler is started.
        """
        names = checked_events(events)

        def declare(function: L) -> L:
            if self._engine is not None:
                message = "listeners are declared before the scheduler starts: this one is running"
                raise SchedulerStateError(message)
            self._listeners.append(make_listener(function, names))
            return function

        return declare

    # -- life ------------------------------------------------------------------------------------

    async def start(self, *, scheduled: bool = True) -> None:
        """Begin to run jobs on the running event loop.

        An instance that is not `scheduled` runs only what ``run_now`` asks it for: it registers no
        job, asks for no slot, and stands by for nobody.

        An unreachable store is waited for: this returns, warns, and goes on trying. What waiting
        does not mend is raised: `StorePermissionError`, `StoreFormatError`, `StoreServerError`,
        another `StoreError`; and `SchedulerStateError` when it is already started.
        """
        self._refuse_forked()
        if self._engine is not None:
            message = "the scheduler is started already; stop() it first, or make another one"
            raise SchedulerStateError(message)
        runner = self._runner or f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._stopped = None
        self._over = asyncio.Event()
        self._started = False
        engine = self._engine = Engine(
            self._backend,
            self._jobs.values(),
            self._options,
            self._environment,
            runner,
            listeners=self._listeners,
            scheduled=scheduled,
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
        message = f"started as {runner}; {_names(self._jobs, scheduled=scheduled)}"
        tell(SCHEDULER, level, "scheduler.started", message, runner=runner)
        engine.instance.announce_start()
        self._started = True

    async def stop(self, timeout: Duration | None = None) -> None:  # noqa: ASYNC109 - a drain, not a deadline
        """Stop: claim nothing more, let running jobs end, then cancel them and give runs back.

        Running jobs get `timeout` seconds (`shutdown_timeout` unless given). Calling it again, or
        before ``start()``, does nothing more.
        """
        engine = self._engine
        if engine is None or self._forked():
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

    async def wait_stopped(self) -> None:
        """Wait until the scheduler is stopped, by whomever; at once if it is not started.

        Raises `SchedulerStateError` on an event loop other than the one that runs the scheduler.
        """
        if self._engine is None or self._forked():
            return
        self._refuse_other_loops()
        await self._over.wait()

    async def _shut_down(self, engine: Engine, seconds: float) -> None:
        try:
            await shut_down(engine, seconds)
        finally:
            self._engine = None
            self._loop = None
            self._over.set()
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

    def in_background(self, *, scheduled: bool = True) -> BackgroundScheduler:
        """Run beside a program without an event loop, in a thread that has one of its own.

        ::

            with scheduler.in_background() as background:
                background.run_now("nightly_report")

        Or call ``start()`` and ``stop()`` on what this returns; at the interpreter's exit it is
        stopped if nobody did. In a server that forks workers, start it in each worker, after the
        fork. `scheduled`: see `start`.
        """
        patience = self._shutdown_timeout + LONGEST_STOP
        return BackgroundScheduler(self, scheduled=scheduled, patience=patience)

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
        # To the end: a signal that comes late finds done what it asks for.
        with StopSignals() as signals:
            run_on_own_loop(self._run(signals))

    async def _run(self, signals: StopSignals) -> None:
        signals.attach()
        async with self:
            heard = asyncio.create_task(signals.next())
            stopped = asyncio.create_task(self.wait_stopped())
            await asyncio.wait([heard, stopped], return_when=asyncio.FIRST_COMPLETED)
            if heard.done():
                message = f"stopping; running jobs get {self._shutdown_timeout:g} s"
                tell(SCHEDULER, logging.INFO, "scheduler.stopping", message)
                await self._stop_sooner_at(signals)
            for task in (heard, stopped):
                task.cancel()

    async def _stop_sooner_at(self, signals: StopSignals) -> None:
        """Stop; a further signal ends the wait for running jobs."""
        ending = asyncio.create_task(self.stop())
        again = asyncio.create_task(signals.next())
        await asyncio.wait([ending, again], return_when=asyncio.FIRST_COMPLETED)
        again.cancel()
        if self._engine is not None and not ending.done():
            self._engine.hurried.set()
        await ending


def _a_loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _names(jobs: Mapping[str, Job], *, scheduled: bool) -> str:
    """The jobs as the log names them: a thousand names would be no help."""
    if not scheduled:
        return "runs jobs on demand only"
    names = sorted(jobs)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"jobs: {', '.join(names[:MOST_NAMED]) or 'none declared'}{more}"
