"""One instance of the demo's application: a process of its own, with a scheduler as anybody's.

It ends when it is told to, and when the process that started it is gone: the pipe to its standard
input ends then, however that came about.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from anarchon import AnarchonError, RedisBackend, Scheduler
from anarchon.cli.demo.jobs import LEASE, PLANS, StoppedShort
from anarchon.cli.demo.records import Kind, Record, Teller

if TYPE_CHECKING:
    from anarchon import Run
    from anarchon.cli.demo.jobs import Plan

_OVERDUE = 8.0
"""Seconds after which a process that was told to end is ended, whatever holds it up."""


def main() -> int:
    """Run an instance on the store and prefix of the arguments; return the exit status."""
    url, prefix = sys.argv[1:]
    teller = Teller(sys.stdout.fileno())
    try:
        asyncio.run(_serve(url, prefix, teller))
    except AnarchonError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


async def _serve(url: str, prefix: str, teller: Teller) -> None:
    scheduler = Scheduler(backend=_TellingBackend(url, prefix, teller), lease=LEASE)
    for plan in PLANS:
        body = _Body(plan, teller)
        function = body.run if plan.work else body.run_in_thread
        settings = plan.settings.copy()
        settings["name"] = plan.name
        scheduler.add_job(function, plan.schedule, **settings)
    claims = logging.getLogger("anarchon.claims")
    claims.setLevel(logging.INFO)
    claims.addHandler(_Skips(teller))
    end = _end_by_input()
    seconds = 0.0
    await scheduler.start()
    try:
        ahead = round(scheduler.health().clock_ahead * 1000)
        teller.tell(Record(Kind.UP, os.getpid(), _now(), detail=ahead))
        seconds = await end
    finally:
        await scheduler.stop(timeout=seconds)


class _Body:
    """The function of a job: its work, between two records that say when it began and ended."""

    def __init__(self, plan: Plan, teller: Teller) -> None:
        self._plan = plan
        self._teller = teller

    async def run(self, run: Run) -> None:
        if self._plan.work is None:
            return
        self._tell(Kind.BEGAN, run)
        try:
            await self._plan.work(run)
        except BaseException as error:
            self._tell_error(run, error)
            raise
        self._tell(Kind.DONE, run)

    def run_in_thread(self, run: Run) -> None:
        if self._plan.thread_work is None:
            return
        self._tell(Kind.BEGAN, run)
        try:
            self._plan.thread_work(run)
        except BaseException as error:
            self._tell_error(run, error)
            raise
        self._tell(Kind.DONE, run)

    def _tell_error(self, run: Run, error: BaseException) -> None:
        stopped = isinstance(error, (asyncio.CancelledError, StoppedShort))
        self._tell(Kind.STOPPED if stopped else Kind.FAILED, run)

    def _tell(self, kind: Kind, run: Run) -> None:
        self._teller.tell(Record(kind, os.getpid(), _now(), run.job, run.slot, run.attempt))


class _Skips(logging.Handler):
    """Hears from the log which slots this instance let pass."""

    def __init__(self, teller: Teller) -> None:
        super().__init__()
        self._teller = teller

    def emit(self, record: logging.LogRecord) -> None:
        said: dict[str, Any] = vars(record)
        if said.get("event") == "run.skipped":
            self._teller.tell(Record(Kind.SKIPPED, os.getpid(), _now(), said["job"], said["slot"]))


class _TellingBackend(RedisBackend):
    """The backend, with a word whenever a lease was renewed: the view shows it run down."""

    def __init__(self, url: str, prefix: str, teller: Teller) -> None:
        super().__init__(redis=url, prefix=prefix)
        self._teller = teller

    def connect(self, *, timeout: float) -> Any:
        return _TellingStore(super().connect(timeout=timeout), self._teller)


class _TellingStore:
    """Hands every call on, and tells of heartbeats that were answered with yes."""

    def __init__(self, store: Any, teller: Teller) -> None:
        self._store = store
        self._teller = teller

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def heartbeat(self, terms: Any, run: str, token: str) -> Any:
        answer = await self._store.heartbeat(terms, run, token)
        if answer.ok:
            self._teller.tell(Record(Kind.BEAT, os.getpid(), _now(), terms.job, int(run)))
        return answer


def _end_by_input() -> asyncio.Future[float]:
    """The seconds that running jobs get, once this process is told to end."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[float] = loop.create_future()

    def read() -> None:
        # Past Python's own buffer: a thread that waits on its lock would disturb the exit.
        words = os.read(sys.stdin.fileno(), 100).decode().strip()
        loop.call_soon_threadsafe(told.set_result, float(words) if words else 0.0)
        time.sleep(_OVERDUE)
        os._exit(1)

    threading.Thread(target=read, name="demo-input", daemon=True).start()
    return told


def _now() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    sys.exit(main())
