"""Schedules in words."""

from __future__ import annotations

import random
from functools import cache
from itertools import product

import pytest

from anarchon.errors import ScheduleError
from anarchon.schedules import Cron, slots_of
from tests.schedules.expressions import expression


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("*/30 * * * *", "every 30 minutes"),
        ("5/15 * * * *", "every 15 minutes from minute 5"),
        ("*/7 * * * *", "at every 7th minute of every hour"),
        ("3-50/7 * * * *", "at every 7th minute from 3 through 45 of every hour"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("0 * * * *", "every hour, on the hour"),
        ("30 * * * *", "every hour, at minute 30"),
        ("15 30 * * * *", "every hour, at minute 30 and second 15"),
        ("5,7 * * * * *", "at seconds 5 and 7 of every minute"),
        ("0,10,40 * * * *", "at minutes 0, 10 and 40 of every hour"),
        ("0-20 * * * *", "at minutes 0 through 20 of every hour"),
        ("*/10 */5 * * * *", "at every 10th second of every 5th minute of every hour"),
        ("0 3 * * *", "at 03:00 every day, UTC"),
        ("30 15 10 * * *", "at 10:15:30 every day, UTC"),
        ("0 9,17 * * *", "at 09:00 and 17:00 every day, UTC"),
        ("0 */6 * * *", "at 00:00, 06:00, 12:00 and 18:00 every day, UTC"),
        ("0 */2 * * *", "every 2 hours from 00:00 through 22:00, UTC"),
        ("0 9-17 * * *", "every hour from 09:00 through 17:00, UTC"),
        (
            "*/5 9-17 * * 1-5",
            ("every 5 minutes from 09:00 through 17:55 on Mondays through Fridays, UTC"),
        ),
        ("* */2 * * *", "at every minute of every 2nd hour, UTC"),
        ("*/5 22-23,0-3 * * *", "at every 5th minute of hours 0 through 3, 22 and 23, UTC"),
        ("0 12 13 * 5", "at 12:00 on the 13th of the month or on Fridays, UTC"),
        ("0 12 */2 * 1", "at 12:00 on every 2nd day of the month that is a Monday, UTC"),
        (
            "0 12 */2 * 1,5",
            ("at 12:00 on every 2nd day of the month that is a Monday or Friday, UTC"),
        ),
        ("0 0 1,* * 1", "at 00:00 every day, UTC"),
        ("0 0 1,15 * *", "at 00:00 on the 1st and the 15th of the month, UTC"),
        ("0 0 3/3 * *", "at 00:00 on every 3rd day from the 3rd of the month, UTC"),
        (
            "0 0 2-20/4 * *",
            ("at 00:00 on every 4th day from the 2nd through the 18th of the month, UTC"),
        ),
        ("0 0 L * *", "at 00:00 on the last day of the month, UTC"),
        (
            "0 0 LW 1-3 *",
            ("at 00:00 on the last workday (Monday to Friday) of January through March, UTC"),
        ),
        ("0 0 29 2 *", "at 00:00 on the 29th of February, UTC"),
        ("0 0 * 1,7 *", "at 00:00 every day in January and July, UTC"),
        ("*/15 * * 1 *", "every 15 minutes in January, UTC"),
        ("0 0 30 2 1", "at 00:00 on the 30th of February or on Mondays in February, UTC"),
        ("0 0 * * 0,6", "at 00:00 on Saturdays and Sundays, UTC"),
        (
            "0 9 * 1 MON#1,5L",
            ("at 09:00 on the 1st Monday of January and the last Friday of January, UTC"),
        ),
        ("0 0 */2 * 1L", "at 00:00 on every 2nd day of the month that is the last Monday, UTC"),
        (
            "0 0 11,12,13,21,22,23 * *",
            ("at 00:00 on the 11th through 13th and the 21st through 23rd of the month, UTC"),
        ),
    ],
)
def test_explanation(text: str, words: str) -> None:
    assert slots_of(text).explain() == words


def test_the_zone_is_named_unless_it_makes_no_difference() -> None:
    assert slots_of("0 3 * * *", "Europe/Berlin").explain() == "at 03:00 every day, Europe/Berlin"
    assert slots_of("0 * * * *", "Asia/Kolkata").explain() == (
        "every hour, on the hour, Asia/Kolkata"
    )
    assert Cron("*/15 * * * *", "UTC").explain() == "every 15 minutes"


MINUTES = ("*", "0", "5", "*/2", "*/7", "*/30", "0,30", "5/15", "1-5", "1-5/2", "10-50/20", "1,*")
HOURS = ("*", "0", "*/2", "*/6", "1-3", "1/2", "22,23", "8-20/4", "*/13", "0,12")
SECONDS = ("0", "*", "*/10", "30", "5,7", "1-59")
DATES = ("*", "1", "*/2", "1-31", "L", "LW", "1,L", "2/3", "1-7", "28-31", "1,15", "3-20/5", "1,*")
MONTHS = ("*", "2", "*/3", "1,7", "3-6")
WEEKDAYS = ("*", "1", "0-6", "1-5", "*/2", "1#1", "5L", "0,6", "1,3#2", "7#5,1", "*,1")


@cache
def meaning(text: str) -> list[tuple[int, ...] | int]:
    """Return the times of a day and the matching days of five years."""
    cron = Cron(text)
    read = cron.expression
    days: list[int] = []
    day = cron.calendar.at_or_after(0)
    while day is not None and day < 5 * 366 * 86_400:
        days.append(day)
        day = cron.calendar.at_or_after((day // 86_400 + 1) * 86_400)
    return [read.second.values, read.minute.values, read.hour.values, *days]


def test_different_schedules_have_different_explanations() -> None:
    times = [" ".join(each) + " * * *" for each in product(SECONDS, MINUTES, HOURS)]
    days = ["0 0 " + " ".join(each) for each in product(DATES, MONTHS, WEEKDAYS)]
    seen: dict[str, str] = {}
    for text in times + days:
        first = seen.setdefault(Cron(text).explain(), text)
        if first != text:
            assert meaning(first) == meaning(text), (first, text)
    assert 1000 < len(seen) < len(times + days)


def test_every_legal_expression_has_an_explanation(seed: int) -> None:
    rng = random.Random(seed)
    explained = 0
    for _ in range(500):
        text = expression(rng)
        try:
            words = Cron(text).explain()
        except ScheduleError:
            continue
        explained += 1
        assert words.startswith(("at ", "every ")), text
        assert "  " not in words, text
        assert not set(words) & set("*/#"), text
    assert explained > 400
