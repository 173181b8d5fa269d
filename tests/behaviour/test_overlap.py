"""Overlap.

A slot that falls due while another run of its job is live.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from anarchon import RunRefused
from tests.behaviour.rows import row
from tests.behaviour.stories import ONCE, fail_first, holder, run_now, runs
from tests.support.world import World, minutes, seconds, virtual

if TYPE_CHECKING:
    from typing import Literal

    from anarchon import JobSettings, Run


@row(
    'overlap="skip"',
    "a slot falls due while another run of the job is running, here or elsewhere",
    "The slot is skipped for good, and its history says so.",
)
@virtual
async def test_skip_a_running_one(world: World) -> None:
    await world.start(world.job("* * * * *", 90), 3)
    await world.at(301)
    assert world.slots() == minutes(1, 3, 5)
    ended, last = ["succeeded", "skipped"] * 2, ["running"]
    assert await world.statuses() == ended + last


@row(
    'overlap="wait"',
    "a slot falls due while another run of the job is running",
    "The slot starts when that run ends: at once on the same instance, within a second elsewhere.",
)
@virtual
async def test_wait_for_a_running_one(world: World) -> None:
    (first,) = await world.start(world.job("* * * * *", 90, overlap="wait"))
    await world.at(61)
    await world.start(world.job("* * * * *", 90, overlap="wait"), 2)
    await world.at(200)
    assert runs(world) == [(60, 1), (120, 1)]
    assert world.entries[0].runner == first.name
    latest = 150.1 if world.entries[1].runner == first.name else 151.1
    assert 150 <= world.offsets()[1] <= latest


@row(
    'overlap="wait", max_late',
    "the other run does not end in time",
    "The slot is given up, when `max_late` is over.",
)
@virtual
async def test_wait_has_an_end(world: World) -> None:
    await world.start(world.job("* * * * *", 90, overlap="wait", max_late=20), 2)
    await world.at(301)
    assert world.slots() == minutes(1, 3, 5)


@row(
    'overlap="wait"',
    "several slots wait on an instance",
    "They start oldest first, one after the other.",
)
@virtual
async def test_wait_in_order(world: World) -> None:
    await world.start(world.job(10, 35, overlap="wait", max_late=600), 1)
    await world.at(300)
    assert world.slots() == seconds(*range(10, 91, 10))
    assert world.diary.most_at_once("job") == 1


@row(
    'overlap="allow"',
    "a slot falls due while another run of the job is live",
    "It starts beside it, on time.",
)
@virtual
async def test_allow(world: World) -> None:
    await world.start(world.job("* * * * *", 150, overlap="allow"), 3)
    await world.at(301)
    assert world.slots() == minutes(1, 2, 3, 4, 5)
    assert all(entry.start - entry.slot < 20 for entry in world.entries)
    assert world.diary.most_at_once("job") == 3


@row(
    "overlap, retry_delay",
    "a slot falls due while another run of the job waits for its retry",
    'That run is live: under `"skip"` the slot is skipped, under `"wait"` it waits, under `"allow"`'
    " it starts.",
)
@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("skip", [(60, 1), (60, 2), (240, 1)]),
        ("wait", [(60, 1), (60, 2), (120, 1), (240, 1)]),
        ("allow", [(60, 1), (120, 1), (60, 2), (240, 1)]),
    ],
)
@virtual
async def test_a_retry_wait_is_live(
    world: World, overlap: Literal["skip", "wait", "allow"], expected: list[tuple[int, int]]
) -> None:
    def fail_once(run: Run) -> None:
        if run.slot == minutes(1)[0]:
            fail_first(run)

    job: JobSettings = {"retry_delay": 20, "overlap": overlap, "max_late": 90}
    await world.start(world.job("1,2,4 12 * * *", 50, fail_once, **job), 2)
    await world.at(241)
    assert runs(world) == expected


@row(
    "overlap",
    "a slot falls due while a manual run of the job is live",
    "The manual run counts like any other.",
)
@pytest.mark.parametrize(
    ("overlap", "starts"), [("skip", [40, 120]), ("wait", [40, 70, 120]), ("allow", [40, 60, 120])]
)
@virtual
async def test_a_manual_run_is_live(
    world: World, overlap: Literal["skip", "wait", "allow"], starts: list[float]
) -> None:
    first, _second = await world.start(world.job("* * * * *", 30, overlap=overlap), 2)
    await world.at(40)
    await run_now(first)
    await world.at(121)
    assert world.offsets() == pytest.approx(starts, abs=1.1)


@row(
    "overlap",
    "`run_now()` is called while a run of the job is live",
    'Under `"skip"` it raises `RunRefused` at once; under `"wait"` it waits, and does so when'
    ' `max_late` is over; under `"allow"` it runs.',
)
@pytest.mark.parametrize(
    ("overlap", "takes", "answered"),
    [("skip", 30, 70), ("wait", 30, 120), ("wait", 300, 130), ("allow", 30, 100)],
)
@virtual
async def test_run_now_beside_a_live_run(
    world: World, overlap: Literal["skip", "wait", "allow"], takes: float, answered: float
) -> None:
    declare = world.job(ONCE, takes, lambda _run: "done", overlap=overlap)
    first, _second = await world.start(declare, 2)
    await world.at(70)
    (answer,) = await asyncio.gather(run_now(first), return_exceptions=True)
    refused = overlap == "skip" or takes == 300
    assert isinstance(answer, RunRefused) if refused else answer == "done"
    assert world.time.seconds == pytest.approx(answered, abs=1.2)


@row(
    "overlap, catch_up",
    "a slot falls due while a slot that was missed is being caught up",
    'The run that is caught up counts like any other: under `"skip"` the punctual slot is skipped.',
)
@pytest.mark.parametrize("overlap", ["skip", "wait", "allow"])
@virtual
async def test_a_run_that_is_caught_up_is_live(
    world: World, overlap: Literal["skip", "wait", "allow"]
) -> None:
    settings: JobSettings = {"max_late": 50, "catch_up": 3600, "overlap": overlap}
    (instance,) = await world.start(world.job("* * * * *", 40, **settings))
    await world.at(50)
    await instance.stop()
    await world.at(115)
    await instance.restart()
    await world.at(200)
    starts = {"skip": [115, 180], "wait": [115, 155, 195], "allow": [115, 120, 180]}
    assert world.offsets() == pytest.approx(starts[overlap], abs=0.2)
    assert world.entries[0].trigger == "catch-up"


@row(
    "overlap",
    "a slot falls due just when the lease of a killed instance is over",
    "The older run comes first, if an attempt is left: its lease counts as live for one more"
    " second.",
)
@pytest.mark.parametrize("lease", [4.9, 4.95, 4.99, 5])
@virtual
async def test_the_older_run_comes_first(world: World, lease: float) -> None:
    await world.start(world.job("10,15 0 12 * * *", 2, max_attempts=2), 3, lease=lease)
    await world.at(11)  # before the first heartbeat
    holder(world).crash()
    # Backups ask within a quarter of a second after the lease end, the younger slot at :15.
    await world.at(30)
    assert runs(world) == [(10, 1), (10, 2)]
    assert await world.statuses() == ["succeeded", "skipped"]


@row(
    "overlap, max_late",
    "a younger run is live when an older one could be taken over, after an outage",
    "The takeover waits for the end of the younger one, until `max_late` after the older one's"
    " lease; then the older one is closed as interrupted.",
)
@pytest.mark.parametrize("takes", [15, 70])
@virtual
async def test_a_takeover_waits(world: World, takes: float) -> None:
    first, second = await world.start(world.job(20, takes), 2, lease=6)
    await world.at(19)
    second.suspend(2)  # so that the first one wins
    await world.at(22)
    first.crash()
    second.line.cut()
    await world.at(39)
    second.line.mend()
    await world.at(150)
    taken_over = [(20, 2)] if takes == 15 else []
    assert runs(world)[: 2 + len(taken_over)] == [(20, 1), (40, 1), *taken_over]
    statuses = await world.statuses()
    assert statuses[0] == ("succeeded" if taken_over else "interrupted")
    if taken_over:
        assert world.offsets()[2] == pytest.approx(55, abs=1.1)
