"""Runs commands, in this process or as processes of their own."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anarchon.cli import main

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from pathlib import Path

    import pytest

PATIENCE = 30.0
"""Seconds after which a test gives up waiting; nothing that is tested takes as long."""
LOOK_AGAIN = 0.01
COMMAND = (sys.executable, "-m", "anarchon")

_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Told:
    """What a command left: its exit status and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.out)
        assert isinstance(answer, dict)
        return answer

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Commands:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, status: int = 0) -> Told:
        """Run a command that ends with `status`."""
        self._capsys.readouterr()
        ended = main(arguments)
        out, err = self._capsys.readouterr()
        assert ended == status, f"{ended} instead of {status}\n{out}{err}"
        return Told(ended, out, err)

    def refused(self, *arguments: str) -> str:
        """Run a command that is refused, with nothing but one line, and return that line."""
        told = self(*arguments, status=2)
        assert told.out == ""
        assert told.err.startswith("anarchon: ")
        assert told.err.count("\n") == 1
        return told.err


class Process:
    """A command as a process of its own, which writes into files: no pipe can fill and stall it."""

    def __init__(self, folder: Path, *arguments: str, program: tuple[str, ...] = COMMAND) -> None:
        self._out = folder / f"{next(_NUMBERS)}.out"
        self._err = self._out.with_suffix(".err")
        environment = dict(os.environ, COLUMNS="80", PYTHONUNBUFFERED="1")
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [*program, *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def out(self) -> str:
        return self._out.read_text("utf-8")

    @property
    def err(self) -> str:
        return self._err.read_text("utf-8")

    def wait_for(self, look: Callable[[], object], what: str) -> None:
        """Wait until `look` finds something, which must be before the process ends."""
        until = time.monotonic() + PATIENCE
        while not look():
            over = self._process.poll() is not None or time.monotonic() > until
            if over and not look():
                self.kill()
                raise AssertionError(f"no {what}\n{self.out}\n{self.err}")
            time.sleep(LOOK_AGAIN)

    def wait_printed(self, line: str, times: int = 1) -> None:
        """Wait until it printed a line, so often."""
        self.wait_for(lambda: self.out.split("\n").count(line) >= times, f"line {line!r}")

    def wait_logged(self, event: str) -> None:
        """Wait until it logged an event, in JSON."""
        self.wait_for(lambda: f'"event": "{event}"' in self.err, f"event {event}")

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait()

    def ended(self) -> Told:
        """Wait for its end; it is killed if it does not come."""
        try:
            self._process.wait(PATIENCE)
        finally:
            self.kill()
        return Told(self._process.returncode, self.out, self.err)
