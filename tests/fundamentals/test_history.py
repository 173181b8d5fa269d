"""What history tells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tests.support.world import World, virtual

if TYPE_CHECKING:
    from anarchon import Run


@virtual
async def test_history_tells_of_runs_newest_first(world: World) -> None:
    (instance,) = await world.start(world.job("* * * * *", takes=2))
    await world.at(200)
    runs = await instance.scheduler.history("job", limit=2)
    noon = datetime(2026, 1, 5, 12, tzinfo=UTC)
    assert [run.slot for run in runs] == [noon + timedelta(minutes=m) for m in (3, 2)]
    assert {run.status for run in runs} == {"succeeded"}


@virtual
async def test_history_tells_of_each_attempt(world: World) -> None:
    def fail_first(run: Run) -> None:
        if run.attempt == 1:
            raise ValueError("the disk is full")

    (instance,) = await world.start(world.job("* * * * *", takes=2, then=fail_first))
    await world.at(70)
    (run,) = await instance.scheduler.history("job")
    first, second = run.attempts
    assert (first.number, first.status, first.runner) == (1, "failed", "i1")
    assert first.error is not None
    assert first.error.startswith("ValueError: the disk is full")
    assert first.duration == 2.0
    assert (second.number, second.status, second.error) == (2, "succeeded", None)


@virtual
async def test_history_tells_what_is_running(world: World) -> None:
    await world.start(world.job("* * * * *", takes=20))
    await world.at(65)
    assert await world.statuses() == ["running"]
    assert await world.attempts() == ["running"]


@virtual
async def test_history_tells_what_waits_for_its_retry(world: World) -> None:
    def fail(_run: Run) -> None:
        raise ValueError

    await world.start(world.job("* * * * *", then=fail, retry_delay=30))
    await world.at(65)
    assert await world.statuses() == ["waiting"]
    assert await world.attempts() == ["failed"]


@virtual
async def test_history_keeps_about_history_size_runs(world: World) -> None:
    await world.start(world.job(10), history_size=20)
    await world.at(600)
    assert 20 <= len(await world.history("job", limit=100)) <= 30


@virtual
async def test_history_can_be_read_without_starting(world: World) -> None:
    await world.start(world.job("* * * * *"))
    await world.at(65)
    reader = world.add(lambda _scheduler: None)
    (run,) = await reader.scheduler.history("job")
    assert run.status == "succeeded"
