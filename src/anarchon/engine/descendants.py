"""The tasks that a job's body started, so that they can be cancelled with it.

They are told apart by the context that they inherit; a task factory, put before the one that the
loop has, sees each as it is made.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import weakref
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator


class Descendants:
    """The tasks that one body started."""

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
        # A task with a context of its own belongs to whoever that context names, not to the caller.
        context: contextvars.Context | None = options.get("context")
        mine = _descendants.get() if context is None else context.get(_descendants)
        if mine is not None and asyncio.iscoroutine(coro):
            coro = _Guarded(coro)
        task: asyncio.Task[Any]
        if self.before is not None:
            task = self.before(loop, coro, **options)
        else:
            task = asyncio.Task(coro, loop=loop, **options)
        if mine is not None:
            mine.add(task)
        return task


class _Guarded(Coroutine[Any, Any, Any]):
    """A coroutine whose SystemExit or KeyboardInterrupt ends it, and not the event loop.

    asyncio lets these two of any task out of the loop: one job would end the whole process, and
    then the process of each backup. No coroutine function, so that one that never begins is not
    complained of twice.
    """

    def __init__(self, coro: Coroutine[Any, Any, Any]) -> None:
        """Guard `coro`."""
        self._coro = coro
        self.__name__: str = getattr(coro, "__name__", type(coro).__name__)
        self.__qualname__: str = getattr(coro, "__qualname__", self.__name__)

    def send(self, value: Any) -> Any:
        """Take a step."""
        with _no_exit():
            return self._coro.send(value)

    def throw(self, typ: Any, val: Any = None, tb: Any = None) -> Any:
        """Take a step that begins with an exception."""
        error = val if isinstance(val, BaseException) else typ
        with _no_exit():
            return self._coro.throw(error if tb is None else error.with_traceback(tb))

    def close(self) -> None:
        """Close the coroutine."""
        self._coro.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        """Coroutines can be awaited; this one is only ever run as a task."""
        raise NotImplementedError


@contextlib.contextmanager
def _no_exit() -> Generator[None]:
    try:
        yield
    except (SystemExit, KeyboardInterrupt) as error:
        message = f"a task that a job or listener started ended by {type(error).__name__}"
        raise RuntimeError(message) from error


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
