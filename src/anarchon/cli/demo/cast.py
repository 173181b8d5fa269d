"""The instances of the demo as processes: started, killed, replaced, ended."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from anarchon.cli.demo.processes import Child
from anarchon.cli.demo.records import record_of_line
from anarchon.cli.demo.stage import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from anarchon.cli.demo.stage import Instance, Stage
    from anarchon.cli.demo.store import DemoStore
    from anarchon.cli.demo.tally import Slot

_ENDS_WITHIN = 4.0


class Cast:
    """The processes behind the instances of a stage."""

    def __init__(self, stage: Stage, store: DemoStore) -> None:
        self._stage = stage
        self._store = store
        self._children: dict[int, Child] = {}

    async def start(self, replaces: int | None = None) -> None:
        """Start an instance, possibly in place of a killed one."""
        child = await Child.start("instance", self._store.url, self._store.prefix)
        instance = self._stage.started(child.pid, replaces, now())
        self._children[instance.number] = child
        child.listen(lambda line: self._stage.hear(instance, record_of_line(line)))

    async def kill(self, instance: Instance, slot: Slot) -> None:
        """Kill an instance in the middle of a run of `slot`, as a crash would."""
        child = self._children[instance.number]
        child.kill()
        await child.ended.wait()
        self._stage.killed(instance, slot, now())

    def notice_ends(self) -> None:
        """Tell the stage of instances that ended though nobody told them to."""
        for instance in self._stage.instances.values():
            child = self._children[instance.number]
            if child.ended.is_set() and instance.state in {State.STARTING, State.UP}:
                self._stage.gone(instance, now(), self.complaint_of(instance))

    def complaint_of(self, instance: Instance) -> str:
        """The last thing that an instance said on its standard error, or how it ended."""
        child = self._children[instance.number]
        status = "no answer" if child.status is None else f"exit status {child.status}"
        return " ".join(child.complaints[-1:]) or status

    async def end(self, drain: float, hurry: asyncio.Event, tick: Callable[[], None]) -> None:
        """End all instances; running bodies get `drain` seconds, unless `hurry` is set.

        `tick` is called while it takes its time.
        """
        self._stage.closing = True
        alive = [one for one in self._stage.instances.values() if one.state is not State.KILLED]
        ends = {
            asyncio.create_task(self._children[one.number].end(drain, drain + _ENDS_WITHIN))
            for one in alive
        }
        while ends and not hurry.is_set():
            _, ends = await asyncio.wait(ends, timeout=0.1)
            tick()
        for end in ends:
            end.cancel()
        await self.bury()
        for one in alive:
            one.state = State.ENDED

    async def bury(self) -> None:
        """Kill whatever is left."""
        for child in self._children.values():
            if not child.ended.is_set():
                child.kill()
        for child in self._children.values():
            await child.ended.wait()


def now() -> int:
    """This host's clock, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
