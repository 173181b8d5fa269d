"""Short histories of clusters in which everything goes wrong at random; all follows from a seed.

First faults, then all is healed; after that everything must go its way again within a bound.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anarchon import NoRetry
from anarchon.backends.reference import Record
from anarchon.testing import REFUSED, REPLY_LOST, REQUEST_LOST, Fate
from tests.support.judges import faults_of

if TYPE_CHECKING:
    import random

    from anarchon import JobSettings, Run, Scheduler
    from anarchon.testing import Instance, SchedulerSettings
    from tests.support.world import World

FAULTY = 90.0
"""Seconds of faults."""

SETTLING = 8.0
"""Seconds after the healing from which on each slot has to be run."""

HEALED = 70.0
"""Seconds after the healing."""


@dataclass(frozen=True)
class Plan:
    """One job of a history."""

    name: str
    period: int
    takes: float
    fails: float
    settings: JobSettings

    @property
    def always_runs(self) -> bool:
        """Whether nothing but an outage can keep a slot from leaving a record."""
        short = self.takes < 1 and self.fails == 0 and self.settings.get("catch_up") == 0
        return short or self.settings.get("overlap") != "wait"


def drawn_plan(rng: random.Random, name: str) -> Plan:
    """Draw a job."""
    period = rng.choice([4, 7, 10, 15])
    settings: JobSettings = {
        "overlap": rng.choice(["skip", "skip", "wait", "allow"]),
        "max_attempts": rng.choice([1, 2, 3, 5]),
        "retry_delay": rng.choice([0, 0.5, 2]),
        "max_late": rng.choice([1, 3, 10, 30]),
        "jitter": rng.choice([0, 0, 2]),
        "catch_up": rng.choice([0, 0, 40]),
        "coalesce": rng.random() < 0.5,
        "timeout": rng.choice([None, None, 5]),
    }
    takes = rng.choice([0.0, 0.3, 2.0, 8.0])
    return Plan(name, period, takes, rng.choice([0.0, 0.0, 0.3]), settings)


class Fate4All:
    """Draws what becomes of calls while there are faults."""

    def __init__(self, rng: random.Random, trouble: float, slowness: float) -> None:
        self._rng = rng
        self._trouble = trouble
        self._slowness = slowness

    def __call__(self, _call: str) -> Fate:
        """Draw a fate."""
        rng = self._rng
        if rng.random() < self._trouble:
            copy = Fate(copy_after=rng.uniform(0, 20))
            held_up = Fate(there=rng.uniform(0, 25))
            return rng.choice([REQUEST_LOST, REPLY_LOST, REFUSED, copy, held_up])
        return Fate(there=rng.uniform(0, self._slowness), back=rng.uniform(0, self._slowness))


class History:
    """One drawn history, to be lived in a world and judged at its end."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = world.time.rng
        rng = self.rng
        self.plans = [drawn_plan(rng, f"job{n}") for n in range(rng.randint(1, 3))]
        self.lease = rng.choice([3, 6, 10])
        self.server_steps = rng.random() < 0.2
        self.healed_at = 0.0

    async def live(self) -> None:
        """Live it."""
        rng = self.rng
        settings: SchedulerSettings = {"lease": self.lease, "shutdown_timeout": rng.choice([0, 5])}
        trouble, slowness = rng.choice([0, 0.02, 0.1, 0.3]), rng.choice([0, 0.01, 0.3])
        for _ in range(rng.randint(1, 4)):
            ahead, drift = rng.choice([0, 0, 40, -40]), rng.choice([0, 0, 1e-4, -1e-4])
            instance = self.world.add(self._declare, ahead=ahead, drift=drift, **settings)
            instance.line.chance = Fate4All(rng, trouble, slowness)
            await instance.start()
        async with asyncio.TaskGroup() as group:
            for instance in self.world.instances.values():
                group.create_task(self._trouble(instance))
            if self.server_steps:
                group.create_task(self._step_the_server())
        for instance in self.world.instances.values():
            instance.line.chance = lambda _call: Fate(there=0.001, back=0.001)
        self.healed_at = self.world.time.seconds
        await self.world.wait(HEALED)

    def _declare(self, scheduler: Scheduler) -> None:
        for plan in self.plans:
            function = self.world.diary.body(plan.takes, lambda run, plan=plan: self._end(run, plan))
            scheduler.add_job(function, plan.period, name=plan.name, **plan.settings)

    def _end(self, run: Run, plan: Plan) -> None:
        if self.rng.random() < plan.fails:
            raise self.rng.choice([ValueError, KeyError, NoRetry])(run.attempt)

    async def _trouble(self, instance: Instance) -> None:
        """What happens to one instance; at the end it is well again."""
        rng, world = self.rng, self.world
        calm = rng.choice([5, 20, 60])
        while (rest := FAULTY - world.time.seconds) > 0:
            await world.wait(min(rest, rng.expovariate(1 / calm)))
            happening = rng.choice(["crash", "stop", "suspend", "stall", "cut", "clock"])
            seconds = min(rng.choice([0.5, 2, 10, 20]), max(0.1, FAULTY - world.time.seconds))
            if happening == "crash":
                instance.crash()
                await world.wait(seconds)
                await instance.restart()
            elif happening == "stop":
                await instance.stop()
                await world.wait(seconds)
                await instance.restart()
            elif happening == "suspend":
                instance.suspend(seconds)
                await world.wait(seconds)
            elif happening == "stall":
                instance.stall(seconds)
                await world.wait(seconds)
            elif happening == "cut":
                instance.line.cut(silent=rng.random() < 0.5)
                await world.wait(seconds)
                instance.line.mend()
            else:
                instance.clock.step(rng.uniform(-30, 30))

    async def _step_the_server(self) -> None:
        for _ in range(3):
            await self.world.wait(self.rng.uniform(0, FAULTY / 3))
            self.world.server.step(self.rng.choice([-20, -3, -0.5, 0.5, 3, 20]))

    # -- the judgement -----------------------------------------------------------------------------

    def faults(self) -> list[str]:
        """What was wrong with it."""
        world = self.world
        found = faults_of(world.executed, world.entries, steady=not self.server_steps)
        found += [f"L4: {run} is open" for run in self._open_for_long()]
        found += [
            f"L3: {instance.name} does not run"
            for instance in world.instances.values()
            if not instance.scheduler.health().running
        ]
        if not self.server_steps:
            for plan in self.plans:
                found += self._unrun(plan)
        return found

    def _open_for_long(self) -> list[str]:
        """Runs whose lease was over before the job's last slot but one."""
        now = self.world.server()
        return [
            f"{plan.name} {run}"
            for plan in self.plans
            for run, record in self.world.backend.book(plan.name).records.items()
            if isinstance(record, Record)
            and record.open
            and record.end < now - 2000 * plan.period - 3000
        ]

    def _unrun(self, plan: Plan) -> list[str]:
        """Slots of the healed time that nobody asked for although somebody could."""
        if not plan.always_runs:
            return []
        world = self.world
        noon = world.time.now() - world.time.seconds * 1000
        first = noon + (self.healed_at + SETTLING) * 1000
        last = world.time.now() - 3000
        period = plan.period * 1000
        records = world.backend.book(plan.name).records
        slots = range(round(-(-first // period)) * period, round(last), period)
        return [f"L1: {plan.name} {slot} was not run" for slot in slots if str(slot) not in records]
