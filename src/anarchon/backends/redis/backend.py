"""`RedisBackend` and `ValkeyBackend`: configurations from which stores are connected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from anarchon.backends.redis.clients.detect import connector
from anarchon.backends.redis.connection import Connection
from anarchon.backends.redis.keys import Keys
from anarchon.backends.redis.strategies.lease import Lease, LeaseStore
from anarchon.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import redis.asyncio

DEFAULT_URL = "redis://localhost:6379"

RedisConnection: TypeAlias = "str | Mapping[str, object] | redis.asyncio.Redis"
"""A URL, redis-py's keyword options, or a redis-py asyncio client."""


class RedisBackend:
    """Claims decided in Redis 5 or newer (or Valkey), by the lease strategy.

    `redis` is a URL (``redis://``, ``rediss://``, ``unix://``; user, password and database in it),
    a mapping of redis-py's keyword options, or a `redis.asyncio.Redis` client. A connection that is
    opened here is closed on ``stop()``; a client that was given stays open. `prefix` begins every
    key; no prefix on a server should extend another's. Raises `ConfigurationError`.
    """

    _option = "redis"

    def __init__(
        self,
        *,
        redis: RedisConnection = DEFAULT_URL,
        strategy: Literal["lease"] | Lease = "lease",
        prefix: str = "cron:",
    ) -> None:
        """Check the options; nothing is connected yet."""
        self._set_up(redis, strategy, prefix)

    def _set_up(self, given: object, strategy: object, prefix: str) -> None:
        if strategy != "lease" and not isinstance(strategy, Lease):
            message = f"strategy={strategy!r}: this version knows 'lease' (or Lease())"
            raise ConfigurationError(message)
        self._connect, self._opened_here = connector(given, self._option)
        self._keys = Keys(prefix)

    def __repr__(self) -> str:
        """Name the backend without its connection, which may hold a password."""
        return f"{type(self).__name__}(strategy='lease', prefix={self._keys.prefix!r})"

    @property
    def shares_connection(self) -> bool:
        """Whether a client was given: it serves one event loop, so heartbeats share that loop."""
        return not self._opened_here

    def connect(self, *, timeout: float) -> LeaseStore:
        """A store for the running event loop; no call of it takes over `timeout` seconds."""
        return LeaseStore(Connection(self._connect, self._keys, timeout))


class ValkeyBackend(RedisBackend):
    """Claims decided in Valkey. The same as `RedisBackend`, with `valkey` in place of `redis`."""

    _option = "valkey"

    def __init__(
        self,
        *,
        valkey: RedisConnection = DEFAULT_URL,
        strategy: Literal["lease"] | Lease = "lease",
        prefix: str = "cron:",
    ) -> None:
        """Check the options; nothing is connected yet."""
        self._set_up(valkey, strategy, prefix)
