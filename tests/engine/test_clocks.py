"""Hosts whose clocks are off, a server whose clock jumps, timers that fire early."""

from __future__ import annotations

import logging

import pytest

from tests.support.world import EVERY_SECOND, NOON, World, minutes, seconds, virtual


@pytest.mark.parametrize("takes", [1, 100])
@virtual
async def test_CLK_01_hosts_minutes_apart(world: World, takes: float) -> None:
    declare = world.job("* * * * *", takes=takes, max_late=300, overlap="allow")
    for ahead in (90.0, 0.0, -90.0):
        await world.add(declare, ahead=ahead, lease=5).start()
    await world.at(5 * 60 + 30)
    assert world.slots() == minutes(1, 2, 3, 4, 5)
    assert world.offsets() == [60, 120, 180, 240, 300]
    assert {entry.attempt for entry in world.entries} == {1}


@virtual
async def test_CLK_01_the_difference_is_told_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "anarchon.scheduler")
    ahead, behind = world.add(world.job(), ahead=90), world.add(world.job(), ahead=-0.5)
    await ahead.start()
    await behind.start()
    await world.wait(600)
    told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(told) == 1
    assert "90.0 s ahead" in told[0]
    assert ahead.scheduler.health().clock_ahead == pytest.approx(90, abs=0.1)


@pytest.mark.parametrize("step", [-3600, -5, 0.4, 5, 3600])
@virtual
async def test_a_step_of_a_host_clock_changes_nothing(world: World, step: float) -> None:
    first, _second = await world.start(world.job("* * * * *", takes=2), 2)
    await world.at(90)
    first.clock.step(step)
    await world.at(241)
    assert world.offsets() == [60, 120, 180, 240]


@virtual
async def test_CLK_04_timers_that_fire_early(world: World) -> None:
    world.time.set_timers_early(0.005)
    await world.start(world.job(EVERY_SECOND), 2)
    await world.at(20.5)
    assert world.slots() == seconds(*range(1, 21))
    assert all(entry.server_start >= entry.slot for entry in world.entries)


@virtual
async def test_CLK_04_the_server_clock_is_slewed_back_a_second(world: World) -> None:
    await world.start(world.job(10), 2)
    await world.at(9.99)
    world.server.step(-1)
    await world.at(35)
    assert world.slots() == seconds(10, 20, 30)
    assert all(entry.server_start >= entry.slot for entry in world.entries)


@virtual
async def test_clocks_that_drift(world: World) -> None:
    # A tenth of a second a minute: a hundred times what quartz does.
    declare = world.job("* * * * *", takes=1)
    await world.add(declare, drift=1 / 600).start()
    await world.add(declare, drift=-1 / 600).start()
    await world.at(20 * 60 + 1)
    assert world.slots() == minutes(*range(1, 21))
    late = [entry.server_start - entry.slot for entry in world.entries]
    assert min(late) >= 0
    assert max(late) < 200


@pytest.mark.parametrize("ahead", [-7200, -3, 3, 7200])
@virtual
async def test_the_server_decides_what_time_it_is(world: World, ahead: int) -> None:
    world.server.step(ahead)
    await world.start(world.job("* * * * *"), 2)
    await world.wait(301)
    assert len(world.entries) == 5
    assert all(0 <= entry.server_start - entry.slot < 50 for entry in world.entries)


@pytest.mark.parametrize("step", [0.3, 2, 30, 600, 86400])
@virtual
async def test_the_server_clock_jumps_forward(world: World, step: float) -> None:
    await world.start(world.job("* * * * *", takes=1), 2, lease=6)
    await world.at(130)
    world.server.step(step)
    await world.at(400)
    assert len(set(world.slots())) == len(world.slots())
    # Learned within the minute from the clock call, and exact from then on.
    late = [
        entry.server_start - entry.slot for entry in world.entries if entry.start > NOON + 200e3
    ]
    assert len(late) >= 3
    assert max(late) < 50


@pytest.mark.parametrize("step", [-0.3, -2, -30, -90])
@virtual
async def test_the_server_clock_jumps_back(world: World, step: float) -> None:
    await world.start(world.job("* * * * *", takes=1), 2, lease=6)
    await world.at(150)
    world.server.step(step)
    await world.at(500)
    assert world.slots() == minutes(*range(1, (500 + round(step)) // 60 + 1))
    assert all(entry.server_start >= entry.slot for entry in world.entries)


@pytest.mark.parametrize("step", [30, 90, 600])
@virtual
async def test_the_server_clock_jumps_forth_and_back(world: World, step: int) -> None:
    await world.start(world.job("* * * * *", takes=1, overlap="allow"), 2, lease=6)
    await world.at(150)
    world.server.step(step)
    await world.at(230)
    world.server.step(-step)
    await world.at(20 * 60 + 1)
    slots = world.slots()
    assert len(set(slots)) == len(slots)
    # Nothing that is due after the clock is right again is left out.
    assert set(minutes(*range(4, 21))) <= set(slots)


@virtual
async def test_a_lease_is_not_lost_when_the_server_clock_jumps_back(world: World) -> None:
    await world.start(world.job("1 12 * * *", takes=30), 2, lease=6)
    await world.at(70)
    world.server.step(-20)
    await world.at(110)
    assert await world.attempts() == ["succeeded"]
    assert len(world.entries) == 1


@virtual
async def test_a_dead_holder_does_not_hold_longer_when_the_server_clock_jumps_back(
    world: World,
) -> None:
    await world.start(world.job("1 12 * * *", takes=30), 2, lease=6)
    await world.at(70)
    world[world.entries[0].runner].crash()
    world.server.step(-8)
    await world.at(72 + 6 + 0.5)
    assert [entry.attempt for entry in world.entries] == [1, 2]


@virtual
async def test_DRF_01_a_job_of_every_second_does_not_drift(world: World) -> None:
    (instance,) = await world.start(world.job(EVERY_SECOND))
    for number in range(480):
        await world.at((number + 1) / 4)
        instance.stall(0.02)
    await world.at(120.5)
    assert world.slots() == seconds(*range(1, 121))
    assert all(0 <= entry.start - entry.slot <= 150 for entry in world.entries)


@virtual
async def test_DRF_02_instances_started_out_of_phase_run_in_phase(world: World) -> None:
    declare = world.job(5)
    for moment in (0, 0.37, 0.81):
        await world.at(moment)
        await world.add(declare).start()
    await world.at(30.5)
    await world["i2"].stop()
    await world["i2"].restart()
    await world.at(61)
    assert world.slots() == seconds(*range(5, 61, 5))
