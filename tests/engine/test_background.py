"""A scheduler beside a program without an event loop: real threads, and a store in memory."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from anarchon import (
    ConfigurationError,
    Environment,
    Health,
    MemoryBackend,
    RedisBackend,
    RunRefused,
    RunStatus,
    Scheduler,
    SchedulerStateError,
    StoreFormatError,
    UnknownJobError,
)
from anarchon.backends.memory import MemoryStore
from anarchon.engine.clock import SystemClock
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

    from tests.support.server import Server


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = own_threads()
    yield
    # The thread of a job ends a moment after its function has returned.
    assert eventually(lambda: own_threads() == before), own_threads()


# -- what it does ----------------------------------------------------------------------------------


def test_it_runs_jobs_on_their_schedule() -> None:
    three = threading.Semaphore(0)
    scheduler = scheduler_of(three.release, schedule=0.05)
    with scheduler.in_background():
        assert all(three.acquire(timeout=PATIENCE) for _ in range(3))
    assert not scheduler.health().running


def test_every_method_answers() -> None:
    with scheduler_of().in_background() as background:
        assert background.run_now("job") == 7
        (run,) = background.history("job")
        assert run.status is RunStatus.SUCCEEDED
        assert background.history("job", limit=1) == (run,)
        assert background.why("job", run.id).sentences[0] == "It succeeded."
        background.pause("job", until=datetime(2999, 1, 1, tzinfo=UTC), note="so")
        state = background.state("job")
        assert (state.paused, state.paused_note, state.open_runs) == (True, "so", ())
        assert background.resume("job")
        assert not background.resume("job")
        assert background.cancel("job", run.id) == ()
        assert background.cancel("job") == ()
        (instance,) = background.instances()
        assert instance.jobs == {"job": f"cron:{NEVER}@UTC overlap=allow"}
        assert {finding.level for finding in background.check()} == {"ok"}
        health = background.health()
        assert (health.running, health.store) == (True, True)
        assert health.loop_lag < 5
        (job,) = background.jobs
        assert job.name == "job"
        with pytest.raises(SchedulerStateError, match="still runs job"):
            background.forget("job")


def test_on_demand_in_the_background() -> None:
    called = threading.Event()
    background = scheduler_of(called.set, schedule=0.05).in_background(scheduled=False)
    with background:
        assert background.health().running
        assert not called.wait(0.3)
        background.run_now("job")
        assert called.is_set()
        assert background.state("job").since is None
        assert background.forget("job")
        assert background.history("job") == ()


def test_with_a_server(redis7: Server) -> None:
    scheduler = Scheduler(backend=RedisBackend(redis=redis7.url), runner="me")
    called = threading.Event()

    @scheduler.job(0.1, name="job")
    def job() -> str:
        called.set()
        return "done"

    with scheduler.in_background() as background:
        assert called.wait(PATIENCE)
        background.pause("job")
        gate = background.run_now("job", timeout=PATIENCE)
        assert gate == "done"
        assert [i.runner for i in background.instances()] == ["me"]
        assert background.why("job", background.history("job")[0].id).sentences
        assert background.health().store
    assert redis7.command("EXISTS", "cron:instances") == 0
    assert not background.health().running
    # A scheduler that is stopped answers on a loop of the caller's own.
    assert asyncio.run(scheduler.state("job")).paused


# -- what jobs raise, and refusals -----------------------------------------------------------------


def test_what_a_job_raises_is_raised() -> None:
    def broken() -> None:
        raise KeyError("no")

    scheduler = Scheduler(backend=MemoryBackend())
    scheduler.add_job(broken, NEVER, name="job", max_attempts=1)
    with scheduler.in_background() as background, pytest.raises(KeyError, match="no"):
        background.run_now("job")


def test_a_refused_run_is_told() -> None:
    gate = Gate()
    scheduler = Scheduler(backend=MemoryBackend())
    scheduler.add_job(gate.plain, NEVER, name="job")
    with scheduler.in_background() as background:
        thread, told = in_thread(lambda: background.run_now("job"))
        assert gate.begun.wait(PATIENCE)
        with pytest.raises(RunRefused):
            background.run_now("job")
        gate.open.set()
        assert ended(thread)
    assert told == ["through"]


def test_wrong_questions_are_refused() -> None:
    naive = datetime(2026, 1, 5)  # noqa: DTZ001 - naive on purpose
    with scheduler_of().in_background() as background:
        with pytest.raises(UnknownJobError, match=r"did you mean 'job'\?"):
            background.run_now("jb")
        with pytest.raises(ConfigurationError, match="aware"):
            background.why("job", naive)
        with pytest.raises(ConfigurationError, match="aware"):
            background.pause("job", until=naive)
        with pytest.raises(ConfigurationError, match="limit"):
            background.history("job", 0)


# -- start -----------------------------------------------------------------------------------------


class _Refusing(MemoryBackend):
    """A store that may not be opened, until it may."""

    refuses = True

    def connect(self, *, timeout: float) -> MemoryStore:
        refuses = self.refuses

        class Store(MemoryStore):
            async def open(self) -> tuple[str, ...]:
                if refuses:
                    raise StoreFormatError("a newer format")
                return ()

        return Store(self, self._clock)


def test_errors_of_the_start_are_raised_in_it() -> None:
    backend = _Refusing()
    scheduler = Scheduler(backend=backend)
    scheduler.add_job(lambda: 7, NEVER, name="job")
    background = scheduler.in_background()
    with pytest.raises(StoreFormatError, match="a newer format"):
        background.start()
    assert own_threads() == []
    with pytest.raises(SchedulerStateError, match="not started"):
        background.run_now("job")
    background.stop()
    backend.refuses = False
    with background:
        assert background.run_now("job") == 7


def test_starting_twice_is_refused() -> None:
    scheduler = scheduler_of()
    with scheduler.in_background() as background:
        with pytest.raises(SchedulerStateError, match="started already"):
            background.start()
        with pytest.raises(SchedulerStateError, match="started already"):
            scheduler.in_background().start()
        assert background.run_now("job") == 7


def test_starting_after_a_stop() -> None:
    scheduler = scheduler_of()
    background = scheduler.in_background()
    for _ in range(3):
        with background:
            assert background.run_now("job") == 7
    assert len(asyncio.run(scheduler.history("job"))) == 3


def test_jobs_and_listeners_are_declared_before() -> None:
    scheduler = scheduler_of()
    decorate = scheduler.on("failed")
    with scheduler.in_background():
        with pytest.raises(SchedulerStateError, match="before the scheduler starts"):
            scheduler.add_job(lambda: 8, NEVER, name="other")
        with pytest.raises(SchedulerStateError, match="before the scheduler starts"):
            scheduler.on("failed")(lambda: None)
        with pytest.raises(SchedulerStateError, match="before the scheduler starts"):
            decorate(lambda: None)


@EACH
def test_before_a_start_and_after_a_stop_methods_say_so(call: str) -> None:
    background = scheduler_of().in_background()
    with pytest.raises(SchedulerStateError, match="not started"):
        CALLS[call](background)
    with background:
        pass
    with pytest.raises(SchedulerStateError, match="not started"):
        CALLS[call](background)


def test_health_and_jobs_answer_always() -> None:
    background = scheduler_of().in_background()
    nothing = Health(running=False, store=False, loop_lag=0.0, clock_ahead=0.0)
    assert background.health() == nothing
    assert [job.name for job in background.jobs] == ["job"]
    with background:
        assert background.health().running
    assert background.health() == nothing
    assert [job.name for job in background.jobs] == ["job"]


# -- health ----------------------------------------------------------------------------------------


def test_a_blocked_loop_is_not_running() -> None:
    gate = Gate()
    with scheduler_of(gate.rude).in_background() as background:
        thread, _ = in_thread(lambda: background.run_now("job"))
        assert gate.begun.wait(PATIENCE)
        health = background.health()
        gate.open.set()
        assert ended(thread)
        assert (health.running, health.store) == (False, True)
        assert health.loop_lag >= 1.0
        assert background.health().running


class _Leaping(SystemClock):
    """This host's clock, a while later."""

    later = 0.0

    def boot(self) -> float:
        return super().boot() + self.later


def test_the_lag_of_a_blocked_loop_is_told_to_other_threads() -> None:
    gate, clock = Gate(), _Leaping()
    scheduler = Scheduler(backend=MemoryBackend(), environment=Environment(clock=clock))
    scheduler.add_job(gate.rude, NEVER, name="job")
    with scheduler.in_background() as background:
        assert scheduler.health().loop_lag < 1
        thread, _ = in_thread(lambda: background.run_now("job"))
        assert gate.begun.wait(PATIENCE)
        clock.later = 70.0  # the clock check was due ten seconds ago
        lag = scheduler.health().loop_lag
        clock.later = 0.0
        gate.open.set()
        assert ended(thread)
    assert lag == pytest.approx(10, abs=3)
