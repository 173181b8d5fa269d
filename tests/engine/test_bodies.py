"""What job functions can do: end in every way, start tasks, run in threads, be any callable."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import pickle
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from anarchon.testing import VirtualTimeError
from tests.support.world import EVERY_SECOND, World, minutes, virtual

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from anarchon import Run, Scheduler

ONCE = "1 12 * * *"


class Unwritable(Exception):  # noqa: N818
    """An exception whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


ERRORS = {
    "Exception": ValueError("wrong"),
    "SystemExit": SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt(),
    "GeneratorExit": GeneratorExit(),
    "CancelledError": asyncio.CancelledError(),
    "StopIteration": StopIteration(),
    "no text": Unwritable(),
    "no UTF-8": ValueError("\udcff"),
    "long": ValueError("x" * 1_000_000),
    "group": BaseExceptionGroup("several", [SystemExit(1), ValueError("y")]),
}
each_error = pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)


@each_error
@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
@virtual
async def test_BAS_01_whatever_a_body_raises_is_that_runs_end(
    world: World, error: BaseException, plain: bool
) -> None:
    async def body() -> None:
        raise error

    def plain_body() -> None:
        raise error

    def declare(scheduler: Scheduler) -> None:
        function = plain_body if plain else body
        scheduler.add_job(function, "* * * * *", name="bad", max_attempts=1)
        world.job("* * * * *", name="good")(scheduler)

    (instance,) = await world.start(declare)
    await world.at(121)
    assert await world.statuses("bad") == ["failed", "failed"]
    assert await world.statuses("good") == ["succeeded", "succeeded"]
    text = (await world.history("bad"))[0].attempts[0].error
    assert text is not None
    assert type(error).__name__ in text
    assert len(text.encode()) < 5000
    assert instance.scheduler.health().running


@virtual
async def test_BAS_01_an_inner_tasks_cancellation_escapes(world: World) -> None:
    async def body() -> None:
        inner = asyncio.create_task(asyncio.sleep(10))
        await asyncio.sleep(0.1)
        inner.cancel()
        await inner

    (instance,) = await world.start(
        lambda s: s.add_job(body, "* * * * *", name="job", max_attempts=1)
    )
    await world.at(121)
    assert await world.statuses() == ["failed", "failed"]
    assert instance.scheduler.health().running


@virtual
async def test_BAS_01_a_body_cancels_itself(world: World) -> None:
    async def body() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    await world.start(lambda s: s.add_job(body, "* * * * *", name="job", max_attempts=1))
    await world.at(121)
    assert await world.statuses() == ["failed", "failed"]


@virtual
async def test_BAS_01_a_body_misuses_a_timeout(world: World) -> None:
    async def body() -> None:
        async with asyncio.timeout(1):
            await asyncio.sleep(5)

    await world.start(lambda s: s.add_job(body, "* * * * *", name="job", max_attempts=1))
    await world.at(125)
    assert await world.statuses() == ["failed", "failed"]
    text = (await world.history("job"))[0].attempts[0].error
    assert text is not None
    assert text.startswith("TimeoutError")


@virtual
async def test_BAS_01_a_body_swallows_the_cancellation_of_stop(world: World) -> None:
    async def body() -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):  # it does not want to hear of it
                await asyncio.sleep(1)

    (instance,) = await world.start(lambda s: s.add_job(body, ONCE, name="job"))
    await world.at(65)
    await instance.stop(timeout=2)
    assert world.time.seconds < 65 + 2 + 2


@virtual
async def test_a_timeout_that_a_body_swallows_counts_all_the_same(world: World) -> None:
    async def body() -> str:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
        return "done after all"

    await world.start(lambda s: s.add_job(body, ONCE, name="job", timeout=5, max_attempts=1))
    await world.at(100)
    assert await world.statuses() == ["timed-out"]


@virtual
async def test_a_task_group_in_a_body(world: World) -> None:
    done: list[int] = []

    async def part(number: int) -> None:
        await asyncio.sleep(number)
        done.append(number)

    async def body() -> None:
        async with asyncio.TaskGroup() as group:
            for number in (1, 2, 3):
                group.create_task(part(number))

    await world.start(lambda s: s.add_job(body, ONCE, name="job"))
    await world.at(70)
    assert done == [1, 2, 3]
    assert await world.statuses() == ["succeeded"]


@virtual
async def test_a_task_that_outlives_its_body_is_left_alone(world: World) -> None:
    kept: list[asyncio.Task[None]] = []

    async def body() -> None:
        kept.append(asyncio.create_task(asyncio.sleep(20)))

    await world.start(lambda s: s.add_job(body, ONCE, name="job"))
    await world.at(100)
    assert kept[0].done()
    assert not kept[0].cancelled()


@virtual
async def test_the_timeout_cancels_the_tasks_that_the_body_started(world: World) -> None:
    kept: list[asyncio.Task[None]] = []

    async def body() -> None:
        kept.append(asyncio.create_task(asyncio.sleep(100)))
        await asyncio.sleep(100)

    await world.start(lambda s: s.add_job(body, ONCE, name="job", timeout=5, max_attempts=1))
    await world.at(70)
    assert kept[0].cancelled()


# -- threads --------------------------------------------------------------------------------------


@virtual
async def test_a_thread_that_ignores_its_timeout_keeps_its_lease(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "anarchon")

    def body(run: Run) -> None:
        with world.diary.entry(run):
            world.time.sleep(30)

    await world.start(
        lambda s: s.add_job(body, ONCE, name="job", timeout=5, max_attempts=1), 2, lease=6
    )
    await world.at(80)
    assert await world.statuses() == ["running"]
    assert any("past its timeout" in r.getMessage() for r in caplog.records)
    await world.at(120)
    assert await world.statuses() == ["timed-out"]
    assert len(world.entries) == 1


@virtual
async def test_SYN_03_a_thread_that_never_ends_is_abandoned_at_stop(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def body(run: Run) -> None:
        while run.attempt == 1:
            world.time.sleep(1)

    first, second = await world.start(lambda s: s.add_job(body, ONCE, name="job"), 2, lease=6)
    await world.at(65)
    runner = (await world.history("job"))[0].attempts[0].runner
    leaving, staying = (first, second) if runner == first.name else (second, first)
    await leaving.stop(timeout=2)
    assert world.time.seconds <= 65 + 2.5
    assert any("abandoned" in r.getMessage() for r in caplog.records)
    beats = leaving.line.calls["heartbeat"]
    await world.at(80)
    assert leaving.line.calls["heartbeat"] == beats
    assert [a.runner for a in (await world.history("job"))[0].attempts] == [runner, staying.name]


@virtual
async def test_a_thread_that_looks_at_run_lost_ends_in_time_at_stop(world: World) -> None:
    def body(run: Run) -> None:
        with world.diary.entry(run):
            while not run.lost.is_set():
                world.time.sleep(0.1)

    (instance,) = await world.start(lambda s: s.add_job(body, ONCE, name="job"))
    await world.at(65)
    await instance.stop(timeout=2)
    assert world.time.seconds <= 65 + 2.5
    assert world.entries[0].end is not None
    # It ended before its work was done: handed back, not succeeded.
    assert await world.attempts() == ["released"]


@virtual
async def test_what_a_thread_returns_is_awaited_if_it_can_be(world: World) -> None:
    async def inner() -> int:
        await asyncio.sleep(1)
        return threading.get_ident()

    def outer() -> Awaitable[int]:
        return inner()

    (instance,) = await world.start(lambda s: s.add_job(outer, "0 3 * * *", name="job"))
    assert await instance.do(instance.scheduler.run_now("job")) == threading.get_ident()


# -- kinds of callables ----------------------------------------------------------------------------


class Methods:
    """Callables of several kinds, each of which fails, to see that it was awaited."""

    async def bound(self) -> None:
        raise LookupError

    async def __call__(self) -> None:
        raise LookupError


async def with_arguments(what: str, run: Run) -> None:
    assert run.job == "job"
    raise LookupError(what)


async def without() -> None:
    raise LookupError


def returns_an_awaitable() -> Coroutine[Any, Any, None]:
    return without()


@functools.wraps(without)
def decorated(*args: Any) -> Coroutine[Any, Any, None]:
    return without(*args)


KINDS: dict[str, Callable[..., object]] = {
    "async def": without,
    "partial": functools.partial(with_arguments, "bound by a partial"),
    "partial of a partial": functools.partial(functools.partial(with_arguments, "x")),
    "bound method": Methods().bound,
    "object": Methods(),
    "lambda": lambda: without(),  # noqa: PLW0108 - a lambda is the point
    "returns an awaitable": returns_an_awaitable,
    "decorated": decorated,
}


@pytest.mark.parametrize("function", KINDS.values(), ids=KINDS)
@virtual
async def test_REG_04_every_awaitable_is_awaited(
    world: World, function: Callable[..., object]
) -> None:
    await world.start(lambda s: s.add_job(function, ONCE, name="job", max_attempts=1))
    await world.at(70)
    assert await world.statuses() == ["failed"]
    text = (await world.history("job"))[0].attempts[0].error
    assert text is not None
    assert text.startswith("LookupError")


@virtual
async def test_REG_04_a_builtin(world: World) -> None:
    (instance,) = await world.start(lambda s: s.add_job(time.monotonic, "0 3 * * *", name="job"))
    assert isinstance(await instance.do(instance.scheduler.run_now("job")), float)


async def importable(run: Run) -> str:
    """A job that other modules import."""
    return run.job


@virtual
async def test_REG_04_the_decorated_function_is_the_function(world: World) -> None:
    before = importable
    await world.start(lambda s: s.job("0 3 * * *")(importable) is before or pytest.fail("changed"))
    assert pickle.loads(pickle.dumps(importable)) is before  # noqa: S301 - our own
    assert importable.__annotations__ == {"run": "Run", "return": "str"}


@virtual
async def test_REG_06_no_run_is_lost_to_the_garbage_collector(world: World) -> None:
    woken = 0

    async def body() -> None:
        nonlocal woken
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            with contextlib.suppress(VirtualTimeError):  # the last one sleeps when time is over
                world.time.sleep(0.2)
                loop.call_soon_threadsafe(future.set_result, None)

        threading.Thread(target=wake, name="anarchon-test", daemon=True).start()
        del wake
        await future
        woken += 1

    await world.start(lambda s: s.add_job(body, EVERY_SECOND, name="job"))
    for number in range(2055):
        await world.wait(0.1)
        if number % 5 == 0:
            gc.collect(1)
    assert woken == 205
    assert set(await world.statuses(limit=300)) == {"succeeded"}


@virtual
async def test_a_body_without_an_await_in_it(world: World) -> None:
    seen: list[int] = []

    async def body(run: Run) -> None:
        seen.append(run.slot)

    await world.start(lambda s: s.add_job(body, "* * * * *", name="job"))
    await world.at(121)
    assert seen == minutes(1, 2)
