"""Small changes to the Lua scripts, one at a time: each turns one rule round.

A mutant is named by file, line, kind and number, as in `claim.lua:120:compare:1`. Kinds:

    negate   the condition of an if, elseif or while is turned round
    compare  < becomes <=, <= becomes <, the same for > and >=; == becomes ~=, ~= becomes ==
    logic    `and` becomes `or`, `or` becomes `and`
    bound    max becomes min, min becomes max; a limit grows by one
    sign     + becomes -, - becomes +
    drop     a statement that writes, or sets a part of a record, is left out
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anarchon.backends.redis
from anarchon.backends.redis import scripts

if TYPE_CHECKING:
    from collections.abc import Iterator

LUA = Path(anarchon.backends.redis.__file__).parent / "lua"

_COMPARE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "~=", "~=": "=="}
_SWAPS = {
    "compare": (re.compile(r"<=|>=|==|~=|<|>"), _COMPARE),
    "logic": (re.compile(r"\b(?:and|or)\b"), {"and": "or", "or": "and"}),
    "bound": (
        re.compile(r"math\.max|math\.min|(?:(?<== )|(?<=, ))(?:32|10|128)\b"),
        {
            "math.max": "math.min",
            "math.min": "math.max",
            "32": "33",
            "10": "11",
            "128": "129",
        },
    ),
    "sign": (re.compile(r"(?<=\s)[+-](?=\s)"), {"+": "-", "-": "+"}),
}
_CONDITION = re.compile(r"\b(?:if|elseif|while) (.+?) (?:then|do)\b")
_WRITES = (
    "redis.call",
    "store_open",
    "store_closed",
    "add_result",
    "drop_oldest_results",
    "close_abandoned",
    "record_skip",
    "raise_floor",
    "drop_expired_history",
    "trim",
)
_STATEMENT = re.compile(rf"(?:^\s*|\b(?:then|do) )((?:{'|'.join(map(re.escape, _WRITES))})\()")
_ASSIGNMENT = re.compile(r"(?:^\s*|\bthen )((?:r\.\w+, )*r\.\w+ = .*?)(?: end)?$")


@dataclass(frozen=True)
class Mutant:
    """One change: the characters from `start` to `end` of a file become `new`."""

    file: str
    line: int
    kind: str
    number: int
    rule: str
    start: int
    end: int
    new: str

    @property
    def name(self) -> str:
        """What the command line takes."""
        return f"{self.file}:{self.line}:{self.kind}:{self.number}"

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What stays the same when lines above are added or taken away."""
        return (self.file, self.rule, self.kind, self.number)

    @property
    def change(self) -> str:
        """The change in words for people."""
        old = " ".join((LUA / self.file).read_text()[self.start : self.end].split())
        return f"without `{old}`" if self.kind == "drop" else f"`{old}` → `{self.new}`"

    def apply(self) -> None:
        """Let every script that is read from now on have the change."""
        original = (LUA / self.file).read_text()
        changed = original[: self.start] + self.new + original[self.end :]
        read = scripts._read  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

        def read_changed(path: str) -> str:
            return changed if path == self.file else read(path)

        scripts._read = read_changed  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        scripts.script.cache_clear()


def mutants() -> Iterator[Mutant]:
    """Every mutant of every script, in order."""
    for path in sorted(LUA.rglob("*.lua")):
        name = path.relative_to(LUA).as_posix()
        if name != "check.lua":  # a list of commands, held against the other files by a test
            yield from _mutants_of(name, path.read_text())


def by_name(name: str) -> Mutant:
    """The mutant of that name. Raises `KeyError`."""
    return {mutant.name: mutant for mutant in mutants()}[name]


def _mutants_of(file: str, text: str) -> Iterator[Mutant]:
    masked = _masked(text)
    offset = 0
    for number, line in enumerate(masked.splitlines(keepends=True), start=1):
        rule = text[offset : offset + len(line)].strip()
        counts: dict[str, int] = {}
        for kind, start, end, new in sorted(_changes(masked, text, offset, line)):
            counts[kind] = counts.get(kind, 0) + 1
            yield Mutant(file, number, kind, counts[kind], rule, start, end, new)
        offset += len(line)


def _changes(masked: str, text: str, offset: int, line: str) -> Iterator[tuple[str, int, int, str]]:
    for kind, (pattern, swaps) in _SWAPS.items():
        for found in pattern.finditer(line):
            yield kind, offset + found.start(), offset + found.end(), swaps[found[0]]
    for found in _CONDITION.finditer(line):
        start, end = offset + found.start(1), offset + found.end(1)
        yield "negate", start, end, f"not ({text[start:end]})"
    for found in _STATEMENT.finditer(line):
        start = offset + found.start(1)
        yield "drop", start, _end_of_call(masked, offset + found.end(1) - 1), ""
    for found in _ASSIGNMENT.finditer(line.rstrip("\n")):
        yield "drop", offset + found.start(1), offset + found.end(1), ""


def _end_of_call(masked: str, opening: int) -> int:
    depth = 0
    for place in range(opening, len(masked)):
        depth += {"(": 1, ")": -1}.get(masked[place], 0)
        if depth == 0:
            return place + 1
    raise ValueError(masked[opening:])


def _masked(text: str) -> str:
    # Strings and comments are blotted out, so that nothing in them is taken for code.
    return re.sub(r"--[^\n]*|'[^'\n]*'", lambda found: re.sub(r"[^\n]", "_", found[0]), text)
