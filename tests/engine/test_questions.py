"""What can be asked of a scheduler, started or not: states, instances, history, health, jobs."""

from __future__ import annotations

import asyncio
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from anarchon import (
    ConfigurationError,
    Health,
    JobState,
    Reason,
    SchedulerStateError,
    StorePermissionError,
    StoreUnavailable,
    UnknownJobError,
)
from anarchon.runs import moment
from anarchon.testing import Fate
from tests.engine.asking import FIRST, cancel, do, pause, resume, state
from tests.support.world import EVERY_SECOND, MINUTE, NOON, World, minutes, virtual

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from anarchon import Scheduler


# -- state, history, instances ---------------------------------------------------------------------


@virtual
async def test_the_state_of_a_job(world: World) -> None:
    await world.at(5)
    instance = world.add(world.job("1 12 * * *", takes=30))
    assert await state(instance) == JobState("job", False, None, False, None, "", ())
    assert world.backend.books == {}
    await instance.start()
    since = moment(NOON + 5_000)
    assert await state(instance) == JobState("job", True, since, False, None, "", ())
    await world.at(65)
    await pause(instance, note="why")
    world.backend.book("job").active.add("5")  # a member that is left over names no open run
    told = await state(instance)
    assert told == JobState("job", True, since, True, None, "why", (FIRST,))
    assert told.since is not None
    assert told.since.tzinfo is UTC


@virtual
async def test_instances_tell_of_themselves(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job("1 12 * * *", max_attempts=5, timeout=90)(scheduler)
        world.job(EVERY_SECOND, name="tick", overlap="allow")(scheduler)

    await world.at(1)
    first = world.add(declare, ahead=7)
    second = world.add(world.job("2 12 * * *"))
    await asyncio.gather(first.start(), second.start())
    await world.at(70)
    one, two = await do(second, lambda s: s.instances())
    assert (one.runner, two.runner) == ("i1", "i2")
    assert one.clock_ahead == pytest.approx(7, abs=0.01)
    assert two.clock_ahead == pytest.approx(0, abs=0.01)
    assert one.last_seen.tzinfo is UTC
    assert one.last_seen == pytest.approx(moment(NOON + 61_000), abs=timedelta(seconds=0.2))
    assert one.jobs == {
        "job": "cron:1 12 * * *@UTC max_attempts=5 timeout=90",
        "tick": "cron:* * * * * *@UTC overlap=allow",
    }
    assert one.jobs_digest != two.jobs_digest
    assert one.version == two.version != ""
    await first.stop()
    assert [info.runner for info in await do(second, lambda s: s.instances())] == ["i2"]


@virtual
async def test_a_silent_instance_is_dropped_by_the_others(world: World) -> None:
    first, second = await world.start(world.job("0 3 * * *"), 2)
    first.crash()
    await world.at(170)
    assert len(await do(second, lambda s: s.instances())) == 2
    await world.at(250)
    assert [info.runner for info in await do(second, lambda s: s.instances())] == ["i2"]


@virtual
async def test_equal_instances_have_equal_digests(world: World) -> None:
    def declare(*names: str) -> Callable[[Scheduler], None]:
        def jobs(scheduler: Scheduler) -> None:
            for name in names:
                world.job(name=name)(scheduler)

        return jobs

    for names in (("a", "b"), ("b", "a"), ("a", "b", "c")):
        await world.start(declare(*names))
    await world.at(1)
    one, two, three = await do(world["i1"], lambda s: s.instances())
    assert one.jobs_digest == two.jobs_digest != three.jobs_digest


@virtual
async def test_too_many_definitions_are_told_by_their_digest(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        for number in range(700):
            world.job("0 3 * * *", name=f"a job with a long name {number}")(scheduler)

    (instance,) = await world.start(declare)
    await world.at(1)
    (info,) = await do(instance, lambda s: s.instances())
    assert info.jobs is None
    assert info.jobs_digest


@virtual
async def test_the_history_of_a_job_that_is_not_declared(world: World) -> None:
    await world.start(world.job())
    await world.at(185)
    stranger = world.add(lambda scheduler: None)
    runs = await do(stranger, lambda s: s.history("job", 2))
    assert [run.id for run in runs] == [str(slot) for slot in minutes(3, 2)]
    wrong: list[Any] = [0, -1, 10_001, 1.5, True, "5"]
    for limit in wrong:
        with pytest.raises(ConfigurationError, match="limit"):
            await stranger.do(stranger.scheduler.history("job", limit))


# -- started and not started -----------------------------------------------------------------------


@virtual
async def test_questions_to_a_scheduler_that_is_not_started(world: World) -> None:
    await world.start(world.job("1 12 * * *", takes=30))
    await world.at(65)
    asker = world.add(world.job("1 12 * * *", takes=30))
    before = set(world.backend.instances)
    assert (await state(asker)).open_runs == (FIRST,)
    assert len(await do(asker, lambda s: s.history("job"))) == 1
    assert (await do(asker, lambda s: s.why("job", FIRST))).sentences[0] == "It is running."
    assert len(await do(asker, lambda s: s.instances())) == 1
    assert all(finding.level == "ok" for finding in await do(asker, lambda s: s.check()))
    await pause(asker)
    assert await resume(asker)
    assert await cancel(asker) == (FIRST,)
    with pytest.raises(SchedulerStateError, match="i1 still runs job"):
        await do(asker, lambda s: s.forget("job"))
    # It showed itself to nobody, registered nothing, and asked for no run.
    assert set(world.backend.instances) == before
    assert asker.line.calls["register"] == asker.line.calls["claim"] == 0
    assert asker.scheduler.health() == Health(False, False, 0.0, 0.0)


@virtual
async def test_before_a_question_the_format_is_looked_at_and_nothing_else(world: World) -> None:
    asker = world.add(world.job())
    await do(asker, lambda s: s.history("job"))
    assert asker.line.calls == {"visit": 1, "history": 1}


@virtual
async def test_a_started_one_asks_over_its_own_connection(world: World) -> None:
    (instance,) = await world.start(world.job())
    await do(instance, lambda s: s.history("job"))
    assert instance.line.calls["visit"] == 0
    await instance.stop()
    await do(instance, lambda s: s.history("job"))
    assert instance.line.calls["visit"] == 1


@pytest.mark.parametrize("started", [True, False])
@virtual
async def test_errors_of_the_store_come_out_of_questions(world: World, started: bool) -> None:
    instance = world.add(world.job())
    if started:
        await instance.start()
    refused = Fate(error=StorePermissionError("not you"))
    instance.line.plan("look", refused, refused)
    with pytest.raises(StorePermissionError, match="not you"):
        await state(instance)
    with pytest.raises(StorePermissionError, match="not you"):
        await cancel(instance)
    instance.line.cut()
    with pytest.raises(StoreUnavailable):
        await do(instance, lambda s: s.instances())
    instance.line.mend()
    assert not (await state(instance)).paused


@pytest.mark.parametrize("started", [True, False])
@virtual
async def test_an_unknown_job_is_refused_and_leaves_no_trace(world: World, started: bool) -> None:
    instance = world.add(world.job(name="report"))
    if started:
        await instance.start()
    asks: list[Callable[[Scheduler], Coroutine[Any, Any, object]]] = [
        lambda s: s.pause("reprot"),
        lambda s: s.resume("reprot"),
        lambda s: s.cancel("reprot"),
        lambda s: s.cancel("reprot", FIRST),
        lambda s: s.forget("reprot"),
        lambda s: s.why("reprot", FIRST),
    ]
    for ask in asks:
        with pytest.raises(UnknownJobError, match=r"did you mean 'report'\?"):
            await do(instance, ask)
    assert "reprot" not in world.backend.books
    assert await do(instance, lambda s: s.history("reprot")) == ()


@virtual
async def test_what_cannot_be_a_name_is_refused(world: World) -> None:
    (instance,) = await world.start(world.job())
    wrong: list[Any] = ["", 5, None, "x" * 513, "\ud800"]
    for name in wrong:
        for ask in ("pause", "resume", "cancel", "forget", "state", "history"):
            with pytest.raises(ConfigurationError, match="name"):
                await instance.do(getattr(instance.scheduler, ask)(name))


# -- health ----------------------------------------------------------------------------------------


@virtual
async def test_the_health_of_an_instance(world: World) -> None:
    instance = world.add(world.job(takes=30), ahead=3)
    assert instance.scheduler.health() == Health(False, False, 0.0, 0.0)
    await instance.start()
    health = instance.scheduler.health()
    assert (health.running, health.store, health.loop_lag) == (True, True, 0.0)
    assert health.clock_ahead == pytest.approx(3, abs=0.01)
    await world.at(65)
    stopping = asyncio.create_task(instance.stop())
    await world.at(66)
    assert not instance.scheduler.health().running
    await stopping
    assert instance.scheduler.health() == Health(False, False, 0.0, 0.0)


@virtual
async def test_the_store_is_not_well_while_it_answers_errors(world: World) -> None:
    (instance,) = await world.start(world.job(max_attempts=1))
    await world.at(50)
    denied = Fate(error=StorePermissionError("NOPERM"))
    instance.line.chance = lambda _call: denied
    await world.at(62)
    health = instance.scheduler.health()
    assert (health.running, health.store) == (True, False)
    instance.line.chance = lambda _call: Fate()
    await world.at(130)
    assert instance.scheduler.health().store
    assert world.slots()[-1:] == minutes(2)


@virtual
async def test_the_store_is_not_well_while_it_is_away(world: World) -> None:
    (instance,) = await world.start(world.job("0 3 * * *"))
    instance.line.cut()
    await world.at(61)
    assert not instance.scheduler.health().store
    instance.line.mend()
    await world.at(65)
    assert instance.scheduler.health().store


@virtual
async def test_an_instance_that_starts_without_its_store(world: World) -> None:
    instance = world.add(world.job())
    instance.line.cut()
    await instance.start()
    health = instance.scheduler.health()
    assert (health.running, health.store) == (True, False)
    instance.line.mend()
    await world.at(65)
    assert instance.scheduler.health().store
    assert world.slots() == minutes(1)


@virtual
async def test_the_jobs_of_a_scheduler(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job("30 13 * * *", timezone="Europe/Berlin")(scheduler)
        world.job(90, name="interval")(scheduler)

    instance = world.add(declare, ahead=100 * 60)
    job, interval = instance.scheduler.jobs
    # Before it is started, this host's clock has to do; afterwards the store's.
    assert job.next_run == moment(NOON + 24 * 60 * MINUTE + 30 * MINUTE)
    await instance.start()
    job, interval = instance.scheduler.jobs
    assert (job.name, interval.name) == ("job", "interval")
    assert job.next_run == moment(NOON + 30 * MINUTE)
    assert str(job.next_run) == "2026-01-05 13:30:00+01:00"
    assert "13:30" in job.schedule
    assert job.not_run == interval.not_run == {}
    assert all(isinstance(reason, Reason) for reason in job.not_run)
