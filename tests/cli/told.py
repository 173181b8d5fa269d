"""A module whose scheduler answers what it was told to, for exact screens."""

from __future__ import annotations

TOLD = """
    from datetime import UTC, datetime, timedelta
    from anarchon import *
    from anarchon import AttemptRecord as A, RunRecord as R, RunStatus as S, Trigger as T

    def at(text: str) -> datetime:
        return datetime.fromisoformat("2026-11-30T" + text + "+00:00")

    class Told(Scheduler):
        async def history(self, job, limit=50):
            return HISTORY[:limit]

        async def state(self, job):
            return STATES.get(job, JobState(job, False, None, False, None, "", ()))

        async def why(self, job, at):
            ASKED.append(at)
            return WHY

        async def check(self):
            return FINDINGS

        async def instances(self):
            return INSTANCES

        async def pause(self, job, *, until=None, note=""):
            ASKED.append((job, until, note))

        async def resume(self, job):
            return RESUMED

        async def cancel(self, job, run=None):
            ASKED.append(run)
            return CANCELLED

    HISTORY, STATES, WHY, FINDINGS, INSTANCES = (), {}, None, (), ()
    ASKED, RESUMED, CANCELLED = [], True, ()
    scheduler = Told(backend=MemoryBackend())
    scheduler.add_job(print, "0 3 29 2 *", name="report", timezone="Europe/Berlin")
    scheduler.add_job(print, 900, name="sync")
"""
