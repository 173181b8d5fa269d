"""Users with few permissions: the documented ones are enough, and each missing one is named."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from anarchon import RedisBackend
from anarchon.backends.base import ClaimCode, Outcome, Overlap
from anarchon.errors import StorePermissionError
from anarchon.testing.conformance import Clock, Subject
from tests.store.test_scripts import CALLED, FILES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anarchon.backends.redis.strategies.lease import LeaseStore
    from tests.support.server import Server

COMMANDS = sorted({command for path in FILES for command in CALLED.findall(path.read_text())})
KEYS = "~{cron:*}:* ~cron:format ~cron:instances"
ALLOWED = "+evalsha +script|load " + " ".join(f"+{command.lower()}" for command in COMMANDS)


def set_user(server: Server, rules: str) -> str:
    """Make the user `app` anew; answer a URL to connect as it."""
    server.command("ACL", "SETUSER", "app", "reset", "on", ">hunter2", *rules.split())
    return f"redis://app:hunter2@127.0.0.1:{server.port}"


async def opened(url: str) -> None:
    store = RedisBackend(redis=url).connect(timeout=10)
    try:
        assert await store.open() == ()
    finally:
        await store.close()


def test_the_minimal_permissions_are_enough_for_everything(server: Server) -> None:
    url = set_user(server, f"-@all {KEYS} {ALLOWED}")

    async def main() -> None:
        store = RedisBackend(redis=url).connect(timeout=10)
        assert await store.open() == ()
        await live_through_everything(store)
        await store.close()

    asyncio.run(main())
    denied = [str(entry) for entry in cast("list[object]", server.command("ACL", "LOG"))]
    assert [
        entry for entry in denied if "b'info" not in entry.lower() and "client" not in entry
    ] == []


async def live_through_everything(store: LeaseStore) -> None:
    """Take every branch that calls a command of its own: trimming, ageing, overlap, closing."""
    subject = Subject(store, Clock(), job="all {branches}")
    now = await store.clock("host:1:a", "alive", 1)
    await store.clock("host:1:a", "", 1)
    await subject.register()
    subject.set_terms(history_size=1, keep=0, history_ttl=1, overlap=Overlap.ALLOW)
    for number in range(4, 0, -1):
        slot = now - number
        assert (await subject.claim(slot)).code is ClaimCode.WON
        await subject.finish(slot, outcome=Outcome.NO_RETRY)
    await subject.claim(now)
    subject.set_terms(overlap=Overlap.SKIP)
    await subject.claim(now - 5)
    await subject.heartbeat(now)
    await subject.cancel(now)
    await subject.release(now)
    await store.pause(subject.job, 0, "")
    await store.resume(subject.job)
    assert len(await subject.runs()) > 0
    assert (await store.forget(subject.job)).ok


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_command_is_named_at_the_start(server: Server, command: str) -> None:
    url = set_user(server, f"-@all {KEYS} {ALLOWED} -{command.lower()}")
    with pytest.raises(StorePermissionError, match=rf"(?i)\b{command}\b") as caught:
        asyncio.run(opened(url))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("command", ["evalsha", "script|load"])
def test_a_missing_way_to_call_scripts_is_named(server: Server, command: str) -> None:
    url = set_user(server, f"-@all {KEYS} {ALLOWED.replace(f'+{command}', '')}")
    with pytest.raises(StorePermissionError, match=command.replace("|", ".")):
        asyncio.run(opened(url))


@pytest.mark.parametrize("missing", KEYS.split())
def test_missing_keys_are_refused_at_the_start(server: Server, missing: str) -> None:
    url = set_user(server, f"-@all {KEYS.replace(missing, '')} {ALLOWED}")
    with pytest.raises(StorePermissionError, match="key"):
        asyncio.run(opened(url))


def test_a_missing_info_permission_is_no_matter(server: Server) -> None:
    assert "+info" not in ALLOWED
    asyncio.run(opened(set_user(server, f"-@all {KEYS} {ALLOWED}")))


@pytest.mark.parametrize(
    "secret", ["redis://app:wrong-secret@127.0.0.1:{}", "redis://:wrong-secret@127.0.0.1:{}"]
)
def test_a_wrong_password_is_told_without_it(server: Server, secret: str) -> None:
    set_user(server, f"-@all {KEYS} {ALLOWED}")
    with pytest.raises(StorePermissionError, match="password") as caught:
        asyncio.run(opened(secret.format(server.port)))
    assert "wrong-secret" not in f"{caught.value!r} {caught.value} {caught.value.__cause__!r}"
    server.command("ACL", "LOG", "RESET")


@pytest.fixture(autouse=True)
def _without_the_user(server: Server) -> Iterator[None]:
    server.command("ACL", "LOG", "RESET")
    yield
    server.command("ACL", "DELUSER", "app")
    server.command("ACL", "LOG", "RESET")
