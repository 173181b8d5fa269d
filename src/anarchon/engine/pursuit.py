"""One run as this instance goes after it: asks, runs it when it wins, stands by when another did.

A pursuit lives from the moment a run is due (or was found open) until it is known to be over. It is
one task; there is one pursuit a run on an instance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from anarchon.backends.base import ClaimCode, Outcome, Overlap, State, order_of
from anarchon.engine.attempt import Attempt, Ending, Interruption
from anarchon.engine.claimant import Claimant
from anarchon.engine.clock import sleep_until
from anarchon.engine.handover import finish, give_back
from anarchon.engine.heartbeat import HeldLease
from anarchon.engine.news import RunNews
from anarchon.engine.timeline import PROMPT_MS
from anarchon.runs import Run, Trigger, moment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from anarchon.backends.base import ClaimAnswer, OpenRun
    from anarchon.engine.caller import Caller
    from anarchon.engine.chase import Chase
    from anarchon.engine.instance import Instance
    from anarchon.engine.link import Asked
    from anarchon.jobs import Job

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
        self._first_wait = first_wait
        self._caller = caller
        self._news = RunNews(instance, chase.job, chase.run)
        self._claimant = Claimant(instance, chase, self._news)
        self.waits_for_others: bool = False
        self._retries = False
        self._began = False
        self.given_up: bool = False
        self._ending: Ending | None = None
        self._hands_over = False
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
    def doing(self) -> str:
        """What is done here about the run just now, in words."""
        if self.attempt is not None:
            return f"runs attempt {self.attempt.run.attempt}"
        if self.waits_for_others:
            return "waits for another run of the job to end, and asks again"
        if self._claimant.seen:
            return f"stands by to take over after attempt {self._claimant.seen}"
        return "is asking for it, or waits for a place to run it"

    @property
    def idle(self) -> bool:
        """Whether nothing is under way that a shutdown would have to wait for."""
        return not (self.attempt or self._claimant.maybe_won or self._hands_over)

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
            and self._claimant.seconds_in_time() > 0
        ):
            return LONGEST_OVERLAP_WAIT_MS / 1000
        bounded = self._caller is None
        came = instance.server.now()
        if bounded and not await instance.room.take(self.job, self._claimant.seconds_in_time()):
            return 0.0 if self._claimant.seen else await self._without_room()
        try:
            if instance.stopping:
                return None
            if instance.server.now() - came > PROMPT_MS and self._waited_too_long():
                self._news.no_room(superseded=True)
                self._give_up()
                return None
            asked = await self._claimant.ask()
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

    async def _without_room(self) -> float | None:
        """No place came free in time: only ask what became of the run."""
        asked = await self._claimant.ask(to_win=False)
        if asked is not None and asked.answer.code is ClaimCode.WON:
            # Won before, and there is no place for it by now.
            await self._give_back(self._held(asked), asked.answer)
            return None
        if asked is not None and asked.answer.code is not ClaimCode.LATE:
            return self._act_on(asked.answer)
        if asked is not None:
            self._news.no_room(superseded=False)
        self._give_up()
        return None

    def _waited_too_long(self) -> bool:
        """Whether a newer slot is due by now, unless slots are to wait for one another."""
        first = not self._claimant.seen and self.job.options.overlap is not Overlap.WAIT
        return first and self._claimant.gives_way()

    def _give_up(self) -> None:
        """The slot was not asked for in time."""
        self.given_up = self._chase.trigger is Trigger.SCHEDULE

    def _act_on(self, answer: ClaimAnswer) -> float | None:
        code = answer.code
        if code is ClaimCode.EARLY:
            # The server's clock may have stepped back for a while only.
            return min(answer.rest / 1000, LONGEST_EARLY_WAIT)
        if code in {ClaimCode.RUNNING, ClaimCode.WAITING}:
            return self._stand_by(answer)
        if code is ClaimCode.OVERLAP:
            return self._wait_for_others(answer)
        if code is ClaimCode.LATE and self._claimant.seen:
            return self._claimant.spread()
        if code is ClaimCode.LATE:
            self._give_up()
            self._news.late(
                answer,
                queued=self._claimant.queued,
                away=bool(self._claimant.refusal),
                superseded=self._claimant.superseded_while_away,
            )
            return None
        self._news.over(answer, self._instance.link.store.place(self.job.name))
        return None

    def _stand_by(self, answer: ClaimAnswer) -> float | None:
        if self._caller and answer.attempt > self._claimant.seen:
            self._caller.moved()  # the pursuit goes on, as a backup
        self._claimant.see(answer.attempt)
        self._retries = answer.state is State.WAITING
        self._news.other_has(answer.attempt)
        if not answer.left:
            return None  # nobody can take over after the present attempt
        self._news.standing_by(answer.attempt)
        return answer.rest / 1000 + self._claimant.spread()

    def _wait_for_others(self, answer: ClaimAnswer) -> float | None:
        chase = self._chase
        if not self._claimant.seen:
            skips = self.job.options.overlap is Overlap.SKIP
            if skips and chase.trigger is not Trigger.CATCH_UP:
                self._claimant.refusal = "another run of the job is live"
                if chase.trigger is Trigger.SCHEDULE:
                    self._news.skipped()
                return None
            if self._instance.server.now() > chase.deadline:
                self._claimant.refusal = "another run of the job was live until it was too late"
                self._news.kept_waiting()
                return None
        self.waits_for_others = self._claimant.queued = True
        return min(answer.rest, LONGEST_OVERLAP_WAIT_MS) / 1000

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
        self._news.won(answer)
        self._retries = answer.outcome not in {None, Outcome.NONE}
        held = self._held(asked)
        if instance.stopping:
            await self._give_back(held, answer)
            return None
        if not held.believed():
            return 0.0  # the answer took too long to be believed; asking again renews the lease
        run = self._run_of(held, answer)
        ending = await self._carry_out(held, run)
        # The caller's alone: an error keeps everything alive that its frames refer to.
        self._ending = ending if self._caller else None
        self._claimant.see(answer.attempt)
        if ending.outcome is None:
            return self._claimant.spread()
        if ending.outcome is Outcome.RELEASED:
            await self._give_back(held, answer)
            return None
        return await self._finish(held, run, ending)

    def _held(self, asked: Asked[ClaimAnswer]) -> HeldLease:
        clock, claimant = self._instance.env.clock, self._claimant
        attempt = asked.answer.attempt
        return HeldLease(clock, claimant.terms, self.run, claimant.token, attempt, asked.sent)

    def _run_of(self, held: HeldLease, answer: ClaimAnswer) -> Run:
        order = order_of(self.run)
        return Run(
            job=self.job.name,
            slot=order,
            scheduled_for=moment(order, self.job.slots.timezone),
            attempt=answer.attempt,
            max_attempts=answer.max_attempts,
            token=self._claimant.token,
            fence=answer.fence,
            runner=self._instance.runner,
            trigger=answer.trigger or self._chase.trigger,
            lost=held.stop_signal,
        )

    async def _carry_out(self, held: HeldLease, run: Run) -> Ending:
        timeout = self.job.options.timeout
        attempt = self.attempt = Attempt(
            self.job.function,
            run,
            held,
            in_thread=self.job.in_thread,
            takes_run=self.job.takes_run,
            timeout=None if timeout is None else timeout / 1000,
            on_lost=lambda: self._news.lost(run, taken=held.taken),
            watch=self._instance.loop_watch,
        )
        self._began = True
        self._news.started(run, retry=self._retries)
        self._instance.heartbeats.keep(held)
        try:
            return await attempt.carry_out()
        finally:
            held.ended = True
            self.attempt = None

    async def _finish(self, held: HeldLease, run: Run, ending: Ending) -> float | None:
        self._news.ended(run, ending)
        delay = self.job.retry_delay(held.attempt, self._instance.env.rng)
        self._hands_over = True
        asked = await finish(self._instance, held, ending, delay)
        self._hands_over = False
        self._instance.ended(self.job.name)
        if asked is None:
            return None
        if not asked.answer.ok:
            self._news.unwanted(held.attempt)
            return 0.0  # another attempt stands, or nothing: the next answer tells
        if asked.answer.waiting:
            self._retries = True
            self._ending = None  # how the run ends is yet to be seen, here or elsewhere
            return asked.answer.rest / 1000 + self._claimant.spread()
        return None

    async def _give_back(self, held: HeldLease, answer: ClaimAnswer) -> None:
        self._hands_over = True
        asked = await give_back(self._instance, held)
        self._hands_over = False
        self._news.given_back(answer, taken=asked is not None and asked.answer.ok)

    def interrupt(self, why: Interruption) -> None:
        """Tell the body to stop, if one is running."""
        if self.attempt is not None:
            self.attempt.interrupt(why)

    def settle(self) -> None:
        """The run is over here: tell a manual run's caller how it ended, and remember why."""
        self._news.settle()
        if self._caller:
            refusal = "" if self._instance.stopping else self._claimant.refusal
            self._caller.settle(self._ending, began=self._began, refusal=refusal)

    def abandon(self) -> None:
        """Tell that the body goes on though the engine stops, if it does; it may take no step."""
        if self.attempt is not None:
            self._news.abandoned()
            self.attempt.held.give_up()
