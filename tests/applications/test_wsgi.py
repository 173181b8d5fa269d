"""A Flask application under gunicorn's workers and under its own server."""

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
    lives,
    touch_and_reload,
    wait_slots,
)
from tests.processes.support import assert_each_attempt_once, report, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.server import Server

pytestmark = pytest.mark.processes
slower = pytest.mark.exhaustive

GUNICORN = (str(BIN / "gunicorn"), "--bind", "127.0.0.1:0", "--no-control-socket", "-w", "4")
IN_WORKERS = (*GUNICORN, "-c", "examples/gunicorn_conf.py")
APP = "examples.flask_app:app"
AT_IMPORT = "tests.applications.flask_at_import:app"
WAYS = {
    "sync, started by the hook": (*IN_WORKERS, APP),
    "gthread, started by the hook": (*IN_WORKERS, "-k", "gthread", "--threads", "4", APP),
    "sync, started at import": (*GUNICORN, AT_IMPORT),
    "sync, preloaded, started by the hook": (*IN_WORKERS, "--preload", APP),
}


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, id=way, marks=slower if way.startswith("sync, started") else ())
        for way, command in WAYS.items()
    ],
)
def test_DUP_01_workers_run_each_slot_once_and_answer(
    valkey9: Server, tmp_path: Path, command: tuple[str, ...]
) -> None:
    with Application(valkey9, tmp_path, command) as app:
        pids = app.wait_instances(4)
        assert len(set(pids)) == 4
        assert app.pid not in pids
        assert app.wait_answer().body["running"] is True
        wait_slots(app.log, "refresh_prices", 2)
        answer = app.run_now("refresh_prices")
        assert answer.status == 200, answer
        assert answer.body["result"] == "refreshed"
        assert answer.body["pid"] in pids
        unknown = app.run_now("refresh_price")
        assert unknown.status == 404
        assert "refresh_prices" in unknown.body["error"]
        runs = app.ask("/jobs/refresh_prices/runs").body
        assert [run["trigger"] for run in runs].count("manual") == 1

        asked_at = app.send(signal.SIGTERM)
        assert app.wait_ended() == 0
        report("ended after", time.time() - asked_at)
        assert_in_time(time.time() - asked_at, 3)
        app.assert_no_orphans()
        assert app.output().count("stopped ") == 4
        for job, every in (("refresh_prices", 1), ("send_newsletter", 2)):
            assert_each_slot_once(app.log.read("start", job=job, trigger="schedule"), every)
        assert_each_attempt_once(app.log)
        assert app.log.read("cut short") == []
        app.assert_quiet()


def test_started_before_the_fork_it_says_so_in_the_workers(valkey9: Server, tmp_path: Path) -> None:
    with Application(valkey9, tmp_path, (*GUNICORN, "--preload", AT_IMPORT)) as app:
        assert app.wait_instances(1) == [app.pid]
        app.wait_answer()
        for path, method in (
            ("/jobs/refresh_prices", "POST"),
            ("/jobs/refresh_prices/runs", "GET"),
        ):
            asked_at = time.monotonic()
            answer = app.ask(path, method)
            assert_in_time(time.monotonic() - asked_at, 1)
            assert answer.status == 503, answer
            assert "start it after the fork" in answer.body["error"]
        app.send(signal.SIGTERM)
        assert app.wait_ended() == 0
        app.assert_no_orphans()
        app.assert_quiet()


def test_killed_worker_is_followed_by_another(valkey9: Server, tmp_path: Path) -> None:
    with Application(valkey9, tmp_path, (*IN_WORKERS, APP), seconds=1.5) as app:
        app.wait_instances(4)
        first = app.log.wait_one("start", job="send_newsletter")
        killed_at = time.time()
        os.kill(first["pid"], signal.SIGKILL)
        second = app.log.wait_one("start", job="send_newsletter", slot=first["slot"], attempt=2)
        report("taken over after", second["at"] - killed_at)
        assert_in_time(second["at"] - killed_at, LEASE + 1)
        assert second["pid"] != first["pid"]
        assert second["fence"] > first["fence"]
        app.log.wait_one("end", job="send_newsletter", slot=first["slot"], attempt=2)
        assert len(set(app.wait_instances(5))) == 5
        app.send(signal.SIGTERM)
        assert app.wait_ended() == 0
        app.assert_no_orphans()
        assert_each_attempt_once(app.log, after_a_kill=True)
        # The killed worker may have won one of these as well, and not have begun with it. While its
        # lease lasts, the next slot is skipped.
        starts = {entry["slot"]: entry for entry in app.log.read("start", job="refresh_prices")}
        for slot, entry in list(starts.items()):
            if entry["attempt"] > 1:
                starts.setdefault(slot + 1000, entry)
        assert_each_slot_once([{**entry, "slot": slot} for slot, entry in starts.items()], 1)


@pytest.mark.parametrize(
    "seconds",
    [pytest.param(1.2, id="drained", marks=slower), pytest.param(60, id="handed back")],
)
def test_graceful_reload_loses_nothing(valkey9: Server, tmp_path: Path, seconds: float) -> None:
    command, patience = (*IN_WORKERS, APP), 10 if seconds < 10 else 0.3
    with Application(valkey9, tmp_path, command, seconds=seconds, shutdown_timeout=patience) as app:
        former = app.wait_instances(4)
        first = app.log.wait_one("start", job="send_newsletter")
        asked_at = app.send(signal.SIGHUP)
        # The former workers end at once, and the later ones have yet to import the application.
        app.wait_instances(5)
        nobody_up = (asked_at - 0.25, time.time())
        later = app.wait_instances(8)[4:]
        if seconds < 10:
            end = app.log.wait_one("end", slot=first["slot"], job="send_newsletter")
            assert (end["pid"], end["attempt"]) == (first["pid"], 1)
        else:
            second = app.log.wait_one("start", slot=first["slot"], attempt=2)
            report("handed over after", second["at"] - asked_at)
            assert second["at"] < max(asked_at + 0.3 + LEASE, nobody_up[1]) + 1
            assert second["pid"] in later
            assert app.log.read("cut short", attempt=1, slot=first["slot"], pid=first["pid"])
        wait_for(lambda: not any(map(lives, former)), "end of the former workers")
        again_at = time.time()
        wait_for(
            lambda: [e for e in app.log.read("end", job="refresh_prices") if e["at"] > again_at],
            "later run",
        )
        app.send(signal.SIGTERM)
        assert app.wait_ended() == 0
        app.assert_no_orphans()
        assert_each_attempt_once(app.log)
        starts = app.log.read("start", job="refresh_prices")
        assert_each_slot_once(starts, 1, nobody_up=nobody_up)
        assert app.output().count("stopped ") == 8


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=slower)])
def test_FRK_02_flasks_own_reloader_leaves_one_instance(
    valkey9: Server, tmp_path: Path, times: int
) -> None:
    folder = copy_of_examples(tmp_path)
    source = folder / "examples" / "flask_app.py"
    command = (str(BIN / "flask"), "--app", "examples.flask_app", "run", "--debug", "--port", "0")
    with Application(valkey9, tmp_path, command, cwd=folder) as app:

        def ready() -> None:
            assert app.run_now("refresh_prices").body["pid"] == app.instances()[-1]

        touch_and_reload(app, source, times, ready)
        assert len({app.pid, *app.instances()}) == times + 2
        asked_at = app.interrupt()
        app.wait_ended()
        assert_in_time(time.time() - asked_at, 3)
        app.assert_no_orphans()
        assert_each_attempt_once(app.log)
        app.assert_quiet()


def test_flasks_commands_start_no_scheduler(valkey9: Server, tmp_path: Path) -> None:
    command = (str(BIN / "flask"), "--app", "examples.flask_app", "routes")
    with Application(valkey9, tmp_path, command) as app:
        assert app.wait_ended() == 0
        assert "/jobs/<name>" in app.output()
        assert app.instances() == []
