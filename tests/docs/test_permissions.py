"""The ACL line on the page is all that a user needs, and no more than the scripts call."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

from anarchon import RedisBackend, Scheduler, StorePermissionError
from tests.docs.pages import page
from tests.docs.test_reference import LUA

if TYPE_CHECKING:
    from tests.conftest import StartServer

LINE = next(
    block.text.strip()
    for block in page("docs/keys.md").blocks
    if block.text.startswith("ACL SETUSER")
)
RULES = LINE.removeprefix("ACL SETUSER ")
COMMANDS = {word[1:] for word in LINE.split() if word.startswith("+")}
OUTSIDE_SCRIPTS = {"evalsha", "script|load"}


def test_commands_are_those_that_the_scripts_call() -> None:
    called = {
        command.lower()
        for text in LUA.values()
        for command in re.findall(r"redis\.p?call\('([A-Z]+)'", text)
    }
    assert called | OUTSIDE_SCRIPTS == COMMANDS


def test_start_tries_each_of_them() -> None:
    check = LUA["src/anarchon/backends/redis/lua/check.lua"]
    tried = {command.lower() for command in re.findall(r"\{'([A-Z]+)'", check)}
    assert tried | OUTSIDE_SCRIPTS == COMMANDS


async def work(url: str) -> list[object]:
    scheduler = Scheduler(backend=RedisBackend(redis=url), history_size=1, history_ttl=0.001)

    async def audit() -> str:
        return "done"

    scheduler.add_job(audit, "@daily", name="audit", max_late=1)
    async with scheduler:
        answers = [await scheduler.run_now("audit") for _ in range(3)]
        return [*answers, len(await scheduler.history("audit"))]


@pytest.mark.parametrize("name", ["redis7", "valkey9"])
def test_a_user_with_it_can_run_jobs(name: str, start_server: StartServer) -> None:
    server = start_server(name, users=[RULES])
    url = f"redis://anarchon:secret@127.0.0.1:{server.port}"
    assert asyncio.run(work(url)) == ["done", "done", "done", 1]


@pytest.mark.parametrize("command", ["xdel", "srandmember", "del"])
def test_a_command_that_is_missing_is_named_at_the_start(
    command: str, start_server: StartServer
) -> None:
    rules = " ".join(word for word in RULES.split() if word != f"+{command}")
    server = start_server("valkey9", users=[rules])
    url = f"redis://anarchon:secret@127.0.0.1:{server.port}"
    with pytest.raises(StorePermissionError, match=rf"may not call: {command}\."):
        asyncio.run(work(url))
