"""Random commands to the scripts on real servers and to the reference: never a difference.

The commands come with right and wrong tokens, at moments just before, at and after what matters,
with the clock stepping both ways, with stray copies of former calls, and with damage done to the
store by hand. The limits of history are tiny, so that the rare branches are taken all the time.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from anarchon.backends.base import ClaimRequest, JobTerms, Outcome, Overlap, State, order_of
from anarchon.backends.reference import Nonsense, Record
from anarchon.runs import Trigger
from tests.store.books import NONSENSE
from tests.store.commands import FUTURE, PAST, Comparison

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.server import Server

EXAMPLES = 80
MANY_EXAMPLES = 600
STEPS = 50

INSTANCES = ("a", "b", "c")
REMEMBERED_CALLS = 40
FINISHED = (
    Outcome.SUCCEEDED,
    Outcome.FAILED,
    Outcome.FAILED,
    Outcome.TIMED_OUT,
    Outcome.NO_RETRY,
    Outcome.CANCELLED,
)
STEPS_OF_CLOCK = (1, 2, 40, 999, 1_000, 1_001, 5_000, 70_000, -1, -30, -1_000, -20_000, -(10**8))
NEAR = (-1, 0, 1)
runs = st.integers(0, 7)
instances = st.sampled_from(INSTANCES)
variants = st.integers(0, 1)
near = st.sampled_from(NEAR)
triggers = st.sampled_from((Trigger.SCHEDULE, Trigger.SCHEDULE, Trigger.CATCH_UP))
owners = st.sampled_from((None, None, None, "a"))


@st.composite
def job_terms(draw: st.DrawFn, job: str) -> JobTerms:
    lease = draw(st.sampled_from((1, 900, 10_000)))
    return JobTerms(
        job=job,
        schedule_key=draw(st.sampled_from(("hourly", "daily"))),
        overlap=draw(st.sampled_from(tuple(Overlap))),
        max_attempts=draw(st.integers(1, 3)),
        lease=lease,
        reach=draw(st.sampled_from((0, 1_000, 30_000))),
        keep=draw(st.sampled_from((0, 10, 3_000))),
        history_size=draw(st.sampled_from((1, 2, 3, 5, 50))),
        history_ttl=draw(st.sampled_from((0, 0, 1, 2_000))),
        grace=draw(st.sampled_from((0, 1_000))),
    )


class StoreMachine(RuleBasedStateMachine):
    """One job, three instances, two versions of the job's terms at a time."""

    servers: Sequence[tuple[str, Server]] = ()
    numbers = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        self.both = Comparison(self.servers, f"job {next(self.numbers)}")
        self.calls: list[tuple[str, tuple[object, ...]]] = []

    @initialize(
        base=st.sampled_from((PAST, FUTURE)),
        step=st.sampled_from((1, 700, 5_000, 60_000)),
        begun=st.integers(0, 5),
        data=st.data(),
    )
    def start(self, base: int, step: int, begun: int, data: st.DataObject) -> None:
        self.both.now = base + begun * step
        self.terms = [data.draw(job_terms(self.both.job)) for _ in range(2)]
        slots = [base + number * step for number in range(5)]
        manual = [f"m{base}-x", f"m{base}-y", f"m{base + 2 * step}-x"]
        self.names = [*map(str, slots), *manual]

    def teardown(self) -> None:
        self.both.close()

    def ask(self, name: str, *arguments: object) -> None:
        self.calls = [*self.calls[-REMEMBERED_CALLS:], (name, arguments)]
        self.both.ask(name, *arguments)

    def record(self, name: str) -> Record | None:
        found = self.both.book.records.get(name)
        return found if isinstance(found, Record) else None

    def open_run(self, number: int) -> str:
        """An open run, or any if there is none."""
        names = [name for name in self.names if (r := self.record(name)) is not None and r.open]
        return (names or self.names)[number % len(names or self.names)]

    def running_run(self, number: int) -> str:
        """A run with an attempt under way, or any open one if there is none."""
        names = [n for n in self.names if (r := self.record(n)) and r.state is State.RUNNING]
        return names[number % len(names)] if names else self.open_run(number)

    def new_run(self, number: int) -> str:
        """A run that is not known yet, or any if there is none."""
        names = [name for name in self.names if name not in self.both.book.records]
        return (names or self.names)[number % len(names or self.names)]

    @invariant()
    def same_contents(self) -> None:
        self.both.compare_contents()

    # -- time --------------------------------------------------------------------------------

    @rule(step=st.sampled_from(STEPS_OF_CLOCK))
    def step_clock(self, step: int) -> None:
        self.both.now = max(self.both.now + step, 1)

    @rule(run=runs, off=near)
    def go_to_slot(self, run: int, off: int) -> None:
        self.both.now = order_of(self.names[run]) + off

    @rule(run=runs, off=near, variant=variants, after=st.sampled_from(("", "grace", "reach")))
    def go_to_end(self, run: int, off: int, variant: int, after: str) -> None:
        record = self.record(self.open_run(run))
        if record is not None and record.open:
            more: int = getattr(self.terms[variant], after) if after else 0
            self.both.now = record.end + more + off

    @rule(run=runs, off=near, variant=variants, term=st.sampled_from(("keep", "history_ttl")))
    def go_to_age(self, run: int, off: int, variant: int, term: str) -> None:
        age: int = getattr(self.terms[variant], term)
        self.both.now = order_of(self.names[run]) + age + off

    # -- calls -------------------------------------------------------------------------------

    def claim(  # noqa: PLR0913 - what the rules below differ in
        self,
        name: str,
        instance: str,
        variant: int,
        *,
        seen: int = 0,
        late: int = -1_000,
        past: int = -1_000,
        trigger: Trigger = Trigger.SCHEDULE,
        since: bool = False,
    ) -> None:
        request = ClaimRequest(
            run=name,
            token=f"{instance}-{name}-{seen}",
            seen=seen,
            slot=0 if name.startswith("m") else int(name),
            deadline=self.both.now - late,
            last=self.both.now - past,
            runner=f"runner {instance}",
            trigger=Trigger.MANUAL if name.startswith("m") else trigger,
            since_applies=since,
        )
        self.ask("claim", self.terms[variant], request)

    @rule(run=runs, instance=instances, variant=variants, trigger=triggers)
    def ask_first(self, run: int, instance: str, variant: int, trigger: Trigger) -> None:
        self.claim(self.new_run(run), instance, variant, trigger=trigger)

    @rule(run=runs, instance=instances, variant=variants)
    def ask_when_due(self, run: int, instance: str, variant: int) -> None:
        name = self.new_run(run)
        self.both.now = max(self.both.now, order_of(name))
        self.claim(name, instance, variant)

    @rule(run=runs, instance=instances, variant=variants)
    def ask_as_backup(self, run: int, instance: str, variant: int) -> None:
        name = self.open_run(run)
        record = self.record(name)
        self.claim(name, instance, variant, seen=record.attempt if record else 1)

    @rule(run=runs, instance=instances, variant=variants, late=st.sampled_from((0, 1, -1)))
    def take_over(self, run: int, instance: str, variant: int, late: int) -> None:
        name = self.open_run(run)
        record = self.record(name)
        if record is not None:
            self.both.now = max(self.both.now, record.end)
            self.claim(name, instance, variant, seen=record.attempt, late=late)

    @rule(
        run=runs,
        instance=instances,
        variant=variants,
        seen=st.integers(0, 3),
        late=st.sampled_from((0, 1, 2_000, -60_000)),
        past=st.sampled_from((0, 1, -60_000)),
        trigger=triggers,
        since=st.booleans(),
    )
    def ask_anything(  # noqa: PLR0913 - all that a claim is made of
        self,
        run: int,
        instance: str,
        variant: int,
        seen: int,
        late: int,
        past: int,
        trigger: Trigger,
        since: bool,
    ) -> None:
        self.claim(
            self.names[run],
            instance,
            variant,
            seen=seen,
            late=late,
            past=past,
            trigger=trigger,
            since=since,
        )

    def token(self, name: str, whose: str | None) -> str:
        """The token in the record, or one that an instance's first claim has."""
        record = self.record(name)
        return record.token if record and whose is None else f"{whose}-{name}-0"

    @rule(run=runs, whose=owners, variant=variants)
    def heartbeat(self, run: int, whose: str | None, variant: int) -> None:
        name = self.running_run(run)
        self.ask("heartbeat", self.terms[variant], name, self.token(name, whose))

    @rule(
        run=runs,
        whose=owners,
        variant=variants,
        outcome=st.sampled_from(FINISHED),
        error=st.sampled_from(("", "no", "two\nlines, ä")),
        delay=st.sampled_from((0, 1, 3_000)),
    )
    def finish(  # noqa: PLR0913 - all that a finish is made of
        self, run: int, whose: str | None, variant: int, outcome: Outcome, error: str, delay: int
    ) -> None:
        name = self.running_run(run)
        token = self.token(name, whose)
        self.ask("finish", self.terms[variant], name, token, outcome, error, delay)

    @rule(
        run=runs,
        whose=owners,
        variant=variants,
        kind=st.sampled_from((Outcome.RELEASED, Outcome.UNSTARTED)),
        delay=st.sampled_from((0, 500)),
        past=st.sampled_from((0, 1, -60_000)),
    )
    def release(  # noqa: PLR0913 - all that a release is made of
        self, run: int, whose: str | None, variant: int, kind: Outcome, delay: int, past: int
    ) -> None:
        name = self.running_run(run)
        last = self.both.now - past
        token = self.token(name, whose)
        self.ask("release", self.terms[variant], name, token, kind, delay, last)

    @rule(run=runs, whose=owners, variant=variants, outcome=st.sampled_from(FINISHED))
    def finish_anything(self, run: int, whose: str | None, variant: int, outcome: Outcome) -> None:
        name = self.names[run]
        token = self.token(name, whose)
        self.ask("finish", self.terms[variant], name, token, outcome, "", 1_000)

    @rule(run=runs, variant=variants, any_run=st.booleans())
    def cancel(self, run: int, variant: int, any_run: bool) -> None:
        terms = self.terms[variant]
        name = self.names[run] if any_run else self.open_run(run)
        self.ask("cancel", terms.job, name, terms.history_size)

    @rule(variant=variants, key=st.sampled_from((None, None, "weekly")))
    def register(self, variant: int, key: str | None) -> None:
        terms = self.terms[variant]
        self.ask("register", replace(terms, schedule_key=key or terms.schedule_key))

    @rule(until=st.sampled_from((None, 1, 0, -1, 5_000)), note=st.sampled_from(("", "a b")))
    def pause_and_resume(self, until: int | None, note: str) -> None:
        end = 0 if until is None else self.both.now + until
        if self.both.book.paused is None:
            self.ask("pause", self.both.job, end, note)
        else:
            self.ask("resume", self.both.job)

    @rule(variant=variants, instance=instances, told=st.sampled_from(("", "x", "y z")))
    def seldom(self, variant: int, instance: str, told: str) -> None:
        self.ask("clock", instance, told, 3_000)
        self.ask("clock", "", told, 3_000)
        self.both.ask("history", self.both.job, 50)
        # Refused at the first live run that it meets, in no order: which other runs were read, and
        # put right after a step of the clock, would differ. The registration reads all before.
        self.ask("register", self.terms[variant])
        self.ask("forget", self.both.job)

    @rule()
    def history(self) -> None:
        self.both.ask("history", self.both.job, 50)

    @precondition(lambda self: self.calls)
    @rule(which=st.integers(0, REMEMBERED_CALLS))
    def repeat(self, which: int) -> None:
        name, arguments = self.calls[which % len(self.calls)]
        if name != "forget":
            self.both.ask(name, *arguments)

    # -- damage ------------------------------------------------------------------------------

    @rule(run=runs, record=st.sampled_from(NONSENSE), active=st.booleans())
    def damage(self, run: int, record: str, active: bool) -> None:
        if self.undamaged():
            self.both.write_nonsense(self.names[run], record, active=active)

    @rule(run=st.integers(0, 8))
    def stray_member(self, run: int) -> None:
        self.both.add_to_active([*self.names, "stray"][run])

    def undamaged(self) -> bool:
        return not any(isinstance(r, Nonsense) for r in self.both.book.records.values())

    @precondition(lambda self: not self.undamaged())
    @rule()
    def clean_up(self) -> None:
        self.both.remove_nonsense()

    @precondition(lambda self: not self.undamaged())
    @rule()
    def clean_up_too(self) -> None:
        self.both.remove_nonsense()


def compare(
    servers: Sequence[tuple[str, Server]], seed: int, examples: int, *, shrink: bool = True
) -> None:
    """Run the machine; a difference fails, with the shortest commands that lead to it."""

    class Machine(StoreMachine):
        pass

    Machine.servers = servers
    run_state_machine_as_test(
        hypothesis.seed(seed)(Machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )


def test_scripts_follow_the_reference(redis7: Server, valkey9: Server, seed: int) -> None:
    before = next(StoreMachine.numbers)
    compare([("redis7", redis7), ("valkey9", valkey9)], seed, EXAMPLES)
    assert next(StoreMachine.numbers) - before > EXAMPLES


@pytest.mark.exhaustive
def test_scripts_follow_the_reference_for_long(redis7: Server, valkey9: Server, seed: int) -> None:
    before = next(StoreMachine.numbers)
    compare([("redis7", redis7), ("valkey9", valkey9)], seed, MANY_EXAMPLES)
    assert next(StoreMachine.numbers) - before > MANY_EXAMPLES
