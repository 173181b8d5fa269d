"""Calls to the store as the engine makes them: timed, repeated, and told of when they fail."""

from __future__ import annotations

import asyncio
import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from anarchon.engine.log import STORE, tell
from anarchon.errors import StoreError, StoreRefused, StoreUnavailable

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable

    from anarchon.backends.base import Store
    from anarchon.engine.clock import Clock, ServerClock

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0
URGENT_PAUSE = 0.2
"""Seconds; for what must reach the store before others take the run for abandoned."""


class Timed(Protocol):
    """An answer that carries the server's time."""

    @property
    def time(self) -> int:
        """Milliseconds since the epoch."""
        ...


A = TypeVar("A", bound=Timed)


@dataclass(frozen=True, slots=True)
class Asked(Generic[A]):
    """An answer, and when (by the host's own clock) its call was sent."""

    answer: A
    sent: float


class StoreHealth:
    """Whether the store answers; one WARNING when it goes away, one INFO when it is back."""

    def __init__(self, on_change: Callable[[str | None], None] = lambda _why: None) -> None:
        """Take the store to be there until a call fails.

        `on_change` hears why it is away, or None when it is back.
        """
        self._on_change = on_change
        self._told = ""
        self._answered_at = 0.0
        self.there: bool = True
        self.serves: bool = True
        """Whether the last call was answered without an error."""

    def answered(self, received: float = 0.0) -> None:
        """A call was answered, at a moment of the host's own clock."""
        self._answered_at = max(self._answered_at, received)
        self.serves = True
        if not self.there:
            self.there = True
            tell(STORE, logging.INFO, "store.back", "the store answers again")
            self._on_change(None)

    def failed(self, error: StoreError, sent: float = math.inf) -> None:
        """A call that was sent at `sent` was not answered, or answered with an error.

        Others may have been answered since: then its failure tells of the past.
        """
        of_now = sent >= self._answered_at
        if of_now:
            self.serves = False
        if not isinstance(error, (StoreUnavailable, StoreRefused)):
            self._tell_error(error)
        elif self.there and of_now:
            self.there = False
            message = (
                f"the store does not answer ({error}); claims are tried again while their slots are"
                " in time, and running jobs stop when their leases can no longer be believed in"
            )
            tell(STORE, logging.WARNING, "store.away", message, reason=str(error))
            self._on_change(str(error))

    def _tell_error(self, error: StoreError) -> None:
        # Repeats of a call bring the same error again; it is told when it changes.
        if str(error) != self._told:
            self._told = str(error)
            tell(STORE, logging.ERROR, "store.error", f"the store answered an error: {error}")


class Link:
    """One store, asked through; every answer corrects what is known of the server's clock."""

    def __init__(
        self, store: Store, clock: Clock, server: ServerClock, health: StoreHealth
    ) -> None:
        """Ask `store`."""
        self.store = store
        self._clock = clock
        self._server = server
        self._health = health

    async def open(self) -> tuple[str, ...]:
        """Open the store; answers its warnings. Raises the store's errors as they are."""
        try:
            return await self.store.open()
        except StoreError:
            raise
        except Exception as error:
            raise _unknown(error) from error

    async def ask(self, call: Callable[[Store], Awaitable[A]]) -> Asked[A]:
        """Make one call. Raises the store's errors as they are."""
        sent = self._clock.boot()
        try:
            answer = await call(self.store)
        except StoreError as error:
            self._health.failed(error, sent)
            raise
        except Exception as error:
            unknown = _unknown(error)
            self._health.failed(unknown, sent)
            raise unknown from error
        received = self._clock.boot()
        self._server.heard(sent, received, answer.time)
        self._health.answered(received)
        return Asked(answer, sent)


def _unknown(error: Exception) -> StoreUnavailable:
    """What a client raised though it should not: what became of the call is then unknown."""
    return StoreUnavailable(f"{type(error).__name__}: {error}")


class Pauses:
    """The waits between repeats: doubling from a twentieth of a second, spread at random."""

    def __init__(self, rng: random.Random, longest: float = LONGEST_PAUSE) -> None:
        """Start with the shortest; none is longer than `longest` seconds."""
        self._random = rng
        self._longest = longest
        self._pause = FIRST_PAUSE

    def next(self) -> float:
        """How many seconds to wait before the next repeat."""
        pause = self._pause * self._random.uniform(0.5, 1.0)
        self._pause = min(self._pause * 2, self._longest)
        return pause


async def repeat(
    link: Link,
    call: Callable[[Store], Awaitable[A]],
    rng: random.Random,
    go_on: Callable[[StoreError], bool],
    longest: float = LONGEST_PAUSE,
) -> Asked[A] | None:
    """Make a call until it is answered; None once `go_on` says, after a failure, to give up.

    No pause between two repeats is longer than `longest` seconds.
    """
    pauses = Pauses(rng, longest)
    while True:
        try:
            return await link.ask(call)
        except StoreError as error:
            if not go_on(error):
                return None
        await asyncio.sleep(pauses.next())
