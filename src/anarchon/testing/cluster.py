"""Several instances of an application in one thread, in virtual time, over one store.

::

    def jobs(scheduler: Scheduler) -> None:
        @scheduler.job("0 * * * *", name="hourly")
        async def hourly(run: Run) -> None: ...

    async def story(time: VirtualTime) -> None:
        cluster = Cluster(time)
        await cluster.start(jobs, 3)
        await cluster.wait(24 * 3600)
        assert len(await cluster.history("hourly")) == 24

    run_virtual(story)
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from anarchon.backends.memory import MemoryBackend
from anarchon.engine.environment import Environment
from anarchon.engine.heartbeat import TaskCarrier
from anarchon.scheduler import Scheduler
from anarchon.testing.clocks import HostClock, StoreClock
from anarchon.testing.faults import Executed, FaultyBackend, Line
from anarchon.testing.virtual import VirtualTimeError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from anarchon.durations import Duration
    from anarchon.runs import RunRecord
    from anarchon.testing.virtual import HostThread, VirtualTime

    Declare = Callable[[Scheduler], object]

T = TypeVar("T")


class SchedulerSettings(TypedDict, total=False):
    """The options of a `Scheduler` that a simulation leaves open; see there."""

    lease: Duration
    heartbeat: Duration
    history_size: int
    history_ttl: Duration
    max_concurrent_runs: int
    max_threads: int
    shutdown_timeout: Duration


class Instance:
    """One process of the application, on a host of its own."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        declare: Declare,
        clock: HostClock,
        settings: SchedulerSettings,
    ) -> None:
        """Made by `Cluster.add`; not started yet."""
        self.name = name
        self.clock = clock
        self.line: Line = Line(cluster.time, name, cluster.executed)
        self.alive: bool = False
        self._cluster = cluster
        self._declare = declare
        self._settings = settings
        self._boot()

    scheduler: Scheduler
    _main: HostThread
    _heart: HostThread
    _context: contextvars.Context

    def _boot(self) -> None:
        """Make what a new process has of its own."""
        time = self._cluster.time
        self._main = time.host_thread()
        self._heart = time.host_thread(posts_to=self._main)
        self._context = self._main.context()
        heart = self._heart
        environment = Environment(
            clock=self.clock,
            rng=random.Random(time.rng.getrandbits(64)),
            carrier=lambda: _HeartThread(heart),
        )
        backend = FaultyBackend(self._cluster.backend, self.line)
        self.scheduler = Scheduler(
            backend=backend, runner=self.name, environment=environment, **self._settings
        )
        self._declare(self.scheduler)

    async def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await something in this process, such as ``instance.scheduler.run_now("job")``.

        Raises `VirtualTimeError` when it is dead; if it dies meanwhile, there is no answer.
        """
        if self._main.dead:
            coroutine.close()
            raise VirtualTimeError(f"{self.name} is dead")
        loop = asyncio.get_running_loop()
        return await loop.create_task(coroutine, context=self._context.copy())

    async def start(self) -> None:
        """Start the scheduler."""
        self.alive = True
        await self.do(self.scheduler.start())

    async def stop(self, timeout: Duration | None = None) -> None:  # noqa: ASYNC109 - the drain's
        """Stop the scheduler as an orderly shutdown does."""
        await self.do(self.scheduler.stop(timeout))
        self.alive = False

    def crash(self) -> None:
        """Die at once: nothing more is done or sent; what was sent before still arrives."""
        self.alive = False
        self._main.die()
        self._heart.die()

    async def restart(self) -> None:
        """Start anew as a fresh process of the same name, after a crash or a stop."""
        self._boot()
        await self.start()

    def suspend(self, seconds: float | None = None) -> None:
        """Take no step, until `resume` or for so long, while the host's clocks go on."""
        self._stop_for(seconds, self._main, self._heart)

    def resume(self) -> None:
        """Go on after `suspend`."""
        self._main.go_on()
        self._heart.go_on()

    def stall(self, seconds: float) -> None:
        """Block the event loop for so long, but not the thread that carries heartbeats.

        A job that calls this is taken to have blocked in the step that it is in.
        """
        self._stop_for(seconds, self._main)

    def _stop_for(self, seconds: float | None, *threads: HostThread) -> None:
        loop = self._cluster.time.loop
        for thread in threads:
            thread.stop()
            if seconds is not None:
                loop.call_later(seconds, thread.go_on, context=self._cluster.outside)


class _HeartThread(TaskCarrier):
    """Carries heartbeats on a thread of the host that a blocked event loop does not block."""

    def __init__(self, thread: HostThread) -> None:
        super().__init__()
        self._thread = thread

    def spawn(self, coroutine: Coroutine[object, object, None]) -> None:
        self._thread.context().run(super().spawn, coroutine)


class Cluster:
    """Instances of one application over one store, in virtual time.

    `executed` lists every call that the store carried out. `server` is the store's clock.
    """

    def __init__(self, time: VirtualTime) -> None:
        """Make an empty store and no instance yet; inside the running loop of `time`, or before."""
        self.time = time
        self.server: StoreClock = StoreClock(time)
        self.backend: MemoryBackend = MemoryBackend(clock=self.server)
        self.executed: list[Executed] = []
        self.instances: dict[str, Instance] = {}
        self.outside: contextvars.Context = contextvars.Context()

    def __getitem__(self, name: str) -> Instance:
        """The instance of a name (a job finds its own as ``run.runner``)."""
        return self.instances[name]

    def add(
        self,
        declare: Declare,
        *,
        ahead: float = 0.0,
        drift: float = 0.0,
        name: str | None = None,
        **settings: Unpack[SchedulerSettings],
    ) -> Instance:
        """Make an instance whose jobs `declare` declares; `ahead` and `drift` are its clock's."""
        name = name or f"i{len(self.instances) + 1}"
        clock = HostClock(self.time, ahead, drift)
        instance = self.instances[name] = Instance(self, name, declare, clock, settings)
        return instance

    async def start(
        self, declare: Declare, count: int = 1, **settings: Unpack[SchedulerSettings]
    ) -> list[Instance]:
        """Add so many instances that are alike, and start them at the same time."""
        made = [self.add(declare, **settings) for _ in range(count)]
        await asyncio.gather(*(instance.start() for instance in made))
        return made

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    async def until(self, moment: int) -> None:
        """Let time pass until a moment of true time, in milliseconds since the epoch."""
        await asyncio.sleep(max(0.0, (moment - self.time.now()) / 1000))

    async def history(self, job: str, limit: int = 50) -> tuple[RunRecord, ...]:
        """What the store tells of a job, newest run first."""
        return await self.backend.connect(timeout=1).history(job, limit)

    async def stop(self) -> None:
        """Stop all instances that are alive."""
        alive = [instance for instance in self.instances.values() if instance.alive]
        await asyncio.gather(*(instance.stop() for instance in alive))
