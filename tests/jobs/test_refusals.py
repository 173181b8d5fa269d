"""Values of the wrong kind or size are refused where they are given, with the option's name."""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import traceback
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from anarchon import (
    ConfigurationError,
    Cron,
    Every,
    MemoryBackend,
    RedisBackend,
    Scheduler,
    SchedulerStateError,
    ValkeyBackend,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def scheduler(**options: Any) -> Scheduler:
    """A scheduler over memory."""
    return Scheduler(backend=MemoryBackend(), **options)


async def nothing() -> None:
    """A job."""


def give(option: str, value: object) -> None:
    """Give an option to whom it belongs."""
    settings: dict[str, Any] = {option: value}
    if option in OF_JOBS:
        scheduler().add_job(nothing, 60, **settings)
    else:
        scheduler(**settings)


# -- numbers -------------------------------------------------------------------------------------

OF_JOBS = ("jitter", "max_late", "retry_delay", "catch_up", "timeout", "max_attempts")
DURATIONS = ("lease", "heartbeat", "history_ttl", "shutdown_timeout", *OF_JOBS[:-1])
COUNTS = ("history_size", "max_concurrent_runs", "max_threads", "max_attempts")
NO_DURATIONS: dict[str, Any] = {
    "10**400": 10**400,
    "-(10**400)": -(10**400),
    "10**30": 10**30,
    "1e300": 1e300,
    "inf": math.inf,
    "nan": math.nan,
    "-1": -1,
    "timedelta.max": timedelta.max,
    "True": True,
    "text": "60",
    "bytes": b"60",
    "list": [60],
    "Decimal": Decimal(60),
    "complex": 60j,
}


@pytest.mark.parametrize("value", NO_DURATIONS.values(), ids=NO_DURATIONS)
@pytest.mark.parametrize("option", DURATIONS)
def test_what_is_no_duration(option: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"^{option}="):
        give(option, value)


@pytest.mark.parametrize("value", [0, -1, 1.0, "3", True, 10**9, 10**400, [3], math.nan], ids=str)
@pytest.mark.parametrize("option", COUNTS)
def test_what_is_no_count(option: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"^{option}="):
        give(option, value)


@pytest.mark.parametrize("value", [0, -1, -7, 1.5, "3", None, True, 10**30, 10**400], ids=str)
@pytest.mark.parametrize("running", [False, True])
def test_what_is_no_number_of_runs_to_tell_of(running: bool, value: Any) -> None:
    async def story() -> None:
        made = scheduler()
        made.add_job(nothing, 3600)
        if running:
            await made.start()
        with pytest.raises(ConfigurationError, match=r"^limit="):
            await made.history("nothing", value)
        assert await made.history("nothing", 1) == ()
        await made.stop()

    asyncio.run(story())


@pytest.mark.parametrize("value", [None, 1, "skipp", "", "SKIP", ["skip"], {"skip": 1}, b"skip"])
def test_what_is_no_overlap(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^overlap="):
        scheduler().add_job(nothing, 60, overlap=value)


@pytest.mark.parametrize("value", [None, 0, 1, "no", "", [], math.nan])
def test_what_is_neither_true_nor_false(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^coalesce="):
        scheduler().add_job(nothing, 60, coalesce=value)


# -- things --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["redis://localhost", RedisBackend, MemoryBackend, object(), 0, "", {"host": "x"}]
)
def test_what_is_no_backend(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^backend= .*RedisBackend\(redis=\.\.\.\)"):
        Scheduler(backend=value)


@pytest.mark.parametrize("value", ["test", 0, {}, object(), type, Scheduler])
def test_what_is_no_environment(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^environment="):
        scheduler(environment=value)


@pytest.mark.parametrize("value", [0, 5, "", "a\nb", "x" * 201, b"runner", ["runner"]])
def test_what_is_no_runner(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^runner="):
        scheduler(runner=value)


@pytest.mark.parametrize("value", [None, 5, "", "{app}:", b"cron:", ["cron:"]])
def test_what_is_no_prefix(value: Any) -> None:
    for backend in (RedisBackend, ValkeyBackend):
        with pytest.raises(ConfigurationError, match=r"^prefix="):
            backend(prefix=value)


@pytest.mark.parametrize("value", [{1: 2}, {None: 1}, {"port": 1, 2: 3}, {("host",): "x"}], ids=str)
def test_what_are_no_options_of_a_client(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="options of the store"):
        RedisBackend(redis=value)


# Passwords with characters that a URL wants to be written otherwise.
UNESCAPED = ("pw/SECRET", "p#SECRET", "p?SECRET=1", "SE[CRET", "p:SECRET", "SECRET\x00@", "SECRET]")
WRONG_URLS = (
    *(f"redis://:{password}@host:x6379/0" for password in UNESCAPED),
    *(f"redis://:{password}@host:6379/0" for password in UNESCAPED[:2]),
    "redis://user:SECRET@host:99999999",
    "redis://:SECRET@host?nonsense=SECRET",
    "redis://:SECRET@host?socket_timeout=SECRET",
    "rediss://:SECRET@host:port",
    "unix://:SECRET@/path?db=x&nonsense=1",
    "redis:/:SECRET@host",
)


@pytest.mark.parametrize("url", WRONG_URLS)
def test_a_password_is_in_no_error_nor_in_what_led_to_it(url: str) -> None:
    try:
        RedisBackend(redis=url)
    except ConfigurationError as error:
        shown = "".join(traceback.format_exception(error))
        assert "SECRET" not in shown
        assert "pw" not in shown


# -- decorators ----------------------------------------------------------------------------------


def plain() -> None:
    """A job."""


class Called:
    """An object that can be called."""

    def __call__(self) -> None: ...


DECORATED: dict[str, Callable[..., object]] = {
    "async": nothing,
    "plain": plain,
    "lambda": lambda: None,
    "partial": functools.partial(plain),
    "object": Called(),
    "class": Called,
    "builtin": print,
    "method": Called().__call__,
}


@pytest.mark.parametrize("function", DECORATED.values(), ids=DECORATED)
def test_a_decorator_without_parentheses(function: Any) -> None:
    made = scheduler()
    with pytest.raises(ConfigurationError, match=r"@scheduler\.job\("):
        made.job(function)
    assert made.jobs == ()


class Callable_:  # noqa: N801 - a schedule that can be called as well
    """A schedule that happens to be callable."""

    key = "callable"

    def __call__(self) -> None: ...

    def next_after(self, moment: datetime, /) -> datetime:
        return moment + timedelta(hours=1)


def test_a_schedule_that_can_be_called_is_a_schedule() -> None:
    made = scheduler()
    assert made.job(Callable_())(nothing) is nothing
    assert [job.name for job in made.jobs] == ["nothing"]


@pytest.mark.parametrize("schedule", [Cron, Every, Callable_])
def test_the_class_of_a_schedule_is_none(schedule: Any) -> None:
    with pytest.raises(ConfigurationError, match="give a cron expression"):
        scheduler().job(schedule)


# -- states --------------------------------------------------------------------------------------


def test_run_beside_a_running_loop() -> None:
    made = scheduler()

    async def story() -> None:
        with pytest.raises(SchedulerStateError, match="async with scheduler"):
            made.run()
        async with made:
            assert made.health().running

    asyncio.run(story())


def test_run_in_another_thread() -> None:
    made = scheduler()

    async def story() -> None:
        with pytest.raises(SchedulerStateError, match="main thread"):
            await asyncio.to_thread(made.run)
        assert not made.health().running

    asyncio.run(story())


@pytest.mark.parametrize("jobs", [0, 1])
def test_a_start_without_jobs_is_warned_of(jobs: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "anarchon")
    made = scheduler()
    for _ in range(jobs):
        made.add_job(nothing, 3600)

    async def story() -> None:
        async with made:
            pass

    asyncio.run(story())
    first = caplog.records[0]
    assert first.__dict__["event"] == "scheduler.started"
    assert first.levelname == ("INFO" if jobs else "WARNING")
    assert ("none declared" in first.getMessage()) == (not jobs)
