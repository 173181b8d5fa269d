"""What an engine is given from outside: clocks, chance, and what carries its heartbeats."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anarchon.engine.clock import Clock, SystemClock
from anarchon.engine.heartbeat import Carrier, ThreadCarrier

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Environment:
    """The outside of an instance: the real one, unless a test gives virtual clocks and a seed.

    `rng` draws tokens and small delays; `carrier` makes what carries heartbeats where anarchon
    opens its own connections.
    """

    clock: Clock = field(default_factory=SystemClock)
    rng: random.Random = field(default_factory=random.SystemRandom)
    carrier: Callable[[], Carrier] = ThreadCarrier
