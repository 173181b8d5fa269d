"""The line between an instance and its store, and what can become of a call on it."""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from anarchon.errors import StoreError, StoreRefused, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from anarchon.backends.base import (
        Answer,
        Backend,
        ClaimAnswer,
        ClaimRequest,
        FinishAnswer,
        HeartbeatAnswer,
        JobFacts,
        JobTerms,
        Outcome,
        Presences,
        Registered,
        Store,
        StoreFacts,
    )
    from anarchon.runs import RunRecord
    from anarchon.testing.virtual import VirtualTime

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one call. Times are seconds.

    It is under way for `there` before it is carried out, its answer for `back`. It may not arrive,
    or its answer may not; the caller learns nothing then until its timeout. It may be answered with
    an `error` instead of being carried out. And a copy of it may be carried out again `copy_after`
    the first.
    """

    there: float = 0.0
    back: float = 0.0
    arrives: bool = True
    answered: bool = True
    error: StoreError | None = None
    copy_after: float | None = None


USUAL = Fate()
REQUEST_LOST = Fate(arrives=False)
REPLY_LOST = Fate(answered=False)
REFUSED = Fate(error=StoreRefused("not now"))


@dataclass(frozen=True, slots=True)
class Executed:
    """A call that the store carried out: when (true time, ms), for whom, and what it answered."""

    at: float
    line: str
    call: str
    arguments: tuple[Any, ...]
    answer: object


class Line:
    """What lies between one instance and the store.

    `calls` counts what was sent, by name of the store's method. `chance` decides the fate of calls
    that nothing else was planned for. `executed` is where carried out calls are written down.
    """

    def __init__(self, time: VirtualTime, name: str, executed: list[Executed]) -> None:
        """Be in order."""
        self.name = name
        self.calls: Counter[str] = Counter()
        self.chance: Callable[[str], Fate] = lambda _call: USUAL
        self.executed = executed
        self._time = time
        self._planned: dict[str, deque[Fate]] = {}
        self._cut = False
        self._silent = False
        self._under_way: set[asyncio.Task[None]] = set()

    def plan(self, call: str, *fates: Fate) -> None:
        """Decide what becomes of the next calls of a name, the next one first."""
        self._planned.setdefault(call, deque()).extend(fates)

    def cut(self, *, silent: bool = False) -> None:
        """Let nothing through: calls fail at once, or (`silent`) after their timeout."""
        self._cut, self._silent = True, silent

    def mend(self) -> None:
        """Let calls through again."""
        self._cut = False

    async def call(
        self,
        name: str,
        timeout: float,  # noqa: ASYNC109 - the store's own limit
        arguments: tuple[Any, ...],
        carry_out: Callable[..., Coroutine[Any, Any, T]],
    ) -> T:
        """Send a call. Raises `StoreUnavailable`, or the error that its fate has in store."""
        self.calls[name] += 1
        planned = self._planned.get(name)
        fate = planned.popleft() if planned else self.chance(name)
        if self._cut and not self._silent:
            raise StoreUnavailable("connection refused")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        async def deliver() -> None:
            await asyncio.sleep(fate.there)
            if not fate.arrives or self._cut:
                return
            if fate.error is not None:
                _set(answer, fate.error)
                return
            await self._carry_out(name, arguments, carry_out, fate, answer)

        # Once sent it is under way, whatever becomes of its sender.
        delivery = loop.create_task(deliver(), context=contextvars.Context())
        self._under_way.add(delivery)
        delivery.add_done_callback(self._under_way.discard)
        try:
            async with asyncio.timeout(timeout):
                return await answer
        except TimeoutError:
            raise StoreUnavailable(f"no answer to {name} within {timeout:g} s") from None

    async def _carry_out(
        self,
        name: str,
        arguments: tuple[Any, ...],
        carry_out: Callable[..., Coroutine[Any, Any, T]],
        fate: Fate,
        answer: asyncio.Future[T],
    ) -> None:
        done: T | StoreError
        try:
            done = await carry_out(*arguments)
        except StoreError as error:
            done = error
        self.executed.append(Executed(self._time.now(), self.name, name, arguments, done))
        await asyncio.sleep(fate.back)
        if fate.answered and not self._cut:
            _set(answer, done)
        if fate.copy_after is not None:
            await asyncio.sleep(max(0.0, fate.copy_after - fate.back))
            copied = await carry_out(*arguments)
            self.executed.append(Executed(self._time.now(), self.name, name, arguments, copied))


def _set(answer: asyncio.Future[T], done: T | StoreError) -> None:
    if answer.done():
        return
    if isinstance(done, StoreError):
        answer.set_exception(done)
    else:
        answer.set_result(done)


class FaultyBackend:
    """Another backend behind a `Line`: for one instance, with two connections of its own."""

    shares_connection = False

    def __init__(self, inner: Backend, line: Line) -> None:
        """Reach `inner` over `line`."""
        self._inner = inner
        self._line = line

    def connect(self, *, timeout: float) -> FaultyStore:
        """A store whose calls go over the line."""
        return FaultyStore(self._inner.connect(timeout=timeout), self._line, timeout)


class FaultyStore:
    """A store at the other end of a `Line`; an `anarchon.backends.base.Store`."""

    def __init__(self, inner: Store, line: Line, timeout: float) -> None:
        """Ask `inner` over `line`."""
        self._inner = inner
        self._line = line
        self._timeout = timeout

    async def _ask(
        self, name: str, carry_out: Callable[..., Coroutine[Any, Any, T]], *arguments: object
    ) -> T:
        return await self._line.call(name, self._timeout, arguments, carry_out)

    async def open(self) -> tuple[str, ...]:
        """Connect."""
        return await self._ask("open", self._inner.open)

    async def visit(self) -> None:
        """Connect for a question."""
        await self._ask("visit", self._inner.visit)

    async def close(self) -> None:
        """Close the inner store, which needs no line for it."""
        await self._inner.close()

    def place(self, job: str) -> str:
        """Where the inner store has it."""
        return self._inner.place(job)

    async def clock(self, runner: str, told: str, silent: int) -> int:
        """The store's time."""
        return await self._ask("clock", self._inner.clock, runner, told, silent)

    async def register(self, terms: JobTerms) -> Registered:
        """Tell of a job."""
        return await self._ask("register", self._inner.register, terms)

    async def claim(self, terms: JobTerms, request: ClaimRequest) -> ClaimAnswer:
        """Ask for a run."""
        return await self._ask("claim", self._inner.claim, terms, request)

    async def heartbeat(self, terms: JobTerms, run: str, token: str) -> HeartbeatAnswer:
        """Keep a lease."""
        return await self._ask("heartbeat", self._inner.heartbeat, terms, run, token)

    async def finish(  # noqa: PLR0913 - the call's own parts
        self, terms: JobTerms, run: str, token: str, outcome: Outcome, error: str, delay: int
    ) -> FinishAnswer:
        """Tell how an attempt ended."""
        finish = self._inner.finish
        return await self._ask("finish", finish, terms, run, token, outcome, error, delay)

    async def release(  # noqa: PLR0913 - the call's own parts
        self, terms: JobTerms, run: str, token: str, kind: Outcome, delay: int = 0, last: int = 0
    ) -> Answer:
        """Give a lease back."""
        release = self._inner.release
        return await self._ask("release", release, terms, run, token, kind, delay, last)

    async def cancel(self, job: str, run: str, history_size: int) -> Answer:
        """Cancel a run."""
        return await self._ask("cancel", self._inner.cancel, job, run, history_size)

    async def pause(self, job: str, until: int, note: str) -> Answer:
        """Hold back a job."""
        return await self._ask("pause", self._inner.pause, job, until, note)

    async def resume(self, job: str) -> Answer:
        """Let a job go on."""
        return await self._ask("resume", self._inner.resume, job)

    async def forget(self, job: str) -> Answer:
        """Delete what is stored of a job."""
        return await self._ask("forget", self._inner.forget, job)

    async def history(self, job: str, limit: int) -> tuple[RunRecord, ...]:
        """The newest runs of a job."""
        return await self._ask("history", self._inner.history, job, limit)

    async def look(self, job: str, run: str) -> JobFacts:
        """What is known of a job, and of a run of it."""
        return await self._ask("look", self._inner.look, job, run)

    async def instances(self) -> Presences:
        """The instances that have shown themselves."""
        return await self._ask("instances", self._inner.instances)

    async def facts(self) -> StoreFacts:
        """What the store tells of itself."""
        return await self._ask("facts", self._inner.facts)
