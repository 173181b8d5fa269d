"""Bodies that misuse their process: they fork, change what all share, or bring it to its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from anarchon import RedisBackend, RunStatus, Scheduler
from tests.processes import bad_bodies
from tests.processes.support import PATIENCE, ROOT, Log, soon, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from anarchon import RunRecord
    from tests.processes.plans import Grid
    from tests.support.server import Server

pytestmark = pytest.mark.processes

LEASE = 0.8
STOP_SOON = 1.0
RARELY = 4
"""Seconds between two slots, where there is to be one; a process that was started too slowly for
the first takes the next."""

ASYNC_FORKS = (
    bad_bodies.child_returns,
    bad_bodies.child_exits,
    bad_bodies.child_exits_at_once,
    bad_bodies.child_raises,
    bad_bodies.child_awaits,
)
THREAD_FORKS = (
    bad_bodies.thread_child_returns,
    bad_bodies.thread_child_exits,
    bad_bodies.thread_child_exits_at_once,
    bad_bodies.thread_child_raises,
)
POOLS = (
    bad_bodies.forks_a_process,
    bad_bodies.has_a_pool_of_processes,
    bad_bodies.thread_has_a_pool_of_processes,
    bad_bodies.has_a_pool_that_terminates_its_processes,
    bad_bodies.thread_has_a_pool_that_terminates_its_processes,
    bad_bodies.thread_terminates_a_process,
    bad_bodies.thread_interrupts_a_process,
    bad_bodies.runs_a_program,
)
CHANGES = (
    bad_bodies.moves_elsewhere,
    bad_bodies.changes_the_locale,
    bad_bodies.reads_from_nowhere,
    bad_bodies.takes_the_output_away,
    bad_bodies.stops_collecting,
    bad_bodies.sets_timeouts_for_all,
    bad_bodies.turns_warnings_into_errors,
    bad_bodies.takes_the_executor_away,
    bad_bodies.changes_the_clock,
    bad_bodies.sets_other_handlers,
    bad_bodies.starts_threads_that_stay,
    bad_bodies.turns_the_log_into_trouble,
)
HARMLESS = {
    "forks from coroutines": ASYNC_FORKS,
    "forks from threads": THREAD_FORKS,
    "processes and programs": POOLS,
    "what all share": CHANGES,
}
ENDS = {
    bad_bodies.stops_the_loop: 1,
    bad_bodies.exits_in_a_callback: 6,
    bad_bodies.closes_all_descriptors: 1,
    bad_bodies.dies: -signal.SIGKILL,
    bad_bodies.crashes: -signal.SIGSEGV,
}


class Process:
    """An instance, and all that comes of it: a group of processes."""

    def __init__(self, server: Server, folder: Path, bodies: Sequence[str], slots: Grid) -> None:
        self.log = Log(folder / "log")
        self.errors = folder / f"errors-{len(list(folder.iterdir()))}"
        plan: bad_bodies.Plan = {
            "url": server.url,
            "log": str(self.log.path),
            "bodies": list(bodies),
            "start": slots["first"],
            "every": slots["every"],
            "lease": LEASE,
            "stop_soon": STOP_SOON,
        }
        with self.errors.open("wb") as file:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "tests.processes.bad_bodies", json.dumps(plan)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._popen.pid

    def terminate(self) -> None:
        """Ask it to end."""
        self._popen.send_signal(signal.SIGTERM)

    def end(self) -> int:
        """Ask it to end, and answer its exit status."""
        self.terminate()
        return self.wait_ended(STOP_SOON + 3)

    def wait_ended(self, patience: float = PATIENCE) -> int:
        """Wait for its end, and answer its exit status."""
        return self._popen.wait(patience)

    @property
    def running(self) -> bool:
        """Whether it lives."""
        return self._popen.poll() is None

    def left_over(self) -> bool:
        """Whether a process of it lives."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, 0)
            return True
        return False

    def close(self) -> None:
        """End all of it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait()


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    """Yield a list for processes, which end with the test."""
    made: list[Process] = []
    yield made
    for process in made:
        process.close()


def runs_of(server: Server, name: str) -> list[RunRecord]:
    """The runs of a job, oldest first."""
    scheduler = Scheduler(backend=RedisBackend(redis=server.url))
    return list(reversed(asyncio.run(scheduler.history(name))))


def outcomes(runs: list[RunRecord]) -> list[list[RunStatus]]:
    """How the attempts of runs ended."""
    return [[attempt.status for attempt in run.attempts] for run in runs if run.attempts]


def assert_others_went_on(server: Server, log: Log, until: float) -> None:
    """The good jobs ran up to a moment, each run once."""
    for name in ("good", "thread"):
        runs = outcomes(runs_of(server, name))
        *ended, last = runs
        assert set(map(tuple, ended)) == {(RunStatus.SUCCEEDED,)}, f"{name}: {runs}"
        assert last in ([RunStatus.SUCCEEDED], [RunStatus.RELEASED])
        slots = [entry["slot"] for entry in log.read("start", job=name)]
        assert len(set(slots)) == len(slots)
        assert slots[-1] / 1000 > until - 1.0, f"{name} did not go on"


@pytest.mark.parametrize("bodies", HARMLESS.values(), ids=HARMLESS)
def test_bodies_that_misuse_their_process_harm_nobody(
    valkey9: Server, tmp_path: Path, processes: list[Process], bodies: Sequence[object]
) -> None:
    names = [getattr(body, "__name__", "") for body in bodies]
    processes.append(
        process := Process(valkey9, tmp_path, names, soon(0.7, every=0.15 * len(names)))
    )
    for name in names:
        process.log.wait("start", 2, job=name)

    def settled() -> bool:
        runs = [outcomes(runs_of(valkey9, name)) for name in names]
        return all(of.count([RunStatus.SUCCEEDED]) >= 2 for of in runs)

    wait_for(settled, "end of all runs", tell=process.log.tail)
    ended_at = time.time()
    assert process.end() == 0, process.errors.read_text()
    for name in names:
        *statuses, last = outcomes(runs_of(valkey9, name))
        assert statuses == [[RunStatus.SUCCEEDED]] * len(statuses), name
        # The last one may have begun just as the process was to end.
        assert last in ([RunStatus.SUCCEEDED], [RunStatus.RELEASED])
    assert_others_went_on(valkey9, process.log, ended_at)
    # No child wrote a word of its own, or is still there.
    assert {entry["pid"] for entry in process.log.read()} == {process.pid}
    assert not process.left_over()
    assert process.log.trouble() == []


@pytest.mark.parametrize("body", ENDS, ids=lambda body: body.__name__)
def test_a_body_that_ends_its_process_leaves_its_run_to_others(
    valkey9: Server,
    tmp_path: Path,
    processes: list[Process],
    body: object,
) -> None:
    name = getattr(body, "__name__", "")
    grid = soon(1, every=RARELY)
    processes += [Process(valkey9, tmp_path, [name], grid) for _ in range(2)]
    first = processes[0].log.wait_one("start", job=name)
    second = processes[0].log.wait_one("start", job=name, attempt=2, slot=first["slot"])
    dead, alive = sorted(processes, key=lambda process: process.pid != first["pid"])
    assert dead.wait_ended() == ENDS[body]  # type: ignore[index]
    assert second["pid"] == alive.pid
    started = processes[0].log.wait_one("log", event="scheduler.started", pid=alive.pid)
    since = max(first["at"], started["at"])
    assert second["at"] - since < LEASE + 1 + 0.3  # the last for a busy machine
    processes[0].log.wait("start", 4, job="good", pid=alive.pid)
    assert alive.end() == 0
    attempts = outcomes(runs_of(valkey9, name))[0]
    assert attempts == [RunStatus.INTERRUPTED, RunStatus.SUCCEEDED]
    assert not dead.left_over()


@pytest.mark.parametrize(
    "body",
    [bad_bodies.asks_its_process_to_end, bad_bodies.presses_the_keys],
    ids=lambda body: body.__name__,
)
def test_a_body_that_asks_its_process_to_end_is_heard(
    valkey9: Server, tmp_path: Path, processes: list[Process], body: object
) -> None:
    name = getattr(body, "__name__", "")
    processes.append(process := Process(valkey9, tmp_path, [name], soon(0.7, every=RARELY)))
    assert process.wait_ended() == 0, process.errors.read_text()
    assert process.log.read("main ended")
    assert outcomes(runs_of(valkey9, name)) == [[RunStatus.SUCCEEDED]]
    assert process.log.trouble() == []


def test_a_body_that_holds_the_interpreter_for_longer_than_its_lease_is_fenced(
    valkey9: Server, tmp_path: Path, processes: list[Process]
) -> None:
    name = bad_bodies.holds_the_interpreter.__name__
    grid = soon(1, every=RARELY)
    processes += [Process(valkey9, tmp_path, [name], grid) for _ in range(2)]
    log = processes[0].log
    first = log.wait_one("start", job=name)
    second = log.wait_one("start", job=name, attempt=2)
    held, other = sorted(processes, key=lambda process: process.pid != first["pid"])
    assert second["pid"] == other.pid
    log.wait_one("log", event="run.fenced", pid=held.pid)
    # Both go on.
    for process in processes:
        since = len(log.read("start", job="good", pid=process.pid))
        log.wait("start", since + 1, job="good", pid=process.pid)
    assert [process.end() for process in processes] == [0, 0]
    attempts = outcomes(runs_of(valkey9, name))[0]
    assert attempts == [RunStatus.INTERRUPTED, RunStatus.SUCCEEDED]


def test_a_body_that_blocks_the_loop_does_not_keep_its_process_from_ending(
    valkey9: Server, tmp_path: Path, processes: list[Process]
) -> None:
    name = bad_bodies.blocks_the_loop.__name__
    processes.append(process := Process(valkey9, tmp_path, [name], soon(0.7, every=RARELY)))
    process.log.wait_one("start", job=name)
    told = process.log.wait_one("log", event="loop.blocked")
    assert name in told["text"]
    process.terminate()
    # One signal asks. As nothing follows from it, further ones break in.
    until = time.monotonic() + 5
    while process.running and time.monotonic() < until:
        time.sleep(0.6)
        process.terminate()
    assert not process.running
    assert process.wait_ended() == 0, process.errors.read_text()
    assert process.log.read("main ended")


def test_a_thread_that_a_body_waits_for_does_not_keep_its_process_from_ending(
    valkey9: Server, tmp_path: Path, processes: list[Process]
) -> None:
    name = bad_bodies.waits_for_a_thread_that_does_not_end.__name__
    processes.append(process := Process(valkey9, tmp_path, [name], soon(0.7, every=RARELY)))
    process.log.wait_one("start", job=name)
    assert process.end() == 0, process.errors.read_text()
    assert process.log.read("main ended")
    assert outcomes(runs_of(valkey9, name))[0] == [RunStatus.RELEASED]
