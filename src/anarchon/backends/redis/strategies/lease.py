"""The lease strategy: each call of the store as one script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from anarchon.backends.base import (
    Answer,
    ClaimAnswer,
    ClaimCode,
    ClaimRequest,
    FinishAnswer,
    HeartbeatAnswer,
    JobFacts,
    JobTerms,
    OpenRun,
    Outcome,
    Presence,
    Presences,
    Registered,
    State,
    StoreFacts,
)
from anarchon.backends.history import ATTEMPTS_READ_PER_RUN
from anarchon.backends.redis.strategies.records import read_history, read_run
from anarchon.runs import FARTHEST, Trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anarchon.backends.redis.clients.base import Argument, Reply
    from anarchon.backends.redis.connection import Connection
    from anarchon.runs import RunRecord

LONGEST_MOMENT = 14
"""Digits of a moment in milliseconds, up to the year 5138."""
TRIGGER_LETTERS = {Trigger.SCHEDULE: "s", Trigger.CATCH_UP: "c", Trigger.MANUAL: "m"}
TRIGGERS = {letter: trigger for trigger, letter in TRIGGER_LETTERS.items()}


@dataclass(frozen=True, slots=True)
class Lease:
    """The default strategy: a claim for each run, a lease on the running job, waiting backups."""

    name: ClassVar[str] = "lease"


def _server_time() -> str:
    return ""


class LeaseStore:
    """One connection of the lease strategy."""

    def __init__(self, connection: Connection, *, now: Callable[[], str] = _server_time) -> None:
        """Use `connection`; tests pass `now` to set the scripts' time in milliseconds."""
        self._connection = connection
        self._now = now

    async def open(self) -> tuple[str, ...]:
        """Look whether the server can serve."""
        return await self._connection.open()

    async def visit(self) -> None:
        """Look whether the format can be read."""
        await self._connection.visit()

    async def close(self) -> None:
        """Close what was opened here."""
        await self._connection.close()

    def place(self, job: str) -> str:
        """The key of the job's state."""
        return self._connection.keys.of_job(job)[0]

    async def _call(self, name: str, job: str, *arguments: Argument) -> list[Reply]:
        keys = self._connection.keys.of_job(job)
        return await self._connection.call(name, keys, (*arguments, self._now()))

    async def clock(self, runner: str, told: str, silent: int) -> int:
        """The server's time; keeps this runner's presence."""
        keys = [self._connection.keys.instances]
        reply = await self._connection.call("clock", keys, [runner, told, silent, self._now()])
        return _int(reply[1])

    async def register(self, terms: JobTerms) -> Registered:
        """Tell the store of a job and its schedule."""
        reply = await self._call(
            "register",
            terms.job,
            terms.schedule_key,
            terms.overlap,
            terms.reach,
            terms.lease,
            terms.history_size,
        )
        until, note = _pause(reply[4])
        return Registered(
            time=_int(reply[1]),
            since=_int(reply[2]),
            changed=reply[3] == 1,
            paused_until=until,
            paused_note=note,
            open_runs=_open_runs(reply[5:]),
        )

    async def claim(self, terms: JobTerms, request: ClaimRequest) -> ClaimAnswer:
        """Ask for a run."""
        reply = await self._call(
            "claim",
            terms.job,
            request.run,
            request.token,
            request.seen,
            request.slot,
            request.deadline,
            request.last,
            terms.lease,
            request.runner,
            TRIGGER_LETTERS[request.trigger],
            1 if request.since_applies else 0,
            terms.overlap,
            terms.max_attempts,
            terms.reach,
            terms.grace,
            terms.keep,
            terms.history_size,
            terms.history_ttl,
        )
        return _claim_answer(reply)

    async def heartbeat(self, terms: JobTerms, run: str, token: str) -> HeartbeatAnswer:
        """Keep a lease."""
        reply = await self._call(
            "heartbeat", terms.job, run, token, terms.lease, terms.overlap, terms.grace
        )
        return HeartbeatAnswer(ok=reply[0] == "ok", time=_int(reply[1]), cancel=reply[2] == 1)

    async def finish(  # noqa: PLR0913 - the call's own parts
        self, terms: JobTerms, run: str, token: str, outcome: Outcome, error: str, delay: int
    ) -> FinishAnswer:
        """Tell how an attempt ended."""
        reply = await self._call(
            "finish", terms.job, run, token, outcome, error, delay, terms.history_size
        )
        return FinishAnswer(
            ok=reply[0] == "ok",
            time=_int(reply[1]),
            waiting=reply[2] == "waiting",
            attempt=_int(reply[3]),
            rest=_int(reply[4]),
        )

    async def release(  # noqa: PLR0913 - the call's own parts
        self, terms: JobTerms, run: str, token: str, kind: Outcome, delay: int = 0, last: int = 0
    ) -> Answer:
        """Give a lease back."""
        return _answer(
            await self._call(
                "release", terms.job, run, token, kind, delay, last, terms.history_size
            )
        )

    async def cancel(self, job: str, run: str, history_size: int) -> Answer:
        """Cancel a run for the whole cluster."""
        return _answer(await self._call("cancel", job, run, history_size))

    async def pause(self, job: str, until: int, note: str) -> Answer:
        """Hold back a job's scheduled runs."""
        return _answer(await self._call("pause", job, "pause", until, note))

    async def resume(self, job: str) -> Answer:
        """Let a paused job go on."""
        return _answer(await self._call("pause", job, "resume", 0, ""))

    async def forget(self, job: str) -> Answer:
        """Delete all that is stored of a job, unless a run of it is live."""
        return _answer(await self._call("forget", job))

    async def history(self, job: str, limit: int) -> tuple[RunRecord, ...]:
        """The newest runs of a job, newest first."""
        reply = await self._call("history", job, limit * ATTEMPTS_READ_PER_RUN)
        return read_history(job, reply[2:], TRIGGERS, limit)

    async def look(self, job: str, run: str) -> JobFacts:
        """What is known of a job, and of a run of it."""
        reply = await self._call("look", job, run)
        until, note = _pause(reply[6])
        end = 8 + _int(reply[7])
        record, run_end = read_run(job, run, reply[end:], TRIGGERS)
        return JobFacts(
            time=_int(reply[1]),
            schedule_key=str(reply[2]),
            since=_int(reply[3]),
            floor=_int(reply[4]),
            fence=_int(reply[5]),
            paused_until=until,
            paused_note=note,
            open_runs=tuple(sorted(str(part) for part in reply[8:end])),
            run=record,
            run_end=run_end,
        )

    async def instances(self) -> Presences:
        """The instances that have shown themselves."""
        keys = [self._connection.keys.instances]
        reply = await self._connection.call("instances", keys, [self._now()])
        texts = [str(part) for part in reply[2:]]
        shown: list[Presence] = []
        for runner, value in zip(texts[::2], texts[1::2], strict=True):
            seen, _, told = value.partition(" ")
            if seen.isdecimal() and len(seen) <= LONGEST_MOMENT:
                shown.append(Presence(runner, int(seen), told))
        return Presences(_int(reply[1]), tuple(shown))

    async def facts(self) -> StoreFacts:
        """What the server tells of itself, as far as the user may ask."""
        return await self._connection.facts()


def _int(part: Reply) -> int:
    return int(str(part))


def _answer(reply: Sequence[Reply]) -> Answer:
    return Answer(ok=reply[0] == "ok", time=_int(reply[1]))


def _pause(part: Reply) -> tuple[int | None, str]:
    until, _, note = str(part).partition(" ")
    return (min(int(until), FARTHEST) if until else None), note


def _open_runs(parts: Sequence[Reply]) -> tuple[OpenRun, ...]:
    rows = parts[1:]
    return tuple(
        OpenRun(str(rows[i]), _int(rows[i + 1]), _int(rows[i + 2]))
        for i in range(0, 3 * _int(parts[0]), 3)
    )


def _claim_answer(reply: Sequence[Reply]) -> ClaimAnswer:
    outcome = str(reply[3])
    settled = outcome if outcome in {"floor", "since"} else ""
    return ClaimAnswer(
        code=ClaimCode(str(reply[0])),
        time=_int(reply[1]),
        state=State(str(reply[2])) if reply[2] else None,
        outcome=Outcome(outcome) if outcome and not settled else None,
        settled=settled,
        attempt=_int(reply[4]),
        rest=_int(reply[5]),
        left=reply[6] == 1,
        max_attempts=_int(reply[7]),
        fence=_int(reply[8]),
        trigger=TRIGGERS.get(str(reply[9])),
        others=_open_runs(reply[10:]),
    )
