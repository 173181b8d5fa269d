"""A FastAPI application under uvicorn and gunicorn: one run a slot, and it ends when told to."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.applications.support import (
    BIN,
    LEASE,
    Application,
    assert_each_slot_once,
    assert_in_time,
    copy_of_examples,
    touch_and_reload,
    wait_slots,
)
from tests.processes.support import assert_each_attempt_once, report

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.server import Server

pytestmark = pytest.mark.processes
slower = pytest.mark.exhaustive

APP = "examples.fastapi_app:app"
UVICORN = (str(BIN / "uvicorn"), "--host", "127.0.0.1", "--port", "0")
GUNICORN = (str(BIN / "gunicorn"), "--bind", "127.0.0.1:0", "--no-control-socket")
SERVERS = {
    "uvicorn-3": ((*UVICORN, "--workers", "3", APP), 3),
    "gunicorn-4": ((*GUNICORN, "-w", "4", "-k", "uvicorn_worker.UvicornWorker", APP), 4),
}


@pytest.mark.parametrize(
    ("server", "number"),
    [
        ("uvicorn-3", signal.SIGINT),
        ("gunicorn-4", signal.SIGTERM),
        pytest.param("uvicorn-3", signal.SIGTERM, marks=slower),
        pytest.param("gunicorn-4", signal.SIGINT, marks=slower),
    ],
)
def test_DUP_01_SHD_04_workers_run_each_slot_once_and_end(
    valkey9: Server, tmp_path: Path, server: str, number: signal.Signals
) -> None:
    command, workers = SERVERS[server]
    with Application(valkey9, tmp_path, command) as app:
        pids = app.wait_instances(workers)
        assert len(set(pids)) == workers
        assert app.wait_answer().body["running"] is True
        wait_slots(app.log, "refresh_prices", 2)
        assert app.run_now("refresh_prices").body["result"] == "refreshed"
        assert app.ask("/jobs/refresh_price", "POST").status == 404
        runs = app.ask("/jobs/refresh_prices/runs").body
        assert {run["status"] for run in runs} <= {"succeeded", "running"}
        assert [run["trigger"] for run in runs].count("manual") == 1

        asked_at = app.interrupt() if number is signal.SIGINT else app.send(number)
        app.wait_ended()
        report("ended after", time.time() - asked_at)
        assert_in_time(time.time() - asked_at, 3)
        app.assert_no_orphans()
        assert app.output().count("stopped ") == workers
        for job, every in (("refresh_prices", 1), ("send_newsletter", 2)):
            starts = app.log.read("start", job=job, trigger="schedule")
            assert_each_slot_once(starts, every)
            assert {start["pid"] for start in starts} <= set(pids)
        assert_each_attempt_once(app.log)
        assert app.log.read("cut short") == []
        app.assert_quiet()


@slower
def test_killed_worker_is_followed_by_another(valkey9: Server, tmp_path: Path) -> None:
    command, workers = SERVERS["uvicorn-3"]
    with Application(valkey9, tmp_path, command, seconds=1.5) as app:
        app.wait_instances(workers)
        first = app.log.wait_one("start", job="send_newsletter")
        killed_at = time.time()
        os.kill(first["pid"], signal.SIGKILL)
        second = app.log.wait_one("start", job="send_newsletter", slot=first["slot"], attempt=2)
        report("taken over after", second["at"] - killed_at)
        assert_in_time(second["at"] - killed_at, LEASE + 1)
        assert second["pid"] != first["pid"]
        app.log.wait_one("end", job="send_newsletter", slot=first["slot"], attempt=2)
        app.send(signal.SIGTERM)
        app.wait_ended()
        app.assert_no_orphans()
        assert_each_attempt_once(app.log, after_a_kill=True)


@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=slower), signal.SIGINT])
def test_SHD_04c_uvicorns_signal_handlers_are_untouched(
    valkey9: Server, tmp_path: Path, number: signal.Signals
) -> None:
    command = (*UVICORN, "--loop", "asyncio", "tests.applications.handlers:app")
    with Application(valkey9, tmp_path, command) as app:
        answer = app.wait_answer().body
        assert answer["before"] == answer["after"]
        assert "Server.handle_exit" in answer["after"][number.name]
        app.log.wait_one("end")
        asked_at = app.send(number)
        app.wait_ended()
        assert_in_time(time.time() - asked_at, 3)
        app.assert_no_orphans()
        assert app.output().count("stopped ") == 1
        assert "Finished server process" in app.output()
        app.assert_quiet()


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        pytest.param(2, 60, id="twice, with a long job"),
        pytest.param(10, 60, id="with a long job", marks=slower),
        pytest.param(10, 0.1, id="with short jobs", marks=slower),
    ],
)
def test_FRK_02_a_reloader_leaves_one_instance(
    valkey9: Server, tmp_path: Path, times: int, seconds: float
) -> None:
    folder = copy_of_examples(tmp_path)
    source = folder / "examples" / "fastapi_app.py"
    command = (*UVICORN, "--reload", APP)
    with Application(
        valkey9, tmp_path, command, cwd=folder, seconds=seconds, shutdown_timeout=0.3
    ) as app:
        assert app.wait_instances(1) != [app.pid]
        touch_and_reload(app, source, times)
        assert len(set(app.instances())) == times + 1
        asked_at = app.interrupt()
        app.wait_ended()
        assert_in_time(time.time() - asked_at, 3)
        app.assert_no_orphans()
        assert_each_attempt_once(app.log)
        if seconds > 1:
            assert app.log.read("cut short", attempt=1)
            assert app.log.read("start", attempt=2)
        else:
            assert app.log.read("cut short") == []
            app.assert_quiet()
