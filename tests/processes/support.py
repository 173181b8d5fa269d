"""A fleet: operating-system processes that share a server, and a log that judges them.

Every process writes what its jobs do to a file of the test's own; the product's books are looked
at, but never asked who ran.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from anarchon import JobSettings, RedisBackend, RunRecord, Scheduler
from tests.store.books import pairs, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Self, Unpack

    from tests.processes.plans import Body, Entry, Grid, InstancePlan, JobPlan
    from tests.support.server import Server

ROOT = Path(__file__).parents[2]
PATIENCE = 20.0
"""Seconds after which a test gives up waiting; nothing that is tested takes as long."""
LOOK_AGAIN = 0.01

T = TypeVar("T")


def wait_for(
    look: Callable[[], T | None],
    what: str,
    patience: float = PATIENCE,
    *,
    tell: Callable[[], str] = str,
) -> T:
    """Look until there is something (that counts as true); fails the test after `patience`.

    `tell` adds to the failure what there was instead.
    """
    until = time.monotonic() + patience
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > until:
            raise AssertionError(f"no {what} within {patience:g} s\n{tell()}")
        time.sleep(LOOK_AGAIN)


def report(what: str, seconds: float) -> None:
    """Print a measured time, for whoever runs the test with -s."""
    print(f"{what}: {seconds:.3f} s")  # noqa: T201 shown with -s, and when a test fails


def now_ms() -> int:
    """The time, as the servers on this machine have it."""
    return time.time_ns() // 1_000_000


def soon(seconds: float = 0.4, *, every: float = 600) -> Grid:
    """A first slot so many seconds from now, and then one every so often."""
    return {"first": now_ms() + round(seconds * 1000), "every": round(every * 1000)}


def at(seconds: float = 0.4, *, every: float = 6) -> Grid:
    """A first slot so many seconds after a fleet was ready to start, and then one every so often.

    Instances that start too slowly for the first slot take the next: slower, not wrong.
    """
    return {"first": round(seconds * 1000), "every": round(every * 1000)}


def job(
    schedule: str | Grid,
    body: Body = "quick",
    seconds: Iterable[float] = (0.0,),
    **settings: Unpack[JobSettings],
) -> JobPlan:
    """A job of a fleet's instances."""
    return {"schedule": schedule, "body": body, "seconds": list(seconds), "settings": settings}


@dataclass(frozen=True)
class Log:
    """The log of a fleet."""

    path: Path

    def read(self, what: str = "", **facts: object) -> list[Entry]:
        """The entries of a kind, in the order in which they were written."""
        text = self.path.read_text() if self.path.exists() else ""
        entries: list[Entry] = [json.loads(line) for line in text.splitlines()]
        return [
            entry
            for entry in entries
            if (not what or entry["what"] == what) and facts.items() <= entry.items()
        ]

    def wait(self, what: str, count: int = 1, /, **facts: object) -> list[Entry]:
        """Wait until there are `count` such entries, and answer them."""

        def look() -> list[Entry] | None:
            found = self.read(what, **facts)
            return found if len(found) >= count else None

        return wait_for(look, f"{count} x {what} {facts}", tell=self.tail)

    def wait_one(self, what: str, **facts: object) -> Entry:
        """Wait for such an entry."""
        return self.wait(what, 1, **facts)[0]

    def tail(self) -> str:
        """The last entries, for a failure's text."""
        return "\n".join(str(entry) for entry in self.read()[-40:])

    def said(self, event: str, pid: int | None = None) -> list[Entry]:
        """What the library logged under an event name."""
        facts = {} if pid is None else {"pid": pid}
        return self.read("log", event=event, **facts)

    def trouble(self) -> list[str]:
        """What the library logged as a warning or worse."""
        return [e["text"] for e in self.read("log") if e["level"] not in {"INFO", "DEBUG"}]


class Instance:
    """One process."""

    def __init__(self, plan: InstancePlan, errors: Path) -> None:
        self.log = Log(Path(plan["log"]))
        self._errors = errors
        with errors.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.processes.instance", json.dumps(plan)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def wait_ready(self) -> Entry:
        """Wait until it would start its scheduler, if it may."""
        return self._wait("ready")

    def wait_started(self) -> Entry:
        """Wait until its scheduler has started."""
        return self._wait("log", event="scheduler.started")

    def wait_said(self, event: str) -> Entry:
        """Wait until its library logs an event."""
        return self._wait("log", event=event)

    def _wait(self, what: str, **facts: object) -> Entry:
        def look() -> Entry | None:
            found = self.log.read(what, pid=self.pid, **facts)
            assert found or self.running, f"the process ended: {self.errors()}"
            return found[0] if found else None

        return wait_for(look, f"{what} {facts} of {self.pid}")

    def send(self, number: signal.Signals) -> float:
        """Send a signal; answers when."""
        at = time.time()
        self._process.send_signal(number)
        return at

    def kill(self) -> float:
        """End it at once (SIGKILL); answers when."""
        at = self.send(signal.SIGKILL)
        self._process.wait()
        return at

    def pause(self) -> float:
        """Suspend it; answers when."""
        return self.send(signal.SIGSTOP)

    def resume(self) -> float:
        """Let it go on; answers when."""
        return self.send(signal.SIGCONT)

    def wait_ended(self, patience: float = PATIENCE) -> int:
        """Wait until it ends by itself, and answer its exit status."""
        return self._process.wait(patience)

    @property
    def running(self) -> bool:
        """Whether it lives."""
        return self._process.poll() is None

    def errors(self) -> str:
        """What it wrote to its standard streams."""
        return self._errors.read_text(errors="replace")

    def close(self) -> None:
        """End it, whatever state it is in."""
        if self.running:
            self.kill()


class Fleet:
    """Processes of one plan on one server; all ended when it is left."""

    def __init__(
        self, server: Server, folder: Path, jobs: dict[str, JobPlan], *, prefix: str = "cron:"
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.server = server
        self.prefix = prefix
        self.log = Log(folder / "log")
        self._folder = folder
        self._instances: list[Instance] = []
        self.plan: InstancePlan = {
            "url": server.url,
            "log": str(self.log.path),
            "go": str(folder / "go"),
            "prefix": prefix,
            "lease": 1.0,
            "heartbeat": None,
            "shutdown_timeout": 10.0,
            "jobs": jobs,
            "die_before_body": None,
            "forget_to_stop": None,
        }

    @property
    def lease(self) -> float:
        """The lease of its instances, in seconds."""
        return self.plan["lease"]

    def start(self, count: int = 1) -> list[Instance]:
        """Start so many processes, and wait until their schedulers have started."""
        made = [self.launch() for _ in range(count)]
        self.go(made)
        for instance in made:
            instance.wait_started()
        return made

    def go(self, ready: Iterable[Instance]) -> int:
        """Let the fleet start once these are ready; answers the time from which grids count."""
        for instance in ready:
            instance.wait_ready()
        file = Path(self.plan["go"])
        if not file.exists():
            written = file.with_suffix(".new")
            written.write_text(str(now_ms()))
            written.rename(file)
        return int(file.read_text())

    def launch(self) -> Instance:
        """Start a process, without waiting for it."""
        errors = self._folder / f"errors-{len(self._instances)}"
        instance = Instance(self.plan, errors)
        self._instances.append(instance)
        return instance

    def of_pid(self, pid: int) -> Instance:
        """The process of that id."""
        return next(instance for instance in self._instances if instance.pid == pid)

    def history(self, name: str) -> tuple[RunRecord, ...]:
        """What the store tells of a job."""
        backend = RedisBackend(redis=self.server.url, prefix=self.prefix)
        return asyncio.run(Scheduler(backend=backend).history(name))

    def run_of(self, start: Entry) -> RunRecord:
        """What the store tells of the run that an entry belongs to."""
        return next(r for r in self.history(start["job"]) if r.id == str(start["slot"]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for instance in self._instances:
            instance.close()


def letters(server: Server, name: str, prefix: str = "cron:") -> dict[str, str]:
    """The state of each run of a job, as the letter that the store keeps."""
    state = pairs(server.command("HGETALL", f"{{{prefix}{name}}}:state"))
    return {run: record[0] for run, record in state.items() if run[0] in "0123456789m"}


def wait_settled(
    server: Server, name: str, *, slot: int | None = None, letter: str = "D", prefix: str = "cron:"
) -> None:
    """Wait until a run of a job (None: its only runs) is in a state in the store."""

    def look() -> bool:
        found = letters(server, name, prefix)
        wanted = found.get(str(slot)) if slot is not None else "".join(set(found.values()))
        return wanted == letter

    wait_for(look, f"run of {name} that is {letter}")


def open_runs(server: Server, name: str, prefix: str = "cron:") -> set[str]:
    """The runs of a job that the store takes to be open."""
    return set(texts(server.command("SMEMBERS", f"{{{prefix}{name}}}:active")))


def assert_each_attempt_once(log: Log, *, after_a_kill: bool = False) -> None:
    """No attempt was started twice, none was left out, and fences grew from one to the next.

    Whoever was killed may have won an attempt and not have written that it began.
    """
    fences: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for entry in log.read("start"):
        run = (entry["job"], entry["slot"])
        fences.setdefault(run, []).append((entry["attempt"], entry["fence"]))
    for run, attempts in fences.items():
        numbers = [number for number, _ in attempts]
        known = sorted(set(numbers)) if after_a_kill else list(range(1, len(attempts) + 1))
        assert numbers == known, run
        assert sorted(attempts, key=lambda each: each[1]) == attempts, run
