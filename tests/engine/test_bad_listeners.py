"""What listeners hear, and that nothing they do harms a run, another listener, or the loop."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from anarchon import Event, EventName, NoRetry, RunStatus, SchedulerStateError, Trigger
from anarchon.engine.listeners import LAST_WORDS, MOST_WAITING
from anarchon.events import EVENT_NAMES
from tests.support.world import EVERY_MINUTE, EVERY_SECOND, NOON, World, minutes, virtual

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anarchon import Run, Scheduler

    Declare = Callable[[Scheduler], object]

LEASE = 6
NEVER = "0 3 * * *"
BERLIN = ZoneInfo("Europe/Berlin")
FIRST = minutes(1)[0]


class Heard:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def __call__(self, event: Event) -> None:
        self.events.append(event)

    def of(self, *names: EventName) -> list[Event]:
        """What it heard under some names."""
        return [event for event in self.events if event.name in names]

    def names(self, run: str | None = None) -> list[EventName]:
        """The names of what it heard, in order; of a run, if one is given."""
        return [event.name for event in self.events if run in {None, event.run}]


def failing(run: Run) -> None:
    """Fail once, at the first slot."""
    if run.attempt == 1 and run.slot == FIRST:
        raise ValueError("not yet")


# -- how each event comes about ------------------------------------------------------------------

Expected = dict[str, object]
ATTEMPT: Expected = {"attempt": 1, "max_attempts": 3, "trigger": Trigger.SCHEDULE}
SECOND_ATTEMPT: Expected = {**ATTEMPT, "attempt": 2}


async def ends_well(world: World, listen: Declare, status: RunStatus | None = None) -> Expected:
    await world.start(both(world.job(EVERY_MINUTE, timezone=BERLIN), listen))
    await world.at(70)
    return {**ATTEMPT, "status": status}


async def fails_once(world: World, listen: Declare) -> Expected:
    job = world.job(EVERY_MINUTE, then=failing, retry_delay=1, timezone=BERLIN)
    await world.start(both(job, listen))
    await world.at(70)
    return ATTEMPT


async def failed(world: World, listen: Declare) -> Expected:
    expected = await fails_once(world, listen)
    return {**expected, "status": RunStatus.FAILED, "will_retry": True}


async def retried(world: World, listen: Declare) -> Expected:
    await fails_once(world, listen)
    return SECOND_ATTEMPT


async def taken_over(world: World, listen: Declare) -> Expected:
    job = world.job(EVERY_MINUTE, takes=20, timezone=BERLIN)
    await world.start(both(job, listen), 2, lease=LEASE)
    await world.at(62)
    world[world.entries[0].runner].crash()
    await world.at(95)
    return SECOND_ATTEMPT


async def cancelled(world: World, listen: Declare) -> Expected:
    job = world.job(EVERY_MINUTE, takes=20, timezone=BERLIN)
    (instance,) = await world.start(both(job, listen), lease=LEASE)
    await world.at(62)
    assert await instance.do(instance.scheduler.cancel("job")) == (str(FIRST),)
    await world.at(70)
    return {**ATTEMPT, "status": RunStatus.CANCELLED}


async def released(world: World, listen: Declare) -> Expected:
    job = world.job(EVERY_MINUTE, takes=20, timezone=BERLIN)
    (instance,) = await world.start(both(job, listen))
    await world.at(62)
    await instance.stop(timeout=1)
    await instance.start()
    await world.at(100)
    return {**ATTEMPT, "status": RunStatus.RELEASED}


async def lost(world: World, listen: Declare) -> Expected:
    job = world.job(EVERY_MINUTE, takes=20, timezone=BERLIN)
    (instance,) = await world.start(both(job, listen), lease=LEASE)
    await world.at(62)
    instance.line.cut()
    await world.at(75)
    instance.line.mend()
    await world.at(110)
    return {**ATTEMPT, "reason": "its lease could not be renewed in time, so it is stopped here"}


async def skipped(world: World, listen: Declare) -> Expected:
    job = world.job(EVERY_MINUTE, takes=10, timezone=BERLIN)
    (instance,) = await world.start(both(job, listen))
    await world.at(55)
    manual = asyncio.create_task(instance.do(instance.scheduler.run_now("job")))
    await world.at(70)
    assert manual.done()
    return {"reason": "another run of the job is live (overlap=skip)"}


async def missed(world: World, listen: Declare) -> Expected:
    job = world.job(EVERY_MINUTE, max_late=1, timezone=BERLIN)
    (instance,) = await world.start(both(job, listen))
    await world.at(50)
    instance.suspend(30)
    await world.at(85)
    return {}


async def paused(world: World, listen: Declare) -> Expected:
    (instance,) = await world.start(both(world.job(EVERY_MINUTE, timezone=BERLIN), listen))
    await instance.do(instance.scheduler.pause("job"))
    await world.at(70)
    await instance.do(instance.scheduler.resume("job"))
    return {"reason": "the job is paused in the store"}


async def store_goes_and_comes(world: World, listen: Declare) -> Expected:
    (instance,) = await world.start(both(world.job(EVERY_MINUTE, timezone=BERLIN), listen))
    await world.at(50)
    instance.line.cut()
    await world.at(70)
    instance.line.mend()
    await world.at(80)
    return {"job": None, "run": None, "slot": None}


async def starts_and_stops(world: World, listen: Declare) -> Expected:
    (instance,) = await world.start(both(world.job(EVERY_MINUTE, timezone=BERLIN), listen))
    await world.at(70)
    await instance.stop()
    return {"job": None, "run": None, "slot": None}


STORIES: dict[EventName, Callable[[World, Declare], Awaitable[Expected]]] = {
    "won": ends_well,
    "started": ends_well,
    "succeeded": functools.partial(ends_well, status=RunStatus.SUCCEEDED),
    "failed": failed,
    "retried": retried,
    "taken-over": taken_over,
    "cancelled": cancelled,
    "released": released,
    "lost": lost,
    "skipped": skipped,
    "missed": missed,
    "paused": paused,
    "store-away": store_goes_and_comes,
    "store-back": store_goes_and_comes,
    "scheduler-started": starts_and_stops,
    "scheduler-stopped": starts_and_stops,
}
each_event = pytest.mark.parametrize(("name", "story"), STORIES.items(), ids=STORIES)


def both(*declarations: Declare) -> Declare:
    """Declare one thing after the other."""

    def declare(scheduler: Scheduler) -> None:
        for one in declarations:
            one(scheduler)

    return declare


def test_there_is_a_story_for_each_event() -> None:
    assert set(STORIES) == set(EVENT_NAMES)


FIELDS = ("attempt", "max_attempts", "trigger", "status", "will_retry", "error", "reason")
NOTHING: Expected = {
    **dict.fromkeys(FIELDS),
    "will_retry": False,
    "reason": "",
    "job": "job",
    "run": str(FIRST),
    "slot": datetime(2026, 1, 5, 13, 1, tzinfo=BERLIN),
}


@each_event
@virtual
async def test_each_event_is_heard_once_with_its_fields(
    world: World, name: EventName, story: Callable[[World, Declare], Awaitable[Expected]]
) -> None:
    heard = Heard()
    began = datetime.fromtimestamp(world.time.now() / 1000, UTC)
    expected = {**NOTHING, **await story(world, lambda s: s.on(*EVENT_NAMES)(heard))}
    of_first = [event for event in heard.of(name) if event.run in {None, str(FIRST)}]
    if name in {"won", "started"}:
        of_first = [event for event in of_first if event.attempt == 1]
    assert len(of_first) == 1, heard.events
    (event,) = of_first
    assert event.runner in world.instances
    assert event.at.tzinfo is UTC
    # To the millisecond before the first answer, and nearer after it.
    aside = timedelta(milliseconds=2)
    over = datetime.fromtimestamp(world.time.now() / 1000, UTC)
    assert began - aside <= event.at <= over + aside
    if name in {"missed", "store-away"}:
        assert event.reason
        expected["reason"] = event.reason
    if name == "failed":
        assert isinstance(event.error, ValueError)
        expected["error"] = event.error
    assert {field: getattr(event, field) for field in NOTHING} == expected
    if event.slot is not None:
        assert str(event.slot.tzinfo) == "Europe/Berlin"


@pytest.mark.parametrize("kind", ["async", "plain"])
@each_event
@virtual
async def test_HOK_01_a_listener_that_raises_changes_nothing(
    world: World,
    name: EventName,
    story: Callable[[World, Declare], Awaitable[Expected]],
    kind: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard = Heard()

    async def raises(event: Event) -> None:
        raise LookupError(event.name)

    def raises_in_a_thread(event: Event) -> None:
        raise LookupError(event.name)

    def listen(scheduler: Scheduler) -> None:
        scheduler.on(name)(raises if kind == "async" else raises_in_a_thread)
        scheduler.on(*EVENT_NAMES)(heard)

    await story(world, listen)
    for instance in world.instances.values():
        if instance.alive:
            assert instance.scheduler.health().running
    # Each time it was logged, once, and nothing else was.
    told = [record.__dict__["event"] for record in caplog.records]
    assert told.count("listener.failed") == len(heard.of(name)) > 0
    # The run came to the end that it would have had: the next slots are not held up.
    if name not in {"scheduler-stopped", "scheduler-started"}:
        now = world.time.seconds
        await world.at(60 * (now // 60) + 145)
        (latest, *_) = await world.history("job")
        assert latest.status is RunStatus.SUCCEEDED
        assert heard.events[-1].name == "succeeded"
        assert world.open_past_their_end() == []


RAISED = [
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError(),
    StopIteration(),
    StopAsyncIteration(),
    MemoryError(),
    BaseExceptionGroup("several", [SystemExit(1), ValueError()]),
    ValueError("x" * 1_000_000),
]


@pytest.mark.parametrize("kind", ["async", "plain", "plain that returns a coroutine"])
@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
@virtual
async def test_HOK_01_whatever_a_listener_raises(
    world: World, error: BaseException, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard, told = Heard(), Counter[str]()

    async def raises(event: Event) -> None:
        told[event.name] += 1
        raise error

    def raises_in_a_thread(event: Event) -> None:
        told[event.name] += 1
        raise error

    def returns(event: Event) -> Awaitable[None]:
        return raises(event)

    function: Callable[[Event], object] = {"async": raises, "plain": raises_in_a_thread}.get(
        kind, returns
    )

    def listen(scheduler: Scheduler) -> None:
        scheduler.on("started", "succeeded")(function)
        scheduler.on("started", "succeeded")(heard)

    (instance,) = await world.start(both(world.job(EVERY_MINUTE), listen))
    await world.at(125)
    assert told == {"started": 2, "succeeded": 2}
    assert heard.names() == ["started", "succeeded"] * 2
    assert await world.statuses() == ["succeeded"] * 2
    assert instance.scheduler.health().running
    events = [record.__dict__["event"] for record in caplog.records]
    assert events == ["listener.failed"] * 4


@virtual
async def test_what_is_told_of_a_timeout_and_of_the_last_attempt(world: World) -> None:
    heard = Heard()

    def give_up(_run: Run) -> None:
        raise NoRetry

    def declare(scheduler: Scheduler) -> None:
        world.job("1 12 * * *", takes=9, timeout=5, max_attempts=2, retry_delay=1)(scheduler)
        world.job("1 12 * * *", then=give_up, name="gives up")(scheduler)
        scheduler.on("failed")(heard)

    await world.start(declare)
    await world.at(100)
    told = [(e.job, e.attempt, e.status, e.will_retry, type(e.error)) for e in heard.events]
    assert told == [
        ("gives up", 1, RunStatus.FAILED, False, NoRetry),
        ("job", 1, RunStatus.TIMED_OUT, True, TimeoutError),
        ("job", 2, RunStatus.TIMED_OUT, False, TimeoutError),
    ]


@virtual
async def test_events_of_a_run_come_in_their_order(world: World) -> None:
    heard = Heard()
    job = world.job(EVERY_MINUTE, takes=1, then=failing, retry_delay=1)
    (instance,) = await world.start(both(job, lambda s: s.on(*EVENT_NAMES)(heard)))
    await world.at(70)
    await instance.stop()
    assert heard.names(str(FIRST)) == [
        "won",
        "started",
        "failed",
        "won",
        "retried",
        "started",
        "succeeded",
    ]
    assert (heard.names()[0], heard.names()[-1]) == ("scheduler-started", "scheduler-stopped")


@virtual
async def test_a_manual_run_is_told_of_by_its_identity(world: World) -> None:
    heard = Heard()
    job = world.job(NEVER, timezone=BERLIN)
    (instance,) = await world.start(both(job, lambda s: s.on("won", "succeeded")(heard)))
    await world.at(5)
    await instance.do(instance.scheduler.run_now("job"))
    await world.wait(1)
    (run,) = await world.history("job")
    assert heard.names() == ["won", "succeeded"]
    for event in heard.events:
        assert (event.run, event.trigger) == (run.id, Trigger.MANUAL)
        assert event.slot is not None
        assert event.slot.timestamp() * 1000 == pytest.approx(NOON + 5000, abs=10)


@virtual
async def test_kinds_of_listeners(world: World) -> None:
    called: list[str] = []

    class Listens:
        async def method(self, event: Event) -> None:
            called.append(f"method {event.name}")

        def __call__(self, event: Event) -> None:
            called.append(f"object {event.name}")

    async def takes_nothing() -> None:
        called.append("takes nothing")

    def more(what: str, event: Event) -> None:
        called.append(f"{what} {event.name}")

    def declare(scheduler: Scheduler) -> None:
        world.job("1 12 * * *")(scheduler)
        listeners: tuple[Any, ...] = (
            Listens().method,
            Listens(),
            takes_nothing,
            functools.partial(more, "partial"),
        )
        for listener in listeners:
            assert scheduler.on("succeeded")(listener) is listener

        def plain(event: Event) -> None:
            called.append(f"plain {event.name}")

        scheduler.on("succeeded")(plain)

    await world.start(declare)
    await world.at(70)
    assert sorted(called) == [
        "method succeeded",
        "object succeeded",
        "partial succeeded",
        "plain succeeded",
        "takes nothing",
    ]


# -- listeners that do not end -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["async", "deaf", "plain"])
@virtual
async def test_a_listener_that_hangs_holds_up_nobody(
    world: World, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard, told = Heard(), Counter[str]()
    over: list[bool] = []

    async def hangs(event: Event) -> None:
        told[event.name] += 1
        await asyncio.Event().wait()

    async def is_deaf(event: Event) -> None:
        told[event.name] += 1
        while not over:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1)

    def hangs_in_a_thread(event: Event) -> None:
        told[event.name] += 1
        world.time.sleep(100_000)

    function: Callable[[Event], object] = {"async": hangs, "deaf": is_deaf}.get(
        kind, hangs_in_a_thread
    )

    def listen(scheduler: Scheduler) -> None:
        scheduler.on("started", "succeeded", "scheduler-stopped")(function)
        scheduler.on("started", "succeeded", "scheduler-stopped")(heard)

    (instance,) = await world.start(both(world.job(EVERY_SECOND), listen))
    seconds = MOST_WAITING // 2 + 100
    await world.at(seconds + 0.5)
    assert len(world.entries) == seconds
    assert len(heard.events) == 2 * seconds
    assert told.total() == 1
    events = [record.__dict__["event"] for record in caplog.records]
    assert events == ["listener.behind"]
    before = world.time.seconds
    await instance.stop(timeout=1)
    assert world.time.seconds - before < 1 + LAST_WORDS + 1.1
    assert heard.names()[-1] == "scheduler-stopped"
    instance.alive = False
    over.append(True)


@virtual
async def test_a_listener_that_was_behind_hears_again(world: World) -> None:
    slots: list[str | None] = []
    let_go = asyncio.Event()

    async def is_slow(event: Event) -> None:
        slots.append(event.run)
        await let_go.wait()

    await world.start(both(world.job(EVERY_SECOND), lambda s: s.on("succeeded")(is_slow)))
    await world.at(MOST_WAITING + 50.5)
    let_go.set()
    await world.wait(10)
    assert slots == [str(NOON + 1000 * number) for number in range(1, MOST_WAITING + 2)] + [
        str(NOON + 1000 * number) for number in range(MOST_WAITING + 51, MOST_WAITING + 61)
    ]


@virtual
async def test_a_listener_that_blocks_the_loop_costs_no_lease(world: World) -> None:
    heard = Heard()

    async def blocks(event: Event) -> None:
        world[event.runner].stall(3 * LEASE)
        await asyncio.sleep(0)

    def listen(scheduler: Scheduler) -> None:
        scheduler.on("started")(blocks)
        scheduler.on(*EVENT_NAMES)(heard)

    await world.start(both(world.job("1 12 * * *", takes=5), listen), 2, lease=LEASE)
    await world.at(120)
    assert await world.attempts() == ["succeeded"]
    assert heard.of("lost") == []


@virtual
async def test_a_listener_that_cancels_its_task_hears_on(world: World) -> None:
    told: list[str | None] = []

    async def cancels(event: Event) -> None:
        told.append(event.run)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1)

    (instance,) = await world.start(
        both(world.job(EVERY_MINUTE), lambda s: s.on("succeeded")(cancels))
    )
    await world.at(185)
    assert told == [str(slot) for slot in minutes(1, 2, 3)]
    assert instance.scheduler.health().running


# -- listeners that use the scheduler ------------------------------------------------------------


@virtual
async def test_a_listener_may_use_the_scheduler(world: World) -> None:
    results: list[object] = []

    def declare(scheduler: Scheduler) -> None:
        world.job(EVERY_MINUTE, takes=1)(scheduler)
        world.job(NEVER, then=lambda _run: "done", name="other")(scheduler)

        @scheduler.on("succeeded")
        async def use(event: Event) -> None:
            if event.job != "job":
                return
            results.append(await scheduler.run_now("other"))
            results.append(len(await scheduler.history("job")))
            await scheduler.pause("job")
            results.append((await scheduler.state("job")).paused)
            await scheduler.resume("job")
            results.append(scheduler.health().running)

    await world.start(declare)
    await world.at(125)
    assert results == ["done", 1, True, True, "done", 2, True, True]


@virtual
async def test_what_a_listener_may_not_do_is_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job("1 12 * * *")(scheduler)

        @scheduler.on("won")
        async def start(_event: Event) -> None:
            await scheduler.start()

        @scheduler.on("started")
        async def declare_a_listener(_event: Event) -> None:
            scheduler.on("won")(start)

        @scheduler.on("succeeded")
        async def declare_a_job(_event: Event) -> None:
            scheduler.add_job(print, NEVER)

    await world.start(declare)
    await world.at(70)
    errors = [record.exc_info[0] for record in caplog.records if record.exc_info]
    assert errors == [SchedulerStateError] * 3
    assert await world.statuses() == ["succeeded"]


@pytest.mark.parametrize("event", ["started", "succeeded", "failed", "scheduler-stopped"])
@pytest.mark.parametrize("waits", [True, False])
@virtual
async def test_a_listener_that_stops_its_scheduler(
    world: World, event: EventName, waits: bool
) -> None:
    heard = Heard()
    tasks: list[asyncio.Task[None]] = []

    def fail(_run: Run) -> None:
        if event == "failed":
            raise NoRetry

    def declare(scheduler: Scheduler) -> None:
        world.job(EVERY_MINUTE, takes=3, then=fail)(scheduler)
        scheduler.on(*EVENT_NAMES)(heard)

        @scheduler.on(event)
        async def stop(_event: Event) -> None:
            task = asyncio.create_task(scheduler.stop(timeout=1))
            tasks.append(task)
            if waits:
                await task

    (instance,) = await world.start(declare)
    await world.at(64)
    if event == "scheduler-stopped":
        await instance.stop()
    await world.at(68)
    assert not instance.scheduler.health().running
    assert heard.names()[-1] == "scheduler-stopped"
    assert all(task.done() for task in tasks)
    instance.alive = False
    ended = {"started": "released", "failed": "failed"}.get(event, "succeeded")
    assert await world.attempts() == [ended]


@virtual
async def test_a_listener_that_starts_tasks_and_returns(world: World) -> None:
    later: list[float] = []
    tasks: set[asyncio.Task[None]] = set()

    async def tell_later() -> None:
        await asyncio.sleep(5)
        later.append(round(world.time.seconds))

    async def listener(_event: Event) -> None:
        tasks.add(asyncio.create_task(tell_later()))

    await world.start(both(world.job(EVERY_MINUTE), lambda s: s.on("succeeded")(listener)))
    await world.at(130)
    assert later == [65, 125]
