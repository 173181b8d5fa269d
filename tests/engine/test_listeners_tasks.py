"""A listener's task that is ended before it has begun is followed by another."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from anarchon import Event
from anarchon.engine.listeners import MOST_WAITING, Listeners, make_listener


def heard_after_a_cancellation(before: int) -> list[str]:
    """What a listener hears whose task is cancelled, before its first step, with events waiting."""
    heard: list[str] = []

    async def listener(event: Event) -> None:
        heard.append(event.runner)

    async def main() -> None:
        listeners = Listeners([make_listener(listener, frozenset({"started"}))])

        def hand_out(runner: str) -> None:
            now = datetime(2026, 1, 5, tzinfo=UTC)
            listeners.hand_out(Event(name="started", at=now, runner=runner))

        for _ in range(before):
            hand_out("before")
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)
        assert heard == []
        hand_out("after")
        await listeners.close()

    asyncio.run(main())
    return heard


def test_a_listener_whose_task_was_cancelled_before_its_first_step_hears_on() -> None:
    assert heard_after_a_cancellation(1) == ["before", "after"]


def test_a_listener_that_was_behind_when_its_task_was_cancelled_hears_on() -> None:
    assert heard_after_a_cancellation(MOST_WAITING + 1) == ["before"] * MOST_WAITING
