"""TST-01: a user's test of a schedule, with nothing but what is exported."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from anarchon.testing import Cluster, VirtualTime, run_virtual

if TYPE_CHECKING:
    from anarchon import Run, Scheduler

MIDNIGHT = datetime(2026, 3, 28, tzinfo=UTC)


async def a_day(virtual_time: VirtualTime) -> list[datetime]:
    ran: list[datetime] = []

    def declare(scheduler: Scheduler) -> None:
        @scheduler.job("0 * * * *", name="hourly")
        async def hourly(run: Run) -> None:
            ran.append(run.scheduled_for)

    cluster = Cluster(virtual_time)
    await cluster.start(declare)
    await cluster.wait(timedelta(hours=24, seconds=1).total_seconds())
    await cluster.stop()
    return ran


def test_TST_01_a_day_passes_in_a_moment_and_always_the_same() -> None:
    began = time.monotonic()
    first, second = (run_virtual(a_day, start=MIDNIGHT) for _ in range(2))
    assert time.monotonic() - began < 4
    assert first == second == [MIDNIGHT + timedelta(hours=n) for n in range(1, 25)]


def test_what_happens_when_the_pod_dies_in_the_night_the_clocks_change() -> None:
    async def story(virtual_time: VirtualTime) -> list[tuple[str, int]]:
        ran: list[tuple[str, int]] = []

        def declare(scheduler: Scheduler) -> None:
            @scheduler.job("30 2 * * *", name="nightly", timezone="Europe/Berlin")
            async def nightly(run: Run) -> None:
                ran.append((run.scheduled_for.isoformat(), run.attempt))
                if run.attempt == 1:
                    cluster[run.runner].crash()
                    await cluster.wait(1)  # which nobody will ever see

        cluster = Cluster(virtual_time)
        await cluster.start(declare, 3)
        await cluster.wait(48 * 3600)
        await cluster.stop()
        return ran

    # On the 29th of March 2026 there is no half past two in Berlin; three o'clock stands in.
    ran = run_virtual(story, start=datetime(2026, 3, 28, 12, tzinfo=UTC))
    assert ran == [
        ("2026-03-29T03:00:00+02:00", 1),
        ("2026-03-29T03:00:00+02:00", 2),
        ("2026-03-30T02:30:00+02:00", 1),
        ("2026-03-30T02:30:00+02:00", 2),
    ]
