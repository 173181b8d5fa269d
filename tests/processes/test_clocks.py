"""Hosts whose clocks are wrong: everything follows the server's."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

import pytest

from anarchon import Environment, RedisBackend, Scheduler
from tests.processes.embedded import Diary, add_job, said, until
from tests.processes.support import letters, soon

if TYPE_CHECKING:
    from tests.support.server import Server

pytestmark = pytest.mark.processes


class WrongClock:
    """A host's clocks, its wall clock off by so many seconds. Both run on as they should."""

    def __init__(self, off: float) -> None:
        self.off = off

    def boot(self) -> float:
        return time.monotonic()

    def wall(self) -> int:
        return int((time.time() + self.off) * 1000)


def test_CLK_01_clocks_minutes_apart_and_jumping(
    valkey9: Server, caplog: pytest.LogCaptureFixture
) -> None:
    valkey9.flush()
    caplog.set_level(logging.INFO, "anarchon")

    async def scenario() -> None:
        diary = Diary()
        quick, long = soon(0.7, every=0.5), soon(0.7, every=600)
        clocks = [WrongClock(off) for off in (90, 0, -90, 0)]
        instances: list[Scheduler] = []
        for number, clock in enumerate(clocks):
            instance = Scheduler(
                backend=RedisBackend(redis=valkey9.url),
                lease=1,
                runner=f"host {number}",
                environment=Environment(clock=clock),
            )
            add_job(instance, diary, "quick", quick, max_late=300)
            add_job(instance, diary, "long", long, 2.5, max_late=300)
            instances.append(instance)
        for instance in instances:
            await instance.start()
        for jump in (3600, -7200, 3600 * 24):
            count = len(diary.of("end", "quick"))
            clocks[3].off += jump
            await diary.wait("end", job="quick", count=count + 2)
        [end] = await diary.wait("end", job="long")
        await until(lambda: letters(valkey9, "long")[str(end.run.slot)] == "D", "end in the store")
        for instance in instances:
            await instance.stop()

        assert [note.run.attempt for note in diary.of("start", "long")] == [1]
        diary.assert_no_slot_twice()
        slots = diary.slots("quick")
        every = quick["every"]
        assert slots == [slots[0] + number * every for number in range(len(slots))]
        late = [note.late for note in diary.of("start")]
        assert min(late) >= 0
        assert max(late) < 0.5

    asyncio.run(scenario())
    told = [record.getMessage() for record in said(caplog.records, "clock.difference")]
    assert len([text for text in told if "ahead" in text]) >= 1
    assert len([text for text in told if "behind" in text]) >= 1
    assert said(caplog.records, "slots.passed-over") == []


def test_server_that_is_ahead_of_all_hosts_is_followed(valkey9: Server) -> None:
    valkey9.flush()

    async def scenario() -> None:
        diary = Diary()
        # Before the first answer the host's clock stands in; the slot is long past by it.
        clock = WrongClock(-600)
        instance = Scheduler(
            backend=RedisBackend(redis=valkey9.url), environment=Environment(clock=clock)
        )
        add_job(instance, diary, "work", soon(0.5, every=600))
        async with instance:
            assert -601 < instance.health().clock_ahead < -599
            [start] = await diary.wait("end")
            assert 0 <= start.late < 0.5

    asyncio.run(scenario())
