"""What the log is told of one run on this instance."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from anarchon.backends.base import ClaimAnswer, ClaimCode, Outcome, order_of
from anarchon.engine.log import CLAIMS, RUNS, STORE, tell
from anarchon.runs import moment

if TYPE_CHECKING:
    from anarchon.engine.attempt import Ending
    from anarchon.jobs import Job
    from anarchon.runs import Run


class RunNews:
    """Tells of a run: losers at DEBUG, the winner's start and end at INFO, trouble above."""

    def __init__(self, job: Job, run: str, runner: str) -> None:
        """Tell of one run."""
        self._job = job
        self._run = run
        self._fields: dict[str, object] = {
            "job": job.name,
            "run": run,
            "slot": order_of(run),
            "runner": runner,
        }

    def standing_by(self, attempt: int) -> None:
        """Another instance has the run."""
        message = f"{self._job.name}: standing by for attempt {attempt}"
        tell(CLAIMS, logging.DEBUG, "run.backup", message, **self._fields, attempt=attempt)

    def started(self, run: Run, *, retry: bool) -> None:
        """The run was won, and its body begins."""
        event, how = "run.started", "started"
        if run.attempt > 1:
            event, how = (
                ("run.retried", "tries again") if retry else ("run.taken-over", "took over")
            )
        message = f"{run.job}: {how}, attempt {run.attempt} of the run for {run.scheduled_for}"
        trigger = str(run.trigger)
        tell(
            RUNS, logging.INFO, event, message, **self._fields, attempt=run.attempt, trigger=trigger
        )

    def ended(self, attempt: int, max_attempts: int, ending: Ending) -> None:
        """The body ended. A failure is a WARNING while another attempt follows, then an ERROR."""
        outcome = ending.outcome or Outcome.NONE
        status = outcome.name.lower().replace("_", "-")
        level, error = logging.INFO, ending.error
        if outcome in {Outcome.FAILED, Outcome.TIMED_OUT, Outcome.NO_RETRY}:
            again = attempt < max_attempts and outcome is not Outcome.NO_RETRY
            level = logging.WARNING if again else logging.ERROR
        if outcome is Outcome.CANCELLED:
            error = None  # somebody wanted it so
        how = "failed for good" if outcome is Outcome.NO_RETRY else status
        message = f"{self._job.name}: attempt {attempt} of {max_attempts} {how}"
        tell(
            RUNS,
            level,
            f"run.{status}",
            message,
            error,
            **self._fields,
            attempt=attempt,
            max_attempts=max_attempts,
        )

    def unwanted(self, attempt: int) -> None:
        """The body's end was not taken by the store."""
        message = (
            f"{self._job.name}: the end of attempt {attempt} was not taken: another attempt has the"
            " run by now, or the store forgot it"
        )
        tell(RUNS, logging.WARNING, "run.unwanted", message, **self._fields, attempt=attempt)

    def given_back(self, attempt: int) -> None:
        """The lease was given back."""
        message = f"{self._job.name}: attempt {attempt} given back, for another instance"
        tell(RUNS, logging.INFO, "run.released", message, **self._fields, attempt=attempt)

    def abandoned(self) -> None:
        """A body did not end when the scheduler stopped."""
        message = (
            f"{self._job.name}: the run {self._run} did not end when told to and is abandoned; its"
            " lease is not given back and runs out"
        )
        tell(RUNS, logging.WARNING, "run.abandoned", message, **self._fields)

    def skipped(self) -> None:
        """The slot gives way to another run of the job."""
        why = "another run of the job is live (overlap=skip)"
        self._not_started("run.skipped", why, logging.INFO)

    def missed(self, why: str) -> None:
        """The slot can no longer be asked for."""
        self._not_started("run.missed", why)

    def no_room(self) -> None:
        """This instance was at its bound until it was too late."""
        self._not_started("run.no-room", "no place came free in time")

    def unanswered(self, error: Exception, *, superseded: bool) -> None:
        """The store did not answer until it was too late, or until a newer slot was due."""
        level = logging.INFO if superseded else logging.WARNING
        why = f"the store did not answer in time ({error})"
        self._not_started("run.unanswered", why, level)

    def over(self, answer: ClaimAnswer, place: str, *, superseded: bool) -> None:
        """The answer says that there is nothing to do here; `place` is where the record lies."""
        if answer.code is ClaimCode.BAD:
            message = f"{self._job.name}: the record of run {self._run} in {place} makes no sense"
            tell(STORE, logging.ERROR, "store.bad-record", message, **self._fields)
        elif answer.code is ClaimCode.LATE and superseded:
            why = "the store was away, and a newer slot is due by now"
            self._not_started("run.missed", why, logging.INFO)
        elif answer.code is ClaimCode.LATE:
            self.missed("it is too late for it")
        else:
            message = f"{self._job.name}: the run {self._run} is {answer.code}"
            tell(CLAIMS, logging.DEBUG, f"claim.{answer.code}", message, **self._fields)

    def _not_started(self, event: str, why: str, level: int = logging.WARNING) -> None:
        when = moment(order_of(self._run), self._job.slots.timezone)
        message = f"{self._job.name}: the run for {when} is not started: {why}"
        tell(CLAIMS, level, event, message, **self._fields)
