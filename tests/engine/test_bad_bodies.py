"""Job functions that misuse what they are given: the others and the loop go on, stop() keeps time.

What the operating system is needed for (forks, signals, descriptors) is in tests/processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import inspect
import logging
import threading
import time
import types
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from anarchon import MemoryBackend, RunMoved, Scheduler
from tests.support.world import World, minutes, virtual

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from anarchon import Run
    from anarchon.testing import Instance

ONCE = "1 12 * * *"
NEVER = "0 3 * * *"
EVERY_MINUTE = "* * * * *"


async def nothing() -> None:
    """Do nothing."""


# -- what async bodies do ------------------------------------------------------------------------


async def runs_a_loop(_instance: Instance) -> None:
    inner = nothing()
    with contextlib.closing(inner):
        asyncio.run(inner)


async def runs_its_own_loop(_instance: Instance) -> None:
    loop = asyncio.get_running_loop()
    loop.run_until_complete(loop.create_future())


async def closes_the_loop(_instance: Instance) -> None:
    asyncio.get_running_loop().close()


async def closes_its_own_coroutine(_instance: Instance) -> None:
    coroutine: Any = mine().get_coro()
    coroutine.close()


async def awaits_its_own_task(_instance: Instance) -> None:
    await mine()


async def awaits_what_belongs_to_another_loop(_instance: Instance) -> None:
    other = asyncio.new_event_loop()
    try:
        await other.create_future()
    finally:
        other.close()


async def awaits_what_yields_a_number(_instance: Instance) -> None:
    class Yields:
        def __await__(self) -> Generator[Any, Any, None]:
            yield 7

    await Yields()


async def awaits_what_is_no_iterator(_instance: Instance) -> None:
    class Wrong:
        def __await__(self) -> Any:
            return 7

    await Wrong()


async def gives_way_very_often(_instance: Instance) -> None:
    for _ in range(2000):
        await asyncio.sleep(0)


async def leaves_a_generator_unfinished(_instance: Instance) -> None:
    async def numbers() -> AsyncGenerator[int]:
        try:
            for number in range(10):
                yield number
        finally:
            await asyncio.sleep(0.1)

    async for _ in numbers():  # pragma: no branch
        return


async def cancels_itself_often(_instance: Instance) -> None:
    for _ in range(100):
        mine().cancel()
    await asyncio.sleep(1)


async def takes_its_own_cancellation_back(_instance: Instance) -> None:
    mine().cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(1)
    mine().uncancel()


async def uses_up_the_stack(_instance: Instance) -> None:
    def deeper() -> None:
        deeper()

    deeper()


async def uses_up_the_memory(_instance: Instance) -> None:
    raise MemoryError


async def raises_what_ends_iterations(_instance: Instance) -> None:
    raise StopAsyncIteration


async def raises_a_timeout_of_its_own(_instance: Instance) -> None:
    raise TimeoutError


async def raises_what_is_false(_instance: Instance) -> None:
    class Nothing(Exception):  # noqa: N818
        def __bool__(self) -> bool:
            raise RuntimeError("neither true nor false")

    raise Nothing


class Nameless(type):
    """Makes classes that do not tell their names."""

    def __getattribute__(cls, name: str) -> Any:
        if name in {"__name__", "__qualname__"}:
            raise RuntimeError("no name")
        return super().__getattribute__(name)


class NoName(Exception, metaclass=Nameless):  # noqa: N818
    """An exception of a class without a name."""


class NoClass(Exception):  # noqa: N818
    """An exception that does not tell its class, as a proxy for nothing."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("no class")

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise RuntimeError(value)


class NoTraceback(Exception):  # noqa: N818
    """An exception that ends the process when it is asked where it comes from."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__traceback__":
            raise SystemExit(3)
        return super().__getattribute__(name)


async def raises_what_has_no_name(_instance: Instance) -> None:
    raise NoName


async def raises_what_has_no_class(_instance: Instance) -> None:
    raise NoClass


async def raises_what_has_no_traceback(_instance: Instance) -> None:
    raise NoTraceback


async def raises_what_causes_itself(_instance: Instance) -> None:
    error, other = ValueError(), ValueError()
    error.__cause__, other.__cause__ = other, error
    error.__context__ = other
    raise error


async def raises_what_has_many_causes(_instance: Instance) -> None:
    error: ValueError | None = None
    for number in range(2000):
        caused = ValueError(number)
        caused.__cause__ = error
        error = caused
    assert error is not None
    raise error


async def raises_from_many_frames(_instance: Instance) -> None:
    trace: types.TracebackType | None = None
    frame = inspect.currentframe()
    assert frame is not None
    for _ in range(2000):
        trace = types.TracebackType(trace, frame, frame.f_lasti, frame.f_lineno)
    raise ValueError.with_traceback(ValueError(), trace)


async def raises_a_group_of_groups(_instance: Instance) -> None:
    error: Exception = ValueError()
    for _ in range(2000):
        inner: list[Exception] = [error]
        error = ExceptionGroup("group", inner)
    raise error


async def raises_a_large_group(_instance: Instance) -> None:
    raise ExceptionGroup("group", [ValueError("x" * 100) for _ in range(2000)])


async def returns_much(_instance: Instance) -> bytes:
    return bytes(50_000_000)


class Resists:
    """A value of which nothing can be asked."""

    def refuse(self, *_arguments: object) -> Any:
        raise RuntimeError("leave me alone")

    __bool__ = __eq__ = __repr__ = __str__ = __len__ = __iter__ = __getattr__ = refuse
    __hash__ = __call__ = __reduce__ = refuse


class Unknown:
    """A value that does not tell its class, as a proxy for nothing."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("no class")

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise RuntimeError(value)


async def returns_what_has_no_class(_instance: Instance) -> object:
    return Unknown()


async def returns_what_resists(_instance: Instance) -> object:
    return Resists()


_left: contextvars.ContextVar[str] = contextvars.ContextVar("left")


async def changes_its_context(_instance: Instance) -> None:
    assert _left.get("") == "", "another run's context"
    _left.set("here")


async def sets_a_task_factory(_instance: Instance) -> None:
    def make(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=loop, **options)

    loop: Any = asyncio.get_running_loop()
    loop.set_task_factory(make)
    await loop.create_task(nothing())


async def has_its_errors_handled_badly(_instance: Instance) -> None:
    def handle(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
        raise ValueError("a handler that fails")

    def fail() -> None:
        raise ValueError("a callback that fails")

    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(handle)
    loop.call_soon(fail)
    await asyncio.sleep(0.1)
    loop.set_exception_handler(before)


async def turns_debugging_on(_instance: Instance) -> None:
    asyncio.get_running_loop().set_debug(True)


async def starts_tasks(_instance: Instance) -> None:
    _kept.update(asyncio.create_task(asyncio.sleep(number)) for number in range(100))


_kept: set[asyncio.Task[None]] = set()


async def declares_a_job(instance: Instance) -> None:
    instance.scheduler.add_job(nothing, NEVER)


async def starts_its_scheduler(instance: Instance) -> None:
    await instance.scheduler.start()


async def asks_for_itself(instance: Instance) -> None:
    await instance.scheduler.run_now("bad")


async def asks_for_another(instance: Instance) -> None:
    assert await instance.scheduler.run_now("manual") == "done"


async def asks_for_nobody(instance: Instance) -> None:
    await instance.scheduler.run_now("nobody")


async def reads_its_own_history(instance: Instance) -> None:
    (run, *_) = await instance.scheduler.history("bad")
    assert str(run.status) == "running"


def mine() -> asyncio.Task[Any]:
    """The task of the body that calls."""
    task = asyncio.current_task()
    assert task is not None
    return task


FAIL: tuple[Callable[[Instance], Awaitable[object]], ...] = (
    runs_a_loop,
    runs_its_own_loop,
    closes_the_loop,
    closes_its_own_coroutine,
    awaits_its_own_task,
    awaits_what_belongs_to_another_loop,
    awaits_what_yields_a_number,
    awaits_what_is_no_iterator,
    cancels_itself_often,
    uses_up_the_stack,
    uses_up_the_memory,
    raises_what_ends_iterations,
    raises_a_timeout_of_its_own,
    raises_what_is_false,
    raises_what_has_no_name,
    raises_what_has_no_class,
    raises_what_has_no_traceback,
    raises_what_causes_itself,
    raises_what_has_many_causes,
    raises_from_many_frames,
    raises_a_group_of_groups,
    raises_a_large_group,
    declares_a_job,
    starts_its_scheduler,
    asks_for_itself,
    asks_for_nobody,
)
SUCCEED: tuple[Callable[[Instance], Awaitable[object]], ...] = (
    gives_way_very_often,
    leaves_a_generator_unfinished,
    takes_its_own_cancellation_back,
    returns_much,
    returns_what_resists,
    returns_what_has_no_class,
    changes_its_context,
    sets_a_task_factory,
    has_its_errors_handled_badly,
    turns_debugging_on,
    starts_tasks,
    asks_for_another,
    reads_its_own_history,
)


def of_anarchon(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What the library logged."""
    return [record for record in caplog.records if record.name.startswith("anarchon")]


def names(bodies: tuple[Callable[..., object], ...]) -> list[str]:
    """How the tests of bodies are called."""
    return [body.__name__ for body in bodies]


async def goes_on(
    world: World, body: Callable[[Run], object], status: str, *, slots: int = 2
) -> None:
    """Let a body run beside good ones, and look that every slot of each has its due end."""

    def good_in_a_thread(run: Run) -> str:
        return run.job

    async def manual() -> str:
        return "done"

    def declare(scheduler: Scheduler) -> None:
        scheduler.add_job(body, EVERY_MINUTE, name="bad", max_attempts=1)
        scheduler.add_job(good_in_a_thread, EVERY_MINUTE, name="thread")
        scheduler.add_job(manual, NEVER, name="manual")
        world.job(EVERY_MINUTE, name="good", takes=5)(scheduler)

    (instance,) = await world.start(declare)
    await world.at(60 * slots + 30)
    assert await world.statuses("bad") == [status] * slots
    assert await world.statuses("thread") == ["succeeded"] * slots
    assert world.slots("good") == minutes(*range(1, slots + 1))
    assert await world.statuses("good") == ["succeeded"] * slots
    health = instance.scheduler.health()
    assert (health.running, health.store) == (True, True)
    assert world.open_past_their_end() == []


@pytest.mark.parametrize("body", FAIL, ids=names(FAIL))
@virtual
async def test_a_body_that_fails_so_ends_its_own_run_only(
    world: World,
    body: Callable[[Instance], Awaitable[object]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def bad(run: Run) -> object:
        return await body(world[run.runner])

    await goes_on(world, bad, "failed")
    errors = [run.attempts[0].error for run in await world.history("bad")]
    assert all(errors), "no error is kept"
    told = [(record.levelname, record.__dict__["event"]) for record in of_anarchon(caplog)]
    assert told == [("ERROR", "run.failed")] * 2


@pytest.mark.parametrize("body", SUCCEED, ids=names(SUCCEED))
@virtual
async def test_a_body_that_does_so_harms_nobody(
    world: World, body: Callable[[Instance], Awaitable[object]]
) -> None:
    async def bad(run: Run) -> object:
        return await body(world[run.runner])

    await goes_on(world, bad, "succeeded")


# -- what plain bodies do ------------------------------------------------------------------------


def runs_a_loop_of_its_own(_instance: Instance) -> None:
    asyncio.run(nothing())


def sets_a_loop(_instance: Instance) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.close()


def starts_threads(_instance: Instance) -> None:
    for _ in range(20):
        threading.Thread(target=threading.Event().wait, args=(0.1,), daemon=True).start()


def returns_what_was_awaited_before(_instance: Instance) -> object:
    used = nothing()
    asyncio.run(used)
    return used


def returns_a_future_of_another_loop(_instance: Instance) -> object:
    loop = asyncio.new_event_loop()
    loop.close()
    return asyncio.Future[None](loop=loop)


def returns_what_cannot_be_awaited(_instance: Instance) -> object:
    class Wrong:
        def __await__(self) -> Any:
            raise SystemExit(3)

    return Wrong()


def returns_what_resists_too(_instance: Instance) -> object:
    return Resists()


def returns_what_has_no_class_either(_instance: Instance) -> object:
    return Unknown()


def raises_in_a_thread_what_has_no_class(_instance: Instance) -> None:
    raise NoClass


def closes_the_schedulers_loop(instance: Instance) -> None:
    vars(instance.scheduler)["_loop"].close()


def asks_from_its_thread(instance: Instance) -> None:
    asyncio.run(instance.scheduler.run_now("manual"))


THREADS_FAIL: tuple[Callable[[Instance], object], ...] = (
    returns_what_was_awaited_before,
    returns_a_future_of_another_loop,
    returns_what_cannot_be_awaited,
    raises_in_a_thread_what_has_no_class,
    closes_the_schedulers_loop,
    asks_from_its_thread,
)
THREADS_SUCCEED: tuple[Callable[[Instance], object], ...] = (
    runs_a_loop_of_its_own,
    sets_a_loop,
    starts_threads,
    returns_what_resists_too,
    returns_what_has_no_class_either,
)


@pytest.mark.parametrize("body", THREADS_FAIL, ids=names(THREADS_FAIL))
@virtual
async def test_a_thread_that_fails_so_ends_its_own_run_only(
    world: World, body: Callable[[Instance], object]
) -> None:
    await goes_on(world, lambda run: body(world[run.runner]), "failed")


@pytest.mark.parametrize("body", THREADS_SUCCEED, ids=names(THREADS_SUCCEED))
@virtual
async def test_a_thread_that_does_so_harms_nobody(
    world: World, body: Callable[[Instance], object]
) -> None:
    await goes_on(world, lambda run: body(world[run.runner]), "succeeded")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@virtual
async def test_a_thread_that_ends_before_its_function_is_called_is_a_failed_attempt(
    world: World,
) -> None:
    def refuse(*_arguments: object) -> None:
        raise RuntimeError("a trace function that fails")

    def body() -> None:
        raise AssertionError("it cannot get as far as this")

    before = threading.gettrace()
    await world.start(lambda s: s.add_job(body, EVERY_MINUTE, name="job", max_attempts=1))
    await world.at(59)
    threading.settrace(refuse)
    try:
        await world.at(90)
    finally:
        threading.settrace(before)
    assert await world.statuses() == ["failed"]
    assert "ended without a word" in str((await world.history("job"))[0].attempts[0].error)


# -- what is left of a run -----------------------------------------------------------------------


class Large:
    """Something that a job holds."""


@pytest.mark.parametrize("how", ["returned", "raised", "tried again", "in a thread"])
@virtual
async def test_nothing_that_a_body_held_outlives_its_attempt(
    world: World, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "anarchon")  # kept records keep the error they tell of
    held: list[weakref.ref[Large]] = []

    async def body() -> Large:
        large = Large()
        held.append(weakref.ref(large))
        if how in {"raised", "tried again"}:
            raise ValueError
        return large

    def plain() -> Large:
        large = Large()
        held.append(weakref.ref(large))
        return large

    function = plain if how == "in a thread" else body
    attempts = 2 if how == "tried again" else 1
    await world.start(
        lambda s: s.add_job(function, ONCE, name="job", max_attempts=attempts, retry_delay=50)
    )
    await world.at(70)
    gc.collect()
    assert len(held) == 1
    assert held[0]() is None


# -- bodies and cancellation ---------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2])
@virtual
async def test_a_body_that_swallows_some_cancellations_of_a_lost_lease(
    world: World, times: int
) -> None:
    async def body(run: Run) -> None:
        with world.diary.entry(run):
            swallowed = 0
            while True:
                try:
                    await asyncio.sleep(1)
                except asyncio.CancelledError:
                    swallowed += 1
                    if swallowed > times:
                        raise

    (instance,) = await world.start(lambda s: s.add_job(body, ONCE, name="job"), lease=6)
    await world.at(62)
    instance.line.cut()
    await world.at(75)
    assert world.entries[0].how == "CancelledError"
    assert world.entries[0].end is not None
    assert world.entries[0].end <= world.entries[0].start + 8500
    instance.line.mend()
    await world.at(80)
    assert len(world.entries) > 1


@virtual
async def test_a_body_that_swallows_all_cancellations_of_a_lost_lease_is_closed(
    world: World,
) -> None:
    async def body(run: Run) -> None:
        with world.diary.entry(run):
            while True:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(1)

    (instance,) = await world.start(lambda s: s.add_job(body, ONCE, name="job"), lease=6)
    await world.at(62)
    instance.line.cut()
    await world.at(75)
    assert world.entries[0].how == "GeneratorExit"
    assert instance.scheduler.health().running


@virtual
async def test_the_tasks_of_a_body_that_swallow_their_cancellation_hold_up_nothing(
    world: World,
) -> None:
    swallowed: list[float] = []

    async def deaf() -> None:
        while len(swallowed) < 3:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                swallowed.append(world.time.seconds)

    async def body(run: Run) -> None:
        with world.diary.entry(run):
            tasks = [asyncio.create_task(deaf())]
            await asyncio.wait(tasks)

    first, second = await world.start(
        lambda s: s.add_job(body, ONCE, name="job", timeout=5, max_attempts=2, retry_delay=1), 2
    )
    await world.at(66)
    assert swallowed[0] == pytest.approx(65, abs=0.1)
    await world.at(80)
    assert await world.attempts() == ["timed-out", "timed-out"]
    assert first.scheduler.health().running
    assert second.scheduler.health().running


@virtual
async def test_a_body_that_swallows_all_cancellations_of_a_stop_is_closed_after_it(
    world: World,
) -> None:
    async def body(run: Run) -> None:
        with world.diary.entry(run):
            while True:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.1)

    (instance,) = await world.start(lambda s: s.add_job(body, ONCE, name="job"))
    await world.at(65)
    await instance.stop(timeout=1)
    assert world.time.seconds < 66.5
    await world.wait(0.5)
    # A process that waits for its tasks, as asyncio.run() does, does not wait for a whole lease.
    assert world.entries[0].how == "GeneratorExit"
    assert await world.attempts() == ["running"]


@virtual
async def test_a_body_that_cancels_the_schedulers_tasks_is_told_of(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        for task in asyncio.all_tasks():
            if "Timeline" in str(task.get_coro()):
                task.cancel()

    (instance,) = await world.start(lambda s: s.add_job(body, EVERY_MINUTE, name="job"))
    await world.at(70)
    assert not instance.scheduler.health().running
    events = [record.__dict__["event"] for record in of_anarchon(caplog)]
    assert events == ["scheduler.cancelled"]
    await instance.stop()
    await instance.start()
    await world.at(130)
    assert len(await world.statuses()) == 2


# -- bodies that stop and start ------------------------------------------------------------------


@virtual
async def test_a_body_that_has_its_scheduler_started_anew(world: World) -> None:
    tasks: list[asyncio.Task[None]] = []

    async def start_anew(scheduler: Scheduler) -> None:
        await scheduler.stop(timeout=0)
        await scheduler.start()

    async def body(run: Run) -> None:
        with world.diary.entry(run):
            tasks.append(asyncio.create_task(start_anew(world[run.runner].scheduler)))

    def declare(scheduler: Scheduler) -> None:
        scheduler.add_job(body, EVERY_MINUTE, name="job")
        world.job(EVERY_MINUTE, name="good", takes=5)(scheduler)

    (instance,) = await world.start(declare)
    await world.at(190)
    assert instance.scheduler.health().running
    assert all(task.done() and task.exception() is None for task in tasks)
    assert world.slots("job") == minutes(1, 2, 3)
    # Those were in the way of the stop; they were given back and gone after again.
    assert {entry.how for entry in world.diary.of("good")} == {"CancelledError", "succeeded"}
    assert await world.statuses("good") == ["succeeded"] * 3


def test_a_plain_body_that_waits_for_the_stop_of_its_scheduler() -> None:
    asyncio.run(_waits_for_its_stop())


async def _waits_for_its_stop() -> None:
    scheduler = Scheduler(backend=MemoryBackend(), shutdown_timeout=0.2)
    loop = asyncio.get_running_loop()
    over = threading.Event()

    @scheduler.job(NEVER, name="stops")
    def stops() -> None:
        try:
            asyncio.run_coroutine_threadsafe(scheduler.stop(), loop).result()
        finally:
            over.set()

    @scheduler.job(NEVER, name="other")
    async def other() -> None:
        await asyncio.sleep(0.1)

    await scheduler.start()
    before = time.monotonic()
    asked = [
        asyncio.create_task(scheduler.run_now("stops")),
        asyncio.create_task(scheduler.run_now("other")),
    ]
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert time.monotonic() - before < 0.2 + 0.5 + 0.3  # the last for a busy machine
    assert isinstance(results[0], RunMoved)
    assert results[1] is None
    await asyncio.to_thread(over.wait, 5)
    assert over.is_set()
    assert not scheduler.health().running
