"""The events on their page are those that listeners hear, with the fields that are set."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from anarchon import Event, MemoryBackend, Scheduler
from anarchon.events import EVENT_NAMES
from anarchon.testing import Cluster, VirtualTime, run_virtual
from tests.docs.pages import page

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = page("docs/events.md")
TABLE = {
    name: set(filter(None, fields.replace("`", "").split()))
    for name, fields in (
        (cells[1].strip().strip("`"), cells[-2])
        for cells in (line.split("|") for line in PAGE.section("## The events").splitlines())
        if len(cells) == 5 and cells[1].strip().startswith("`")
    )
}
OF_A_RUN = {"job", "run", "slot"}
ALWAYS = {"name", "at", "runner"}


def test_each_event_is_on_the_page() -> None:
    assert sorted(TABLE) == sorted(EVENT_NAMES)


heard: list[Event] = []


def declare(scheduler: Scheduler) -> None:
    @scheduler.on(*EVENT_NAMES)
    async def hear(event: Event) -> None:
        heard.append(event)

    @scheduler.job("* * * * *", name="moody", retry_delay=5)
    async def moody() -> None:
        if len([event for event in heard if event.job == "moody"]) < 5:
            raise ValueError

    @scheduler.job("0 * * * *", name="long")
    async def long() -> None:
        await asyncio.sleep(20)

    @scheduler.job(5, name="dense")
    async def dense() -> None:
        await asyncio.sleep(7)


async def a_busy_quarter(time: VirtualTime) -> None:
    """Everything that can be heard happens once at least."""
    heard.clear()
    cluster = Cluster(time)
    first, second = await cluster.start(declare, 2, lease=3, shutdown_timeout=0)
    asked = second.scheduler
    await second.do(asked.pause("dense", until=datetime(2026, 1, 5, 0, 1, tzinfo=UTC)))
    for then in ("crash", "cut", "cancel", "stop"):
        for instance in (first, second):
            if not instance.alive:
                await instance.restart()
        manual = asyncio.create_task(first.do(first.scheduler.run_now("long")))
        await cluster.wait(5)
        if then == "crash":
            first.crash()
            await cluster.wait(5)
            await first.restart()
        elif then == "cut":
            first.line.cut()
            await cluster.wait(30)
            first.line.mend()
        elif then == "cancel":
            await second.do(asked.cancel("long"))
        else:
            await first.stop()
        await cluster.wait(100)
        manual.cancel()
    for instance in (first, second):
        instance.line.cut()
    await cluster.wait(120)
    await cluster.stop()


@pytest.fixture(scope="module")
def of_each_name() -> dict[str, list[Event]]:
    run_virtual(a_busy_quarter, start=datetime(2026, 1, 5, tzinfo=UTC))
    found: dict[str, list[Event]] = defaultdict(list)
    for event in heard:
        found[event.name].append(event)
    return found


def fields_set(events: Iterable[Event]) -> set[str]:
    defaults = {field.name: field.default for field in dataclasses.fields(Event)}
    return {
        name
        for event in events
        for name, default in defaults.items()
        if getattr(event, name) != default
    }


@pytest.mark.parametrize("name", EVENT_NAMES)
def test_fields_are_set_as_the_page_says(name: str, of_each_name: dict[str, list[Event]]) -> None:
    of_a_run: set[str] = set() if name.startswith(("store-", "scheduler-")) else OF_A_RUN
    assert name in of_each_name, f"never heard; heard were {sorted(of_each_name)}"
    assert fields_set(of_each_name[name]) == ALWAYS | of_a_run | TABLE[name]


def test_an_attempt_is_told_in_order(of_each_name: dict[str, list[Event]]) -> None:
    for how in ("retried", "taken-over"):
        (event, *_) = of_each_name[how]
        told = [
            each.name
            for each in heard
            if (each.run, each.runner, each.attempt) == (event.run, event.runner, event.attempt)
        ]
        assert told[:3] == ["won", how, "started"]


def test_a_listener_that_stops_the_scheduler_harms_nothing() -> None:
    scheduler = Scheduler(backend=MemoryBackend())
    stopped = asyncio.Event()
    scheduler.add_job(lambda: None, "@daily", name="audit")

    @scheduler.on("succeeded")
    async def stop() -> None:
        try:
            await scheduler.stop()
        finally:
            stopped.set()

    async def story() -> None:
        await scheduler.start()
        await scheduler.run_now("audit")
        await asyncio.wait_for(stopped.wait(), 10)
        await scheduler.stop()

    asyncio.run(story())
    assert not scheduler.health().running
