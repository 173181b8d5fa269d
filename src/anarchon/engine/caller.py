"""Who waits for a manual run, and what they are told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from anarchon.backends.base import Outcome
from anarchon.errors import RunMoved, RunRefused

if TYPE_CHECKING:
    from anarchon.engine.attempt import Ending


class Caller:
    """Waits for the result of a manual run; told once."""

    def __init__(self, job: str) -> None:
        """Wait for a run of `job`."""
        self._job = job
        self.result: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.result.add_done_callback(_retrieved)

    def moved(self) -> None:
        """Another instance has the next attempt."""
        if not self.result.done():
            self.result.set_exception(RunMoved(f"{self._job}: the run went on elsewhere"))

    def settle(self, ending: Ending | None, *, began: bool = False, refusal: str = "") -> None:
        """The run is over here, with the ending of its last attempt, or without one.

        `began`: a body was started, though nothing is known of its end. `refusal`: why none was.
        """
        if self.result.done():
            return
        if ending is None and began:
            message = f"{self._job}: begun here, the run went on elsewhere or was cancelled"
            self.result.set_exception(RunMoved(message))
        elif ending is None:
            message = f"{self._job}: not run now: {refusal or 'the scheduler is stopping'}"
            self.result.set_exception(RunRefused(message))
        elif ending.outcome is None:
            message = f"{self._job}: its lease was lost here, so others may go on with the run"
            self.result.set_exception(RunMoved(message))
        elif ending.outcome is Outcome.RELEASED:
            message = f"{self._job}: the scheduler stopped; the run was given back for others"
            self.result.set_exception(RunMoved(message))
        elif ending.outcome is Outcome.CANCELLED:
            self.result.set_exception(RunMoved(f"{self._job}: the run was cancelled"))
        elif ending.error is None:
            self.result.set_result(ending.value)
        elif not issubclass(type(ending.error), Exception) or issubclass(
            type(ending.error), StopIteration
        ):
            # A future cannot raise a StopIteration; and a job's SystemExit, KeyboardInterrupt or
            # cancellation must not become the caller's.
            failure = RuntimeError(f"{self._job}: ended by {type(ending.error).__name__}")
            failure.__cause__ = ending.error
            self.result.set_exception(failure)
        else:
            self.result.set_exception(ending.error)


def _retrieved(future: asyncio.Future[object]) -> None:
    """Keep asyncio from complaining when nobody awaits a run that failed: it was logged."""
    if not future.cancelled():
        future.exception()
