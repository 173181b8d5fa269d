"""The engine: one instance at work. It wires timeline, pursuits, heartbeats and the store."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anarchon.backends.base import OpenRun, order_of
from anarchon.engine.caller import Caller
from anarchon.engine.clock import ServerClock
from anarchon.engine.driver import WatchedLoop, own_context
from anarchon.engine.heartbeat import Heartbeats, TaskCarrier
from anarchon.engine.link import Asked, Link, Pauses, StoreHealth
from anarchon.engine.log import CLAIMS, SCHEDULER, STORE, tell
from anarchon.engine.presence import ask_time, keep_in_touch
from anarchon.engine.pursuit import Chase, Pursuit
from anarchon.engine.room import Room
from anarchon.engine.timeline import Timeline, in_time, latest
from anarchon.errors import StoreError, StoreRefused, StoreUnavailable
from anarchon.runs import Trigger, moment

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from anarchon.backends.base import Backend, JobTerms, Registered, Store
    from anarchon.engine.environment import Environment
    from anarchon.jobs import Job


MOST_BAD_TOLD = 1000
"""Of how many records that make no sense an instance remembers that it told of them."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What a scheduler is set to; lengths in milliseconds."""

    lease: int
    heartbeat: int
    call_timeout: int
    history_size: int
    history_ttl: int
    max_concurrent_runs: int | None
    max_threads: int


class Engine:
    """One instance at work, from its start to its stop."""

    def __init__(
        self,
        backend: Backend,
        jobs: Iterable[Job],
        options: EngineOptions,
        env: Environment,
        runner: str,
    ) -> None:
        """Made inside the event loop that it is to run in."""
        self.env = env
        self.runner = runner
        self.options = options
        self.stopping = False
        self.hurried = asyncio.Event()
        self.loop_lag = 0.0
        self.jobs = {job.name: job for job in jobs}
        self.pursuits: dict[tuple[str, str], Pursuit] = {}
        self.tasks: dict[Pursuit, asyncio.Task[None]] = {}
        self._loop = asyncio.get_running_loop()
        self._watched_loop = WatchedLoop(self._loop)
        # Tasks of the engine's own must not count as a job's when a job calls the scheduler.
        self._context = own_context()
        self._duties: set[asyncio.Task[None]] = set()
        self._ends: dict[str, asyncio.Event] = {}
        self._since: dict[str, int] = {}
        self._added_at: dict[str, int] = {}
        self._bad: set[tuple[str, str]] = set()
        self._catching_up: dict[str, asyncio.Lock] = {}
        self._registered = asyncio.Event()
        self.server = ServerClock(env.clock, lambda step: self._soon(self._stepped, step))
        self.health = StoreHealth(lambda: self._soon(lambda _step: self.touch.set(), 0))
        self.touch = asyncio.Event()
        timeout = options.call_timeout / 1000
        self.link = self._link(backend.connect(timeout=timeout))
        shared = backend.shares_connection
        self.heartbeats = Heartbeats(
            self.link if shared else self._link(backend.connect(timeout=timeout)),
            TaskCarrier() if shared else env.carrier(),
            env.clock,
            env.rng,
            options.heartbeat / 1000,
        )
        self._heartbeats_share = shared
        self.room = Room(options.max_concurrent_runs, options.max_threads)
        self.timeline = Timeline(self.server, self._due, self._let_go)

    def _link(self, store: Store) -> Link:
        return Link(store, self.env.clock, self.server, self.health)

    def terms(self, job: Job) -> JobTerms:
        """What the store is told of a job."""
        options = self.options
        return job.terms(options.lease, options.history_size, options.history_ttl)

    # -- start ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin. An unreachable store is waited for; one that cannot serve is an error.

        Raises the errors of `Store.open`, other than `StoreUnavailable` and `StoreRefused`.
        """
        await self.heartbeats.start()
        try:
            opened = await self._open()
        except (StoreUnavailable, StoreRefused) as error:
            self.health.failed(error)
            opened = False
        self.duty(self._settle(opened=opened))
        if opened:
            # The jobs are usually taken in at once; if the store goes away now, it goes on behind.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.options.call_timeout / 1000):
                    await self._registered.wait()

    async def _open(self) -> bool:
        for warning in await self.link.store.open():
            tell(STORE, logging.WARNING, "store.warning", warning)
        return True

    async def _settle(self, *, opened: bool) -> None:
        """Reach the store if it was not there at the start, then take the jobs in."""
        pauses = Pauses(self.env.rng)
        while not opened:
            await asyncio.sleep(pauses.next())
            try:
                opened = await self._open()
            except StoreError as error:
                self.health.failed(error)
        self.health.answered()
        self.duty(keep_in_touch(self))
        self.duty(self.timeline.turn())
        await asyncio.gather(*(self._take_in(job) for job in self.jobs.values()))
        self._registered.set()

    async def _take_in(self, job: Job) -> None:
        """Register a job, then watch its schedule and go after its open runs."""
        terms = self.terms(job)
        pauses = Pauses(self.env.rng)
        asked: Asked[Registered] | None = None
        while asked is None:
            try:
                asked = await self.link.ask(lambda store: store.register(terms))
            except StoreError:
                await asyncio.sleep(pauses.next())
        self._watch(job, asked.answer)

    def _watch(self, job: Job, known: Registered) -> None:
        now = self.server.now()
        self._since[job.name] = known.since
        self._added_at[job.name] = now
        # The look-back of a start: what is at or below `since` was not due under this schedule.
        self.timeline.add(job, min(known.since, now))
        self.adopt(job, known.open_runs)

    # -- slots -----------------------------------------------------------------------------------

    def _due(self, job: Job, slot: int) -> None:
        options = job.options
        now = self.server.now()
        since_applies = slot <= self._added_at[job.name]
        last = slot + job.keep
        if in_time(job, slot, now):
            deadline = latest(job, slot)
            self.pursue(Chase(job, str(slot), Trigger.SCHEDULE, deadline, last, since_applies))
        elif now <= slot + options.catch_up and not options.coalesce:
            self._let_go(job, slot - 1, slot)
        elif now <= slot + options.catch_up:
            deadline = slot + options.catch_up
            next_slot = job.slots.next_after(slot)
            if next_slot is not None:
                deadline = min(deadline, next_slot)
            self.pursue(Chase(job, str(slot), Trigger.CATCH_UP, deadline, last, since_applies=True))
        elif since_applies:
            # Too late; but the store is asked, so that it tells of it as missed if nobody ran it.
            chase = Chase(job, str(slot), Trigger.SCHEDULE, latest(job, slot), last, since_applies)
            self.pursue(chase)
        else:
            self._let_go(job, slot - 1, slot)

    def _let_go(self, job: Job, after: int, until: int) -> None:
        """Slots that this instance was too late for: missed, unless they are caught up."""
        oldest = max(after, self._since[job.name], self.server.now() - job.options.catch_up)
        if job.options.catch_up and not job.options.coalesce and oldest < until:
            self.duty(self._catch_up(job, oldest, until))
            return
        if until <= self._added_at[job.name]:
            return  # the look-back of a start: other instances were there, or nobody was late
        message = (
            f"{job.name}: this instance was too late for its slots up to {moment(until)}; it asks"
            " for newer ones only"
        )
        tell(CLAIMS, logging.WARNING, "slots.passed-over", message, job=job.name, slot=until)

    async def _catch_up(self, job: Job, after: int, until: int) -> None:
        """Go after each slot in (after, until], oldest first, one after the other."""
        async with self._catching_up.setdefault(job.name, asyncio.Lock()):
            slot = job.slots.next_after(after)
            while slot is not None and slot <= until:
                deadline, last = slot + job.options.catch_up, slot + job.keep
                task = self.pursue(
                    Chase(job, str(slot), Trigger.CATCH_UP, deadline, last, since_applies=True)
                )
                if task is not None:
                    await asyncio.wait([task])
                slot = job.slots.next_after(slot)

    # -- pursuits --------------------------------------------------------------------------------

    def pursue(
        self,
        chase: Chase,
        *,
        first_wait: float = 0.0,
        caller: Caller | None = None,
    ) -> asyncio.Task[None] | None:
        """Go after a run, unless this instance already does, or is stopping."""
        key = (chase.job.name, chase.run)
        if self.stopping or key in self.pursuits:
            return None
        pursuit = Pursuit(self, chase, first_wait=first_wait, caller=caller)
        task = self._loop.create_task(
            self._guarded(pursuit), name=f"anarchon {key}", context=self._context.copy()
        )
        self.pursuits[key] = pursuit
        self.tasks[pursuit] = task
        return task

    async def _guarded(self, pursuit: Pursuit) -> None:
        try:
            await pursuit.go()
        except Exception as error:  # noqa: BLE001 - one run's trouble never stops the others
            message = f"{pursuit.job.name}: going after run {pursuit.run} failed: {error}"
            tell(SCHEDULER, logging.ERROR, "run.broken", message, error, job=pursuit.job.name)
        finally:
            self.pursuits.pop((pursuit.job.name, pursuit.run), None)
            self.tasks.pop(pursuit, None)
            self.ended(pursuit.job.name)
            pursuit.settle()
            if pursuit.given_up and not self.stopping:
                self._given_up(pursuit.job, order_of(pursuit.run))

    def superseded(self, job: Job, slot: int) -> bool:
        """Whether a newer slot of the job is due, so that this one has to give way to it."""
        return job.slots.newest(self.server.now() - job.options.jitter, slot) is not None

    def _given_up(self, job: Job, slot: int) -> None:
        """A slot that was due was not asked for in time; it may still be caught up."""
        if not job.options.catch_up:
            return
        if not self.superseded(job, slot):
            self._due(job, slot)
        elif not job.options.coalesce:
            self._let_go(job, slot - 1, slot)

    def adopt(self, job: Job, open_runs: Iterable[OpenRun]) -> None:
        """Go after open runs of a job that the store named, as their backup."""
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
            wait = other.rest / 1000 + (self.env.rng.uniform(0, 0.25) if other.rest else 0.0)
            self.pursue(chase, first_wait=wait)

    def _tell_bad(self, job: Job, run: str) -> None:
        if (job.name, run) in self._bad or len(self._bad) > MOST_BAD_TOLD:
            return
        self._bad.add((job.name, run))
        place = self.link.store.place(job.name)
        message = (
            f"{job.name}: the record of run {run} in {place} makes no sense; it counts as live"
        )
        tell(STORE, logging.ERROR, "store.bad-record", message, job=job.name, run=run)

    async def run_now(self, job: Job) -> asyncio.Future[object]:
        """Ask for a manual run of a job on this instance; the future is of its result.

        Raises the store's errors when it cannot be asked for the time, which names the run.
        """
        asked = await self.link.ask(ask_time)
        time = asked.answer.time
        run = f"m{time}-{self.env.rng.getrandbits(48):012x}"
        deadline = time + job.options.max_late
        caller = Caller(job.name)
        if self.pursue(Chase(job, run, Trigger.MANUAL, deadline, deadline), caller=caller) is None:
            caller.settle(None)
        return caller.result

    def waits_behind(self, pursuit: Pursuit) -> bool:
        """Whether an older run of the same job waits here for others to end: it goes first."""
        order = order_of(pursuit.run)
        return any(
            other.waits_for_others and order_of(other.run) < order
            for other in self.pursuits.values()
            if other.job is pursuit.job
        )

    async def wait_for_end(self, job: str, seconds: float) -> None:
        """Wait until a run of the job ends here, but no longer than so many seconds."""
        event = self._ends.setdefault(job, asyncio.Event())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()

    def ended(self, job: str) -> None:
        """A run of the job ended here."""
        event = self._ends.pop(job, None)
        if event is not None:
            event.set()

    # -- duties ----------------------------------------------------------------------------------

    def duty(self, coroutine: Coroutine[object, object, None]) -> None:
        """Run something of the engine's own until it ends or the engine stops."""
        task = self._loop.create_task(coroutine, context=self._context.copy())
        self._duties.add(task)
        task.add_done_callback(self._duty_done)

    def _duty_done(self, task: asyncio.Task[None]) -> None:
        self._duties.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            message = f"a part of the scheduler failed: {error}"
            tell(SCHEDULER, logging.CRITICAL, "scheduler.broken", message, error)

    def _soon(self, call: Callable[[int], None], step: int) -> None:
        try:
            self._loop.call_soon_threadsafe(call, step)
        except RuntimeError:
            return  # the loop is closed: there is nothing left to tell

    def _stepped(self, step: int) -> None:
        self.timeline.reconsider(step)

    def hurry(self) -> None:
        """Let a shutdown under way wait no longer for running jobs."""
        self.hurried.set()

    async def end_duties(self) -> None:
        """Stop what the engine does of its own."""
        duties = list(self._duties)
        for task in duties:
            task.cancel()
        await asyncio.gather(*duties, return_exceptions=True)

    async def close(self) -> None:
        """Close connections and threads, and give the loop its task factory back."""
        await self.heartbeats.stop()
        if not self._heartbeats_share:
            await self.link.store.close()
        self._watched_loop.restore()
