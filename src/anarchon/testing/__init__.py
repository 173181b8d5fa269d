"""For tests of applications and of backends: a virtual cluster, and what every backend must do.

`run_virtual` runs a coroutine function in time that jumps instead of passing; a `Cluster` in it is
several instances of an application over one store, with clocks, lines and hosts that can fail.
`anarchon.testing.conformance` holds the checks that a backend of your own has to pass.
"""

from anarchon.testing.clocks import HostClock, StoreClock
from anarchon.testing.cluster import Cluster, Instance, SchedulerSettings
from anarchon.testing.faults import (
    REFUSED,
    REPLY_LOST,
    REQUEST_LOST,
    USUAL,
    Executed,
    Fate,
    FaultyBackend,
    FaultyStore,
    Line,
)
from anarchon.testing.virtual import START, VirtualTime, VirtualTimeError, run_virtual

__all__ = [
    "REFUSED",
    "REPLY_LOST",
    "REQUEST_LOST",
    "START",
    "USUAL",
    "Cluster",
    "Executed",
    "Fate",
    "FaultyBackend",
    "FaultyStore",
    "HostClock",
    "Instance",
    "Line",
    "SchedulerSettings",
    "StoreClock",
    "VirtualTime",
    "VirtualTimeError",
    "run_virtual",
]
