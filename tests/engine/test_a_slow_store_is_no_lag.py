"""The lag of the event loop is the loop's: a store that answers slowly is none."""

from __future__ import annotations

from anarchon.testing import Fate
from tests.support.world import World, virtual


@virtual
async def test_a_loop_that_waits_for_the_store_turns(world: World) -> None:
    (instance,) = await world.start(world.job("0 3 * * *"), lease=60)
    instance.line.chance = lambda call: Fate(back=1.9 if call == "clock" else 0.0)
    lags: list[float] = []
    for tenth in range(550, 1400):
        await world.at(tenth / 10)
        lags.append(instance.scheduler.health().loop_lag)
    assert max(lags) < 0.001
    assert instance.line.calls["clock"] >= 3


@virtual
async def test_a_loop_that_is_blocked_past_its_due_look_lags(world: World) -> None:
    (instance,) = await world.start(world.job("0 3 * * *"))
    await world.at(55)
    instance.stall(10)
    await world.at(64)
    assert instance.scheduler.health().loop_lag > 2
