"""The jobs of the demo: what an application might do, only sooner and more often."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from anarchon import Cron, Every

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from anarchon import JobSettings, Run

LEASE = 2.0
"""The lease of the demo, in seconds: short, so that a takeover can be waited for."""
LONG_JOB = "build-report"
"""The job in the middle of whose run an instance is killed."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class StoppedShort(Exception):  # noqa: N818 - no error: the thread did as it was told
    """A plain function ended early because its run was lost."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A job of the demo: its schedule, its settings, and its work: async, or plain for a thread."""

    name: str
    schedule: Cron | Every
    seconds: float
    """How long its work takes."""
    settings: JobSettings
    work: Callable[[Run], Coroutine[object, object, None]] | None = None
    thread_work: Callable[[Run], None] | None = None

    def slots(self, start: int, end: int) -> list[int]:
        """The slots from `start` up to, but not including, `end`; milliseconds since the epoch."""
        found: list[int] = []
        slot = self._next_after(start - 1)
        while slot is not None and slot < end:
            found.append(slot)
            slot = self._next_after(slot)
        return found

    def _next_after(self, ms: int) -> int | None:
        slot = self.schedule.next_after(_EPOCH + ms * _MILLISECOND)
        return None if slot is None else milliseconds_of(slot)


def milliseconds_of(moment: datetime) -> int:
    """The milliseconds since the epoch of an aware datetime."""
    return (moment - _EPOCH) // _MILLISECOND


async def poll_inbox(_run: Run) -> None:
    """Something short, every second."""
    await asyncio.sleep(0.15)


async def sync_stock(_run: Run) -> None:
    """Something that takes a moment."""
    await asyncio.sleep(0.6)


async def charge_cards(run: Run) -> None:
    """Something that fails now and then, and succeeds when it is tried again."""
    await asyncio.sleep(0.35)
    if run.attempt == 1 and run.slot // 3000 % 2 == 0:
        message = "the payment service did not answer"
        raise ConnectionError(message)


def resize_images(run: Run) -> None:
    """A plain function: it runs in a thread, and looks between its steps whether to go on."""
    for _ in range(12):
        time.sleep(0.1)
        if run.lost.is_set():
            raise StoppedShort


async def build_report(_run: Run) -> None:
    """Something that takes longer than its interval: the slot in between is skipped."""
    await asyncio.sleep(4)


PLANS = (
    # While a killed instance still holds the lease of one slot, the next ones need not wait.
    Plan("poll-inbox", Every(1), 0.15, {"overlap": "allow"}, work=poll_inbox),
    Plan("sync-stock", Cron("*/2 * * * * *"), 0.6, {}, work=sync_stock),
    Plan("charge-cards", Every(3), 0.35, {"retry_delay": 0.4}, work=charge_cards),
    Plan("resize-images", Every(2.5), 1.2, {}, thread_work=resize_images),
    Plan(LONG_JOB, Every(3), 4.0, {"overlap": "skip"}, work=build_report),
)
