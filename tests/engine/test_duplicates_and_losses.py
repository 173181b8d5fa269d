"""Each run once, and none forgotten: over restarts, crashes and late instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.world import EVERY_SECOND, World, minutes, seconds, virtual

if TYPE_CHECKING:
    from anarchon import Run, Scheduler

ONCE = "1 12 * * *"


@virtual
async def test_DUP_01_every_worker_has_a_scheduler(world: World) -> None:
    await world.start(world.job(EVERY_SECOND), 4)
    await world.at(30.5)
    assert world.slots() == seconds(*range(1, 31))


@pytest.mark.parametrize("late", [0.2, 1, 5, 59.9])
@virtual
async def test_DUP_02_a_late_instance_is_told_that_a_short_run_is_done(
    world: World, late: float
) -> None:
    first, second = await world.start(world.job(ONCE, max_late=60), 2)
    await world.at(59)
    second.suspend(1 + late)
    await world.at(200)
    assert [entry.runner for entry in world.entries] == [first.name]
    assert second.line.calls["claim"] >= 1


@virtual
async def test_DUP_05_a_restart_in_the_minute_of_a_slot(world: World) -> None:
    (instance,) = await world.start(world.job(ONCE, max_late=60))
    for restart in (65, 80):
        await world.at(restart)
        await instance.stop()
        await instance.restart()
    await world.at(200)
    assert world.slots() == minutes(1)


@pytest.mark.parametrize("option", ["max_late", "catch_up"])
@pytest.mark.parametrize("ran_before", [True, False])
@virtual
async def test_LOST_01_a_deploy_over_the_slot(world: World, option: str, ran_before: bool) -> None:
    settings = {"max_late": 1, "catch_up": 0} | {option: 60}
    (old,) = await world.start(world.job("*/2 * * * *", **settings))  # type: ignore[arg-type]
    slot = 240 if ran_before else 120
    await world.at(slot - 0.3)
    await old.stop()
    await world.at(slot + 2)
    await old.restart()
    await world.at(slot + 60)
    assert world.slots()[-1] == minutes(slot // 60)[0]
    assert world.offsets()[-1] == pytest.approx(slot + 2, abs=0.1)


@virtual
async def test_LOST_01_without_lateness_the_miss_is_visible(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    (old,) = await world.start(world.job("*/2 * * * *", max_late=0))
    await world.at(119.7)
    await old.stop()
    await world.at(122)
    await old.restart()
    await world.at(180)
    assert world.entries == []
    told = [str(run.status) for run in await world.history("job")]
    assert "missed" in told or any("12:02" in r.getMessage() for r in caplog.records)


def dying_before_the_body(world: World, max_attempts: int) -> object:
    """Jobs whose first attempt kills its process before anything else."""

    def crash(run: Run) -> None:
        if run.attempt == 1 and run.slot == minutes(1)[0]:
            world[run.runner].crash()

    async def body(run: Run) -> None:
        crash(run)
        if world[run.runner].alive:
            with world.diary.entry(run):
                pass

    def declare(scheduler: Scheduler) -> None:
        scheduler.add_job(body, "* * * * *", name="job", max_attempts=max_attempts)

    return declare


@virtual
async def test_LOST_02_the_process_dies_between_claim_and_body(world: World) -> None:
    await world.start(dying_before_the_body(world, 2), 2, lease=6)  # type: ignore[arg-type]
    await world.at(60 + 6 + 1)
    assert [entry.attempt for entry in world.entries] == [2]
    await world.at(121)
    assert world.slots() == minutes(1, 2)


@virtual
async def test_LOST_02_with_one_attempt_the_run_ends_as_interrupted(world: World) -> None:
    (instance,) = await world.start(dying_before_the_body(world, 1), lease=6)  # type: ignore[arg-type]
    await world.at(61)
    await instance.restart()
    await world.at(121)
    assert await world.statuses() == ["interrupted", "succeeded"]


@virtual
async def test_STUCK_01_a_crash_in_mid_run_does_not_block_later_runs(world: World) -> None:
    (instance,) = await world.start(world.job(20, takes=30, max_attempts=1), lease=6)
    await world.at(25)
    instance.crash()
    await instance.restart()
    await world.at(25 + 6 + 20 + 1)
    assert world.slots() == seconds(20, 40)
    first = (await world.history("job"))[-1]
    assert first.status == "interrupted"
    assert first.attempts[0].end is not None


@virtual
async def test_RET_01_a_job_that_kills_its_process_uses_up_its_attempts(world: World) -> None:
    def kill(run: Run) -> None:
        world[run.runner].crash()

    def declare(scheduler: Scheduler) -> None:
        world.job("1,5 12 * * *", 0.1, kill, max_attempts=3)(scheduler)
        world.job(10, name="other")(scheduler)

    await world.start(declare, lease=6)
    for _ in range(400):  # a supervisor that looks once a second
        await world.wait(1)
        if not world["i1"].alive:
            await world["i1"].restart()
    starts = world.slots()
    assert starts == minutes(1, 1, 1, 5, 5, 5)
    await world["i1"].stop()
    await world["i1"].restart()
    assert len(world.slots("other")) >= 35
    assert await world.statuses() == ["interrupted", "interrupted"]
    assert await world.attempts() == ["interrupted"] * 3


@virtual
async def test_RET_03_a_late_retry_meets_the_next_slot(world: World) -> None:
    def fail_first(run: Run) -> None:
        if run.attempt == 1 and run.slot == minutes(1)[0]:
            raise ValueError

    await world.start(world.job("* * * * *", 5, fail_first, retry_delay=120), 2, lease=6)
    await world.at(60 * 7 - 1)
    # The wait counts as live, so slots that fall into it are skipped.
    assert world.diary.most_at_once("job") == 1
    retried = [entry for entry in world.entries if entry.attempt == 2]
    assert [entry.slot for entry in retried] == minutes(1)
    statuses = await world.statuses()
    assert statuses[0] == "succeeded"
    assert "skipped" in statuses[1:3]
    assert set(statuses[3:]) == {"succeeded"}


@virtual
async def test_a_run_left_by_all_is_adopted_from_the_answer_to_a_claim(world: World) -> None:
    # Both instances that know of the run are gone; the third learns of it from its next claim.
    declare = world.job("*/5 * * * *", takes=20)
    (first,) = await world.start(declare, lease=6)
    await world.at(299)
    third = world.add(declare, lease=6)
    await third.start()
    third.suspend(4)
    await world.at(302)
    first.crash()
    await world.at(330)
    assert [(e.attempt, e.runner) for e in world.entries] == [(1, "i1"), (2, "i2")]


@virtual
async def test_an_open_run_is_adopted_at_the_start(world: World) -> None:
    declare = world.job("0 * * * *", takes=20)
    (first,) = await world.start(declare, lease=6)
    await world.at(3605)
    first.crash()
    await world.at(3660)
    await world.add(declare, lease=6).start()
    await world.at(3661)
    assert [(e.attempt, e.runner) for e in world.entries] == [(1, "i1"), (2, "i2")]


@virtual
async def test_a_manual_run_is_adopted_as_well(world: World) -> None:
    declare = world.job("0 3 * * *", takes=20)
    first, _second = await world.start(declare, 2, lease=6)
    world.time.loop.create_task(first.do(first.scheduler.run_now("job")))
    await world.at(5)
    first.crash()
    await world.at(20)
    assert len(world.entries) == 1  # nobody else has heard of it yet
    await world.add(declare, lease=6).start()
    await world.at(60)
    assert [entry.trigger for entry in world.entries] == ["manual", "manual"]
    assert await world.attempts() == ["interrupted", "succeeded"]


@virtual
async def test_a_sweep_closes_what_is_past_its_limit(world: World) -> None:
    declare = world.job("0 * * * *", takes=20, max_late=30)
    (first,) = await world.start(declare, lease=6)
    await world.at(3605)
    first.crash()
    await world.at(3605 + 6 + 31)
    await first.restart()
    await world.at(3700)
    assert len(world.entries) == 1
    assert await world.statuses() == ["interrupted"]
