"""`anarchon history`: exactly what it prints, as a screen and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.told import TOLD

if TYPE_CHECKING:
    from tests.cli.conftest import Write
    from tests.cli.support import Commands
    from tests.support.server import Server

RUNS = """
    HISTORY = (
        R("report", "1796008000000", at("03:06:40"), T.SCHEDULE, S.RUNNING, (
            A(1, S.INTERRUPTED, "app-1:7:c9d147", None, at("03:07:00"), None),
            A(2, S.RUNNING, "app-2:8:51db9d", at("03:07:00.5"), None, None))),
        R("report", "m1796007000000-ab", at("02:50:00.25"), T.MANUAL, S.SUCCEEDED, (
            A(1, S.SUCCEEDED, "app-1:7:c9d147", at("02:50:00.25"), at("02:50:01.49"), None),)),
        R("report", "1796006000000", at("02:33:20"), T.CATCH_UP, S.FAILED, (
            A(1, S.TIMED_OUT, "app-1:7:c9d147", at("02:33:20"), at("02:36:32"), "TimeoutError"),
            A(2, S.FAILED, "app-2:8:51db9d", at("02:40:00"), at("02:40:00.012"),
              "ValueError: no \\x1b[31msuch\\n  File x"))),
        R("report", "1796005000000", at("02:16:40"), T.SCHEDULE, S.FAILED, (
            A(1, S.FAILED, "app-1:7:c9d147", at("02:16:40"), at("02:16:41"), "KeyError: 'a'"),)),
        R("report", "1796004000000", at("02:00:00"), T.SCHEDULE, S.SKIPPED, ()),
    )
"""

SCREEN = r"""
RUN                             STATUS     TOOK   INSTANCE
Mon 2026-11-30 04:06:40 +01:00  running           app-2:8:51db9d
  attempt 1 interrupted on app-1:7:c9d147
  attempt 2 running since Mon 2026-11-30 04:07:00 +01:00 on app-2:8:51db9d
Mon 2026-11-30 03:50:00 +01:00  succeeded  1.2 s  app-1:7:c9d147
  manual: m1796007000000-ab
Mon 2026-11-30 03:33:20 +01:00  failed     12 ms  app-2:8:51db9d
  catch-up
  attempt 1 timed-out after 3 min 12 s on app-1:7:c9d147: TimeoutError
  attempt 2 failed after 12 ms on app-2:8:51db9d: ValueError: no \x1b[31msuch
Mon 2026-11-30 03:16:40 +01:00  failed     1.0 s  app-1:7:c9d147
  KeyError: 'a'
Mon 2026-11-30 03:00:00 +01:00  skipped
"""


@pytest.fixture
def told(write: Write) -> str:
    return f"{write(TOLD + RUNS)}:scheduler"


def test_screen(told: str, commands: Commands) -> None:
    assert commands("history", told, "report").out == SCREEN.lstrip()


def test_as_many_runs_as_asked_for(told: str, commands: Commands) -> None:
    assert len(commands("history", told, "report", "-n", "2").lines) == 6


def test_json(told: str, commands: Commands) -> None:
    assert commands("history", told, "report", "-n", "1", "--json").json == {
        "job": "report",
        "runs": [
            {
                "id": "1796008000000",
                "slot": "2026-11-30T03:06:40+00:00",
                "trigger": "schedule",
                "status": "running",
                "attempts": [
                    {
                        "number": 1,
                        "status": "interrupted",
                        "runner": "app-1:7:c9d147",
                        "start": None,
                        "end": "2026-11-30T03:07:00+00:00",
                        "duration": None,
                        "error": None,
                    },
                    {
                        "number": 2,
                        "status": "running",
                        "runner": "app-2:8:51db9d",
                        "start": "2026-11-30T03:07:00.500000+00:00",
                        "end": None,
                        "duration": None,
                        "error": None,
                    },
                ],
            }
        ],
    }


def test_runs_of_a_fraction_of_a_second_show_it(write: Write, commands: Commands) -> None:
    name = write(
        TOLD
        + """
    HISTORY = tuple(R("sync", "1", at(each), T.SCHEDULE, S.SKIPPED, ()) for each in
                    ("03:00:01.5", "03:00:00"))
    """
    )
    shown = commands("history", f"{name}:scheduler", "sync").out
    assert "Mon 2026-11-30 03:00:01.500 +00:00  skipped\n" in shown
    assert "Mon 2026-11-30 03:00:00.000 +00:00  skipped\n" in shown


def test_a_job_without_runs(shop: str, commands: Commands) -> None:
    assert commands("history", shop, "endless").out == "No run of endless is stored.\n"
    assert commands("history", shop, "endless", "--json").json == {"job": "endless", "runs": []}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["night"], "no job 'night' is declared here, and the store knows of none"),
        (["nightly_repot"], "did you mean 'nightly_report'?"),
        (["endless", "-n", "0"], "-n '0': give a whole number from 1 to 10000"),
        ([""], "give a job a name"),
        (["x" * 513], "at most 512"),
    ],
)
def test_what_cannot_be_is_refused(
    shop: str, commands: Commands, arguments: list[str], words: str
) -> None:
    assert words in commands.refused("history", shop, *arguments)


def test_a_manual_run_is_told_with_its_id(shop: str, commands: Commands) -> None:
    commands("run-now", shop, "nightly_report")
    first, run, note = commands("history", shop, "nightly_report").lines
    [known] = commands("history", shop, "nightly_report", "--json").json["runs"]
    assert first.split() == ["RUN", "STATUS", "TOOK", "INSTANCE"]
    assert run.endswith("app-1")
    assert note == f"  manual: {known['id']}"


def test_by_the_url_of_the_store(server: Server, write: Write, commands: Commands) -> None:
    name = write(f"""
        from anarchon import RedisBackend, Scheduler
        backend = RedisBackend(redis="{server.url}", prefix="shop:")
        scheduler = Scheduler(backend=backend, runner="app-1")
        scheduler.add_job(lambda: 1, "@daily", name="count", timezone="Asia/Tokyo")
    """)
    commands("run-now", f"{name}:scheduler", "count")
    by_code = commands("history", f"{name}:scheduler", "count")
    by_url = commands("history", server.url, "count", "--prefix", "shop:")
    assert "+09:00  succeeded" in by_code.out
    assert "+00:00  succeeded" in by_url.out
    assert by_code.lines[2] == by_url.lines[2]
    assert "the store knows of none" in commands.refused("history", server.url, "count")
