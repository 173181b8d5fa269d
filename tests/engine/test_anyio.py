"""Bodies that use anyio, which looks closely at the tasks that it runs in."""

from __future__ import annotations

import asyncio
import importlib
import io
from typing import Any

import pytest

from tests.support.world import World, virtual

anyio: Any = importlib.import_module("anyio")

ONCE = "1 12 * * *"


@virtual
async def test_cancel_scopes_of_anyio_in_a_body(world: World) -> None:
    done: list[str] = []

    async def body() -> None:
        with anyio.move_on_after(1) as scope:
            await anyio.sleep(10)
        assert scope.cancelled_caught
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 100)
            await anyio.sleep(0.1)
            group.cancel_scope.cancel()
        with anyio.CancelScope() as outer, anyio.CancelScope():
            outer.cancel()
            await anyio.sleep(5)
        with pytest.raises(TimeoutError), anyio.fail_after(1):
            await anyio.sleep(5)
        done.append(str(anyio.get_current_task().name))
        task = asyncio.current_task()
        assert task is not None
        task.print_stack(file=io.StringIO())  # as debuggers do

    await world.start(lambda s: s.add_job(body, ONCE, name="job", max_attempts=1))
    await world.at(70)
    assert len(done) == 1
    assert await world.statuses() == ["succeeded"]


@virtual
async def test_a_task_group_of_anyio_hears_of_the_timeout(world: World) -> None:
    ended: list[float] = []

    async def part() -> None:
        try:
            await anyio.sleep(100)
        finally:
            ended.append(round(world.time.seconds, 1))

    async def body() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(part)
            group.start_soon(part)

    await world.start(lambda s: s.add_job(body, ONCE, name="job", timeout=5, max_attempts=1))
    await world.at(70)
    assert ended == [65, 65]
    assert await world.statuses() == ["timed-out"]
