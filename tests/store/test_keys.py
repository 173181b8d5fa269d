"""Key names: no two jobs share a key, a job's keys share a hash slot, and each has its type."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from anarchon import RedisBackend, ValkeyBackend
from anarchon.backends.base import ClaimCode, Outcome
from anarchon.backends.redis.keys import PARTS, Keys
from anarchon.errors import ConfigurationError
from anarchon.testing.conformance import Clock, Subject
from tests.store.blocking import KEYS, blocking_store
from tests.store.books import text, texts

if TYPE_CHECKING:
    from tests.support.server import Server

NASTY = st.text(st.sampled_from("a:{}%7BD\n\x7f é😀"), max_size=8)
NAMES = st.one_of(NASTY, st.text(max_size=6))


@given(NAMES, NAMES)
def test_no_two_names_share_a_key(one: str, other: str) -> None:
    shared = set(KEYS.of_job(one)) & set(KEYS.of_job(other))
    assert bool(shared) == (one == other)


@given(NAMES)
def test_no_job_has_the_keys_of_the_prefix(name: str) -> None:
    assert not {KEYS.format, KEYS.instances, KEYS.never} & set(KEYS.of_job(name))


@given(NAMES, st.sampled_from(("cron:", "a", "%", "ä:", "\n")))
def test_keys_of_a_job_share_a_hash_slot(name: str, prefix: str) -> None:
    keys = Keys(prefix).of_job(name)
    assert len({key_slot(key.encode()) for key in keys}) == 1
    tag = keys[0].removesuffix(":state")
    assert tag.startswith("{")
    assert tag.endswith("}")
    assert key_slot(keys[0].encode()) == key_slot(tag[1:-1].encode())


def test_jobs_spread_over_hash_slots() -> None:
    slots = {key_slot(KEYS.of_job(name)[0].encode()) for name in ("a", "b", "{a}", "}a", "a}b")}
    assert len(slots) == 5


@given(NAMES)
def test_keys_can_be_read(name: str) -> None:
    keys = KEYS.of_job(name)
    assert [key.rpartition(":")[2] for key in keys] == list(PARTS)
    assert not any(ord(c) < 32 or ord(c) == 127 for key in keys for c in key)


def test_a_plain_name_stays_readable() -> None:
    assert KEYS.of_job("nightly report:v2") == tuple(
        f"{{cron:nightly report:v2}}:{part}" for part in PARTS
    )
    assert KEYS.of_job("50% {x}\n")[0] == "{cron:50%25 %7Bx%7D%0A}:state"
    assert (KEYS.format, KEYS.instances) == ("cron:format", "cron:instances")


@pytest.mark.parametrize("prefix", ["", "{", "}", "a{b}:", "{billing}:cron:"])
def test_a_prefix_with_braces_is_refused(prefix: str) -> None:
    with pytest.raises(ConfigurationError, match="prefix="):
        Keys(prefix)
    with pytest.raises(ConfigurationError, match="braces"):
        RedisBackend(prefix=prefix)
    with pytest.raises(ConfigurationError, match="braces"):
        ValkeyBackend(prefix=prefix)


JOBS = ("a", "a:b", "a:state", "state", "format", "b")


def test_names_and_prefixes_do_not_meet(server: Server) -> None:
    async def main() -> None:
        for prefix in ("cron:", "staging:"):
            backend = RedisBackend(redis=server.url, prefix=prefix)
            store = backend.connect(timeout=5)
            await store.open()
            for job in JOBS:
                subject = Subject(store, Clock(), job=job)
                now = await store.clock("", "", 0)
                answer = await subject.claim(now, f"token-{prefix}{job}")
                assert (answer.code, answer.others) == (ClaimCode.WON, ()), (prefix, job)
                (run,) = await store.history(job, 5)
                assert run.job == job
            await store.close()

    asyncio.run(main())
    reply = server.command("KEYS", "*:state")
    assert len(texts(reply)) == 2 * len(JOBS)


TYPES = {"state": "hash", "active": "set", "slots": "zset", "runs": "stream", "results": "zset"}


def test_each_key_has_its_type(server: Server) -> None:
    async def main() -> None:
        store = RedisBackend(redis=server.url).connect(timeout=5)
        await store.open()
        await store.clock("host:1:a", "alive", 1_000)
        subject = Subject(store, Clock(), job="types")
        now = await store.clock("", "", 0)
        await subject.register()
        await subject.claim(now)
        await subject.finish(now, outcome=Outcome.FAILED, delay=60_000)
        await store.close()

    asyncio.run(main())
    names = dict(zip(PARTS, KEYS.of_job("types"), strict=True))
    types = {part: _type(server, key) for part, key in names.items()}
    assert types == TYPES
    assert (_type(server, KEYS.format), _type(server, KEYS.instances)) == ("string", "hash")
    expected = {*names.values(), KEYS.format, KEYS.instances}
    assert set(texts(server.command("KEYS", "*"))) == expected
    assert [key for key in expected if server.command("TTL", key) != -1] == []


def _type(server: Server, key: str) -> str:
    return text(server.command("TYPE", key))


def test_a_job_that_was_forgotten_leaves_no_key(server: Server) -> None:
    async def main() -> None:
        clock = Clock()
        with server.connect() as connection:
            subject = Subject(blocking_store(connection, clock), clock, job="gone")
            await subject.register()
            await subject.claim()
            await subject.finish()
            assert (await subject.store.forget("gone")).ok

    asyncio.run(main())
    assert server.command("KEYS", "*") == []
