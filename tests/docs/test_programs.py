"""Programs on the pages are run, and print what the pages say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT, Block, pages

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.server import Server

BLOCKS = [block for written in pages() for block in written.blocks]
PYTHON = [block for block in BLOCKS if block.language == "python"]
PLAIN = [block for block in PYTHON if block.run == "plain"]
NEXT = [
    (block, line)
    for block in BLOCKS
    if block.language == "console"
    for line in block.text.splitlines()
    if line.startswith("$ anarchon next")
]
README_URL = "redis://localhost:6379"
PATIENCE = 60.0


def run(text: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments, "-c", text],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=dict(os.environ, PYTHONPATH=str(folder)),
    )


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_compiles(block: Block) -> None:
    assert compile(block.text, str(block), "exec").co_code


def test_programs_are_there() -> None:
    assert len(PLAIN) >= 6
    assert {block.run for block in PYTHON} <= {"", "plain", "fastapi"}
    assert len(NEXT) >= 2


@pytest.mark.parametrize("block", PLAIN, ids=str)
def test_program_prints_what_its_page_says(block: Block, tmp_path: Path) -> None:
    done = run(block.text, tmp_path, "-X", "dev", "-W", "error")
    assert done.returncode == 0, done.stderr
    assert block.output is None or done.stdout == block.output


@pytest.mark.parametrize("block", [b for b in PYTHON if b.run == "fastapi"], ids=str)
def test_lifespan_starts_and_stops_the_scheduler(
    block: Block, tmp_path: Path, valkey9: Server
) -> None:
    (tmp_path / "fastapi.py").write_text(
        textwrap.dedent("""
            class FastAPI:
                def __init__(self, *, lifespan):
                    self.lifespan = lifespan
        """)
    )
    serving = textwrap.dedent("""
        import asyncio

        async def serve():
            async with app.lifespan(app):
                print(scheduler.health().running, scheduler.health().store)
            print(scheduler.health().running)

        asyncio.run(serve())
    """)
    assert README_URL in block.text
    done = run(block.text.replace(README_URL, valkey9.url) + serving, tmp_path)
    assert done.stdout == "True True\nFalse\n", done.stderr


@pytest.mark.parametrize(("block", "line"), NEXT, ids=str)
def test_command_prints_what_its_page_says(block: Block, line: str, tmp_path: Path) -> None:
    arguments = shlex.split(line.removeprefix("$ "))
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    # Only an answer to a question with a fixed start stays the same.
    assert block.output is None or "--from" not in line or done.stdout == block.output


def test_make_has_the_targets_that_the_readme_names() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = {
        line.removeprefix("$ make ").split()[0]
        for block in BLOCKS
        for line in block.text.splitlines()
        if line.startswith("$ make ")
    }
    assert named == {"demo", "test"}
    assert named <= set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


def test_demo_ends_as_the_readme_says() -> None:
    tally = (ROOT / "src/anarchon/cli/demo/tally.py").read_text("utf-8")
    said = next(b.text.strip() for b in BLOCKS if b.text.startswith("slots "))
    words = [re.sub(r"\W*\w+$", "", part) for part in said.split(", ")]
    assert words == ["slots", "doubled", "lost", "taken over"]
    assert re.search(r"slots \{.+doubled \{.+lost \{.+taken over \{", tally, re.DOTALL)
