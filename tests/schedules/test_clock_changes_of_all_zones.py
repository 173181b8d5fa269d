"""Around every change of offset from 1970 to 2040: the evaluator against a simulated daemon.

An ordinary run takes a sample; ANARCHON_EXHAUSTIVE=1 takes every change of every zone history.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from anarchon.schedules import Cron, slots_of
from anarchon.schedules.offsets import offsets_of
from tests.schedules.asking import legal, walked
from tests.schedules.debian import Matcher, moment, simulate, utc
from tests.schedules.expressions import expression_near
from tests.schedules.zones import FROM, TO, listed_changes, made_up_zone, names_of_distinct_zones

if TYPE_CHECKING:
    from anarchon.schedules.offsets import Change

HOUR = 3600
SAMPLE = 6  # Of zones.
SAMPLE_OF_CHANGES = 120
# Up to three months of a zone's offsets, unknown until then, may be needed on either side.
MOST_PROBES = 800


def changes_of(zone: ZoneInfo) -> list[Change]:
    return list(offsets_of(zone).changes(FROM, TO))


def test_no_change_is_missed(seed: int) -> None:
    for name in random.Random(seed).sample(names_of_distinct_zones(), SAMPLE):
        check_that_no_change_is_missed(name)


def check_that_no_change_is_missed(name: str) -> None:
    found = changes_of(ZoneInfo(name))
    listed = listed_changes(name)
    end = listed[-1][0] + 1 if listed else FROM
    assert [tuple(change) for change in found if change.instant < end] == listed, name


def test_sample_of_changes(seed: int) -> None:
    rng = random.Random(seed)
    zones = [ZoneInfo(name) for name in rng.sample(names_of_distinct_zones(), SAMPLE)]
    changes = [(zone, change) for zone in zones for change in changes_of(zone)]
    assert changes
    for zone, change in rng.sample(changes, min(SAMPLE_OF_CHANGES, len(changes))):
        check_change(zone, change, rng)


@pytest.mark.exhaustive
def test_all_changes_of_all_zones(seed: int) -> None:
    rng = random.Random(seed)
    checked = 0
    for name in names_of_distinct_zones():
        check_that_no_change_is_missed(name)
        zone = ZoneInfo(name)
        for change in changes_of(zone):
            check_change(zone, change, rng)
            checked += 1
    assert checked > 10_000


# Instants from which the offset is what stands beside it; first the offset before all of them.
MADE_UP = {
    "back twice within two hours": (0, [(0, -HOUR), (5000, -2 * HOUR)]),
    "forward twice within an hour": (0, [(0, HOUR), (1800, HOUR + 1800)]),
    "back, then half of it forward": (0, [(0, -HOUR), (2400, -1800)]),
    "back, then forward beyond the start": (0, [(0, -HOUR), (2400, HOUR)]),
    "forward, then half of it back": (0, [(0, HOUR), (2400, 1800)]),
    "just less than a correction forward": (0, [(0, 3 * HOUR - 1)]),
    "just less than a correction back": (0, [(0, 1 - 3 * HOUR)]),
    "a correction forward": (0, [(0, 3 * HOUR)]),
    "a correction back": (0, [(0, -3 * HOUR)]),
    "a correction back, then an hour back": (0, [(0, -4 * HOUR), (1800, -5 * HOUR)]),
    "an hour back, then a correction forward": (0, [(0, -HOUR), (1800, 3 * HOUR)]),
    "an hour back, then a correction back": (0, [(0, -HOUR), (1800, -5 * HOUR)]),
    "odd seconds": (-1172, [(0, -15), (4000, 3601)]),
    "a day forward": (-12 * HOUR, [(0, 12 * HOUR)]),
    "a day back": (12 * HOUR, [(0, -12 * HOUR)]),
    "to the edge of what offsets can be": (86_340, [(0, -86_340)]),
}


@pytest.mark.parametrize("name", MADE_UP)
def test_zone_worse_than_any_real_one(name: str, seed: int) -> None:
    rng = random.Random(seed)
    base = utc("2021-05-09T14:20")
    first, later = MADE_UP[name]
    zone = made_up_zone(first, [(base + after, offset) for after, offset in later])
    changes = changes_of(zone)
    assert [change.instant - base for change in changes] == [after for after, _ in later]
    for change in changes * 3:
        check_change(zone, change, rng, span=2 * HOUR)


def test_a_skipped_time_that_comes_an_hour_later_is_seen_from_days_before() -> None:
    """The clock is put forward over 15:00, and twenty minutes later back to 14:30."""
    base = utc("2021-05-09T14:20")
    zone = made_up_zone(0, [(base, HOUR), (base + 1200, -600)])
    cron = Cron("*/60 15 9 5 *", zone)
    for now in (base - 5 * 86_400, base - 1, base, base + 1200, base + 2999):
        assert cron.next_after_seconds(now) == utc("2021-05-09T15:10")


def check_change(zone: ZoneInfo, change: Change, rng: random.Random, span: int = 4 * HOUR) -> None:
    """Compare with the simulation, around one change, for one expression drawn at random."""
    expression = expression_near(change, rng)
    what = f"{expression!r} in {zone.key} around {moment(change.instant)}"
    cron = legal(expression, zone)
    if cron is None:
        return
    matches = Matcher(expression)
    whole = all(each % 60 == 0 for each in change)
    tick = 60 if whole and not matches.has_seconds else 1
    span = min(span, 2 * HOUR) if matches.has_seconds else span
    # At its first tick the daemon knows of nothing before: the comparison begins with the second.
    start = change.instant - span
    end = change.instant + span + abs(change.after - change.before)
    slots = simulate(matches, zone, start, end, tick)
    wanted = [slot for slot in slots if slot >= start + tick]
    assert list(walked(cron.next_after_seconds, start + tick - 1, end - 1)) == wanted, what
    check_that_the_start_does_not_matter(cron, wanted, range(start + tick - 1, end), rng)


def check_that_the_start_does_not_matter(
    cron: Cron, wanted: list[int], window: range, rng: random.Random
) -> None:
    """Ask from many instants: only the slots and the instant may decide the answer."""
    edges = rng.sample(wanted, min(4, len(wanted)))
    asked = {slot + shift for slot in edges for shift in (-1, 0)}
    asked |= {rng.choice(window) for _ in range(8)}
    slots = slots_of(cron)
    for now in (each for each in asked if each in window):
        what = f"{cron} asked at {moment(now)}"
        seen = bisect_right(wanted, now)
        probes = cron.offsets.probes
        answer = cron.next_after_seconds(now)
        assert cron.offsets.probes - probes < MOST_PROBES, what
        if seen < len(wanted):
            assert answer == wanted[seen], what
        else:
            assert answer is None or answer >= window.stop, what
        newest = slots.newest(now * 1000 + 999, window.start * 1000)
        assert newest == (wanted[seen - 1] * 1000 if seen else None), what
