"""What all parts of one instance share: its name, clocks, connections, and places for runs."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anarchon.engine.clock import ServerClock
from anarchon.engine.descendants import own_context
from anarchon.engine.heartbeat import Heartbeats, TaskCarrier
from anarchon.engine.link import Link, StoreHealth
from anarchon.engine.listeners import Listeners
from anarchon.engine.loop_watch import LoopWatch
from anarchon.engine.reasons import Reasons
from anarchon.engine.room import Room
from anarchon.events import Event
from anarchon.runs import moment

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from anarchon.backends.base import Backend, JobTerms
    from anarchon.engine.environment import Environment
    from anarchon.engine.listeners import Listener
    from anarchon.events import EventName
    from anarchon.jobs import Job


LAG_WORTH_TELLING = 0.1
"""Seconds that a timer may be late without anything being wrong."""


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


class Instance:
    """One instance. Made inside the event loop that it is to run in."""

    def __init__(  # noqa: PLR0913 - what an instance is made of
        self,
        backend: Backend,
        options: EngineOptions,
        env: Environment,
        runner: str,
        on_step: Callable[[int], None],
        *,
        listeners: Iterable[Listener] = (),
        scheduled: bool = True,
    ) -> None:
        """`on_step` is told when the server's clock turns out to differ from what was reckoned.

        One that is not `scheduled` runs what it is asked for, and goes after nothing else.
        """
        self.env = env
        self.runner = runner
        self.options = options
        self.scheduled = scheduled
        self.started: bool = False
        """Whether listeners were told that it started."""
        self.stopping = False
        self.broken = False
        """Whether a part of the engine failed, so that it is not what it should be."""
        self.loop_lag: float = 0.0
        self.turns_at: float = math.inf
        """By when the loop turns for sure unless something blocks it, by the host's own clock."""
        self.touch: asyncio.Event = asyncio.Event()
        """Set when the store goes away or comes back."""
        self._loop = asyncio.get_running_loop()
        # Tasks of the engine's own must not count as a job's when a job calls the scheduler.
        self._context = own_context()
        self._ends: dict[str, asyncio.Event] = {}
        self.server: ServerClock = ServerClock(
            env.clock, lambda step: self._soon(lambda: on_step(step))
        )
        self.listeners: Listeners = Listeners(listeners)
        self.reasons: Reasons = Reasons()
        self.health: StoreHealth = StoreHealth(lambda why: self._soon(lambda: self._touched(why)))
        self.loop_watch: LoopWatch = LoopWatch(self._loop, env.clock)
        self._shares = backend.shares_connection
        self.link: Link = self._connect(backend)
        self.heartbeats: Heartbeats = Heartbeats(
            self.link if self._shares else self._connect(backend),
            TaskCarrier() if self._shares else env.carrier(),
            env.clock,
            env.rng,
            options.heartbeat / 1000,
            self.loop_watch,
        )
        self.room: Room = Room(options.max_concurrent_runs, options.max_threads)

    def terms(self, job: Job) -> JobTerms:
        """What the store is told of a job."""
        options = self.options
        return job.terms(options.lease, options.history_size, options.history_ttl)

    def announce_start(self) -> None:
        """Tell listeners that it started; they hear of its end as well then."""
        self.started = True
        self.announce("scheduler-started")

    def announce(self, name: EventName, reason: str = "") -> None:
        """Tell listeners of something that concerns no job."""
        now = moment(self.server.now())
        self.listeners.hand_out(Event(name=name, at=now, runner=self.runner, reason=reason))

    def _touched(self, why_away: str | None) -> None:
        self.touch.set()
        if why_away is None:
            self.announce("store-back")
        else:
            self.announce("store-away", why_away)

    def lag(self) -> float:
        """By how many seconds the event loop was last late, or is while something blocks it."""
        overdue = self.env.clock.boot() - self.turns_at - LAG_WORTH_TELLING
        return max(self.loop_lag, overdue, 0.0)

    def random_name(self, size: int) -> str:
        """A text that no other instance draws, of `size` random bytes.

        The runner is mixed in, so that instances whose random sources have one seed still differ.
        """
        drawn = f"{self.runner} {self.env.rng.getrandbits(128)}".encode()
        digest = hashlib.blake2b(drawn, digest_size=size).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def spawn(self, coroutine: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Run something of the engine's own as a task."""
        return self._loop.create_task(coroutine, context=self._context.copy())

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

    async def close(self) -> None:
        """Tell listeners the last, send no more heartbeats, and close what was connected."""
        if self.started:
            self.announce("scheduler-stopped")
        await self.listeners.close()
        await self.heartbeats.stop()
        if not self._shares:
            await self.link.store.close()

    def _connect(self, backend: Backend) -> Link:
        store = backend.connect(timeout=self.options.call_timeout / 1000)
        return Link(store, self.env.clock, self.server, self.health)

    def _soon(self, call: Callable[[], None]) -> None:
        """Call from whatever thread; a closed loop has nobody left to tell."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call)
