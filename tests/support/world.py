"""A cluster in virtual time for a test, with a diary of what ran; judged when the test is over."""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import TYPE_CHECKING, Any, Unpack

from anarchon.backends.reference import Record
from anarchon.testing import START, Cluster, VirtualTime, run_virtual
from tests.support.diary import Diary, Entry
from tests.support.judges import faults_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from anarchon import JobSettings, Run, Schedule, Scheduler

NOON = round(START.timestamp() * 1000)
"""When a world begins, in milliseconds since the epoch."""

SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000

EVERY_MINUTE = "* * * * *"
EVERY_SECOND = "* * * * * *"


def minutes(*numbers: int) -> list[int]:
    """Slots so many minutes after noon."""
    return [NOON + number * MINUTE for number in numbers]


def seconds(*numbers: int) -> list[int]:
    """Slots so many seconds after noon."""
    return [NOON + number * SECOND for number in numbers]


class World(Cluster):
    """A cluster whose jobs are easily made and keep a diary."""

    def __init__(self, time: VirtualTime) -> None:
        super().__init__(time)
        self.diary = Diary(self)

    def job(
        self,
        schedule: str | float | Schedule = EVERY_MINUTE,
        takes: float = 0.0,
        then: Callable[[Run], object] = lambda _run: None,
        **settings: Unpack[JobSettings],
    ) -> Callable[[Scheduler], None]:
        """Declare an async job that takes so many seconds and ends with `then`; named "job"."""
        settings.setdefault("name", "job")
        return lambda scheduler: scheduler.add_job(
            self.diary.body(takes, then), schedule, **settings
        )

    @property
    def entries(self) -> list[Entry]:
        """What ran."""
        return self.diary.entries

    def slots(self, job: str = "job") -> list[int]:
        """The slots of the calls of a job, in the order of their starts."""
        return [entry.slot for entry in self.diary.of(job)]

    def offsets(self, job: str = "job") -> list[float]:
        """Seconds since noon at which the calls of a job began."""
        return [round((entry.start - NOON) / 1000, 2) for entry in self.diary.of(job)]

    async def statuses(self, job: str = "job", limit: int = 50) -> list[str]:
        """The statuses of the runs of a job, oldest first."""
        return [str(run.status) for run in reversed(await self.history(job, limit))]

    async def attempts(self, job: str = "job") -> list[str]:
        """The statuses of the attempts of the newest run of a job."""
        (run, *_) = await self.history(job)
        return [str(attempt.status) for attempt in run.attempts]

    async def at(self, second: float) -> None:
        """Let time pass until so many seconds after noon."""
        await self.until(NOON + round(second * 1000))

    def open_past_their_end(self) -> list[str]:
        """Runs that are open although their lease is over."""
        now = self.server()
        return [
            f"{job} {run}"
            for job, book in self.backend.books.items()
            for run, record in book.records.items()
            if isinstance(record, Record) and record.open and record.end <= now
        ]

    def sent(self, call: str) -> int:
        """How many calls of a name all instances sent."""
        return sum(instance.line.calls[call] for instance in self.instances.values())


async def _live(world: World, story: Coroutine[Any, Any, None]) -> None:
    await story
    stopping = world.time.seconds
    async with asyncio.timeout(15):
        await world.stop()
    assert world.time.seconds - stopping < 12, "stop() took longer than its timeout"
    faults = faults_of(world.executed, world.entries)
    assert not faults, "\n".join(faults)


def virtual(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make a test of a coroutine function whose first argument is a `World`."""

    @functools.wraps(test)
    def run(seed: int, **arguments: object) -> None:
        def story(time: VirtualTime) -> Coroutine[Any, Any, None]:
            world = World(time)
            return _live(world, test(world, **arguments))

        run_virtual(story, seed=seed)

    signature = inspect.signature(test)
    _world, *rest = signature.parameters.values()
    seed = inspect.Parameter("seed", inspect.Parameter.KEYWORD_ONLY)
    rest = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in rest]
    run.__signature__ = signature.replace(parameters=[seed, *rest])  # type: ignore[attr-defined]
    return run
