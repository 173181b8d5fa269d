"""One connection to a server: scripts by digest, calls within a deadline, checks at the start."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING

from anarchon.backends.base import STORE_FORMAT, StoreFacts
from anarchon.backends.redis.clients.base import NoScript
from anarchon.backends.redis.scripts import Script, read_all, script
from anarchon.errors import (
    StoreError,
    StoreFormatError,
    StorePermissionError,
    StoreRefused,
    StoreServerError,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from anarchon.backends.redis.clients.base import Argument, Client, Reply
    from anarchon.backends.redis.keys import Keys

CLOSING = 0.5
"""Seconds that a connection gets to close."""
REPEATS = 2
"""How often a call whose connection was lost is sent again: that may happen to the next one too."""
CALLS_AT_ONCE = 16
"""How many calls of one connection are under way at once; the others wait their turn."""


class Connection:
    """Calls scripts through a client; heals a script cache that was emptied."""

    def __init__(self, connect: Callable[[float], Client], keys: Keys, timeout: float) -> None:
        """Not connected yet; no call takes longer than `timeout` seconds."""
        self._connect = connect
        self._timeout = timeout
        self._client: Client | None = None
        self._closed = False
        self._turn = asyncio.Semaphore(CALLS_AT_ONCE)
        self.keys = keys

    async def call(
        self, name: str, keys: Sequence[str], arguments: Sequence[Argument]
    ) -> list[Reply]:
        """Call a script; the answer is a flat list."""
        try:
            reply = await self._within(self._run(script(name), keys, arguments))
        except StoreError as error:
            if type(error) is not StoreError:
                raise
            message = f"{error} (script {name}, key {keys[0]})"
            raise StoreError(message) from error
        if not isinstance(reply, list):
            message = f"script {name} answered {reply!r} instead of a list"
            raise StoreError(message)
        return reply

    async def _run(
        self, called: Script, keys: Sequence[str], arguments: Sequence[Argument]
    ) -> Reply:
        parts: tuple[Argument, ...] = (called.sha, len(keys), *keys, *arguments)
        async with self._turn:
            client = self._open_client()
            unknown: StoreUnavailable | None = None
            load = False
            try:
                return await client.send("EVALSHA", *parts)
            except NoScript:
                load = True  # the cache is volatile: a restart, SCRIPT FLUSH or failover empties it
            except StoreUnavailable as error:
                # A connection that the server closed while it was idle shows at the next command.
                # Every call may be repeated; but what this copy did stays unknown.
                unknown = error
            left = REPEATS
            while True:
                try:
                    return await self._again(client, called, parts, load=load)
                except StoreRefused as error:
                    if unknown is not None:
                        raise unknown from error
                    raise
                except StoreUnavailable as error:
                    unknown, left = error, left - 1
                    if not left:
                        raise

    @staticmethod
    async def _again(
        client: Client, called: Script, parts: Sequence[Argument], *, load: bool
    ) -> Reply:
        if not load:
            try:
                return await client.send("EVALSHA", *parts)
            except NoScript:
                pass
        await client.send("SCRIPT", "LOAD", called.text)
        return await client.send("EVALSHA", *parts)

    async def open(self) -> tuple[str, ...]:
        """Look whether this server can serve as a store; answers warnings."""
        read_all()
        await self._check_format(STORE_FORMAT)
        await self._check_permissions()
        await self.call("clock", [self.keys.instances], ["", "", 0, ""])  # may this key be used?
        policy = _eviction_of(await self._info("memory"))
        return (evicts(policy),) if policy else ()

    async def visit(self) -> None:
        """Look whether the store's format can be read; writes nothing."""
        await self._check_format("")

    async def facts(self) -> StoreFacts:
        """What the server tells of itself; nothing where the user may not ask."""
        told = await self._info("server")
        if not told:
            return StoreFacts()
        memory, persistence = await self._info("memory"), await self._info("persistence")
        valkey = told.get("valkey_version")
        server = f"Valkey {valkey}" if valkey else f"Redis {told.get('redis_version', '?')}"
        aof = persistence.get("aof_enabled")
        kept = None if aof is None else aof == "1"
        return StoreFacts(server=server, eviction=_eviction_of(memory), kept=kept)

    async def _info(self, section: str) -> dict[str, str]:
        """INFO is a courtesy that the minimal permissions leave out: empty where it is refused."""
        try:
            return _facts(await self._within(self._open_client().send("INFO", section)))
        except (StorePermissionError, StoreRefused):
            return {}

    async def close(self) -> None:
        """Close the client if it was opened here; never raises."""
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            # Nothing can be done about a connection that does not close.
            with contextlib.suppress(Exception):
                await asyncio.wait_for(client.close(), CLOSING)

    def _open_client(self) -> Client:
        if self._closed:
            raise StoreRefused("the connection is closed")
        # Made here and not in __init__: an asyncio client belongs to the loop that first uses it.
        if self._client is None:
            self._client = self._connect(self._timeout)
        return self._client

    async def _within(self, call: Awaitable[Reply]) -> Reply:
        # No client's own timeouts are relied on; what was cut off here may have happened. Nor is it
        # relied on that a client lets a cancellation through: before Python 3.12, a wait_for inside
        # it drops one that comes just as its reply does.
        task = asyncio.current_task()
        try:
            async with asyncio.timeout(self._timeout):
                cancelled_before = task.cancelling() if task else 0
                reply = await call
                if task and task.cancelling() > cancelled_before:
                    raise asyncio.CancelledError
                return reply
        except TimeoutError as error:
            message = f"no answer within {self._timeout:g} s"
            raise StoreUnavailable(message) from error

    async def _check_format(self, written: Argument) -> None:
        """Look at the format; `written` is put into a new store, if it is not empty."""
        try:
            found = (await self.call("format", [self.keys.format], [written]))[2]
        except StorePermissionError as error:
            if "accept user and password" in str(error):
                raise
            # What more is missing cannot be tried out before this script passes.
            message = (
                f"{error}. The first script calls script|load, evalsha, hdel, get, set and time, on"
                f" the key {self.keys.format}"
            )
            raise StorePermissionError(message) from error
        except StoreRefused as error:
            if "READONLY" not in str(error):
                raise
            message = "the server is a replica and takes no writes: point anarchon at the primary"
            raise StoreServerError(message) from error
        if found != 0:
            self._judge_format(str(found))

    def _judge_format(self, found: str) -> None:
        if not re.fullmatch("[0-9]{1,9}", found):
            message = (
                f"the key {self.keys.format!r} holds {found!r}, which anarchon did not write:"
                " choose another prefix, or delete the key if it is left over"
            )
            raise StoreFormatError(message)
        if int(found) > STORE_FORMAT:
            message = (
                f"the store holds format {found}, this version of anarchon reads up to"
                f" {STORE_FORMAT}: upgrade anarchon here, or choose another prefix"
            )
            raise StoreFormatError(message)

    async def _check_permissions(self) -> None:
        refused = (await self.call("check", [self.keys.format], ["types", STORE_FORMAT]))[1:]
        refused += (await self.call("check", [self.keys.never], ["delete", STORE_FORMAT]))[1:]
        if refused:
            commands = ", ".join(str(command).lower() for command in refused[::2])
            message = (
                f"this user may not call: {commands}. Grant these to the user on the keys"
                f" {{{self.keys.prefix}*}}:*, {self.keys.format} and {self.keys.instances}"
            )
            raise StorePermissionError(message)


def _eviction_of(memory: dict[str, str]) -> str:
    """The policy by which the server may throw any key away; empty if it does not."""
    policy = memory.get("maxmemory_policy", "")
    limited = memory.get("maxmemory", "0") != "0"
    return policy if limited and policy.startswith("allkeys") else ""


def evicts(policy: str) -> str:
    """What to say of a server that may throw any key away."""
    return (
        f"the server may evict anarchon's keys (maxmemory-policy {policy}): a run could then be"
        " started twice. Set it to noeviction, or to a volatile-* policy"
    )


def _facts(info: Reply) -> dict[str, str]:
    """What INFO tells, as the server's text or as a client has taken it apart."""
    if isinstance(info, list):
        return {str(name): str(value) for name, value in zip(info[::2], info[1::2], strict=True)}
    pairs = (line.partition(":") for line in str(info).splitlines() if ":" in line)
    return {name: value.strip() for name, _, value in pairs}
