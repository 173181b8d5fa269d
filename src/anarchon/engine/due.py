"""What becomes of a slot that is due: it is asked for, caught up, or let go."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from anarchon.engine.chase import Chase
from anarchon.engine.log import CLAIMS, tell
from anarchon.engine.news import RunNews
from anarchon.engine.reasons import Note
from anarchon.engine.timeline import (
    ASK_AGAIN_MS,
    in_time,
    latest,
    superseded,
    tell_schedule_failed,
)
from anarchon.errors import ScheduleError
from anarchon.reports import Reason
from anarchon.runs import Trigger, moment

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from anarchon.engine.instance import Instance
    from anarchon.engine.pursuits import Pursuits
    from anarchon.jobs import Job


TOLD_EVERY_MS = 60_000
"""How often, for each job, an instance warns of slots that it was too late for."""


class DueSlots:
    """Decides on due slots; knows since when each job is registered and watched here."""

    def __init__(
        self, instance: Instance, duty: Callable[[Coroutine[object, object, None]], None]
    ) -> None:
        """`duty` runs what goes on behind, until the engine stops."""
        self._instance = instance
        self._duty = duty
        self._since: dict[str, int] = {}
        self._watched_from: dict[str, int] = {}
        self._told_at: dict[str, int] = {}
        self._catching_up: dict[str, asyncio.Lock] = {}
        self.pursuits: Pursuits

    def watch(self, job: Job, since: int, now: int) -> None:
        """Take a job in, whose schedule the store knows since then."""
        self._since[job.name] = since
        self._watched_from[job.name] = now

    def ask(self, job: Job, slot: int) -> None:
        """A slot is due."""
        options = job.options
        now = self._instance.server.now()
        look_back = slot <= self._watched_from[job.name]
        last = slot + job.keep
        scheduled = Chase(job, str(slot), Trigger.SCHEDULE, latest(job, slot), last, look_back)
        if in_time(job, slot, now):
            self.pursuits.start(scheduled)
        elif now <= slot + options.catch_up and options.coalesce:
            self.pursuits.start(_catch_up_of(job, slot, _deadline_of_catch_up(job, slot)))
        elif look_back and not options.catch_up:
            # Too late; but the store is asked, so that it tells of it as missed if nobody ran it.
            self.pursuits.start(scheduled)
        else:
            self.let_go(job, slot - 1, slot)

    def let_go(self, job: Job, after: int, until: int) -> None:
        """Slots that this instance was too late for: missed, unless they are caught up."""
        options = job.options
        oldest = max(after, self._since[job.name], self._instance.server.now() - options.catch_up)
        if options.catch_up and not options.coalesce and oldest < until:
            self._duty(self._catch_up(job, oldest, until))
            return
        if until <= self._watched_from[job.name]:
            return  # the look-back of a start: other instances were there, or nobody was late
        if self._instance.reasons.ran_here(job.name, str(until)):
            return  # the store's clock was set back, and they are looked at once more
        why = "it was busy or suspended until it was too late"
        note = Note(Reason.MISSED, why)
        self._instance.reasons.note_stretch(job.name, after, until, note)
        RunNews(self._instance, job, str(until)).passed_over(note)
        message = (
            f"{job.name}: this instance was too late for its slots up to {moment(until)}; it asks"
            " for newer ones only"
        )
        now = self._instance.server.now()
        recently = now - self._told_at.get(job.name, 0) < TOLD_EVERY_MS
        if not recently:
            self._told_at[job.name] = now
        level = logging.DEBUG if recently else logging.WARNING
        tell(CLAIMS, level, "slots.passed-over", message, job=job.name, slot=until)

    def given_up(self, job: Job, slot: int) -> None:
        """A slot that was due was not asked for in time; it may still be caught up."""
        if not job.options.catch_up:
            return
        if not superseded(job, slot, self._instance.server.now()):
            self.ask(job, slot)
        elif not job.options.coalesce:
            self.let_go(job, slot - 1, slot)

    async def _catch_up(self, job: Job, after: int, until: int) -> None:
        """Go after each slot in (after, until], oldest first, one after the other."""
        async with self._catching_up.setdefault(job.name, asyncio.Lock()):
            slot = await _slot_after(job, after)
            while slot is not None and slot <= until:
                task = self.pursuits.start(_catch_up_of(job, slot, slot + job.options.catch_up))
                if task is not None:
                    await asyncio.wait([task])
                slot = await _slot_after(job, slot)


async def _slot_after(job: Job, moment: int) -> int | None:
    """The next slot after a moment; a user's schedule that fails is asked again."""
    while True:
        try:
            return job.slots.next_after(moment)
        except ScheduleError as error:
            tell_schedule_failed(job, error)
        await asyncio.sleep(ASK_AGAIN_MS / 1000)


def _deadline_of_catch_up(job: Job, slot: int) -> int:
    """Only the newest slot is caught up, so until the next one, if that can be told."""
    deadline = slot + job.options.catch_up
    with contextlib.suppress(ScheduleError):
        next_slot = job.slots.next_after(slot)
        if next_slot is not None:
            return min(deadline, next_slot)
    return deadline


def _catch_up_of(job: Job, slot: int, deadline: int) -> Chase:
    return Chase(job, str(slot), Trigger.CATCH_UP, deadline, slot + job.keep, since_applies=True)
