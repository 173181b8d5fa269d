"""What every backend must do, as checks that anybody can run against a store of their own.

Each check is one behaviour. It gets a `Subject` (an open store, a clock that it may set, the name
of a job that nobody else uses) and looks only at what the store answers; where an answer is not
what it must be, it raises `ConformanceError`, which says what was asked, wanted and answered.

A store can be checked if its time can be set: every decision of it must be made by the `Clock` of
the subject. No check waits for real time, and no check cares what other jobs the store holds::

    import asyncio
    from anarchon.testing.conformance import CHECKS, Clock, Subject, run

    async def main() -> None:
        clock = Clock()
        store = MyBackend(clock=clock).connect(timeout=5)
        await store.open()
        for check in CHECKS:
            await run(check, Subject(store, clock))

    asyncio.run(main())

The checks come in levels. `Level.CLAIMS` is who wins a run: without it nothing works.
`Level.LEASES` is heartbeats, takeovers, retries, cancelling. `Level.HISTORY` is what is kept of
runs and for how long. A check that `needs_damage` writes a record that makes no sense: leave it out
where the subject cannot do that.
"""

from __future__ import annotations

from anarchon.testing.conformance import (
    attempts,
    cancelling,
    first_claims,
    heartbeats,
    history,
    jobs,
    others,
    takeovers,
    trimming,
)
from anarchon.testing.conformance.subject import (
    Check,
    Clock,
    ConformanceError,
    Level,
    Subject,
    run,
)

CHECKS: tuple[Check, ...] = (
    *first_claims.CHECKS,
    *jobs.CHECKS,
    *heartbeats.CHECKS,
    *takeovers.CHECKS,
    *attempts.CHECKS,
    *cancelling.CHECKS,
    *others.CHECKS,
    *history.CHECKS,
    *trimming.CHECKS,
)
"""All checks, the fundamental ones first."""

__all__ = ["CHECKS", "Check", "Clock", "ConformanceError", "Level", "Subject", "run"]
