"""Scripts that stop in the middle: nothing is rolled back, so the order of the writes must do.

A key of the wrong type stops a script where it first uses that key. What is written by then must
hide no open run, and must let the same call be repeated once the key is gone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from anarchon.backends.base import ClaimCode, Outcome, State
from anarchon.backends.redis.keys import PARTS
from anarchon.errors import StoreError
from anarchon.testing.conformance import Clock, Subject
from anarchon.testing.conformance.subject import SLOT, B
from tests.store.blocking import KEYS, blocking_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.server import Server

JOB = "broken"
NAMES: dict[str, str] = dict(zip(PARTS, KEYS.of_job(JOB), strict=True))


def with_subject(server: Server, use: Callable[[Subject], Awaitable[None]]) -> None:
    async def main() -> None:
        clock = Clock()
        with server.connect() as connection:
            await use(Subject(blocking_store(connection, clock), clock, job=JOB))

    asyncio.run(main())


@pytest.mark.parametrize("part", ["slots", "runs"])
def test_a_claim_that_stops_hides_no_run(server: Server, part: str) -> None:
    async def use(s: Subject) -> None:
        server.command("SET", NAMES[part], "broken")
        with pytest.raises(StoreError, match="WRONGTYPE"):
            await s.claim()
        told = await s.claim(token=B)
        assert (told.code, told.attempt) == (ClaimCode.RUNNING, 1)
        server.command("DEL", NAMES[part])
        repeat = await s.claim()
        assert (repeat.code, repeat.attempt) == (ClaimCode.WON, 1)
        assert (await s.finish()).ok

    with_subject(server, use)


def test_a_claim_that_cannot_see_the_others_writes_nothing(server: Server) -> None:
    async def use(s: Subject) -> None:
        server.command("SET", NAMES["active"], "broken")
        with pytest.raises(StoreError, match="WRONGTYPE"):
            await s.claim()
        server.command("DEL", NAMES["active"])
        assert (await s.claim(seen=1)).code is ClaimCode.GONE
        assert (await s.claim()).code is ClaimCode.WON

    with_subject(server, use)


def test_a_member_without_a_record_is_swept(server: Server) -> None:
    async def use(s: Subject) -> None:
        await s.claim()
        assert server.command("SISMEMBER", NAMES["active"], str(SLOT)) == 1
        # As if the grant had stopped between `active` and the record.
        server.command("HDEL", NAMES["state"], str(SLOT))
        assert (await s.claim(SLOT - 1, B)).code is ClaimCode.WON
        assert server.command("SISMEMBER", NAMES["active"], str(SLOT)) == 0

    with_subject(server, use)


def test_a_finish_that_stops_has_ended_the_run(server: Server) -> None:
    async def use(s: Subject) -> None:
        await s.claim()
        server.command("SET", NAMES["results"], "broken")
        with pytest.raises(StoreError, match="WRONGTYPE"):
            await s.finish()
        done = await s.claim(token=B)
        assert (done.code, done.state) == (ClaimCode.DONE, State.DONE)
        assert (await s.finish()).ok, "the repeat is answered as if nothing had happened"
        server.command("DEL", NAMES["results"])
        assert (await s.claim(SLOT - 1, B)).code is ClaimCode.WON

    with_subject(server, use)


def test_a_close_that_stops_leaves_no_open_run_unlisted(server: Server) -> None:
    async def use(s: Subject) -> None:
        await s.claim()
        server.command("DEL", NAMES["active"])
        server.command("SET", NAMES["active"], "broken")
        with pytest.raises(StoreError, match="WRONGTYPE"):
            await s.finish()
        server.command("DEL", NAMES["active"])
        done = await s.claim(token=B)
        assert (done.code, done.outcome) == (ClaimCode.DONE, Outcome.SUCCEEDED)

    with_subject(server, use)


@pytest.mark.parametrize("part", PARTS)
def test_a_broken_job_harms_no_other(server: Server, part: str) -> None:
    async def use(s: Subject) -> None:
        server.command("SET", NAMES[part], "broken")
        other = Subject(s.store, s.clock, job="whole")
        assert (await other.claim()).code is ClaimCode.WON
        assert (await other.finish()).ok
        assert len(await other.runs()) == 1

    with_subject(server, use)
