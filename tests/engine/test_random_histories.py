"""Safety and liveness in random histories, and the proof that they would be noticed if broken."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from anarchon.backends.base import HeartbeatAnswer
from anarchon.backends.reference import JobBook, Record
from anarchon.engine import driver, pursuit
from anarchon.engine.heartbeat import HeldLease
from anarchon.testing import run_virtual
from tests.conftest import EXHAUSTIVE
from tests.support.histories import History
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from anarchon.testing import VirtualTime

HISTORIES = 5000 if EXHAUSTIVE else 100


def faults_of_history(seed: int) -> list[str]:
    """Live a history; answers what was wrong with it."""

    async def story(time: VirtualTime) -> list[str]:
        history = History(World(time))
        await history.live()
        faults = history.faults()
        await history.world.stop()
        return faults

    return run_virtual(story, seed=seed)


@pytest.mark.parametrize("number", range(HISTORIES))
def test_what_must_hold_holds(seed: int, number: int) -> None:
    faults = faults_of_history(seed)
    assert not faults, f"seed {seed}: " + "\n".join(faults)
