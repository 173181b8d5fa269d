"""A pytest plugin: --mutant claim.lua:120:negate:1 runs the tests with that change to a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.mutants import by_name

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the mutant's name."""
    parser.addoption("--mutant", help="run with this change to a Lua script (tools/mutants.py)")


def pytest_configure(config: pytest.Config) -> None:
    """Make the change before any script is read."""
    name: str | None = config.getoption("--mutant")
    if name is not None:
        by_name(name).apply()
