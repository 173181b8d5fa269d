"""Runs that are held back, or cancelled, for the whole cluster; asked of the store itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.support.world import MINUTE, World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Run


async def cancel(world: World, run: str) -> bool:
    """Cancel a run of the job."""
    answer = await world.backend.connect(timeout=1).cancel("job", run, 1000)
    return answer.ok


@virtual
async def test_a_paused_job_is_not_run_and_its_slots_say_so(world: World) -> None:
    await world.start(world.job("* * * * *"), 3)
    store = world.backend.connect(timeout=1)
    await world.at(90)
    await store.pause("job", 0, "for the night")
    await world.at(190)
    await store.resume("job")
    await world.at(301)
    assert world.slots() == minutes(1, 4, 5)
    assert await world.statuses() == ["succeeded", "paused", "paused", "succeeded", "succeeded"]


@virtual
async def test_a_pause_with_an_end_is_over_then(world: World) -> None:
    await world.start(world.job("* * * * *", catch_up=600), 2)
    await world.at(90)
    await world.backend.connect(timeout=1).pause("job", world.server() + MINUTE, "")
    await world.at(241)
    assert world.slots() == minutes(1, 3, 4)


@virtual
async def test_RUN_03_a_pause_over_a_restart(world: World) -> None:
    first, second = await world.start(world.job("* * * * *", catch_up=300), 2)
    await world.at(90)
    store = world.backend.connect(timeout=1)
    await store.pause("job", 0, "")
    await world.at(10 * 60 + 30)
    await first.stop()
    await first.restart()
    await world.at(30 * 60 + 30)
    assert world.slots() == minutes(1)
    await store.resume("job")
    await second.stop()
    await second.restart()
    await world.at(31 * 60 + 1)
    # Nothing of the pause is made up for: its slots have a state, which says "paused".
    assert world.slots() == minutes(1, 31)


@virtual
async def test_run_now_runs_a_paused_job(world: World) -> None:
    (instance,) = await world.start(world.job("* * * * *", then=lambda _run: 3))
    await world.backend.connect(timeout=1).pause("job", 0, "")
    assert await instance.do(instance.scheduler.run_now("job")) == 3


@virtual
async def test_the_holder_learns_of_a_cancellation_by_its_heartbeat(world: World) -> None:
    await world.start(world.job("* * * * *", takes=50), 2, lease=6)
    await world.at(65)
    assert await cancel(world, str(minutes(1)[0]))
    await world.at(68)
    assert world.entries[0].how == "CancelledError"
    assert await world.statuses() == ["cancelled"]
    await world.at(121)
    assert world.slots() == minutes(1, 2)


@virtual
async def test_a_waiting_retry_is_cancelled_at_once(world: World) -> None:
    def fail(_run: Run) -> None:
        raise ValueError

    await world.start(world.job("1 12 * * *", then=fail, retry_delay=40), 2)
    await world.at(65)
    assert await cancel(world, str(minutes(1)[0]))
    await world.at(200)
    assert len(world.entries) == 1
    assert await world.statuses() == ["cancelled"]


@virtual
async def test_a_cancelled_run_of_a_dead_holder_is_not_taken_over(world: World) -> None:
    await world.start(world.job("* * * * *", takes=50), 2, lease=6)
    await world.at(65)
    world[world.entries[0].runner].crash()
    assert await cancel(world, str(minutes(1)[0]))
    await world.at(121)
    assert world.slots() == minutes(1, 2)
    assert (await world.statuses())[0] == "cancelled"


@virtual
async def test_a_finished_run_cannot_be_cancelled(world: World) -> None:
    await world.start(world.job("* * * * *"))
    await world.at(65)
    assert not await cancel(world, str(minutes(1)[0]))
    assert not await cancel(world, str(minutes(7)[0]))


@virtual
async def test_one_budget_for_every_kind_of_failure(world: World) -> None:
    async def body(run: Run) -> None:
        with world.diary.entry(run):
            if run.attempt == 1:
                world[run.runner].crash()
                await asyncio.sleep(0)
            if run.attempt == 2:
                raise ValueError
            if run.attempt == 3:
                await asyncio.sleep(100)  # until its timeout
            if run.attempt == 4:
                asyncio.get_running_loop().call_later(0.5, stop, run.runner)
                await asyncio.sleep(9)  # until its instance stops

    stopping: list[asyncio.Task[None]] = []

    def stop(name: str) -> None:
        stopping.append(asyncio.create_task(world[name].stop(timeout=0)))

    await world.start(
        lambda s: s.add_job(body, "1 12 * * *", name="job", timeout=10, max_attempts=5), 4, lease=6
    )
    await world.at(200)
    assert [entry.attempt for entry in world.entries] == [1, 2, 3, 4, 5]
    assert await world.attempts() == [
        "interrupted",
        "failed",
        "timed-out",
        "released",
        "succeeded",
    ]
