"""Short histories of clusters in which everything goes wrong at random; all follows from a seed.

First faults, then all is healed; after that everything must go its way again within a bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anarchon import NoRetry
from anarchon.backends.reference import Record
from anarchon.testing import REFUSED, REPLY_LOST, REQUEST_LOST, Fate
from tests.support.judges import faults_of
from tests.support.world import NOON

if TYPE_CHECKING:
    import random

    from anarchon import JobSettings, Run, Scheduler
    from anarchon.testing import Instance, SchedulerSettings
    from tests.support.diary import Entry
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
        "name": name,
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
        self.killed: tuple[Entry, float] | None = None
        self._asked: list[asyncio.Task[None]] = []
        self._unanswered: list[tuple[Scheduler, str]] = []

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
            if rng.random() < 0.5:
                group.create_task(self._ask_for_runs())
        for instance in self.world.instances.values():
            instance.line.chance = lambda _call: Fate(there=0.001, back=0.001)
        self.healed_at = self.world.time.seconds
        await self.world.wait(SETTLING)
        await self._kill_one_more()
        await self.world.at(self.healed_at + HEALED)

    def _declare(self, scheduler: Scheduler) -> None:
        for plan in self.plans:
            function = self.world.diary.body(plan.takes, functools.partial(self._end, plan))
            scheduler.add_job(function, plan.period, **plan.settings)

    def _end(self, plan: Plan, run: Run) -> None:
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

    async def _ask_for_runs(self) -> None:
        """Ask for manual runs now and then, and never wait in vain for an answer."""
        while (rest := FAULTY - self.world.time.seconds) > 0:
            await self.world.wait(min(rest, self.rng.expovariate(1 / 15)))
            instance = self.rng.choice(list(self.world.instances.values()))
            name = self.rng.choice(self.plans).name
            self._asked.append(asyncio.create_task(self._run_now(instance, name)))

    async def _run_now(self, instance: Instance, name: str) -> None:
        incarnation = instance.scheduler
        self._unanswered.append((incarnation, f"{instance.name} {name}"))
        with contextlib.suppress(Exception):
            await instance.do(incarnation.run_now(name))
        self._unanswered.remove((incarnation, f"{instance.name} {name}"))

    async def _kill_one_more(self) -> None:
        """Kill the holder of a run that has a backup, once everything is well again."""
        for _ in range(100):
            await self.world.wait(0.2)
            for entry in self.world.entries:
                if self._has_a_backup(entry):
                    self.world[entry.runner].crash()
                    self.killed = (entry, self.world.time.now())
                    return

    def _has_a_backup(self, entry: Entry) -> bool:
        healthy_for = (entry.slot - NOON) / 1000 - self.healed_at
        plan = next(plan for plan in self.plans if plan.name == entry.job)
        attempts_left = entry.attempt < plan.settings.get("max_attempts", 3)
        running = entry.end is None and entry.trigger == "schedule"
        return running and healthy_for > 1 and attempts_left and len(self.world.instances) > 1

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
            if instance.alive and not instance.scheduler.health().running
        ]
        living = [instance.scheduler for instance in world.instances.values() if instance.alive]
        found += [f"run_now unanswered: {who}" for whom, who in self._unanswered if whom in living]
        if not self.server_steps:
            for plan in self.plans:
                found += self._unrun(plan)
            found += self._not_taken_over()
        return found

    def _not_taken_over(self) -> list[str]:
        """Whether the run whose holder was killed in the healed time went on too late."""
        if self.killed is None:
            return []
        dead, at = self.killed
        bound = at + self.lease * 1000 + 1000
        others = self.world.diary.of(dead.job)
        meanwhile = [e for e in others if e.slot != dead.slot and (e.end is None or e.end > at)]
        taken = [e for e in others if e.slot == dead.slot and at < e.start <= bound]
        in_the_way = [e for e in meanwhile if e.start <= bound]
        return [] if taken or in_the_way else [f"L2: {dead} was not taken over"]

    def _open_for_long(self) -> list[str]:
        """Runs with a lease that ended before the last slot but one, and nothing in their way."""
        now = self.world.server()
        found: list[str] = []
        for plan in self.plans:
            records = self.world.backend.book(plan.name).records.items()
            still = [(r, o.end) for r, o in records if isinstance(o, Record) and o.open]
            if plan.settings.get("overlap") != "allow" and any(end > now for _, end in still):
                continue
            long_ago = now - 2000 * plan.period - 3000
            found += [f"{plan.name} {run}" for run, end in still if end < long_ago]
        return found

    def _unrun(self, plan: Plan) -> list[str]:
        """Slots of the healed time that nobody asked for although somebody could."""
        waits = plan.settings.get("overlap") == "wait"
        if not plan.always_runs or (waits and self.killed):
            return []
        world = self.world
        first = NOON + (self.healed_at + SETTLING) * 1000
        last = world.time.now() - 3000
        period = plan.period * 1000
        records = world.backend.book(plan.name).records
        slots = range(round(-(-first // period)) * period, round(last), period)
        return [f"L1: {plan.name} {slot} was not run" for slot in slots if str(slot) not in records]
