"""A scheduler beside a program without an event loop: in a thread that has one of its own."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import logging
import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Self, TypeVar

from anarchon.durations import Duration, milliseconds
from anarchon.engine.forks import forked_from
from anarchon.engine.heartbeat import NO_THREADS
from anarchon.engine.log import SCHEDULER, tell
from anarchon.errors import SchedulerStateError
from anarchon.own_loop import run_on_own_loop

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from datetime import datetime
    from types import TracebackType
    from typing import Any

    from anarchon.reports import (
        Explanation,
        Finding,
        Health,
        InstanceInfo,
        JobInfo,
        JobState,
    )
    from anarchon.runs import RunRecord
    from anarchon.scheduler import Scheduler

T = TypeVar("T")

STOPPED = "the scheduler was stopped meanwhile"
HEALTH_WAIT = 1.0
"""Seconds that `health` waits for the event loop to turn."""


class BackgroundScheduler:
    """A scheduler in a thread of its own, with the methods of `Scheduler`, which block.

    Made by `Scheduler.in_background`. Every method may be called from any thread but that of its
    event loop, where async jobs and listeners run: those use the scheduler itself. Each raises what
    the method of `Scheduler` raises, and `SchedulerStateError` when it is not started, when it is
    stopped meanwhile, or in a process that was forked from the one that started it (where `health`
    and `jobs` answer, and `stop` does nothing).
    """

    def __init__(
        self, scheduler: Scheduler, *, scheduled: bool = True, patience: float = 20.0
    ) -> None:
        """Not started yet. A loop that has not stopped after `patience` seconds is left."""
        self._scheduler = scheduler
        self._scheduled = scheduled
        self._patience = patience
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop_wanted = threading.Event()
        self._asked_to_stop: asyncio.Event | None = None
        self._timeout: Duration | None = None
        self._process = os.getpid()
        self._over: concurrent.futures.Future[None] = concurrent.futures.Future()
        # One that its holder may take again: a signal's handler may call stop() during a stop().
        self._lock = threading.RLock()
        self._lock_process = self._process

    def start(self) -> None:
        """Start the scheduler in its thread. Raises what `Scheduler.start` raises.

        If nobody stops it, the interpreter's exit does.
        """
        with self._own_lock():
            self._refuse_forked()
            if self._thread is not None:
                message = "the scheduler is started already; stop() it first"
                raise SchedulerStateError(message)
            self._over = concurrent.futures.Future()
            self._stop_wanted.clear()
            started: concurrent.futures.Future[None] = concurrent.futures.Future()
            here = threading.get_native_id()
            thread = threading.Thread(
                target=self._turn, args=(started, here), name="anarchon-scheduler", daemon=True
            )
            self._thread, self._process = thread, os.getpid()
            try:
                thread.start()
                started.result()
            except BaseException:
                # If the waiting was interrupted, it is still to be stopped.
                self._stop_wanted.set()
                self._ask_to_stop()
                if thread.ident is None or (started.done() and started.exception()):
                    self._thread = None
                raise
        # A daemon, which does not keep the interpreter from its exit, where it is stopped.
        atexit.register(self.stop)

    def stop(self, timeout: Duration | None = None) -> None:
        """Stop as `Scheduler.stop` does, and end the thread; does nothing if it is not started.

        An event loop that something blocks for good is left to the end of the process. Raises
        `ConfigurationError`.
        """
        if self._forked():
            return
        patience = self._patience
        if timeout is not None:
            patience += milliseconds(timeout, "timeout") / 1000
        self._refuse_own_loop()
        with self._own_lock():
            thread = self._thread
            if thread is None:
                return
            self._timeout = timeout
            self._stop_wanted.set()
            self._ask_to_stop()
            thread.join(patience)
            if thread.is_alive():
                message = "the scheduler did not stop: something blocks its event loop; it is left"
                tell(SCHEDULER, logging.WARNING, "scheduler.leftover", message)
            self._thread = self._loop = None
        atexit.unregister(self.stop)

    def _own_lock(self) -> contextlib.AbstractContextManager[object]:
        """The lock; a new one in a forked process, where its holder does not exist."""
        if self._lock_process != os.getpid():
            self._lock, self._lock_process = threading.RLock(), os.getpid()
        return self._lock

    def _ask_to_stop(self) -> None:
        loop, asked = self._loop, self._asked_to_stop
        if loop is not None and asked is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed: it broke
                loop.call_soon_threadsafe(asked.set)

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()

    # -- what can be asked -------------------------------------------------------------------------

    @property
    def jobs(self) -> tuple[JobInfo, ...]:
        """The declared jobs; see `Scheduler.jobs`."""
        return self._scheduler.jobs

    def health(self) -> Health:
        """How it is; see `Health`. An event loop that does not turn within a second is not running.

        Never raises.
        """
        seen = self._scheduler.health()
        if self._loop is None or self._forked() or threading.current_thread() is self._thread:
            return seen
        try:
            return self._wait(self._healthy(), HEALTH_WAIT)
        except (TimeoutError, SchedulerStateError):
            return replace(seen, running=False, loop_lag=max(seen.loop_lag, HEALTH_WAIT))

    def run_now(self, name: str, timeout: Duration | None = None) -> object:
        """Run a job here and now, and wait for its end; see `Scheduler.run_now`.

        After `timeout` seconds `TimeoutError` ends the waiting; the run goes on.
        """
        seconds = None if timeout is None else milliseconds(timeout, "timeout") / 1000
        # The question is not cancelled with the waiting: it may not have begun the run yet.
        return self._wait(self._run_now(name), seconds, goes_on=True)

    def history(self, job: str, limit: int = 50) -> tuple[RunRecord, ...]:
        """The newest runs of a job; see `Scheduler.history`."""
        return self._wait(self._scheduler.history(job, limit))

    def why(self, job: str, at: datetime | str) -> Explanation:
        """Why a run did or did not take place; see `Scheduler.why`."""
        return self._wait(self._scheduler.why(job, at))

    def state(self, job: str) -> JobState:
        """What the store knows of a job; see `Scheduler.state`."""
        return self._wait(self._scheduler.state(job))

    def instances(self) -> tuple[InstanceInfo, ...]:
        """The instances that share the store; see `Scheduler.instances`."""
        return self._wait(self._scheduler.instances())

    def check(self) -> tuple[Finding, ...]:
        """Look whether all is well; see `Scheduler.check`."""
        return self._wait(self._scheduler.check())

    def pause(self, job: str, *, until: datetime | None = None, note: str = "") -> None:
        """Hold back a job's scheduled runs; see `Scheduler.pause`."""
        self._wait(self._scheduler.pause(job, until=until, note=note))

    def resume(self, job: str) -> bool:
        """Let a paused job go on; see `Scheduler.resume`."""
        return self._wait(self._scheduler.resume(job))

    def cancel(self, job: str, run: datetime | str | None = None) -> tuple[str, ...]:
        """Cancel a run; see `Scheduler.cancel`."""
        return self._wait(self._scheduler.cancel(job, run))

    def forget(self, job: str) -> bool:
        """Delete all that is stored of a job; see `Scheduler.forget`."""
        return self._wait(self._scheduler.forget(job))

    # -- the thread --------------------------------------------------------------------------------

    def _turn(self, started: concurrent.futures.Future[None], starter: int) -> None:
        try:
            _refuse_greenlets(starter)
            run_on_own_loop(self._live(started))
        except BaseException as error:  # noqa: BLE001 - told to whoever waits in start()
            if not started.done():
                started.set_exception(error)
            else:
                message = f"the scheduler's thread ended by an error: {error}"
                tell(SCHEDULER, logging.CRITICAL, "scheduler.broken", message, error)
        finally:
            self._over.set_result(None)

    async def _live(self, started: concurrent.futures.Future[None]) -> None:
        self._asked_to_stop = asyncio.Event()
        await self._scheduler.start(scheduled=self._scheduled)
        self._loop = asyncio.get_running_loop()
        started.set_result(None)
        try:
            if not self._stop_wanted.is_set():
                await self._until_stopped(self._asked_to_stop)
        finally:
            await self._scheduler.stop(self._timeout)

    async def _run_now(self, name: str) -> object:
        try:
            return await self._scheduler.run_now(name)
        except concurrent.futures.CancelledError as error:
            # On its way between threads it would be taken for the cancellation of this question.
            message = f"the job raised {type(error).__name__}"
            raise RuntimeError(message) from error

    async def _until_stopped(self, asked: asyncio.Event) -> None:
        """Wait until somebody asks for a stop, or a job or listener has stopped the scheduler."""
        ends = [
            asyncio.create_task(asked.wait()),
            asyncio.create_task(self._scheduler.wait_stopped()),
        ]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()

    async def _healthy(self) -> Health:
        return self._scheduler.health()

    def _wait(
        self,
        question: Coroutine[Any, Any, T],
        timeout: float | None = None,
        *,
        goes_on: bool = False,
    ) -> T:
        """Ask in the loop and wait; what `goes_on` does so when the waiting is over."""
        try:
            self._refuse_own_loop()
            self._refuse_forked()
            loop, over = self._loop, self._over
            if loop is None:
                message = "the scheduler is not started: start() it first"
                raise SchedulerStateError(message)
            answer = asyncio.run_coroutine_threadsafe(question, loop)
        except RuntimeError as error:
            question.close()
            if isinstance(error, SchedulerStateError):
                raise
            raise SchedulerStateError(STOPPED) from error
        try:
            # A question that came too late for the loop would be waited for in vain.
            ends: tuple[Any, Any] = (answer, over)
            concurrent.futures.wait(ends, timeout, concurrent.futures.FIRST_COMPLETED)
            if over.done() and not answer.done():
                question.close()  # nobody will take a further step of it
                raise SchedulerStateError(STOPPED)
            if not answer.done():
                message = f"no answer within {timeout:g} s; what was asked for goes on"
                raise TimeoutError(message)
            return answer.result()
        except concurrent.futures.CancelledError as error:
            raise SchedulerStateError(STOPPED) from error
        finally:
            if not goes_on:
                answer.cancel()  # nobody waits any more

    def _refuse_own_loop(self) -> None:
        if self._thread is not None and threading.current_thread() is self._thread:
            message = (
                "this method blocks, and was called in the scheduler's own event loop, which it"
                " would wait for; there, await the method of the scheduler itself"
            )
            raise SchedulerStateError(message)

    def _forked(self) -> bool:
        return self._thread is not None and self._process != os.getpid()

    def _refuse_forked(self) -> None:
        if self._forked():
            raise forked_from(self._process)


def _refuse_greenlets(starter: int) -> None:
    """Raise where this thread is the same to the system as `starter`, which started it."""
    if threading.get_native_id() == starter:
        raise SchedulerStateError(NO_THREADS)
