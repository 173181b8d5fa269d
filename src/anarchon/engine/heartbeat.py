"""Leases that this instance holds: kept alive, and given up in time.

The holder fences itself. It believes in its lease until 0.9 of the lease after the *sending* of the
last call that was answered *won* or *ok*, by its own clock; the store counts from the arrival,
which is later. So the holder stops before anybody else can start, without a word from the store.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from typing import TYPE_CHECKING, Protocol

from anarchon.engine.clock import sleep_until
from anarchon.engine.ending import cancel_and_wait
from anarchon.engine.executor import DaemonExecutor
from anarchon.engine.link import URGENT_PAUSE, Link, Pauses
from anarchon.engine.log import RUNS, tell
from anarchon.errors import SchedulerStateError, StoreError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Coroutine

    from anarchon.backends.base import JobTerms
    from anarchon.engine.clock import Clock
    from anarchon.engine.loop_watch import LoopWatch

BELIEVED_SHARE = 0.9
NO_THREADS = (
    "threads are not real here (gevent or eventlet took their place), and an event loop needs one:"
    " run the scheduler as a process of its own, with scheduler.run()"
)


class StopSignal(threading.Event):
    """Set when a job has to stop; a thread that was suspended past its lease sees it at once.

    On waking, such a thread may run before the one that would set the signal.
    """

    def __init__(self, believed: Callable[[], bool]) -> None:
        """Counts as set also while `believed` says no."""
        super().__init__()
        self._believed = believed

    def is_set(self) -> bool:
        """Whether to stop."""
        return super().is_set() or not self._believed()


class HeldLease:
    """The right to one attempt, as far as this instance may believe in it. Read from any thread."""

    def __init__(  # noqa: PLR0913 - what a lease is
        self, clock: Clock, terms: JobTerms, run: str, token: str, attempt: int, sent: float
    ) -> None:
        """Granted in answer to a call that was sent at `sent`."""
        self._clock = clock
        self.terms = terms
        self.run = run
        self.token = token
        self.attempt = attempt
        self.stop_signal: StopSignal = StopSignal(self.believed)
        self.lost: bool = False
        self.taken: bool = False
        self.cancel_asked = False
        self.ended: bool = False
        self.on_change: Callable[[], None] = lambda: None
        self.believed_until: float = 0.0
        self.prolong(sent)

    def prolong(self, sent: float) -> None:
        """Count from a call that was sent at `sent` and answered with yes."""
        until = sent + BELIEVED_SHARE * self.terms.lease / 1000
        self.believed_until = max(self.believed_until, until)

    def believed(self) -> bool:
        """Whether the job may take another step."""
        return not self.lost and self._clock.boot() < self.believed_until

    def seconds_believed(self) -> float:
        """How long it may still be believed in, if nothing more is heard."""
        return self.believed_until - self._clock.boot()

    def give_up(self) -> None:
        """Let the job take no further step, though nobody has taken the lease."""
        self.lost = self.ended = True
        self.stop_signal.set()

    def lose(self, *, taken: bool) -> None:
        """Never believe in it again, and tell whoever runs the job, also a thread that looks.

        `taken`: the store said that it is not ours; else it could not be renewed in time.
        """
        self.taken = self.taken or taken
        self.lost = True
        self.stop_signal.set()
        self.on_change()


class Carrier(Protocol):
    """What carries heartbeats: a thread with an event loop of its own, or tasks of this loop."""

    async def start(self) -> None:
        """Be ready to carry."""
        ...

    def spawn(self, coroutine: Coroutine[object, object, None]) -> None:
        """Run a coroutine; any thread may call."""
        ...

    async def stop(self, last: Coroutine[object, object, None]) -> None:
        """Cancel all that is carried, run `last`, and end."""
        ...


class TaskCarrier:
    """Carries heartbeats as tasks of the loop that also runs the jobs."""

    def __init__(self) -> None:
        """Carry nothing yet."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Nothing to make ready."""

    def spawn(self, coroutine: Coroutine[object, object, None]) -> None:
        """Run a coroutine as a task."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self, last: Coroutine[object, object, None]) -> None:
        """Cancel the tasks, and run `last`."""
        await cancel_and_wait(self._tasks)
        await last


class ThreadCarrier:
    """Carries heartbeats in a thread of their own, which no job can block."""

    def __init__(self) -> None:
        """No thread yet."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start the thread. Raises `SchedulerStateError` where its loop cannot run."""
        loop = asyncio.new_event_loop()
        ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        thread = threading.Thread(
            target=self._turn, args=(loop, ready), name="anarchon-heartbeat", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # the system has no thread to give
            loop.close()
            raise
        self._loop, self._thread = loop, thread
        try:
            # Shielded: a start that is cancelled meanwhile must not cancel what the thread sets.
            await asyncio.shield(asyncio.wrap_future(ready))
        except RuntimeError as error:
            self._loop = self._thread = None
            raise SchedulerStateError(NO_THREADS) from error

    @staticmethod
    def _turn(loop: asyncio.AbstractEventLoop, ready: concurrent.futures.Future[None]) -> None:
        asyncio.set_event_loop(loop)
        # Host names are still to be resolved while the interpreter ends.
        loop.set_default_executor(DaemonExecutor())
        loop.call_soon(ready.set_result, None)
        try:
            loop.run_forever()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)
        finally:
            loop.close()

    def spawn(self, coroutine: Coroutine[object, object, None]) -> None:
        """Run a coroutine in the thread."""
        if self._loop is None:
            coroutine.close()
            return
        self._loop.call_soon_threadsafe(self._spawn_there, coroutine)

    def _spawn_there(self, coroutine: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self, last: Coroutine[object, object, None]) -> None:
        """Cancel what is carried, run `last` in the thread, and end the thread."""
        loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            await last  # there is no thread; what it would have closed is closed here
            return

        async def ending() -> None:
            await cancel_and_wait(self._tasks)
            await last

        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(ending(), loop))
        loop.call_soon_threadsafe(loop.stop)
        # The loop's last turn is short, and its thread holds nothing that this one waits for.
        self._thread.join(timeout=1.0)


class Heartbeats:
    """Keeps leases alive, each by a heartbeat every `interval` seconds, until ended or lost."""

    def __init__(  # noqa: PLR0913 - what heartbeats need
        self,
        link: Link,
        carrier: Carrier,
        clock: Clock,
        rng: random.Random,
        interval: float,
        watch: LoopWatch,
    ) -> None:
        """Send over `link`, carried by `carrier`; each looks at `watch`."""
        self._link = link
        self._carrier = carrier
        self._clock = clock
        self._random = rng
        self._interval = interval
        self._watch = watch

    async def start(self) -> None:
        """Be ready to keep leases."""
        await self._carrier.start()

    def keep(self, held: HeldLease) -> None:
        """Keep a lease until `held.ended`, or until it is lost."""
        self._carrier.spawn(self._keep(held))

    async def stop(self) -> None:
        """Send no more, and close the connection."""
        await self._carrier.stop(self._link.store.close())

    async def _keep(self, held: HeldLease) -> None:
        try:
            while not held.ended:
                await sleep_until(self._clock, self._clock.boot() + self._interval)
                self._watch.look()
                if not await self._prolong(held):
                    return
        except Exception as error:  # noqa: BLE001 - whatever it was, the lease is no longer kept
            message = f"{held.terms.job}: keeping the lease of run {held.run} failed: {error}"
            tell(RUNS, logging.ERROR, "run.heartbeat-broken", message, error, job=held.terms.job)
            held.lose(taken=False)

    async def _prolong(self, held: HeldLease) -> bool:
        """One heartbeat, repeated until answered. False when there is nothing more to keep."""
        pauses = Pauses(self._random, URGENT_PAUSE)
        while not held.ended:
            if not held.believed():
                held.lose(taken=False)
                return False
            try:
                # A holder that waits for an answer must not miss the moment to stop.
                async with asyncio.timeout(held.seconds_believed()):
                    asked = await self._link.ask(
                        lambda store: store.heartbeat(held.terms, held.run, held.token)
                    )
            except (StoreError, TimeoutError):
                await asyncio.sleep(max(0.0, min(pauses.next(), held.seconds_believed())))
                continue
            if not asked.answer.ok:
                if not held.ended:
                    held.lose(taken=True)
                return False
            held.prolong(asked.sent)
            if asked.answer.cancel and not held.cancel_asked:
                held.cancel_asked = True
                held.on_change()
            return True
        return False
