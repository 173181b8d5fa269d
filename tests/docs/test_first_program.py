"""The program at the top of the README: started twice, it prints each slot once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.docs.pages import page

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.server import Server

LINE = re.compile(r"(\d\d:\d\d:\d\d)  attempt 1  ([\w.-]+:\d+:[0-9a-f]{6})")
BY_LINE = 25
FIRST = page("README.md").blocks[0]
README_URL = "redis://localhost:6379"
PATIENCE = 60.0


class Instances:
    """The README's first program, as processes."""

    def __init__(self, text: str, folder: Path, count: int) -> None:
        environment = dict(os.environ, PYTHONUNBUFFERED="1")
        self.outputs = [folder / f"{number}.out" for number in range(count)]
        self.processes: list[subprocess.Popen[bytes]] = []
        for output in self.outputs:
            with output.open("wb") as file:
                self.processes.append(
                    subprocess.Popen(
                        [sys.executable, "-c", text], stdout=file, stderr=file, env=environment
                    )
                )

    @property
    def printed(self) -> str:
        return "".join(output.read_text() for output in self.outputs)

    def interrupt(self) -> list[int]:
        for process in self.processes:
            process.send_signal(signal.SIGINT)
        return [process.wait(PATIENCE) for process in self.processes]

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait(PATIENCE)


def test_it_stands_with_its_output_in_the_first_lines() -> None:
    output = page("README.md").blocks[1]
    assert output.line + output.text.count("\n") + 1 <= BY_LINE
    assert len(LINE.findall(output.text)) >= 4
    assert LINE.sub("", output.text).strip() == ""


def test_output_on_the_page_shows_each_slot_once() -> None:
    shown = LINE.findall(page("README.md").blocks[1].text)
    assert len({slot for slot, _ in shown}) == len(shown)
    assert len({runner for _, runner in shown}) == 2


def test_two_instances_print_each_slot_once(tmp_path: Path, valkey9: Server) -> None:
    valkey9.flush()
    assert README_URL in FIRST.text
    instances = Instances(FIRST.text.replace(README_URL, valkey9.url), tmp_path, 2)
    try:
        until = time.monotonic() + PATIENCE
        while len(LINE.findall(instances.printed)) < 2:
            assert time.monotonic() < until, instances.printed
            time.sleep(0.02)
        assert instances.interrupt() == [0, 0], instances.printed
    finally:
        instances.end()
    printed = LINE.findall(instances.printed)
    assert LINE.sub("", instances.printed).strip() == ""
    assert len({slot for slot, _ in printed}) == len(printed)
    valkey9.flush()
