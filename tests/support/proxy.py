"""A TCP proxy between a client and a server, which can be told to fail in chosen ways.

It runs an event loop in a thread of its own, so that a test may block, and is switched at run time
from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine
    from typing import Self

_CHUNK = 65536
_LONGEST_STEP = 10.0  # seconds; starting and ending take milliseconds


class Fault(enum.Enum):
    """What happens to a request of the client."""

    NONE = "passed on"
    DELAY = "held back for a while, then passed on"
    CUT_BEFORE = "not passed on, and the connection cut"
    CUT_AFTER = "passed on, its reply dropped, and the connection cut"
    DROP_REPLY = "passed on, and never answered; the connection stays open"
    BLACK_HOLE = "neither passed on nor answered; the connection stays open"


@dataclass(frozen=True)
class _Plan:
    fault: Fault = Fault.NONE
    matching: bytes = b""
    seconds: float = 0.0


class Proxy:
    """Listens on a port of its own and passes on to `target`, both on this machine.

    A connection that met a fault is not used any further: what its client would read next could be
    the answer to another request.
    """

    def __init__(self, target: int) -> None:
        self.port = 0
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name="proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self._plan = _Plan()
        self._left: int | None = None
        self._hits = 0

    @property
    def url(self) -> str:
        """The URL a client takes."""
        return f"redis://127.0.0.1:{self.port}"

    @property
    def hits(self) -> int:
        """How many requests met the present fault."""
        return self._hits

    def fail(
        self, fault: Fault, *, matching: str = "", times: int | None = None, seconds: float = 0.0
    ) -> None:
        """From now on, let requests that contain `matching` meet `fault`.

        `times` bounds how many do (None: all); `seconds` is how long DELAY holds back.
        """
        plan = _Plan(fault, matching.encode(), seconds)
        self._do(self._set(plan, times))

    def heal(self) -> None:
        """Pass everything on again; connections that met a fault stay broken."""
        self._do(self._set(_Plan(), None))

    def close_port(self) -> None:
        """Refuse new connections and cut all that are open, as if nothing listened."""
        self._do(self._close_port())

    def open_port(self) -> None:
        """Listen again."""
        self._do(self._listen())

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._close_port())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_LONGEST_STEP)

    def _do(self, step: Coroutine[object, object, None]) -> None:
        asyncio.run_coroutine_threadsafe(step, self._loop).result(_LONGEST_STEP)

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _set(self, plan: _Plan, times: int | None) -> None:
        self._plan, self._left, self._hits = plan, times, 0

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close_port(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        links = list(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.get_running_loop().create_task(self._link(reader, writer))
        self._links.add(link)
        link.add_done_callback(self._links.discard)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of a client until either side ends it."""
        with contextlib.suppress(OSError):
            async with _closing(writer):
                there, out = await asyncio.open_connection("127.0.0.1", self._target)
                async with _closing(out):
                    link = _Link(self, reader, writer, there, out)
                    await link.serve()

    def meets(self, request: bytes) -> _Plan:
        """What happens to a request; it counts as hit."""
        plan = self._plan
        if plan.fault is Fault.NONE or plan.matching not in request or self._left == 0:
            return _Plan()
        if self._left is not None:
            self._left -= 1
        self._hits += 1
        return plan


class _Link:
    """One connection of a client, and the one to the server that belongs to it."""

    def __init__(
        self,
        proxy: Proxy,
        client_in: asyncio.StreamReader,
        client_out: asyncio.StreamWriter,
        server_in: asyncio.StreamReader,
        server_out: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._client = (client_in, client_out)
        self._server = (server_in, server_out)
        self._fault = Fault.NONE

    async def serve(self) -> None:
        """Pass on both ways until one side ends, or a fault cuts the connection."""
        ways = [asyncio.create_task(self._requests()), asyncio.create_task(self._replies())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _requests(self) -> None:
        reader, writer = self._client[0], self._server[1]
        while chunk := await reader.read(_CHUNK):
            plan = self._proxy.meets(chunk)
            if plan.fault is Fault.CUT_BEFORE:
                return
            if plan.fault is Fault.DELAY:
                await asyncio.sleep(plan.seconds)
            elif plan.fault is not Fault.NONE:
                self._fault = plan.fault
            if self._fault is not Fault.BLACK_HOLE:
                writer.write(chunk)
                await writer.drain()

    async def _replies(self) -> None:
        reader, writer = self._server[0], self._client[1]
        while chunk := await reader.read(_CHUNK):
            if self._fault is Fault.CUT_AFTER:
                return
            if self._fault is Fault.NONE:
                writer.write(chunk)
                await writer.drain()


@contextlib.asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
