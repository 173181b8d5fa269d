"""What checks are made of: a store and clock under test, comparisons that explain themselves."""

from __future__ import annotations

import enum
import inspect
import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from anarchon.backends.base import ClaimRequest, JobTerms, Outcome, Overlap
from anarchon.runs import Trigger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anarchon.backends.base import (
        Answer,
        ClaimAnswer,
        FinishAnswer,
        HeartbeatAnswer,
        Registered,
        Store,
    )
    from anarchon.runs import RunRecord

SLOT = 1_700_000_040_000
"""The slot that most checks ask for, in milliseconds."""

LEASE = 10_000
A, B, C, D = "token-a", "token-b", "token-c", "token-d"
"""Tokens of claims."""

GRACE = 1_000
WINDOW = 60_000
"""How long after a slot it may be claimed, and after a lease end it may be taken over."""


class ConformanceError(AssertionError):
    """The store did not do what every backend must do."""


class Level(enum.Enum):
    """What a backend can do; each level builds on the one before."""

    CLAIMS = "claims"
    LEASES = "leases"
    HISTORY = "history"


class Clock:
    """The time of the store under test, in milliseconds; it moves only when `now` is set."""

    def __init__(self, now: int = SLOT) -> None:
        """Stand at `now`."""
        self.now = now

    def __call__(self) -> int:
        """Answer the time."""
        return self.now


_numbers = itertools.count(1)


@dataclass
class Subject:
    """A store under test, the clock that it decides by, and a job of its own for the check.

    `damage` overwrites what is stored of a (job, run) with something that makes no sense and lists
    the run among the open ones; leave it out where a store cannot hold such a thing.
    """

    store: Store
    clock: Clock
    damage: Callable[[str, str], Awaitable[None]] | None = None
    job: str = field(default_factory=lambda: f"check-{next(_numbers)}")
    terms: JobTerms = field(init=False)

    def __post_init__(self) -> None:
        """Start with the usual terms, at the usual slot."""
        self.clock.now = SLOT
        self.terms = JobTerms(
            job=self.job,
            schedule_key="* * * * *",
            overlap=Overlap.SKIP,
            max_attempts=3,
            lease=LEASE,
            reach=WINDOW,
            keep=WINDOW,
            history_size=100,
            history_ttl=0,
            grace=GRACE,
        )

    def at(self, moment: int) -> None:
        """Set the clock."""
        self.clock.now = moment

    def set_terms(  # noqa: PLR0913 - one argument a term
        self,
        *,
        schedule_key: str | None = None,
        overlap: Overlap | None = None,
        max_attempts: int | None = None,
        history_size: int | None = None,
        history_ttl: int | None = None,
        keep: int | None = None,
    ) -> None:
        """Change terms of the job for the calls that follow."""
        old = self.terms
        self.terms = replace(
            old,
            schedule_key=old.schedule_key if schedule_key is None else schedule_key,
            overlap=old.overlap if overlap is None else overlap,
            max_attempts=old.max_attempts if max_attempts is None else max_attempts,
            history_size=old.history_size if history_size is None else history_size,
            history_ttl=old.history_ttl if history_ttl is None else history_ttl,
            keep=old.keep if keep is None else keep,
        )

    async def claim(  # noqa: PLR0913 - one argument a part of the claim
        self,
        run: int | str = SLOT,
        token: str = A,
        *,
        seen: int = 0,
        deadline: int | None = None,
        trigger: Trigger = Trigger.SCHEDULE,
        since_applies: bool = False,
        runner: str = "host:1:a",
    ) -> ClaimAnswer:
        """Ask for a run: a slot, or the name of a manual run.

        A first claim is in time for `WINDOW` after its slot, a takeover for a lease from now.
        """
        manual = isinstance(run, str)
        asked = int(run[1:].partition("-")[0]) if isinstance(run, str) else run
        if deadline is None:
            deadline = self.clock.now + LEASE if seen else asked + WINDOW
        request = ClaimRequest(
            run=str(run),
            token=token,
            seen=seen,
            slot=0 if manual else asked,
            deadline=deadline,
            last=asked + WINDOW,
            runner=runner,
            trigger=Trigger.MANUAL if manual else trigger,
            since_applies=since_applies,
        )
        return await self.store.claim(self.terms, request)

    async def heartbeat(self, run: int | str = SLOT, token: str = A) -> HeartbeatAnswer:
        """Keep a lease."""
        return await self.store.heartbeat(self.terms, str(run), token)

    async def finish(
        self,
        run: int | str = SLOT,
        token: str = A,
        *,
        outcome: Outcome = Outcome.SUCCEEDED,
        error: str = "",
        delay: int = 5_000,
    ) -> FinishAnswer:
        """Tell how an attempt ended."""
        return await self.store.finish(self.terms, str(run), token, outcome, error, delay)

    async def release(
        self,
        run: int | str = SLOT,
        token: str = A,
        *,
        kind: Outcome = Outcome.RELEASED,
        delay: int = 5_000,
        last: int = SLOT + WINDOW,
    ) -> Answer:
        """Give a lease back."""
        return await self.store.release(self.terms, str(run), token, kind, delay, last)

    async def cancel(self, run: int | str = SLOT) -> Answer:
        """Cancel a run."""
        return await self.store.cancel(self.job, str(run), self.terms.history_size)

    async def register(self) -> Registered:
        """Tell the store of the job."""
        return await self.store.register(self.terms)

    async def runs(self, limit: int = 50) -> tuple[RunRecord, ...]:
        """The job's history, newest first."""
        return await self.store.history(self.job, limit)

    async def run_of(self, run: int | str = SLOT) -> RunRecord:
        """What history tells of one run."""
        for record in await self.runs():
            if record.id == str(run):
                return record
        message = f"history of {self.job} does not tell of run {run}"
        raise ConformanceError(message)


CheckFunction: TypeAlias = "Callable[[Subject], Awaitable[None]]"


@dataclass(frozen=True)
class Check:
    """One behaviour. `name` says it in a word, `about` in a sentence."""

    name: str
    level: Level
    about: str
    needs_damage: bool
    function: CheckFunction


def collect(level: Level, *functions: CheckFunction) -> tuple[Check, ...]:
    """Checks of `level`, each named by its function and explained by its docstring."""
    return tuple(
        Check(
            name=function.__name__,
            level=level,
            about=inspect.getdoc(function) or "",
            needs_damage=function.__name__.startswith("a_damaged_"),
            function=function,
        )
        for function in functions
    )


async def run(check: Check, subject: Subject) -> None:
    """Run one check. Raises `ConformanceError` where the store does not behave as it must."""
    try:
        await check.function(subject)
    except ConformanceError as error:
        message = f"{check.name}: {error}\n({check.about})"
        raise ConformanceError(message) from None


def expect(what: str, answer: object, **wanted: object) -> None:
    """Compare parts of an answer by name; `what` says in words what was asked."""
    wrong = [
        f"{name} is {getattr(answer, name)!r}, not {value!r}"
        for name, value in wanted.items()
        if getattr(answer, name) != value
    ]
    if wrong:
        raise ConformanceError(f"{what}: {'; '.join(wrong)}; the whole answer: {answer}")


def expect_equal(what: str, got: object, wanted: object) -> None:
    """Compare two values."""
    if got != wanted:
        raise ConformanceError(f"{what}: got {got!r}, not {wanted!r}")
