"""A blocking client of the Redis protocol (RESP2), small enough to be trusted.

Tests look at the store through it, so that no behaviour of a client library (retries, a protocol
handshake, conversions) stands between the test and what the server says.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from typing import Self

Reply: TypeAlias = "bytes | int | list[Reply] | None"
Argument: TypeAlias = "bytes | str | int | float"


class ReplyError(Exception):
    """An error that the server answered, for example `WRONGTYPE ...`."""

    @property
    def code(self) -> str:
        """The first word of the answer."""
        return str(self).partition(" ")[0]


class Connection:
    """One connection to a server on this machine; `timeout` is in seconds, for every call."""

    def __init__(self, port: int, *, timeout: float = 10.0) -> None:
        self._timeout = timeout
        self._socket = socket.create_connection(("127.0.0.1", port), timeout)
        self._received = b""

    def command(self, *arguments: Argument) -> Reply:
        """Send one command and return its reply.

        Raises:
            ReplyError: the server answered with an error.
            OSError: the connection broke, or the answer did not come in time.
        """
        self.send(*arguments)
        return self.receive()

    def send(self, *arguments: Argument) -> None:
        """Send one command and do not wait for its reply."""
        parts = [a if isinstance(a, bytes) else str(a).encode() for a in arguments]
        packed = [b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]
        self._socket.sendall(b"*%d\r\n%b" % (len(parts), b"".join(packed)))

    def receive(self, *, timeout: float | None = None) -> Reply:
        """Return the next reply, waiting `timeout` seconds for it (default: the connection's).

        Raises:
            ReplyError: the server answered with an error.
            OSError: the connection broke, or the answer did not come in time.
        """
        self._socket.settimeout(timeout or self._timeout)
        reply = self._read()
        if isinstance(reply, ReplyError):
            raise reply
        return reply

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> Reply | ReplyError:
        line = self._read_line()
        kind, rest = line[:1], line[1:]
        match kind:
            case b"+":
                return rest
            case b"-":
                return ReplyError(rest.decode())
            case b":":
                return int(rest)
            case b"$":
                return self._read_bulk(int(rest))
            case b"*":
                return self._read_list(int(rest))
            case _:
                raise ConnectionError(f"not a reply: {line!r}")

    def _read_line(self) -> bytes:
        while b"\r\n" not in self._received:
            self._receive_more()
        line, _, self._received = self._received.partition(b"\r\n")
        return line

    def _receive_more(self) -> None:
        more = self._socket.recv(65536)
        if not more:
            raise ConnectionResetError("the server closed the connection")
        self._received += more

    def _read_bulk(self, size: int) -> bytes | None:
        if size < 0:
            return None
        while len(self._received) < size + 2:
            self._receive_more()
        bulk, self._received = self._received[:size], self._received[size + 2 :]
        return bulk

    def _read_list(self, size: int) -> list[Reply] | None:
        if size < 0:
            return None
        items = [self._read() for _ in range(size)]
        for item in items:
            if isinstance(item, ReplyError):
                raise item
        return [item for item in items if not isinstance(item, ReplyError)]
