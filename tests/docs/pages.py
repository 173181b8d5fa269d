"""The pages of the documentation, taken apart: fenced blocks, tables, links, headings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(
    r"^(?:<!-- run(?:: (?P<how>[a-z]+))? -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_MARK = "<!-- run"
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block. `run` is how it is run: "" is not at all, "plain" as it stands."""

    page: str
    line: int
    language: str
    text: str
    run: str
    output: str | None
    """The text block that follows at once, if there is one."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Page:
    """A page of Markdown; `name` is its path from the root of the project."""

    name: str
    text: str

    @property
    def prose(self) -> str:
        """What is not in a fenced block."""
        return _FENCE.sub("", self.text)

    @property
    def blocks(self) -> tuple[Block, ...]:
        found = list(_FENCE.finditer(self.text))
        return tuple(
            self._block(match, following)
            for match, following in zip(found, [*found, None][1:], strict=True)
        )

    def _block(self, match: re.Match[str], following: re.Match[str] | None) -> Block:
        output = None
        if following and following["language"] == "text":
            between = self.text[match.end() : following.start()]
            output = None if between.strip() else following["text"]
        marked = match[0].startswith(_MARK)
        return Block(
            page=self.name,
            line=self.text.count("\n", 0, match.start()) + 1,
            language=match["language"],
            text=match["text"],
            run=(match["how"] or "plain") if marked else "",
            output=output,
        )

    @property
    def links(self) -> tuple[str, ...]:
        return tuple(_LINK.findall(self.prose))

    @property
    def codes(self) -> tuple[str, ...]:
        """What stands between single backticks."""
        return tuple(_CODE.findall(self.prose))

    @property
    def anchors(self) -> frozenset[str]:
        """The names of its headings, as GitHub makes them."""
        return frozenset(
            re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in _HEADING.findall(self.prose)
        )

    def section(self, heading: str) -> str:
        """The text under a heading, up to the next one of its level or above."""
        level = heading.split(" ", 1)[0]
        _, found, rest = f"\n{self.text}".partition(f"\n{heading}\n")
        assert found, f"{self.name} has no heading {heading!r}"
        return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


@cache
def page(name: str) -> Page:
    return Page(name, (ROOT / name).read_text("utf-8"))


def pages() -> tuple[Page, ...]:
    docs = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/*.md"))
    return tuple(page(name) for name in ("README.md", *docs))


def first_cells(table: str) -> tuple[str, ...]:
    """What stands between backticks in the first column of the tables in a text."""
    rows = [line.split(" | ", 1)[0] for line in table.splitlines() if line.startswith("| ")]
    return tuple(name for row in rows for name in _CODE.findall(row))
