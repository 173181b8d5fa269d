"""History.

What is remembered of a job's runs, and what forgetting changes.
"""

from __future__ import annotations

from tests.behaviour.rows import row
from tests.behaviour.stories import several
from tests.support.world import World, virtual


@row(
    "history_size",
    "a job has had more runs",
    "About so many are kept, the newest; older ones go as new ones are recorded.",
)
@virtual
async def test_history_size(world: World) -> None:
    await world.start(world.job(10, max_late=5), 2, history_size=20)
    await world.at(1801)
    kept = [run.slot.timestamp() for run in await world.history("job", limit=100)]
    newest = world.time.start.timestamp() + 1800
    assert kept == [newest - 10 * n for n in range(len(kept))]
    assert 20 <= len(kept) <= 22


@row(
    "history_size, catch_up",
    "it is smaller than the number of slots in the time within which a slot may still run",
    "Runs of that time are kept all the same, so that none is run twice.",
)
@virtual
async def test_what_can_be_asked_for_is_kept(world: World) -> None:
    declare = world.job(10, catch_up=600, coalesce=False)
    instances = await world.start(declare, 2, history_size=5)
    await world.at(1201)
    assert 60 <= len(world.backend.book("job").records) <= 72
    for instance in instances:
        await instance.stop()
        await instance.restart()
    await world.at(1205)
    assert len(world.slots()) == len(set(world.slots())) == 120


@row(
    "history_size",
    "one of the oldest runs is still open",
    "It stays, whatever its age.",
)
@virtual
async def test_open_runs_are_kept(world: World) -> None:
    await world.start(world.job(10, 120, overlap="allow", max_late=5), 2, history_size=3)
    await world.at(125)
    assert len(world.backend.book("job").records) == 12
    await world.at(225)
    # Each ended well, the oldest too; its like is still open, and kept.
    assert [entry.how for entry in world.entries[:10]] == ["succeeded"] * 10
    assert 12 <= len(world.backend.book("job").records) <= 14


@row(
    "history_ttl",
    "runs of a job are older than it",
    "They go when a newer run is recorded.",
)
@virtual
async def test_history_ttl(world: World) -> None:
    await world.start(world.job(10, max_late=5), 2, history_ttl=300)
    await world.at(1801)
    kept = await world.history("job", limit=1000)
    oldest = world.time.start.timestamp() + 1800 - 300
    assert 28 <= len(kept) <= 32
    assert min(run.slot.timestamp() for run in kept) >= oldest - 10


@row(
    "history_ttl",
    "a job has not run for longer than it",
    "Its last runs stay until it runs again.",
)
@virtual
async def test_history_of_a_job_at_rest(world: World) -> None:
    await world.start(world.job("1-3 12 * * *"), history_ttl=300)
    await world.at(20_000)
    assert len(await world.history("job")) == 3


@virtual
async def test_each_job_has_its_own(world: World) -> None:
    often, rarely = world.job(1, name="often"), world.job("*/2 * * * *")
    await world.start(several(often, rarely), history_size=20)
    await world.at(601)
    assert len(world.slots("often")) == 600
    assert [run.slot.minute for run in await world.history("job")] == [10, 8, 6, 4, 2]
