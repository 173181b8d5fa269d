"""The end of a call in a thread: told as it was, and nothing of it is kept."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import TYPE_CHECKING

import pytest

from anarchon.engine import threads
from anarchon.engine.threads import in_thread

if TYPE_CHECKING:
    from anarchon.engine.forks import Ended

NAME = "anarchon-a-call"


def the_thread() -> threading.Thread:
    """The thread of the call."""
    (thread,) = [thread for thread in threading.enumerate() if thread.name == NAME]
    return thread


@pytest.mark.parametrize("raises", [False, True])
def test_a_call_that_ends_just_before_its_thread_is_looked_at_is_told_as_it_ended(
    monkeypatch: pytest.MonkeyPatch,
    raises: bool,
) -> None:
    monkeypatch.setattr(threads, "LOOKED_AFTER", 0.0)
    gate = threading.Event()

    def call() -> str:
        gate.wait()
        if raises:
            raise KeyError("mine")
        return "mine"

    async def main() -> Ended:
        def end_it() -> None:
            thread = the_thread()
            gate.set()
            thread.join()

        # Due in the same turn of the loop as the look, and before it: so the thread is gone when it
        # is looked at, and the word that it has sent is still to be read.
        asyncio.get_running_loop().call_later(0.0, end_it)
        return await in_thread(asyncio.get_running_loop(), NAME, call)

    ended = asyncio.run(main())
    if raises:
        assert isinstance(ended.error, KeyError)
    else:
        assert (ended.value, ended.error) == ("mine", None)


def test_what_a_call_returned_is_not_kept_until_the_next_look() -> None:
    class Large:
        """Something that a job returns."""

    async def main() -> weakref.ref[Large]:
        ended = await in_thread(asyncio.get_running_loop(), NAME, Large)
        assert isinstance(ended.value, Large)
        return weakref.ref(ended.value)

    async def look() -> object:
        kept = await main()
        await asyncio.sleep(0)
        gc.collect()
        return kept()

    assert asyncio.run(look()) is None
