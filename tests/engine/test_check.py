"""What `check` finds, and what it says to do about it; in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from anarchon import StoreError
from anarchon.testing import Fate
from tests.engine.asking import do, start_on_demand
from tests.support.world import World, virtual

if TYPE_CHECKING:
    from collections.abc import Callable

    from anarchon import Scheduler
    from anarchon.testing import Instance


async def found(instance: Instance) -> dict[str, tuple[str, str, str]]:
    """What check() finds, by subject; the last of each."""
    findings = await do(instance, lambda s: s.check())
    return {f.subject: (f.level, f.text, f.advice) for f in findings}


@virtual
async def test_all_is_well(world: World) -> None:
    first, _second = await world.start(world.job(), 2)
    await world.at(1)
    findings = await do(first, lambda s: s.check())
    assert [f.subject for f in findings] == [
        "server", "eviction", "permissions", "format", "latency", "clock", "instance", "instance",
        "jobs",
    ]  # fmt: skip
    assert {(f.level, f.advice) for f in findings} == {("ok", "")}


@virtual
async def test_no_instance_is_there(world: World) -> None:
    level, text, advice = (await found(world.add(world.job())))["instances"]
    assert level == "error"
    assert "nobody runs jobs here" in text
    assert "another server, database or prefix" in advice


@virtual
async def test_the_dead_are_no_instances(world: World) -> None:
    for instance in await world.start(world.job(), 2):
        instance.crash()
    await world.at(3600)
    asker = world.add(world.job())
    assert (await found(asker))["instances"][0] == "error"
    assert await do(asker, lambda s: s.instances()) == ()


@virtual
async def test_nobody_runs_the_schedule_but_on_demand(world: World) -> None:
    instance = world.add(world.job())
    await start_on_demand(instance)
    await world.at(1)
    findings = await do(instance, lambda s: s.check())
    assert [f.subject for f in findings if f.level != "ok"] == ["instances"]


@virtual
async def test_a_slow_way_to_the_store(world: World) -> None:
    (instance,) = await world.start(world.job("0 3 * * *"))
    await world.at(1)
    instance.line.chance = lambda _call: Fate(there=0.02, back=0.02)
    assert (await found(instance))["latency"][0] == "ok"
    instance.line.chance = lambda _call: Fate(there=0.03, back=0.03)
    level, text, advice = (await found(instance))["latency"]
    assert level == "warning"
    assert text.startswith("a call takes 60.0 ms")
    assert "nearer to the store" in advice


@pytest.mark.parametrize(("ahead", "side"), [(2.5, "ahead of"), (-2.5, "behind")])
@virtual
async def test_a_host_clock_that_is_off(world: World, ahead: float, side: str) -> None:
    instance = world.add(world.job("0 3 * * *"), ahead=ahead)
    await instance.start()
    await world.at(1)
    findings = await found(instance)
    level, text, advice = findings["clock"]
    assert level == "warning"
    assert text.startswith("this host's clock is 2.")
    assert text.endswith(f" s {side} the store's")
    assert "NTP" in advice
    # The instance itself told of it as well, for whoever looks from elsewhere.
    level, text, advice = findings["instance"]
    assert level == "warning"
    assert f"its clock is 2.5 s {side} the store's" in text
    assert "NTP" in advice


@virtual
async def test_a_host_clock_that_is_off_by_less_than_a_second(world: World) -> None:
    instance = world.add(world.job("0 3 * * *"), ahead=0.9)
    await instance.start()
    await world.at(1)
    findings = await found(instance)
    assert (findings["clock"][0], findings["instance"][0]) == ("ok", "ok")


@virtual
async def test_an_event_loop_that_is_blocked(world: World) -> None:
    first, second = await world.start(world.job("0 3 * * *"), 2)
    await world.at(59)
    first.stall(3)
    await world.at(63)
    level, text, advice = next(
        (f.level, f.text, f.advice)
        for f in await do(second, lambda s: s.check())
        if f.text.startswith("i1")
    )
    assert level == "warning"
    assert "its event loop was 2.0 s late" in text
    assert "blocks its event loop" in advice


@virtual
async def test_jobs_that_differ_between_instances(world: World) -> None:
    (first,) = await world.start(world.job("1 12 * * *"))
    await world.start(world.job("2 12 * * *"))
    await world.at(1)
    level, text, advice = (await found(first))["job"]
    assert level == "warning"
    assert text == ("job differs: cron:1 12 * * *@UTC (i1, this process); cron:2 12 * * *@UTC (i2)")
    assert "deploy" in advice


@virtual
async def test_a_job_that_one_instance_lacks(world: World) -> None:
    (first,) = await world.start(world.job("1 12 * * *"))
    await world.start(world.job("1 12 * * *", name="new"))
    await world.at(1)
    findings = [f.text for f in await do(first, lambda s: s.check()) if f.subject == "job"]
    assert findings == [
        "job differs: not declared (i2); cron:1 12 * * *@UTC (i1, this process)",
        "new differs: not declared (i1, this process); cron:1 12 * * *@UTC (i2)",
    ]


@virtual
async def test_many_jobs_that_differ(world: World) -> None:
    def declare(count: int) -> Callable[[Scheduler], None]:
        def jobs(scheduler: Scheduler) -> None:
            for number in range(count):
                world.job("0 3 * * *", name=f"a job with a long name {number}")(scheduler)

        return jobs

    await world.start(declare(700))
    await world.start(declare(701))
    await world.at(1)
    asker = world.add(lambda scheduler: None)
    level, text, _ = (await found(asker))["jobs"]
    assert level == "warning"
    assert text == "instances declare different jobs, too many of them to tell which"


@virtual
async def test_many_jobs_that_differ_from_those_declared_here(world: World) -> None:
    def declare(schedule: str) -> Callable[[Scheduler], None]:
        def jobs(scheduler: Scheduler) -> None:
            for number in range(700):
                world.job(schedule, name=f"a job with a long name {number}")(scheduler)

        return jobs

    await world.start(declare("0 3 * * *"))
    await world.at(1)
    assert (await found(world.add(declare("0 4 * * *"))))["jobs"][0] == "warning"
    assert (await found(world.add(declare("0 3 * * *"))))["jobs"][0] == "ok"


@virtual
async def test_presence_that_makes_no_sense_harms_no_check(world: World) -> None:
    (instance,) = await world.start(world.job())
    await world.at(1)
    texts = ["", "[]", "5", "{", '{"jobs": 5, "ahead": "x", "lag": null}', "[" * 100_000]
    for number, told in enumerate(texts):
        world.backend.instances[f"x{number}"] = (world.server(), told)
    findings = await do(instance, lambda s: s.check())
    assert {f.level for f in findings} == {"ok"}
    assert sum(f.subject == "instance" for f in findings) == 1 + len(texts)


@virtual
async def test_a_store_that_is_away_is_a_finding(world: World) -> None:
    (instance,) = await world.start(world.job())
    instance.line.cut()
    (finding,) = await do(instance, lambda s: s.check())
    assert (finding.subject, finding.level) == ("server", "error")
    assert "connection refused" in finding.text
    assert "Is the address right" in finding.advice


@virtual
async def test_an_error_that_has_no_advice_of_its_own_is_a_finding(world: World) -> None:
    (instance,) = await world.start(world.job())
    instance.line.plan("instances", Fate(error=StoreError("odd")))
    (*_, finding) = await do(instance, lambda s: s.check())
    assert (finding.subject, finding.level, finding.text) == ("store", "error", "odd")
    assert "the server's own log" in finding.advice
