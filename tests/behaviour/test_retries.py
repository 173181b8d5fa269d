"""Retries.

Which attempts follow one that failed, when, and where.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from anarchon import NoRetry
from tests.behaviour.rows import row
from tests.behaviour.stories import ONCE, fail, fail_first, holder, several, waits
from tests.support.world import World, minutes, virtual

if TYPE_CHECKING:
    from anarchon import Run


@row(
    "max_attempts, retry_delay",
    "an attempt raises an exception, and another is left",
    "The run is put back and waits. When the wait ends before the lease would have, the instance"
    " that failed makes the next attempt: it alone knows that the wait is over.",
)
@virtual
async def test_a_short_wait_ends_where_it_began(world: World) -> None:
    await world.start(world.job("* * * * *", then=fail_first), 3)
    await world.at(20 * 60 + 5)
    pairs = list(zip(world.entries[::2], world.entries[1::2], strict=True))
    assert len(pairs) == 20
    assert all((one.attempt, two.attempt) == (1, 2) for one, two in pairs)
    assert all(one.runner == two.runner for one, two in pairs)
    assert set(await world.statuses(limit=60)) == {"succeeded"}


@row(
    "retry_delay, lease",
    "an attempt fails, and the wait is longer than the lease",
    "Whichever instance asks first makes the next attempt: the one that failed, or another.",
)
@virtual
async def test_a_long_wait_ends_anywhere(world: World) -> None:
    await world.start(world.job("* * * * *", then=fail_first, retry_delay=30), 3, lease=6)
    await world.at(40 * 60 + 31)
    pairs = list(zip(world.entries[::2], world.entries[1::2], strict=True))
    assert len(pairs) == 40
    assert all((one.attempt, two.attempt) == (1, 2) for one, two in pairs)
    assert {one.runner == two.runner for one, two in pairs} == {True, False}


@row(
    "max_attempts",
    "its last attempt fails",
    "The run is over, as failed.",
)
@virtual
async def test_attempts_have_an_end(world: World) -> None:
    await world.start(world.job(ONCE, then=fail, max_attempts=3), 3)
    await world.at(300)
    assert [entry.attempt for entry in world.entries] == [1, 2, 3]
    assert await world.attempts() == ["failed", "failed", "failed"]
    assert await world.statuses() == ["failed"]


@row(
    "max_attempts",
    "one attempt crashes, others raise, time out, or are cut off by a shutdown",
    "Each of them uses up one attempt; there is one number for all.",
)
@virtual
async def test_one_budget(world: World) -> None:
    stopping: list[asyncio.Task[None]] = []

    async def body(run: Run) -> None:
        with world.diary.entry(run):
            if run.attempt == 1:
                world[run.runner].crash()
                await asyncio.sleep(0)
            if run.attempt == 2:
                raise ValueError
            if run.attempt == 4:
                stopping.append(asyncio.create_task(world[run.runner].stop(timeout=0)))
            await asyncio.sleep(100)

    await world.start(
        lambda s: s.add_job(body, ONCE, name="job", timeout=5, max_attempts=5), 4, lease=6
    )
    await world.at(300)
    ends = ["interrupted", "failed", "timed-out", "released", "timed-out"]
    assert await world.attempts() == ends
    assert await world.statuses() == ["timed-out"]


@row(
    "max_attempts=1",
    "the instance that has the run is killed",
    "Nobody takes the run over. It is closed as interrupted at the job's next slot.",
)
@virtual
async def test_a_single_attempt_is_not_taken_over(world: World) -> None:
    await world.start(world.job("*/5 * * * *", takes=20, max_attempts=1), 2, lease=6)
    await world.at(305)
    holder(world).crash()
    await world.at(599)
    assert len(world.entries) == 1
    await world.at(601)
    assert await world.statuses() == ["interrupted", "running"]


@row(
    "max_attempts",
    "a deploy changes it while a run is under way",
    "The run keeps the number that its first attempt was given.",
)
@virtual
async def test_a_run_keeps_its_number_of_attempts(world: World) -> None:
    (old,) = await world.start(world.job("*/5 * * * *", 20, fail, max_attempts=2))
    await world.at(305)
    await world.start(world.job("*/5 * * * *", 20, fail, max_attempts=4), 2)
    await old.stop(timeout=0)
    await world.at(599)
    assert [entry.attempt for entry in world.entries] == [1, 2]
    assert await world.attempts() == ["released", "failed"]
    await world.at(899)
    assert [entry.attempt for entry in world.entries[2:]] == [1, 2, 3, 4]


@row(
    "retry_delay",
    "several attempts fail, one after the other",
    "The waits double, up to a minute; each is shortened at random by up to a half.",
)
@virtual
async def test_waits_double(world: World) -> None:
    await world.start(world.job(ONCE, then=fail, max_attempts=7, retry_delay=4), 2)
    await world.at(600)
    longest = [4, 8, 16, 32, 60, 60]
    drawn = waits(world.entries)
    assert len(drawn) == len(longest)
    # The last quarter of a second is the spread over which instances ask.
    assert all(most / 2 <= w <= most + 0.3 for w, most in zip(drawn, longest, strict=True))


@row(
    "retry_delay",
    "it is longer than a minute",
    "The waits do not double: each is the whole of it, or up to a half less.",
)
@virtual
async def test_long_waits_do_not_double(world: World) -> None:
    await world.start(world.job(ONCE, then=fail, max_attempts=4, retry_delay=200), 2)
    await world.at(1000)
    drawn = waits(world.entries)
    assert len(drawn) == 3
    assert all(100 <= wait <= 200.3 for wait in drawn)


@row(
    "retry_delay=0",
    "an attempt fails",
    "The next one begins at once.",
)
@virtual
async def test_no_wait(world: World) -> None:
    await world.start(world.job(ONCE, then=fail, max_attempts=4, retry_delay=0), 2)
    await world.at(70)
    drawn = waits(world.entries)
    assert len(drawn) == 3
    assert max(drawn) <= 0.3


@row(
    "retry_delay, lease",
    "the instance whose attempt failed is stopped or killed during the wait",
    "Another one makes the next attempt, when the wait and the lease it was told of are over.",
)
@pytest.mark.parametrize("how", ["stop", "crash"])
@virtual
async def test_a_retry_does_not_need_the_instance_that_failed(world: World, how: str) -> None:
    await world.start(world.job(ONCE, 1, fail_first, retry_delay=20), 2, lease=30)
    await world.at(63)
    failed = holder(world)
    if how == "stop":
        await failed.stop()
    else:
        failed.crash()
    await world.at(120)
    assert [entry.attempt for entry in world.entries] == [1, 2]
    assert world.entries[1].runner != failed.name
    assert 90 <= world.offsets()[1] <= 90.3


@virtual
async def test_a_retry_does_not_wait_for_the_place_of_one_instance(world: World) -> None:
    job = world.job(ONCE, 1, fail_first)
    (first,) = await world.start(
        several(job, world.job("1 1 12 * * *", 100, name="long")), max_concurrent_runs=1
    )
    await world.at(60.5)
    await world.start(job)
    await world.at(120)
    assert [entry.runner for entry in world.diary.of("long")] == [first.name]
    assert [entry.runner for entry in world.diary.of("job")] == ["i1", "i2"]
    assert 90 <= world.offsets()[1] <= 90.8


@row(
    "retry_delay, max_late",
    "no instance is up when the wait ends",
    "The first to start makes the next attempt, until `max_late` after the wait (or `catch_up` or"
    " `lease`, if that is longer); after that the run is closed as interrupted.",
)
@pytest.mark.parametrize("longest", ["max_late", "catch_up", "lease"])
@pytest.mark.parametrize(("up_again", "attempts"), [(150, [1, 2]), (200, [1])])
@virtual
async def test_a_retry_that_nobody_was_there_for(
    world: World, up_again: float, attempts: list[int], longest: str
) -> None:
    long = {"max_late": 1, "catch_up": 0, "lease": 6} | {longest: 90}
    declare = world.job(
        ONCE, 1, fail_first, retry_delay=20, max_late=long["max_late"], catch_up=long["catch_up"]
    )
    (instance,) = await world.start(declare, lease=long["lease"])
    await world.at(63)
    instance.crash()
    await world.at(up_again)
    await instance.restart()
    await world.at(up_again + 5)
    assert [entry.attempt for entry in world.entries] == attempts
    assert await world.statuses() == ["succeeded" if len(attempts) == 2 else "interrupted"]


@row(
    "max_attempts",
    "a job raises `NoRetry`, with attempts left",
    "The run is over at once, as failed.",
)
@virtual
async def test_no_retry(world: World) -> None:
    def give_up(_run: Run) -> None:
        raise NoRetry("there is no such customer")

    await world.start(world.job("* * * * *", then=give_up, max_attempts=5), 2)
    await world.at(181)
    assert world.slots() == minutes(1, 2, 3)
    assert await world.attempts() == ["failed"]
    assert await world.statuses() == ["failed"] * 3
