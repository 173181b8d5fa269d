"""Jobs that cannot work are refused where they are declared, with the reason."""

from __future__ import annotations

import functools
import inspect
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from anarchon import (
    ConfigurationError,
    Cron,
    MemoryBackend,
    Run,
    ScheduleError,
    Scheduler,
    SchedulerStateError,
)
from tests.support.world import World, virtual

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

HERE = __file__


def scheduler() -> Scheduler:
    """A scheduler without jobs."""
    return Scheduler(backend=MemoryBackend())


async def nothing() -> None:
    """A job."""


async def takes_a_run(run: Run) -> None:
    """A job that takes its run."""


# -- names ----------------------------------------------------------------------------------------


class Nested:
    """A place for a method."""

    async def method(self) -> None:
        """A job."""


def test_the_name_is_the_qualified_name_without_the_module() -> None:
    made = scheduler()
    made.add_job(nothing, 60)
    made.add_job(Nested().method, 60)
    made.add_job(functools.partial(takes_a_run), 60)
    assert [job.name for job in made.jobs] == ["nothing", "Nested.method", "takes_a_run"]


def test_REG_01_two_jobs_of_one_name_name_both_places() -> None:
    made = scheduler()
    made.add_job(nothing, 60, name="report")
    with pytest.raises(ConfigurationError, match="two jobs are named 'report'") as caught:
        made.add_job(takes_a_run, "0 3 * * *", name="report")
    for function in (nothing, takes_a_run):
        line = inspect.getsourcelines(function)[1]
        assert f"{HERE}:{line}" in str(caught.value)
    assert len(made.jobs) == 1


def test_REG_01_a_lambda_needs_a_name() -> None:
    made = scheduler()
    with pytest.raises(ConfigurationError, match=r"lambda or a local function .* name="):
        made.add_job(lambda: None, 60)
    made.add_job(lambda: None, 60, name="named")
    assert [job.name for job in made.jobs] == ["named"]


def test_REG_01_a_local_function_needs_a_name() -> None:
    async def local() -> None: ...

    with pytest.raises(ConfigurationError, match="local function"):
        scheduler().job(60)(local)


@pytest.mark.parametrize("name", ["", "x" * 513, "ä" * 257, "\ud800", 5, b"job"])
def test_names_that_cannot_be(name: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"name="):
        scheduler().add_job(nothing, 60, name=name)


@pytest.mark.parametrize("name", ["x" * 512, "ä" * 256, "a:b", "{a}", " ", "\n", "%"])
def test_names_that_can_be(name: str) -> None:
    made = scheduler()
    made.add_job(nothing, 60, name=name)
    assert [job.name for job in made.jobs] == [name]


# -- functions ------------------------------------------------------------------------------------


def generates() -> Iterator[int]:
    """A generator function."""
    yield 1


async def generates_async() -> AsyncIterator[int]:
    """An async generator function."""
    yield 1


class Generating:
    """An object whose call is a generator function."""

    def __call__(self) -> Iterator[int]:
        yield 1


@pytest.mark.parametrize(
    "function", [generates, generates_async, functools.partial(generates), Generating()]
)
def test_REG_04_generator_functions_are_refused(function: Any) -> None:
    with pytest.raises(ConfigurationError, match="generator function"):
        scheduler().add_job(function, 60, name="job")


async def takes_two(run: Run, what: str) -> None:
    """Needs more than a job gets."""


async def takes_keyword(*, what: str) -> None:
    """Needs more than a job gets."""


@pytest.mark.parametrize("function", [takes_two, takes_keyword])
def test_functions_that_need_more_than_a_run(function: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"needs .*what.*functools\.partial"):
        scheduler().add_job(function, 60)


@pytest.mark.parametrize("function", [5, "text", None])
def test_what_cannot_be_called(function: Any) -> None:
    with pytest.raises(ConfigurationError, match="cannot be called"):
        scheduler().add_job(function, 60, name="job")


def test_the_decorator_returns_the_function_itself() -> None:
    assert scheduler().job(60)(nothing) is nothing
    assert scheduler().job("0 3 * * *", max_late=5)(takes_a_run) is takes_a_run


# -- options --------------------------------------------------------------------------------------

REFUSED: dict[str, dict[str, Any]] = {
    "overlap": {"overlap": "skipp"},
    "max_attempts=0": {"max_attempts": 0},
    "max_attempts=True": {"max_attempts": True},
    "max_attempts='3'": {"max_attempts": "3"},
    "max_attempts=2.5": {"max_attempts": 2.5},
    "jitter": {"jitter": -1},
    "max_late": {"max_late": "60"},
    "retry_delay": {"retry_delay": float("nan")},
    "catch_up": {"catch_up": float("inf")},
    "timeout": {"timeout": 0},
    "catch_up=True": {"catch_up": True},
}


@pytest.mark.parametrize("settings", REFUSED.values(), ids=REFUSED)
def test_options_that_cannot_be(settings: dict[str, Any]) -> None:
    ((option, value),) = settings.items()
    with pytest.raises(ConfigurationError) as caught:
        scheduler().add_job(nothing, 60, **settings)
    assert f"{option}={value!r}" in str(caught.value)
    assert caught.value.code == "ANARCHON_CONFIGURATION"


@pytest.mark.parametrize(
    ("option", "meant"),
    [("max_attempt", "max_attempts"), ("timezon", "timezone"), ("catchup", "catch_up")],
)
def test_an_option_that_does_not_exist(option: str, meant: str) -> None:
    wrong: dict[str, Any] = {option: 1}
    with pytest.raises(ConfigurationError, match=f"no option '{option}'; did you mean '{meant}'"):
        scheduler().add_job(nothing, 60, **wrong)


def test_durations_are_seconds_or_timedeltas() -> None:
    made = scheduler()
    made.add_job(nothing, timedelta(minutes=1), max_late=timedelta(seconds=5), jitter=1.5)
    assert made.jobs[0].schedule == "every minute"


@pytest.mark.parametrize(
    "schedule", ["61 * * * *", "* * * *", "@reboot", "0 0 30 2 *", 0, -5, object(), None]
)
def test_schedules_that_cannot_be(schedule: Any) -> None:
    with pytest.raises(ScheduleError, match="job 'nothing'"):
        scheduler().add_job(nothing, schedule)


def test_a_timezone_that_cannot_be() -> None:
    with pytest.raises(ScheduleError, match="Europe/Berlim"):
        scheduler().add_job(nothing, "0 3 * * *", timezone="Europe/Berlim")


def test_two_timezones() -> None:
    with pytest.raises(ConfigurationError, match="time zone"):
        scheduler().add_job(nothing, Cron("0 3 * * *", "Asia/Tokyo"), timezone="Europe/Berlin")


def test_a_refused_job_leaves_nothing_behind() -> None:
    made = scheduler()
    with pytest.raises(ConfigurationError):
        made.add_job(nothing, "nonsense")
    made.add_job(nothing, 60)
    assert len(made.jobs) == 1


# -- schedulers -----------------------------------------------------------------------------------

REFUSED_SCHEDULERS: dict[str, dict[str, Any]] = {
    "lease": {"lease": 0.05},
    "lease='30'": {"lease": "30"},
    "heartbeat": {"lease": 10, "heartbeat": 9},
    "heartbeat=0": {"heartbeat": 0},
    "history_size": {"history_size": 0},
    "history_ttl": {"history_ttl": 0},
    "max_concurrent_runs": {"max_concurrent_runs": 0},
    "max_threads": {"max_threads": 1.5},
    "shutdown_timeout": {"shutdown_timeout": -1},
}


@pytest.mark.parametrize("settings", REFUSED_SCHEDULERS.values(), ids=REFUSED_SCHEDULERS)
def test_schedulers_that_cannot_be(settings: dict[str, Any]) -> None:
    option, value = list(settings.items())[-1]
    with pytest.raises(ConfigurationError) as caught:
        Scheduler(backend=MemoryBackend(), **settings)
    assert f"{option}={value!r}" in str(caught.value)


@virtual
async def test_jobs_are_declared_before_the_start(world: World) -> None:
    (instance,) = await world.start(world.job())
    with pytest.raises(SchedulerStateError, match="before the scheduler starts"):
        instance.scheduler.add_job(nothing, 60)
