"""The rows of docs/behaviour.md. Each stands at the test that proves it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., None]")

PAGE = Path(__file__).parents[2] / "docs" / "behaviour.md"
MARK = "<!-- What follows is written by `python -m tests.behaviour` from the tests there. -->\n"

GROUPS = (
    "retries",
    "timeouts",
    "late_slots",
    "catching_up",
    "deploys",
    "overlap",
    "limits",
    "leases",
    "stopping",
    "history",
    "pauses",
)
"""The modules with rows, in the order of the page; the first line of each names its part there."""


@dataclass(frozen=True)
class Row:
    """One row: what an option does in a situation. `option` is code, the others are prose."""

    option: str
    situation: str
    outcome: str


_rows: dict[tuple[str, str], Row] = {}


def row(option: str, situation: str, outcome: str) -> Callable[[F], F]:
    """Say what the decorated test proves."""

    def mark(test: F) -> F:
        # The same test again is the same row: a module may be imported more than once.
        _rows[test.__module__, test.__name__] = Row(option, situation, outcome)
        return test

    return mark


def rows() -> dict[str, list[Row]]:
    """The rows of each part of the page, by its heading."""
    found: dict[str, list[Row]] = {}
    for group in GROUPS:
        module = importlib.import_module(f"tests.behaviour.test_{group}")
        heading = (module.__doc__ or "").partition("\n")[0].removesuffix(".")
        found[heading] = [row for (name, _), row in _rows.items() if name == module.__name__]
    return found


def written() -> str:
    """The page as it has to be: what people wrote above the mark, and the rows."""
    above = PAGE.read_text("utf-8").partition(MARK)[0]
    parts = [f"\n## {heading}\n\n{_table(group)}" for heading, group in rows().items()]
    return above + MARK + "".join(parts)


def _table(group: list[Row]) -> str:
    lines = ["| option | situation | what happens |", "|---|---|---|"]
    lines += [f"| `{row.option}` | {row.situation} | {row.outcome} |" for row in group]
    return "\n".join(lines) + "\n"
