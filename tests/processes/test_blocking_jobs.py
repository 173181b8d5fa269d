"""Jobs that block their event loop or never end, and processes that forget to stop."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from anarchon import RedisBackend, Run, RunStatus, Scheduler
from tests.processes.embedded import until
from tests.processes.plans import GridSchedule
from tests.processes.support import Fleet, at, job, now_ms, open_runs, soon, wait_settled

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.server import Server

pytestmark = pytest.mark.processes


def test_SYN_01_job_that_blocks_its_loop_keeps_its_lease(valkey9: Server, tmp_path: Path) -> None:
    valkey9.flush()
    lease = 0.6

    def fleet_of(attempts: int) -> Fleet:
        work = job(at(every=20), "blocks-loop", [3 * lease], max_attempts=attempts)
        prefix = f"{attempts}:"
        fleet = Fleet(valkey9, tmp_path / str(attempts), {"work": work}, prefix=prefix)
        fleet.plan["lease"] = lease
        return fleet

    with fleet_of(1) as one, fleet_of(3) as three:
        for fleet in (one, three):
            fleet.start(2)
        for fleet in (one, three):
            fleet.log.wait_one("end")
            wait_settled(valkey9, "work", prefix=fleet.prefix)
            [start] = fleet.log.read("start")
            record = fleet.run_of(start)
            assert record.status is RunStatus.SUCCEEDED
            assert [attempt.number for attempt in record.attempts] == [1]
            assert fleet.log.said("run.lost") + fleet.log.said("run.fenced") == []


def test_SYN_03a_stop_leaves_a_thread_that_never_ends(
    valkey9: Server, caplog: pytest.LogCaptureFixture
) -> None:
    valkey9.flush()
    asyncio.run(_stop_beside_an_endless_thread(valkey9, caplog))


async def _stop_beside_an_endless_thread(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    scheduler = Scheduler(backend=RedisBackend(redis=server.url), lease=0.6)
    started: list[Run] = []
    let_go = False

    @scheduler.job(GridSchedule(soon(0.3)), name="endless")
    def endless(run: Run) -> None:
        started.append(run)
        while not let_go:
            time.sleep(0.02)

    await scheduler.start()
    await until(lambda: started, "start")
    before = time.monotonic()
    await scheduler.stop(timeout=0.6)
    assert time.monotonic() - before < 0.6 + 0.5 + 0.3  # the last for a busy machine
    [told] = [r for r in caplog.records if getattr(r, "event", "") == "run.abandoned"]
    assert "endless" in told.getMessage()
    assert started[0].lost.is_set()

    def lease_end() -> int:
        record = server.command("HGET", "{cron:endless}:state", started[0].slot)
        assert isinstance(record, bytes)
        return int(record.split()[3])

    end = lease_end()
    await until(lambda: now_ms() > end, "end of the lease")
    assert lease_end() == end, "it still sends heartbeats"
    assert open_runs(server, "endless") == {str(started[0].slot)}
    let_go = True


def test_SYN_03c_process_that_forgets_to_stop_ends_all_the_same(
    valkey9: Server, tmp_path: Path
) -> None:
    valkey9.flush()
    jobs = {
        "coroutine": job(at(), "sleep", [30], max_attempts=2),
        "thread": job(at(), "endless-thread", max_attempts=2),
    }
    with Fleet(valkey9, tmp_path, jobs) as fleet:
        fleet.plan["forget_to_stop"] = 0.8
        instance = fleet.launch()
        fleet.go([instance])
        starts = [fleet.log.wait_one("start", job=name) for name in jobs]
        assert instance.wait_ended() == 0
        # Nothing is said on the way out, and the runs are left to others.
        assert instance.errors() == ""
        for start in starts:
            assert open_runs(valkey9, start["job"]) == {str(start["slot"])}
