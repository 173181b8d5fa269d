"""What `check` finds at real servers, and what it says to do about it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from anarchon import Environment, RedisBackend, Scheduler
from anarchon.backends.base import STORE_FORMAT
from anarchon.engine.clock import SystemClock
from tests.docs.test_permissions import RULES
from tests.support.proxy import Fault, Proxy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anarchon import Finding
    from anarchon.engine.clock import Clock
    from tests.conftest import StartServer
    from tests.support.server import Server

BOTH = pytest.mark.parametrize("name", ["redis7", "valkey9"])
ALL = ["server", "eviction", "persistence", "permissions", "format", "latency", "clock"]


def scheduler_at(url: str, clock: Clock | None = None) -> Scheduler:
    """A scheduler with one job."""
    environment = Environment() if clock is None else Environment(clock=clock)
    made = Scheduler(backend=RedisBackend(redis=url), runner="me", environment=environment)
    made.add_job(lambda: None, "0 0 29 2 *", name="job")
    return made


def check(url: str, clock: Clock | None = None) -> Mapping[str, Finding]:
    """What check() finds, by subject."""
    findings = asyncio.run(scheduler_at(url, clock).check())
    assert len({finding.subject for finding in findings}) == len(findings)
    return {finding.subject: finding for finding in findings}


def only(url: str) -> Finding:
    """The one thing that check() finds where it can look no further."""
    (finding,) = check(url).values()
    assert finding.level == "error"
    assert finding.advice
    return finding


@BOTH
def test_a_server_as_it_should_be(start_server: StartServer, name: str) -> None:
    server = start_server(name, append_only=True)

    async def main() -> tuple[Finding, ...]:
        async with scheduler_at(server.url) as scheduler:
            return await scheduler.check()

    findings = asyncio.run(main())
    subjects = [finding.subject for finding in findings]
    assert subjects == [*(s for s in ALL if s != "persistence"), "instance", "jobs"]
    assert {(finding.level, finding.advice) for finding in findings} == {("ok", "")}
    assert findings[0].text.startswith({"redis7": "Redis 7.", "valkey9": "Valkey 9."}[name])


def test_a_new_server_gets_its_format_and_no_presence(server: Server) -> None:
    findings = check(server.url)
    assert server.command("KEYS", "*") == [b"cron:format"]
    assert findings["instances"].level == "error"


@BOTH
def test_a_server_that_evicts_and_keeps_nothing(start_server: StartServer, name: str) -> None:
    server = start_server(name, settings={"maxmemory": "64mb", "maxmemory-policy": "allkeys-lru"})
    findings = check(server.url)
    eviction, persistence = findings["eviction"], findings["persistence"]
    assert (eviction.level, persistence.level) == ("warning", "warning")
    assert "allkeys-lru" in eviction.text
    assert "noeviction" in eviction.advice
    assert "append-only" in persistence.text
    assert "appendonly yes" in persistence.advice
    server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
    server.command("CONFIG", "SET", "appendonly", "yes")
    findings = check(server.url)
    assert findings["eviction"].level == "ok"
    assert "persistence" not in findings


def test_a_slow_way_to_the_server(redis7: Server) -> None:
    with Proxy(redis7.port) as proxy:
        assert check(proxy.url)["latency"].level == "ok"
        proxy.fail(Fault.DELAY, matching="EVALSHA", seconds=0.07)
        latency = check(proxy.url)["latency"]
    assert latency.level == "warning"
    assert "nearer to the store" in latency.advice
    assert float(latency.text.split()[3]) == pytest.approx(72, abs=12)


class _Wrong(SystemClock):
    """A host whose wall clock is off."""

    def __init__(self, ahead: float) -> None:
        self._ahead = ahead

    def wall(self) -> int:
        return super().wall() + round(self._ahead * 1000)


@pytest.mark.parametrize(
    ("ahead", "level", "side"),
    [(30, "warning", "ahead of"), (-30, "warning", "behind"), (0.5, "ok", "ahead of")],
)
def test_the_clock_of_the_host(redis7: Server, ahead: float, level: str, side: str) -> None:
    clock = check(redis7.url, _Wrong(ahead))["clock"]
    assert clock.level == level
    assert clock.text.endswith(f" s {side} the store's")
    assert float(clock.text.split()[4]) == pytest.approx(abs(ahead), abs=0.1)
    assert ("NTP" in clock.advice) == (level == "warning")


@pytest.mark.parametrize("missing", ["+xdel", "+srandmember", "+del", "~cron:instances"])
def test_a_missing_permission(start_server: StartServer, missing: str) -> None:
    rules = " ".join(word for word in RULES.split() if word != missing)
    server = start_server("valkey9", users=[rules])
    finding = only(f"redis://anarchon:secret@127.0.0.1:{server.port}")
    assert finding.subject == "permissions"
    assert "page on keys" in finding.advice
    assert missing[1:] in finding.text or "key" in finding.text
    assert "secret" not in f"{finding}"


@BOTH
def test_the_minimal_permissions_are_enough(start_server: StartServer, name: str) -> None:
    server = start_server(name, users=[RULES])
    findings = check(f"redis://anarchon:secret@127.0.0.1:{server.port}")
    assert {f.subject: f.level for f in findings.values()} == {
        "server": "ok",
        "permissions": "ok",
        "format": "ok",
        "latency": "ok",
        "clock": "ok",
        "instances": "error",
        "jobs": "ok",
    }
    assert "no permission for INFO" in findings["server"].text


def test_a_wrong_password_is_a_finding_without_it(start_server: StartServer) -> None:
    server = start_server("valkey9", password="right")
    finding = only(f"redis://:wrong-secret@127.0.0.1:{server.port}")
    assert finding.subject == "permissions"
    assert "password" in finding.text
    assert "wrong-secret" not in f"{finding}"


def test_a_newer_format(redis7: Server) -> None:
    redis7.command("SET", "cron:format", str(STORE_FORMAT + 1))
    finding = only(redis7.url)
    assert finding.subject == "format"
    assert f"format {STORE_FORMAT + 1}" in finding.text
    assert "Upgrade anarchon here" in finding.advice


@BOTH
def test_a_replica(start_server: StartServer, name: str) -> None:
    replica = start_server(name, replica_of=start_server(name))
    finding = only(replica.url)
    assert finding.subject == "server"
    assert "replica" in finding.text
    assert "primary" in finding.advice


def test_a_server_that_does_not_answer(redis7: Server) -> None:
    with Proxy(redis7.port) as proxy:
        proxy.fail(Fault.BLACK_HOLE)
        scheduler = Scheduler(backend=RedisBackend(redis=proxy.url), lease=0.5)
        (finding,) = asyncio.run(scheduler.check())
    assert (finding.subject, finding.level) == ("server", "error")
    assert "no answer within" in finding.text
    assert "Is the address right" in finding.advice


def test_a_server_that_is_down(start_server: StartServer) -> None:
    server = start_server()
    server.stop()
    finding = only(server.url)
    assert finding.subject == "server"
    assert "no connection to the store" in finding.text
    assert "Is the address right" in finding.advice


def test_instances_that_declare_different_jobs(redis7: Server) -> None:
    async def main() -> tuple[Finding, ...]:
        other = Scheduler(backend=RedisBackend(redis=redis7.url), runner="other")
        other.add_job(lambda: None, "0 3 * * *", name="job", timeout=5)
        async with other:
            return await scheduler_at(redis7.url).check()

    *_, instance, job = asyncio.run(main())
    assert (instance.subject, instance.level) == ("instance", "ok")
    assert instance.text.startswith("other: last seen ")
    assert (job.subject, job.level) == ("job", "warning")
    assert job.text == (
        "job differs: cron:0 0 29 2 *@UTC (this process); cron:0 3 * * *@UTC timeout=5 (other)"
    )


def test_a_started_scheduler_asks_the_store_that_it_uses(redis7: Server) -> None:
    async def main() -> tuple[Finding, ...]:
        async with scheduler_at(redis7.url) as scheduler:
            redis7.command("SET", "cron:format", str(STORE_FORMAT + 1))
            findings = await scheduler.check()
            assert scheduler.health().running
            return findings

    (finding,) = asyncio.run(main())
    assert finding.subject == "format"
