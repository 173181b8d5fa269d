"""Starting and stopping a scheduler in the background at odd moments, and with odd arguments."""

from __future__ import annotations

import concurrent.futures
import threading

import pytest

from anarchon import ConfigurationError, SchedulerStateError
from tests.engine.backgrounds import (
    PATIENCE,
    ended,
    eventually,
    in_thread,
    own_threads,
    scheduler_of,
)


@pytest.mark.parametrize("timeout", [-1, "5", float("nan")])
def test_a_wrong_timeout_is_refused_and_stops_nothing(timeout: float) -> None:
    background = scheduler_of().in_background()
    background.start()
    try:
        with pytest.raises(ConfigurationError, match="timeout"):
            background.stop(timeout)
        assert background.run_now("job") == 7
    finally:
        background.stop()


@pytest.mark.parametrize("timeout", [-1, "5", float("nan"), float("inf"), 1e12])
def test_a_wrong_timeout_of_a_call_is_refused(timeout: float) -> None:
    with (
        scheduler_of().in_background() as background,
        pytest.raises(ConfigurationError, match="timeout"),
    ):
        background.run_now("job", timeout)


def test_a_start_that_is_interrupted_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    background = scheduler_of().in_background()
    with monkeypatch.context() as patch:

        def interrupted(self: object, timeout: float | None = None) -> None:
            raise KeyboardInterrupt

        patch.setattr(concurrent.futures.Future, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            background.start()
    background.stop()
    assert own_threads() == []


def test_calls_while_it_stops_end_one_way_or_another() -> None:
    background = scheduler_of().in_background()
    for _ in range(5):
        background.start()
        answered = threading.Semaphore(0)

        def ask(answered: threading.Semaphore = answered) -> object:
            while True:
                background.history("job")
                answered.release()

        callers = [in_thread(ask) for _ in range(4)]
        assert all(answered.acquire(timeout=PATIENCE) for _ in range(8))
        background.stop()
        for thread, told_ in callers:
            assert ended(thread)
            (error,) = told_
            assert isinstance(error, SchedulerStateError)


def test_its_thread_ends_when_a_listener_has_stopped_the_scheduler() -> None:
    scheduler = scheduler_of()

    @scheduler.on("succeeded")
    async def stop() -> None:
        await scheduler.stop()

    background = scheduler.in_background()
    background.start()
    assert background.run_now("job") == 7
    assert eventually(lambda: own_threads() == []), own_threads()
    background.stop()
    assert not background.health().running
