"""How an attempt ends when its end meets a timeout, a stop, a cancellation, or a lost lease."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from anarchon import NoRetry, Run, RunMoved, Trigger
from anarchon.backends.base import Outcome
from anarchon.engine.attempt import CANCEL_AGAIN, Attempt, Ending, Interruption
from anarchon.engine.clock import SystemClock
from anarchon.engine.heartbeat import HeldLease, ThreadCarrier
from anarchon.engine.loop_watch import LoopWatch
from anarchon.jobs import job_options, make_job
from tests.support.world import World, virtual

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anarchon import Scheduler

ONCE = "1 12 * * *"
NEVER = "0 3 * * *"
KINDS = ("async", "plain", "plain that returns a coroutine")
each_kind = pytest.mark.parametrize("kind", KINDS)


def of_kind(
    kind: str, coroutine: Callable[[Run], Awaitable[object]], plain: Callable[[Run], object]
) -> Callable[[Run], object]:
    """A job function of a kind, made from what it does as a coroutine or in its thread."""

    async def function(run: Run) -> object:
        return await coroutine(run)

    def returns_a_coroutine(run: Run) -> object:
        return coroutine(run)

    return {"async": function, "plain": plain}.get(kind, returns_a_coroutine)


def events(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """The levels and event names that were logged by anarchon, in their order."""
    records = [r for r in caplog.records if r.name.startswith("anarchon")]
    return [(record.levelname, record.__dict__["event"]) for record in records]


# -- what has ended has ended --------------------------------------------------------------------


def begun(function: Callable[..., object], *, in_thread: bool) -> Attempt:
    """An attempt under a lease of half a minute."""
    options = job_options({})
    job = make_job(function, 60, name="job", timezone=None, options=options)
    clock = SystemClock()
    held = HeldLease(clock, job.terms(30_000, 1000, 0), "60000", "token", 1, clock.boot())
    run = Run(
        job="job",
        slot=60_000,
        scheduled_for=datetime(1970, 1, 1, 0, 1, tzinfo=UTC),
        attempt=1,
        max_attempts=3,
        token="token",
        fence=1,
        runner="i1",
        trigger=Trigger.SCHEDULE,
        lost=held.stop_signal,
    )
    return Attempt(
        function,
        run,
        held,
        in_thread=in_thread,
        takes_run=True,
        timeout=5,
        on_lost=lambda: None,
        watch=LoopWatch(asyncio.get_running_loop(), clock),
    )


TOO_LATE: dict[str, Callable[[Any], None]] = {
    "shutdown": lambda attempt: attempt.interrupt(Interruption.SHUTDOWN),
    "cancelled": lambda attempt: attempt.interrupt(Interruption.CANCELLED),
    "timeout": lambda attempt: attempt._time_out(),
}


@pytest.mark.parametrize("interrupt", TOO_LATE.values(), ids=TOO_LATE)
@each_kind
def test_a_body_that_ended_is_not_interrupted_any_more(
    kind: str, interrupt: Callable[[Attempt], None]
) -> None:
    attempts: list[Attempt] = []

    async def ends(_run: Run) -> str:
        # Called in the next turn: the body is over then, and nobody has taken note of it yet.
        asyncio.get_running_loop().call_soon(interrupt, attempts[0])
        return "done"

    def plain(_run: Run) -> str:
        return "done"

    async def story() -> Ending:
        attempts.append(begun(of_kind(kind, ends, plain), in_thread=kind != "async"))
        carried_out = asyncio.create_task(attempts[0].carry_out())
        await asyncio.sleep(0)
        if kind == "plain":
            # The loop is held up until the thread is over, and a timer falls due at that time.
            for thread in threading.enumerate():
                if thread.name == "anarchon-job":
                    thread.join()
            interrupt(attempts[0])
        return await carried_out

    ending = asyncio.run(story())
    assert (ending.outcome, ending.value, ending.error) == (Outcome.SUCCEEDED, "done", None)
    assert not attempts[0].held.stop_signal.is_set()


@pytest.mark.parametrize("turns", range(-6, 7))
@virtual
async def test_a_stop_in_the_very_moment_of_an_end(world: World, turns: int) -> None:
    (instance,) = await world.start(world.job(ONCE, takes=5), shutdown_timeout=1)
    await world.at(60.5)
    (entry,) = world.entries
    # The drain is over so many turns of the loop before the body is.
    await asyncio.sleep((entry.start - world.time.now()) / 1000 + 4 - turns * 1e-6)
    await instance.stop()
    expected = {"succeeded": "succeeded", "CancelledError": "released"}
    assert await world.attempts() == [expected[entry.how]]


# -- NoRetry -------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", ["timeout", "shutdown"])
@each_kind
@virtual
async def test_no_retry_is_the_last_word_also_of_a_body_that_was_told_to_stop(
    world: World, kind: str, why: str
) -> None:
    calls: list[str] = []

    async def gives_up(run: Run) -> None:
        calls.append(run.runner)
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            raise NoRetry("not again") from None

    def plain(run: Run) -> None:
        calls.append(run.runner)
        while not run.lost.is_set():
            world.time.sleep(0.1)
        raise NoRetry("not again")

    def declare(scheduler: Scheduler) -> None:
        timeout = 5 if why == "timeout" else None
        scheduler.add_job(of_kind(kind, gives_up, plain), ONCE, name="job", timeout=timeout)

    await world.start(declare, 2)
    await world.at(62)
    if why == "shutdown":
        await world[calls[0]].stop(timeout=1)
    await world.at(120)
    assert len(calls) == 1
    assert await world.attempts() == ["failed"]
    assert await world.statuses() == ["failed"]


# -- bodies that do not hear of it ---------------------------------------------------------------


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "plain"])
@virtual
async def test_a_coroutine_that_swallows_its_timeout_is_told_again(
    world: World, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    swallowed: list[float] = []

    async def stubborn(_run: Run) -> None:
        while len(swallowed) < 4:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                swallowed.append(round(world.time.seconds, 1))
        await asyncio.sleep(100)

    function = of_kind(kind, stubborn, lambda _run: None)
    await world.start(
        lambda s: s.add_job(function, ONCE, name="job", timeout=5, max_attempts=1), lease=6
    )
    await world.at(66 + 5 * CANCEL_AGAIN)
    assert swallowed == [65 + number * CANCEL_AGAIN for number in range(4)]
    assert await world.attempts() == ["timed-out"]
    assert ("WARNING", "run.overdue") in events(caplog)
    assert events(caplog)[-1] == ("ERROR", "run.timed-out")


@virtual
async def test_a_coroutine_that_never_hears_of_its_timeout_keeps_its_lease(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def deaf(run: Run) -> None:
        with world.diary.entry(run):
            for _ in range(1000):
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(1)

    await world.start(
        lambda s: s.add_job(deaf, ONCE, name="job", timeout=5, max_attempts=2), 2, lease=6
    )
    await world.at(90)
    assert [entry.attempt for entry in world.entries] == [1]
    assert await world.attempts() == ["running"]
    # It is named, though not with every second that it goes on.
    overdue = [event for event in events(caplog) if event == ("WARNING", "run.overdue")]
    assert len(overdue) == 1


@pytest.mark.parametrize("lease", [6, 30, 60])
@virtual
async def test_a_lost_lease_is_noticed_in_time_whatever_holds_up_the_loop(
    world: World, lease: int
) -> None:
    runs: list[Run] = []

    async def body(run: Run) -> None:
        runs.append(run)
        await asyncio.sleep(200)

    (instance,) = await world.start(lambda s: s.add_job(body, ONCE, name="job"), lease=lease)
    await world.at(60.1)
    instance.line.cut(silent=True)
    instance.stall(2 * lease)
    # Only the heartbeats' own thread is left to look; each of its calls waits long for an answer.
    while not runs[0].lost.is_set() and world.time.seconds < 60 + lease:
        await world.wait(0.05)
    assert world.time.seconds == pytest.approx(60 + 0.9 * lease, abs=0.1)
    await world.at(61 + 2 * lease)


@virtual
async def test_a_thread_that_cannot_be_started_is_a_failed_attempt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start
    refused: list[str] = []

    def start_or_fail(thread: threading.Thread) -> None:
        if thread.name == "anarchon-job" and not refused:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_fail)
    await world.start(lambda s: s.add_job(lambda: None, ONCE, name="job"))
    await world.at(63)
    assert await world.attempts() == ["failed", "succeeded"]
    assert "can't start new thread" in str((await world.history("job"))[0].attempts[0].error)


def test_heartbeats_whose_thread_cannot_be_started_can_be_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[bool] = []

    def fail(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def last() -> None:
        closed.append(True)

    async def story() -> None:
        carrier = ThreadCarrier()
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", fail)
            with pytest.raises(RuntimeError, match="new thread"):
                await carrier.start()
        async with asyncio.timeout(5):
            await carrier.stop(last())

    asyncio.run(story())
    assert closed in ([], [True])


# -- what is told --------------------------------------------------------------------------------


@dataclass
class Raises(Exception):  # noqa: N818 - what it does
    """An exception whose text raises something."""

    error: BaseException

    def __str__(self) -> str:
        raise self.error

    __repr__ = __str__


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError(), ValueError()],
    ids=lambda error: type(error).__name__,
)
@each_kind
@virtual
async def test_an_error_whose_text_raises_ends_its_run_and_nothing_else(
    world: World, kind: str, error: BaseException
) -> None:
    async def fails(_run: Run) -> None:
        raise Raises(error)

    def plain(_run: Run) -> None:
        raise Raises(error)

    function = of_kind(kind, fails, plain)
    (instance,) = await world.start(
        lambda s: s.add_job(function, "* * * * *", name="job", max_attempts=1)
    )
    await world.at(121)
    assert await world.statuses() == ["failed", "failed"]
    assert str((await world.history("job"))[0].attempts[0].error).startswith("Raises")
    assert instance.scheduler.health().running


@pytest.mark.parametrize("how", ["failed", "timed-out", "no retry"])
@virtual
async def test_a_failure_is_a_warning_while_an_attempt_is_left(
    world: World, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        if how == "timed-out":
            await asyncio.sleep(10)
        raise NoRetry if how == "no retry" else ValueError

    await world.start(
        lambda s: s.add_job(body, ONCE, name="job", timeout=5, max_attempts=3, retry_delay=1)
    )
    await world.at(120)
    if how == "no retry":
        assert events(caplog) == [("ERROR", "run.no-retry")]
    else:
        levels = ("WARNING", "WARNING", "ERROR")
        assert events(caplog) == [(level, f"run.{how}") for level in levels]


@each_kind
@virtual
async def test_a_run_that_was_cancelled_is_no_error(
    world: World, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "anarchon")

    async def sleeps(_run: Run) -> None:
        await asyncio.sleep(50)

    def plain(run: Run) -> None:
        while not run.lost.is_set():
            world.time.sleep(0.1)

    function = of_kind(kind, sleeps, plain)
    (instance,) = await world.start(lambda s: s.add_job(function, NEVER, name="job"), lease=6)
    asked = asyncio.create_task(instance.do(instance.scheduler.run_now("job")))
    await world.at(1)
    (run,) = await world.history("job")
    assert (await world.backend.connect(timeout=1).cancel("job", run.id, 1000)).ok
    # A function that returned because it was told to has not done its work.
    with pytest.raises(RunMoved, match="cancelled"):
        await asked
    assert await world.attempts() == ["cancelled"]
    record = caplog.records[-1]
    assert (record.levelname, record.__dict__["event"]) == ("INFO", "run.cancelled")
    assert record.exc_info is None


@each_kind
@virtual
async def test_a_manual_run_that_was_begun_and_abandoned_is_not_said_to_be_refused(
    world: World, kind: str
) -> None:
    async def deaf(_run: Run) -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1)

    def plain(_run: Run) -> None:
        world.time.sleep(100)

    function = of_kind(kind, deaf, plain)
    (instance,) = await world.start(lambda s: s.add_job(function, NEVER, name="job"))
    asked: asyncio.Task[Any] = asyncio.create_task(instance.do(instance.scheduler.run_now("job")))
    await world.at(1)
    await instance.stop(timeout=1)
    # Who repeats a refused run would run this one twice.
    with pytest.raises(RunMoved, match="went on elsewhere"):
        await asked
