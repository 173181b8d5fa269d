"""One run as this instance goes after it: asks, runs it when it wins, stands by when another did.

A pursuit lives from the moment a run is due (or was found open) until it is known to be over. It is
one task; there is one pursuit a run on an instance.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from anarchon.backends.base import ClaimCode, ClaimRequest, Outcome, Overlap, order_of
from anarchon.engine.attempt import Attempt, Ending, Interruption
from anarchon.engine.clock import sleep_until
from anarchon.engine.heartbeat import HeldLease
from anarchon.engine.link import URGENT_PAUSE, Asked, Pauses, repeat
from anarchon.engine.news import RunNews
from anarchon.engine.presence import ask_time
from anarchon.engine.timeline import superseded
from anarchon.errors import StoreError, StoreRefused
from anarchon.runs import Run, Trigger, moment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from anarchon.backends.base import ClaimAnswer, JobTerms, OpenRun
    from anarchon.engine.caller import Caller
    from anarchon.engine.chase import Chase
    from anarchon.engine.instance import Instance
    from anarchon.jobs import Job

BACKUP_SPREAD = 0.25
"""Seconds over which backups spread their asking after a lease end."""
LONGEST_OVERLAP_WAIT_MS = 1000
LONGEST_EARLY_WAIT = 10.0
"""Seconds."""


class Fellows(Protocol):
    """The other pursuits of an instance."""

    def adopt(self, job: Job, open_runs: Iterable[OpenRun]) -> None:
        """Go after open runs that an answer named."""
        ...

    def waits_behind(self, pursuit: Pursuit) -> bool:
        """Whether an older run of the same job waits here: it goes first."""
        ...


class Pursuit:
    """Goes after one run until it is over."""

    def __init__(
        self,
        instance: Instance,
        fellows: Fellows,
        chase: Chase,
        *,
        first_wait: float = 0.0,
        caller: Caller | None = None,
    ) -> None:
        """Ask after `first_wait` seconds; `caller` waits for a manual run asked for here."""
        self._instance = instance
        self._fellows = fellows
        self._chase = chase
        self._terms: JobTerms = instance.terms(chase.job)
        self._seen = chase.seen
        self._token = _new_token(instance)
        self._first_wait = first_wait
        self._caller = caller
        self._news = RunNews(chase.job, chase.run, instance.runner)
        self._unknown = False
        self.waits_for_others = False
        self._retries = False
        self._queued = False
        self._began = False
        self._max_attempts = 0
        self.given_up = False
        self._ending: Ending | None = None
        self.maybe_won = False
        self.attempt: Attempt | None = None

    @property
    def job(self) -> Job:
        """The job whose run this is."""
        return self._chase.job

    @property
    def run(self) -> str:
        """The run gone after."""
        return self._chase.run

    @property
    def idle(self) -> bool:
        """Whether nothing is under way that a shutdown would have to wait for."""
        return self.attempt is None and not self.maybe_won

    async def go(self) -> None:
        """Go after the run until it is over."""
        wait: float | None = self._first_wait
        while wait is not None and not self._instance.stopping:
            await self._rest(wait)
            wait = await self._turn()

    # -- one turn: take a place, ask, act on the answer ------------------------------------------

    async def _turn(self) -> float | None:
        """Ask once and act on it; the seconds until the next turn, None when it is over."""
        instance = self._instance
        if (
            self.waits_for_others
            and self._fellows.waits_behind(self)
            and self._seconds_in_time() > 0
        ):
            return LONGEST_OVERLAP_WAIT_MS / 1000
        bounded = self._caller is None
        if bounded and not await instance.room.take(self.job, self._seconds_in_time()):
            if self._seen:
                return 0.0
            self._news.no_room()
            self._give_up()
            return None
        try:
            if instance.stopping:
                return None
            asked = await self._ask()
            self.maybe_won = False
            if asked is None:
                self._give_up()
                return None
            self._fellows.adopt(self.job, asked.answer.others)
            self.waits_for_others = False
            if asked.answer.code is ClaimCode.WON:
                return await self._won(asked)
        finally:
            if bounded:
                instance.room.leave(self.job)
        return self._act_on(asked.answer)

    async def _ask(self) -> Asked[ClaimAnswer] | None:
        """The claim, repeated after an unknown outcome; None when there is no more use in it."""
        pauses = Pauses(self._instance.env.rng)
        self._unknown = False
        while True:
            request = self._request()
            self.maybe_won = True
            try:
                return await self._send(request)
            except StoreError as error:
                self._unknown = self._unknown or not isinstance(error, StoreRefused)
                self.maybe_won = self._unknown
                if not self._worth_repeating(error):
                    if not self._instance.stopping:
                        self._news.unanswered(error, superseded=self._gives_way())
                    return None
            if self._seen:
                await self._let_holders_speak()
            else:
                await asyncio.sleep(pauses.next())

    async def _let_holders_speak(self) -> None:
        """After an outage, wait before taking over: a holder that ended meanwhile goes first.

        It could not write its end, so its lease looks abandoned. It repeats that word, but one copy
        may be waited for until its time is out.
        """
        await repeat(
            self._instance.link,
            ask_time,
            self._instance.env.rng,
            lambda _error: not self._instance.stopping,
        )
        longest_silence = self._instance.options.call_timeout / 1000 + URGENT_PAUSE
        await asyncio.sleep(longest_silence + self._spread())

    async def _send(self, request: ClaimRequest) -> Asked[ClaimAnswer]:
        return await self._instance.link.ask(lambda store: store.claim(self._terms, request))

    def _request(self) -> ClaimRequest:
        chase = self._chase
        takeover = self._instance.server.now() + self._terms.lease
        return ClaimRequest(
            run=chase.run,
            token=self._token,
            seen=self._seen,
            slot=chase.slot,
            deadline=takeover if self._seen else self._deadline(),
            last=chase.last,
            runner=self._instance.runner,
            trigger=chase.trigger,
            since_applies=chase.since_applies,
        )

    def _deadline(self) -> int:
        """The deadline of a first claim.

        It is past for a claim whose answer was lost and that must not win any more, because a newer
        slot is due by now: then it only asks what became of it.
        """
        return 0 if self._unknown and self._gives_way() else self._chase.deadline

    def _gives_way(self) -> bool:
        # A slot that was told to wait for another run keeps its place for as long as it is in time.
        scheduled = self._chase.trigger is Trigger.SCHEDULE and not self._queued
        return scheduled and superseded(self.job, self._chase.slot, self._instance.server.now())

    def _give_up(self) -> None:
        """The slot was not asked for in time."""
        self.given_up = self._chase.trigger is Trigger.SCHEDULE

    def _worth_repeating(self, error: StoreError) -> bool:
        instance = self._instance
        if instance.stopping:
            # A silent store may have granted the run; one that refuses will not answer soon enough.
            return self.maybe_won and not isinstance(error, StoreRefused)
        if self._seen:
            return True
        if not self._unknown and self._gives_way():
            return False
        late_by = instance.server.now() - self._chase.deadline
        return late_by <= (self._terms.lease if self.maybe_won else 0)

    def _seconds_in_time(self) -> float:
        if self._seen:
            return self._terms.lease / 1000
        return self._instance.server.seconds_until(self._chase.deadline)

    def _act_on(self, answer: ClaimAnswer) -> float | None:
        code = answer.code
        if code is ClaimCode.EARLY:
            # The server's clock may have stepped back for a while only.
            return min(answer.rest / 1000, LONGEST_EARLY_WAIT)
        if code in {ClaimCode.RUNNING, ClaimCode.WAITING}:
            return self._stand_by(answer)
        if code is ClaimCode.OVERLAP:
            return self._wait_for_others(answer)
        if code is ClaimCode.LATE and self._seen:
            return self._spread()
        if code is ClaimCode.LATE:
            self._give_up()
        place = self._instance.link.store.place(self.job.name)
        self._news.over(answer, place, superseded=self._unknown and self._gives_way())
        return None

    def _stand_by(self, answer: ClaimAnswer) -> float | None:
        if self._caller and answer.attempt > self._seen:
            self._caller.moved()  # the pursuit goes on, as a backup
        self._see(answer.attempt)
        self._retries = answer.code is ClaimCode.WAITING
        if not answer.left:
            return None  # nobody can take over after the present attempt
        self._news.standing_by(answer.attempt)
        return answer.rest / 1000 + self._spread()

    def _wait_for_others(self, answer: ClaimAnswer) -> float | None:
        chase = self._chase
        if not self._seen:
            skips = self.job.options.overlap is Overlap.SKIP
            if skips and chase.trigger is not Trigger.CATCH_UP:
                if chase.trigger is Trigger.SCHEDULE:
                    self._news.skipped()
                return None
            if self._instance.server.now() > chase.deadline:
                self._news.missed("another run of the job was live until too late")
                return None
        self.waits_for_others = self._queued = True
        return min(answer.rest, LONGEST_OVERLAP_WAIT_MS) / 1000

    def _spread(self) -> float:
        return self._instance.env.rng.uniform(0, BACKUP_SPREAD)

    def _see(self, attempt: int) -> None:
        """Remember the attempt number told; a claim for another attempt needs another token."""
        if attempt != self._seen:
            self._seen = attempt
            self._token = _new_token(self._instance)

    async def _rest(self, seconds: float) -> None:
        """Wait; when waiting for other runs of the job, no longer than until one ends here."""
        if seconds <= 0:
            return
        if self.waits_for_others:
            await self._instance.wait_for_end(self.job.name, seconds)
        else:
            clock = self._instance.env.clock
            await sleep_until(clock, clock.boot() + seconds)

    # -- a won run ---------------------------------------------------------------------------------

    async def _won(self, asked: Asked[ClaimAnswer]) -> float | None:
        instance, answer = self._instance, asked.answer
        held = HeldLease(
            instance.env.clock, self._terms, self.run, self._token, answer.attempt, asked.sent
        )
        if instance.stopping:
            await self._give_back(held)
            return None
        if not held.believed():
            return 0.0  # the answer took too long to be believed; asking again renews the lease
        ending = await self._carry_out(held, answer)
        self._ending = ending
        self._see(answer.attempt)
        if ending.outcome is None:
            return self._spread()
        if ending.outcome is Outcome.RELEASED:
            await self._give_back(held)
            return None
        return await self._finish(held, ending)

    async def _carry_out(self, held: HeldLease, answer: ClaimAnswer) -> Ending:
        instance = self._instance
        order = order_of(self.run)
        run = Run(
            job=self.job.name,
            slot=order,
            scheduled_for=moment(order, self.job.slots.timezone),
            attempt=answer.attempt,
            max_attempts=answer.max_attempts,
            token=self._token,
            fence=answer.fence,
            runner=instance.runner,
            trigger=answer.trigger or self._chase.trigger,
            lost=held.stop_signal,
        )
        timeout = self.job.options.timeout
        attempt = self.attempt = Attempt(
            self.job.function,
            run,
            held,
            in_thread=self.job.in_thread,
            takes_run=self.job.takes_run,
            timeout=None if timeout is None else timeout / 1000,
        )
        self._began = True
        self._max_attempts = answer.max_attempts
        self._news.started(run, retry=self._retries)
        instance.heartbeats.keep(held)
        try:
            return await attempt.carry_out()
        finally:
            held.ended = True
            self.attempt = None

    async def _finish(self, held: HeldLease, ending: Ending) -> float | None:
        outcome = ending.outcome or Outcome.NONE
        self._news.ended(held.attempt, self._max_attempts, ending)
        delay = self.job.retry_delay(held.attempt, self._instance.env.rng)
        self.maybe_won = True
        asked = await repeat(
            self._instance.link,
            lambda store: store.finish(
                self._terms, self.run, held.token, outcome, ending.text, delay
            ),
            self._instance.env.rng,
            lambda error: not (self._instance.stopping and isinstance(error, StoreRefused)),
            URGENT_PAUSE,
        )
        self.maybe_won = False
        self._instance.ended(self.job.name)
        if asked is None:
            return None
        if not asked.answer.ok:
            self._news.unwanted(held.attempt)
            return 0.0  # another attempt stands, or nothing: the next answer tells
        if asked.answer.waiting:
            self._retries = True
            return asked.answer.rest / 1000 + self._spread()
        return None

    async def _give_back(self, held: HeldLease) -> None:
        self.maybe_won = True
        await repeat(
            self._instance.link,
            lambda store: store.release(self._terms, self.run, held.token, Outcome.RELEASED),
            self._instance.env.rng,
            lambda error: not isinstance(error, StoreRefused),
            URGENT_PAUSE,
        )
        self.maybe_won = False
        self._news.given_back(held.attempt)

    def interrupt(self, why: Interruption) -> None:
        """Tell the body to stop, if one is running."""
        if self.attempt is not None:
            self.attempt.interrupt(why)

    def settle(self) -> None:
        """Tell a manual run's caller how it ended here."""
        if self._caller:
            self._caller.settle(self._ending, began=self._began)

    def abandon(self) -> None:
        """Tell that the body goes on though the engine stops, if it does."""
        if self.attempt is not None:
            self._news.abandoned()


def _new_token(instance: Instance) -> str:
    return instance.random_name(12)
