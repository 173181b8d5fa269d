"""What the tests of the rows have in common."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from anarchon import Run, Scheduler
    from anarchon.testing import Instance
    from tests.support.diary import Entry
    from tests.support.world import World

ONCE = "1 12 * * *"
"""A slot a minute after the beginning, and none for a day after it."""

NEVER = "0 3 * * *"
"""No slot while a test lasts, so that only manual runs take place."""


def fail(_run: Run) -> None:
    """Fail each attempt."""
    raise ValueError("not today")


def fail_first(run: Run) -> None:
    """Fail the first attempt of each run."""
    if run.attempt == 1:
        raise ValueError("not yet")


def run_now(instance: Instance, name: str = "job") -> asyncio.Task[object]:
    """Ask for a manual run on an instance, without waiting for it."""
    return asyncio.create_task(instance.do(instance.scheduler.run_now(name)))


def holder(world: World) -> Instance:
    """The instance on which the newest attempt began."""
    return world[world.entries[-1].runner]


def runs(world: World) -> list[tuple[int, int]]:
    """What ran, in the order of the starts: seconds from noon to the slot, and the attempt."""
    noon = round(world.time.start.timestamp())
    return [(entry.slot // 1000 - noon, entry.attempt) for entry in world.entries]


def waits(entries: list[Entry]) -> list[float]:
    """The seconds between the end of each call and the start of the next."""
    return [
        (later.start - (sooner.end or later.start)) / 1000
        for sooner, later in itertools.pairwise(entries)
    ]


def plain(world: World, takes: float, *, heeds: bool = False) -> Callable[[Run], None]:
    """A plain function that takes so many seconds in its thread; `heeds` a stop if told to."""

    def function(run: Run) -> None:
        with world.diary.entry(run) as entry:
            until = world.time.seconds + takes
            while world.time.seconds < until and not (heeds and run.lost.is_set()):
                world.time.sleep(0.1)
                entry.steps.append(world.time.now())

    return function


def several(*declarations: Callable[[Scheduler], None]) -> Callable[[Scheduler], None]:
    """Declare several jobs."""

    def declare(scheduler: Scheduler) -> None:
        for declaration in declarations:
            declaration(scheduler)

    return declare
