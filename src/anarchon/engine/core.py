"""The engine: one instance at work, from its start to its stop. It wires the parts together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from anarchon.engine.caller import Caller
from anarchon.engine.chase import Chase
from anarchon.engine.descendants import WatchedLoop
from anarchon.engine.due import DueSlots
from anarchon.engine.ending import cancel_and_wait
from anarchon.engine.forks import forks_leave
from anarchon.engine.instance import EngineOptions, Instance
from anarchon.engine.link import Asked, Pauses
from anarchon.engine.log import SCHEDULER, STORE, tell
from anarchon.engine.presence import ask_time, definitions_of, keep_in_touch
from anarchon.engine.pursuits import Pursuits
from anarchon.engine.timeline import Timeline
from anarchon.errors import StoreError, StoreRefused, StoreUnavailable
from anarchon.runs import Trigger, moment

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from anarchon.backends.base import Backend, Registered
    from anarchon.engine.environment import Environment
    from anarchon.engine.listeners import Listener
    from anarchon.jobs import Job


class Engine:
    """One instance at work."""

    def __init__(  # noqa: PLR0913 - what an instance is made of
        self,
        backend: Backend,
        jobs: Iterable[Job],
        options: EngineOptions,
        env: Environment,
        runner: str,
        *,
        listeners: Iterable[Listener] = (),
        scheduled: bool = True,
    ) -> None:
        """Made inside the event loop that it is to run in; `scheduled`: see `Instance`."""
        self._jobs = tuple(jobs)
        self._duties: set[asyncio.Task[None]] = set()
        self._opening: asyncio.Task[None] | None = None
        self._registered = asyncio.Event()
        self.hurried: asyncio.Event = asyncio.Event()
        """Set to let a shutdown under way wait no longer for running jobs."""
        self.instance: Instance = Instance(
            backend,
            options,
            env,
            runner,
            self._stepped,
            listeners=listeners,
            scheduled=scheduled,
        )
        self._due = DueSlots(self.instance, self._duty)
        self.pursuits: Pursuits = Pursuits(self.instance, self._due.given_up)
        self._due.pursuits = self.pursuits
        self._timeline = Timeline(self.instance.server, self._due.ask, self._due.let_go)
        self._watched_loop = WatchedLoop(asyncio.get_running_loop())
        forks_leave(asyncio.get_running_loop())

    async def start(self) -> None:
        """Begin. An unreachable store is waited for; one that cannot serve is an error.

        Raises the errors of `Store.open`, other than `StoreUnavailable` and `StoreRefused`.
        """
        await self.instance.heartbeats.start()
        if self._is_stopping():
            return
        # A task of its own, so that a stop() meanwhile can end it before it closes the connection.
        opening = self._opening = self.instance.spawn(self._open())
        try:
            await opening
            opened = True
        except (StoreUnavailable, StoreRefused) as error:
            self.instance.health.failed(error)
            opened = False
        except asyncio.CancelledError:
            if not self.instance.stopping:
                raise
            return
        self._duty(self._settle(opened=opened))
        if opened and not self.instance.stopping:
            # The jobs are usually taken in at once; if the store goes away now, it goes on behind.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.instance.options.call_timeout / 1000):
                    await self._registered.wait()

    def _is_stopping(self) -> bool:
        """Whether it was stopped meanwhile."""
        return self.instance.stopping

    async def run_now(self, job: Job) -> asyncio.Future[object]:
        """Ask for a manual run of a job on this instance; the future is of its result.

        Raises the store's errors when it cannot be asked for the time, which names the run.
        """
        asked = await self.instance.link.ask(ask_time)
        time = asked.answer.time
        run = f"m{time}-{self.instance.random_name(6)}"
        deadline = time + job.options.max_late
        caller = Caller(job.name)
        chase = Chase(job, run, Trigger.MANUAL, deadline, deadline)
        if self.pursuits.start(chase, caller=caller) is None:
            caller.settle(None)
        return caller.result

    async def end_duties(self) -> None:
        """Stop what the engine does of its own."""
        self._registered.set()  # a start() under way waits for it no longer
        opening = {self._opening} if self._opening else set[asyncio.Task[None]]()
        await cancel_and_wait(self._duties | opening)

    async def close(self) -> None:
        """Close connections and threads, and give the loop its task factory back."""
        try:
            await self.instance.close()
        finally:
            self._watched_loop.restore()

    async def _open(self) -> None:
        for warning in await self.instance.link.open():
            tell(STORE, logging.WARNING, "store.warning", warning)

    async def _settle(self, *, opened: bool) -> None:
        """Reach the store if it was not there at the start, then take the jobs in."""
        pauses = Pauses(self.instance.env.rng)
        while not opened:
            await asyncio.sleep(pauses.next())
            try:
                await self._open()
                opened = True
            except StoreError as error:
                self.instance.health.failed(error)
        self.instance.health.answered()
        scheduled = self._jobs if self.instance.scheduled else ()
        self._duty(keep_in_touch(self.instance, definitions_of(scheduled)))
        self._duty(self._timeline.turn())
        await asyncio.gather(*(self._take_in(job) for job in scheduled))
        self._registered.set()

    async def _take_in(self, job: Job) -> None:
        """Register a job, then watch its schedule and go after its open runs."""
        terms = self.instance.terms(job)
        pauses = Pauses(self.instance.env.rng)
        asked: Asked[Registered] | None = None
        while asked is None:
            try:
                asked = await self.instance.link.ask(lambda store: store.register(terms))
            except StoreError:
                await asyncio.sleep(pauses.next())
        known, now = asked.answer, self.instance.server.now()
        if known.paused_until is not None:
            _tell_paused(job, known.paused_until, known.paused_note)
        self._due.watch(job, known.since, now)
        # The look-back of a start: what is at or below `since` was not due under this schedule.
        self._timeline.add(job, min(known.since, now))
        self.pursuits.adopt(job, known.open_runs)

    def _stepped(self, step: int) -> None:
        self._timeline.reconsider(step)

    def _duty(self, coroutine: Coroutine[object, object, None]) -> None:
        """Run something until it ends or the engine stops."""
        if self.instance.stopping:
            coroutine.close()
            return
        task = self.instance.spawn(coroutine)
        self._duties.add(task)
        task.add_done_callback(self._duty_done)

    def _duty_done(self, task: asyncio.Task[None]) -> None:
        self._duties.discard(task)
        if task.cancelled() and not self.instance.stopping:
            self.instance.broken = True
            message = (
                "a part of the scheduler was cancelled by somebody else, so it runs no more jobs:"
                " tasks that are not yours must not be cancelled; stop() it and start it again"
            )
            tell(SCHEDULER, logging.ERROR, "scheduler.cancelled", message)
        elif not task.cancelled() and (error := task.exception()) is not None:
            self.instance.broken = True
            message = f"a part of the scheduler failed: {error}"
            tell(SCHEDULER, logging.CRITICAL, "scheduler.broken", message, error)


def _tell_paused(job: Job, until: int, note: str) -> None:
    end = f"until {moment(until, job.slots.timezone)}" if until else "until it is resumed"
    why = f": {note}" if note else ""
    message = f"{job.name}: paused in the store {end}{why}"
    tell(SCHEDULER, logging.INFO, "job.paused", message, job=job.name)
