"""Many processes at once: each slot once, on time, and an idle instance is silent."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from anarchon import RedisBackend, Scheduler
from tests.processes.embedded import Diary, add_job
from tests.processes.support import Fleet, assert_each_attempt_once, job, letters, wait_for
from tests.store.books import text

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartServer
    from tests.support.server import Server

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    "seconds", [2, pytest.param(30, marks=pytest.mark.exhaustive)], ids=lambda s: f"{s}s"
)
def test_DUP_01_four_processes_run_each_slot_once(
    valkey9: Server, tmp_path: Path, seconds: int
) -> None:
    valkey9.flush()
    work = job("* * * * * *", max_late=5)
    with Fleet(valkey9, tmp_path, {"work": work}) as fleet:
        fleet.start(4)
        began = fleet.log.wait("end")[0]["slot"]
        wait_for(
            lambda: max(e["slot"] for e in fleet.log.read("end")) >= began + seconds * 1000,
            f"{seconds} slots",
            patience=seconds + 20,
        )
        starts = fleet.log.read("start")
        slots = [entry["slot"] for entry in starts]
        assert slots == [slots[0] + 1000 * number for number in range(len(slots))]
        assert {entry["attempt"] for entry in starts} == {1}
        late = [entry["at"] * 1000 - entry["slot"] for entry in starts]
        assert min(late) >= 0
        assert max(late) < 500
        if seconds > 10:
            assert len({entry["pid"] for entry in starts}) > 1
        wait_for(lambda: set(letters(valkey9, "work").values()) == {"D"}, "ends in the store")
        assert fleet.log.trouble() == []
        assert_each_attempt_once(fleet.log)


@pytest.mark.parametrize(
    ("seconds", "calls"),
    [(1.0, 0), pytest.param(62.0, 1, marks=pytest.mark.exhaustive)],
    ids=["1s", "62s"],
)
def test_idle_instance_sends_nothing_but_its_clock_check(
    start_server: StartServer, seconds: float, calls: int
) -> None:
    server = start_server()

    async def scenario() -> None:
        diary = Diary()
        scheduler = Scheduler(backend=RedisBackend(redis=server.url))
        add_job(scheduler, diary, "hourly", "0 * * * *")
        add_job(scheduler, diary, "yearly", "0 0 1 1 *", jitter=3600)
        async with scheduler:
            await _until_silent(server)
            server.command("CONFIG", "RESETSTAT")
            await asyncio.sleep(seconds)  # how long nothing may be sent is what is tested
            sent = _calls(server)
            scripts = sent.pop("evalsha", 0)
            inside = {"hset", "hdel", "hgetall", "time"}
            assert scripts == calls
            assert {name for name in sent if name not in inside} <= {"info", "config|resetstat"}
        assert diary.notes == []

    asyncio.run(scenario())


async def _until_silent(server: Server) -> None:
    """Wait until what is sent at the start is over."""
    deadline = time.monotonic() + 5
    before = -1
    while (now := sum(_calls(server).values()) - _calls(server).get("info", 0)) != before:
        assert time.monotonic() < deadline
        before = now
        await asyncio.sleep(0.2)


def _calls(server: Server) -> dict[str, int]:
    """How often each command was called."""
    lines = text(server.command("INFO", "commandstats")).splitlines()
    rows = [line.removeprefix("cmdstat_").partition(":calls=") for line in lines if "=" in line]
    return {name: int(rest.partition(",")[0]) for name, _, rest in rows}
