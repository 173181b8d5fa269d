"""Fixtures of the command line's tests: modules to name as TARGET, and what a command told."""

from __future__ import annotations

import logging
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from tests.cli.support import Commands

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Write = Callable[..., str]

SHOP = """
    import asyncio

    from anarchon import MemoryBackend, Run, Scheduler

    scheduler = Scheduler(backend=MemoryBackend(), lease=1, runner="app-1")

    @scheduler.job("0 3 * * *", timezone="Europe/Berlin")
    async def nightly_report(run: Run) -> dict[str, object]:
        return {"rows": 3, "attempt": run.attempt}

    @scheduler.job(900, max_attempts=2, retry_delay=0)
    def sync_stock() -> None:
        raise ValueError("no such article:\\n  7")

    @scheduler.job("0 0 1 1 *")
    async def endless() -> None:
        await asyncio.sleep(600)
"""


@pytest.fixture(autouse=True)
def _process_as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Commands import modules and configure logging; the next test finds none of it."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    monkeypatch.setattr(sys, "path", sys.path[:])
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return a function that writes a module into the working folder and answers its name."""
    monkeypatch.chdir(tmp_path)

    def write(text: str, name: str = "app") -> str:
        path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), "utf-8")
        return name

    return write


@pytest.fixture
def shop(write: Write) -> str:
    """Return a TARGET with three jobs whose store lives as long as the test."""
    return f"{write(SHOP, 'shop')}:scheduler"


@pytest.fixture
def commands(capsys: pytest.CaptureFixture[str]) -> Commands:
    """Return what runs commands in this process."""
    return Commands(capsys)
