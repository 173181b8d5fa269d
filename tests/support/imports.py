"""Reads who imports what in a source tree, and judges it by the rules of the architecture.

Modules are named without the package: `engine.clock`, and `` for anarchon/__init__.py.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PACKAGE = "anarchon"
CLIENT_LIBRARIES = {"coredis", "glide", "glide_shared", "glide_sync", "redis", "valkey"}
CLIENT_ROOM = "backends.redis.clients"
PUBLIC_ONLY = {"cli", "dashboard", "integrations"}
GROUND = {
    "callables",
    "durations",
    "errors",
    "events",
    "reports",
    "runs",
    "schedules",
    "suggestions",
    "version",
}


@dataclass(frozen=True)
class Import:
    """One import statement's target, where it stands, and whether it happens at run time."""

    source: str
    target: str
    where: str
    ours: bool
    at_run_time: bool


def read_imports(tree: Path, package: str = PACKAGE) -> list[Import]:
    """Return every import of the package whose source is below `tree` (a src folder)."""
    paths = sorted((tree / package).rglob("*.py"))
    modules = {_module_name(path.relative_to(tree / package)): path for path in paths}
    found: list[Import] = []
    for module, path in modules.items():
        where = str(path.relative_to(tree.parent))
        reader = _Reader(module, where, is_package=path.name == "__init__.py", known=set(modules))
        reader.visit(ast.parse(path.read_text(encoding="utf-8")))
        found += reader.found
    return found


def broken_rules(imports: list[Import]) -> list[str]:
    """Return one sentence for each import that breaks a rule, beginning with file and line."""
    complaints = [f"{one.where}: {why}" for one in imports if (why := _why_not(one))]
    return complaints + _cycles(imports)


def _why_not(one: Import) -> str | None:
    room = one.source.partition(".")[0]
    if not one.ours:
        return _outside_its_room(one)
    if _is_in(one.target, "testing") and room != "testing":
        return "nothing in src imports anarchon.testing"
    if room in PUBLIC_ONLY:
        allowed = one.target == "" or _is_in(one.target, room)
        return None if allowed else f"{room} uses the public names of {PACKAGE} only"
    return _against_direction(one, room)


def _outside_its_room(one: Import) -> str | None:
    library = one.target.partition(".")[0]
    # The backend names the clients it accepts in its signatures, for type checkers only.
    room = CLIENT_ROOM if one.at_run_time else CLIENT_ROOM.rpartition(".")[0]
    if library not in CLIENT_LIBRARIES or _is_in(one.source, room):
        return None
    return f"client library {library} is imported outside {room}"


def _against_direction(one: Import, room: str) -> str | None:
    target_room = one.target.partition(".")[0]
    if (one.source, one.target) == ("__main__", "cli"):
        return None  # python -m anarchon is the command line
    if one.target == "" or target_room in PUBLIC_ONLY:
        if room == "testing" and one.target == "":
            return None
        return f"{one.source or PACKAGE} imports {one.target or PACKAGE}, which is above it"
    below = _below(one.source, room)
    if below is None or any(_is_in(one.target, each) for each in below):
        return None
    return f"{one.source} imports {one.target}, but only: {', '.join(sorted(below))}"


def _below(source: str, room: str) -> set[str] | None:
    """Return what a module may import; None is anything that is not above it."""
    if room in GROUND:
        return GROUND
    if source == "backends.base":
        return GROUND
    if room == "backends":
        return GROUND | {"backends"}
    if room == "jobs":
        return GROUND | {"backends.base"}
    if room == "engine":
        return GROUND | {"backends.base", "jobs", "engine"}
    return None


def _cycles(imports: list[Import]) -> list[str]:
    graph: dict[str, dict[str, Import]] = {}
    for one in imports:
        if one.ours and one.at_run_time and one.source != one.target:
            graph.setdefault(one.source, {}).setdefault(one.target, one)
    return [
        f"{graph[ring[0]][ring[1]].where}: import cycle {' -> '.join(ring)}"
        for ring in _rings(graph)
    ]


def _rings(graph: Mapping[str, Mapping[str, Import]]) -> Iterator[list[str]]:
    """Walk the graph depth first and yield a ring for each edge that leads back."""
    finished: set[str] = set()

    def walk(module: str, path: list[str]) -> Iterator[list[str]]:
        if module in path:
            yield [*path[path.index(module) :], module]
            return
        if module in finished:
            return
        for target in graph.get(module, ()):
            yield from walk(target, [*path, module])
        finished.add(module)

    for module in sorted(graph):
        yield from walk(module, [])


def _is_in(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


def _module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class _Reader(ast.NodeVisitor):
    def __init__(self, module: str, where: str, *, is_package: bool, known: set[str]) -> None:
        self.found: list[Import] = []
        self._module = module
        self._where = where
        self._folder = module if is_package else module.rpartition(".")[0]
        self._known = known
        self._at_run_time = True

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.generic_visit(node)
            return
        self._at_run_time = False
        for statement in node.body:
            self.visit(statement)
        self._at_run_time = True
        for statement in node.orelse:
            self.visit(statement)

    def visit_Import(self, node: ast.Import) -> None:
        for name in node.names:
            self._add(name.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self._absolute(node)
        for name in node.names:
            longer = f"{base}.{name.name}"
            # `from anarchon.engine import clock` means the module, if there is one of that name.
            is_module = longer.removeprefix(f"{PACKAGE}.") in self._known
            self._add(longer if is_module else base, node.lineno)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if node.level == 0:
            return node.module or ""
        parts = self._folder.split(".") if self._folder else []
        kept = parts[: len(parts) - (node.level - 1)]
        return ".".join([PACKAGE, *kept, *([node.module] if node.module else [])])

    def _add(self, name: str, line: int) -> None:
        ours = _is_in(name, PACKAGE)
        self.found.append(
            Import(
                source=self._module,
                target=name.removeprefix(PACKAGE).removeprefix(".") if ours else name,
                where=f"{self._where}:{line}",
                ours=ours,
                at_run_time=self._at_run_time,
            )
        )
