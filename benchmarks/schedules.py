"""Time of one answer: anarchon, cronsim and croniter side by side, in microseconds.

Each asks for the same slots, one after another, in one run on one machine: read the ratios, not
the numbers. Then the dearest refusals and the newest slot before a long gap.

    python benchmarks/schedules.py
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from anarchon import ConfigurationError
from anarchon.schedules import Cron, slots_of

if TYPE_CHECKING:
    from collections.abc import Callable

START = datetime(2026, 1, 1, tzinfo=UTC)
ANSWERS = 200
FIFTY_YEARS = 50 * 31_557_600_000
ROUNDS = 3
SCHEDULES = [
    ("* * * * *", "UTC"),
    ("*/15 * * * *", "Europe/Berlin"),
    ("*/15 9-17 * * 1-5", "America/New_York"),
    ("30 2 * * *", "Europe/Berlin"),
    ("45 3 * * *", "Pacific/Chatham"),
    ("0 12 13 * 5", "UTC"),
    ("0 0 1 1 *", "Asia/Tokyo"),
    ("0 0 29 2 *", "Europe/Berlin"),
    ("0 0 * * 1#5", "UTC"),
    ("*/10 * * * * *", "UTC"),
]
REFUSED = [
    ("0 0 30 2 *", "UTC"),
    ("*/15 2 * 3 7L", "Europe/Berlin"),
    ("0 3 * * *", "Europe/Berln"),
    ("0 0 * * SAT-SUN", "UTC"),
]
# cronsim does not come back from this question.
HARD = ("45 */3 * * *", "Pacific/Chatham", datetime(2026, 4, 4, 12, tzinfo=UTC))


def microseconds(work: Callable[[], object], times: int) -> float:
    """Return the best time of several rounds, for each of `times` parts of the work."""
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best / times * 1e6


def by_anarchon(expression: str, zone: ZoneInfo, start: datetime, count: int) -> datetime:
    cron = Cron(expression, zone)
    slot = start
    for _ in range(count):
        following = cron.next_after(slot)
        assert following is not None
        slot = following
    return slot


def by_cronsim(expression: str, zone: ZoneInfo, start: datetime, count: int) -> datetime:
    slots = CronSim(expression, start.astimezone(zone))
    return [next(slots) for _ in range(count)][-1]


def by_croniter(expression: str, zone: ZoneInfo, start: datetime, count: int) -> datetime:
    slots = croniter(expression, start.astimezone(zone), second_at_beginning=True)
    return [slots.get_next(datetime) for _ in range(count)][-1]


def print_answers() -> None:
    print(f"{'answer, us':40}{'anarchon':>10}{'cronsim':>10}{'croniter':>10}   ratios")
    for expression, name in SCHEDULES:
        zone = ZoneInfo(name)
        times = [
            microseconds(partial(ask, expression, zone, START, ANSWERS), ANSWERS)
            for ask in (by_anarchon, by_cronsim, by_croniter)
        ]
        ratios = " ".join(f"{each / times[0]:7.1f}x" for each in times[1:])
        print(f"{expression + ' ' + name:40}" + "".join(f"{t:10.1f}" for t in times), ratios)
    expression, name, start = HARD
    spent = microseconds(partial(by_anarchon, expression, ZoneInfo(name), start, 10), 10)
    print(f"{expression + ' ' + name + ', clock change':40}{spent:10.1f}")


def print_newest() -> None:
    print(f"\n{'newest slot before a gap of 50 years, us':40}")
    end = int(START.timestamp() * 1000)
    for expression, name in SCHEDULES:
        slots = slots_of(expression, name)
        spent = microseconds(partial(slots.newest, end, end - FIFTY_YEARS), 1)
        print(f"{expression + ' ' + name:40}{spent:10.1f}")


def print_refusals() -> None:
    print(f"\n{'refusal, ms':40}")
    for expression, name in REFUSED:
        begin = time.perf_counter()
        try:
            slots_of(expression, name)
        except ConfigurationError:
            spent = (time.perf_counter() - begin) * 1000
            print(f"{expression + ' ' + name:40}{spent:10.2f}")


if __name__ == "__main__":
    print_answers()
    print_newest()
    print_refusals()
