"""History put together: from the attempts that began and the results that ended them, to runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from anarchon.backends.base import Outcome, State, order_of
from anarchon.runs import AttemptRecord, RunRecord, RunStatus, Trigger, moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ATTEMPTS_READ_PER_RUN = 5
"""How many attempts and results are read for each run that is asked for."""


@dataclass(frozen=True, slots=True)
class Began:
    """An attempt that was won."""

    run: str
    attempt: int
    fence: int
    start: int
    trigger: Trigger
    runner: str


@dataclass(frozen=True, slots=True)
class Result:
    """How an attempt ended; attempt 0 tells of the run itself. `end` is 0 where there is none."""

    run: str
    attempt: int
    status: RunStatus
    end: int
    error: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What the record of a run says; `end` is that of its lease or wait, 0 where it is over."""

    state: State
    attempt: int
    outcome: Outcome
    end: int = 0


_DONE = {
    Outcome.SUCCEEDED: RunStatus.SUCCEEDED,
    Outcome.FAILED: RunStatus.FAILED,
    Outcome.NO_RETRY: RunStatus.FAILED,
    Outcome.TIMED_OUT: RunStatus.TIMED_OUT,
}
_SKIPPED = {Outcome.OVERLAP: RunStatus.SKIPPED, Outcome.PAUSED: RunStatus.PAUSED}
_STATES = {
    State.RUNNING: RunStatus.RUNNING,
    State.WAITING: RunStatus.WAITING,
    State.INTERRUPTED: RunStatus.INTERRUPTED,
    State.CANCELLED: RunStatus.CANCELLED,
}


def compose(
    job: str,
    began: Iterable[Began],
    results: Iterable[Result],
    standings: Mapping[str, Standing],
    limit: int,
) -> tuple[RunRecord, ...]:
    """The newest `limit` runs, newest slot first, each with its attempts in order."""
    starts: dict[str, dict[int, Began]] = {}
    for entry in began:
        starts.setdefault(entry.run, {})[entry.attempt] = entry
    ends: dict[str, dict[int, Result]] = {}
    for result in results:
        ends.setdefault(result.run, {})[result.attempt] = result
    runs = sorted({*starts, *ends}, key=lambda run: (order_of(run), run), reverse=True)
    return tuple(
        _run_record(job, run, starts.get(run, {}), ends.get(run, {}), standings.get(run))
        for run in runs[:limit]
    )


def compose_run(
    job: str,
    run: str,
    began: Iterable[Began],
    results: Iterable[Result],
    standing: Standing | None,
) -> RunRecord | None:
    """One run, from what is known of it; None where nothing is."""
    starts = {entry.attempt: entry for entry in began}
    ends = {result.attempt: result for result in results}
    if not starts and not ends and standing is None:
        return None
    return _run_record(job, run, starts, ends, standing)


def _run_record(
    job: str,
    run: str,
    starts: Mapping[int, Began],
    ends: Mapping[int, Result],
    standing: Standing | None,
) -> RunRecord:
    numbers = sorted({*starts, *ends} - {0})
    attempts = tuple(
        _attempt_record(number, starts.get(number), ends.get(number), standing)
        for number in numbers
    )
    return RunRecord(
        job=job,
        id=run,
        slot=moment(order_of(run)),
        trigger=_trigger(run, starts),
        status=_run_status(attempts, ends.get(0), standing),
        attempts=attempts,
    )


def _trigger(run: str, starts: Mapping[int, Began]) -> Trigger:
    for entry in starts.values():
        return entry.trigger
    return Trigger.MANUAL if run.startswith("m") else Trigger.SCHEDULE


def _run_status(
    attempts: tuple[AttemptRecord, ...], own: Result | None, standing: Standing | None
) -> RunStatus:
    if standing is not None:
        if standing.state is State.DONE:
            return _DONE.get(standing.outcome, RunStatus.UNKNOWN)
        if standing.state is State.SKIPPED:
            return _SKIPPED.get(standing.outcome, RunStatus.UNKNOWN)
        return _STATES[standing.state]
    if own is not None:
        return own.status
    return attempts[-1].status if attempts else RunStatus.UNKNOWN


def _attempt_record(
    number: int, start: Began | None, end: Result | None, standing: Standing | None
) -> AttemptRecord:
    if end is not None:
        status = end.status
    elif standing and standing.state is State.RUNNING and standing.attempt == number:
        status = RunStatus.RUNNING
    else:
        status = RunStatus.UNKNOWN
    return AttemptRecord(
        number=number,
        status=status,
        runner=start.runner if start else "",
        start=moment(start.start) if start else None,
        end=moment(end.end) if end and end.end else None,
        error=end.error or None if end else None,
    )
