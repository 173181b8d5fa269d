"""Runs a job's function once under a lease: async or in a thread, with timeout and cancelling."""

from __future__ import annotations

import asyncio
import enum
import inspect
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from anarchon.backends.base import Outcome
from anarchon.engine.clock import LONGEST_SLEEP
from anarchon.engine.descendants import Descendants
from anarchon.engine.driver import Driven, awaited
from anarchon.engine.error_text import error_text
from anarchon.engine.forks import Ended
from anarchon.engine.log import RUNS, tell
from anarchon.engine.threads import from_any_thread, in_thread
from anarchon.errors import NoRetry

if TYPE_CHECKING:
    import contextvars
    from collections.abc import Awaitable, Callable

    from anarchon.engine.heartbeat import HeldLease
    from anarchon.engine.loop_watch import LoopWatch
    from anarchon.runs import Run

CANCEL_AGAIN = 10.0
"""Seconds after which a body that goes on past its timeout is cancelled once more."""


class Interruption(enum.Enum):
    """Why a body was told to stop before its end."""

    LOST = "lost"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed-out"
    SHUTDOWN = "shutdown"


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ended here.

    `outcome` is what the store is to be told; None where nothing may be written, because the lease
    could no longer be believed in.
    """

    outcome: Outcome | None
    value: object = None
    error: BaseException | None = None

    @property
    def text(self) -> str:
        """The error as history keeps it: its line and the end of its traceback."""
        return "" if self.error is None else error_text(self.error)


class Attempt:
    """One attempt at a run, from its start to its end on this instance."""

    def __init__(  # noqa: PLR0913 - what an attempt is made of
        self,
        function: Callable[..., object],
        run: Run,
        held: HeldLease,
        *,
        in_thread: bool,
        takes_run: bool,
        timeout: float | None,
        on_lost: Callable[[], None],
        watch: LoopWatch,
    ) -> None:
        """Prepare to call `function`; `timeout` is in seconds. `on_lost` hears of a lost lease.

        `watch` knows while the body takes a step on the event loop.
        """
        self.run = run
        self.held = held
        self.in_thread = in_thread
        self._function = function
        self._arguments: tuple[Run, ...] = (run,) if takes_run else ()
        self._timeout = timeout
        self._on_lost = on_lost
        self._watch = watch
        self._descendants = Descendants()
        self._body: asyncio.Task[Ended] | None = None
        self._driven: Driven | None = None
        self._returned = False
        self._overdue: asyncio.Handle | None = None
        self._told_overdue = False
        self._why: Interruption | None = None

    async def carry_out(self) -> Ending:
        """Run the function to its end. Raises nothing but the caller's own cancellation."""
        loop = asyncio.get_running_loop()
        self.held.on_change = lambda: from_any_thread(loop, self._look_at_lease)
        self._fence_timer = loop.call_soon(self._watch_belief)
        if self._timeout:
            self._overdue = loop.call_later(self._timeout, self._time_out)
        try:
            return self._ending(await self._run_body(loop))
        finally:
            # An exception that is kept keeps its frames, and this with them: but not the engine.
            self._on_lost = self.held.on_change = _nobody_hears
            self._fence_timer.cancel()
            if self._overdue:
                self._overdue.cancel()

    def interrupt(self, why: Interruption) -> None:
        """Tell the body to stop: a coroutine is cancelled, a thread finds `run.lost` set.

        A body that has ended, though nobody has taken note of it yet, ended by itself.
        """
        if self._body_is_over():
            return
        if self._why is None:
            self._why = why
        self.held.stop_signal.set()
        self._descendants.cancel()
        if self._body is not None and not self._body.done():
            self._body.cancel()

    # -- how it runs ---------------------------------------------------------------------------

    _fence_timer: asyncio.Handle

    def _watch_belief(self) -> None:
        loop = asyncio.get_running_loop()
        rest = self.held.seconds_believed()
        if rest <= 0:
            self.held.lose(taken=False)
        else:
            self._fence_timer = loop.call_later(min(rest, LONGEST_SLEEP), self._watch_belief)

    def _look_at_lease(self) -> None:
        if self.held.lost:
            if self._why is not Interruption.LOST:
                self._on_lost()
            # What happened before does not matter: nothing of this attempt may be written.
            self._why = Interruption.LOST
            self.interrupt(Interruption.LOST)
        elif self.held.cancel_asked:
            self.interrupt(Interruption.CANCELLED)

    def _body_is_over(self) -> bool:
        if self._driven is not None:
            return self._driven.ended
        return self._returned

    def _time_out(self) -> None:
        if self._body_is_over():
            return
        in_its_thread = self.in_thread and self._body is None
        if not self._told_overdue and (in_its_thread or self._why is Interruption.TIMED_OUT):
            self._told_overdue = True
            how = "a thread cannot be stopped from outside" if in_its_thread else "it goes on"
            message = (
                f"{self.run.job}: attempt {self.run.attempt} is past its timeout and {how}; its"
                " lease is kept until the function returns"
            )
            tell(RUNS, logging.WARNING, "run.overdue", message, **self.fields)
        self.interrupt(Interruption.TIMED_OUT)
        # A body may swallow its cancellation, or begin only now what can be cancelled; it is told
        # again until it ends.
        self._overdue = asyncio.get_running_loop().call_later(CANCEL_AGAIN, self._time_out)

    async def _run_body(self, loop: asyncio.AbstractEventLoop) -> Ended:
        context = self._descendants.context()
        if self.in_thread:
            ended = await self._in_thread(loop, context)
            if ended.error is not None or not _is_awaitable(ended.value):
                return ended
            body = awaited(ended.value)
        else:
            body = awaited(cast("Awaitable[object]", _Late(self._call)))
        self._driven = Driven(body, self.held.believed, self.run.job, self._watch)
        task = asyncio.Task(self._driven, loop=loop, context=context)
        self._body = task
        if self._why is not None:
            task.cancel()
        return await _end_of(task)

    async def _in_thread(
        self, loop: asyncio.AbstractEventLoop, context: contextvars.Context
    ) -> Ended:
        """Call in a thread of its own."""

        def returned(ended: Ended) -> None:
            self._returned = not _is_awaitable(ended.value)

        name = f"anarchon-{self.run.job}"[:60]
        return await in_thread(loop, name, lambda: context.run(self._call), returned)

    def _call(self) -> object:
        return self._function(*self._arguments)

    def _ending(self, ended: Ended) -> Ending:
        if not self.held.believed():
            return Ending(None, error=ended.error)
        why = self._why
        # By its type: an exception's __class__ may raise when it is asked for.
        if issubclass(type(ended.error), NoRetry):
            return Ending(Outcome.NO_RETRY, error=ended.error)
        if why is Interruption.TIMED_OUT:
            own = ended.error if issubclass(type(ended.error), Exception) else None
            late = TimeoutError(f"ran longer than its timeout of {self._timeout:g} s")
            return Ending(Outcome.TIMED_OUT, error=own or late)
        if ended.error is None and not self._may_have_given_up():
            return Ending(Outcome.SUCCEEDED, value=ended.value)
        if why is Interruption.SHUTDOWN:
            return Ending(Outcome.RELEASED, error=ended.error)
        if why is Interruption.CANCELLED:
            return Ending(Outcome.CANCELLED, error=ended.error)
        return Ending(Outcome.FAILED, error=ended.error)

    def _may_have_given_up(self) -> bool:
        """Whether a body that returned was told to stop before, in a way that it could notice.

        Then its return does not say that its work is done.
        """
        return self._why is not None and (bool(self._arguments) or not self.in_thread)

    @property
    def fields(self) -> dict[str, object]:
        """What log lines tell of this attempt."""
        return {
            "job": self.run.job,
            "run": self.held.run,
            "slot": self.run.slot,
            "attempt": self.run.attempt,
            "runner": self.run.runner,
            "trigger": str(self.run.trigger),
        }


def _nobody_hears() -> None:
    """Nothing is to be done any more."""


def _is_awaitable(value: object) -> TypeGuard[Awaitable[object]]:
    try:
        return inspect.isawaitable(value)
    except BaseException:  # noqa: BLE001 - an object of the user's may raise when it is looked at
        return False


class _Late:
    """Calls the function at the first step, so that the call is a step of the body's task."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call

    def __await__(self) -> Any:
        called = self._call()
        if _is_awaitable(called):
            return called.__await__()
        return _nothing_to_await(called).__await__()


async def _nothing_to_await(value: object) -> object:
    return value


async def _end_of(task: asyncio.Task[Ended]) -> Ended:
    """Wait for a body's task, whatever becomes of it; only our own cancellation is raised."""
    while not task.done():
        await asyncio.wait([task])
    if task.cancelled():
        return Ended(error=asyncio.CancelledError())
    error = task.exception()
    return Ended(error=error) if error is not None else task.result()
