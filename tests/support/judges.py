"""Judges a cluster's history: what the store carried out, and what the job functions did."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anarchon.backends.base import (
    Answer,
    ClaimAnswer,
    ClaimCode,
    ClaimRequest,
    FinishAnswer,
    HeartbeatAnswer,
    JobTerms,
    Overlap,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from anarchon.testing import Executed
    from tests.support.diary import Entry


@dataclass
class Grant:
    """An attempt as the store granted it, and what became of its lease. Server time, in ms."""

    run: str
    attempt: int
    token: str
    runner: str
    won_at_true: float
    end: int
    lease: int
    done: bool = False

    def live(self, now: int) -> bool:
        """Whether its run is live."""
        return not self.done and self.end > now


@dataclass
class Verdict:
    """What the judge remembers of one job, and what it found wrong."""

    wrong: list[str] = field(default_factory=list[str])
    grants: dict[str, list[Grant]] = field(default_factory=lambda: defaultdict(list))
    most: dict[str, int] = field(default_factory=dict[str, int])
    open: dict[str, Grant] = field(default_factory=dict[str, Grant])

    def current(self, run: str) -> Grant | None:
        """The newest attempt of a run."""
        grants = self.grants.get(run)
        return grants[-1] if grants else None

    def sweep(self, terms: JobTerms, asked: str, now: int) -> None:
        """Close what nobody can have any more, as each claim does with runs other than its own."""
        for run, grant in list(self.open.items()):
            used_up = grant.attempt >= self.most[run] or now > grant.end + terms.reach
            if run != asked and grant.end <= now and used_up:
                grant.done = True
                del self.open[run]

    def clamp(self, now: int) -> None:
        """Do what the store does at each call, in case its clock jumped back."""
        for grant in self.open.values():
            grant.end = min(grant.end, now + grant.lease)


def judge_store(executed: Iterable[Executed]) -> dict[str, Verdict]:
    """Hold the store's answers against S1 to S5; one verdict a job."""
    verdicts: dict[str, Verdict] = defaultdict(Verdict)
    for call in executed:
        if not call.arguments or not isinstance(call.arguments[0], JobTerms):
            continue
        terms = call.arguments[0]
        verdict = verdicts[terms.job]
        now = getattr(call.answer, "time", sys.maxsize)
        verdict.clamp(now)
        if call.call in {"claim", "register"}:
            asked = call.arguments[1].run if call.call == "claim" else ""
            verdict.sweep(terms, asked, now)
        if isinstance(call.answer, ClaimAnswer) and call.answer.code is ClaimCode.WON:
            request = call.arguments[1]
            assert isinstance(request, ClaimRequest)
            _judge_win(verdict, terms, request, call.answer, call.at)
        elif isinstance(call.answer, (HeartbeatAnswer, FinishAnswer, Answer)) and call.answer.ok:
            _judge_holder(verdict, terms, call, call.answer)
    return verdicts


def _judge_win(
    verdict: Verdict, terms: JobTerms, request: ClaimRequest, answer: ClaimAnswer, at: float
) -> None:
    run, now = request.run, answer.time
    before = verdict.current(run)
    if before is not None and before.token == request.token:
        before.end, before.lease = now + terms.lease, terms.lease
        return
    wrong = verdict.wrong
    if before is not None and before.live(now):
        wrong.append(f"S1: {run} granted to {request.runner} while {before.runner} held it")
    if before is not None and before.done:
        wrong.append(f"S2: {run} granted to {request.runner} after its end")
    number = len(verdict.grants[run]) + 1
    most = verdict.most.setdefault(run, answer.max_attempts)
    if answer.attempt != number or number > most:
        wrong.append(f"S3: {run} granted as attempt {answer.attempt}, after {number - 1} of {most}")
    if terms.overlap is not Overlap.ALLOW:
        wrong += [
            f"S4: {run} granted to {request.runner} while {other} was live"
            for other, grant in verdict.open.items()
            if other != run and grant.live(now)
        ]
    if request.slot > now:
        wrong.append(f"S7: {run} granted {request.slot - now} ms before its slot")
    grant = Grant(
        run=run,
        attempt=answer.attempt,
        token=request.token,
        runner=request.runner,
        won_at_true=at,
        end=now + terms.lease,
        lease=terms.lease,
    )
    verdict.grants[run].append(grant)
    verdict.open[run] = grant


def _judge_holder(
    verdict: Verdict,
    terms: JobTerms,
    call: Executed,
    answer: HeartbeatAnswer | FinishAnswer | Answer,
) -> None:
    run, token = str(call.arguments[1]), call.arguments[2]
    grant = verdict.current(run)
    if grant is None or grant.token != token:
        verdict.wrong.append(f"S5: {call.call} of {run} by {call.line} with a stale token said ok")
        return
    if isinstance(answer, HeartbeatAnswer):
        grant.end, grant.lease = answer.time + terms.lease, terms.lease
    elif isinstance(answer, FinishAnswer) and answer.waiting:
        grant.end, grant.lease = answer.time + answer.rest, answer.rest
    elif call.call == "release":
        grant.end, grant.lease = answer.time, 0
    else:
        grant.done = True
        verdict.open.pop(run, None)


def judge_bodies(
    verdicts: dict[str, Verdict], entries: Iterable[Entry], *, steady: bool = True
) -> list[str]:
    """Hold what the job functions did against S6, S7, and the fencing of holders.

    Without a `steady` clock of the store a lease can be over there before its holder can know.
    """
    wrong: list[str] = []
    started: set[tuple[str, str, int]] = set()
    for entry in entries:
        key = (entry.job, entry.token, entry.attempt)
        if key in started:
            wrong.append(f"S6: {entry} started twice")
        started.add(key)
        verdict = verdicts.get(entry.job, Verdict())
        grants = [g for group in verdict.grants.values() for g in group if g.token == entry.token]
        if not grants or grants[0].won_at_true > entry.start:
            wrong.append(f"S7: {entry} ran without a won claim")
            continue
        early = entry.server_start < entry.slot and not grants[0].run.startswith("m")
        if steady and early:
            wrong.append(f"S7: {entry} ran before its slot")
        later = [g for g in verdict.grants[grants[0].run] if g.attempt == entry.attempt + 1]
        if steady and later and any(step > later[0].won_at_true for step in entry.steps):
            wrong.append(f"S1: {entry} took a step after attempt {entry.attempt + 1} was granted")
    return wrong


def faults_of(
    executed: Iterable[Executed], entries: Iterable[Entry], *, steady: bool = True
) -> list[str]:
    """Everything that was wrong with a history, in sentences."""
    verdicts = judge_store(executed)
    found = [f"{what} ({job})" for job, verdict in verdicts.items() for what in verdict.wrong]
    return found + judge_bodies(verdicts, entries, steady=steady)
