"""Clocks of a simulation: each host's and the store's, as wrong as real ones can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anarchon.testing.virtual import VirtualTime


class HostClock:
    """The clocks of one host; an `anarchon.engine.clock.Clock`.

    Its wall clock is `ahead` seconds ahead of true time, and both its clocks gain `drift` seconds a
    second.
    """

    def __init__(self, time: VirtualTime, ahead: float = 0.0, drift: float = 0.0) -> None:
        """Start now; hosts count the seconds since their boot from different numbers."""
        self._time = time
        self._began = time.seconds
        self._began_ms = time.now()
        self._rate = 1.0 + drift
        self._booted = time.rng.uniform(10.0, 1e6)
        self._ahead = ahead

    def boot(self) -> float:
        """Seconds since the host was started."""
        return self._booted + self._elapsed()

    def wall(self) -> int:
        """What the host believes the time to be, in milliseconds since the epoch."""
        return int(self._began_ms + (self._elapsed() + self._ahead) * 1000)

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an operator or a time daemon does."""
        self._ahead += seconds

    def _elapsed(self) -> float:
        return (self._time.seconds - self._began) * self._rate


class StoreClock:
    """The store's clock: what `MemoryBackend` takes as `clock`."""

    def __init__(self, time: VirtualTime, ahead: float = 0.0) -> None:
        """Be `ahead` seconds ahead of true time."""
        self._time = time
        self._ahead = ahead

    def __call__(self) -> int:
        """Answer the store's time in milliseconds since the epoch."""
        return int(self._time.now() + self._ahead * 1000)

    def step(self, seconds: float) -> None:
        """Jump forward or back, as after a failover to a host whose clock is off."""
        self._ahead += seconds
