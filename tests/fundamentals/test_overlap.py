"""What happens to a slot that falls due while another run of its job is live."""

from __future__ import annotations

from tests.support.world import World, minutes, virtual


@virtual
async def test_skip_leaves_the_slot_out(world: World) -> None:
    await world.start(world.job("* * * * *", takes=90), 3)
    await world.at(5 * 60 + 1)
    assert world.slots() == minutes(1, 3, 5)
    assert (await world.statuses())[:4] == ["succeeded", "skipped", "succeeded", "skipped"]


@virtual
async def test_wait_starts_it_when_the_other_ends(world: World) -> None:
    await world.start(world.job("* * * * *", takes=90, overlap="wait"), 3)
    await world.at(151)
    assert world.slots() == minutes(1, 2)
    assert 150 <= world.offsets()[1] <= 151
    assert world.diary.most_at_once("job") == 1


@virtual
async def test_allow_runs_them_side_by_side(world: World) -> None:
    await world.start(world.job("* * * * *", takes=90, overlap="allow"), 3)
    await world.at(200)
    assert world.slots() == minutes(1, 2, 3)
    assert world.diary.most_at_once("job") == 2
