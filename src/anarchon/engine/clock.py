"""Time as an instance has it: its own clock, and what it knows of the server's.

Due times, deadlines and lease ends are the server's. The host's wall clock decides nothing: the
server's time is reckoned from a clock that only ever goes forward, corrected by every answer.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_SLEEP = 60.0
"""Seconds. The loop's timers stand still while a host is suspended, so none is longer than this."""

STEP_WORTH_WAKING_MS = 20
STEP_WORTH_TELLING_MS = 1000


class Clock(Protocol):
    """The clocks of one host."""

    def boot(self) -> float:
        """Seconds from some start, only ever forward, counting the time a host was suspended."""
        ...

    def wall(self) -> int:
        """What the host believes the time to be, in milliseconds since the epoch."""
        ...


class SystemClock:
    """This host's clocks: one that counts suspended time where there is one."""

    def boot(self) -> float:
        """Seconds since the host was started."""
        return time.clock_gettime(_BOOT) if _BOOT is not None else time.monotonic()

    def wall(self) -> int:
        """This host's wall clock."""
        return time.time_ns() // 1_000_000


_BOOT: int | None = getattr(
    time,
    # macOS has no CLOCK_BOOTTIME; there CLOCK_MONOTONIC counts sleep, unlike time.monotonic().
    "CLOCK_MONOTONIC" if sys.platform == "darwin" else "CLOCK_BOOTTIME",
    None,
)


async def sleep_until(clock: Clock, moment: float) -> None:
    """Sleep until a moment of `clock.boot()`, in pieces that a suspended host cannot stretch."""
    while (rest := moment - clock.boot()) > 0:  # noqa: ASYNC110 - time itself is waited for
        await asyncio.sleep(min(rest, LONGEST_SLEEP))


class ServerClock:
    """The server's time, as near as the answers tell.

    An answer that carries the server's time and was under way from `sent` to `received` bounds the
    difference between the two clocks. The reckoning is moved no further than the bounds demand:
    quick answers make it exact, slow ones do no harm, and a step of the server's clock is followed
    at once. Before the first answer the host's wall clock stands in.
    """

    def __init__(self, clock: Clock, on_step: Callable[[int], None] = lambda _ms: None) -> None:
        """Reckon by `clock`; `on_step` is told of changes by more than a few milliseconds."""
        self._clock = clock
        self._on_step = on_step
        self._ahead: float = clock.wall() - clock.boot() * 1000
        self.known: bool = False

    def heard(self, sent: float, received: float, time_ms: int) -> None:
        """Take in the server's time from an answer; `sent` and `received` are of `clock.boot()`."""
        low = time_ms - received * 1000
        high = time_ms + 1 - sent * 1000
        before = self._ahead
        if not self.known:
            self._ahead = (low + high) / 2
        else:
            self._ahead = min(max(self._ahead, low), high)
        self.known = True
        step = round(self._ahead - before)
        if abs(step) >= STEP_WORTH_WAKING_MS:
            self._on_step(step)

    def now(self) -> int:
        """The server's time in milliseconds since the epoch."""
        return int(self._clock.boot() * 1000 + self._ahead)

    def seconds_until(self, moment: int) -> float:
        """How long until a moment of the server's clock has surely come; not below 0."""
        # Answers tell whole milliseconds: aimed any closer, every other call would be a bit early.
        return max(0.0, (moment + 1 - self._ahead) / 1000 - self._clock.boot())

    def host_is_ahead(self) -> int:
        """By how many milliseconds the host's wall clock is ahead of the server's (or behind)."""
        return self._clock.wall() - self.now()
