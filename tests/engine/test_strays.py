"""What nobody expects of a part outside: errors of another kind, at the worst moment."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import random
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from anarchon import MemoryBackend, Scheduler, SchedulerStateError
from anarchon.testing import Fate, run_virtual
from anarchon.testing.virtual import TURN
from tests.support.world import EVERY_SECOND, HOUR, MINUTE, NOON, World, minutes, virtual

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from anarchon.testing import Instance, VirtualTime

ONCE = "1 12 * * *"
ODD: dict[str, Exception] = {
    "ValueError": ValueError("invalid literal"),
    "AttributeError": AttributeError("'NoneType' object has no attribute 'writelines'"),
    "IncompleteReadError": asyncio.IncompleteReadError(b"", 1),
    "KeyError": KeyError("code"),
}
each_odd_error = pytest.mark.parametrize("error", ODD.values(), ids=ODD)


def engine_of(instance: Instance) -> Any:
    """What is inside, for what cannot be seen from outside."""
    return vars(instance.scheduler)["_engine"]


# -- a client that raises what it should not -----------------------------------------------------


def spoil(
    instance: Instance, name: str, error: Exception, spoiled: Callable[[], bool], *, after: bool
) -> None:
    """Let calls of a name raise an error of no known kind, before or after they are made."""
    line: Any = instance.line
    call = line.call

    async def odd_call(called: str, *arguments: Any) -> Any:
        if called != name or not spoiled():
            return await call(called, *arguments)
        if after:
            await call(called, *arguments)
        raise error

    line.call = odd_call


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", ["open", "register", "clock", "claim", "heartbeat", "finish"])
@each_odd_error
@virtual
async def test_an_error_of_no_known_kind_counts_as_no_answer(
    world: World, error: Exception, call: str, after: bool
) -> None:
    instance = world.add(world.job(takes=4), lease=6)
    left = [True] * 3
    spoil(instance, call, error, lambda: bool(left) and left.pop(), after=after)
    await instance.start()
    await world.at(200)
    assert world.slots() == minutes(1, 2, 3)
    assert set(await world.statuses()) == {"succeeded"}
    health = instance.scheduler.health()
    assert (health.running, health.store) == (True, True)


@pytest.mark.parametrize("call", ["clock", "release", "claim"])
@each_odd_error
@virtual
async def test_nor_does_it_keep_a_scheduler_from_stopping(
    world: World, error: Exception, call: str
) -> None:
    before = world.time.loop.get_task_factory()
    (instance,) = await world.start(world.job(takes=30))
    await world.at(61)
    left = [True] * 3
    spoil(instance, call, error, lambda: bool(left) and left.pop(), after=False)
    await instance.stop(timeout=1)
    assert world.time.seconds < 65
    assert world.time.loop.get_task_factory() is before
    assert await world.attempts() == ["released"]


# -- a log that raises ---------------------------------------------------------------------------


class Raising(logging.Handler):
    """A filter and handler that fails."""

    def filter(self, record: logging.LogRecord) -> bool:
        raise ValueError(record)

    def handle(self, record: logging.LogRecord) -> bool:
        raise ValueError(record)


@pytest.fixture(params=["filter", "handler", "factory"])
def bad_log(request: pytest.FixtureRequest) -> Generator[None]:
    """Yield while the application's logging fails, in one of the ways that it can."""
    names = ("scheduler", "claims", "runs", "store")
    loggers = [logging.getLogger(f"anarchon.{name}") for name in names]
    levels = [logger.level for logger in loggers]
    factory = logging.getLogRecordFactory()
    bad = Raising()

    def of_another_application(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = factory(*arguments, **named)
        for taken in ("job", "run", "event", "runner"):
            setattr(record, taken, "taken")
        return record

    for logger in loggers:
        logger.setLevel(logging.DEBUG)
        if request.param == "filter":
            logger.addFilter(bad)
        elif request.param == "handler":
            logger.addHandler(bad)
    if request.param == "factory":
        logging.setLogRecordFactory(of_another_application)
    yield
    logging.setLogRecordFactory(factory)
    for logger, level in zip(loggers, levels, strict=True):
        logger.removeFilter(bad)
        logger.removeHandler(bad)
        logger.setLevel(level)


@pytest.mark.usefixtures("bad_log")
@virtual
async def test_a_log_that_fails_costs_no_run(world: World) -> None:
    first, second = await world.start(world.job(takes=1), 2)
    await world.at(70)
    first.line.cut()
    await world.at(90)
    first.line.mend()
    await world.at(181)
    await first.stop()
    await second.stop()
    assert world.slots() == minutes(1, 2, 3)
    assert [entry.how for entry in world.entries] == ["succeeded"] * 3


@virtual
async def test_a_line_whose_fields_are_taken_is_logged_without_them(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "anarchon")
    factory = logging.getLogRecordFactory()

    def of_another_application(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = factory(*arguments, **named)
        record.job = "another's"
        return record

    logging.setLogRecordFactory(of_another_application)
    try:
        await world.start(world.job(ONCE))
        await world.at(70)
    finally:
        logging.setLogRecordFactory(factory)
    told = [record.getMessage() for record in caplog.records if record.name == "anarchon.runs"]
    assert len(told) == 2
    assert "succeeded" in told[1]


# -- a schedule that raises ----------------------------------------------------------------------


class Moody:
    """Every half a minute, but one question is answered with an error."""

    key = "moody"

    def __init__(self) -> None:
        self.until_error = -1

    def next_after(self, moment: datetime, /) -> datetime:
        self.until_error -= 1
        if self.until_error == 0:
            raise OSError("the calendar cannot be reached")
        second = moment.second // 30 * 30
        return moment.replace(second=second, microsecond=0) + timedelta(seconds=30)


SETTINGS: dict[str, dict[str, Any]] = {
    "usual": {},
    "jitter": {"jitter": 9},
    "caught up": {"catch_up": 600},
    "each caught up": {"catch_up": 600, "coalesce": False},
}


@pytest.mark.parametrize("question", range(1, 58, 2))
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@virtual
async def test_a_schedule_that_raises_once_is_asked_again(
    world: World, settings: dict[str, Any], question: int
) -> None:
    schedule = Moody()

    def declare(scheduler: Scheduler) -> None:
        world.job(schedule, max_late=5, **settings)(scheduler)
        world.job("* * * * *", name="other")(scheduler)

    (instance,) = await world.start(declare)
    await world.at(25)
    schedule.until_error = question
    instance.stall(60)
    await world.at(89)
    instance.line.cut()
    await world.at(155)
    instance.line.mend()
    await world.at(270)
    before = len(world.slots())
    await world.at(359)
    assert schedule.until_error < 0
    assert len(world.slots()) - before == 3
    assert world.slots("other")[-2:] == minutes(4, 5)
    assert instance.scheduler.health().running
    # One look at the schedule is set for it, not one more since the error.
    engine = engine_of(instance)
    looks = [e for e in engine._timeline._entries if e.slot is None and e.job.name == "job"]
    assert len(looks) == 1


# -- clocks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2])
@virtual
async def test_a_run_told_that_it_is_early_asks_again_soon(world: World, count: int) -> None:
    await world.start(world.job("1 * * * *", max_late=3000), count)
    await world.at(57)
    world.server.step(-HOUR / 1000)
    await world.at(87)
    world.server.step(HOUR / 1000)
    await world.at(3 * 3600)
    assert world.slots() == [NOON + MINUTE + number * HOUR for number in range(3)]
    assert world.offsets()[0] < 87 + 12


@pytest.mark.parametrize("overlap", ["skip", "wait", "allow"])
@virtual
async def test_instances_that_draw_alike_do_not_share_a_token(world: World, overlap: Any) -> None:
    instances = [world.add(world.job(takes=5, overlap=overlap)) for _ in range(3)]
    for instance in instances:
        scheduler: Any = instance.scheduler
        scheduler._environment = dataclasses.replace(scheduler._environment, rng=random.Random(1))
        await instance.start()
    await world.at(200)
    assert world.slots() == minutes(1, 2, 3)
    manual = [instance.do(instance.scheduler.run_now("job")) for instance in instances]
    await asyncio.gather(*manual, return_exceptions=True)
    assert len({entry.token for entry in world.entries}) == len(world.entries)


# -- starting and stopping -----------------------------------------------------------------------


class Unconnectable(MemoryBackend):
    """A backend that fails at once."""

    def connect(self, *, timeout: float) -> Any:
        raise LookupError(f"nothing to connect within {timeout:g} s")


def test_a_start_that_fails_leaves_the_loop_as_it_was() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        scheduler = Scheduler(backend=Unconnectable())
        for _ in range(2):
            with pytest.raises(LookupError):
                await scheduler.start()
            assert loop.get_task_factory() is None
            assert not scheduler.health().running
        await scheduler.stop()

    asyncio.run(story())


@pytest.mark.parametrize("error", [None, ValueError("odd")], ids=str)
@virtual
async def test_a_shutdown_that_is_cut_short_closes_all_the_same(
    world: World, error: BaseException | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = world.time.loop.get_task_factory()
    (instance,) = await world.start(world.job(ONCE, takes=20), lease=6)
    await world.at(62)
    scheduler: Any = instance.scheduler
    engine = engine_of(instance)
    closed: list[str] = []

    async def note() -> None:
        closed.append("closed")

    monkeypatch.setattr(engine.instance.link.store, "close", note)
    stopping = asyncio.create_task(instance.stop(timeout=5))
    await world.wait(1)
    if error is None:
        scheduler._stopped.cancel()  # as asyncio.run does with all that is left
    else:
        monkeypatch.setattr(engine.pursuits, "tasks", Failing(error))
        engine.hurried.set()
    with pytest.raises(asyncio.CancelledError if error is None else type(error)):
        await stopping
    assert closed == ["closed"]
    assert world.time.loop.get_task_factory() is before
    assert not instance.scheduler.health().running
    instance.alive = False
    await world.at(100)
    assert world.entries[0].how in {"CancelledError", "succeeded"}


class Failing(dict[Any, Any]):
    """Tasks that cannot be looked at."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    def __iter__(self) -> Any:
        raise self._error


# At each of the first turns of the loop, at those around the end of a call, and between.
MOMENTS = (*(n * TURN for n in range(10)), 0.1, *(0.5 + n * TURN for n in range(16)), 1.2)
SLOW = {"open": "open", "register": "register", "nothing": "claim"}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("slow", SLOW.values(), ids=SLOW)
@pytest.mark.parametrize("fate", [Fate(back=0.5), Fate(answered=False)], ids=["late", "lost"])
@virtual
async def test_a_stop_during_a_start_ends_both(
    world: World, fate: Fate, slow: str, moment: float
) -> None:
    before = world.time.loop.get_task_factory()
    strangers = asyncio.all_tasks()
    instance = world.add(world.job(EVERY_SECOND))
    instance.line.plan(slow, fate, fate, fate)

    async def start() -> bool:
        await instance.scheduler.start()
        return instance.scheduler.health().running

    starting = asyncio.create_task(instance.do(start()))
    await world.wait(moment)
    asked = world.time.seconds
    await instance.stop(timeout=0)
    if slow != "claim":
        assert world.time.seconds - asked < 1
    try:
        assert await starting, "it says that it started, but it is stopping"
    except SchedulerStateError as error:
        assert "stopped while it started" in str(error)  # noqa: PT017
        assert world.time.seconds - asked < 1
    assert not instance.scheduler.health().running
    assert world.time.loop.get_task_factory() is before
    sent = sum(instance.line.calls.values())
    await world.wait(20)
    assert sum(instance.line.calls.values()) == sent
    assert asyncio.all_tasks() <= strangers
    await instance.start()  # and it can be started again


async def stop_around_a_takeover(time: VirtualTime, stop_at: float | None) -> list[float]:
    """Let a backup's lease wait end, stop it at a moment, and tell when it claimed (not before)."""
    world = World(time)
    first, second = await world.start(world.job(ONCE, takes=20), 2, lease=6)
    await world.at(61)
    holder = world[world.entries[0].runner]
    backup = second if holder is first else first
    holder.crash()
    engine = engine_of(backup)
    claims: list[float] = []

    def note(call: str) -> Fate:
        if call == "claim" and (stop_at is None or engine.instance.stopping):
            claims.append(time.seconds)
        return Fate()

    backup.line.chance = note
    if stop_at is not None:
        await world.wait(stop_at - time.seconds)
        await backup.stop(timeout=1)
    await world.at(75)
    await world.stop()
    return claims


@pytest.mark.parametrize("turns", range(-1, 12))
def test_no_claim_is_sent_once_a_stop_began(seed: int, turns: int) -> None:
    (claimed,) = run_virtual(lambda time: stop_around_a_takeover(time, None), seed=seed)
    stop_at = claimed - turns * TURN
    assert run_virtual(lambda time: stop_around_a_takeover(time, stop_at), seed=seed) == []


@virtual
async def test_an_engine_that_lost_a_part_does_not_say_that_it_runs(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    (instance,) = await world.start(world.job(takes=1))
    engine = engine_of(instance)
    engine._timeline._entries = [None]
    await world.at(130)
    assert not instance.scheduler.health().running
    assert [(r.levelname, r.__dict__["event"]) for r in caplog.records] == [
        ("CRITICAL", "scheduler.broken")
    ]
    await instance.stop()
    await instance.start()
    assert instance.scheduler.health().running
