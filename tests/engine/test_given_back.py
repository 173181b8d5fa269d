"""What is told of a run that was to be given back: whether the store took it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anarchon.testing import Fate
from anarchon.testing.faults import REFUSED
from tests.support.world import World, virtual

if TYPE_CHECKING:
    import pytest

    from anarchon import Event, Scheduler

ONCE = "1 12 * * *"


class Stop:
    """A job that is interrupted by a stop, and what its listener heard."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.heard: list[Event] = []

    def __call__(self, scheduler: Scheduler) -> None:
        """Declare both."""
        self._world.job(ONCE, takes=30)(scheduler)

        @scheduler.on("released")
        async def listener(event: Event) -> None:
            self.heard.append(event)


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """What was logged of the run that was stopped, beside its start."""
    records = [record for record in caplog.records if record.__dict__.get("run")]
    events = [(record.levelname, record.__dict__["event"]) for record in records]
    return [(level, event) for level, event in events if event in {"run.released", "run.kept"}]


@virtual
async def test_a_run_that_the_store_took_back_is_released(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    stop = Stop(world)
    (instance,) = await world.start(stop)
    await world.at(65)
    await instance.stop(timeout=1)
    assert await world.attempts() == ["released"]
    assert [event.attempt for event in stop.heard] == [1]
    assert told(caplog) == [("INFO", "run.released")]


@virtual
async def test_a_run_that_the_store_would_not_take_back_is_not_told_as_released(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    stop = Stop(world)
    (instance,) = await world.start(stop)
    await world.at(65)
    instance.line.plan("release", REFUSED)
    await instance.stop(timeout=1)
    assert await world.attempts() == ["running"]
    assert stop.heard == []
    assert told(caplog) == [("WARNING", "run.kept")]


@virtual
async def test_a_run_that_another_has_by_now_is_not_told_as_released(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    stop = Stop(world)
    (instance,) = await world.start(stop)
    await world.at(65)
    # What was stored of it is gone when it is given back.
    world.backend.books["job"].records.clear()
    await instance.stop(timeout=1)
    assert stop.heard == []
    assert told(caplog) == [("WARNING", "run.kept")]


@virtual
async def test_a_run_that_was_won_but_finds_no_place_any_more_is_given_back(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job(ONCE, name="job", max_late=9.7, max_attempts=2)(scheduler)
        world.job(ONCE, name="other", takes=30)(scheduler)

    (instance,) = await world.start(declare, lease=10, max_concurrent_runs=1)
    await world.at(59)
    instance.line.plan("claim", Fate(back=0.5))
    await world.at(60.2)
    # The answer is found after 0.9 of the lease, and the place is another run's by then.
    instance.suspend(9.3)
    await world.at(69.9)
    (entry,) = world.entries
    assert entry.job == "other"
    assert world.sent("release") == 1
    assert await world.attempts("job") == ["released"]
