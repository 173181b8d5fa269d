"""Virtual time itself: the tester has to be right before it can find anything wrong."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import time
from datetime import UTC, datetime

import pytest

from anarchon import StoreRefused, StoreUnavailable
from anarchon.backends.memory import MemoryBackend
from anarchon.testing import (
    REFUSED,
    REPLY_LOST,
    REQUEST_LOST,
    START,
    Executed,
    Fate,
    FaultyBackend,
    HostClock,
    Line,
    VirtualTime,
    VirtualTimeError,
    run_virtual,
)


def test_sleeping_takes_no_time() -> None:
    async def story(virtual: VirtualTime) -> float:
        await asyncio.sleep(1_000_000)
        return virtual.seconds

    began = time.monotonic()
    assert run_virtual(story) == pytest.approx(1_000_000, abs=0.01)
    assert time.monotonic() - began < 1


def test_timers_fire_in_order_and_on_time() -> None:
    async def story(virtual: VirtualTime) -> list[tuple[int, float]]:
        fired: list[tuple[int, float]] = []

        async def sleeper(number: int, seconds: float) -> None:
            await asyncio.sleep(seconds)
            fired.append((number, round(virtual.seconds, 3)))

        await asyncio.gather(sleeper(1, 3), sleeper(2, 0.5), sleeper(3, 2))
        return fired

    assert run_virtual(story) == [(2, 0.5), (3, 2), (1, 3)]


def test_the_start_can_be_chosen() -> None:
    async def story(virtual: VirtualTime) -> float:
        return virtual.now()

    start = datetime(2030, 1, 1, tzinfo=UTC)
    assert run_virtual(story, start=start) == pytest.approx(start.timestamp() * 1000, abs=1)
    with pytest.raises(ValueError, match="aware"):
        run_virtual(story, start=datetime(2030, 1, 1))  # noqa: DTZ001 - naive on purpose


def test_an_error_names_the_seed() -> None:
    async def story(_virtual: VirtualTime) -> None:
        raise LookupError

    with pytest.raises(LookupError) as caught:
        run_virtual(story, seed=77)
    assert "seed=77" in caught.value.__notes__[0]


def test_when_nothing_can_happen_any_more_that_is_an_error() -> None:
    async def story(_virtual: VirtualTime) -> None:
        await asyncio.Event().wait()

    with pytest.raises(VirtualTimeError, match="nothing is left"):
        run_virtual(story)


def test_a_lost_task_is_an_error() -> None:
    async def story(virtual: VirtualTime) -> None:
        async def forgotten() -> None:
            await virtual.loop.create_future()

        virtual.loop.create_task(forgotten())
        await asyncio.sleep(1)
        gc.collect()

    with pytest.raises(VirtualTimeError, match="Task was destroyed"):
        run_virtual(story)


def test_time_stands_still_while_an_executor_works() -> None:
    async def story(virtual: VirtualTime) -> float:
        racing = asyncio.create_task(asyncio.sleep(5))
        await asyncio.to_thread(time.sleep, 0.02)
        assert not racing.done()
        return virtual.seconds

    assert run_virtual(story) < 0.01


def test_a_thread_sleeps_in_virtual_time() -> None:
    async def story(virtual: VirtualTime) -> list[float]:
        woke: list[float] = []
        done = asyncio.Event()

        def body() -> None:
            for _ in range(3):
                virtual.sleep(10)
                woke.append(round(virtual.seconds))
            virtual.loop.call_soon_threadsafe(done.set)

        threading.Thread(target=body, name="anarchon-test", daemon=True).start()
        await done.wait()
        return woke

    assert run_virtual(story) == [10, 20, 30]


def test_a_thread_that_sleeps_when_time_ends_is_woken() -> None:
    ended = threading.Event()

    async def story(virtual: VirtualTime) -> None:
        def body() -> None:
            try:
                virtual.sleep(1000)
            except VirtualTimeError:
                ended.set()

        threading.Thread(target=body, name="anarchon-test", daemon=True).start()
        await asyncio.sleep(1)

    run_virtual(story)
    assert ended.wait(10)


def test_a_stopped_thread_of_a_host_takes_its_steps_later() -> None:
    async def story(virtual: VirtualTime) -> list[float]:
        host = virtual.host_thread()
        steps: list[float] = []

        async def body() -> None:
            while True:
                await asyncio.sleep(1)
                steps.append(round(virtual.seconds))

        task = asyncio.get_running_loop().create_task(body(), context=host.context())
        await asyncio.sleep(2.5)
        host.stop()
        await asyncio.sleep(5)
        host.go_on()
        await asyncio.sleep(2)
        assert not task.done()
        return steps

    assert run_virtual(story) == [1, 2, 8, 9]


def test_a_timer_that_is_cancelled_after_it_was_held_back_does_not_fire() -> None:
    async def story(virtual: VirtualTime) -> list[str]:
        host = virtual.host_thread()
        told: list[str] = []
        timers: list[asyncio.TimerHandle] = []

        async def body() -> None:
            loop = asyncio.get_running_loop()

            def cancel_the_second() -> None:
                told.append("first")
                timers[0].cancel()

            loop.call_later(1, cancel_the_second)
            timers.append(loop.call_later(1.1, told.append, "second"))

        await asyncio.get_running_loop().create_task(body(), context=host.context())
        host.stop()
        await asyncio.sleep(5)
        host.go_on()
        await asyncio.sleep(5)
        return told

    assert run_virtual(story) == ["first"]


def test_a_dead_host_runs_no_finally() -> None:
    async def story(virtual: VirtualTime) -> list[str]:
        host = virtual.host_thread()
        told: list[str] = []

        async def body() -> None:
            try:
                await asyncio.sleep(1)
                told.append("woke")
            finally:
                told.append("finally")

        kept = asyncio.get_running_loop().create_task(body(), context=host.context())
        del kept
        await asyncio.sleep(0.5)
        host.die()
        await asyncio.sleep(5)
        gc.collect()
        return list(told)

    assert run_virtual(story) == []


def test_timers_can_be_early() -> None:
    async def story(virtual: VirtualTime) -> float:
        virtual.set_timers_early(0.25)
        await asyncio.sleep(10)
        return virtual.seconds

    assert run_virtual(story) == pytest.approx(9.75, abs=0.001)


def test_host_clocks() -> None:
    async def story(virtual: VirtualTime) -> None:
        clock = HostClock(virtual, ahead=-90, drift=0.01)
        booted = clock.boot()
        await asyncio.sleep(100)
        assert clock.boot() - booted == pytest.approx(101, abs=0.01)
        assert clock.wall() - virtual.now() == pytest.approx(-89_000, abs=2)
        clock.step(90)
        assert clock.wall() - virtual.now() == pytest.approx(1_000, abs=2)
        assert clock.boot() - booted == pytest.approx(101, abs=0.01)

    run_virtual(story)


FATES = {
    "usual": (Fate(there=1, back=2), 1, 3.0, None),
    "request lost": (REQUEST_LOST, 0, 5.0, StoreUnavailable),
    "reply lost": (REPLY_LOST, 1, 5.0, StoreUnavailable),
    "refused": (REFUSED, 0, 0.0, StoreRefused),
    "too late": (Fate(there=7), 1, 5.0, StoreUnavailable),
    "answer too late": (Fate(back=7), 1, 5.0, StoreUnavailable),
    "doubled": (Fate(copy_after=3), 2, 0.0, None),
}


@pytest.mark.parametrize(("fate", "executed", "took", "error"), FATES.values(), ids=FATES)
def test_fates_of_calls(
    fate: Fate, executed: int, took: float, error: type[Exception] | None
) -> None:
    async def story(virtual: VirtualTime) -> None:
        carried_out: list[Executed] = []
        line = Line(virtual, "i1", carried_out)
        line.plan("clock", fate)
        store = FaultyBackend(MemoryBackend(), line).connect(timeout=5)
        try:
            await store.clock("", "", 0)
            raised = None
        except (StoreUnavailable, StoreRefused) as answer:
            raised = type(answer)
        assert (raised, round(virtual.seconds, 3)) == (error, took)
        await asyncio.sleep(20)
        assert len(carried_out) == executed

    run_virtual(story)


@pytest.mark.parametrize(("silent", "took"), [(False, 0), (True, 5)])
def test_a_cut_line(silent: bool, took: float) -> None:
    async def story(virtual: VirtualTime) -> None:
        line = Line(virtual, "i1", [])
        store = FaultyBackend(MemoryBackend(), line).connect(timeout=5)
        line.cut(silent=silent)
        with pytest.raises(StoreUnavailable):
            await store.clock("", "", 0)
        assert round(virtual.seconds, 3) == took
        line.mend()
        assert await store.clock("", "", 0) > 0

    run_virtual(story)


def test_chance_comes_from_the_seed() -> None:
    async def story(virtual: VirtualTime) -> float:
        return virtual.rng.random()

    assert run_virtual(story, seed=5) == run_virtual(story, seed=5) == random.Random(5).random()
    assert START.tzinfo is UTC
