"""Imports of the package run one way only; what breaks that is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.imports import broken_rules, read_imports

SOURCE = Path(__file__).parent.parent / "src"


def test_imports_run_one_way() -> None:
    imports = read_imports(SOURCE)
    assert imports, f"no imports found below {SOURCE}"
    assert "\n".join(broken_rules(imports)) == ""


BROKEN = {
    "errors imports backends": (
        {"errors.py": "import anarchon.backends.base", "backends/base.py": ""},
        "errors.py:1: errors imports backends.base",
    ),
    "base imports a backend": (
        {"backends/base.py": "from anarchon.backends import memory", "backends/memory.py": ""},
        "backends/base.py:1: backends.base imports backends.memory",
    ),
    "backend imports engine": (
        {"backends/memory.py": "from anarchon.engine.clock import Clock", "engine/clock.py": ""},
        "backends/memory.py:1: backends.memory imports engine.clock",
    ),
    "engine knows a backend": (
        {"engine/claims.py": "from ..backends.memory import M", "backends/memory.py": ""},
        "engine/claims.py:1: engine.claims imports backends.memory",
    ),
    "engine imports scheduler": (
        {
            "engine/claims.py": "if TYPE_CHECKING:\n    from anarchon.scheduler import Scheduler",
            "scheduler.py": "",
        },
        "engine/claims.py:2: engine.claims imports scheduler",
    ),
    "a client library in a strategy": (
        {"backends/redis/strategies/lease.py": "def f():\n    from redis.asyncio import Redis"},
        "lease.py:2: client library redis is imported outside backends.redis.clients",
    ),
    "a client library's types in the engine": (
        {"engine/claims.py": "if TYPE_CHECKING:\n    from valkey import Valkey"},
        "claims.py:2: client library valkey is imported outside backends.redis",
    ),
    "cli reaches inside": (
        {"cli/why.py": "from anarchon.engine import timeline", "engine/timeline.py": ""},
        "cli/why.py:1: cli uses the public names",
    ),
    "testing is imported": (
        {"scheduler.py": "from anarchon.testing.clock import T", "testing/clock.py": ""},
        "scheduler.py:1: nothing in src imports anarchon.testing",
    ),
    "scheduler imports the package": (
        {"scheduler.py": "from anarchon import Run"},
        "scheduler.py:1: scheduler imports anarchon, which is above it",
    ),
    "a cycle": (
        {
            "engine/a.py": "from anarchon.engine.b import x",
            "engine/b.py": "from anarchon.engine import c",
            "engine/c.py": "import anarchon.engine.a",
        },
        "engine/a.py:1: import cycle engine.a -> engine.b -> engine.c -> engine.a",
    ),
}


@pytest.mark.parametrize(("files", "complaint"), BROKEN.values(), ids=BROKEN)
def test_broken_rule_is_named_with_its_line(
    tmp_path: Path, files: dict[str, str], complaint: str
) -> None:
    found = broken_rules(read_imports(_write(tmp_path, files)))
    assert len(found) == 1
    assert complaint in found[0]


def test_allowed_imports_pass(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from anarchon.scheduler import Scheduler",
        "errors.py": "import enum",
        "schedules/cron.py": "from anarchon import errors\nfrom .fields import F",
        "schedules/fields.py": "",
        "backends/base.py": "from anarchon.errors import E\nfrom anarchon.runs import Run",
        "runs.py": "if TYPE_CHECKING:\n    from anarchon.schedules.cron import C",
        "backends/memory.py": "from anarchon.backends.base import B",
        "backends/redis/backend.py": "if TYPE_CHECKING:\n    import redis.asyncio",
        "backends/redis/clients/redis_py.py": "import redis.asyncio",
        "engine/claims.py": "from anarchon.backends.base import B\nfrom anarchon.engine import x",
        "engine/x.py": "",
        "scheduler.py": "from anarchon.backends.memory import M\nfrom anarchon.engine import x",
        "cli/__init__.py": "from anarchon.cli import demo",
        "cli/demo.py": "from anarchon import Scheduler\nimport typer",
        "testing/cluster.py": "from anarchon.engine import claims\nfrom anarchon import Scheduler",
    }
    assert broken_rules(read_imports(_write(tmp_path, files))) == []


def _write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / "src" / "anarchon" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "src"
