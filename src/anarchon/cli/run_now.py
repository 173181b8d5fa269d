"""`anarchon run-now`: one run of a job, here, besides its schedule."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anarchon import AnarchonError, RunMoved, RunRefused
from anarchon.cli.asking import AsJson, Code, JobName, code_of, declared, refuse_unknown
from anarchon.cli.logs import LogLevel, configure, shown
from anarchon.cli.output import plain, say, say_json

if TYPE_CHECKING:
    from anarchon import Event, Scheduler

_BY_SIGNAL = 128


def run_now(
    target: Code,
    job: JobName,
    *,
    as_json: AsJson = False,
    log_level: LogLevel = "warning",
) -> int:
    """Run a job here and now, and print what it returned.

    Nothing else is run or registered. The run obeys the job's overlap and is tried again like any
    other; Ctrl-C gives it back. The exit status is 1 if it failed or could not be started.
    """
    configure(log_level, as_json=False)
    scheduler = code_of(target, "run-now")
    if declared(scheduler, job) is None:
        refuse_unknown(scheduler, job, "declared here")
    # What the job prints must not get between a program and its answer.
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        done = asyncio.run(_Call(scheduler, job).perform())
    if as_json:
        say_json(
            {
                "job": job,
                "status": done.status,
                "result": done.result if _fits_json(done.result) else None,
                "repr": shown(done.result) if done.status == "succeeded" else None,
                "error": done.error,
            }
        )
    elif done.status == "succeeded":
        say(shown(done.result).splitlines() or [""])
    if done.error is not None:
        sys.stderr.write(f"anarchon: {plain(' '.join(done.error.split()))}\n")
    return done.exit_status


@dataclass(frozen=True, slots=True)
class _Done:
    """How the call ended."""

    status: str
    exit_status: int
    result: object = None
    error: str | None = None


class _Call:
    """One call of run_now on a scheduler that is started for it alone."""

    def __init__(self, scheduler: Scheduler, job: str) -> None:
        self._scheduler = scheduler
        self._job = job
        self._last: Event | None = None
        self._most_attempts = 0
        scheduler.on("started", "retried", "released", "cancelled", "succeeded", "failed")(
            self._hear
        )

    async def _hear(self, event: Event) -> None:
        if event.job == self._job:
            self._last = event
            # Not every event tells it.
            self._most_attempts = event.max_attempts or self._most_attempts

    async def perform(self) -> _Done:
        """Run the job; a signal ends the waiting and gives the run back."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[int] = loop.create_future()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            with contextlib.suppress(NotImplementedError):  # Windows' loops have no handlers
                loop.add_signal_handler(number, _settle, told, number)
        await self._scheduler.start(scheduled=False)
        try:
            running = asyncio.ensure_future(self._scheduler.run_now(self._job))
            either: set[asyncio.Future[Any]] = {running, told}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return self._ended(running)
            running.cancel()
        finally:
            # At once when interrupted; else there is nothing to wait for.
            await self._scheduler.stop(timeout=0)
        return _Done("interrupted", _BY_SIGNAL + told.result(), error=self._given_back())

    def _ended(self, running: asyncio.Future[object]) -> _Done:
        error = running.exception()
        if error is None:
            return _Done("succeeded", 0, result=running.result())
        if isinstance(error, RunRefused):
            return _Done("refused", 1, error=str(error))
        if isinstance(error, RunMoved):
            return _Done("moved", 1, error=str(error))
        if isinstance(error, AnarchonError):
            raise error
        return _Done("failed", 1, error=f"{self._job} failed: {_in_a_line(error)}")

    def _given_back(self) -> str:
        last = self._last
        if last is not None and last.name == "released":
            left = self._most_attempts > (last.attempt or 0)
            further = "may go on in another instance" if left else "has no attempt left"
            return f"interrupted: the run was given back, and {further}"
        if last is not None and last.name in {"succeeded", "failed", "cancelled"}:
            return f"interrupted: the run {last.name} meanwhile"
        if last is not None:
            return (
                "interrupted: the function did not stop and ends with this process; its run could"
                " not be given back and stays reserved until its lease ends"
            )
        return "interrupted before the run began"


def _settle(told: asyncio.Future[int], number: int) -> None:
    if not told.done():
        told.set_result(number)


def _in_a_line(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__qualname__}: {text}" if text else type(error).__qualname__


def _fits_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
