"""An instance with bodies that misuse their process: ``python -m tests.processes.bad_bodies``.

Its plan says which; every body is a job of its own, beside two good ones.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import inspect
import json
import locale
import logging
import multiprocessing
import os
import resource
import signal
import socket
import sys
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any, TypedDict, cast

from anarchon import RedisBackend, Run, Scheduler
from tests.processes.instance import Recorder
from tests.processes.plans import GridSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

FORK = multiprocessing.get_context("fork")
GOOD_EVERY = 200
"""Milliseconds."""


class Plan(TypedDict):
    """`bodies` are names of functions of this module.

    Slots of bad bodies begin at `start` (milliseconds) and come every `every` thereafter.
    `stop_soon` bounds the drain, in seconds.
    """

    url: str
    log: str
    bodies: list[str]
    start: int
    every: int
    lease: float
    stop_soon: float


# -- children ------------------------------------------------------------------------------------


def _reaped(child: int) -> int:
    """Wait for a child's end, and answer its exit status."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("the child did not end")


async def _reaped_meanwhile(child: int, status: int) -> None:
    assert await asyncio.to_thread(_reaped, child) == status


async def child_returns() -> None:
    if child := os.fork():
        await _reaped_meanwhile(child, 0)


async def child_exits() -> None:
    if child := os.fork():
        await _reaped_meanwhile(child, 3)
    else:
        sys.exit(3)


async def child_exits_at_once() -> None:
    if child := os.fork():
        await _reaped_meanwhile(child, 4)
    else:
        os._exit(4)


async def child_raises() -> None:
    if child := os.fork():
        await _reaped_meanwhile(child, 1)
    else:
        raise ValueError("in a child")


async def child_awaits() -> None:
    child = os.fork()
    await asyncio.sleep(0.05)
    assert child, "the child goes on"
    assert await asyncio.to_thread(_reaped, child) != 0


def thread_child_returns() -> None:
    if child := os.fork():
        assert _reaped(child) == 0


def thread_child_exits() -> None:
    if child := os.fork():
        assert _reaped(child) == 3
    else:
        sys.exit(3)


def thread_child_exits_at_once() -> None:
    if child := os.fork():
        assert _reaped(child) == 4
    else:
        os._exit(4)


def thread_child_raises() -> None:
    if child := os.fork():
        assert _reaped(child) == 1
    else:
        raise ValueError("in a child")


def _square(number: int) -> int:
    return number * number


async def forks_a_process() -> None:
    process = FORK.Process(target=_square, args=(3,))
    process.start()
    await asyncio.to_thread(process.join)
    assert process.exitcode == 0


async def has_a_pool_of_processes() -> None:
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(2, mp_context=FORK) as pool:
        assert await loop.run_in_executor(pool, _square, 3) == 9


def thread_has_a_pool_of_processes() -> None:
    with ProcessPoolExecutor(2, mp_context=FORK) as pool:
        assert list(pool.map(_square, range(3))) == [0, 1, 4]


async def has_a_pool_that_terminates_its_processes() -> None:
    with FORK.Pool(2) as pool:
        assert pool.map(_square, range(3)) == [0, 1, 4]


def thread_has_a_pool_that_terminates_its_processes() -> None:
    with FORK.Pool(2) as pool:
        assert pool.map(_square, range(3)) == [0, 1, 4]


def _ended_by(number: signal.Signals) -> int | None:
    """Start a process that sleeps, send it a signal, and answer its exit code."""
    started = FORK.Event()

    def sleep() -> None:
        started.set()
        time.sleep(60)

    process = FORK.Process(target=sleep)
    process.start()
    assert started.wait(5)
    os.kill(cast("int", process.pid), number)
    process.join(5)
    return process.exitcode


def thread_terminates_a_process() -> None:
    assert _ended_by(signal.SIGTERM) == -signal.SIGTERM


def thread_interrupts_a_process() -> None:
    assert _ended_by(signal.SIGINT) == 1


async def runs_a_program() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "raise SystemExit(7)")
    assert await process.wait() == 7


# -- what belongs to the whole process -----------------------------------------------------------


async def moves_elsewhere() -> None:
    os.chdir("/")
    os.umask(0o777)
    os.environ.clear()


async def changes_the_locale() -> None:
    locale.setlocale(locale.LC_ALL, "C")


async def reads_from_nowhere() -> None:
    assert sys.stdin.read() == ""


async def takes_the_output_away() -> None:
    sys.stdout = sys.stderr = cast("Any", None)


async def stops_collecting() -> None:
    gc.disable()
    gc.freeze()


async def sets_timeouts_for_all() -> None:
    socket.setdefaulttimeout(0.001)


async def turns_warnings_into_errors() -> None:
    warnings.simplefilter("error")


async def takes_the_executor_away() -> None:
    await asyncio.get_running_loop().shutdown_default_executor()


async def changes_the_clock() -> None:
    for name in ("time", "time_ns"):
        setattr(time, name, lambda: 0)


async def sets_other_handlers() -> None:
    for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, lambda _number, _frame: None)
    signal.setitimer(signal.ITIMER_REAL, 0.01)


async def switches_threads_rarely() -> None:
    sys.setswitchinterval(0.3)


def starts_threads_that_stay() -> None:
    for _ in range(50):
        threading.Thread(target=threading.Event().wait).start()


def raises_in_its_own_thread_later() -> None:
    thread = ctypes.c_ulong(threading.get_ident())
    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(KeyboardInterrupt))
    while True:
        time.sleep(0.01)


def turns_the_log_into_trouble() -> None:
    logging.raiseExceptions = True
    logging.getLogger("anarchon").addHandler(_Fails())


class _Fails(logging.Handler):
    def handle(self, record: logging.LogRecord) -> bool:
        raise OSError("no space left on device")


# -- what ends the process, or the run -----------------------------------------------------------


async def asks_its_process_to_end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


async def presses_the_keys() -> None:
    signal.raise_signal(signal.SIGINT)


async def stops_the_loop() -> None:
    asyncio.get_running_loop().stop()


async def closes_all_descriptors() -> None:
    os.closerange(3, 1000)


async def exits_in_a_callback() -> None:
    asyncio.get_running_loop().call_soon(sys.exit, 6)
    await asyncio.sleep(1)


async def dies() -> None:
    signal.raise_signal(signal.SIGKILL)


async def crashes() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.string_at(0)


def holds_the_interpreter() -> None:
    """Sleep for longer than the lease without letting any other thread run."""
    ctypes.PyDLL(None).usleep(1_200_000)


async def blocks_the_loop() -> None:
    time.sleep(60)  # noqa: ASYNC251 - the fault under test


async def waits_for_a_thread_that_does_not_end() -> None:
    await asyncio.to_thread(time.sleep, 60)


# -- the instance ----------------------------------------------------------------------------------


def main() -> None:
    """Run as planned."""
    plan = cast("Plan", json.loads(sys.argv[1]))
    recorder = Recorder(plan["log"], None)
    logger = logging.getLogger("anarchon")
    logger.addHandler(recorder)
    logger.setLevel(logging.INFO)
    logging.getLogger("asyncio").addHandler(recorder)
    scheduler = Scheduler(
        backend=RedisBackend(redis=plan["url"]),
        lease=plan["lease"],
        shutdown_timeout=plan["stop_soon"],
    )

    async def good(run: Run) -> None:
        recorder.write("start", job=run.job, slot=run.slot, attempt=run.attempt)
        await asyncio.sleep(0.02)

    def good_in_a_thread(run: Run) -> None:
        recorder.write("start", job=run.job, slot=run.slot, attempt=run.attempt)

    often = GridSchedule({"first": plan["start"], "every": GOOD_EVERY})
    scheduler.add_job(good, often, name="good", max_late=1)
    scheduler.add_job(good_in_a_thread, often, name="thread", max_late=1)
    for number, name in enumerate(plan["bodies"]):
        # One after the other: Python itself may hang where several threads fork at once.
        first = plan["start"] + number * plan["every"] // len(plan["bodies"])
        rarely = GridSchedule({"first": first, "every": plan["every"]})
        body = globals()[name]
        scheduler.add_job(noting(body, recorder), rarely, name=name, max_attempts=2)
    scheduler.run()
    recorder.write("main ended")


def noting(body: Callable[[], object], recorder: Recorder) -> Callable[[Run], object]:
    """The body as a job that writes down its starts; it behaves at a second attempt."""
    if not inspect.iscoroutinefunction(body):

        def plain(run: Run) -> object:
            recorder.write("start", job=run.job, slot=run.slot, attempt=run.attempt)
            return body() if run.attempt == 1 else None

        return plain

    async def function(run: Run) -> None:
        recorder.write("start", job=run.job, slot=run.slot, attempt=run.attempt)
        if run.attempt == 1:
            await cast("Coroutine[Any, Any, None]", body())

    return function


if __name__ == "__main__":
    main()
