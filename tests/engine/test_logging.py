"""LOG-01: what is told at which level, and by whom."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tests.support.world import EVERY_SECOND, World, virtual

if TYPE_CHECKING:
    import pytest

    from anarchon import Run, Scheduler


@virtual
async def test_LOG_01_in_health_a_start_and_an_end_a_run_and_no_more(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "anarchon")

    def declare(scheduler: Scheduler) -> None:
        for number in range(10):
            world.job(EVERY_SECOND, takes=0.1, name=f"job{number}")(scheduler)

    await world.start(declare, 4)
    caplog.clear()
    await world.at(20.9)
    assert {record.levelname for record in caplog.records} == {"INFO"}
    events = [record.__dict__["event"] for record in caplog.records]
    assert events.count("run.started") == events.count("run.succeeded") == 200
    assert len(events) == 400
    for record in caplog.records:
        runs = [e for e in world.entries if e.slot == record.__dict__["slot"]]
        assert record.__dict__["runner"] in {entry.runner for entry in runs}


@virtual
async def test_LOG_01_an_instance_that_starts_later_warns_of_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "anarchon")
    declare = world.job(EVERY_SECOND, catch_up=30)
    await world.start(declare)
    await world.at(30.5)
    await world.start(declare, 2)
    await world["i1"].stop()
    await world["i1"].restart()
    await world.at(60)
    assert [r.getMessage() for r in caplog.records if r.levelno > logging.INFO] == []


@virtual
async def test_a_failure_is_told_with_its_traceback_and_fields(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_run: Run) -> None:
        raise ValueError("the disk is full")

    await world.start(world.job("1 12 * * *", then=fail, max_attempts=1))
    await world.at(70)
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.name == "anarchon.runs"
    assert record.exc_info is not None
    fields = record.__dict__
    assert (fields["event"], fields["job"], fields["attempt"]) == ("run.failed", "job", 1)
    assert fields["runner"] == "i1"


def test_the_library_configures_nothing() -> None:
    logger = logging.getLogger("anarchon")
    assert [type(handler) for handler in logger.handlers] == [logging.NullHandler]
    assert logger.level == logging.NOTSET
    assert logger.propagate
