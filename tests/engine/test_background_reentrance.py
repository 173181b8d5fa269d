"""Calls of a scheduler in the background from where they break in on another call of it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from anarchon import MemoryBackend, Scheduler, SchedulerStateError
from anarchon.backends.memory import MemoryStore
from tests.engine.backgrounds import CALLS, EACH, NEVER, PATIENCE, eventually, own_threads
from tests.processes.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anarchon import BackgroundScheduler


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = own_threads()
    yield
    assert eventually(lambda: own_threads() == before), own_threads()


PROGRAM = """
import os, signal, sys, threading, time
from anarchon import MemoryBackend, Scheduler

scheduler = Scheduler(backend=MemoryBackend(), shutdown_timeout=1)
begun, again = threading.Event(), threading.Event()

@scheduler.job("0 0 29 2 *", name="job")
def job():
    begun.set()
    again.wait(20)
    return "through"

background = scheduler.in_background()
calls = []

def stop(number, frame):
    calls.append("asked")
    if len(calls) == 2:
        again.set()
    background.stop()
    calls.append("stopped")

background.start()
signal.signal(signal.SIGTERM, stop)
threading.Thread(target=background.run_now, args=("job",), daemon=True).start()
begun.wait(20)
# The second signal comes while the handler of the first one waits for the drain.
def second():
    while not calls:
        time.sleep(0.01)
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=second, daemon=True).start()
os.kill(os.getpid(), signal.SIGTERM)
while len(calls) < 4:
    time.sleep(0.01)
print(calls, background.health().running)
"""


@pytest.mark.processes
def test_a_signals_handler_may_stop_it_while_it_is_stopped() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "['asked', 'asked', 'stopped', 'stopped'] False\n"


def test_a_stop_that_breaks_in_on_a_start_stops_what_is_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler = Scheduler(backend=MemoryBackend(), shutdown_timeout=0.1)
    scheduler.add_job(lambda: 7, NEVER, name="job")
    background = scheduler.in_background()
    opening, go_on = threading.Event(), threading.Event()
    open_store = MemoryStore.open
    result = concurrent.futures.Future[None].result

    async def slow(self: MemoryStore) -> tuple[str, ...]:
        opening.set()
        assert go_on.wait(PATIENCE)
        return await open_store(self)

    def interrupted(self: concurrent.futures.Future[None], timeout: float | None = None) -> None:
        """Wait, as `start` does, and let a signal's handler stop it meanwhile."""
        assert opening.wait(PATIENCE)
        threading.Timer(0.1, go_on.set).start()
        background.stop()
        result(self, timeout)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "open", slow)
        patch.setattr(concurrent.futures.Future, "result", interrupted)
        with contextlib.suppress(SchedulerStateError):
            background.start()
    assert own_threads() == []
    assert not scheduler.health().running
    with background:
        assert background.run_now("job") == 7


Early = Callable[[Callable[["BackgroundScheduler"], object]], object]


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> Early:
    """What a call answers, or raises, in the loop's thread before `start` takes a further step."""
    over = threading.Event()
    begin = threading.Thread.start

    def begin_and_wait(self: threading.Thread) -> None:
        begin(self)
        if self.name == "anarchon-scheduler":
            assert over.wait(PATIENCE), "the call waits for itself"

    def told_by(call: Callable[[BackgroundScheduler], object]) -> object:
        told: list[object] = []
        scheduler = Scheduler(backend=MemoryBackend(), shutdown_timeout=0.1)
        scheduler.add_job(lambda: 7, NEVER, name="job")
        background = scheduler.in_background()

        @scheduler.on("scheduler-started")
        async def up() -> None:
            try:
                told.append(call(background))
            except RuntimeError as error:
                told.append(error)
            over.set()

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", begin_and_wait)
            background.start()
        background.stop()
        (one,) = told
        return one

    return told_by


@EACH
def test_an_early_listener_is_told_that_a_method_would_wait_for_itself(
    early: Early, call: str
) -> None:
    told = early(CALLS[call])
    assert isinstance(told, SchedulerStateError)
    assert "own event loop" in str(told)


def test_an_early_listener_cannot_stop_it(early: Early) -> None:
    assert isinstance(early(lambda background: background.stop()), SchedulerStateError)


def test_an_early_listener_may_ask_how_it_is(early: Early) -> None:
    assert early(lambda background: background.health().running) is True


def test_a_run_whose_beginning_takes_longer_than_its_caller_waits_is_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler = Scheduler(backend=MemoryBackend(), shutdown_timeout=0.1)
    ran, asked, answer = threading.Event(), threading.Event(), threading.Event()
    scheduler.add_job(ran.set, NEVER, name="job")
    clock = MemoryStore.clock

    async def slow(self: MemoryStore, runner: str, told: str, silent: int) -> int:
        while asked.is_set() and not answer.is_set():  # noqa: ASYNC110 - a thread's
            await asyncio.sleep(0.01)
        return await clock(self, runner, told, silent)

    with scheduler.in_background() as background:
        monkeypatch.setattr(MemoryStore, "clock", slow)
        asked.set()
        with pytest.raises(TimeoutError, match="goes on"):
            background.run_now("job", timeout=0.1)
        answer.set()
        assert ran.wait(PATIENCE)


def test_a_cancelled_future_of_a_jobs_own_is_an_error_of_the_job() -> None:
    scheduler = Scheduler(backend=MemoryBackend(), shutdown_timeout=0.1)

    def job() -> None:
        raise concurrent.futures.CancelledError

    scheduler.add_job(job, NEVER, name="job", max_attempts=1)
    with (
        scheduler.in_background() as background,
        pytest.raises(RuntimeError, match="CancelledError") as caught,
    ):
        background.run_now("job")
    assert isinstance(caught.value.__cause__, concurrent.futures.CancelledError)
