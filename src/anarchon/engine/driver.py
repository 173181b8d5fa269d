"""Runs a job's coroutine step by step, so that a holder that lost its lease takes none.

A process that was suspended past its lease wakes in the middle of a body, with another instance at
work on the same run. So before each step the driver looks whether the lease may still be believed
in; when not, the step becomes a cancellation, and so does every later one.
"""

from __future__ import annotations

import asyncio
import contextvars
import weakref
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

CANCELLATIONS_BORNE = 3
"""How often a body may swallow its cancellation before it is closed."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a body ended: with a value, or with an exception of any kind."""

    value: object = None
    error: BaseException | None = None


class Driven(Coroutine[Any, Any, Ended]):
    """A coroutine that takes a step only while `believed` says yes, and ends with an `Ended`.

    What the body raises is a result here, also SystemExit, KeyboardInterrupt and GeneratorExit,
    which would otherwise stop the event loop for a job's sake.
    """

    def __init__(self, body: Coroutine[Any, Any, object], believed: Callable[[], bool]) -> None:
        """Drive `body`."""
        self._body = body
        self._believed = believed
        self._borne = 0
        self.__name__ = getattr(body, "__name__", type(body).__name__)
        self.__qualname__ = getattr(body, "__qualname__", self.__name__)

    def send(self, value: Any) -> Any:
        """Take a step, or a cancellation in its place."""
        if not self._believed():
            return self._cancel()
        return self._step(self._body.send, value)

    def throw(self, typ: Any, val: Any = None, tb: Any = None) -> Any:
        """Take a step that begins with an exception."""
        error = val if isinstance(val, BaseException) else typ
        if isinstance(error, type):
            error = error() if val is None else error(val)
        if tb is not None:
            error = error.with_traceback(tb)
        if not self._believed():
            return self._cancel()
        return self._step(self._body.throw, error)

    def close(self) -> None:
        """Close the body."""
        self._body.close()

    def __await__(self) -> Generator[Any, Any, Ended]:
        """Coroutines can be awaited; this one is only ever run as a task."""
        raise NotImplementedError

    def _cancel(self) -> Any:
        self._borne += 1
        if self._borne > CANCELLATIONS_BORNE:
            try:
                self._body.close()
            except BaseException as error:  # noqa: BLE001 - a body that refuses even to be closed
                raise StopIteration(Ended(error=error)) from None
            raise StopIteration(Ended(error=asyncio.CancelledError()))
        return self._step(self._body.throw, asyncio.CancelledError())

    @staticmethod
    def _step(step: Callable[[Any], Any], value: object) -> Any:
        try:
            return step(value)
        except StopIteration as end:
            ended = Ended(value=end.value)
        except BaseException as error:  # noqa: BLE001 - the body's end, whatever it was
            ended = Ended(error=error)
        raise StopIteration(ended)


class Descendants:
    """The tasks that a body started, so that they can be cancelled with it.

    They are told apart by the context that they inherit; a task factory, put before the one that
    the loop has, sees each as it is made.
    """

    def __init__(self) -> None:
        """No tasks yet."""
        self._tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()

    def context(self) -> contextvars.Context:
        """A copy of the present context, in which started tasks count as descendants."""
        context = contextvars.copy_context()
        context.run(_descendants.set, self)
        return context

    def add(self, task: asyncio.Task[Any]) -> None:
        """Count a task in."""
        self._tasks.add(task)

    def cancel(self) -> None:
        """Cancel those that are still running."""
        for task in list(self._tasks):
            if not task.done():
                task.cancel()


_descendants: contextvars.ContextVar[Descendants | None] = contextvars.ContextVar(
    "anarchon_descendants", default=None
)


class _Watcher:
    """A task factory that counts tasks in with the body that started them, for all schedulers."""

    def __init__(self, before: Any) -> None:
        """Come before the factory that the loop had."""
        self.before = before
        self.users = 0

    def __call__(
        self,
        loop: asyncio.AbstractEventLoop,
        coro: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        **options: Any,
    ) -> asyncio.Task[Any]:
        """Make a task as the loop would have."""
        task: asyncio.Task[Any]
        if self.before is not None:
            task = self.before(loop, coro, **options)
        else:
            task = asyncio.Task(coro, loop=loop, **options)
        # A task with a context of its own belongs to whoever that context names, not to the caller.
        context: contextvars.Context | None = options.get("context")
        mine = _descendants.get() if context is None else context.get(_descendants)
        if mine is not None:
            mine.add(task)
        return task


class WatchedLoop:
    """A loop whose tasks are counted in with the body that started them, while this is in force."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Put the watching factory before the loop's own, unless it is there already."""
        self._loop = loop
        present: Any = loop.get_task_factory()
        self._watcher = present if isinstance(present, _Watcher) else _Watcher(present)
        if self._watcher is not present:
            loop.set_task_factory(self._watcher)
        self._watcher.users += 1

    def restore(self) -> None:
        """Give the loop its own factory back, with the last user, if it is still there."""
        self._watcher.users -= 1
        if not self._watcher.users and self._loop.get_task_factory() is self._watcher:
            self._loop.set_task_factory(self._watcher.before)


def own_context() -> contextvars.Context:
    """A copy of the present context in which started tasks are nobody's descendants."""
    context = contextvars.copy_context()
    context.run(_descendants.set, None)
    return context


async def awaited(value: Awaitable[object]) -> object:
    """Await anything that can be awaited, as a coroutine."""
    return await value
