"""Rows with aligned columns that fit the width of a screen."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from anarchon.cli.output import width, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_GAP = 2
_LEAST_FIRST, _LEAST_LAST = 16, 24


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row, and what else there is to say of it, in lines below it.

    The first and the last cell may have any length. The others are short.
    """

    cells: tuple[str, ...]
    notes: tuple[str, ...] = ()


def table(header: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    """The lines of a table.

    A first cell that is too long for its column has a line of its own, a last one is wrapped:
    nothing is cut off.
    """
    widths = _widths([tuple(header), *(row.cells for row in rows)])
    yield from _lines(tuple(header), widths)
    for row in rows:
        yield from _lines(row.cells, widths)
        for note in row.notes:
            yield from wrapped(note, "  ", "    ")


def _widths(rows: list[tuple[str, ...]]) -> list[int]:
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    left = width() - sum(widths[1:-1]) - _GAP * (len(widths) - 1)
    if widths[0] + widths[-1] > left:
        first = min(widths[0], max(_LEAST_FIRST, left - max(_LEAST_LAST, widths[-1])))
        if first < widths[0]:  # the longest has a line of its own: what do the others need?
            fitting = [size for row in rows if (size := cell_len(row[0])) <= first]
            first = max(fitting, default=first)
        widths[0], widths[-1] = first, max(_LEAST_LAST, left - first)
    return widths


def _lines(cells: tuple[str, ...], widths: list[int]) -> Iterator[str]:
    first, *middle, last = cells
    if cell_len(first) > widths[0]:
        yield first
        first = ""
    start = "".join(
        cell + " " * (size - cell_len(cell) + _GAP)
        for cell, size in zip([first, *middle], widths, strict=False)
    )
    parts = textwrap.wrap(last, widths[-1], break_long_words=False, break_on_hyphens=False)
    yield f"{start}{parts[0] if parts else ''}".rstrip()
    for part in parts[1:]:
        yield " " * cell_len(start) + part
