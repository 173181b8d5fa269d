"""A server that goes away and comes back, by a restart or because it stands still."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

import pytest

from anarchon import RedisBackend, RunStatus, Scheduler
from tests.processes.embedded import Diary, add_job, said, until, until_settled
from tests.processes.support import Fleet, at, job, now_ms, soon, wait_for, wait_settled

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartServer
    from tests.processes.support import Instance
    from tests.support.server import Server

pytestmark = pytest.mark.processes


def scheduler_on(server: Server, lease: float = 1.0) -> Scheduler:
    """A scheduler without jobs."""
    backend = RedisBackend(redis=server.url)
    return Scheduler(backend=backend, lease=lease, shutdown_timeout=0.2)


def away_and_back(server: Server, seconds: float) -> tuple[float, float]:
    """Take the server away, with its data, for so long; answers when it went and was back."""
    server.command("SAVE")
    server.stop()
    gone_at = time.time()
    time.sleep(seconds)  # how long it is away is what is tested
    server.start()
    return gone_at, time.time()


@pytest.mark.parametrize(
    ("program", "seconds"),
    [
        ("valkey9", 1.0),
        pytest.param("redis7", 1.0, marks=pytest.mark.exhaustive),
        pytest.param("valkey9", 10.0, marks=pytest.mark.exhaustive),
        pytest.param("valkey9", 60.0, marks=pytest.mark.exhaustive),
    ],
)
def test_OUT_01_server_restarts(
    start_server: StartServer, tmp_path: Path, program: str, seconds: float
) -> None:
    server = start_server(program)
    lease = max(4.0, seconds * 1.5)
    jobs = {
        # One job asks while the server is away, one runs, and one has nothing to ask.
        "asking": job(at(every=0.5), max_late=1),
        "running": job(at(), "sleep", [seconds + 1.5], max_attempts=2),
        "idle": job(at(seconds + 3, every=600), max_late=1),
    }

    def fleet_of(name: str) -> Fleet:
        return Fleet(server, tmp_path / name, {name: jobs[name]}, prefix=f"{name}:")

    with fleet_of("asking") as asking, fleet_of("running") as running, fleet_of("idle") as idle:
        fleets = {"asking": asking, "running": running, "idle": idle}
        instances: dict[str, Instance] = {}
        for name, fleet in fleets.items():
            fleet.plan["lease"] = lease
            fleet.plan["heartbeat"] = 0.3
            instances[name] = fleet.launch()
        for name, fleet in fleets.items():
            fleet.go([instances[name]])
        running.log.wait_one("start")
        asking.log.wait("end", 2)
        gone_at, back_at = away_and_back(server, seconds)

        after = back_at * 1000
        wait_for(
            lambda: [e for e in asking.log.read("start") if e["slot"] > after][2:],
            "slots after the return",
        )
        for entry in asking.log.read("start"):
            if entry["slot"] > after:
                assert 0 <= entry["at"] * 1000 - entry["slot"] < 500
        slots = [entry["slot"] for entry in asking.log.read("start")]
        assert len(set(slots)) == len(slots)
        first = min(slot for slot in slots if slot > after)
        assert first - after < 500, "the first slot after the return was left out"

        start = running.log.wait_one("start")
        running.log.wait_one("end", slot=start["slot"], attempt=1)
        wait_settled(server, "running", slot=start["slot"], prefix="running:")
        assert start["at"] < gone_at
        [late] = idle.log.wait("start")
        assert 0 <= late["at"] * 1000 - late["slot"] < 500
        told = {
            name: [e["event"] for e in fleet.log.read("log") if "store" in e["event"]]
            for name, fleet in fleets.items()
        }
        assert told["asking"] == told["running"] == ["store.away", "store.back"]
        assert told["idle"] in ([], ["store.away", "store.back"])
        worst = [e["level"] for fleet in fleets.values() for e in fleet.log.read("log")]
        assert "ERROR" not in worst


def test_OUT_01_server_that_is_not_up_at_the_start(
    start_server: StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "anarchon")
    server = start_server()
    server.stop()

    async def scenario() -> None:
        diary = Diary()
        scheduler = scheduler_on(server)
        add_job(scheduler, diary, "work", soon(0.3, every=0.4), max_late=1)
        before = time.monotonic()
        await scheduler.start()
        assert time.monotonic() - before < 1
        assert scheduler.health().running
        assert not scheduler.health().store
        assert len(said(caplog.records, "store.away")) == 1
        await asyncio.sleep(0.8)  # how long it is away is what is tested
        assert diary.notes == []
        await asyncio.to_thread(server.start)
        up_at = now_ms()
        [start] = await diary.wait("start")
        assert start.run.slot < up_at + 3000
        assert 0 <= start.late < 0.5
        assert scheduler.health().store
        await scheduler.stop()

    asyncio.run(scenario())
    assert len(said(caplog.records, "store.away")) == 1
    assert len(said(caplog.records, "store.back")) == 1


def test_OUT_01_body_ends_with_its_lease_when_the_server_stays_away(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server()
    work = job(at(every=20), "ticks", [30, 0.1], max_attempts=3)
    with Fleet(server, tmp_path, {"work": work}) as fleet:
        fleet.start(2)
        first = fleet.log.wait_one("start")
        gone_at, back_at = away_and_back(server, 2 * fleet.lease)
        second = fleet.log.wait_one("start", attempt=2)
        cancelled = fleet.log.wait_one("cancelled", attempt=1)
        last_tick = max(entry["at"] for entry in fleet.log.read("tick", attempt=1))
        # The fence falls 0.9 of a lease after the last heartbeat that was answered.
        assert last_tick < gone_at + 0.95 * fleet.lease
        assert cancelled["at"] < gone_at + fleet.lease
        assert len(fleet.log.said("run.fenced")) == 1
        assert second["at"] - back_at < fleet.lease + 1
        wait_settled(server, "work", slot=first["slot"])
        statuses = [attempt.status for attempt in fleet.run_of(first).attempts]
        assert statuses == [RunStatus.INTERRUPTED, RunStatus.SUCCEEDED]


def test_OUT_02_scripts_that_vanish_are_loaded_again(
    start_server: StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "anarchon")
    server = start_server()
    names = [f"work {number}" for number in range(20)]

    async def scenario() -> None:
        diary = Diary()
        grid = soon(0.6, every=1.2)
        scheduler = scheduler_on(server)
        for name in names:
            add_job(scheduler, diary, name, grid, 0.3)
        async with scheduler:
            server.command("SCRIPT", "FLUSH")
            await diary.wait("start", count=20)
            server.command("SCRIPT", "FLUSH")
            await diary.wait("end", count=20)
            for name in names:
                await until_settled(server, name)
            await asyncio.to_thread(server.restart, keep_data=False)
            starts = (await diary.wait("start", count=40))[20:]
        diary.assert_no_slot_twice()
        assert {note.run.slot for note in starts} == {grid["first"] + grid["every"]}
        assert max(note.late for note in starts) < 0.5

    asyncio.run(scenario())
    assert [r.getMessage() for r in caplog.records if r.levelno > logging.INFO] == []


def test_OUT_06_lost_data_stops_what_runs_and_nothing_is_half_restored(
    start_server: StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "anarchon")
    server = start_server()

    async def scenario() -> None:
        diary = Diary()
        grid = soon(0.3, every=1.5)
        scheduler = scheduler_on(server, lease=0.9)
        add_job(scheduler, diary, "running", grid, 1.2)
        add_job(scheduler, diary, "idle", grid)
        async with scheduler:
            await diary.wait("end", job="idle")
            await diary.wait("tick", job="running")
            server.command("FLUSHALL")
            [cancelled] = await diary.wait("cancelled")
            await until(lambda: len(said(caplog.records, "run.lost")) == 1, "word of the loss")
            await asyncio.sleep(0.1)  # a finish that must not be sent would be there by now
            assert server.command("KEYS", "{cron:running}:*") == []
            assert server.command("KEYS", "{cron:idle}:*") == []
            await diary.wait("end", job="idle", count=2)
            again = (await diary.wait("start", job="running", count=2))[1]
            assert cancelled.run.job == "running"
            assert again.run.attempt == 1
            assert again.run.slot == cancelled.run.slot + grid["every"]
            assert again.run.fence > cancelled.run.fence
            assert again.late < 0.5

    asyncio.run(scenario())
    troubles = [r.getMessage() for r in caplog.records if r.levelno > logging.INFO]
    assert troubles == [r.getMessage() for r in said(caplog.records, "run.lost")]


def test_OUT_07_server_that_stands_still(start_server: StartServer) -> None:
    server = start_server()

    async def scenario() -> None:
        diary, other = Diary(), Diary()
        staying, leaving = scheduler_on(server), scheduler_on(server)
        add_job(staying, diary, "running", soon(0.3, every=600), 10.0, max_late=10)
        add_job(staying, diary, "asking", soon(1.3, every=0.5), max_late=1.5)
        add_job(leaving, other, "leaving", soon(0.3, every=600), 10.0)
        async with staying, leaving:
            await diary.wait("tick", job="running")
            await other.wait("tick", job="leaving")
            server.pause()
            paused_at = time.time()
            lag = asyncio.create_task(_longest_lag(paused_at + 2.0))
            await leaving.stop(timeout=0.3)
            assert time.time() - paused_at < 0.3 + 1.5
            [fenced] = await diary.wait("cancelled", job="running")
            assert fenced.at - paused_at < 1.0
            assert await lag < 0.7
            assert diary.of("start", "asking") == []
            server.resume()
            resumed_at = now_ms()
            await until(
                lambda: max(diary.slots("asking"), default=0) > resumed_at + 600, "next slots"
            )
            for note in diary.of("start", "asking"):
                assert note.late < (0.5 if note.run.slot > resumed_at else 2.0)
            again = (await diary.wait("start", job="running", count=2))[1]
            assert again.run.attempt == 2
            assert again.at - resumed_at / 1000 < 2
        diary.assert_no_slot_twice()

    asyncio.run(scenario())


async def _longest_lag(until_wall: float) -> float:
    """By how many seconds the event loop was late at most, up to a moment."""
    longest = 0.0
    while time.time() < until_wall:
        before = time.monotonic()
        await asyncio.sleep(0.02)
        longest = max(longest, time.monotonic() - before - 0.02)
    return longest
