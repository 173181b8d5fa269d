"""TARGET: what can be named, and how each mistake is told."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Write
    from tests.cli.support import Commands

DECLARED = """
    from anarchon import MemoryBackend, Scheduler

    class Services:
        cron = Scheduler(backend=MemoryBackend())

    scheduler = Services.cron

    @scheduler.job("@daily")
    def rotate_keys():
        raise AssertionError("a job that is only named was run")

    @scheduler.job("@daily", name="other")
    def typed() -> None:
        raise AssertionError("a job that is only named was run")

    def make() -> Scheduler:
        return scheduler

    def make_for(name): ...

    async def make_later(): ...

    def count() -> int:
        return 3

    class Own(Scheduler):
        def __init__(self):
            super().__init__(backend=MemoryBackend())
"""


@pytest.mark.parametrize("path", ["scheduler", "make", "Services.cron"])
def test_a_scheduler_is_found_by_name_by_path_and_by_what_makes_it(
    write: Write, commands: Commands, path: str
) -> None:
    name = write(DECLARED)
    assert "rotate_keys" in commands("jobs", f"{name}:{path}").out


def test_a_class_of_ones_own_makes_a_scheduler(write: Write, commands: Commands) -> None:
    assert commands("jobs", f"{write(DECLARED)}:Own").out == "No job is declared.\n"


def test_a_module_in_a_package(write: Write, commands: Commands) -> None:
    assert "rotate_keys" in commands("jobs", f"{write(DECLARED, 'inner.jobs')}:scheduler").out


def test_the_working_folder_comes_first(
    write: Write, commands: Commands, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "app.py").write_text("raise AssertionError('the wrong one')")
    sys.path.insert(0, str(elsewhere))
    assert "rotate_keys" in commands("jobs", f"{write(DECLARED)}:scheduler").out


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("app", "TARGET 'app': give module:scheduler, such as app:scheduler"),
        ("app.jobs", "give module:scheduler, such as app:jobs"),
        ("app:", "give module:scheduler, such as app:scheduler"),
        (":scheduler", "give module:scheduler"),
        ("app.py:scheduler", "give a module, not a file: app:scheduler"),
        ("./src/app.py", "give a module, not a file: src.app:scheduler"),
        ("ap:scheduler", "there is no module 'ap' here; did you mean 'app'?"),
        ("app.jobs:scheduler", "there is no module 'app.jobs' here"),
        ("app:schedular", "app has no 'schedular'; did you mean 'scheduler'?"),
        ("app:Services.corn", "app.Services has no 'corn'; did you mean 'cron'?"),
        ("app:rotate_keys", "app:rotate_keys is a job, not a Scheduler; did you mean app:schedul"),
        ("app:typed", "app:typed is a function that returns nothing, not a Scheduler"),
        ("app:make_for", "app:make_for is a function that needs arguments, not a Scheduler"),
        ("app:make_later", "app:make_later is a coroutine function, not a Scheduler"),
        ("app:count", "app:count() returned an object of type int, not a Scheduler"),
        ("app:Services", "app:Services is the class Services itself, not a Scheduler"),
        ("app:Scheduler", "app:Scheduler is the class Scheduler itself, not a Scheduler"),
        ("app:__name__", "app:__name__ is an object of type str, not a Scheduler"),
    ],
)
def test_a_wrong_target_is_told_in_a_line(
    write: Write, commands: Commands, target: str, words: str
) -> None:
    write(DECLARED)
    assert words in commands.refused("jobs", target)


@pytest.mark.parametrize(
    "target",
    [
        "redis//:secret@localhost",
        ":secret@localhost:6379",
        "reddis://:secret@localhost",
        "redis://:secret@localhost:port",
        "redis://localhost?password=secret&unknown=1",
    ],
)
def test_a_url_gone_wrong_is_not_repeated(commands: Commands, target: str) -> None:
    assert "secret" not in commands.refused("jobs", target)


def test_a_url_in_the_wrong_place_loses_its_password(shop: str, commands: Commands) -> None:
    for wrong in ("redis://:secret@localhost/0", "redis://localhost?password=secret&db=1"):
        for arguments in ([wrong], ["nightly_report", wrong], [wrong, "now"]):
            told = commands.refused("why", shop, *arguments)
            assert "secret" not in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("from anarchon import nothing", "ImportError: cannot import name 'nothing'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def (", "SyntaxError: "),
    ],
)
def test_what_the_module_raises_is_shown_with_its_own_traceback(
    write: Write, commands: Commands, text: str, words: str
) -> None:
    told = commands("jobs", f"{write(text)}:scheduler", status=2)
    *trace, last = told.err.splitlines()
    assert last.startswith(f"anarchon: app cannot be imported: {words}")
    assert trace[0].startswith("Traceback") or "SyntaxError" in words
    assert "app.py" in "".join(trace[:2])
    assert "importlib" not in told.err
    assert "target.py" not in told.err
    assert told.out == ""


def test_a_factory_that_fails_is_shown_with_its_own_traceback(
    write: Write, commands: Commands
) -> None:
    name = write("def make():\n    raise LookupError('no settings')")
    told = commands("jobs", f"{name}:make", status=2)
    assert told.err.startswith('Traceback (most recent call last):\n  File "')
    assert told.err.endswith("anarchon: app:make() failed: LookupError: no settings\n")
    assert "target.py" not in told.err


def test_a_schedule_that_is_refused_is_told_with_its_place(
    write: Write, commands: Commands
) -> None:
    name = write("""
        from anarchon import Scheduler

        scheduler = Scheduler()

        @scheduler.job("61 * * * *")
        async def never() -> None: ...
    """)
    told = commands.refused("jobs", f"{name}:scheduler")
    assert told.startswith("anarchon: app.py:6: cron expression '61 * * * *': minute '61'")


def test_a_module_that_calls_sys_exit_is_told(write: Write, commands: Commands) -> None:
    told = commands.refused("jobs", f"{write('import sys; sys.exit(0)')}:scheduler")
    assert told == "anarchon: app.py:1: app cannot be imported: it called sys.exit(0)\n"


@pytest.mark.parametrize(
    "starting",
    [
        "scheduler.run()",
        "scheduler.in_background().start()",
        "asyncio.run(scheduler.start())",
    ],
)
def test_a_module_that_starts_its_scheduler_is_refused_before_anything_starts(
    write: Write, commands: Commands, starting: str
) -> None:
    name = write(f"""
        import asyncio
        from anarchon import MemoryBackend, Scheduler

        scheduler = Scheduler(backend=MemoryBackend())
        {starting}
    """)
    told = commands.refused("jobs", f"{name}:scheduler")
    assert told.startswith("anarchon: app.py:6: this starts the scheduler while its module is")
    assert '`if __name__ == "__main__":`' in told


def test_schedulers_start_again_after_a_target_is_loaded(shop: str, commands: Commands) -> None:
    assert commands("run-now", shop, "nightly_report").out == "{'rows': 3, 'attempt': 1}\n"


def test_a_module_with_a_main_part_is_imported_once_under_its_own_name(
    write: Write, commands: Commands
) -> None:
    name = write("""
        import builtins
        from anarchon import MemoryBackend, Scheduler

        print("imported as", __name__)
        scheduler = Scheduler(backend=MemoryBackend())
        import jobs_of_app

        if __name__ == "__main__":
            scheduler.run()
    """)
    write("from app import scheduler\nscheduler.job('@daily', name='x')(print)", "jobs_of_app")
    told = commands("jobs", f"{name}:scheduler")
    assert told.out.count("imported as") == 1
    assert "imported as app" in told.lines
    assert told.lines[2].startswith("x ")
