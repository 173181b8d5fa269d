"""The Lua scripts: read from their files, put together, and called by their SHA-1."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources

_INCLUDE = "-- include "


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script: its text, and the digest under which a server keeps it."""

    name: str
    text: str
    sha: str


@cache
def script(name: str) -> Script:
    """The script of `lua/<name>.lua`, with the parts that its include line names in its place."""
    lines: list[str] = []
    for line in _read(f"{name}.lua").splitlines():
        if line.startswith(_INCLUDE):
            lines += [_read(f"lib/{part}.lua") for part in line.removeprefix(_INCLUDE).split()]
        else:
            lines.append(line)
    text = "\n".join(lines) + "\n"
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def read_all() -> None:
    """Read every script now, so that none is missed later, when files can no longer be opened."""
    folder = resources.files("anarchon.backends.redis").joinpath("lua")
    for file in folder.iterdir():
        if file.name.endswith(".lua"):
            script(file.name.removesuffix(".lua"))


def _read(path: str) -> str:
    return (
        resources.files("anarchon.backends.redis")
        .joinpath("lua", *path.split("/"))
        .read_text("utf-8")
    )
