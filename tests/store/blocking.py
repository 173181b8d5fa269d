"""A store over a blocking connection: no client library in between, and fast on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anarchon.backends.redis.clients.base import Argument, Reply, decoded, error_of_reply
from anarchon.backends.redis.connection import Connection
from anarchon.backends.redis.keys import Keys
from anarchon.backends.redis.strategies.lease import LeaseStore
from tests.support.resp import ReplyError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.support import resp

KEYS = Keys("cron:")


class BlockingClient:
    """The seam to a client, over one blocking connection."""

    def __init__(self, connection: resp.Connection) -> None:
        self._connection = connection

    async def send(self, *command: Argument) -> Reply:
        try:
            return decoded(self._connection.command(*command))
        except ReplyError as error:
            raise error_of_reply(str(error)) from error

    async def send_many(self, commands: Sequence[Sequence[Argument]]) -> list[Reply]:
        return [await self.send(*command) for command in commands]

    async def close(self) -> None:
        """Whoever opened the connection closes it."""


def scripts_over(connection: resp.Connection) -> Connection:
    """What calls scripts, over a blocking connection."""
    return Connection(lambda _timeout: BlockingClient(connection), KEYS, 10.0)


def blocking_store(connection: resp.Connection, now: Callable[[], int] | None) -> LeaseStore:
    """A store whose scripts take `now` as the time; without one, the server's own clock."""
    if now is None:
        return LeaseStore(scripts_over(connection))
    return LeaseStore(scripts_over(connection), now=lambda: str(now()))
