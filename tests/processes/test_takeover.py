"""Processes that die: their runs are taken over while attempts are left, and closed otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from anarchon import RunStatus
from tests.processes.support import (
    Fleet,
    assert_each_attempt_once,
    at,
    job,
    letters,
    open_runs,
    report,
    wait_for,
    wait_settled,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.processes.plans import Entry
    from tests.processes.support import Instance
    from tests.support.server import Server

pytestmark = pytest.mark.processes


def test_killed_run_is_taken_over_within_a_lease_and_a_second(
    server: Server, tmp_path: Path
) -> None:
    work = job(at(), "sleep", [30, 0.05], max_attempts=2)
    with Fleet(server, tmp_path, {"work": work}) as fleet:
        fleet.start(3)
        first = fleet.log.wait_one("start")
        killed_at = fleet.of_pid(first["pid"]).kill()
        second = fleet.log.wait_one("start", attempt=2)
        taken_over_after = second["at"] - killed_at
        report("takeover_seconds", taken_over_after)
        fleet.log.wait_one("end", attempt=2)
        assert taken_over_after < fleet.lease + 1
        assert second["slot"] == first["slot"]
        assert second["pid"] != first["pid"]
        assert second["fence"] > first["fence"]
        wait_settled(server, "work", slot=first["slot"])
        record = fleet.run_of(first)
        assert record.status is RunStatus.SUCCEEDED
        statuses = [attempt.status for attempt in record.attempts]
        assert statuses == [RunStatus.INTERRUPTED, RunStatus.SUCCEEDED]
        assert_each_attempt_once(fleet.log)


def test_LOST_02a_death_between_claim_and_body_is_taken_over(
    valkey9: Server, tmp_path: Path
) -> None:
    valkey9.flush()
    with Fleet(valkey9, tmp_path, {"work": job(at(), max_attempts=2)}) as fleet:
        fleet.plan["die_before_body"] = str(tmp_path / "died")
        fleet.start(2)
        died = fleet.log.wait_one("died")
        started = fleet.log.wait_one("start", attempt=2)
        report("takeover_seconds", started["at"] - died["at"])
        assert started["pid"] != died["pid"]
        assert started["at"] - died["at"] < fleet.lease + 1
        wait_settled(valkey9, "work", slot=started["slot"])
        statuses = [attempt.status for attempt in fleet.run_of(started).attempts]
        assert statuses == [RunStatus.INTERRUPTED, RunStatus.SUCCEEDED]


def test_LOST_02b_death_between_claim_and_body_without_another_attempt(
    valkey9: Server, tmp_path: Path
) -> None:
    valkey9.flush()
    work = job(at(every=0.6), max_attempts=1, max_late=1)
    with Fleet(valkey9, tmp_path, {"work": work}) as fleet:
        fleet.plan["lease"] = 0.6
        fleet.plan["die_before_body"] = str(tmp_path / "died")
        fleet.start()
        died = fleet.log.wait_one("died")
        lost = next(iter(open_runs(valkey9, "work")))
        fleet.start()
        later = fleet.log.wait_one("start")
        fleet.log.wait_one("end")
        assert later["slot"] > int(lost)
        assert later["pid"] != died["pid"]
        assert later["attempt"] == 1
        record = next(record for record in fleet.history("work") if record.id == lost)
        assert record.status is RunStatus.INTERRUPTED
        assert [attempt.status for attempt in record.attempts] == [RunStatus.INTERRUPTED]


def test_STUCK_01_killed_run_does_not_block_later_slots(valkey9: Server, tmp_path: Path) -> None:
    valkey9.flush()
    period = 0.6
    work = job(at(every=period), "sleep", [30], max_attempts=1, max_late=1)
    with Fleet(valkey9, tmp_path, {"work": work}) as fleet:
        fleet.plan["lease"] = 0.6
        [victim] = fleet.start()
        first = fleet.log.wait_one("start")
        victim.kill()
        [heir] = fleet.start()
        up = heir.wait_started()
        later = fleet.log.wait_one("start", pid=heir.pid)
        assert later["slot"] > first["slot"]
        assert later["at"] - up["at"] < fleet.lease + period + 1  # on a slow machine
        record = fleet.run_of(first)
        assert record.status is RunStatus.INTERRUPTED
        [attempt] = record.attempts
        assert attempt.end is not None
        assert open_runs(valkey9, "work") == {str(later["slot"])}


@pytest.mark.parametrize("attempts_left", [True, False], ids=["attempts-left", "none-left"])
def test_run_of_a_dead_fleet_is_settled_at_the_next_start(
    valkey9: Server,
    tmp_path: Path,
    attempts_left: bool,
) -> None:
    valkey9.flush()
    # The slots are far apart, so that only the start can bring the open run to light.
    work = job(at(every=20), "sleep", [30, 0.05], max_attempts=2 if attempts_left else 1)
    with Fleet(valkey9, tmp_path, {"work": work}) as fleet:
        fleet.plan["lease"] = 0.6
        victims = fleet.start(2)
        first = fleet.log.wait_one("start")
        killed_at = min([victim.kill() for victim in victims])
        if not attempts_left:
            _wait_for_lease_end(valkey9, first)
        [heir] = fleet.start()
        if attempts_left:
            second = fleet.log.wait_one("start", attempt=2)
            report("takeover_seconds", second["at"] - killed_at)
            assert second["pid"] == heir.pid
            assert second["at"] - heir.wait_started()["at"] < fleet.lease + 1
        wait_settled(valkey9, "work", letter="D" if attempts_left else "X")
        assert open_runs(valkey9, "work") == set()
        assert len(fleet.log.read("start")) == (2 if attempts_left else 1)


def _wait_for_lease_end(server: Server, start: Entry) -> None:
    def over() -> bool:
        record = server.command("HGET", f"{{cron:{start['job']}}}:state", start["slot"])
        time = server.command("TIME")
        assert isinstance(record, bytes)
        assert isinstance(time, list)
        seconds = time[0]
        assert isinstance(seconds, bytes)
        return int(record.split()[3]) < int(seconds) * 1000

    wait_for(over, "end of the lease")


@pytest.mark.parametrize("runs", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_RET_01_job_that_kills_its_process_is_started_as_often_as_allowed(
    valkey9: Server, tmp_path: Path, runs: int
) -> None:
    valkey9.flush()
    deadly = job(at(every=0.4), "kills-itself", max_attempts=3, max_late=10)
    harmless = job(at(every=0.4), max_late=1)
    with Fleet(valkey9, tmp_path, {"deadly": deadly, "harmless": harmless}) as fleet:
        fleet.plan["lease"] = 0.5
        supervised: Instance | None = None

        def runs_are_over() -> bool:
            nonlocal supervised
            if supervised is None or not supervised.running:
                supervised = fleet.launch()
                fleet.go([supervised])
            return list(letters(valkey9, "deadly").values()).count("X") >= runs

        wait_for(runs_are_over, f"end of {runs} deadly runs")
        over = sorted(run for run, letter in letters(valkey9, "deadly").items() if letter == "X")
        for run in over:
            # An attempt counts from its claim; its process may die of another run before the body.
            starts = [e["attempt"] for e in fleet.log.read("start", job="deadly", slot=int(run))]
            assert starts == sorted(set(starts))
            assert {1} <= set(starts) <= {1, 2, 3}
            record = next(record for record in fleet.history("deadly") if record.id == run)
            assert record.status is RunStatus.INTERRUPTED
            assert [a.status for a in record.attempts] == [RunStatus.INTERRUPTED] * 3
        assert fleet.log.read("end", job="harmless")
