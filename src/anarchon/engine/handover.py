"""Telling the store how a run ended here: its outcome, or that it is given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anarchon.backends.base import Outcome
from anarchon.engine.link import URGENT_PAUSE, repeat
from anarchon.errors import StoreRefused

if TYPE_CHECKING:
    from anarchon.backends.base import Answer, FinishAnswer
    from anarchon.engine.attempt import Ending
    from anarchon.engine.heartbeat import HeldLease
    from anarchon.engine.instance import Instance
    from anarchon.engine.link import Asked


async def finish(
    instance: Instance, held: HeldLease, ending: Ending, delay: int
) -> Asked[FinishAnswer] | None:
    """Write an attempt's outcome, repeated until answered; `delay` until it may be retried (ms).

    None when a refusal makes it useless while the scheduler stops.
    """
    outcome, text = ending.outcome or Outcome.NONE, ending.text
    return await repeat(
        instance.link,
        lambda store: store.finish(held.terms, held.run, held.token, outcome, text, delay),
        instance.env.rng,
        lambda error: not (instance.stopping and isinstance(error, StoreRefused)),
        URGENT_PAUSE,
    )


async def give_back(instance: Instance, held: HeldLease) -> Asked[Answer] | None:
    """Give a lease back, for whoever asks next; None when the store refused to hear of it."""
    return await repeat(
        instance.link,
        lambda store: store.release(held.terms, held.run, held.token, Outcome.RELEASED),
        instance.env.rng,
        lambda error: not isinstance(error, StoreRefused),
        URGENT_PAUSE,
    )
