"""How tests ask a scheduler something in its own process, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from anarchon.runs import moment
from tests.support.world import minutes

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from datetime import datetime

    from anarchon import Explanation, JobState, Run, Scheduler
    from anarchon.testing import Instance
    from tests.support.world import World

T = TypeVar("T")
FIRST_SLOT = moment(minutes(1)[0])
"""The slot one minute after noon."""
FIRST = str(minutes(1)[0])
"""The run of that slot."""


async def do(instance: Instance, ask: Callable[[Scheduler], Coroutine[Any, Any, T]]) -> T:
    """Ask a scheduler something in its own process."""
    return await instance.do(ask(instance.scheduler))


async def pause(instance: Instance, until: datetime | None = None, note: str = "") -> None:
    """Pause the job."""
    await do(instance, lambda s: s.pause("job", until=until, note=note))


async def resume(instance: Instance) -> bool:
    """Let the job go on."""
    return await do(instance, lambda s: s.resume("job"))


async def cancel(instance: Instance, run: datetime | str | None = None) -> tuple[str, ...]:
    """Cancel a run of the job, or all open ones."""
    return await do(instance, lambda s: s.cancel("job", run))


async def state(instance: Instance) -> JobState:
    """What the store knows of the job."""
    return await do(instance, lambda s: s.state("job"))


async def why(instance: Instance, at: datetime | str = FIRST_SLOT, job: str = "job") -> Explanation:
    """Ask why a run did or did not take place."""
    return await do(instance, lambda s: s.why(job, at))


async def told(
    instance: Instance, at: datetime | str = FIRST_SLOT, job: str = "job"
) -> Sequence[str]:
    """The sentences of the answer."""
    return (await why(instance, at, job)).sentences


async def start_on_demand(instance: Instance) -> None:
    """Start an instance that runs jobs on demand only."""
    instance.alive = True
    await do(instance, lambda s: s.start(scheduled=False))


def fail(_run: Run) -> None:
    """End a body with an error."""
    raise ValueError


def holder_and_backup(world: World) -> tuple[Instance, Instance]:
    """Whoever ran last, and another that is alive."""
    holder = world[world.entries[-1].runner]
    others = (i for i in world.instances.values() if i.alive and i is not holder)
    return holder, next(others)
