"""`anarchon run-now`: one run, here, and nothing else."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.cli.support import Process

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Write
    from tests.cli.support import Commands
    from tests.support.server import Server


def test_the_result_is_printed(shop: str, commands: Commands) -> None:
    told = commands("run-now", shop, "nightly_report")
    assert told.out == "{'rows': 3, 'attempt': 1}\n"
    assert told.err == ""


def test_json(shop: str, commands: Commands) -> None:
    assert commands("run-now", shop, "nightly_report", "--json").json == {
        "job": "nightly_report",
        "status": "succeeded",
        "result": {"rows": 3, "attempt": 1},
        "repr": "{'rows': 3, 'attempt': 1}",
        "error": None,
    }


def test_json_of_a_result_that_json_cannot_hold(write: Write, commands: Commands) -> None:
    name = write("""
        from anarchon import MemoryBackend, Scheduler
        scheduler = Scheduler(backend=MemoryBackend())
        scheduler.add_job(lambda: {1, 2}, "@daily", name="ids")
    """)
    told = commands("run-now", f"{name}:scheduler", "ids", "--json").json
    assert (told["status"], told["result"], told["repr"]) == ("succeeded", None, "{1, 2}")


def test_a_result_that_cannot_be_written_is_no_failure(write: Write, commands: Commands) -> None:
    name = write("""
        from anarchon import MemoryBackend, Scheduler

        class Odd:
            def __repr__(self):
                raise ValueError("no words for it")

        scheduler = Scheduler(backend=MemoryBackend())
        scheduler.add_job(Odd, "@daily", name="odd")
    """)
    told = commands("run-now", f"{name}:scheduler", "odd")
    assert told.out
    assert told.err == ""
    assert commands("run-now", f"{name}:scheduler", "odd", "--json").json["status"] == "succeeded"


def test_json_is_not_mixed_with_what_the_job_prints(write: Write, commands: Commands) -> None:
    name = write("""
        from anarchon import MemoryBackend, Scheduler
        scheduler = Scheduler(backend=MemoryBackend())
        scheduler.add_job(lambda: print("from the job"), "@daily", name="talk")
    """)
    told = commands("run-now", f"{name}:scheduler", "talk", "--json")
    assert told.json["status"] == "succeeded"
    assert told.err == "from the job\n"
    assert commands("run-now", f"{name}:scheduler", "talk").out == "from the job\nNone\n"


def test_a_failure_is_told_with_its_tracebacks_in_the_log(shop: str, commands: Commands) -> None:
    told = commands("run-now", shop, "sync_stock", status=1)
    assert told.out == ""
    assert told.err.count("Traceback") == 2
    assert " WARNING  sync_stock: attempt 1 of 2 failed\n" in told.err
    assert " ERROR    sync_stock: attempt 2 of 2 failed\n" in told.err
    last = told.err.splitlines()[-1]
    assert last == "anarchon: sync_stock failed: ValueError: no such article: 7"


def test_json_of_a_failure(shop: str, commands: Commands) -> None:
    assert commands("run-now", shop, "sync_stock", "--json", status=1).json == {
        "job": "sync_stock",
        "status": "failed",
        "result": None,
        "repr": None,
        "error": "sync_stock failed: ValueError: no such article:\n  7",
    }


def test_the_level_of_the_log_can_be_chosen(shop: str, commands: Commands) -> None:
    told = commands("run-now", shop, "nightly_report", "--log-level", "info")
    assert " INFO     nightly_report: attempt 1 of 3 succeeded\n" in told.err
    assert told.out == "{'rows': 3, 'attempt': 1}\n"
    assert "--log-level 'x'" in commands.refused(
        "run-now", shop, "nightly_report", "--log-level", "x"
    )


def test_a_paused_job_runs_too(shop: str, commands: Commands) -> None:
    commands("pause", shop, "nightly_report")
    assert commands("run-now", shop, "nightly_report").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nightly"], "no job 'nightly' is declared here; did you mean 'nightly_report'?"),
        (["x"], "there are: endless, nightly_report, sync_stock"),
        ([], "Missing argument 'JOB'; see anarchon run-now --help"),
    ],
)
def test_an_unknown_job_is_refused(
    shop: str, commands: Commands, arguments: list[str], words: str
) -> None:
    assert words in commands.refused("run-now", shop, *arguments)


def test_a_url_is_refused(commands: Commands) -> None:
    told = commands.refused("run-now", "redis://localhost", "x")
    assert "run-now needs the code of the jobs: give module:scheduler" in told


# -- with a server -----------------------------------------------------------------------------

SLOW = """
    import time
    from anarchon import RedisBackend, Run, Scheduler

    scheduler = Scheduler(backend=RedisBackend(redis="{url}"), lease=2)

    @scheduler.job("* * * * * *", name="never-started")
    def never_started():
        raise AssertionError("a job that was not asked for was run")

    @scheduler.job("@yearly", max_attempts={attempts})
    def work(run: Run) -> None:
        print("working", flush=True)
        {body}
"""
WAITS = "run.lost.wait(60)"
IGNORES = "time.sleep(60)"


def test_nothing_else_is_registered_or_run(
    server: Server, write: Write, commands: Commands
) -> None:
    name = write(SLOW.format(url=server.url, attempts=1, body="time.sleep(1.2)"))
    assert commands("run-now", f"{name}:scheduler", "work").out == "working\nNone\n"
    keys = server.command("KEYS", "*")
    assert isinstance(keys, list)
    jobs = {key.split(b":")[1] for key in keys if isinstance(key, bytes) and b"{" in key}
    assert jobs == {b"work}"}
    assert server.command("HLEN", "cron:instances") == 0


@pytest.mark.processes
@pytest.mark.parametrize(
    ("number", "attempts", "body", "words"),
    [
        (signal.SIGINT, 2, WAITS, "the run was given back, and may go on in another instance"),
        (signal.SIGTERM, 1, WAITS, "the run was given back, and has no attempt left"),
        (signal.SIGINT, 2, IGNORES, "the function did not stop and ends with this process"),
    ],
)
def test_a_signal_gives_the_run_back_and_says_so(  # noqa: PLR0913 - parametrised
    valkey9: Server,
    write: Write,
    tmp_path: Path,
    number: signal.Signals,
    attempts: int,
    body: str,
    words: str,
) -> None:
    name = write(SLOW.format(url=valkey9.url, attempts=attempts, body=body))
    process = Process(tmp_path, "run-now", f"{name}:scheduler", "work")
    process.wait_printed("working")
    began = time.monotonic()
    process.send(number)
    told = process.ended()
    assert told.status == 128 + number
    assert told.err.splitlines()[-1].startswith(f"anarchon: interrupted: {words}")
    assert time.monotonic() - began < 10


@pytest.mark.processes
def test_a_run_that_may_not_start_is_refused(
    valkey9: Server, write: Write, tmp_path: Path, commands: Commands
) -> None:
    name = write(SLOW.format(url=valkey9.url, attempts=1, body=WAITS))
    process = Process(tmp_path, "run-now", f"{name}:scheduler", "work")
    process.wait_printed("working")
    told = commands("run-now", f"{name}:scheduler", "work", "--json", status=1)
    assert told.json["status"] == "refused"
    assert "another run of the job is live" in str(told.json["error"])
    process.send(signal.SIGTERM)
    assert process.ended().status == 128 + signal.SIGTERM
