"""Runs a job's function once under a lease: async or in a thread, with timeout and cancelling."""

from __future__ import annotations

import asyncio
import enum
import inspect
import logging
import threading
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from anarchon.backends.base import Outcome
from anarchon.engine.clock import LONGEST_SLEEP
from anarchon.engine.descendants import Descendants
from anarchon.engine.driver import Driven, Ended, awaited
from anarchon.engine.log import RUNS, tell
from anarchon.errors import NoRetry

if TYPE_CHECKING:
    import contextvars
    import types
    from collections.abc import Awaitable, Callable

    from anarchon.engine.heartbeat import HeldLease
    from anarchon.runs import Run

ERROR_HEAD = 500
ERROR_TAIL = 3000
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


def error_text(error: BaseException) -> str:
    """An exception in at most a few kilobytes, also where its own `str` fails."""
    name = type(error).__qualname__
    try:
        head = f"{name}: {error}" if str(error) else name
    except BaseException:  # noqa: BLE001 - the user's own __str__ may raise anything
        head = f"{name} (its text cannot be had)"
    try:
        frames = "".join(traceback.format_tb(_in_the_job(error), limit=-20))
    except Exception:  # noqa: BLE001 - a traceback is a courtesy
        frames = ""
    text = head[:ERROR_HEAD]
    if frames:
        text += "\n" + frames[-ERROR_TAIL:].rstrip()
    return text.encode("utf-8", "replace").decode("utf-8")


def _in_the_job(error: BaseException) -> types.TracebackType | None:
    """The part of a traceback that lies in the job: the frames of this package come before it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__package__") == __package__:
        trace = trace.tb_next
    return trace


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
    ) -> None:
        """Prepare to call `function`; `timeout` is in seconds."""
        self.run = run
        self.held = held
        self.in_thread = in_thread
        self._function = function
        self._arguments: tuple[Run, ...] = (run,) if takes_run else ()
        self._timeout = timeout
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
        self.held.on_change = lambda: _from_any_thread(loop, self._look_at_lease)
        self._fence_timer = loop.call_soon(self._watch_belief)
        if self._timeout:
            self._overdue = loop.call_later(self._timeout, self._time_out)
        try:
            return self._ending(await self._run_body(loop))
        finally:
            self.held.on_change = lambda: None
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
                self._tell_lost()
            # What happened before does not matter: nothing of this attempt may be written.
            self._why = Interruption.LOST
            self.interrupt(Interruption.LOST)
        elif self.held.cancel_asked:
            self.interrupt(Interruption.CANCELLED)

    def _tell_lost(self) -> None:
        event, why = "run.fenced", "could not be renewed in time, so it is stopped here"
        if self.held.taken:
            event, why = "run.lost", "is no longer ours: another has the run, or it was forgotten"
        message = (
            f"{self.run.job}: the lease of attempt {self.run.attempt} of the run for"
            f" {self.run.scheduled_for} {why}"
        )
        tell(RUNS, logging.WARNING, event, message, **self.fields)

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
            if ended.error is not None or not inspect.isawaitable(ended.value):
                return ended
            body = awaited(cast("Awaitable[object]", ended.value))
        else:
            body = awaited(cast("Awaitable[object]", _Late(self._call)))
        self._driven = Driven(body, self.held.believed)
        task = asyncio.Task(self._driven, loop=loop, context=context)
        self._body = task
        if self._why is not None:
            task.cancel()
        return await _end_of(task)

    async def _in_thread(
        self, loop: asyncio.AbstractEventLoop, context: contextvars.Context
    ) -> Ended:
        """Call in a thread of its own: a daemon, since a function may never return."""
        done: asyncio.Future[Ended] = loop.create_future()

        def tell_end(ended: Ended) -> None:
            if not done.done():
                done.set_result(ended)

        def body() -> None:
            try:
                ended = Ended(value=context.run(self._call))
            except BaseException as error:  # noqa: BLE001 - the body's end, whatever it was
                ended = Ended(error=error)
            self._returned = not inspect.isawaitable(ended.value)
            _from_any_thread(loop, lambda: tell_end(ended))

        name = f"anarchon-{self.run.job}"[:60]
        try:
            threading.Thread(target=body, name=name, daemon=True).start()
        except RuntimeError as error:  # the system has no thread to give
            return Ended(error=error)
        return await done

    def _call(self) -> object:
        return self._function(*self._arguments)

    def _ending(self, ended: Ended) -> Ending:
        if not self.held.believed():
            return Ending(None, error=ended.error)
        why = self._why
        if isinstance(ended.error, NoRetry):
            return Ending(Outcome.NO_RETRY, error=ended.error)
        if why is Interruption.TIMED_OUT:
            own = ended.error if isinstance(ended.error, Exception) else None
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


class _Late:
    """Calls the function at the first step, so that the call is a step of the body's task."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call

    def __await__(self) -> Any:
        called = self._call()
        if inspect.isawaitable(called):
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


def _from_any_thread(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        # The loop is closed: the scheduler was stopped and gave this body up.
        logging.getLogger("anarchon.runs").debug("a body ended after its scheduler", exc_info=True)
