"""When jobs are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from anarchon import Cron, Every, Scheduler
from tests.support.world import NOON, World, minutes, seconds, virtual


@virtual
async def test_cron_with_five_fields(world: World) -> None:
    await world.start(world.job("*/15 * * * *"))
    await world.at(3601)
    assert world.slots() == minutes(15, 30, 45, 60)


@virtual
async def test_cron_with_seconds_first(world: World) -> None:
    await world.start(world.job("*/20 * * * * *"))
    await world.at(61)
    assert world.slots() == seconds(20, 40, 60)


@virtual
async def test_named_schedules(world: World) -> None:
    await world.start(world.job("@hourly"))
    await world.at(2 * 3600 + 1)
    assert world.slots() == minutes(60, 120)


@virtual
async def test_an_interval_in_seconds_or_as_a_timedelta(world: World) -> None:
    def declare(scheduler: Scheduler) -> None:
        world.job(30, name="number")(scheduler)
        world.job(timedelta(seconds=30), name="timedelta")(scheduler)  # type: ignore[arg-type]
        world.job(Every(30), name="object")(scheduler)

    await world.start(declare)
    await world.at(91)
    for name in ("number", "timedelta", "object"):
        assert world.slots(name) == seconds(30, 60, 90)


@virtual
async def test_intervals_do_not_depend_on_when_an_instance_started(world: World) -> None:
    await world.wait(3.7)
    await world.start(world.job(10))
    await world.at(31)
    assert world.slots() == seconds(10, 20, 30)


@virtual
async def test_a_timezone_moves_the_slots(world: World) -> None:
    # Noon in UTC is 21:00 in Tokyo.
    await world.start(world.job("30 21 * * *", timezone="Asia/Tokyo"))
    await world.at(24 * 3600)
    assert world.slots() == minutes(30)


@virtual
async def test_a_schedule_with_a_timezone_of_its_own(world: World) -> None:
    await world.start(world.job(Cron("30 21 * * *", "Asia/Tokyo")))
    await world.at(24 * 3600)
    assert world.slots() == minutes(30)


class WhenTheTideIsIn:
    """A schedule of a user's own: every 12 hours and 25 minutes."""

    key = "tide"

    def next_after(self, moment: datetime, /) -> datetime | None:
        first = datetime(2026, 1, 1, tzinfo=UTC)
        tide = timedelta(hours=12, minutes=25)
        return first + tide * ((moment - first) // tide + 1)


@virtual
async def test_a_schedule_of_ones_own(world: World) -> None:
    await world.start(world.job(WhenTheTideIsIn()))
    await world.wait(24 * 3600)
    assert len(world.slots()) == 2
    assert world.slots()[1] - world.slots()[0] == 745 * 60_000


@virtual
async def test_jobs_tell_when_they_are_due_next(world: World) -> None:
    (instance,) = await world.start(world.job("0 3 * * *", timezone="Europe/Berlin"))
    (info,) = instance.scheduler.jobs
    assert info.name == "job"
    assert info.next_run is not None
    assert info.next_run.isoformat() == "2026-01-06T03:00:00+01:00"
    assert info.next_run.timestamp() * 1000 > NOON
