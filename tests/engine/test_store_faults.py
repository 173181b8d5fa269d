"""Requests and answers that are lost, late, refused or doubled; a store that goes away."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from anarchon import StoreError
from anarchon.testing import REFUSED, REPLY_LOST, REQUEST_LOST, Fate
from tests.support.world import EVERY_SECOND, World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Run

BROKEN = Fate(error=StoreError("ERR the script failed"))
ONCE = "1 12 * * *"
LOST = {"request lost": REQUEST_LOST, "reply lost": REPLY_LOST, "refused": REFUSED}
each_loss = pytest.mark.parametrize("fate", LOST.values(), ids=LOST)


@each_loss
@virtual
async def test_OUT_05a_a_claim_is_repeated_until_it_is_answered(world: World, fate: Fate) -> None:
    (instance,) = await world.start(world.job(ONCE), lease=6)
    instance.line.plan("claim", fate, fate, fate)
    await world.at(80)
    (entry,) = world.entries
    assert (entry.slot, entry.attempt) == (minutes(1)[0], 1)
    assert await world.attempts() == ["succeeded"]


@each_loss
@virtual
async def test_OUT_05a_with_others_about_it_runs_once(world: World, fate: Fate) -> None:
    instances = await world.start(world.job(ONCE, takes=30), 3, lease=6)
    for instance in instances:
        instance.line.plan("claim", fate)
    await world.at(120)
    succeeded = [entry for entry in world.entries if entry.how == "succeeded"]
    assert len(succeeded) == 1
    assert (await world.attempts())[-1] == "succeeded"


@virtual
async def test_OUT_05b_nothing_runs_unclaimed(world: World) -> None:
    (instance,) = await world.start(world.job(ONCE, max_late=20))
    await world.at(59)
    instance.line.cut()
    await world.at(90)
    instance.line.mend()
    await world.at(200)
    assert world.entries == []


@virtual
async def test_OUT_05b_a_refused_claim_never_runs(world: World) -> None:
    (instance,) = await world.start(world.job(ONCE, max_late=20))
    instance.line.chance = lambda call: REFUSED if call == "claim" else Fate()
    await world.at(200)
    assert world.entries == []


@each_loss
@virtual
async def test_OUT_05c_a_finish_is_repeated_until_it_is_answered(world: World, fate: Fate) -> None:
    instances = await world.start(world.job(ONCE, takes=3), 2, lease=6)
    for instance in instances:
        instance.line.plan("finish", fate)
    await world.at(120)
    assert len(world.entries) == 1
    assert await world.attempts() == ["succeeded"]


@each_loss
@virtual
async def test_OUT_05c_a_failure_is_written_once(world: World, fate: Fate) -> None:
    def fail(_run: Run) -> None:
        raise ValueError

    (instance,) = await world.start(world.job(ONCE, then=fail, max_attempts=2), lease=6)
    instance.line.plan("finish", fate, fate)
    await world.at(120)
    assert [entry.attempt for entry in world.entries] == [1, 2]
    assert await world.attempts() == ["failed", "failed"]


@virtual
async def test_OUT_05d_the_store_is_away_when_the_body_ends(world: World) -> None:
    (instance,) = await world.start(world.job("* * * * *", takes=5, max_attempts=1), lease=6)
    await world.at(63)
    instance.line.cut(silent=True)
    await world.at(63 + 18)
    instance.line.mend()
    await world.at(125)
    # Nobody else was granted anything, so the late finish still counts.
    assert world.entries[0].how == "succeeded"
    assert (await world.statuses())[0] == "succeeded"
    assert world.slots() == minutes(1, 2)


@virtual
async def test_OUT_05d_an_attempt_that_took_over_stands(world: World) -> None:
    instances = await world.start(world.job(ONCE, takes=4), 2, lease=6)
    await world.at(63)
    winner = world[world.entries[0].runner]
    winner.line.cut(silent=True)
    await world.at(90)
    winner.line.mend()
    await world.at(120)
    assert [entry.how for entry in world.entries] == ["succeeded", "succeeded"]
    assert await world.attempts() == ["interrupted", "succeeded"]
    assert len(instances) == 2


@each_loss
@virtual
async def test_a_lost_heartbeat_does_not_end_a_run(world: World, fate: Fate) -> None:
    instances = await world.start(world.job(ONCE, takes=30), 2, lease=6)
    for instance in instances:
        instance.line.plan("heartbeat", *[fate, Fate()] * 20)
    await world.at(120)
    assert len(world.entries) == 1
    assert await world.attempts() == ["succeeded"]


@each_loss
@virtual
async def test_a_release_is_repeated_until_it_is_answered(world: World, fate: Fate) -> None:
    (instance,) = await world.start(world.job("1 * * * *", takes=50), lease=1.5)
    await world.at(65)
    instance.line.plan("release", fate)
    await instance.stop(timeout=1)
    await instance.restart()
    await world.wait(3)
    assert [entry.attempt for entry in world.entries] == [1, 2]


@virtual
async def test_answers_under_way_for_long_are_not_believed_too_long(world: World) -> None:
    # A quarter of the lease there and another back: the job still runs, once, under its lease.
    instances = await world.start(world.job(ONCE, takes=20), 3, lease=6)
    for instance in instances:
        instance.line.chance = lambda _call: Fate(there=0.8, back=0.8)
    await world.at(120)
    assert len(world.entries) == 1
    assert await world.attempts() == ["succeeded"]


@virtual
async def test_a_stray_copy_of_a_claim_wins_for_nobody(world: World) -> None:
    instances = await world.start(world.job(ONCE, takes=2, max_attempts=5), 2, lease=6)
    for instance in instances:
        instance.line.plan("claim", *[Fate(copy_after=n) for n in (1, 8, 15)])
    await world.at(200)
    assert len(world.entries) == 1
    assert await world.attempts() == ["succeeded"]


@virtual
async def test_a_claim_held_up_past_its_time_wins_nothing(world: World) -> None:
    (instance,) = await world.start(world.job(ONCE, max_late=10), lease=6)
    instance.line.chance = lambda call: Fate(there=90) if call == "claim" else Fate()
    await world.at(300)
    assert world.entries == []
    assert await world.statuses() == ["missed"]


@virtual
async def test_a_claim_that_arrives_after_its_sender_gave_up_is_noticed(world: World) -> None:
    (instance,) = await world.start(world.job(ONCE, max_late=60), lease=6)
    instance.line.plan("claim", Fate(there=3.0), Fate(there=3.0))
    await world.at(120)
    assert [entry.attempt for entry in world.entries] == [1]


# -- the store goes away --------------------------------------------------------------------------


@pytest.mark.parametrize("outage", [1, 10, 60])
@pytest.mark.parametrize("silent", [False, True])
@virtual
async def test_OUT_01_idle_the_first_slot_after_the_return_is_on_time(
    world: World, outage: int, silent: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "anarchon")
    instances = await world.start(world.job("*/2 * * * *"), 2)
    await world.at(130)
    for instance in instances:
        instance.line.cut(silent=silent)
    await world.at(130 + outage)
    for instance in instances:
        instance.line.mend()
    await world.at(250)
    assert world.offsets() == [120, 240]
    told = [record.levelname for record in caplog.records if record.name == "anarchon.store"]
    assert told.count("WARNING") == told.count("INFO") <= 2


@pytest.mark.parametrize("outage", [1, 10, 40])
@virtual
async def test_OUT_01_at_the_slot_it_starts_soon_after_the_return(
    world: World, outage: int
) -> None:
    instances = await world.start(world.job(ONCE), 2)
    await world.at(59)
    for instance in instances:
        instance.line.cut()
    await world.at(59 + outage)
    for instance in instances:
        instance.line.mend()
    await world.at(200)
    assert world.slots() == minutes(1)
    assert max(60, 59 + outage) <= world.offsets()[0] <= 59 + outage + 3


@virtual
async def test_OUT_01_in_mid_run_a_short_outage_does_no_harm(world: World) -> None:
    instances = await world.start(world.job(ONCE, takes=30), 2, lease=9)
    await world.at(70)
    for instance in instances:
        instance.line.cut()
    await world.at(74)
    for instance in instances:
        instance.line.mend()
    await world.at(120)
    assert [entry.how for entry in world.entries] == ["succeeded"]


@virtual
async def test_OUT_01_in_mid_run_an_outage_longer_than_the_lease_stops_the_job(
    world: World,
) -> None:
    instances = await world.start(world.job(ONCE, takes=60), 2, lease=6)
    await world.at(70)
    for instance in instances:
        instance.line.cut()
    await world.at(77)
    assert world.entries[0].how == "CancelledError"
    for instance in instances:
        instance.line.mend()
    await world.at(200)
    assert [entry.attempt for entry in world.entries] == [1, 2]
    assert await world.attempts() == ["interrupted", "succeeded"]


@pytest.mark.parametrize("silent", [False, True])
@virtual
async def test_OUT_01_the_store_is_not_up_at_the_start(
    world: World, silent: bool, caplog: pytest.LogCaptureFixture
) -> None:
    instance = world.add(world.job(EVERY_SECOND))
    instance.line.cut(silent=silent)
    await instance.start()
    assert instance.scheduler.health().running
    assert not instance.scheduler.health().store
    await world.at(60)
    assert world.entries == []
    assert len(caplog.records) == 1
    instance.line.mend()
    await world.at(70)
    assert instance.scheduler.health().store
    assert 3 <= len(world.entries) <= 10


@virtual
async def test_the_store_goes_away_between_open_and_register(world: World) -> None:
    instance = world.add(world.job(EVERY_SECOND))
    instance.line.chance = lambda call: REQUEST_LOST if call == "register" else Fate()
    await instance.start()
    await world.at(20)
    assert world.entries == []
    await instance.stop()


@virtual
async def test_the_store_forgets_everything_in_mid_run(world: World) -> None:
    await world.start(world.job("* * * * *", takes=20), 2, lease=6)
    await world.at(65)
    world.backend.books.clear()
    await world.at(90)
    assert world.entries[0].how == "CancelledError"
    assert world.backend.book("job").records == {}
    await world.at(121)
    assert world.slots() == minutes(1, 2)


@virtual
async def test_an_error_of_the_store_stops_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    (instance,) = await world.start(world.job(10))
    failing = True

    def sometimes(call: str) -> Fate:
        return BROKEN if failing and call == "claim" else Fate()

    instance.line.chance = sometimes
    await world.at(15)
    assert [r.levelname for r in caplog.records] == ["ERROR"]
    failing = False
    await world.at(31)
    assert len(world.entries) == 3
    assert instance.scheduler.health().running


@pytest.mark.parametrize("silent", [False, True], ids=["refusing", "silent"])
@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("lease", [3, 30])
@virtual
async def test_a_run_that_ended_in_an_outage_is_not_run_again(  # eight seeds: it was a race
    world: World, number: int, silent: bool, lease: int
) -> None:
    # It ends while it may still be believed in; the outage lasts until its lease looks abandoned.
    instances = await world.start(world.job(ONCE, takes=2 * lease + 0.5), 3, lease=lease)
    await world.at(60 + 2 * lease + 0.3)
    for instance in instances:
        instance.line.cut(silent=silent)
    await world.wait(1.7 * lease)
    for instance in instances:
        instance.line.mend()
    await world.wait(3 * lease)
    first = [entry for entry in world.entries if entry.slot == world.slots()[0]]
    assert [entry.attempt for entry in first] == [1]
    assert (await world.statuses())[-1] == "succeeded"
