"""What goes to standard output: lines that any terminal can show, and JSON."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TextIO

_NARROWEST, _USUAL, _WIDEST = 60, 80, 120
_COLOURS = {"red": 31, "green": 32, "yellow": 33, "dim": 2}

Colour = Literal["red", "green", "yellow", "dim"]


def say(lines: Iterable[str] | str) -> None:
    """Print a line, or several."""
    encoding = sys.stdout.encoding or "utf-8"
    for line in [lines] if isinstance(lines, str) else lines:
        typer.echo(line.encode(encoding, "backslashreplace").decode(encoding))


def say_json(answer: Mapping[str, object]) -> None:
    """Print one JSON object."""
    text = json.dumps(answer, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(answer, indent=2)
    typer.echo(text)


def plain(text: str, keep: str = "") -> str:
    """The text with whatever is not to be printed spelled out, but for `keep`.

    Names, notes and errors come from the store: they may hold anything, and a terminal obeys some
    of it.
    """
    return "".join(
        each if each.isprintable() or each in keep else each.encode("unicode_escape").decode()
        for each in text
    )


def first_line(text: str) -> str:
    """The first line of a text that has something, for a screen."""
    return plain(next((line.strip() for line in text.splitlines() if line.strip()), ""))


def width() -> int:
    """How many columns a line may have: the terminal's, within reason; 80 where there is none."""
    columns = shutil.get_terminal_size((_USUAL, 24)).columns
    return max(_NARROWEST, min(columns, _WIDEST))


def wrapped(text: str, first: str = "", rest: str | None = None) -> Iterator[str]:
    """The text in lines of at most `width()`, the first after `first`, others after `rest`."""
    yield from textwrap.wrap(
        text,
        width(),
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def has_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal that wants colour (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, colour: Colour | None, stream: TextIO) -> str:
    """The text in a colour, where the stream has any."""
    if colour is None or not has_colour(stream):
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"
