"""The log events on the page are those of the code, with their loggers, levels and fields."""

from __future__ import annotations

import ast
import dataclasses
import re
from dataclasses import dataclass, field

import anarchon
from anarchon.backends.base import ClaimCode, Outcome
from tests.docs.pages import ROOT, page, pages

SOURCES = [
    path
    for folder in ("src/anarchon/engine", "src/anarchon")
    for path in sorted((ROOT / folder).glob("*.py"))
]
TREES = {path: ast.parse(path.read_text("utf-8")) for path in SOURCES}

EVENT = re.compile(r"(?:run|store|slots|claim|clock|job|scheduler|listener|loop)\.[a-z-]+")

# What the two events with a variable end can be: an attempt's end that is told to the store, and
# an answer that leaves nothing to do.
ENDINGS = {
    Outcome.SUCCEEDED,
    Outcome.FAILED,
    Outcome.NO_RETRY,
    Outcome.TIMED_OUT,
    Outcome.CANCELLED,
}
VARIABLE = {
    "run.": {outcome.name.lower().replace("_", "-") for outcome in ENDINGS},
    "claim.": {str(code) for code in (ClaimCode.DONE, ClaimCode.GONE)},
}


@dataclass
class Event:
    """How an event is logged; fields that only some of its places have are left out."""

    logger: str
    levels: set[str] = field(default_factory=set[str])
    fields: set[str] = field(default_factory=set[str])


def events_in_code() -> dict[str, Event]:
    found: dict[str, Event] = {}
    for tree in TREES.values():
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and _name(call.func) == "tell":
                for name in _events(call, tree):
                    logger = f"anarchon.{_name(call.args[0]).lower()}"
                    told = _fields(call)
                    event = found.setdefault(name, Event(logger, set(), told))
                    event.fields &= told
                    event.levels |= _levels(call.args[1])
    return found


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _events(tell: ast.Call, tree: ast.Module) -> set[str]:
    node = tell.args[2]
    if isinstance(node, ast.Constant):
        return {str(node.value)}
    if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
        start = str(node.values[0].value)
        return {f"{start}{end}" for end in VARIABLE[start]}
    # A variable: what the function around sets it to, or is called with in the same file.
    around = next(
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef) and tell in ast.walk(each)
    )
    places: list[ast.AST] = [around]
    if _name(node) in {argument.arg for argument in around.args.args}:
        places = [
            call
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and _name(call.func) == around.name
        ]
    return {
        str(constant.value)
        for place in places
        for constant in ast.walk(place)
        if isinstance(constant, ast.Constant) and EVENT.fullmatch(str(constant.value))
    }


def _levels(node: ast.expr) -> set[str]:
    if isinstance(node, ast.Attribute):
        return {node.attr}
    return set()  # decided at run time: the page tells when


def _fields(call: ast.Call) -> set[str]:
    fields = {keyword.arg for keyword in call.keywords if keyword.arg}
    for keyword in call.keywords:
        if keyword.arg is None:
            fields |= _keys_of(_name(keyword.value))
    return fields


def _keys_of(name: str) -> set[str]:
    """The keys of the dictionary that an attribute or property of this name holds."""
    for tree in TREES.values():
        for node in ast.walk(tree):
            value: ast.expr | None = None
            if isinstance(node, ast.FunctionDef) and node.name == name:
                value = next(
                    (each.value for each in ast.walk(node) if isinstance(each, ast.Return)), None
                )
            elif isinstance(node, ast.AnnAssign) and _name(node.target) == name:
                value = node.value
            if isinstance(value, ast.Dict):
                return {key.value for key in value.keys if isinstance(key, ast.Constant)}  # type: ignore[misc]
    raise AssertionError(f"no dictionary named {name} in the engine")


def events_on_page() -> dict[str, Event]:
    found: dict[str, Event] = {}
    logger = ""
    for line in page("docs/logging.md").text.splitlines():
        if heading := re.fullmatch(r"## (anarchon\.\w+)", line):
            logger = heading[1]
        cells = re.split(r" *\| *", line)[1:-1]
        if logger and line.startswith("| `") and len(cells) == 4:
            names, levels, fields, _ = cells
            for name in re.findall(r"`([^`]+)`", names):
                told = set(re.findall(r"`(\w+)`", fields))
                found[name] = Event(logger, set(levels.split(", ")), told)
    return found


CODE = events_in_code()
PAGE = events_on_page()


def test_events_are_those_of_the_code() -> None:
    assert sorted(PAGE) == sorted(CODE)


def test_loggers_are_those_of_the_code() -> None:
    assert {name: event.logger for name, event in PAGE.items()} == {
        name: event.logger for name, event in CODE.items()
    }


def test_fields_are_those_of_the_code() -> None:
    assert {name: event.fields for name, event in PAGE.items()} == {
        name: event.fields for name, event in CODE.items()
    }


def test_levels_are_those_of_the_code() -> None:
    wrong = {
        name: (PAGE[name].levels, event.levels)
        for name, event in CODE.items()
        if event.levels and event.levels != PAGE[name].levels
    }
    assert wrong == {}


def test_fields_are_explained() -> None:
    explained = page("docs/logging.md").text.split("## anarchon.scheduler")[0]
    names = set(re.findall(r"^\| `(\w+)` \|", explained, re.MULTILINE))
    assert names == {name for event in CODE.values() for name in event.fields}


def test_no_other_event_is_spoken_of() -> None:
    attributes = {f"run.{each.name}" for each in dataclasses.fields(anarchon.Run)}
    attributes |= {f"scheduler.{name}" for name in dir(anarchon.Scheduler)}
    spoken = {code for written in pages() for code in written.codes if EVENT.fullmatch(code)}
    assert spoken - attributes <= set(CODE)
