"""Why a run did or did not take place, put into sentences. Pure: everything known is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from anarchon.backends.base import order_of
from anarchon.errors import ScheduleError
from anarchon.reports import Explanation
from anarchon.runs import RunStatus, moment

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from anarchon.backends.base import JobFacts
    from anarchon.jobs import Job
    from anarchon.runs import AttemptRecord, RunRecord

_NEVER_RAN = {
    RunStatus.SKIPPED: "It was skipped: another run of the job was live when it was due.",
    RunStatus.PAUSED: "It was not started: the job was paused when an instance asked for it.",
    RunStatus.MISSED: "It was missed: no instance had started it when it was too late.",
}
_ENDED = {
    RunStatus.SUCCEEDED: "It succeeded.",
    RunStatus.FAILED: "It failed.",
    RunStatus.TIMED_OUT: "It failed: its last attempt ran longer than its timeout.",
    RunStatus.CANCELLED: "It was cancelled.",
    RunStatus.INTERRUPTED: (
        "It was interrupted: the instance that ran it died, or lost its lease, and no attempt was"
        " left or nobody took it over in time."
    ),
    RunStatus.RUNNING: "It is running.",
}


@dataclass(frozen=True, slots=True)
class Here:
    """What this instance knows of a run of its own: what it does, and why it did not run it."""

    doing: str = ""
    note: str = ""


def explain(name: str, run: str, facts: JobFacts, job: Job | None, here: Here) -> Explanation:
    """Put together what store and instance know of a run; `job` is None if not declared here."""
    zone = job.slots.timezone if job else None
    slot = moment(order_of(run), zone)
    record = facts.run
    if record is not None:
        sentences = _about_record(record, facts, zone)
    else:
        sentences = _about_nothing(run, facts, job, zone)
    open_still = record is None or record.status in {RunStatus.RUNNING, RunStatus.WAITING}
    if here.doing and open_still:
        sentences.append(f"This instance {here.doing}.")
    elif here.note:
        sentences.append(f"This instance did not run it: {here.note}.")
    if facts.paused_until is not None:
        sentences.append(_pause(facts, zone))
    status = None if record is None else record.status
    return Explanation(job=name, run=run, slot=slot, status=status, sentences=tuple(sentences))


def _about_record(record: RunRecord, facts: JobFacts, zone: ZoneInfo | None) -> list[str]:
    unknown = "How it ended is unknown."
    sentences = [_NEVER_RAN.get(record.status) or _ENDED.get(record.status, unknown)]
    if record.status is RunStatus.RUNNING and facts.run_end <= facts.time:
        since = _when(facts.run_end / 1000, zone)
        why = "the instance that ran it died, or lost the store"
        then = "It is taken over by the next instance that asks, if an attempt is left."
        sentences = [f"Its lease is over since {since}: {why}. {then}"]
    elif record.status is RunStatus.WAITING:
        until = _when(facts.run_end / 1000, zone)
        sentences = [f"It waits for its next attempt, which may begin from {until} on."]
    sentences += [_attempt(attempt, zone) for attempt in record.attempts]
    return sentences


def _attempt(attempt: AttemptRecord, zone: ZoneInfo | None) -> str:
    where = f" on {attempt.runner}" if attempt.runner else ""
    began = f" began {_when(attempt.start.timestamp(), zone)}{where}" if attempt.start else where
    if attempt.status is RunStatus.RUNNING:
        return f"Attempt {attempt.number}{began} and is under way."
    took = "" if attempt.duration is None else f" after {attempt.duration:.3g} s"
    told = f"Attempt {attempt.number}{began}: {attempt.status}{took}"
    line = (attempt.error or "").strip().partition("\n")[0]
    return f"{told}: {line}" if line else f"{told}."


def _about_nothing(run: str, facts: JobFacts, job: Job | None, zone: ZoneInfo | None) -> list[str]:
    slot = order_of(run)
    if run.startswith("m"):
        return ["The store has no record of this manual run: it never began, or is forgotten."]
    if job is not None and (why := _not_in_schedule(job, slot, zone)):
        return [why]
    if slot > facts.time:
        return [f"It is not due yet: the store's clock says {_when(facts.time / 1000, zone)}."]
    if slot <= facts.floor:
        return ["It is older than what is kept of the job, so nothing is known of it any more."]
    if not facts.since:
        return [
            "No instance has registered the job in this store: is one running, with this prefix?"
        ]
    if slot <= facts.since:
        registered = _when(facts.since / 1000, zone)
        why = "the job was first registered, or its schedule was changed, only at"
        return [f"It was not due: {why} {registered}."]
    if job is not None and facts.time <= slot + job.keep:
        until = _when((slot + job.keep) / 1000, zone)
        return [f"Nobody has started it yet; it may still be started until {until}."]
    if job is None:
        why = "nobody asked for it, or the schedule, which is not known here, has no slot then"
        return [f"The store has no record of it: {why}."]
    why = "no instance that has the job was running, reached the store and had room"
    return [f"Nobody asked for it: between its slot and its last moment {why}."]


def _not_in_schedule(job: Job, slot: int, zone: ZoneInfo | None) -> str:
    try:
        following = job.slots.next_after(slot - 1)
        if following == slot:
            return ""
        before = job.slots.newest(slot, max(0, slot - 366 * 86_400_000))
    except ScheduleError as error:
        return f"The schedule of the job cannot be asked: {error}."
    near = [_when(other / 1000, zone) for other in (before, following) if other is not None]
    around = f" The nearest slots are {' and '.join(near)}." if near else ""
    return (
        f"The schedule ({job.slots.explain()}) has no slot at {_when(slot / 1000, zone)}.{around}"
    )


def _pause(facts: JobFacts, zone: ZoneInfo | None) -> str:
    until = (
        f"until {_when(facts.paused_until / 1000, zone)}" if facts.paused_until else "until resumed"
    )
    note = f": {facts.paused_note}" if facts.paused_note else ""
    return f"The job is paused now, {until}{note}."


def _when(seconds: float, zone: ZoneInfo | None) -> str:
    when = moment(round(seconds * 1000), zone)
    return when.isoformat(sep=" ", timespec="milliseconds" if when.microsecond else "seconds")
