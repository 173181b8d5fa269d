"""Fixtures that every test may use: real servers, and the seed of everything drawn at random."""

from __future__ import annotations

import os
import secrets
import signal
import zlib
from typing import TYPE_CHECKING, Protocol, cast

import pytest
from hypothesis import HealthCheck, settings

from tests.support.server import Server
from tools import servers

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path
    from typing import Unpack

    from tests.support.server import Options

QUICK_SERVERS = ("redis7", "valkey9")
REQUIRE_ALL = os.environ.get("ANARCHON_REQUIRE_ALL") == "1"
EXHAUSTIVE = os.environ.get("ANARCHON_EXHAUSTIVE") == "1"
SESSION_SEED = int(os.environ.get("ANARCHON_SEED") or secrets.randbits(32))
os.environ["ANARCHON_SEED"] = str(SESSION_SEED)  # the workers of a parallel run draw from it too

# No deadline for one example and no complaint about slow data: the machine may be shared.
settings.register_profile(
    "anarchon",
    deadline=None,
    print_blob=True,
    max_examples=1000 if EXHAUSTIVE else 100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("anarchon")


def pytest_configure() -> None:
    # A test run that is told to end still ends its servers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    # What a worker of a parallel run tells must be UTF-8; some tests log what is not.
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections
    ]
    return report


def pytest_report_header() -> str:
    return f"anarchon: ANARCHON_SEED={SESSION_SEED} repeats what this run draws at random"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        fixtures: Sequence[str] = getattr(item, "fixturenames", ())
        if {"server", "start_server", *QUICK_SERVERS} & set(fixtures):
            item.add_marker("real")
    if EXHAUSTIVE or "exhaustive" in config.option.markexpr:
        return
    slow = [item for item in items if item.get_closest_marker("exhaustive")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]


def server_program(name: str) -> Path:
    """Return the program of a server of tools/servers.py; skip or fail the test without it."""
    try:
        return servers.locate(name)
    except servers.UnavailableError as error:
        if REQUIRE_ALL:
            pytest.fail(f"ANARCHON_REQUIRE_ALL=1, but {error}", pytrace=False)
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def redis7() -> Iterator[Server]:
    """Yield a Redis 7.0 that the whole session shares."""
    with Server(server_program("redis7")) as running:
        yield running


@pytest.fixture(scope="session")
def valkey9() -> Iterator[Server]:
    """Yield a Valkey 9.1 that the whole session shares."""
    with Server(server_program("valkey9")) as running:
        yield running


@pytest.fixture(autouse=True)
def _empty_shared_servers(request: pytest.FixtureRequest) -> None:
    """Take away what other tests left on a shared server, such as presence of the killed."""
    for name in QUICK_SERVERS:
        if name in request.fixturenames:
            shared: Server = request.getfixturevalue(name)
            shared.flush()


@pytest.fixture(params=QUICK_SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Yield each of the shared servers in turn, empty and without loaded scripts.

    The test must leave it running and configured as it was: to stop one, use `start_server`.
    """
    running: Server = request.getfixturevalue(request.param)
    running.flush()
    yield running
    running.flush()


class StartServer(Protocol):
    """Starts a server of the test's own."""

    def __call__(self, name: str = "valkey9", **options: Unpack[Options]) -> Server: ...


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    """Yield a function that starts servers of the test's own; they end with it."""
    started: list[Server] = []

    def start(name: str = "valkey9", **options: Unpack[Options]) -> Server:
        made = Server(server_program(name), **options)
        started.append(made)
        return made.start()

    yield start
    for made in reversed(started):
        made.close()


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Return this test's own seed; it is printed, and follows from ANARCHON_SEED and its name."""
    test = cast("pytest.Item", request.node)
    drawn = zlib.crc32(f"{SESSION_SEED}:{test.nodeid}".encode())
    print(f"seed {drawn} (ANARCHON_SEED={SESSION_SEED})")  # noqa: T201 shown when a test fails
    return drawn
