"""Time that jumps: an event loop that goes to its next timer at once instead of waiting for it.

A day of a scheduler's life takes a moment, and every run with the same seed is the same. Time
stands still while a plain function is out in its thread. Several hosts share one loop; what runs on
a host can be stopped in its tracks, for a while or for good, as an operating system does it to a
process.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
import selectors
import threading
import time as real_time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, Unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
"""When virtual time begins unless told otherwise: noon on a Monday."""

TURN = 1e-6
"""Seconds that each turn of the loop takes, so that nothing can go round without time passing."""

JOB_THREADS = "anarchon-"
"""How the names of the threads begin that the engine runs plain functions in."""

PATIENCE = 30.0
"""Real seconds that virtual time stands still for a thread, before that is an error."""


class VirtualTimeError(RuntimeError):
    """Virtual time cannot go on: nothing is left to happen, or a thread does not come back."""


class HostThread:
    """A thread of a simulated host. While it is stopped none of its callbacks is called.

    `posts_to` is the thread that runs what this one hands over with ``call_soon_threadsafe``.
    """

    def __init__(self, loop: VirtualLoop, posts_to: HostThread | None = None) -> None:
        """Run."""
        self._loop = loop
        self._held: list[tuple[_Gated, tuple[Any, ...]]] = []
        self._stops = 0
        self.dead: bool = False
        self._corpses: set[asyncio.Task[Any]] = set()
        self.posts_to: HostThread = posts_to or self

    def stop(self) -> None:
        """Take no step until `go_on` was called as often."""
        self._stops += 1

    def go_on(self) -> None:
        """Take the steps that fell due in the meantime, in their order, and go on."""
        self._stops -= 1
        if self._stops == 0 and not self.dead:
            self._release()

    def die(self) -> None:
        """Take no step ever again: no handler and no ``finally`` runs."""
        self.dead = True
        # Were the garbage collector to find its tasks, it would run their `finally`.
        self._corpses = asyncio.all_tasks(self._loop)

    def may_step(self, gated: _Gated, args: tuple[Any, ...]) -> bool:
        """Whether a callback may be called now; one that falls due in a stop is kept."""
        stopped = self.dead or self._stops > 0
        if stopped:
            self._held.append((gated, args))
        return not stopped

    def haunt(self) -> None:
        """Go on even after death, so that what never ended can be ended when all is over."""
        self.dead = False
        self._stops = 0
        self._release()

    def _release(self) -> None:
        held, self._held = self._held, []
        for gated, args in held:
            self._loop.call_ungated(gated, *args, context=gated.context)

    def context(self) -> contextvars.Context:
        """A copy of the present context in which everything runs on this thread."""
        context = contextvars.copy_context()
        context.run(_running_on.set, self)
        return context


_running_on: contextvars.ContextVar[HostThread | None] = contextvars.ContextVar(
    "anarchon_virtual_thread", default=None
)


class _Gated:
    """A callback that asks its host's thread before it is called."""

    __slots__ = ("_callback", "_thread", "context", "handle")

    def __init__(
        self, thread: HostThread, callback: Callable[..., object], context: contextvars.Context
    ) -> None:
        self._thread = thread
        self._callback = callback
        self.context: contextvars.Context = context
        self.handle: asyncio.Handle | None = None

    @property
    def call(self) -> Any:
        """Itself, for whoever wants a function of the callback's own arguments."""
        return self

    def __call__(self, *args: Any) -> None:
        # It may have been held back, and cancelled after that.
        cancelled = self.handle is not None and self.handle.cancelled()
        if not cancelled and self._thread.may_step(self, args):
            self._callback(*args)


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits for time to pass; waits for threads only."""

    time: VirtualTime

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Answer what is ready, or let time jump by `timeout` if nothing else can happen before."""
        self.time.pass_by(TURN)
        # In this order: what a thread hands over before it ends is ready by then.
        out = self.time.threads_out()
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if out:
            return self._wait_for_threads()
        if timeout is None:
            raise VirtualTimeError(
                "nothing is left that could happen: no timer is set, and no thread is out"
            )
        self.time.pass_by(timeout)
        return ready

    def _wait_for_threads(self) -> list[tuple[selectors.SelectorKey, int]]:
        give_up = real_time.monotonic() + PATIENCE
        while self.time.threads_out():
            if ready := super().select(0.001):
                return ready
            if real_time.monotonic() > give_up:
                names = ", ".join(self.time.threads_out())
                raise VirtualTimeError(
                    f"virtual time stands still for {PATIENCE:g} s already, waiting for {names};"
                    " a thread that waits for time to pass must do so with VirtualTime.sleep"
                )
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """The event loop of a `VirtualTime`; see there."""

    def __init__(self, time: VirtualTime) -> None:
        """Turn by `time`."""
        selector = _JumpingSelector()
        selector.time = time
        super().__init__(selector)
        self._virtual = time
        self.in_executor: int = 0
        self.early: float = 0.0

    def time(self) -> float:
        """Virtual seconds."""
        return self._virtual.seconds

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """As every loop does, but through the gate of the host's thread."""
        gated = _gate(callback, context)
        if gated is None:
            return super().call_soon(callback, *args, context=context)
        gated.handle = super().call_soon(gated.call, *args, context=gated.context)
        return gated.handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """As every loop does, but through the gate of the host's thread, and as `early` as told."""
        if self.early and when > self.time() + 2 * self.early:
            when -= self.early
        gated = _gate(callback, context)
        if gated is None:
            return super().call_at(when, callback, *args, context=context)
        gated.handle = timer = super().call_at(when, gated.call, *args, context=gated.context)
        return timer

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """As every loop does; runs on the thread that the calling one posts to."""
        gated = _gate(callback, context, posted=True)
        if gated is None:
            return super().call_soon_threadsafe(callback, *args, context=context)
        gated.handle = super().call_soon_threadsafe(gated.call, *args, context=gated.context)
        return gated.handle

    def call_ungated(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context
    ) -> None:
        """Call soon what went through a gate already."""
        super().call_soon(callback, *args, context=context)

    def run_in_executor(
        self, executor: Any, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """As every loop does; time stands still until it is back."""
        future = super().run_in_executor(executor, func, *args)
        self.in_executor += 1
        future.add_done_callback(self._back_from_executor, context=contextvars.Context())
        return future

    def _back_from_executor(self, _future: asyncio.Future[Any]) -> None:
        self.in_executor -= 1


def _gate(
    callback: Callable[..., object], context: contextvars.Context | None, *, posted: bool = False
) -> _Gated | None:
    thread = _running_on.get() if context is None else context.get(_running_on)
    if thread is None:
        return None
    if context is None:
        context = contextvars.copy_context()
    return _Gated(thread.posts_to if posted else thread, callback, context)


class VirtualTime:
    """The one true time of a simulation, from which every clock in it is derived.

    `rng` is where everything random in a simulation is to come from. `complaints` are what the
    event loop had to complain of (a callback that failed, a task that was lost).
    """

    def __init__(self, seed: int = 0, start: datetime = START) -> None:
        """Begin at `start`, an aware datetime."""
        if start.tzinfo is None:
            raise ValueError(f"start={start!r}: give an aware datetime, one with a time zone")
        self.seed = seed
        self.start = start
        self.rng: random.Random = random.Random(seed)
        self.seconds: float = 0.0
        self.complaints: list[str] = []
        self.threads: list[HostThread] = []
        self.over: bool = False
        self._start_ms = round(start.timestamp() * 1000)
        self._resting: dict[threading.Thread, threading.Event] = {}
        self._strangers = set(threading.enumerate())
        self.loop: VirtualLoop = VirtualLoop(self)
        self.loop.set_exception_handler(self._complain)

    def now(self) -> float:
        """Milliseconds since the epoch."""
        return self._start_ms + self.seconds * 1000

    def pass_by(self, seconds: float) -> None:
        """Let time pass while nothing can happen, as when the machine is busy with other things."""
        self.seconds += seconds

    def set_timers_early(self, seconds: float) -> None:
        """Let timers that are set from now on fire so much too early."""
        self.loop.early = seconds

    def host_thread(self, posts_to: HostThread | None = None) -> HostThread:
        """A thread of a simulated host."""
        thread = HostThread(self.loop, posts_to)
        self.threads.append(thread)
        return thread

    # -- real threads ----------------------------------------------------------------------------

    def sleep(self, seconds: float) -> None:
        """Sleep in virtual time: for plain functions, in their threads.

        Raises `VirtualTimeError` when virtual time is over.
        """
        thread, awake = threading.current_thread(), threading.Event()
        context = contextvars.copy_context()

        def rest() -> None:
            if self.over:
                awake.set()
                return
            self._resting[thread] = awake
            self.loop.call_later(seconds, wake, context=context)

        def wake() -> None:
            self._resting.pop(thread, None)
            awake.set()

        # Not through a gate: a thread of a stopped host rests like any other, but wakes later.
        self.loop.call_soon_threadsafe(rest, context=contextvars.Context())
        awake.wait()
        if self.over:
            raise VirtualTimeError("virtual time is over")

    def threads_out(self) -> list[str]:
        """The names of threads for which time has to stand still."""
        out = [
            thread.name
            for thread in threading.enumerate()
            if thread.name.startswith(JOB_THREADS)
            and thread not in self._resting
            and thread not in self._strangers
        ]
        return out + ["a thread of an executor"] * self.loop.in_executor

    # -- life ------------------------------------------------------------------------------------

    def run(self, story: Coroutine[Any, Any, T]) -> T:
        """Run to the end of `story`; then end everything that still goes on, and close the loop.

        Raises what the story raises, and `VirtualTimeError` if the event loop had complaints.
        """
        try:
            result = self.loop.run_until_complete(story)
            complaints = list(self.complaints)
        except BaseException as error:
            error.add_note(f"In virtual time, at {self.seconds:.3f} s, with seed={self.seed}.")
            raise
        finally:
            self._end()
        if complaints:
            raise VirtualTimeError(f"the event loop complained, seed={self.seed}: {complaints}")
        return result

    def _complain(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not self.over:
            self.complaints.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _end(self) -> None:
        self.over = True
        for thread in self.threads:
            thread.haunt()
        for awake in self._resting.values():
            awake.set()
        self._resting.clear()
        try:
            for _ in range(10):
                if not (tasks := asyncio.all_tasks(self.loop)):
                    break
                for task in tasks:
                    task.cancel()
                self.loop.run_until_complete(asyncio.wait(tasks, timeout=1))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.in_executor += 1
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
        finally:
            self.loop.close()


def run_virtual(
    story: Callable[[VirtualTime], Coroutine[Any, Any, T]],
    *,
    seed: int = 0,
    start: datetime = START,
) -> T:
    """Run a coroutine function in virtual time and answer what it returns.

    Everything that is drawn at random follows from `seed`, which an error that comes out names.
    """
    time = VirtualTime(seed, start)
    return time.run(story(time))
