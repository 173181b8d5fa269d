"""redis-py's asyncio client: opened here, or given."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any

import redis.asyncio
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from anarchon.backends.redis.clients.base import Argument, Reply, decoded, error_of_reply
from anarchon.errors import (
    ConfigurationError,
    StoreError,
    StorePermissionError,
    StoreRefused,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class RedisPyClient:
    """Speaks through a `redis.asyncio.Redis`."""

    def __init__(self, client: redis.asyncio.Redis, *, owned: bool) -> None:
        """Use `client`; close it at the end if it is `owned`."""
        self._client: Any = client
        self._owned = owned

    async def send(self, *command: Argument) -> Reply:
        """Send one command and answer its reply."""
        try:
            return decoded(await self._client.execute_command(*_encoded(command)))
        except (exceptions.RedisError, OSError, RuntimeError) as error:
            sorted_error = self._sorted(error)
            await self._drop_idle_connections(sorted_error)
            raise sorted_error from error

    async def send_many(self, commands: Sequence[Sequence[Argument]]) -> list[Reply]:
        """Send several commands in order on one connection, and answer their replies."""
        pipeline = self._client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*_encoded(command))
        try:
            replies = await pipeline.execute()
        except (exceptions.RedisError, OSError, RuntimeError) as error:
            raise self._sorted(error) from error
        return [decoded(reply) for reply in replies]

    async def close(self) -> None:
        """Close the client if it was opened here."""
        if self._owned:
            await self._client.aclose()

    def _sorted(self, error: BaseException) -> StoreError:
        # Only our own settings make sure that a refused connection means that nothing was sent: a
        # client with repeats may have sent the command before.
        if self._owned and _never_connected(error):
            return StoreRefused(f"{_NOT_CONNECTED}: {error}")
        return _sorted(error)

    async def _drop_idle_connections(self, error: StoreError) -> None:
        # The others of the pool were cut by the same restart; and a server that became a replica
        # would be stayed on for ever, where a new connection may be led to the new primary.
        if self._owned and (isinstance(error, StoreUnavailable) or "READONLY" in str(error)):
            with contextlib.suppress(Exception):  # the error at hand is the one to tell of
                await self._client.connection_pool.disconnect(inuse_connections=False)


def from_url(url: str, timeout: float) -> RedisPyClient:
    """Open a client by URL. Raises `ConfigurationError` for a URL that redis-py cannot read."""
    try:
        make: Any = redis.asyncio.Redis
        client = make.from_url(url, **_settings(timeout))
        client.connection_pool.make_connection()  # refuses unknown options; connects nothing
    except (TypeError, ValueError):
        message = (
            "the URL of the store cannot be read: give redis://, rediss:// or unix://, with user,"
            " password and database in it, such as redis://:password@host:6379/0 (the options in"
            " its query are redis-py's)"
        )
        raise ConfigurationError(message) from None  # its text may hold the password
    return RedisPyClient(client, owned=True)


def from_options(options: Mapping[str, Any], timeout: float) -> RedisPyClient:
    """Open a client by redis-py's keyword options. Raises `ConfigurationError` for unknown ones."""
    try:
        client = redis.asyncio.Redis(**{**_settings(timeout), **options})
    except (TypeError, ValueError) as error:
        names = ", ".join(sorted(map(str, options)))
        message = f"the options of the store ({names}) do not fit redis.asyncio.Redis: {error}"
        raise ConfigurationError(message) from error
    return RedisPyClient(client, owned=True)


def _settings(timeout: float) -> dict[str, Any]:
    # RESP2 because Redis 5 knows no other. No repeats in the client: what was sent and what was not
    # must stay apart, and the caller repeats within a deadline of its own.
    return {
        "protocol": 2,
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "retry": Retry(NoBackoff(), 0),
    }


def _encoded(command: Sequence[Argument]) -> list[bytes | int]:
    # UTF-8 whatever the client is set to; what it cannot write (a lone surrogate) is spelled out.
    return [
        part if isinstance(part, int) else part.encode("utf-8", "backslashreplace")
        for part in command
    ]


_NOT_CONNECTED = "no connection to the store"


def _never_connected(error: BaseException) -> bool:
    cause = error.__cause__ or error.__context__
    return isinstance(error, exceptions.ConnectionError) and isinstance(
        cause, (ConnectionRefusedError, FileNotFoundError, socket.gaierror)
    )


def _sorted(error: BaseException) -> StoreError:
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, exceptions.AuthenticationError):
        return StorePermissionError(
            f"the store does not accept user and password ({text}). Check the URL or options"
        )
    if isinstance(error, (exceptions.BusyLoadingError, exceptions.MaxConnectionsError)):
        return StoreRefused(text)
    if isinstance(error, exceptions.ResponseError):
        if "HELLO" in str(error):
            return StoreError(
                f"the server does not speak RESP3 ({text}): make the client with protocol=2"
            )
        # redis-py takes a known code word off the text and keeps it as the class.
        return error_of_reply(f"{_CODES.get(type(error).__name__, '')} {error}".strip())
    if isinstance(error, RuntimeError):
        return StoreError(
            f"the client belongs to another event loop ({text}): make it inside the loop that runs"
            " the scheduler, or give the backend a URL"
        )
    return StoreUnavailable(text)


_CODES = {
    "NoScriptError": "NOSCRIPT",
    "ReadOnlyError": "READONLY",
    "OutOfMemoryError": "OOM",
    "NoPermissionError": "NOPERM",
    "ClusterDownError": "CLUSTERDOWN",
    "TryAgainError": "TRYAGAIN",
    "MasterDownError": "MASTERDOWN",
}
