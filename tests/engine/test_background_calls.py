"""Calls to a scheduler in the background: from many threads, in time or not, and at its stop."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from anarchon import MemoryBackend, RunMoved, RunStatus, Scheduler, SchedulerStateError
from anarchon.backends.memory import MemoryStore
from tests.engine.backgrounds import (
    CALLS,
    EACH,
    NEVER,
    PATIENCE,
    Gate,
    ended,
    eventually,
    in_thread,
    own_threads,
    scheduler_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anarchon import BackgroundScheduler


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = own_threads()
    yield
    # The thread of a job ends a moment after its function has returned.
    assert eventually(lambda: own_threads() == before), own_threads()


# -- waiting ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "polite"])
def test_a_timeout_ends_only_the_waiting(kind: str) -> None:
    gate = Gate()
    with scheduler_of(getattr(gate, kind)).in_background() as background:
        with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
            background.run_now("job", timeout=0.05)
        assert gate.begun.wait(PATIENCE)
        (run,) = background.history("job")
        assert run.status is RunStatus.RUNNING
        gate.open.set()
        while background.state("job").open_runs:
            pass
        assert [run.status for run in background.history("job")] == [RunStatus.SUCCEEDED]


@EACH
def test_called_in_its_own_loop_a_method_says_so(call: str) -> None:
    told: list[str] = []
    scheduler = Scheduler(backend=MemoryBackend())
    background = scheduler.in_background()

    async def job() -> None:
        with pytest.raises(SchedulerStateError) as caught:
            CALLS[call](background)
        told.append(str(caught.value))

    scheduler.add_job(job, NEVER, name="job")
    with background:
        background.run_now("job")
    (text,) = told
    assert "its own" in text or "own event loop" in text
    assert "await the method of the scheduler itself" in text


def test_its_own_loop_cannot_stop_it_but_may_ask_how_it_is() -> None:
    scheduler = Scheduler(backend=MemoryBackend())
    background = scheduler.in_background()

    async def job() -> bool:
        with pytest.raises(SchedulerStateError, match="own event loop"):
            background.stop()
        return background.health().running and len(background.jobs) == 1

    scheduler.add_job(job, NEVER, name="job")
    with background:
        assert background.run_now("job") is True
        assert background.health().running


def test_async_jobs_await_the_scheduler_itself() -> None:
    scheduler = Scheduler(backend=MemoryBackend())

    async def inner() -> int:
        return 7

    async def outer() -> object:
        return await scheduler.run_now("inner")

    scheduler.add_job(inner, NEVER, name="inner")
    scheduler.add_job(outer, NEVER, name="outer")
    with scheduler.in_background() as background:
        assert background.run_now("outer") == 7


def test_a_plain_job_may_ask_for_another() -> None:
    scheduler = Scheduler(backend=MemoryBackend())
    background = scheduler.in_background()
    scheduler.add_job(lambda: 7, NEVER, name="inner")
    scheduler.add_job(lambda: background.run_now("inner"), NEVER, name="outer")
    with background:
        assert background.run_now("outer") == 7


def test_many_calls_from_many_threads() -> None:
    with scheduler_of().in_background() as background:

        def ask(number: int) -> object:
            if number % 4 == 0:
                return background.run_now("job") == 7
            if number % 4 == 1:
                return len(background.history("job", 10)) <= 10
            if number % 4 == 2:
                return background.state("job").known
            return background.health().running

        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(ask, range(200), timeout=PATIENCE))
        assert answers == [True] * 200
        assert len(background.history("job", 200)) == 50


def test_two_of_them_in_one_process() -> None:
    backend = MemoryBackend()

    def made(name: str) -> BackgroundScheduler:
        scheduler = Scheduler(backend=backend, runner=name)
        scheduler.add_job(lambda: name, NEVER, name="job")
        return scheduler.in_background()

    first, second = made("a"), made("b")
    with first:
        with second:
            assert (first.run_now("job"), second.run_now("job")) == ("a", "b")
            assert [i.runner for i in first.instances()] == ["a", "b"]
            assert len(second.history("job")) == 2
        assert [i.runner for i in first.instances()] == ["a"]
        assert first.run_now("job") == "a"


# -- stop ------------------------------------------------------------------------------------------


def test_stop_lets_running_jobs_end() -> None:
    gate = Gate()
    background = scheduler_of(gate.polite).in_background()
    background.start()
    caller, told = in_thread(lambda: background.run_now("job"))
    assert gate.begun.wait(PATIENCE)
    stopping, _ = in_thread(lambda: background.stop(PATIENCE))
    gate.open.set()
    assert ended(caller)
    assert ended(stopping)
    assert told == ["through"]


def test_a_run_that_is_waited_for_is_given_back_at_a_stop() -> None:
    gate = Gate()
    scheduler = Scheduler(backend=MemoryBackend(), shutdown_timeout=10 * PATIENCE)
    scheduler.add_job(gate.polite, NEVER, name="job")
    background = scheduler.in_background()
    background.start()
    caller, told = in_thread(lambda: background.run_now("job"))
    assert gate.begun.wait(PATIENCE)
    stopping, _ = in_thread(lambda: background.stop(timeout=0))
    in_time = ended(stopping)
    gate.open.set()
    assert in_time
    assert ended(caller)
    (error,) = told
    assert isinstance(error, RunMoved)


def test_a_call_that_waits_while_it_is_stopped_is_told() -> None:
    class Slow(MemoryBackend):
        asked = threading.Event()

        def connect(self, *, timeout: float) -> MemoryStore:
            asked = self.asked

            class Store(MemoryStore):
                async def history(self, job: str, limit: int) -> Any:
                    asked.set()
                    await asyncio.sleep(PATIENCE)

            return Store(self, self._clock)

    scheduler = Scheduler(backend=Slow())
    background = scheduler.in_background()
    background.start()
    caller, told = in_thread(lambda: background.history("job"))
    assert Slow.asked.wait(PATIENCE)
    background.stop()
    assert ended(caller)
    (error,) = told
    assert isinstance(error, SchedulerStateError)
    assert "stopped meanwhile" in str(error)


def test_stopping_at_once_from_several_threads() -> None:
    background = scheduler_of().in_background()
    background.stop()
    background.start()
    stopping = [in_thread(background.stop) for _ in range(5)]
    assert all(ended(thread) for thread, _ in stopping)
    assert [told for _, told in stopping] == [[None]] * 5
    background.stop()
    assert not background.health().running


def test_after_a_stop_nothing_is_left_to_do_at_the_exit() -> None:
    background = scheduler_of().in_background()
    for _ in range(2):
        with background:
            background.run_now("job")
    remembered = weakref.ref(background)
    del background
    gc.collect()
    assert remembered() is None  # the interpreter's exit would still know it


def test_leaving_the_block_by_an_error_stops_it() -> None:
    background = scheduler_of().in_background()
    with pytest.raises(ZeroDivisionError), background:
        raise ZeroDivisionError
    assert not background.health().running
    assert own_threads() == []
