"""What the code has stands in the documentation, and nothing else does."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
import re

import pytest

import anarchon
import anarchon.testing
import anarchon.testing.conformance
from anarchon import errors, operations
from anarchon.backends.redis.keys import Keys
from anarchon.engine import presence
from tests.docs.pages import ROOT, first_cells, page, pages

OPTIONS = page("docs/options.md")
LUA = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in (ROOT / "src/anarchon/backends/redis/lua").rglob("*.lua")
}


def parameters(function: object) -> list[str]:
    assert callable(function)
    return [name for name in inspect.signature(function).parameters if name != "self"]


def parameters_of(member: object) -> list[str]:
    return parameters(member) if callable(member) else []


def members(kind: type) -> dict[str, object]:
    """What a class offers, what it inherits included, in the order of its name."""
    return {name: inspect.getattr_static(kind, name) for name in dir(kind) if name[0] != "_"}


SCHEDULER = parameters(anarchon.Scheduler)
JOB = list(vars(anarchon.JobSettings)["__annotations__"])
BACKENDS = [anarchon.RedisBackend, anarchon.ValkeyBackend, anarchon.MemoryBackend]


# -- options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("part", "names"), [("## Scheduler", SCHEDULER), ("## Job", JOB)])
def test_options_page_has_each_option(part: str, names: list[str]) -> None:
    found = re.findall(r"^### `(\w+)`$", OPTIONS.section(part), re.MULTILINE)
    assert sorted(found) == sorted(names)


def test_readme_lists_each_option() -> None:
    section = page("README.md").section("## Options")
    scheduler, job = section.split("| `@scheduler.job(", 1)
    assert list(first_cells(scheduler))[1:] == SCHEDULER
    assert list(first_cells(f"\n| `{job}"))[1:] == JOB


def test_readme_tells_the_defaults() -> None:
    told = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page("README.md").text, re.MULTILINE))
    signature = inspect.signature(anarchon.Scheduler).parameters
    for name in ("lease", "history_size", "max_threads", "shutdown_timeout"):
        assert told[name] == str(signature[name].default)
    for name in ("history_ttl", "max_concurrent_runs"):
        assert told[name] == "`None`"
        assert signature[name].default is None


@pytest.mark.parametrize("backend", BACKENDS)
def test_options_page_has_each_option_of_a_backend(backend: type) -> None:
    heading = f"### `{backend.__name__}(*, {', '.join(parameters(backend))})`"
    assert heading in OPTIONS.text.splitlines()


def test_no_other_option_is_spoken_of() -> None:
    known = {*SCHEDULER, *JOB, *(name for each in BACKENDS for name in parameters(each))}
    known |= {*parameters(anarchon.Environment)}
    for kind in (anarchon.Scheduler, anarchon.BackgroundScheduler):
        known |= {name for each in members(kind).values() for name in parameters_of(each)}
    known |= {*parameters(anarchon.testing.run_virtual)}
    known |= {"lifespan", "level", "minutes", "days"}  # FastAPI's, logging's, timedelta's
    known |= {"run"}  # a job's own parameter
    spoken = {
        option
        for written in pages()
        for code in written.codes
        for option in re.findall(r"(?:^|[(, ])([a-z_]+)=", code)
    }
    assert spoken <= known


# -- the scheduler -----------------------------------------------------------------------------


def test_scheduler_page_has_each_method() -> None:
    headings = re.findall(r"^### `(\w+)(\(.*\))?`$", page("docs/scheduler.md").text, re.MULTILINE)
    assert dict(headings) == {
        name: _signature(member) for name, member in members(anarchon.Scheduler).items()
    }


def test_scheduler_page_has_each_method_that_blocks() -> None:
    section = page("docs/scheduler.md").section("## In a background thread")
    told = {cell.split("(")[0]: re.sub(r"^\w+", "", cell) for cell in first_cells(section)}
    offered = members(anarchon.BackgroundScheduler)
    assert told == {name: _signature(member) for name, member in offered.items()}


def test_methods_that_block_are_those_of_the_scheduler() -> None:
    own = members(anarchon.Scheduler)
    for name, member in members(anarchon.BackgroundScheduler).items():
        if name not in {"start", "run_now"}:  # see the page
            assert _signature(member) == _signature(own[name]), name


def _signature(member: object) -> str:
    """As the page writes it: without self and types."""
    if not callable(member):
        return ""
    given = list(inspect.signature(member).parameters.values())[1:]
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in given]
    return str(inspect.Signature(bare))


def test_limits_of_history_are_told() -> None:
    most = operations.MOST_HISTORY
    for name in ("docs/scheduler.md", "docs/runs.md"):
        assert f"from 1 to {most}" in " ".join(page(name).text.split())
    assert f"above {most}" in page("docs/errors.md").text


# -- errors ------------------------------------------------------------------------------------

ERRORS = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, errors.AnarchonError)
]


def test_error_tree_is_drawn_as_it_is() -> None:
    tree = page("docs/errors.md").blocks[0].text
    drawn = {
        name: (len(indent) // 4, code)
        for indent, name, code in re.findall(r"^([│├└─ ]*)(\w+) +(ANARCHON\w*)", tree, re.MULTILINE)
    }
    assert drawn == {
        error.__name__: (error.__mro__.index(errors.AnarchonError), error.code) for error in ERRORS
    }
    for line in tree.splitlines():
        if also := re.search(r"(\w+) +ANARCHON\w+ +also an? (\w+)", line):
            bases: tuple[type, ...] = vars(errors)[also[1]].__mro__
            assert also[2] in {base.__name__ for base in bases}


def test_each_error_is_explained() -> None:
    explained = first_cells(page("docs/errors.md").text)
    assert sorted(explained) == sorted(e.__name__ for e in ERRORS if e is not errors.AnarchonError)
    assert "`NoRetry`" in page("docs/errors.md").text


def test_no_other_code_is_spoken_of() -> None:
    spoken = {
        code for written in pages() for code in re.findall(r"\bANARCHON(?:_[A-Z]+)*", written.text)
    }
    assert spoken == {error.code for error in ERRORS}


# -- names -------------------------------------------------------------------------------------


def test_public_names_are_spoken_of_and_no_others() -> None:
    public = set(vars(anarchon)["__all__"])
    testing = {*vars(anarchon.testing)["__all__"], *vars(anarchon.testing.conformance)["__all__"]}
    spoken = {
        name
        for written in pages()
        for code in written.codes
        for name in re.findall(r"\b(?:[A-Z][a-z]+){1,}(?:Error|Info)?\b", code)
    }
    foreign = {"ValueError", "LookupError", "RuntimeError", "ZoneInfo", "Redis", "Europe"}
    foreign |= {"Mapping", "BaseException"}
    foreign |= {"Berlin", "None", "True", "False", "Bnet", "TypeError", "TimeoutError"}
    foreign |= {"SystemExit", "KeyboardInterrupt", "StopIteration"}
    assert spoken - foreign <= public | testing
    said = " ".join(written.text for written in pages())
    assert [name for name in public if not re.search(rf"\b{name}\b", said)] == []


@pytest.mark.parametrize(
    "kind",
    [
        anarchon.Run,
        anarchon.RunRecord,
        anarchon.AttemptRecord,
        anarchon.JobInfo,
        anarchon.Health,
        anarchon.Explanation,
        anarchon.JobState,
        anarchon.InstanceInfo,
        anarchon.Finding,
        anarchon.Event,
    ],
)
def test_attributes_are_listed(kind: type) -> None:
    attributes = [field.name for field in dataclasses.fields(kind)]
    attributes += [name for name, value in vars(kind).items() if isinstance(value, property)]
    name = "docs/events.md" if kind is anarchon.Event else "docs/runs.md"
    tables = re.split(r"\n\n", page(name).text)
    assert any(
        set(attributes) == set(first_cells(table)) - {kind.__name__}
        for table in tables
        if table.startswith("|")
    )


def test_each_reason_is_told() -> None:
    section = page("docs/runs.md").section("## `JobInfo`")
    told = set(first_cells(section.split("| `Reason` |")[1]))
    assert told == {str(reason) for reason in anarchon.Reason}


def test_each_status_and_trigger_is_told() -> None:
    told = {*page("docs/leases.md").codes, *page("docs/runs.md").codes}
    assert {str(status) for status in anarchon.RunStatus} <= told
    assert {str(trigger) for trigger in anarchon.Trigger} <= told


# -- keys --------------------------------------------------------------------------------------

KEYS = page("docs/keys.md")


def test_each_key_is_told() -> None:
    keys = Keys("cron:")
    table = KEYS.text.split("\n\n")[2]
    told = [name.replace("<job>", "j") for name in first_cells(table)]
    assert told == [*keys.of_job("j"), keys.format, keys.instances]


def test_encoding_is_told_as_it_is() -> None:
    (name, key), *_ = re.findall(r"job `([^`]*%[^`]*)` has the keys `([^`]+)`", KEYS.text)
    assert Keys("cron:").of_job(name)[0] == key


def test_each_field_of_a_job_is_told() -> None:
    written = {
        field
        for text in LUA.values()
        for call in re.findall(r"'(?:HSET|HGET|HMGET)', STATE, ([^)]+)\)", text)
        for field in re.findall(r"'([a-z][a-z:]+)'", call)
    }
    written |= {field for text in LUA.values() for field in re.findall(r"'(floor:\w+)'", text)}
    told = KEYS.text.split("Fields of `state` that belong to the job itself:")[1]
    assert set(first_cells(told.split("The other keys")[0])) == {*written, "floor"}


def test_each_member_of_a_presence_is_told() -> None:
    told = KEYS.text.split("- `cron:instances`")[1].split("## ")[0]
    assert set(first_cells(told)) == {f'"{name}"' for name in asyncio.run(_presence())}
    assert f"{presence.LONGEST_DEFINITIONS:,} characters" in told


async def _presence() -> dict[str, object]:
    backend = anarchon.MemoryBackend()
    scheduler = anarchon.Scheduler(backend=backend)
    scheduler.add_job(lambda: None, "@daily", name="audit")
    async with scheduler:
        (shown,) = (await backend.connect(timeout=5).instances()).instances
    return dict(json.loads(shown.told))


def test_each_letter_is_told() -> None:
    record = LUA["src/anarchon/backends/redis/lua/lib/record.lua"]
    told = dict(re.findall(r"^\| (\w+) \| (.+) \|$", KEYS.text, re.MULTILINE))
    letters = "".join(re.findall(r"'\^\(\[(\w+)\]\)", record))
    outcomes = {*"".join(re.findall(r"\(\[%-(\w+)\]\)", record)), "-"}
    assert sorted(re.findall(r"`(\w)`", told["letter"])) == sorted(letters)
    assert set(re.findall(r"`([\w-])`", told["outcome"])) - {"K"} == outcomes
