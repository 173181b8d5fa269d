"""The rules of the lease strategy on plain dicts: the reference that the scripts are compared with.

Everything here is synchronous and takes `now`, the server's time in milliseconds. `MemoryBackend`
serves it; the scripts in `redis/lua` follow the same rules on a real server.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from anarchon.backends.base import (
    Answer,
    ClaimAnswer,
    ClaimCode,
    ClaimRequest,
    FinishAnswer,
    HeartbeatAnswer,
    JobTerms,
    OpenRun,
    Outcome,
    Overlap,
    Registered,
    State,
    order_of,
)
from anarchon.backends.history import Began, Result
from anarchon.runs import RunStatus, Trigger

if TYPE_CHECKING:
    from collections.abc import Iterable

LOOKED_AT = 32
NAMED = 10
TRIMMED = 10
TRIM_LOOKED = 128

_STATUS = {
    Outcome.SUCCEEDED: RunStatus.SUCCEEDED,
    Outcome.FAILED: RunStatus.FAILED,
    Outcome.TIMED_OUT: RunStatus.TIMED_OUT,
    Outcome.NO_RETRY: RunStatus.FAILED,
    Outcome.CANCELLED: RunStatus.CANCELLED,
    Outcome.RELEASED: RunStatus.RELEASED,
    Outcome.UNSTARTED: RunStatus.RELEASED,
}


@dataclass(slots=True)
class Record:
    """What is stored of one run. A closed one keeps no `max_attempts`, `granted` or `runner`."""

    state: State
    attempt: int
    end: int
    fence: int
    trigger: Trigger
    token: str
    outcome: Outcome
    max_attempts: int = 0
    granted: int = 0
    runner: str = ""
    cancel: bool = False

    @property
    def open(self) -> bool:
        """Not finished yet."""
        return self.state in {State.RUNNING, State.WAITING}


class Nonsense:
    """Stands for a stored record that cannot be read."""


@dataclass(slots=True)
class JobBook:
    """All that is stored of one job, and the rules that change it."""

    records: dict[str, Record | Nonsense] = field(default_factory=dict[str, Record | Nonsense])
    active: set[str] = field(default_factory=set[str])
    slots: dict[str, int] = field(default_factory=dict[str, int])
    attempts: list[Began] = field(default_factory=list[Began])
    results: dict[Result, int] = field(default_factory=dict[Result, int])
    schedule_key: str = ""
    since: int | None = None
    floor: int = 0
    floor_manual: int = 0
    fence: int = 0
    paused: tuple[int, str] | None = None

    # -- the calls ---------------------------------------------------------------------------

    def claim(self, terms: JobTerms, ask: ClaimRequest, now: int) -> ClaimAnswer:
        """Ask for a run; the first rule that matches decides."""
        forbidden_until, others = self._look_at_others(terms, ask.run, now, sweep=True)
        answer = self._decide(terms, ask, now, forbidden_until)
        return replace(answer, others=others)

    def heartbeat(self, terms: JobTerms, run: str, token: str, now: int) -> HeartbeatAnswer:
        """Keep a lease, also after its end as long as nobody else was given anything."""
        record = self._own(run, token, now)
        if record is None or record.state is not State.RUNNING:
            return HeartbeatAnswer(ok=False, time=now)
        if record.end <= now and self._look_at_others(terms, run, now, sweep=False)[0]:
            return HeartbeatAnswer(ok=False, time=now)
        record.end, record.granted = now + terms.lease, terms.lease
        return HeartbeatAnswer(ok=True, time=now, cancel=record.cancel)

    def finish(  # noqa: PLR0913 - the call's own parts
        self,
        terms: JobTerms,
        run: str,
        token: str,
        outcome: Outcome,
        error: str,
        delay: int,
        now: int,
    ) -> FinishAnswer:
        """Tell how an attempt ended."""
        record = self._own(run, token, now)
        if record is None:
            return FinishAnswer(ok=False, time=now)
        if record.state is not State.RUNNING:
            known = record.state in {State.WAITING, State.DONE, State.CANCELLED}
            if known and record.outcome is outcome:
                return _finish_answer(record, now)
            return FinishAnswer(ok=False, time=now)
        record.outcome = outcome
        state = _state_after_finish(record, outcome)
        if state is State.WAITING:
            record.state, record.end, record.granted = state, now + delay, delay
        else:
            self._close(run, record, state, now)
        self._add_result(terms, run, record.attempt, _STATUS[outcome], now, error, record.fence)
        return _finish_answer(record, now)

    def release(  # noqa: PLR0913 - the call's own parts
        self, terms: JobTerms, run: str, token: str, kind: Outcome, delay: int, last: int, now: int
    ) -> Answer:
        """Give a lease back before its end."""
        record = self._own(run, token, now)
        if record is None:
            return Answer(ok=False, time=now)
        if record.state is not State.RUNNING:
            given = record.outcome in {Outcome.RELEASED, Outcome.UNSTARTED}
            return Answer(ok=given, time=now)
        unstarted = kind is Outcome.UNSTARTED
        retriable = now <= last if unstarted else record.attempt < record.max_attempts
        record.outcome = kind
        if record.cancel:
            self._close(run, record, State.CANCELLED, now)
        elif not retriable:
            self._close(run, record, State.INTERRUPTED, now)
        else:
            wait = delay if unstarted else 0
            record.max_attempts += 1 if unstarted else 0
            record.state, record.end, record.granted = State.WAITING, now + wait, wait
        self._add_result(terms, run, record.attempt, _STATUS[kind], now, "", record.fence)
        return Answer(ok=True, time=now)

    def cancel(self, history_size: int, run: str, now: int) -> Answer:
        """Cancel a run: at once where nobody holds it, else its holder learns it."""
        record = self._read(run, now)
        if not isinstance(record, Record) or not record.open:
            return Answer(ok=False, time=now)
        record.cancel = True
        if record.state is not State.RUNNING or record.end <= now:
            self._close_abandoned(run, record, history_size)
        return Answer(ok=True, time=now)

    def register(self, terms: JobTerms, now: int) -> Registered:
        """Tell of a job and its schedule."""
        _, open_runs = self._look_at_others(terms, "", now, sweep=True)
        changed = self.since is None or self.schedule_key != terms.schedule_key
        if self.since is None or changed:
            self.schedule_key, self.since = terms.schedule_key, now
        until, note = self.pause_in_force(now)
        return Registered(now, self.since, changed, until, note, open_runs)

    def pause_in_force(self, now: int) -> tuple[int | None, str]:
        """Until when the job is paused (0: until resumed), and its note; None when it is not."""
        return self.paused if self.paused and self._paused_at(now) else (None, "")

    def _paused_at(self, now: int) -> bool:
        return self.paused is not None and (self.paused[0] == 0 or self.paused[0] > now)

    def is_open(self, run: str) -> bool:
        """Whether a run is not finished."""
        record = self.records.get(run)
        return isinstance(record, Record) and record.open

    def forgettable(self, now: int) -> bool:
        """Whether no run of the job is live."""
        for run in self.active:
            record = self._read(run, now)
            if isinstance(record, Nonsense) or (record and record.open and record.end > now):
                return False
        return True

    # -- the decision table ------------------------------------------------------------------

    def _decide(
        self, terms: JobTerms, ask: ClaimRequest, now: int, forbidden_until: int
    ) -> ClaimAnswer:
        record = self._read(ask.run, now)
        if ask.trigger is not Trigger.MANUAL and now < ask.slot:
            return ClaimAnswer(ClaimCode.EARLY, now, rest=ask.slot - now)
        if isinstance(record, Nonsense):
            return ClaimAnswer(ClaimCode.BAD, now)
        if record is None:
            return self._first(terms, ask, now, forbidden_until)
        if record.state is State.RUNNING and record.token == ask.token:
            if record.end <= now and (forbidden_until or now > ask.deadline):
                return _about(ClaimCode.RUNNING, record, now, 0)
            record.end, record.granted = now + terms.lease, terms.lease
            return _about(ClaimCode.WON, record, now, terms.lease)
        if not record.open:
            return _about(ClaimCode.DONE, record, now, 0)
        if record.end > now:
            running = record.state is State.RUNNING
            code = ClaimCode.RUNNING if running else ClaimCode.WAITING
            return _about(code, record, now, record.end - now)
        return self._takeover(terms, ask, record, now, forbidden_until)

    def _first(
        self, terms: JobTerms, ask: ClaimRequest, now: int, forbidden_until: int
    ) -> ClaimAnswer:
        scheduled = ask.trigger is Trigger.SCHEDULE
        if ask.seen > 0:
            return ClaimAnswer(ClaimCode.GONE, now)
        settled = self._settled_before(ask)
        if settled:
            return ClaimAnswer(ClaimCode.DONE, now, settled=settled)
        if now > ask.deadline:
            if now > ask.last:
                self._add_result(terms, ask.run, 0, RunStatus.MISSED, 0, "", now)
            return ClaimAnswer(ClaimCode.LATE, now)
        if ask.trigger is not Trigger.MANUAL and self._paused_at(now):
            if scheduled:
                self._skip(terms, ask, Outcome.PAUSED, RunStatus.PAUSED, now)
            return ClaimAnswer(ClaimCode.PAUSED, now)
        if forbidden_until:
            if scheduled and terms.overlap is Overlap.SKIP:
                self._skip(terms, ask, Outcome.OVERLAP, RunStatus.SKIPPED, now)
            return ClaimAnswer(ClaimCode.OVERLAP, now, rest=forbidden_until - now)
        record = self._grant(terms, ask, 1, terms.max_attempts, ask.trigger, now)
        self.slots[ask.run] = order_of(ask.run)
        self._trim(terms, now)
        return _about(ClaimCode.WON, record, now, terms.lease)

    def _settled_before(self, ask: ClaimRequest) -> str:
        manual = ask.trigger is Trigger.MANUAL
        if order_of(ask.run) <= (self.floor_manual if manual else self.floor):
            return "floor"
        if ask.since_applies and not manual and ask.slot <= (self.since or 0):
            return "since"
        return ""

    def _takeover(
        self, terms: JobTerms, ask: ClaimRequest, record: Record, now: int, forbidden_until: int
    ) -> ClaimAnswer:
        if _used_up(record, terms.reach, now):
            self._close_abandoned(ask.run, record, terms.history_size)
            return _about(ClaimCode.DONE, record, now, 0)
        if ask.seen != record.attempt:
            return _about(ClaimCode.RUNNING, record, now, 0)
        if now > ask.deadline:
            return _about(ClaimCode.LATE, record, now, 0)
        if forbidden_until:
            return _about(ClaimCode.OVERLAP, record, now, forbidden_until - now)
        before = record.outcome if record.state is State.WAITING else Outcome.NONE
        won = self._grant(
            terms, ask, record.attempt + 1, record.max_attempts, record.trigger, now, before
        )
        if record.state is State.RUNNING:
            self._add_result(
                terms, ask.run, record.attempt, RunStatus.INTERRUPTED, record.end, "", record.fence
            )
        return _about(ClaimCode.WON, won, now, terms.lease)

    # -- what they are made of ---------------------------------------------------------------

    def _read(self, run: str, now: int) -> Record | Nonsense | None:
        record = self.records.get(run)
        if isinstance(record, Record) and record.open:
            record.end = min(record.end, now + record.granted)
        return record

    def _own(self, run: str, token: str, now: int) -> Record | None:
        record = self._read(run, now)
        return record if isinstance(record, Record) and record.token == token else None

    def _look_at_others(
        self, terms: JobTerms, run: str, now: int, *, sweep: bool
    ) -> tuple[int, tuple[OpenRun, ...]]:
        forbidden_until = 0
        order = order_of(run) if run else 0
        named: list[OpenRun] = []
        for other in self._open_members(terms.overlap):
            if other == run:
                continue
            record = self._read(other, now)
            if isinstance(record, Nonsense):
                forbidden_until = max(forbidden_until, now + terms.lease)
                named.append(OpenRun(other, 0, terms.lease))
            elif record is None or not record.open:
                if sweep:
                    self.active.discard(other)
            elif sweep and _used_up(record, terms.reach, now):
                self._close_abandoned(other, record, terms.history_size)
            else:
                until = record.end
                to_be_had = record.attempt < record.max_attempts
                if order_of(other) < order and to_be_had and not record.cancel:
                    until += terms.grace
                forbidden_until = max(forbidden_until, until if until > now else 0)
                if to_be_had:
                    named.append(OpenRun(other, record.attempt, max(record.end - now, 0)))
        if terms.overlap is Overlap.ALLOW:
            forbidden_until = 0
        named.sort(key=lambda o: (order_of(o.run), o.run))
        return forbidden_until, tuple(named[:NAMED])

    def _open_members(self, overlap: Overlap) -> Iterable[str]:
        members = sorted(self.active)
        if overlap is Overlap.ALLOW and len(members) > LOOKED_AT:
            return random.sample(members, LOOKED_AT)
        return members

    def _grant(  # noqa: PLR0913 - the parts of a grant
        self,
        terms: JobTerms,
        ask: ClaimRequest,
        attempt: int,
        max_attempts: int,
        trigger: Trigger,
        now: int,
        outcome_before: Outcome = Outcome.NONE,
    ) -> Record:
        self.fence = max(self.fence + 1, now)
        record = Record(
            state=State.RUNNING,
            attempt=attempt,
            end=now + terms.lease,
            fence=self.fence,
            trigger=trigger,
            token=ask.token,
            outcome=outcome_before,
            max_attempts=max_attempts,
            granted=terms.lease,
            runner=ask.runner,
        )
        self.active.add(ask.run)
        self.records[ask.run] = record
        self.attempts.append(Began(ask.run, attempt, self.fence, now, trigger, ask.runner))
        del self.attempts[: -terms.history_size]
        return record

    def _close(self, run: str, record: Record, state: State, end: int) -> None:
        record.state, record.end = state, end
        record.max_attempts, record.granted, record.runner, record.cancel = 0, 0, "", False
        self.active.discard(run)

    def _close_abandoned(self, run: str, record: Record, history_size: int) -> None:
        cancel, running = record.cancel, record.state is State.RUNNING
        if running:
            record.outcome = Outcome.CANCELLED if cancel else Outcome.INTERRUPTED
        status = RunStatus.CANCELLED if cancel else RunStatus.INTERRUPTED
        self._close(run, record, State.CANCELLED if cancel else State.INTERRUPTED, record.end)
        attempt = record.attempt if running else 0
        self._put_result(Result(run, attempt, status, record.end, ""), record.fence, history_size)

    def _skip(
        self, terms: JobTerms, ask: ClaimRequest, reason: Outcome, status: RunStatus, now: int
    ) -> None:
        self.records[ask.run] = Record(State.SKIPPED, 0, now, 0, ask.trigger, "-", reason)
        self.active.discard(ask.run)
        self.slots[ask.run] = order_of(ask.run)
        self._add_result(terms, ask.run, 0, status, now, "", now)
        self._trim(terms, now)

    def _add_result(  # noqa: PLR0913 - the parts of a result
        self,
        terms: JobTerms,
        run: str,
        attempt: int,
        status: RunStatus,
        end: int,
        error: str,
        score: int,
    ) -> None:
        self._put_result(Result(run, attempt, status, end, error), score, terms.history_size)

    def _put_result(self, result: Result, score: int, history_size: int) -> None:
        self.results.setdefault(result, score)
        excess = len(self.results) - history_size
        for old in self.results_in_order()[: max(0, min(excess, TRIMMED))]:
            del self.results[old]

    def results_in_order(self) -> list[Result]:
        """Oldest first, in the order of a sorted set: by score, then by the member's bytes."""
        return sorted(self.results, key=lambda r: (self.results[r], member_of(r).encode()))

    def _trim(self, terms: JobTerms, now: int) -> None:
        oldest = sorted(self.slots, key=lambda run: (self.slots[run], run))
        excess = len(oldest) - terms.history_size
        victims: list[str] = []
        for run in oldest[:TRIM_LOOKED]:
            score = self.slots[run]
            expired = terms.history_ttl > 0 and score + terms.history_ttl < now
            wanted = len(victims) < excess or expired
            if len(victims) == TRIMMED or not wanted or score + terms.keep >= now:
                break
            record = self._read(run, now)
            if record is None or (isinstance(record, Record) and not record.open):
                victims.append(run)
        for run in victims:
            score = self.slots.pop(run)
            self.records.pop(run, None)
            if run.startswith("m"):
                self.floor_manual = max(self.floor_manual, score)
            else:
                self.floor = max(self.floor, score)
        if terms.history_ttl:
            self._drop_expired_history(now - terms.history_ttl)

    def _drop_expired_history(self, oldest: int) -> None:
        kept = [entry for entry in self.attempts if entry.start > oldest]
        dropped = len(self.attempts) - len(kept)
        del self.attempts[: min(dropped, TRIMMED)]
        for result in self.results_in_order()[:TRIMMED]:
            if self.results[result] <= oldest:
                del self.results[result]


def member_of(result: Result) -> str:
    """A result as the scripts write it."""
    return f"{result.run} {result.attempt} {result.status} {result.end} {result.error}"


def _used_up(record: Record, reach: int, now: int) -> bool:
    over = record.cancel or record.attempt >= record.max_attempts or now > record.end + reach
    return record.end <= now and over


def _about(code: ClaimCode, record: Record, now: int, rest: int) -> ClaimAnswer:
    return ClaimAnswer(
        code,
        now,
        state=record.state,
        outcome=record.outcome,
        attempt=record.attempt,
        rest=rest,
        left=record.open and record.attempt < record.max_attempts,
        max_attempts=record.max_attempts,
        fence=record.fence,
        trigger=record.trigger,
    )


def _finish_answer(record: Record, now: int) -> FinishAnswer:
    if record.state is State.WAITING:
        return FinishAnswer(
            ok=True, time=now, waiting=True, attempt=record.attempt, rest=max(record.end - now, 0)
        )
    return FinishAnswer(ok=True, time=now, attempt=record.attempt)


def _state_after_finish(record: Record, outcome: Outcome) -> State:
    if outcome is Outcome.CANCELLED:
        return State.CANCELLED
    if outcome in {Outcome.SUCCEEDED, Outcome.NO_RETRY}:
        return State.DONE
    if record.cancel:
        return State.CANCELLED
    return State.DONE if record.attempt >= record.max_attempts else State.WAITING
