"""Applications under their servers: started as a user would, judged by what their jobs write down.

The jobs of the examples append to a journal; `Log` reads it. The product's books are never asked
who ran what.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from tests.processes.support import PATIENCE, ROOT, Log, report, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self, Unpack

    from tests.processes.plans import Entry
    from tests.support.server import Server

BIN = Path(sys.executable).parent
EXAMPLES = ROOT / "examples"
STARTED = re.compile(r"started as [^:\s]+:(\d+):")
KEYS_PRESSED = re.compile(
    r"(?:Exception ignored in: .*\n)?Traceback \(most recent call last\):\n"
    r"(?:[ ].*\n|\n)*KeyboardInterrupt:? ?\n"
)
TROUBLE = re.compile(r"(WARNING|ERROR|CRITICAL):(anarchon|asyncio)|Traceback|never awaited")
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")
LEASE = 1.0
"""Seconds; that of every application here, unless a test says otherwise."""


@dataclass(frozen=True)
class Answer:
    """What an application answered to a request."""

    status: int
    body: Any


class Journal(Log):
    """A log that is read while it is written, each line once."""

    _known: ClassVar[dict[Path, tuple[int, list[Entry]]]] = {}

    def read(self, what: str = "", **facts: object) -> list[Entry]:
        """The entries of a kind that are written to their end."""
        wanted = facts if not what else {"what": what, **facts}
        return [entry for entry in self._entries() if wanted.items() <= entry.items()]

    def _entries(self) -> list[Entry]:
        position, entries = self._known.get(self.path, (0, []))
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(position)
                written = file.read()
            whole = written[: written.rfind(b"\n") + 1]
            entries += [json.loads(line) for line in whole.splitlines()]
            self._known[self.path] = position + len(whole), entries
        return entries

    def tail(self) -> str:
        """The last entries, and what the applications of this folder wrote at last."""
        outputs = sorted(self.path.parent.glob("output-*"))
        said = [file.read_text(errors="replace")[-4000:] for file in outputs]
        return "\n".join([super().tail(), *said])


class Options(TypedDict, total=False):
    """How an application is started.

    `cwd` is the folder to start it in, `log` what its jobs write, `host` the name of the store's
    host; the longer one of its jobs takes so many `seconds`.
    """

    cwd: Path
    log: Journal
    host: str
    seconds: float
    shutdown_timeout: float


class Application:
    """A command, with all processes that it starts; none of them is left when it is left.

    It has a process group of its own, in which those that it starts stay.
    """

    def __init__(
        self, server: Server, folder: Path, command: Sequence[str], **options: Unpack[Options]
    ) -> None:
        self.log = options.get("log") or Journal(folder / "journal.log")
        self._output = folder / f"output-{time.monotonic_ns()}"
        self._port = 0
        settings = {
            "REDIS_URL": server.url.replace("127.0.0.1", options.get("host", "127.0.0.1")),
            "LEASE": str(LEASE),
            "JOURNAL": str(self.log.path),
            "DATABASE": str(self.log.path),
            "WORK_SECONDS": str(options.get("seconds", 0.1)),
            "SHUTDOWN_TIMEOUT": str(options.get("shutdown_timeout", 10)),
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONWARNINGS": "",
        }
        with self._output.open("ab") as file:
            self._process = subprocess.Popen(
                command,
                cwd=options.get("cwd", ROOT),
                env=os.environ | settings,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process that was started, and the id of the group."""
        return self._process.pid

    def output(self) -> str:
        """What all its processes wrote to their standard streams."""
        return self._output.read_text(errors="replace")

    def wait(self, look: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
        """Wait for something, as long as the first process lives."""

        def check() -> Any:
            found = look()
            assert found or self._process.poll() is None, f"it ended:\n{self.output()}"
            return found

        return wait_for(check, what, patience, tell=lambda: self.output()[-6000:])

    def wait_said(self, pattern: str, count: int = 1) -> list[str]:
        """Wait until it wrote something so many times, and answer what."""

        def look() -> list[str] | None:
            found = re.findall(pattern, self.output())
            return found if len(found) >= count else None

        found: list[str] = self.wait(look, f"{count} x {pattern}")
        return found

    def instances(self) -> list[int]:
        """The process ids of the schedulers that started, oldest first."""
        return [int(pid) for pid in STARTED.findall(self.output())]

    def wait_instances(self, count: int) -> list[int]:
        """Wait until so many schedulers have started, and answer their process ids."""
        self.wait_said(STARTED.pattern, count)
        return self.instances()

    def ask(self, path: str = "/", method: str = "GET", patience: float = PATIENCE) -> Answer:
        """Send a request; one of the workers answers."""
        if not self._port:
            self._port = int(self.wait_said(ADDRESS.pattern)[0])
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=patience)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        with contextlib.suppress(json.JSONDecodeError):
            return Answer(answer.status, json.loads(text))
        return Answer(answer.status, text)

    def wait_answer(self, path: str = "/") -> Answer:
        """Wait until it answers a request."""

        def look() -> Answer | None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                return self.ask(path)
            return None

        found: Answer = self.wait(look, f"answer to {path}")
        return found

    def run_now(self, job: str) -> Answer:
        """Ask for a run, and again while another one is live."""

        def look() -> Answer | None:
            answer = self.ask(f"/jobs/{job}", "POST")
            return None if answer.status == 409 else answer

        found: Answer = self.wait(look, f"manual run of {job}")
        return found

    def send(self, number: signal.Signals) -> float:
        """Send a signal to the first process; answers when."""
        self._process.send_signal(number)
        return time.time()

    def interrupt(self) -> float:
        """Send what Ctrl-C in a terminal sends: SIGINT, to every process; answers when."""
        os.killpg(self.pid, signal.SIGINT)
        return time.time()

    def wait_ended(self, patience: float = PATIENCE) -> int:
        """Wait until the first process ends, and answer its exit status."""
        try:
            return self._process.wait(patience)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still there after {patience:g} s\n{self.output()}") from None

    def assert_no_orphans(self) -> None:
        """After its end no process that it started is there any more."""
        wait_for(lambda: not self._group_lives(), "end of what it started", 3, tell=self.output)

    def assert_quiet(self) -> None:
        """The library had nothing to complain of, and nothing was raised past it."""
        # Ctrl-C may meet a framework in the middle of its own start, which then says where.
        told = KEYS_PRESSED.sub(
            lambda met: met[0] if "/src/anarchon/" in met[0] else "", self.output() + "\n"
        )
        trouble = [line for line in told.splitlines() if TROUBLE.search(line)]
        assert trouble == [], self.output()

    def _group_lives(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def close(self) -> None:
        """End it, whatever state it is in."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def copy_of_examples(folder: Path) -> Path:
    """A folder that has the examples, for tests that change their files."""
    shutil.copytree(EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def touch_and_reload(
    app: Application, source: Path, times: int, ready: Callable[[], object] = object
) -> None:
    """Change a source file so often, each time waiting for the new instance.

    `ready` waits until the reloader would notice a change. The whole of a reload is timed, with
    the imports of the framework, which take long on a busy machine.
    """
    took: list[float] = []
    for number in range(1, times + 1):
        [*_, old] = app.wait_instances(number)
        app.log.wait_one("end", pid=old)
        ready()
        touched = time.monotonic()
        source.write_text(source.read_text() + f"\n# touched {number}\n")
        app.wait_instances(number + 1)
        took.append(time.monotonic() - touched)
        wait_ended(old)
    report("longest reload", max(took))
    assert_in_time(max(took), 3)
    app.log.wait_one("end", pid=app.instances()[-1])


def assert_in_time(took: float, seconds: float) -> None:
    """Something took less than so many seconds; three times as many on an overloaded machine.

    Most of it is the work of others: frameworks that are imported, processes that end.
    """
    overloaded = os.getloadavg()[0] > 1.5 * (os.cpu_count() or 1)
    assert took < seconds * (3 if overloaded else 1)


def wait_ended(pid: int) -> None:
    """Wait a moment until there is no process of that id any more."""
    wait_for(lambda: not lives(pid), f"end of {pid}", 3)


def lives(pid: int) -> bool:
    """Whether there is a process of that id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_slots(log: Log, job: str, seconds: float) -> None:
    """Wait until the job has ended in slots that are so many seconds apart."""

    def look() -> bool:
        slots = [entry["slot"] for entry in log.read("end", job=job)]
        return bool(slots) and max(slots) - min(slots) >= seconds * 1000

    wait_for(look, f"{seconds:g} s of {job}", PATIENCE + seconds, tell=log.tail)


def assert_each_slot_once(
    entries: Iterable[Entry], every: float, *, nobody_up: tuple[float, float] = (0, 0)
) -> None:
    """Each slot between the first and the last was started, and in one attempt.

    Of those that came up between two times at which no instance was up, the newest was started.
    """
    slots = [entry["slot"] for entry in entries]
    step = round(every * 1000)
    missing = set(range(min(slots), max(slots), step)) - set(slots)
    since, until = (round(1000 * time) for time in nobody_up)
    given_up = {slot for slot in missing if since <= slot < until - step}
    doubled = {slot for slot in slots if slots.count(slot) > 1}
    assert (missing - given_up, doubled) == (set(), set()), sorted(slots)
