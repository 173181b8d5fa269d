"""`anarchon check`: findings with what to do, and an exit status for scripts."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from anarchon.cli import main
from tests.cli.told import TOLD

if TYPE_CHECKING:
    from tests.cli.conftest import Write
    from tests.cli.support import Commands
    from tests.conftest import StartServer
    from tests.support.server import Server

FINDINGS = """
    FINDINGS = (
        Finding("server", "ok", "Valkey 9.1.2"),
        Finding("eviction", "warning", "the server may evict keys of anarchon, and then a run could"
                " be started twice", "Set maxmemory-policy noeviction, which is also what queues,"
                " locks and sessions need."),
        Finding("store", "error", "gone \\x1b[2J", "Look."),
    )
"""


@pytest.fixture
def told(write: Write) -> str:
    return f"{write(TOLD + FINDINGS)}:scheduler"


def test_screen(told: str, commands: Commands) -> None:
    assert commands("check", told, status=1).out == (
        "ok       server: Valkey 9.1.2\n"
        "warning  eviction: the server may evict keys of anarchon, and then a run could\n"
        "         be started twice\n"
        "         -> Set maxmemory-policy noeviction, which is also what queues, locks\n"
        "            and sessions need.\n"
        "error    store: gone \\x1b[2J\n"
        "         -> Look.\n"
        "\n"
        "1 error, 1 warning\n"
    )


def test_levels_have_colours_on_a_terminal(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    assert main(["check", told]) == 1
    shown = screen.getvalue()
    assert "\x1b[33mwarning\x1b[0m  eviction: " in shown
    assert "\x1b[31merror\x1b[0m    store: gone \\x1b[2J\n" in shown


def test_json(told: str, commands: Commands) -> None:
    answer = commands("check", told, "--json", status=1).json
    findings = answer.pop("findings")
    assert answer == {"ok": False, "errors": 1, "warnings": 1}
    assert findings[0] == {"subject": "server", "level": "ok", "text": "Valkey 9.1.2", "advice": ""}
    assert [each["level"] for each in findings] == ["ok", "warning", "error"]
    assert findings[2]["text"] == "gone \x1b[2J"


def test_warnings_alone_are_no_failure(write: Write, commands: Commands) -> None:
    name = write(f"{TOLD}    FINDINGS = (Finding('clock', 'warning', 'late', ''),)\n")
    assert commands("check", f"{name}:scheduler").lines[-1] == "1 warning"
    answer = commands("check", f"{name}:scheduler", "--json").json
    assert (answer["ok"], answer["errors"], answer["warnings"]) == (True, 0, 1)


def test_all_is_well(write: Write, commands: Commands) -> None:
    name = write(f"{TOLD}    FINDINGS = (Finding('clock', 'ok', 'fine'),) * 2\n")
    assert commands("check", f"{name}:scheduler").lines[-1] == "All is well."


def test_of_a_module_and_of_a_url(server: Server, write: Write, commands: Commands) -> None:
    name = write(f"""
        from anarchon import RedisBackend, Scheduler
        scheduler = Scheduler(backend=RedisBackend(redis="{server.url}"))
        scheduler.add_job(print, "@yearly", name="count")
    """)
    for target in (f"{name}:scheduler", server.url):
        shown = commands("check", target, status=1).out
        assert "\nok       permissions: " in shown
        assert "no instance" in shown
    assert server.command("KEYS", "*") == [b"cron:format"]


def test_what_is_wrong_is_a_finding(start_server: StartServer, commands: Commands) -> None:
    server = start_server(password="the-secret")
    wrong = server.url.replace("the-secret", "another-secret")
    server.stop()
    away = commands("check", server.url, status=1)
    assert "error    " in away.out
    assert away.err == ""
    server.start()
    shown = commands("check", wrong, status=1)
    assert "error    permissions: the store does not accept user and password" in shown.out
    told = away.out + away.err + shown.out + shown.err
    assert "secret" not in told
