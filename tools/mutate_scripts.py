"""Proves that the tests can fail: turns each rule of the Lua scripts round and looks who notices.

    python -m tools.mutate_scripts                    all mutants; fails if one survives unexplained
    python -m tools.mutate_scripts claim lib/trim     those of some scripts
    python -m tools.mutate_scripts --table            also a Markdown table: rule, tests that fail

Each mutant (tools/mutants.py) meets the conformance suite on a Valkey of its own, then the
comparison with the reference with a fixed seed, then the other tests of tests/store, until one
fails. Those that no test can tell from the original are listed below with the reason.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import multiprocessing
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anarchon.backends.redis import scripts
from anarchon.testing import conformance
from tests.conformance.test_conformance import run_on_server
from tests.store.test_stateful import compare
from tests.support.server import Server
from tools import servers
from tools.equivalent_mutants import EQUIVALENT
from tools.mutants import Mutant, by_name, mutants

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

WORKERS = 2
SEED = 20
EXAMPLES = 200
# Nothing there that the comparison with the reference calls.
NOT_COMPARED = ("format.lua", "clock.lua", "instances.lua", "look.lua", "lib/begin.lua")
OTHER_TESTS = (
    "test_opening.py",
    "test_scripts.py",
    "test_permissions.py",
    "test_history_reading.py",
    "test_presence.py",
    "test_look.py",
    "test_damaged_fields.py",
)

_READ = scripts._read  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


@dataclass(frozen=True)
class Verdict:
    """Which test noticed a mutant; none if it survived."""

    mutant: Mutant
    caught_by: str


def judge(name: str) -> Verdict:
    """Run the tests with a mutant, the quickest first, until one fails."""
    mutant = by_name(name)
    for notice in (_conformance,) if mutant.file in NOT_COMPARED else (_conformance, _comparison):
        with Server(servers.locate("valkey9")) as server, _applied(mutant):
            caught_by = notice(server)
        if caught_by:
            return Verdict(mutant, caught_by)
    return Verdict(mutant, _other_tests(mutant))


@contextlib.contextmanager
def _applied(mutant: Mutant) -> Generator[None]:
    mutant.apply()
    try:
        yield
    finally:
        scripts._read = _READ  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        scripts.script.cache_clear()


def _conformance(server: Server) -> str:
    for check in conformance.CHECKS:
        if _fails(functools.partial(run_on_server, server, check)):
            return check.name
    return ""


def _comparison(server: Server) -> str:
    seen = _fails(lambda: compare([("valkey9", server)], SEED, EXAMPLES, shrink=False))
    return "test_stateful" if seen else ""


def _fails(test: Callable[[], None]) -> bool:
    try:
        test()
    except Exception:  # noqa: BLE001 - whatever way a test fails
        return True
    return False


def _other_tests(mutant: Mutant | None) -> str:
    tests = [f"tests/store/{file}" for file in OTHER_TESTS]
    plugin = ("-p", "tools.mutant_plugin", "--mutant", mutant.name) if mutant else ()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", *plugin, *tests],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode == 0:
        return ""
    return failed[0].split("::")[-1].split(" - ")[0].partition("[")[0] if failed else done.stdout


def _unchanged() -> str:
    """Which test fails without any change: then nothing can be learnt."""
    with Server(servers.locate("valkey9")) as server:
        return _conformance(server) or _comparison(server) or _other_tests(None)


def _report(verdicts: Sequence[Verdict], *, whole: bool) -> int:
    survived = [v.mutant for v in verdicts if not v.caught_by and v.mutant.key not in EQUIVALENT]
    listed = [v.mutant for v in verdicts if not v.caught_by and v.mutant.key in EQUIVALENT]
    keys = {v.mutant.key for v in verdicts if not v.caught_by}
    stale = [key for key in EQUIVALENT if key not in keys] if whole else []
    print(f"{len(verdicts)} mutants, {len(listed)} equivalent, {len(survived)} survived")
    for mutant in survived:
        print(f"survived    {mutant.name}: {mutant.change}    in `{mutant.rule}`")
    for key in stale:
        print(f"no longer equivalent, or gone: {key}")
    return 1 if survived or stale else 0


def _print_table(verdicts: Sequence[Verdict]) -> None:
    rows: dict[tuple[str, int, str], list[str]] = {}
    for verdict in verdicts:
        mutant = verdict.mutant
        tests = rows.setdefault((mutant.file, mutant.line, mutant.rule), [])
        if verdict.caught_by and verdict.caught_by not in tests:
            tests.append(verdict.caught_by)
    print("| script | rule | tests that fail when it is turned round |\n|---|---|---|")
    for (file, _, rule), tests in rows.items():
        escaped = rule.replace("|", "\\|")
        print(f"| {file} | `{escaped}` | {', '.join(tests) or 'none: see equivalent_mutants.py'} |")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the answer is the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate_scripts", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help="claim, lib/trim, ...")
    parser.add_argument("--table", action="store_true", help="print what each was caught by")
    parser.add_argument("--mutant", action="append", default=[], help="only this one, by its name")
    chosen = parser.parse_args(arguments)
    names = chosen.mutant or [
        mutant.name
        for mutant in mutants()
        if not chosen.scripts or mutant.file.removesuffix(".lua") in chosen.scripts
    ]
    broken = _unchanged()
    if broken:
        print(f"{broken} fails without any mutant: mend that first")
        return 1
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
        verdicts: list[Verdict] = []
        for verdict in pool.map(judge, names):
            verdicts.append(verdict)
            print(f"{verdict.mutant.name:32} {verdict.caught_by or 'SURVIVED'}", file=sys.stderr)
    if chosen.table:
        _print_table(verdicts)
    return _report(verdicts, whole=not (chosen.scripts or chosen.mutant))


if __name__ == "__main__":
    sys.exit(main())
