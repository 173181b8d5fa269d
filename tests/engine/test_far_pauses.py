"""Pauses until the end of the calendar, which no zone east of Greenwich can show."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from anarchon import ConfigurationError, MemoryBackend, RedisBackend, Scheduler

if TYPE_CHECKING:
    from tests.support.server import Server

NEVER = "0 0 29 2 *"
END = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize("until", [END, datetime.max.replace(tzinfo=UTC)])
def test_a_pause_until_the_end_of_the_calendar_is_refused(until: datetime) -> None:
    scheduler = Scheduler(backend=MemoryBackend())
    scheduler.add_job(lambda: 7, NEVER, name="job", timezone="Asia/Tokyo")

    async def main() -> bool:
        async with scheduler:
            with pytest.raises(ConfigurationError, match="the year 3000"):
                await scheduler.pause("job", until=until)
            return (await scheduler.state("job")).paused

    assert asyncio.run(main()) is False


def test_a_store_that_tells_of_such_a_pause_breaks_no_instance(redis7: Server) -> None:
    backend = RedisBackend(redis=redis7.url)
    scheduler = Scheduler(backend=backend)
    scheduler.add_job(lambda: 7, NEVER, name="job", timezone="Asia/Tokyo")

    async def main() -> None:
        store = backend.connect(timeout=10)
        await store.visit()
        await store.pause("job", round(END.timestamp() * 1000), "for ever")
        await store.close()
        async with scheduler:
            assert await scheduler.run_now("job") == 7
            assert (await scheduler.state("job")).paused
            assert (await scheduler.why("job", datetime(2024, 2, 29, tzinfo=UTC))).sentences
            assert scheduler.health().running

    asyncio.run(main())
