"""Asks the store for one run: with one token, repeated until answered or of no more use."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from anarchon.backends.base import ClaimRequest
from anarchon.engine.link import URGENT_PAUSE, Pauses, repeat
from anarchon.engine.presence import ask_time
from anarchon.engine.timeline import superseded
from anarchon.errors import StoreError, StoreRefused
from anarchon.runs import Trigger

if TYPE_CHECKING:
    from anarchon.backends.base import ClaimAnswer, JobTerms
    from anarchon.engine.chase import Chase
    from anarchon.engine.instance import Instance
    from anarchon.engine.link import Asked
    from anarchon.engine.news import RunNews

BACKUP_SPREAD = 0.25
"""Seconds over which backups spread their asking after a lease end."""


class Claimant:
    """Asks for one run.

    `seen` is the attempt number that it was last told of; `token` is the same until a higher one is
    told. `maybe_won`: a claim is out whose answer is not known. `refusal`: why it got no answer.
    """

    def __init__(self, instance: Instance, chase: Chase, news: RunNews) -> None:
        """Nothing is asked yet."""
        self._instance = instance
        self._chase = chase
        self._news = news
        self._unknown = False
        self.terms: JobTerms = instance.terms(chase.job)
        self.seen: int = chase.seen
        self.token: str = instance.random_name(12)
        self.maybe_won: bool = False
        self.queued = False
        """Whether it was told to wait for another run of the job: then it keeps its place."""
        self.refusal: str = ""

    async def ask(self, *, to_win: bool = True) -> Asked[ClaimAnswer] | None:
        """The claim, repeated after an unknown outcome; None when there is no more use in it.

        One that is not `to_win` only asks what became of the run.
        """
        instance = self._instance
        pauses = Pauses(instance.env.rng)
        self._unknown = False
        self.refusal = ""
        while True:
            request = self._request(to_win=to_win)
            self.maybe_won = True
            try:
                asked = await self._send(request)
            except StoreError as error:
                self._unknown = self._unknown or not isinstance(error, StoreRefused)
                self.maybe_won = self._unknown
                self.refusal = f"the store did not answer in time ({error})"
                if not self._worth_repeating(error):
                    if not instance.stopping:
                        self._news.unanswered(error, superseded=self.gives_way())
                    self.maybe_won = False
                    return None
            else:
                self.maybe_won = False
                return asked
            if self.seen:
                await self._let_holders_speak()
            else:
                await asyncio.sleep(pauses.next())

    def see(self, attempt: int) -> None:
        """Remember the attempt number told; a claim for another attempt needs another token."""
        if attempt != self.seen:
            self.seen = attempt
            self.token = self._instance.random_name(12)

    def spread(self) -> float:
        """A small random delay, in seconds, so that backups do not all ask at once."""
        return self._instance.env.rng.uniform(0, BACKUP_SPREAD)

    def seconds_in_time(self) -> float:
        """How long the run can still be asked for."""
        if self.seen:
            return self.terms.lease / 1000
        return self._instance.server.seconds_until(self._chase.deadline)

    def gives_way(self) -> bool:
        """Whether a newer slot is due by now, which goes before this one."""
        scheduled = self._chase.trigger is Trigger.SCHEDULE and not self.queued
        now = self._instance.server.now()
        return scheduled and superseded(self._chase.job, self._chase.slot, now)

    @property
    def superseded_while_away(self) -> bool:
        """Whether the last claim was repeated only to learn what became of the run."""
        return self._unknown and self.gives_way()

    async def _let_holders_speak(self) -> None:
        """After an outage, wait before taking over: a holder that ended meanwhile goes first.

        It could not write its end, so its lease looks abandoned. It repeats that word, but one copy
        may be waited for until its time is out.
        """
        instance = self._instance
        await repeat(
            instance.link, ask_time, instance.env.rng, lambda _error: not instance.stopping
        )
        longest_silence = instance.options.call_timeout / 1000 + URGENT_PAUSE
        await asyncio.sleep(longest_silence + self.spread())

    async def _send(self, request: ClaimRequest) -> Asked[ClaimAnswer]:
        return await self._instance.link.ask(lambda store: store.claim(self.terms, request))

    def _request(self, *, to_win: bool) -> ClaimRequest:
        chase = self._chase
        takeover = self._instance.server.now() + self.terms.lease
        return ClaimRequest(
            run=chase.run,
            token=self.token,
            seen=self.seen,
            slot=chase.slot,
            deadline=takeover if self.seen else self._deadline(to_win=to_win),
            last=chase.last,
            runner=self._instance.runner,
            trigger=chase.trigger,
            since_applies=chase.since_applies,
        )

    def _deadline(self, *, to_win: bool) -> int:
        """The deadline of a first claim.

        It is past for a claim whose answer was lost and that must not win any more, because a newer
        slot is due by now: then it only asks what became of it.
        """
        return self._chase.deadline if to_win and not self.superseded_while_away else 0

    def _worth_repeating(self, error: StoreError) -> bool:
        instance = self._instance
        if instance.stopping:
            # A silent store may have granted the run; one that refuses will not answer soon enough.
            return self.maybe_won and not isinstance(error, StoreRefused)
        if self.seen:
            return True
        if not self._unknown and self.gives_way():
            return False
        late_by = instance.server.now() - self._chase.deadline
        return late_by <= (self.terms.lease if self.maybe_won else 0)
