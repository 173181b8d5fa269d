"""Version 1 gives way to version 2, one process after the other, while jobs run."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.applications.deployed import LEASE, LONG, VERSIONS
from tests.applications.support import Journal
from tests.processes.support import PATIENCE, ROOT, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.processes.plans import Entry
    from tests.support.server import Server

pytestmark = pytest.mark.processes

MARGIN = 0.25
"""Seconds; what is due so shortly before an instance is told to stop need not be asked for."""
SETTLING = 2.0
"""Seconds in which a started instance registers its hundred jobs, also on a busy machine."""
PULL = LEASE + 0.5
"""Seconds around an instance's end in which what it held, or was about to hold, moves."""

Slots = dict[tuple[str, int], list["Entry"]]


@dataclass
class Deployed:
    """A process of a version, with what the judge must know of its life."""

    version: str
    process: subprocess.Popen[bytes]
    errors: Path
    started_at: float = 0.0
    ended_at: float = 0.0
    killed: bool = False


@dataclass
class Deploy:
    """All processes of a deploy, and what their jobs wrote down."""

    server: Server
    folder: Path
    all: list[Deployed] = field(default_factory=list[Deployed])

    @property
    def log(self) -> Journal:
        """What the jobs wrote down."""
        return Journal(self.folder / "log")

    def start(self, version: str) -> Deployed:
        """Start an instance and wait until its scheduler has started."""
        errors = self.folder / f"errors-{len(self.all)}"
        with errors.open("wb") as file:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.applications.deployed"),
                    *(version, self.server.url, str(self.log.path)),
                ],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        made = Deployed(version, process, errors)
        self.all.append(made)
        made.started_at = self.log.wait_one("log", event="scheduler.started", pid=process.pid)["at"]
        return made

    def end(self, instance: Deployed, number: signal.Signals = signal.SIGTERM) -> None:
        """Tell an instance to end, or kill it, and wait until it has ended."""
        instance.killed = number is signal.SIGKILL
        instance.ended_at = time.time()
        instance.process.send_signal(number)
        status = instance.process.wait(10)
        assert status == (-9 if instance.killed else 0), instance.errors.read_text()
        assert instance.errors.read_text() == ""

    def wait_busy(self, jobs: str, among: list[Deployed]) -> Deployed:
        """Wait until one of these begins a run of such a job, and answer which."""
        since = time.time()

        def look() -> Deployed | None:
            begun = {
                entry["pid"]
                for entry in self.log.read("start")
                if entry["at"] > since and entry["job"].startswith(jobs)
            }
            return next((each for each in among if each.process.pid in begun), None)

        return wait_for(look, f"run of {jobs}", 2 * PATIENCE, tell=self.log.tail)

    def wait_seconds(self, seconds: float) -> None:
        """Wait until jobs have run for so long from now on."""
        until = (time.time() + seconds) * 1000
        wait_for(
            lambda: any(entry["slot"] > until for entry in self.log.read("start")),
            "later slots",
            tell=self.log.tail,
        )

    def close(self) -> None:
        """End what is left."""
        for instance in self.all:
            if instance.process.poll() is None:
                instance.process.kill()
                instance.process.wait()


@pytest.fixture
def deploy(valkey9: Server, tmp_path: Path) -> Iterator[Deploy]:
    made = Deploy(valkey9, tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    "count", [3, pytest.param(4, marks=pytest.mark.exhaustive)], ids=lambda n: f"{n} instances"
)
def test_rolling_deploy_loses_nothing_and_doubles_nothing(deploy: Deploy, count: int) -> None:
    former = [deploy.start("1") for _ in range(count)]
    deploy.wait_seconds(1.1)
    later: list[Deployed] = []
    for number in range(count):
        later.append(deploy.start("2"))
        busy = deploy.wait_busy("thread-" if number == 2 else "long-", former)
        # One does not end when told to, and its process manager loses patience.
        deploy.end(busy, signal.SIGKILL if number == 1 else signal.SIGTERM)
        former.remove(busy)
    deploy.wait_seconds(LEASE + 1)
    for new in later:
        deploy.end(new)

    log = deploy.log
    starts = log.read("start")
    rate = len(starts) / (starts[-1]["at"] - starts[0]["at"])
    print(f"runs a second: {rate:.0f}")  # noqa: T201 shown with -s
    assert rate > 25
    assert_no_attempt_twice(deploy)
    started = by_slot(deploy)
    due = list(promised(deploy))
    assert len(due) > 100
    assert [slot for slot in due if slot not in started] == []
    for name in LONG:
        assert_never_two_at_once(deploy, name)
    assert {e["job"] for e in starts} == VERSIONS["1"].keys() | VERSIONS["2"].keys()
    assert {e["pid"] for e in starts if e["job"].startswith("removed-")} <= pids(deploy, "1")
    assert {e["pid"] for e in starts if e["job"].startswith("added-")} <= pids(deploy, "2")
    assert log.read("cut short"), "no run was handed back"
    assert trouble(deploy) == []


def pids(deploy: Deploy, version: str) -> set[int]:
    return {each.process.pid for each in deploy.all if each.version == version}


def trouble(deploy: Deploy) -> list[str]:
    """What is wrong whatever the machine does; a busy one may let the store answer late."""
    return [e["text"] for e in deploy.log.read("log") if e["level"] in {"ERROR", "CRITICAL"}]


def promised(deploy: Deploy) -> Iterator[tuple[str, int]]:
    """The slots of each version's schedules while at least one of its instances was up.

    Those of the long jobs are left to `assert_never_two_at_once`: a slot may wait for longer than
    it is in time.
    """
    for version, jobs in VERSIONS.items():
        instances = [each for each in deploy.all if each.version == version]
        since = (min(each.started_at for each in instances) + SETTLING) * 1000
        until = (max(each.ended_at for each in instances) - MARGIN) * 1000
        for name, plan in jobs.items():
            if plan.body == "quick":
                first = plan.first + (int(since) - plan.first) // plan.every * plan.every
                slots = range(first + plan.every, int(until), plan.every)
                yield from ((name, slot) for slot in slots)


def by_slot(deploy: Deploy) -> Slots:
    found: Slots = defaultdict(list)
    for start in deploy.log.read("start"):
        found[start["job"], start["slot"]].append(start)
    return found


def assert_no_attempt_twice(deploy: Deploy) -> None:
    """A slot is started again only after its holder was killed, or handed the run back."""
    killed = {each.process.pid for each in deploy.all if each.killed}
    ends = {(e["job"], e["slot"], e["attempt"]) for e in deploy.log.read("end")}
    cut = {(e["job"], e["slot"], e["attempt"]) for e in deploy.log.read("cut short")}
    last_end = max(each.ended_at for each in deploy.all)
    again = 0
    for (job, slot), starts in by_slot(deploy).items():
        numbers = [start["attempt"] for start in starts]
        assert numbers == sorted(set(numbers)), starts
        over = starts[-1]["at"] > last_end - PULL  # nobody is left to take it
        for start in starts:
            attempt = (job, slot, start["attempt"])
            is_last = start["attempt"] == numbers[-1]
            assert is_last or attempt in cut or start["pid"] in killed, starts
            assert not is_last or attempt in ends or (attempt in cut and over), starts
        if numbers != list(range(1, len(numbers) + 1)):
            # Won, and given back or left before its body began.
            assert near_an_end(deploy, slot / 1000), starts
        again += numbers[-1] > 1
    print(f"runs taken over: {again}")  # noqa: T201 shown with -s
    assert again


def near_an_end(deploy: Deploy, at: float) -> bool:
    return any(-PULL < at - each.ended_at < PULL for each in deploy.all)


def assert_never_two_at_once(deploy: Deploy, job: str) -> None:
    """Under `wait` a body begins when the one before has ended, was cut short, or was killed."""
    live: dict[int, Entry] = {}
    killed = {each.process.pid: each.ended_at for each in deploy.all if each.killed}
    for entry in deploy.log.read(job=job):
        if entry["what"] == "start":
            others = [pid for pid in live if killed.get(pid, entry["at"] + 1) > entry["at"]]
            assert others == [], (entry, live)
            live[entry["pid"]] = entry
        elif entry["what"] in {"end", "cut short"}:
            assert live.pop(entry["pid"])["slot"] == entry["slot"]
