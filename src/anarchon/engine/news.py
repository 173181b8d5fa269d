"""What the log, listeners and `why` are told of one run on this instance."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from anarchon.backends.base import ClaimAnswer, ClaimCode, Outcome, State, order_of
from anarchon.engine.log import CLAIMS, RUNS, STORE, tell
from anarchon.engine.reasons import Note
from anarchon.events import Event
from anarchon.reports import Reason
from anarchon.runs import RunStatus, moment

if TYPE_CHECKING:
    from anarchon.engine.attempt import Ending
    from anarchon.engine.instance import Instance
    from anarchon.events import EventName
    from anarchon.jobs import Job
    from anarchon.runs import Run, Trigger

_EVENTS: dict[Outcome, tuple[EventName, RunStatus]] = {
    Outcome.SUCCEEDED: ("succeeded", RunStatus.SUCCEEDED),
    Outcome.FAILED: ("failed", RunStatus.FAILED),
    Outcome.TIMED_OUT: ("failed", RunStatus.TIMED_OUT),
    Outcome.NO_RETRY: ("failed", RunStatus.FAILED),
    Outcome.CANCELLED: ("cancelled", RunStatus.CANCELLED),
}


class RunNews:
    """Tells of a run: losers at DEBUG, the winner's start and end at INFO, trouble above."""

    def __init__(self, instance: Instance, job: Job, run: str) -> None:
        """Tell of one run."""
        self._instance = instance
        self._job = job
        self._run = run
        self._note: Note | None = None
        self._ran = False
        self._won = 0
        self._fields: dict[str, object] = {
            "job": job.name,
            "run": run,
            "slot": order_of(run),
            "runner": instance.runner,
        }

    def other_has(self, attempt: int) -> None:
        """Another instance has the run."""
        self._note = Note(Reason.ANOTHER, f"another instance had attempt {attempt} of it")

    def standing_by(self, attempt: int) -> None:
        """Another instance has the run, and this one waits for its end."""
        message = f"{self._job.name}: standing by for attempt {attempt}"
        tell(CLAIMS, logging.DEBUG, "run.backup", message, **self._fields, attempt=attempt)

    def won(self, answer: ClaimAnswer) -> None:
        """A claim was answered with yes; told once for each attempt."""
        if answer.attempt == self._won:
            return
        self._won = answer.attempt
        self._emit(
            "won",
            attempt=answer.attempt,
            max_attempts=answer.max_attempts,
            trigger=answer.trigger,
        )

    def started(self, run: Run, *, retry: bool) -> None:
        """The run was won, and its body begins."""
        self._ran = True
        event, how = "run.started", "started"
        heard: EventName | None = None
        if run.attempt > 1:
            event, how, heard = (
                ("run.retried", "tries again", "retried")
                if retry
                else ("run.taken-over", "took over", "taken-over")
            )
        message = f"{run.job}: {how}, attempt {run.attempt} of the run for {run.scheduled_for}"
        trigger = str(run.trigger)
        tell(
            RUNS, logging.INFO, event, message, **self._fields, attempt=run.attempt, trigger=trigger
        )
        for name in (heard, "started"):
            if name is not None:
                self._emit(
                    name,
                    attempt=run.attempt,
                    max_attempts=run.max_attempts,
                    trigger=run.trigger,
                )

    def ended(self, run: Run, ending: Ending) -> None:
        """The body ended. A failure is a WARNING while another attempt follows, then an ERROR."""
        outcome = ending.outcome or Outcome.NONE
        status = outcome.name.lower().replace("_", "-")
        level, error, again = logging.INFO, ending.error, False
        if outcome in {Outcome.FAILED, Outcome.TIMED_OUT, Outcome.NO_RETRY}:
            again = run.attempt < run.max_attempts and outcome is not Outcome.NO_RETRY
            level = logging.WARNING if again else logging.ERROR
        if outcome is Outcome.CANCELLED:
            error = None  # somebody wanted it so
        how = "failed for good" if outcome is Outcome.NO_RETRY else status
        message = f"{self._job.name}: attempt {run.attempt} of {run.max_attempts} {how}"
        tell(
            RUNS,
            level,
            f"run.{status}",
            message,
            error,
            **self._fields,
            attempt=run.attempt,
            max_attempts=run.max_attempts,
        )
        name, told = _EVENTS[outcome]
        self._emit(
            name,
            attempt=run.attempt,
            max_attempts=run.max_attempts,
            trigger=run.trigger,
            status=told,
            will_retry=again,
            error=error,
        )

    def lost(self, run: Run, *, taken: bool) -> None:
        """The lease can no longer be believed in; `taken`: the store said so."""
        event, why = "run.fenced", "could not be renewed in time, so it is stopped here"
        if taken:
            event, why = "run.lost", "is no longer ours: another has the run, or it was forgotten"
        message = f"{run.job}: the lease of attempt {run.attempt} of the run for"
        message += f" {run.scheduled_for} {why}"
        trigger = str(run.trigger)
        tell(
            RUNS,
            logging.WARNING,
            event,
            message,
            **self._fields,
            attempt=run.attempt,
            trigger=trigger,
        )
        self._emit(
            "lost",
            attempt=run.attempt,
            max_attempts=run.max_attempts,
            trigger=run.trigger,
            reason=f"its lease {why}",
        )

    def unwanted(self, attempt: int) -> None:
        """The body's end was not taken by the store."""
        message = (
            f"{self._job.name}: the end of attempt {attempt} was not taken: another attempt has the"
            " run by now, or the store forgot it"
        )
        tell(RUNS, logging.WARNING, "run.unwanted", message, **self._fields, attempt=attempt)

    def given_back(self, answer: ClaimAnswer, *, taken: bool) -> None:
        """The lease won by `answer` was to be given back; `taken`: the store took it."""
        attempt = answer.attempt
        if not taken:
            message = (
                f"{self._job.name}: attempt {attempt} could not be given back; its lease runs out"
            )
            tell(RUNS, logging.WARNING, "run.kept", message, **self._fields, attempt=attempt)
            return
        message = f"{self._job.name}: attempt {attempt} given back"
        tell(RUNS, logging.INFO, "run.released", message, **self._fields, attempt=attempt)
        self._emit(
            "released",
            attempt=attempt,
            max_attempts=answer.max_attempts,
            trigger=answer.trigger,
            status=RunStatus.RELEASED,
        )

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
        self._not_started("run.skipped", Note(Reason.OVERLAP, why), logging.INFO, "skipped")

    def paused(self) -> None:
        """The job is paused in the store."""
        why = "the job is paused in the store"
        self._not_started("run.paused", Note(Reason.PAUSED, why), logging.DEBUG, "paused")

    def kept_waiting(self) -> None:
        """Another run of the job was live for so long that it is too late."""
        note = Note(Reason.OVERLAP, "another run of the job was live until it was too late")
        self._not_started("run.missed", note)

    def no_room(self, *, superseded: bool) -> None:
        """This instance was at its bound until it was too late, or until a newer slot was due."""
        until = "before a newer slot was due" if superseded else "in time"
        note = Note(Reason.NO_ROOM, f"no place came free here {until}")
        if superseded:
            # Others may have run it, and the newer one follows: nothing to warn of.
            self._not_started("run.no-room", note, logging.DEBUG, heard=None)
        else:
            self._not_started("run.no-room", note)

    def unanswered(self, error: Exception, *, superseded: bool) -> None:
        """The store did not answer until it was too late, or until a newer slot was due."""
        level = logging.INFO if superseded else logging.WARNING
        note = Note(Reason.STORE_AWAY, f"the store did not answer in time ({error})")
        self._not_started("run.unanswered", note, level, "missed")

    def late(self, answer: ClaimAnswer, *, queued: bool, away: bool, superseded: bool) -> None:
        """The store says that it is too late to start the run.

        `queued`: it waited for another run of the job; `away`: the store did not answer at first;
        `superseded`: and a newer slot is due by now.
        """
        level = logging.INFO if superseded else logging.WARNING
        if queued:
            self.kept_waiting()
            return
        if superseded:
            note = Note(Reason.STORE_AWAY, "the store was away, and a newer slot is due by now")
        elif away:
            note = Note(Reason.STORE_AWAY, "the store did not answer until it was too late")
        else:
            seconds = (answer.time - order_of(self._run)) / 1000
            why = f"it was asked for {seconds:.1f} s after its slot, which is too late"
            note = Note(Reason.MISSED, why)
        self._not_started("run.missed", note, level)

    def over(self, answer: ClaimAnswer, place: str) -> None:
        """The answer says that there is nothing to do here; `place` is where the record lies."""
        if answer.code is ClaimCode.BAD:
            message = f"{self._job.name}: the record of run {self._run} in {place} makes no sense"
            tell(STORE, logging.ERROR, "store.bad-record", message, **self._fields)
        elif answer.code is ClaimCode.PAUSED:
            self.paused()
        else:
            self._note = _note_of(answer) or self._note
            message = f"{self._job.name}: the run {self._run} is {answer.code}"
            tell(CLAIMS, logging.DEBUG, f"claim.{answer.code}", message, **self._fields)

    def passed_over(self, note: Note) -> None:
        """This run, and older ones, were not asked for here: it was too late for them."""
        self._emit("missed", reason=note.sentence)

    def settle(self) -> None:
        """The run is over here: remember why it was not run, if it was not."""
        if self._run.startswith("m"):
            return
        if self._ran:
            self._instance.reasons.ran(self._job.name, self._run)
        elif self._note is not None:
            self._instance.reasons.note(self._job.name, self._run, self._note)

    def _not_started(
        self,
        event: str,
        note: Note,
        level: int = logging.WARNING,
        heard: EventName | None = "missed",
    ) -> None:
        self._note = note
        when = moment(order_of(self._run), self._job.slots.timezone)
        message = f"{self._job.name}: the run for {when} is not started: {note.sentence}"
        tell(CLAIMS, level, event, message, **self._fields)
        if heard is not None:
            self._emit(heard, reason=note.sentence)

    def _emit(  # noqa: PLR0913 - the fields of an event
        self,
        name: EventName,
        *,
        attempt: int | None = None,
        max_attempts: int | None = None,
        trigger: Trigger | None = None,
        status: RunStatus | None = None,
        will_retry: bool = False,
        error: BaseException | None = None,
        reason: str = "",
    ) -> None:
        instance = self._instance
        if not instance.listeners.wanted(name):
            return
        event = Event(
            name=name,
            at=moment(instance.server.now()),
            runner=instance.runner,
            job=self._job.name,
            run=self._run,
            slot=moment(order_of(self._run), self._job.slots.timezone),
            attempt=attempt,
            max_attempts=max_attempts,
            trigger=trigger,
            status=status,
            will_retry=will_retry,
            error=error,
            reason=reason,
        )
        instance.listeners.hand_out(event)


def _note_of(answer: ClaimAnswer) -> Note | None:
    """Why a run that is over was not run here, as far as its record tells."""
    if answer.state is State.SKIPPED:
        paused = answer.outcome is Outcome.PAUSED
        why = "the job was paused in the store" if paused else "another run of the job was live"
        return Note(Reason.PAUSED if paused else Reason.OVERLAP, why)
    if answer.state is not None:
        return Note(Reason.ANOTHER, "another instance had run it already")
    return None
