"""What a call may and may not say of itself when connections break: unknown stays unknown."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

import pytest

from anarchon.backends.redis.clients.base import Argument, NoScript, Reply
from anarchon.backends.redis.connection import CALLS_AT_ONCE, Connection
from anarchon.backends.redis.scripts import script
from anarchon.errors import StoreError, StoreRefused, StoreUnavailable
from tests.store.blocking import KEYS

if TYPE_CHECKING:
    from collections.abc import Sequence

OK: Reply = ["ok", 1]
CUT = StoreUnavailable("cut")
RESTARTED = StoreUnavailable("cut, and the scripts are gone")
REFUSED = StoreRefused("READONLY")
NO_SCRIPT = NoScript("NOSCRIPT")

Answer: TypeAlias = "Reply | StoreError"


class Scripted:
    """A server whose scripts, once loaded, answer what comes next; notes what it was sent."""

    def __init__(
        self, answers: Sequence[Answer], *, loaded: bool = True, load: Answer = "sha"
    ) -> None:
        self.answers = list(answers)
        self.loaded = loaded
        self.load = load
        self.sent: list[tuple[Argument, ...]] = []
        self.closed = 0

    async def send(self, *command: Argument) -> Reply:
        self.sent.append(command)
        answer = self._answer(str(command[0]))
        if isinstance(answer, StoreError):
            raise answer
        return answer

    def _answer(self, name: str) -> Answer:
        if name == "SCRIPT":
            self.loaded = not isinstance(self.load, StoreError)
            return self.load
        if not self.loaded:
            return NO_SCRIPT
        answer = self.answers.pop(0)
        self.loaded = answer is not RESTARTED
        return answer

    async def send_many(self, commands: Sequence[Sequence[Argument]]) -> list[Reply]:
        return [await self.send(*command) for command in commands]

    async def close(self) -> None:
        self.closed += 1
        raise OSError


def call(client: Scripted) -> list[Reply]:
    async def main() -> list[Reply]:
        return await Connection(lambda _: client, KEYS, 5.0).call("clock", ["k"], ["", "", 0, ""])

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("answers", "loaded", "loads"),
    [([OK], True, 0), ([CUT, OK], True, 0), ([OK], False, 1), ([RESTARTED, OK], True, 1)],
)
def test_one_fault_is_healed(answers: list[Answer], loaded: bool, loads: int) -> None:
    client = Scripted(answers, loaded=loaded)
    assert call(client) == OK
    assert [command[0] for command in client.sent].count("SCRIPT") == loads
    assert len(client.sent) <= 4


@pytest.mark.parametrize(
    ("client", "error"),
    [
        (Scripted([REFUSED]), StoreRefused),
        (Scripted([], loaded=False, load=REFUSED), StoreRefused),
        (Scripted([REFUSED], loaded=False), StoreRefused),
        (Scripted([CUT, CUT], loaded=False), StoreUnavailable),
        (Scripted([CUT, CUT, CUT]), StoreUnavailable),
        (Scripted([CUT, CUT, REFUSED]), StoreUnavailable),
        (Scripted([CUT, REFUSED]), StoreUnavailable),
        (Scripted([RESTARTED], load=REFUSED), StoreUnavailable),
        (Scripted([RESTARTED, REFUSED]), StoreUnavailable),
    ],
)
def test_what_may_have_happened_stays_unknown(client: Scripted, error: type[StoreError]) -> None:
    with pytest.raises(error) as caught:
        call(client)
    assert type(caught.value) is error
    assert client.answers == []


@pytest.mark.parametrize("reply", ["OK", 1, None])
def test_an_answer_that_is_no_list_is_an_error(reply: Reply) -> None:
    with pytest.raises(StoreError, match=r"clock.*list"):
        call(Scripted([reply]))


def test_closing_never_raises() -> None:
    async def main() -> Scripted:
        client = Scripted([OK])
        connection = Connection(lambda _: client, KEYS, 5.0)
        await connection.call("clock", ["k"], [])
        await connection.close()
        await connection.close()
        with pytest.raises(StoreRefused, match="closed"):
            await connection.call("clock", ["k"], [])
        return client

    assert asyncio.run(main()).closed == 1


def test_calls_wait_their_turn() -> None:
    class Slow(Scripted):
        now = most = 0

        async def send(self, *command: Argument) -> Reply:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0)
            self.now -= 1
            return OK

    async def main() -> Slow:
        client = Slow([])
        connection = Connection(lambda _: client, KEYS, 5.0)
        calls = [connection.call("clock", ["k"], []) for _ in range(3 * CALLS_AT_ONCE)]
        assert await asyncio.gather(*calls) == [OK] * len(calls)
        return client

    assert asyncio.run(main()).most == CALLS_AT_ONCE


def test_scripts_are_called_by_their_digest() -> None:
    client = Scripted([OK], loaded=False)
    call(client)
    sha, text = script("clock").sha, script("clock").text
    evalsha = ("EVALSHA", sha, 1, "k", "", "", 0, "")
    assert (client.sent[0], client.sent[-2:]) == (evalsha, [("SCRIPT", "LOAD", text), evalsha])


def test_an_error_for_good_names_the_script_and_the_key() -> None:
    async def main() -> None:
        client = Scripted([StoreError("WRONGTYPE of some kind")])
        await Connection(lambda _: client, KEYS, 5.0).call("claim", ["{cron:a}:state"], [])

    with pytest.raises(StoreError, match=r"WRONGTYPE.*script claim.*\{cron:a\}:state"):
        asyncio.run(main())
