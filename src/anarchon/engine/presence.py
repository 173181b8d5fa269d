"""Once a minute: a look at the server's clock, which also shows this instance to others."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anarchon.engine.clock import STEP_WORTH_TELLING_MS
from anarchon.engine.log import SCHEDULER, tell
from anarchon.errors import StoreError

if TYPE_CHECKING:
    from anarchon.backends.base import Store
    from anarchon.engine.instance import Instance

EVERY = 60.0
WHILE_AWAY = 2.0
SILENT_MS = 180_000


@dataclass(frozen=True, slots=True)
class ServerTime:
    """An answer that is only the server's time."""

    time: int


async def ask_time(store: Store) -> ServerTime:
    """Ask for nothing but the server's time."""
    return ServerTime(await store.clock("", "", 0))


async def keep_in_touch(instance: Instance) -> None:
    """Ask for the server's time once a minute, more often while the store is away.

    It keeps the reckoning of the server's clock fresh and idle connections alive, and is how an
    idle instance notices that the store is back.
    """
    told = 0
    loop = asyncio.get_running_loop()
    while True:
        try:
            await instance.link.ask(lambda store: _show(store, instance))
            told = _tell_difference(instance, told)
        except StoreError:
            pass  # told by the link; asked again sooner
        instance.touch.clear()
        due = loop.time() + (EVERY if instance.health.there else WHILE_AWAY)
        try:
            async with asyncio.timeout_at(due):
                await instance.touch.wait()  # the store went away, or came back
        except TimeoutError:
            instance.loop_lag = max(0.0, loop.time() - due)


async def _show(store: Store, instance: Instance) -> ServerTime:
    facts = {"ahead": instance.server.host_is_ahead(), "lag": round(instance.loop_lag * 1000)}
    return ServerTime(await store.clock(instance.runner, json.dumps(facts), SILENT_MS))


def _tell_difference(instance: Instance, told: int) -> int:
    """Log the difference of host and server when it is, or changes by, more than a second."""
    ahead = instance.server.host_is_ahead()
    if abs(ahead - told) <= STEP_WORTH_TELLING_MS:
        return told
    side = "ahead of" if ahead > 0 else "behind"
    message = (
        f"this host's clock is {abs(ahead) / 1000:.1f} s {side} the store's; runs follow"
        " the store's"
        if abs(ahead) > STEP_WORTH_TELLING_MS
        else "this host's clock and the store's agree again"
    )
    level = logging.WARNING if abs(ahead) > STEP_WORTH_TELLING_MS else logging.INFO
    tell(SCHEDULER, level, "clock.difference", message, ahead_ms=ahead)
    return ahead
