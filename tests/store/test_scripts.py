"""The Lua files: complete contracts, and a script cache that may be emptied at any time."""

from __future__ import annotations

import asyncio
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import anarchon.backends.redis
from anarchon import RedisBackend
from anarchon.backends.base import ClaimCode
from anarchon.backends.redis.scripts import script
from anarchon.testing.conformance import Clock, Subject

if TYPE_CHECKING:
    from tests.support.server import Server

LUA = Path(anarchon.backends.redis.__file__).parent / "lua"
FILES = sorted(LUA.rglob("*.lua"))
COMMANDS = sorted(path.stem for path in LUA.glob("*.lua"))
CALLED = re.compile(r"redis\.p?call\('([A-Z]+)'")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_script_opens_with_its_contract(name: str) -> None:
    head = (LUA / f"{name}.lua").read_text().splitlines()
    contract = "\n".join(line for line in head if line.startswith("--"))
    assert head[0].startswith(f"-- {name}: ")
    assert all(word in contract for word in ("KEYS  1", "ARGV  1", "Answers  "))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_script_is_whole_and_known_by_its_digest(name: str) -> None:
    made = script(name)
    assert "-- include " not in made.text
    digest = hashlib.sha1(made.text.encode(), usedforsecurity=False).hexdigest()
    assert (made.name, made.sha) == (name, digest)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_script_asks_for_effects_replication_first(name: str) -> None:
    code = [line for line in script(name).text.splitlines() if not re.match(r"\s*(--|$)", line)]
    if name == "check":
        assert "TIME" not in code[0]  # writes nothing
    else:
        assert code[0] == "if redis.replicate_commands then redis.replicate_commands() end"


def test_the_check_tries_every_command_that_a_script_calls() -> None:
    called = {command for path in FILES for command in CALLED.findall(path.read_text())}
    tried = set(re.findall(r"\{'([A-Z]+)'", (LUA / "check.lua").read_text()))
    assert called
    assert tried == called


def test_a_command_is_always_named_in_the_script() -> None:
    for path in FILES:
        if path.name != "check.lua":
            calls = re.findall(r"redis\.p?call\((.{0,20})", path.read_text())
            assert [call for call in calls if not re.match(r"'[A-Z]+'", call)] == [], path.name


def test_a_flushed_script_cache_is_healed(server: Server) -> None:
    async def main() -> None:
        store = RedisBackend(redis=server.url).connect(timeout=10)
        await store.open()
        now = await store.clock("", "", 0)
        subject = Subject(store, Clock(), job="flushed")
        server.command("SCRIPT", "FLUSH")
        assert (await subject.claim(now)).code is ClaimCode.WON
        server.command("SCRIPT", "FLUSH")
        assert (await subject.heartbeat(now)).ok
        server.command("SCRIPT", "FLUSH")
        assert (await subject.finish(now)).ok
        await store.close()

    asyncio.run(main())


def test_twenty_claims_just_after_a_flush(server: Server) -> None:
    async def main() -> None:
        stores = [RedisBackend(redis=server.url).connect(timeout=10) for _ in range(2)]
        for store in stores:
            await store.open()
        now = await stores[0].clock("", "", 0)
        subjects = [Subject(stores[n % 2], Clock(), job=f"flushed {n // 2}") for n in range(20)]
        server.command("SCRIPT", "FLUSH")
        answers = await asyncio.gather(
            *(subject.claim(now, f"token-{n}") for n, subject in enumerate(subjects))
        )
        for one, other in zip(answers[::2], answers[1::2], strict=True):
            assert {one.code, other.code} == {ClaimCode.WON, ClaimCode.RUNNING}
        for store in stores:
            await store.close()

    asyncio.run(main())


def test_many_claims_for_one_run_have_one_winner(server: Server) -> None:
    async def main() -> None:
        stores = [RedisBackend(redis=server.url).connect(timeout=10) for _ in range(4)]
        now = await stores[0].clock("", "", 0)
        subjects = [Subject(stores[n % 4], Clock(), job="wanted") for n in range(60)]
        answers = await asyncio.gather(
            *(subject.claim(now, f"token-{n}") for n, subject in enumerate(subjects))
        )
        codes = [answer.code for answer in answers]
        assert codes.count(ClaimCode.WON) == 1
        assert codes.count(ClaimCode.RUNNING) == 59
        for store in stores:
            await store.close()

    asyncio.run(main())
