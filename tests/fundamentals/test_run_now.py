"""Running a job besides its schedule."""

from __future__ import annotations

import pytest

from anarchon import Run, RunRefused, UnknownJobError
from tests.support.world import World, virtual


@virtual
async def test_run_now_answers_what_the_function_returned(world: World) -> None:
    (instance,) = await world.start(world.job("0 3 * * *", then=lambda _run: 42))
    assert await instance.do(instance.scheduler.run_now("job")) == 42


@virtual
async def test_run_now_raises_what_the_function_raised(world: World) -> None:
    def fail(_run: Run) -> None:
        raise KeyError("missing")

    (instance,) = await world.start(world.job("0 3 * * *", then=fail, max_attempts=1))
    with pytest.raises(KeyError, match="missing"):
        await instance.do(instance.scheduler.run_now("job"))


@virtual
async def test_run_now_runs_on_this_instance_and_is_marked_manual(world: World) -> None:
    _, second, _ = await world.start(world.job("0 3 * * *"), 3)
    await second.do(second.scheduler.run_now("job"))
    (entry,) = world.entries
    assert (entry.runner, entry.trigger) == (second.name, "manual")
    (record,) = await world.history("job")
    assert record.trigger == "manual"


@virtual
async def test_run_now_is_refused_while_another_run_is_live(world: World) -> None:
    first, second = await world.start(world.job("* * * * *", takes=10), 2)
    await world.at(65)
    for instance in (first, second):
        with pytest.raises(RunRefused, match="another run"):
            await instance.do(instance.scheduler.run_now("job"))
    assert len(world.entries) == 1


@virtual
async def test_run_now_needs_a_declared_job(world: World) -> None:
    (instance,) = await world.start(world.job(name="nightly_report"))
    with pytest.raises(UnknownJobError, match="did you mean 'nightly_report'"):
        await instance.do(instance.scheduler.run_now("nightly_rapport"))
