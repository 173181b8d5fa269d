"""Processes that stand still for a while and go on: with a lost lease, or over many slots."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from anarchon import RunStatus
from tests.processes.support import (
    Fleet,
    assert_each_attempt_once,
    at,
    job,
    now_ms,
    report,
    wait_for,
    wait_settled,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.server import Server

pytestmark = pytest.mark.processes


def test_DUP_03_woken_zombie_takes_no_step_and_changes_nothing(
    server: Server, tmp_path: Path
) -> None:
    work = job(at(), "ticks", [30, 0.7], max_attempts=2)
    with Fleet(server, tmp_path, {"work": work}) as fleet:
        fleet.start(2)
        first = fleet.log.wait_one("start")
        zombie = fleet.of_pid(first["pid"])
        fleet.log.wait("tick", 3)
        paused_at = zombie.pause()
        second = fleet.log.wait_one("start", attempt=2)
        report("takeover_seconds", second["at"] - paused_at)
        assert second["pid"] != zombie.pid
        ticked = len(fleet.log.read("tick", attempt=1))

        resumed_at = zombie.resume()
        cancelled = fleet.log.wait_one("cancelled", attempt=1)
        fleet.log.wait_one("end", attempt=2)
        wait_settled(server, "work", slot=first["slot"])
        assert cancelled["at"] >= resumed_at
        assert len(fleet.log.read("tick", attempt=1)) == ticked
        assert fleet.log.read("end", attempt=1) == []
        warned = fleet.log.said("run.fenced") + fleet.log.said("run.lost")
        assert [entry["pid"] for entry in warned] == [zombie.pid]

        record = fleet.run_of(first)
        assert record.status is RunStatus.SUCCEEDED
        attempts = [(a.number, a.status) for a in record.attempts]
        assert attempts == [(1, RunStatus.INTERRUPTED), (2, RunStatus.SUCCEEDED)]
        assert_each_attempt_once(fleet.log)
        assert zombie.running


def test_CLK_03_process_suspended_over_many_slots_runs_what_its_jobs_allow(
    valkey9: Server, tmp_path: Path
) -> None:
    valkey9.flush()
    grid = at(every=0.5)
    jobs = {
        "plain": job(grid, max_late=1),
        "newest": job(grid, max_late=1, catch_up=60),
        "each": job(grid, max_late=1, catch_up=60, coalesce=False),
    }
    with Fleet(valkey9, tmp_path, jobs) as fleet:
        [instance] = fleet.start()
        for name in jobs:
            fleet.log.wait("end", 2, job=name)
        asleep_from = instance.pause() * 1000
        time.sleep(2.6)  # how long it is suspended is what is tested
        awake_from = instance.resume() * 1000

        def slots(name: str) -> list[int]:
            return [entry["slot"] for entry in fleet.log.read("start", job=name)]

        def grid_slots() -> set[int]:
            first = slots("each")[0]
            return set(range(first, round(awake_from), grid["every"]))

        wait_for(
            lambda: all(max(slots(name)) > awake_from + 600 for name in jobs), "slots after it"
        )
        wait_for(lambda: set(slots("each")) >= grid_slots(), "all slots of one job")
        started = {name: slots(name) for name in jobs}
        overslept = {
            name: [slot for slot in started[name] if asleep_from < slot < awake_from - 1000]
            for name in jobs
        }
        assert overslept["plain"] == []
        assert overslept["newest"] == []
        assert len(overslept["each"]) >= 2
        for name in jobs:
            assert len(set(started[name])) == len(started[name]), name
            assert len([s for s in started[name] if s < asleep_from]) >= 2
        late = [
            entry["at"] * 1000 - entry["slot"]
            for entry in fleet.log.read("start")
            if entry["slot"] > awake_from
        ]
        assert min(late) >= 0
        assert max(late) < 1000
        assert now_ms() > awake_from
        assert instance.running
