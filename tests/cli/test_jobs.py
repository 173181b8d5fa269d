"""`anarchon jobs`: of a module, and of the instances of a store."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

import pytest

from tests.cli.support import Process
from tests.cli.told import TOLD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Write
    from tests.cli.support import Commands
    from tests.support.server import Server

STATES = """
    scheduler.add_job(print, "0 3 29 2 *", name="a_name_that_is_too_long_for_its_column.and.more")
    STATES["report"] = JobState("report", True, at("01:00"), True, at("12:00"), "moving", ())
    STATES["sync"] = JobState("sync", True, at("01:00"), False, None, "", ("1796007600000",))
"""


@pytest.fixture
def told(write: Write) -> str:
    return f"{write(TOLD + STATES)}:scheduler"


def test_screen(told: str, commands: Commands) -> None:
    shown = commands("jobs", told).out
    # When they are due depends on the day on which this is run.
    assert re.sub(r"  \w{3} \d{4}-\d\d-\d\d \d\d:\d\d", "  Ddd YYYY-MM-DD HH:MM", shown) == (
        "JOB     NEXT RUN                        SCHEDULE\n"
        "report  Ddd YYYY-MM-DD HH:MM:00 +01:00  at 03:00 on the 29th of February,\n"
        "                                        Europe/Berlin\n"
        "  paused until Mon 2026-11-30 13:00:00 +01:00: moving\n"
        "sync    Ddd YYYY-MM-DD HH:MM:00 +00:00  every 15 minutes\n"
        "  open: the run for Mon 2026-11-30 03:00:00 +00:00 (1796007600000)\n"
        "a_name_that_is_too_long_for_its_column.and.more\n"
        "        Ddd YYYY-MM-DD HH:MM:00 +00:00  at 03:00 on the 29th of February, UTC\n"
    )


def test_json(told: str, commands: Commands) -> None:
    answer = commands("jobs", told, "--json").json
    report, sync, other = answer["jobs"]
    assert answer["store_error"] is None
    assert re.fullmatch(r"\d{4}-02-29T03:00:00\+01:00", str(report.pop("next_run")))
    assert report == {
        "job": "report",
        "schedule": "at 03:00 on the 29th of February, Europe/Berlin",
        "paused": True,
        "paused_until": "2026-11-30T12:00:00+00:00",
        "paused_note": "moving",
        "open_runs": [],
    }
    assert (sync["paused"], sync["open_runs"]) == (False, ["1796007600000"])
    assert other["paused"] is False


def test_a_store_that_is_away_hides_no_job(write: Write, commands: Commands) -> None:
    name = write("""
        from anarchon import RedisBackend, Scheduler
        scheduler = Scheduler(backend=RedisBackend(redis="redis://:secret@127.0.0.1:1"))
        scheduler.add_job(print, "@yearly", name="count")
    """)
    told = commands("jobs", f"{name}:scheduler")
    assert told.lines[1].startswith("count  ")
    assert told.lines[3].startswith("Whether any is paused is not known: no connection")
    answer = commands("jobs", f"{name}:scheduler", "--json").json
    [job] = answer["jobs"]
    assert job["paused"] is None
    assert "no connection" in str(answer["store_error"])
    assert "secret" not in told.out + str(answer)


def test_a_schedule_that_is_over(write: Write, commands: Commands) -> None:
    name = write("""
        from anarchon import MemoryBackend, Scheduler
        class Once:
            key = "once"
            def next_after(self, moment): return None
        scheduler = Scheduler(backend=MemoryBackend())
        scheduler.add_job(print, Once(), name="done")
    """)
    told = commands("jobs", f"{name}:scheduler")
    assert told.lines[1].startswith("done  never again  ")
    [job] = commands("jobs", f"{name}:scheduler", "--json").json["jobs"]
    assert job["next_run"] is None


# -- of a store --------------------------------------------------------------------------------


def test_a_store_without_instances(server: Server, commands: Commands) -> None:
    told = commands("jobs", server.url)
    assert told.out == "No instance is alive with this store and prefix.\n"
    answer = commands("jobs", server.url, "--json").json
    assert answer == {"instances": [], "jobs": [], "store_error": None}
    assert server.command("KEYS", "*") == []


APP = """
    from anarchon import RedisBackend, Scheduler
    scheduler = Scheduler(backend=RedisBackend(redis="{url}"), runner="{runner}")
    scheduler.add_job(print, "{report}", name="report")
    scheduler.add_job(print, "@yearly", name="sync", max_attempts=1)
"""


@pytest.mark.processes
def test_instances_that_differ(
    valkey9: Server, write: Write, tmp_path: Path, commands: Commands
) -> None:
    running: list[Process] = []
    for runner, schedule in (("app-1", "@yearly"), ("app-2", "@monthly"), ("app-3", "@yearly")):
        name = write(
            APP.format(url=valkey9.url, runner=runner, report=schedule), f"app_{runner[-1]}"
        )
        process = Process(tmp_path, "run", f"{name}:scheduler", "--log-json")
        running.append(process)
        process.wait_logged("scheduler.started")
    commands("pause", valkey9.url, "sync", "--note", "why")
    told = commands("jobs", valkey9.url)
    answer = commands("jobs", valkey9.url, "--json").json
    for process in running:
        process.send(signal.SIGTERM)
        assert process.ended().status == 0
    instances, jobs = told.out.split("\n\n")
    assert [line.split()[0] for line in instances.splitlines()] == [
        "INSTANCE",
        "app-1",
        "app-2",
        "app-3",
    ]
    assert re.search(r"app-1 +\d s ago +[+-]\d+ ms +\d+ ms +\d+\.\d+\.\d+\n", instances)
    assert re.fullmatch(
        r"JOB     ON   DEFINITION\n"
        r"report  2/3  cron:0 0 1 1 \*@UTC\n"
        r"        1/3  cron:0 0 1 \* \*@UTC\n"
        r"sync    3/3  cron:0 0 1 1 \*@UTC max_attempts=1\n"
        r"  paused until it is resumed: why\n",
        jobs,
    )
    first = answer["instances"][0]
    assert set(first) == {
        "runner",
        "last_seen",
        "clock_ahead",
        "loop_lag",
        "version",
        "jobs",
        "jobs_digest",
    }
    report, sync = answer["jobs"]
    assert report["definitions"] == {
        "cron:0 0 1 1 *@UTC": ["app-1", "app-3"],
        "cron:0 0 1 * *@UTC": ["app-2"],
    }
    assert (sync["job"], sync["paused"], sync["paused_note"]) == ("sync", True, "why")
