"""The page of the command line has each command, option and key, and no other."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any, cast

import pytest
import typer.main

from anarchon.cli.app import app
from tests.cli.told import TOLD
from tests.docs.pages import Page, page

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from anarchon import Scheduler
    from tests.cli.conftest import Write
    from tests.cli.support import Commands

PAGE = page("docs/cli.md")
COMMANDS: Mapping[str, Any] = cast("Any", typer.main.get_command(app)).commands
SHARED = {"--json", "--prefix", "-h", "--help"}
OPAQUE = {"definitions", "result"}
"""Keys whose values have keys of the user's own."""

TWO = {
    "pause": "pause and resume",
    "resume": "pause and resume",
    "next": "next and demo",
    "demo": "next and demo",
}
"""Commands that share a section."""

ANSWERS = """
    HISTORY = (R("report", "1", at("03:00"), T.MANUAL, S.FAILED, (
        A(1, S.FAILED, "app-1", at("03:00"), at("03:01"), "ValueError"),)),)
    WHY = Explanation("report", "1", at("03:00"), None, ("Nobody knows.",))
    FINDINGS = (Finding("clock", "ok", "fine"),)
    CANCELLED = ("1796007600000",)
    INSTANCES = (InstanceInfo("app-1", at("03:00"), 0.0, 0.0, "0.1.0", {"report": "x"}, "y"),)
"""


def section(command: str) -> str:
    return PAGE.section(f"## {TWO.get(command, command)}")


def paths(value: object, above: str = "") -> Iterator[str]:
    """The keys of an answer, each with those above it."""
    if isinstance(value, list):
        for each in cast("list[object]", value):
            yield from paths(each, above)
    elif isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            yield f"{above}.{key}"
            if key not in OPAQUE and not is_names(key, inner):
                yield from paths(inner, f"{above}.{key}")


def is_names(key: str, inner: object) -> bool:
    """Whether these are the definitions of an instance's jobs, by their names."""
    return key == "jobs" and isinstance(inner, dict)


def documented(command: str) -> list[set[str]]:
    blocks = Page("docs/cli.md", section(command)).blocks
    return [set(paths(json.loads(block.text))) for block in blocks if block.language == "json"]


def test_each_command_is_in_the_table_and_has_a_section() -> None:
    table = PAGE.text.split("\n\n")[2]
    listed = re.findall(r"^\| \[`([a-z-]+)`\]\(#([a-z-]+)\) \|", table, re.MULTILINE)
    assert {name for name, _ in listed} == set(COMMANDS)
    for name, anchor in listed:
        assert anchor == str(TWO.get(name, name)).replace(" ", "-")
        assert f"`anarchon {name}" in section(name)


@pytest.mark.parametrize("command", list(COMMANDS))
def test_each_option_is_told_where_its_command_is(command: str) -> None:
    options = {name for each in COMMANDS[command].params for name in each.opts if name[0] == "-"}
    told = set(re.findall(r"`(--?[a-z-]+)(?: [A-Z]+)?`", section(command)))
    own = options - SHARED
    # An option with a short name is told by either.
    missing = {name for name in own if name not in told}
    assert missing <= {"-y", "--timezone"}


def test_no_other_option_is_told() -> None:
    known = {name for each in COMMANDS.values() for param in each.params for name in param.opts}
    told = set(re.findall(r"`(--[a-z-]+)", PAGE.prose))
    assert told - known <= {"--sigint-timeout"}  # watchfiles' own


def test_shared_options_are_told_once() -> None:
    assert "`--prefix`" in PAGE.section("## TARGET")
    assert "`--json`" in PAGE.section("## JOB, and moments")


@pytest.mark.parametrize(
    ("arguments", "which"),
    [
        (["check", "TARGET"], 0),
        (["jobs", "TARGET"], 0),
        (["history", "TARGET", "report"], 0),
        (["why", "TARGET", "report", "2026-11-30"], 0),
        (["run-now", "TARGET", "sync"], 0),
        (["pause", "TARGET", "report"], 0),
        (["resume", "TARGET", "report"], 1),
        (["cancel", "TARGET", "report"], 0),
        (["forget", "TARGET", "sync", "--yes"], 0),
    ],
)
def test_keys_of_an_answer_are_those_of_the_page(
    write: Write, commands: Commands, arguments: list[str], which: int
) -> None:
    target = f"{write(TOLD + ANSWERS)}:scheduler"
    given = [target if each == "TARGET" else each for each in arguments]
    answer = commands(*given, "--json").json
    assert set(paths(answer)) == documented(arguments[0])[which]


def test_keys_of_the_instances_are_those_of_the_page(
    write: Write, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = f"{write(TOLD + ANSWERS)}:scheduler"
    commands("jobs", target)
    told: Scheduler = sys.modules["app"].scheduler

    def scheduler_of(_target: str, _prefix: str | None) -> Scheduler:
        return told

    monkeypatch.setattr("anarchon.cli.jobs.scheduler_of", scheduler_of)
    answer = commands("jobs", "redis://localhost", "--json").json
    assert set(paths(answer)) == documented("jobs")[1]


def test_keys_of_next_are_those_of_the_page(commands: Commands) -> None:
    arguments = ("next", "30 2 * * *", "-z", "Europe/Berlin", "--from", "2026-03-28", "--json")
    assert set(paths(commands(*arguments).json)) == documented("next")[0]
