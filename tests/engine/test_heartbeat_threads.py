"""A heartbeat thread whose event loop cannot run: the start says so, and leaves nothing."""

from __future__ import annotations

import asyncio

import pytest

from anarchon import MemoryBackend, Scheduler, SchedulerStateError
from anarchon.backends.memory import MemoryStore
from tests.engine.backgrounds import eventually, own_threads


class _Apart(MemoryBackend):
    @property
    def shares_connection(self) -> bool:
        return False


def test_a_start_without_real_threads_says_so_and_closes_what_it_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[MemoryStore] = []
    close = MemoryStore.close

    async def closing(self: MemoryStore) -> None:
        closed.append(self)
        await close(self)

    monkeypatch.setattr(MemoryStore, "close", closing)
    scheduler = Scheduler(backend=_Apart())
    scheduler.add_job(lambda: 7, "0 0 29 2 *", name="job")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        factory = loop.get_task_factory()

        def refuse(_self: asyncio.BaseEventLoop) -> None:
            raise RuntimeError("Cannot run the event loop while another loop is running")

        with monkeypatch.context() as patch:
            patch.setattr(asyncio.BaseEventLoop, "run_forever", refuse)
            patch.setattr(type(loop), "run_forever", refuse)
            with pytest.raises(SchedulerStateError, match="threads are not real here"):
                await scheduler.start()
        assert len(closed) == 2
        assert loop.get_task_factory() is factory
        # Where they are, it starts after all.
        async with scheduler:
            assert await scheduler.run_now("job") == 7

    asyncio.run(main())
    assert eventually(lambda: own_threads() == [])
