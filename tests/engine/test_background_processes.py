"""Schedulers in the background of whole processes: ones that end without `stop`, ones that fork."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from anarchon import RedisBackend, RunRecord, Scheduler
from tests.processes.support import PATIENCE, ROOT

if TYPE_CHECKING:
    from tests.support.server import Server

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks, such as Linux"),
]

BEGIN = """
import asyncio, logging, os, sys, threading, time
from datetime import UTC, datetime
from anarchon import MemoryBackend, RedisBackend, Scheduler, SchedulerStateError

logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
begun = threading.Event()
NEVER = "0 0 29 2 *"

def scheduler_of(backend, job):
    made = Scheduler(backend=backend, shutdown_timeout=0.3)
    made.add_job(job, NEVER, name="job", max_attempts=2, overlap="allow")
    return made
"""
"""What every program begins with."""

AT_WORK = """
async def polite():
    begun.set()
    await asyncio.sleep(60)

async def short():
    begun.set()
    await asyncio.sleep(0.1)

def stubborn():
    begun.set()
    time.sleep(60)

background = scheduler_of(RedisBackend(redis=sys.argv[1]), globals()[sys.argv[2]]).in_background()
background.start()
try:
    background.run_now("job", timeout=0.02)
except TimeoutError:
    assert begun.wait(20)
"""
"""A program that is about to end, while a job is at work."""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", BEGIN + program, *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def history(server: Server) -> tuple[RunRecord, ...]:
    """What the store knows of the job."""
    return asyncio.run(Scheduler(backend=RedisBackend(redis=server.url)).history("job"))


# -- ending without a stop -------------------------------------------------------------------------


def test_a_process_that_just_ends_hands_its_run_back(redis7: Server) -> None:
    ended = run(AT_WORK, redis7.url, "polite")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    (record,) = history(redis7)
    assert [attempt.status for attempt in record.attempts] == ["released"]
    assert redis7.command("EXISTS", "cron:instances") == 0


def test_a_process_that_just_ends_lets_a_short_run_end(redis7: Server) -> None:
    ended = run(AT_WORK, redis7.url, "short")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    (record,) = history(redis7)
    assert record.status == "succeeded"


def test_a_process_that_just_ends_leaves_a_thread_that_does_not(redis7: Server) -> None:
    begun = time.monotonic()
    ended = run(AT_WORK, redis7.url, "stubborn")
    assert time.monotonic() - begun < 15
    assert ended.returncode == 0
    assert "is abandoned" in ended.stderr
    assert "Traceback" not in ended.stderr
    (record,) = history(redis7)
    assert record.status == "running"  # until its lease is over
    assert redis7.command("EXISTS", "cron:instances") == 0


@pytest.mark.parametrize(
    ("last", "status"), [("sys.exit(3)", 3), ("raise ValueError('its own')", 1), ("", 0)]
)
def test_the_exit_status_stays_the_programs_own(redis7: Server, last: str, status: int) -> None:
    ended = run(f"{AT_WORK}\n{last}", redis7.url, "short")
    assert ended.returncode == status
    assert history(redis7)[0].status == "succeeded"


def test_two_of_them_are_stopped_at_the_exit(redis7: Server) -> None:
    program = """
for _ in range(2):
    scheduler_of(RedisBackend(redis=sys.argv[1]), lambda: 7).in_background().start()
"""
    ended = run(program, redis7.url)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert redis7.command("EXISTS", "cron:instances") == 0


# -- forks -----------------------------------------------------------------------------------------

FORKED = """
scheduler = scheduler_of(MemoryBackend(), lambda: 7)
background = scheduler.in_background()
background.start()
parent = os.getpid()
calls = {
    "start": background.start,
    "run_now": lambda: background.run_now("job"),
    "history": lambda: background.history("job"),
    "why": lambda: background.why("job", datetime(2026, 1, 5, tzinfo=UTC)),
    "state": lambda: background.state("job"),
    "instances": background.instances,
    "check": background.check,
    "pause": lambda: background.pause("job"),
    "resume": lambda: background.resume("job"),
    "cancel": lambda: background.cancel("job"),
    "forget": lambda: background.forget("job"),
    "start of the scheduler": lambda: asyncio.run(scheduler.start()),
    "run_now of the scheduler": lambda: asyncio.run(scheduler.run_now("job")),
}
child = os.fork()
if child == 0:
    for name, call in calls.items():
        begun = time.monotonic()
        try:
            call()
        except SchedulerStateError as error:
            assert f"({os.getpid()}) was forked from the one ({parent})" in str(error), error
            assert "in each worker" in str(error), error
            assert time.monotonic() - begun < 1, name
            print(name, flush=True)
    assert not background.health().running
    assert not scheduler.health().running
    background.stop()
    asyncio.run(scheduler.stop())
    try:
        background.history("job")  # a stop has changed nothing
    except SchedulerStateError as error:
        assert "was forked from" in str(error), error
        sys.exit(5)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), background.run_now("job"), background.health().running)
"""


def test_in_a_forked_child_each_method_says_so_and_the_child_ends() -> None:
    ended = run(FORKED)
    assert (ended.returncode, ended.stderr) == (0, "")
    *refused, last = ended.stdout.splitlines()
    assert len(refused) == 13
    assert last == "5 7 True"


def test_the_end_of_a_child_leaves_its_parents_scheduler_alone(redis7: Server) -> None:
    program = """
background = scheduler_of(RedisBackend(redis=sys.argv[1]), lambda: 7).in_background()
background.start()
background.run_now("job")
for how in (background.stop, lambda: None):
    child = os.fork()
    if child == 0:
        how()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
print(background.run_now("job"), len(background.instances()), len(background.history("job")))
"""
    ended = run(program, redis7.url)
    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", "7 1 2\n")


def test_each_worker_starts_its_own_after_the_fork(redis7: Server) -> None:
    program = """
background = scheduler_of(RedisBackend(redis=sys.argv[1]), os.getpid).in_background()
children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        with background:
            assert background.run_now("job") == os.getpid()
        sys.exit(0)
    children.append(child)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
with background:
    assert background.run_now("job") == os.getpid()
    print(len(background.history("job")))
"""
    ended = run(program, redis7.url)
    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", "3\n")


def test_a_child_of_one_that_was_stopped_may_start_anew() -> None:
    program = """
background = scheduler_of(MemoryBackend(), lambda: 7).in_background()
with background:
    background.run_now("job")
child = os.fork()
if child == 0:
    with background:
        sys.exit(background.run_now("job"))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    ended = run(program)
    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", "7\n")
