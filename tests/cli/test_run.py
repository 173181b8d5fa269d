"""`anarchon run` as a real process: what it logs, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.support import Process

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Write
    from tests.cli.support import Commands
    from tests.support.server import Server

pytestmark = pytest.mark.processes

APP = """
    import logging
    import threading
    import time

    from anarchon import MemoryBackend, RedisBackend, Run, Scheduler

    print("imported as", __name__, flush=True)
    backend = RedisBackend(redis="{url}") if "{url}" else MemoryBackend()
    scheduler = Scheduler(backend=backend, runner="app-1", shutdown_timeout=20)

    @scheduler.job("* * * * * *", max_attempts=1)
    def work(run: Run) -> None:
        log = logging.getLogger("app.jobs")
        log.info("working on %s", run.job, extra={{"slot_in_words": run.scheduled_for}})
        print("working", flush=True)
        {body}

    if __name__ == "__main__":
        scheduler.run()
"""

BROKEN = """
    from anarchon import MemoryBackend, Scheduler

    class Own(Scheduler):
        def run(self):
            raise LookupError("gone")

    scheduler = Own(backend=MemoryBackend())
"""


@pytest.fixture
def app(write: Write) -> str:
    """Return a TARGET whose job begins each second and is quick."""
    return f"{write(APP.format(url='', body='pass'))}:scheduler"


def logged(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_with_status_zero(
    app: str, tmp_path: Path, number: signal.Signals
) -> None:
    process = Process(tmp_path, "run", app)
    process.wait_printed("working")
    asked = time.monotonic()
    process.send(number)
    told = process.ended()
    assert told.status == 0
    assert time.monotonic() - asked < 5
    first, *_, last = told.err.splitlines()
    assert first.endswith("INFO     started as app-1; jobs: work")
    assert "INFO     app.jobs: working on work" in told.err
    assert "INFO     work: attempt 1 of 1 succeeded" in told.err
    assert "INFO     stopping; running jobs get 20 s\n" in told.err
    assert last.endswith("INFO     stopped app-1")
    assert "Traceback" not in told.err


def test_a_second_signal_ends_the_wait_for_what_runs(write: Write, tmp_path: Path) -> None:
    name = write(APP.format(url="", body="run.lost.wait(60)"))
    process = Process(tmp_path, "run", f"{name}:scheduler", "--log-json")
    process.wait_printed("working")
    process.send(signal.SIGTERM)
    process.wait_logged("scheduler.stopping")
    asked = time.monotonic()
    process.send(signal.SIGINT)
    told = process.ended()
    assert told.status == 0
    assert time.monotonic() - asked < 5
    assert "scheduler.stopped" in [line.get("event") for line in logged(told.err)]


def test_every_line_is_json_with_all_fields(app: str, tmp_path: Path) -> None:
    process = Process(tmp_path, "run", app, "--log-json", "--log-level", "debug")
    process.wait_printed("working", times=2)
    process.send(signal.SIGTERM)
    told = process.ended()
    lines = logged(told.err)
    for line in lines:
        assert list(line)[:3] == ["time", "level", "logger"]
        assert line["time"].endswith("+00:00")
        assert line["message"]
    events = {line["event"]: line for line in lines if "event" in line}
    done = events["run.succeeded"]
    assert (done["level"], done["logger"]) == ("INFO", "anarchon.runs")
    assert (done["job"], done["attempt"], done["runner"]) == ("work", 1, "app-1")
    [own, *_] = [line for line in lines if line["logger"] == "app.jobs"]
    assert own["message"] == "working on work"
    assert own["slot_in_words"].endswith("+00:00")


def test_failures_are_json_with_their_traceback(write: Write, tmp_path: Path) -> None:
    name = write(APP.format(url="", body="raise LookupError('gone')"))
    process = Process(tmp_path, "run", f"{name}:scheduler", "--log-json")
    process.wait_printed("working", times=2)
    process.send(signal.SIGTERM)
    [failed, *_] = [
        line for line in logged(process.ended().err) if line.get("event") == "run.failed"
    ]
    assert failed["level"] == "ERROR"
    assert failed["exception"].startswith("Traceback (most recent call last):\n")
    assert failed["exception"].endswith("LookupError: gone")


@pytest.mark.parametrize(
    ("text", "event", "status", "message"),
    [
        ("import nowhere", "cli.refused", 2, "app cannot be imported: ModuleNotFoundError"),
        ("scheduler = 1", "cli.refused", 2, "app:scheduler is an object of type int"),
        (BROKEN, "cli.failed", 1, "unexpected error: gone"),
    ],
)
def test_what_ends_it_is_json_too(  # noqa: PLR0913 - parametrised
    write: Write, tmp_path: Path, text: str, event: str, status: int, message: str
) -> None:
    name = write(text)
    told = Process(tmp_path, "run", f"{name}:scheduler", "--log-json").ended()
    assert told.status == status
    [line] = logged(told.err)
    assert line["event"] == event
    assert line["level"] == "CRITICAL"
    assert line["message"].startswith(message)
    assert ("exception" in line) == ("nowhere" in text or "gone" in text)
    assert "cli/target.py" not in line.get("exception", "")


def test_what_cannot_be_is_refused(app: str, commands: Commands) -> None:
    told = commands.refused("run", "redis://localhost:6379")
    assert "run needs the code of the jobs: give module:scheduler, not a URL" in told
    assert "--log-level 'loud'; there are:" in commands.refused("run", app, "--log-level", "loud")
    assert "did you mean app:scheduler?" in commands("run", "app:work", status=2).err
    assert "see anarchon run --help" in commands.refused("run")


def test_a_wrong_password_ends_it_in_a_line(server: Server, write: Write, tmp_path: Path) -> None:
    url = server.url.replace("redis://", "redis://nobody:secret@")
    name = write(APP.format(url=url, body="pass"))
    told = Process(tmp_path, "run", f"{name}:scheduler").ended()
    assert told.status == 2
    assert told.err.startswith("anarchon: the store does not accept user and password")
    assert "secret" not in told.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_the_module_is_imported(
    write: Write, tmp_path: Path, number: signal.Signals
) -> None:
    name = write("import time\nprint('importing', flush=True)\ntime.sleep(60)")
    process = Process(tmp_path, "run", f"{name}:scheduler")
    process.wait_printed("importing")
    process.send(number)
    told = process.ended()
    assert (told.status, told.err) == (0, "")


def test_its_module_is_imported_once_and_its_main_part_does_not_run(
    app: str, tmp_path: Path
) -> None:
    process = Process(tmp_path, "run", app)
    process.wait_printed("working")
    process.send(signal.SIGTERM)
    told = process.ended()
    assert told.out.count("imported as") == 1
    assert "imported as app\n" in told.out
    assert told.err.count("started as") == 1


def test_restarted_it_runs_the_new_code(server: Server, write: Write, tmp_path: Path) -> None:
    for body in ("print('old', flush=True)", "print('new', flush=True)"):
        name = write(APP.format(url=server.url, body=body))
        process = Process(tmp_path, "run", f"{name}:scheduler")
        process.wait_printed(body[7:10])
        process.send(signal.SIGINT)
        assert process.ended().status == 0
        assert server.command("HLEN", "cron:instances") == 0


def test_under_a_reloader_it_is_replaced_when_a_file_changes(write: Write, tmp_path: Path) -> None:
    source = tmp_path / "source"
    name = write(APP.format(url="", body="print('old', flush=True)"), "source.app")
    command = f"{sys.executable} -B -m anarchon run {name}:scheduler"
    watch = (sys.executable, "-m", "watchfiles", "--filter", "python")
    reloader = Process(tmp_path, command, str(source), program=watch)
    reloader.wait_printed("old")
    write(APP.format(url="", body="print('new', flush=True)"), "source.app")
    reloader.wait_printed("new")
    # As a terminal does at Ctrl-C: everybody in the foreground is told, and then the reloader tells
    # its child once more.
    os.killpg(reloader.pid, signal.SIGINT)
    told = reloader.ended()
    assert "Traceback" not in told.out + told.err
    assert told.err.count("started as app-1") == 2
    assert told.err.count("stopped app-1") == 2
