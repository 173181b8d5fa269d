"""When: which slots of which jobs are due, asked for with one timer for all jobs.

What is decided here is decided by pure functions that take the time; only the loop reads the clock.
All moments are the server's, in milliseconds.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anarchon.engine.clock import LONGEST_SLEEP
from anarchon.engine.log import SCHEDULER, tell
from anarchon.errors import ScheduleError

if TYPE_CHECKING:
    from collections.abc import Callable

    from anarchon.engine.clock import ServerClock
    from anarchon.jobs import Job

ASK_AGAIN_MS = 60_000
"""After what time a schedule that failed is asked again."""
PROMPT_MS = 1000
"""A slot that is overdue by no more than this is asked for even if a newer one is due as well."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at a job's schedule found.

    `ask` are the slots to ask for now, `later` those whose delay is not over; slots up to
    `missed_until` that are in neither are let go (None: there are none). All slots up to `cursor`
    are dealt with; `next_slot` is the first after it.
    """

    ask: tuple[int, ...]
    later: tuple[int, ...]
    missed_until: int | None
    cursor: int
    next_slot: int | None


def look(job: Job, cursor: int, now: int) -> Look:
    """Deal with the slots in (cursor, now].

    Of the slots that are due, the newest is asked for; an instance that wakes late over several
    lets the older ones go. Where jitter makes slots overtake each other, one whose own delay has
    just ended (by at most a second) is asked for as well. The work does not grow with the length of
    the gap: only slots within the jitter of now are walked.
    """
    start = cursor
    undecided = max(cursor, now - job.options.jitter - 1)
    due: list[int] = []
    later: list[int] = []
    newest_old = job.slots.newest(undecided, cursor) if undecided > cursor else None
    if newest_old is not None:
        due.append(newest_old)
    slot = job.slots.next_after(undecided)
    while slot is not None and slot <= now:
        (due if slot + job.delay_of(slot) <= now else later).append(slot)
        cursor = slot
        slot = job.slots.next_after(slot)
    ask = [s for s in due if s == due[-1] or now - s - job.delay_of(s) <= PROMPT_MS]
    missed = [s for s in due if s not in ask]
    newest_before = None if newest_old is None else job.slots.newest(newest_old - 1, start)
    if not missed and newest_before is not None:
        missed = [newest_before]
    return Look(
        ask=tuple(ask),
        later=tuple(later),
        missed_until=max(missed, default=None),
        cursor=max(cursor, undecided),
        next_slot=slot,
    )


def in_time(job: Job, slot: int, now: int) -> bool:
    """Whether a slot can still be asked for as a scheduled one."""
    return now <= latest(job, slot)


def latest(job: Job, slot: int) -> int:
    """The last moment at which a slot can be asked for as a scheduled one."""
    return slot + job.delay_of(slot) + job.options.max_late


def superseded(job: Job, slot: int, now: int) -> bool:
    """Whether a newer slot of the job is due for sure, so that this one has to give way to it."""
    try:
        return job.slots.newest(now - job.options.jitter, slot) is not None
    except ScheduleError:
        return False  # a user's schedule that fails just now says nothing


def tell_schedule_failed(job: Job, error: Exception) -> None:
    """Log that a job's schedule raised, or answered nonsense."""
    message = f"{job.name}: its schedule failed; it is asked again in a minute: {error}"
    tell(SCHEDULER, logging.ERROR, "job.schedule-failed", message, error, job=job.name)


@dataclass(order=True, slots=True)
class _Entry:
    at: int
    order: int
    job: Job
    slot: int | None
    """The slot to ask for; None to look at the job's schedule."""


class Timeline:
    """Wakes when slots are due, and hands them to `ask`."""

    def __init__(
        self,
        server: ServerClock,
        ask: Callable[[Job, int], None],
        let_go: Callable[[Job, int, int], None],
    ) -> None:
        """Wake by the server's clock; `let_go` hears of slots in (a, b] it was too late for."""
        self._server = server
        self._ask = ask
        self._let_go = let_go
        self._entries: list[_Entry] = []
        self._order = itertools.count()
        self._cursors: dict[str, int] = {}
        self._added: dict[str, int] = {}
        self._changed = asyncio.Event()

    def add(self, job: Job, cursor: int) -> None:
        """Take a job in; its slots after `cursor` are dealt with."""
        self._cursors[job.name] = self._added[job.name] = cursor
        self._push(self._server.now(), job, None)
        self._changed.set()

    def reconsider(self, step: int) -> None:
        """Look again, since the server's clock turned out to differ by `step` milliseconds.

        After a step back, slots that were dealt with too early are asked for again when due:
        those that ran are done.
        """
        if step < -PROMPT_MS:
            now = self._server.now()
            looks = [entry for entry in self._entries if entry.slot is None]
            self._entries = [entry for entry in self._entries if entry.slot is not None]
            heapq.heapify(self._entries)
            for entry in looks:
                # The step may be older than the answer that told of it: look back as at a start.
                job = entry.job
                back = max(self._added[job.name], now - job.keep - 1)
                self._cursors[job.name] = min(back, self._cursors[job.name])
                self._push(now, job, None)
        self._changed.set()

    async def turn(self) -> None:
        """Hand out what is due, for ever."""
        while True:
            self._changed.clear()
            now = self._server.now()
            while self._entries and self._entries[0].at <= now:
                self._deal_with(heapq.heappop(self._entries), now)
            await self._sleep()

    async def _sleep(self) -> None:
        seconds = LONGEST_SLEEP
        if self._entries:
            seconds = min(seconds, self._server.seconds_until(self._entries[0].at))
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass  # the usual case: it is time

    def _push(self, at: int, job: Job, slot: int | None) -> None:
        heapq.heappush(self._entries, _Entry(at, next(self._order), job, slot))

    def _deal_with(self, entry: _Entry, now: int) -> None:
        job = entry.job
        try:
            if entry.slot is None:
                self._look(job, now)
            else:
                self._ask_if_newest(job, entry.slot, now)
        except Exception as error:  # noqa: BLE001 - one job's schedule never stops the others
            self._push(now + ASK_AGAIN_MS, job, None)
            tell_schedule_failed(job, error)

    def _look(self, job: Job, now: int) -> None:
        before = self._cursors[job.name]
        seen = look(job, before, now)
        self._cursors[job.name] = seen.cursor
        if seen.missed_until is not None:
            self._let_go(job, before, seen.missed_until)
        if seen.next_slot is not None:
            self._push(seen.next_slot, job, None)
        for slot in seen.later:
            self._push(slot + job.delay_of(slot), job, slot)
        for slot in seen.ask:
            self._ask(job, slot)

    def _ask_if_newest(self, job: Job, slot: int, now: int) -> None:
        overdue = now - slot - job.delay_of(slot)
        if overdue > PROMPT_MS and superseded(job, slot, now):
            self._let_go(job, slot - 1, slot)
        else:
            self._ask(job, slot)
