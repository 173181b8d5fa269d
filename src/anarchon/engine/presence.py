"""Once a minute: a look at the server's clock, which also shows this instance to others."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anarchon.engine.clock import STEP_WORTH_TELLING_MS
from anarchon.engine.log import SCHEDULER, tell
from anarchon.errors import StoreError
from anarchon.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from anarchon.backends.base import Store
    from anarchon.engine.instance import Instance
    from anarchon.jobs import Job

EVERY = 60.0
WHILE_AWAY = 2.0
SILENT_MS = 180_000
LONGEST_DEFINITIONS = 16_384
"""Characters. With more jobs than fit, an instance tells only a digest of their definitions."""


@dataclass(frozen=True, slots=True)
class ServerTime:
    """An answer that is only the server's time."""

    time: int


async def ask_time(store: Store) -> ServerTime:
    """Ask for nothing but the server's time."""
    return ServerTime(await store.clock("", "", 0))


def definitions_of(jobs: Iterable[Job]) -> dict[str, object]:
    """What an instance tells of its jobs: a digest, and their definitions if they are few."""
    definitions = {job.name: job.definition for job in sorted(jobs, key=lambda job: job.name)}
    if not definitions:
        return {}
    text = json.dumps(definitions)
    digest = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
    few = len(text) <= LONGEST_DEFINITIONS
    return {"digest": digest, "jobs": definitions if few else None}


async def keep_in_touch(instance: Instance, facts: Mapping[str, object]) -> None:
    """Ask for the server's time once a minute, more often while the store is away.

    `facts` is what the instance tells others of itself besides its clocks.

    It keeps the reckoning of the server's clock fresh and idle connections alive, and is how an
    idle instance notices that the store is back.
    """
    told = 0
    asked = False
    loop = asyncio.get_running_loop()
    while True:
        try:
            if not asked:
                await instance.link.ask(ask_time)  # others are told of the clocks' difference
                asked = True
            await instance.link.ask(lambda store: _show(store, instance, facts))
            told = _tell_difference(instance, told)
        except StoreError:
            pass  # told by the link; asked again sooner
        instance.touch.clear()
        rest = EVERY if instance.health.there else WHILE_AWAY
        due = loop.time() + rest
        instance.turns_at = instance.env.clock.boot() + rest
        try:
            async with asyncio.timeout_at(due):
                await instance.touch.wait()  # the store went away, or came back
        except TimeoutError:
            pass
        finally:
            instance.turns_at = math.inf  # while the store is asked, the loop turns as it will
        if loop.time() >= due:
            instance.loop_lag = max(0.0, loop.time() - due)


async def _show(store: Store, instance: Instance, facts: Mapping[str, object]) -> ServerTime:
    clocks = {"ahead": instance.server.host_is_ahead(), "lag": round(instance.loop_lag * 1000)}
    told = json.dumps({**clocks, "version": __version__, **facts})
    return ServerTime(await store.clock(instance.runner, told, SILENT_MS))


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
