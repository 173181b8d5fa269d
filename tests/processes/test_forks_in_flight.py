"""Forks from listeners and tasks while many runs are ready: the child does nothing of the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.processes.support import PATIENCE, ROOT

if TYPE_CHECKING:
    from tests.support.server import Server

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks, such as Linux"),
]

JOBS, ROUNDS = 12, 5
PROGRAM = """
import asyncio, logging, os, sys
from anarchon import RedisBackend, Scheduler
from anarchon.engine import link

url, forker, jobs, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
parent = os.getpid()

class Tell(logging.Handler):
    def emit(self, record):
        who = "parent" if os.getpid() == parent else "child"
        os.write(1, f"{who} {record.levelname} {record.getMessage()[:200]}\\n".encode())

logging.getLogger("anarchon").addHandler(Tell(logging.WARNING))
logging.getLogger("asyncio").addHandler(Tell(logging.WARNING))
logging.getLogger("anarchon").propagate = logging.getLogger("asyncio").propagate = False

def mine(what):
    if os.getpid() != parent:
        os.write(1, f"child {what}\\n".encode())

asks = link.Link.ask
async def ask(self, call):
    mine("asks the store")
    return await asks(self, call)
link.Link.ask = ask

scheduler = Scheduler(backend=RedisBackend(redis=url), lease=6)
ran, children = [], []
over = asyncio.Event()

async def fork():
    mine("forks")
    child = os.fork()
    if not child:
        await asyncio.sleep(0)
        mine("goes on")
    children.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

async def body(run):
    mine("runs a body")
    if forker == "task" and len(children) < 60:
        await asyncio.gather(fork(), asyncio.sleep(0))
    if forker == "left task" and len(children) < 60:
        asyncio.create_task(fork())
        await asyncio.sleep(0.01)
    mine("takes a step of a body")
    ran.append((run.job, run.slot))
    if len(ran) >= jobs * rounds and len(children) >= 20:
        over.set()

for number in range(jobs):
    scheduler.add_job(body, 0.5, name=f"job-{number}")

if forker == "listener":
    @scheduler.on("won", "started", "succeeded")
    async def listener(event):
        await asyncio.sleep((0, 0, 0.001)[len(children) % 3])
        await fork()

if forker == "callback":
    @scheduler.on("won")
    def listener(event):
        pass

    async def of_the_application():
        while not over.is_set():
            await asyncio.sleep(0.003)
            asyncio.get_running_loop().call_soon(forks)

    def forks():
        child = os.fork()
        if child:
            children.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

async def main():
    async with scheduler:
        if forker == "callback":
            task = asyncio.create_task(of_the_application())
        async with asyncio.timeout(15):
            await over.wait()
        health = scheduler.health()
    # Everything was run once, and every child ended in its place.
    print(health.running, health.store, len(ran) == len(set(ran)), set(children))

asyncio.run(main())
"""


@pytest.mark.parametrize("forker", ["listener", "task", "left task", "callback"])
def test_a_child_that_is_forked_while_much_is_ready_does_nothing_of_it(
    redis7: Server, forker: str
) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, redis7.url, forker, f"{JOBS}", f"{ROUNDS}"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr[-2000:]
    # Neither a word of a child's, nor a warning of the parent's.
    assert ended.stdout == "True True True {70}\n"
    assert set(ended.stderr.splitlines()) == {
        (
            "anarchon: a process that was forked inside a scheduler's event loop may not await"
            " anything there; it is ended. Use subprocess, or end the child with os._exit()"
        )
    }
