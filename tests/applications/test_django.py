"""A Django project: its scheduler in the workers, or as a command; jobs that use the ORM."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.applications.support import (
    BIN,
    LEASE,
    Application,
    Journal,
    assert_each_slot_once,
    assert_in_time,
    copy_of_examples,
    touch_and_reload,
    wait_slots,
)
from tests.processes.support import assert_each_attempt_once, report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.processes.plans import Entry
    from tests.support.server import Server

pytestmark = pytest.mark.processes
slower = pytest.mark.exhaustive

GUNICORN = (str(BIN / "gunicorn"), "--bind", "127.0.0.1:0", "--no-control-socket", "-w", "3")
WAYS = {
    "sync": (*GUNICORN, "shop.wsgi"),
    "gthread": (*GUNICORN, "-k", "gthread", "--threads", "4", "shop.wsgi"),
}
WHAT = {"ended": "end", "cut short": "cut short"}


class Rows(Journal):
    """What the jobs of the Django example wrote down in its database."""

    def read(self, what: str = "", **facts: object) -> list[Entry]:
        """The attempts, in the order in which they began; an ended one is a start and an end."""
        with closing(sqlite3.connect(self.path, timeout=20)) as database:
            database.row_factory = sqlite3.Row
            rows = database.execute("SELECT * FROM shop_work ORDER BY id").fetchall()
        entries: list[Entry] = []
        for row in rows:
            entry: Entry = dict(row)
            entries.append(entry | {"what": "start"})
            if entry["state"] in WHAT:
                entries.append(entry | {"what": WHAT[entry["state"]]})
        wanted = facts if not what else {"what": what, **facts}
        return [entry for entry in entries if wanted.items() <= entry.items()]


class Project:
    """A copy of the Django example, with a database of its own."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.folder = copy_of_examples(folder) / "examples" / "django_app"
        self.log = Rows(folder / "shop.sqlite3")
        self._server = server
        self._output = folder

    def start(self, command: Sequence[str], *, seconds: float = 0.1) -> Application:
        """Start a command in the project's folder."""
        return Application(
            self._server, self._output, command, cwd=self.folder, log=self.log, seconds=seconds
        )

    def manage(self, *words: str) -> Application:
        """Start a command of manage.py."""
        return self.start((sys.executable, "manage.py", *words))


@pytest.fixture
def project(valkey9: Server, tmp_path: Path) -> Project:
    made = Project(valkey9, tmp_path)
    with made.manage("migrate") as migrating:
        assert migrating.wait_ended() == 0, migrating.output()
        assert "Applying shop.0001_initial... OK" in migrating.output()
        assert migrating.instances() == []  # it starts no scheduler
    return made


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(WAYS["sync"], marks=slower, id="sync"),
        pytest.param(WAYS["gthread"], id="gthread"),
    ],
)
def test_DUP_01_workers_run_each_slot_once(project: Project, command: tuple[str, ...]) -> None:
    with project.start(command) as app:
        pids = app.wait_instances(3)
        assert len(set(pids)) == 3
        assert app.wait_answer().body["running"] is True
        wait_slots(app.log, "expire_carts", 2)
        assert app.run_now("expire_carts").body["pid"] in pids
        assert app.run_now("expire_cart").status == 404
        runs = app.ask("/jobs/expire_carts").body["runs"]
        assert [run["trigger"] for run in runs].count("manual") == 1
        app.wait(
            lambda: not any(open_files(pid, app.log.path) for pid in pids), "closed connections"
        )
        asked_at = app.send(signal.SIGTERM)
        assert app.wait_ended() == 0
        assert_in_time(time.time() - asked_at, 3)
        app.assert_no_orphans()
        for job, every in (("expire_carts", 1), ("import_orders", 2)):
            starts = app.log.read("start", job=job, trigger="schedule")
            assert_each_slot_once(starts, every)
            assert {start["pid"] for start in starts} <= set(pids)
        assert_each_attempt_once(app.log)
        assert len(app.log.read("end")) == len(app.log.read("start"))
        app.assert_quiet()


def open_files(pid: int, path: Path) -> list[str]:
    """The descriptors of a process that belong to a file, where the system tells."""
    folder = Path(f"/proc/{pid}/fd")
    if not folder.exists():
        return []
    targets = [str(link.readlink()) for link in folder.iterdir() if link.is_symlink()]
    return [target for target in targets if target == str(path)]


@slower
def test_killed_worker_is_followed_by_another(project: Project) -> None:
    with project.start(WAYS["sync"], seconds=1.5) as app:
        app.wait_instances(3)
        first = app.log.wait_one("start", job="import_orders")
        os.kill(first["pid"], signal.SIGKILL)
        killed_at = time.time()
        second = app.log.wait_one("start", job="import_orders", slot=first["slot"], attempt=2)
        report("taken over after", time.time() - killed_at)
        assert_in_time(time.time() - killed_at, LEASE + 1)
        assert second["pid"] != first["pid"]
        app.log.wait_one("end", job="import_orders", slot=first["slot"], attempt=2)
        assert len(set(app.wait_instances(4))) == 4
        app.send(signal.SIGTERM)
        assert app.wait_ended() == 0
        app.assert_no_orphans()
        assert_each_attempt_once(app.log, after_a_kill=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=slower)])
def test_command_runs_the_jobs(project: Project, number: signal.Signals) -> None:
    with project.manage("run_jobs") as one, project.manage("run_jobs") as other:
        assert one.wait_instances(1) + other.wait_instances(1) == [one.pid, other.pid]
        wait_slots(project.log, "import_orders", 2)
        for app in (one, other):
            asked_at = app.send(number)
            assert app.wait_ended() == 0, app.output()
            assert_in_time(time.time() - asked_at, 1.5)
            app.assert_no_orphans()
            app.assert_quiet()
        assert_each_slot_once(project.log.read("start", job="expire_carts"), 1)
        assert_each_attempt_once(project.log)


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=slower)])
def test_FRK_02_runservers_reloader_leaves_one_instance(project: Project, times: int) -> None:
    source = project.folder / "shop" / "jobs.py"
    with project.manage("runserver", "127.0.0.1:0") as app:

        def ready() -> None:  # it looks around once a second, for the first time about now
            app.wait_said("Quit the server", len(app.instances()))
            entries = len(app.log.read("end"))
            app.log.wait("end", entries + 2)

        touch_and_reload(app, source, times, ready)
        assert len({app.pid, *app.instances()}) == times + 2
        asked_at = app.interrupt()
        app.wait_ended()
        assert_in_time(time.time() - asked_at, 3)
        app.assert_no_orphans()
        assert_each_attempt_once(app.log)
        app.assert_quiet()


def test_runserver_without_its_reloader_has_one_instance(project: Project) -> None:
    with project.manage("runserver", "--noreload", "127.0.0.1:0") as app:
        assert app.wait_instances(1) == [app.pid]
        app.log.wait_one("end", pid=app.pid)
        asked_at = app.interrupt()
        app.wait_ended()
        assert_in_time(time.time() - asked_at, 3)
        app.assert_no_orphans()
        app.assert_quiet()
