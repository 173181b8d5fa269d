"""Processes that are told to end: they let short jobs end, and hand long ones back."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from anarchon import RunStatus
from tests.processes.support import Fleet, at, job, letters, open_runs, report, wait_settled

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartServer
    from tests.support.server import Server

pytestmark = pytest.mark.processes


def test_terminated_instance_lets_a_short_job_end(valkey9: Server, tmp_path: Path) -> None:
    valkey9.flush()
    work = job(at(), "sleep", [1.5], max_attempts=3)
    with Fleet(valkey9, tmp_path, {"work": work}) as fleet:
        fleet.start(2)
        start = fleet.log.wait_one("start")
        ending = fleet.of_pid(start["pid"])
        asked_at = ending.send(signal.SIGTERM)
        status = ending.wait_ended()
        # Longer than the lease: the heartbeats went on, or the other instance would have it.
        [end] = fleet.log.read("end")
        assert status == 0, ending.errors()
        assert end["pid"] == ending.pid
        assert end["at"] - asked_at > 1.0
        assert len(fleet.log.read("start", slot=start["slot"])) == 1
        assert fleet.run_of(start).status is RunStatus.SUCCEEDED
        assert fleet.log.read("main ended", pid=ending.pid)
        assert ending.errors() == ""


def test_terminated_instance_hands_a_long_job_back(server: Server, tmp_path: Path) -> None:
    work = job(at(), "sleep", [30, 0.05], max_attempts=2)
    with Fleet(server, tmp_path, {"work": work}) as fleet:
        fleet.plan["shutdown_timeout"] = 0.3
        fleet.start(2)
        first = fleet.log.wait_one("start")
        ending = fleet.of_pid(first["pid"])
        asked_at = ending.send(signal.SIGTERM)
        status = ending.wait_ended()
        second = fleet.log.wait_one("start", attempt=2)
        released_at = fleet.log.wait_one("log", event="run.released")["at"]
        report("handed_over_after", second["at"] - released_at)
        assert status == 0, ending.errors()
        assert fleet.log.wait_one("main ended", pid=ending.pid)["at"] - asked_at < 1.5
        assert second["pid"] != ending.pid
        assert second["at"] - released_at < fleet.lease + 0.5
        wait_settled(server, "work", slot=first["slot"])
        statuses = [attempt.status for attempt in fleet.run_of(first).attempts]
        assert statuses == [RunStatus.RELEASED, RunStatus.SUCCEEDED]


def test_second_signal_ends_the_wait_for_running_jobs(valkey9: Server, tmp_path: Path) -> None:
    valkey9.flush()
    work = job(at(), "sleep", [30], max_attempts=2)
    with Fleet(valkey9, tmp_path, {"work": work}) as fleet:
        [instance] = fleet.start()
        start = fleet.log.wait_one("start")
        instance.send(signal.SIGTERM)
        instance.wait_said("scheduler.stopping")
        assert fleet.log.read("cancelled") == []
        again_at = instance.send(signal.SIGINT)
        status = instance.wait_ended()
        assert status == 0, instance.errors()
        assert fleet.log.wait_one("cancelled")["at"] - again_at < 1
        assert fleet.log.wait_one("main ended")["at"] - again_at < 2
        assert letters(valkey9, "work") == {str(start["slot"]): "W"}
        assert open_runs(valkey9, "work") == {str(start["slot"])}


def test_terminated_idle_instance_ends_at_once(valkey9: Server, tmp_path: Path) -> None:
    valkey9.flush()
    with Fleet(valkey9, tmp_path, {"yearly": job("0 0 1 1 *")}) as fleet:
        [instance] = fleet.start()
        asked_at = instance.send(signal.SIGTERM)
        assert instance.wait_ended() == 0
        assert fleet.log.wait_one("main ended")["at"] - asked_at < 1
        assert instance.errors() == ""
        assert fleet.log.trouble() == []
        assert valkey9.command("HLEN", "cron:instances") == 0


def test_terminated_instance_does_not_wait_for_a_store_that_is_away(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server()
    work = job(at(), "sleep", [30], max_attempts=2)
    with Fleet(server, tmp_path, {"work": work}) as fleet:
        fleet.plan["shutdown_timeout"] = 0.3
        [instance] = fleet.start()
        fleet.log.wait_one("start")
        server.pause()
        asked_at = instance.send(signal.SIGTERM)
        assert instance.wait_ended() == 0, instance.errors()
        assert fleet.log.wait_one("main ended")["at"] - asked_at < 0.3 + 1.5
        assert instance.errors() == ""
