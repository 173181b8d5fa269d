"""Runs a job's coroutine step by step, so that a holder that lost its lease takes none.

A process that was suspended past its lease wakes in the middle of a body, with another instance at
work on the same run. So before each step the driver looks whether the lease may still be believed
in; when not, the step becomes a cancellation, and so does every later one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any

from anarchon.engine.forks import Ended, leave_if_forked

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from anarchon.engine.loop_watch import LoopWatch

CANCELLATIONS_BORNE = 3
"""How often a body may swallow its cancellation before it is closed."""


class Driven(Coroutine[Any, Any, Ended]):
    """A coroutine that takes a step only while `believed` says yes, and ends with an `Ended`.

    What the body raises is a result here, also SystemExit, KeyboardInterrupt and GeneratorExit,
    which would otherwise stop the event loop for a job's sake.
    """

    def __init__(
        self,
        body: Coroutine[Any, Any, object],
        believed: Callable[[], bool],
        job: str,
        watch: LoopWatch,
    ) -> None:
        """Drive `body` of `job`; `watch` knows while a step is taken."""
        self._body = body
        self._job = job
        self._watch = watch
        self._believed = believed
        self._borne = 0
        self._process = os.getpid()
        self.ended: bool = False
        """Whether the body is over, also while nobody has taken note of it yet."""
        self.__name__: str = getattr(body, "__name__", type(body).__name__)
        self.__qualname__: str = getattr(body, "__qualname__", self.__name__)

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
            ended = Ended(error=asyncio.CancelledError())
            try:
                self._body.close()
            except BaseException as error:  # noqa: BLE001 - a body that refuses even to be closed
                ended = Ended(error=error)
            self.ended = True
            raise StopIteration(ended)
        return self._step(self._body.throw, asyncio.CancelledError())

    def _step(self, step: Callable[[Any], Any], value: object) -> Any:
        leave_if_forked(self._process, None)
        self._watch.step = self._job
        try:
            awaited_by_body = step(value)
        except StopIteration as end:
            ended = Ended(value=end.value)
        except BaseException as error:  # noqa: BLE001 - the body's end, whatever it was
            ended = Ended(error=error)
        else:
            leave_if_forked(self._process, None)
            return awaited_by_body
        finally:
            self._watch.step = ""
        leave_if_forked(self._process, ended)
        self.ended = True
        raise StopIteration(ended)


async def awaited(value: Awaitable[object]) -> object:
    """Await anything that can be awaited, as a coroutine."""
    return await value
