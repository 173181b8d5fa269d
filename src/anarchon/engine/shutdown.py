"""Stops an engine: nothing new, running jobs get their time, then leases are given back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from anarchon.engine.attempt import Interruption

if TYPE_CHECKING:
    from anarchon.engine.core import Engine

HAND_BACK = 0.4
"""Seconds that cancelled bodies get to end, and their leases to be given back."""


async def shut_down(engine: Engine, seconds: float) -> None:
    """Drain and close an engine; takes at most `seconds` and a little.

    Running jobs keep their heartbeats until they end. Those that do not end in time are cancelled
    and their leases given back; a thread that goes on is named and left, and its lease lapses.
    """
    engine.instance.stopping = True
    try:
        await engine.end_duties()
        for pursuit, task in list(engine.pursuits.tasks.items()):
            if pursuit.idle:
                task.cancel()
        await _drain(engine, seconds)
        for pursuit in list(engine.pursuits.tasks):
            pursuit.interrupt(Interruption.SHUTDOWN)
        await _wait(engine, HAND_BACK)
        await _abandon(engine)
        await _leave(engine)
    finally:
        await engine.close()


async def _wait(engine: Engine, seconds: float) -> None:
    if engine.pursuits.tasks:
        await asyncio.wait(list(engine.pursuits.tasks.values()), timeout=seconds)


async def _drain(engine: Engine, seconds: float) -> None:
    """Wait for running jobs, but no longer than until somebody is in a hurry."""
    drained = asyncio.create_task(_wait(engine, seconds))
    hurried = asyncio.create_task(engine.hurried.wait())
    await asyncio.wait([drained, hurried], return_when=asyncio.FIRST_COMPLETED)
    for task in (drained, hurried):
        task.cancel()


async def _abandon(engine: Engine) -> None:
    for pursuit, task in list(engine.pursuits.tasks.items()):
        pursuit.abandon()
        task.cancel()
    if engine.pursuits.tasks:
        await asyncio.wait(list(engine.pursuits.tasks.values()), timeout=1.0)


async def _leave(engine: Engine) -> None:
    """Take this instance's presence away, if the store is there to be told."""
    if not engine.instance.health.there:
        return
    try:
        async with asyncio.timeout(HAND_BACK):
            await engine.instance.link.store.clock(engine.instance.runner, "", 0)
    except Exception:  # noqa: BLE001, S110 - others drop a silent instance by themselves
        pass
