"""What a change of the clock does to the runs of an expression, as `anarchon next` tells it."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from anarchon.schedules import ClockChange, Cron, clock_changes, slots_of

START = datetime(2026, 1, 1, tzinfo=UTC)
END = datetime(2027, 1, 1, tzinfo=UTC)


def effects(expression: str, zone: str) -> list[tuple[str, str, str]]:
    found = clock_changes(Cron(expression, zone), START, END)
    return [(f"{each.date:%m-%d}", each.kind, each.text) for each in found]


@pytest.mark.parametrize(
    ("expression", "zone", "wanted"),
    [
        ("0 3 * * *", "Europe/Berlin", []),
        ("30 2 * * *", "UTC", []),
        (
            "30 2 * * *",
            "Europe/Berlin",
            [("03-29", "moved", "02:30 does not exist: runs once, at 03:00")],
        ),
        (
            "0 2,3 * * *",
            "America/New_York",
            [("03-08", "moved", "02:00 does not exist: runs once, at 03:00")],
        ),
        (
            "30 23 * * 6",
            "America/Nuuk",
            [("03-28", "moved", "23:30 does not exist: runs once, at 00:00")],
        ),
        (
            "*/5 2 * * *",
            "Europe/Berlin",
            [
                (
                    "03-29",
                    "skipped",
                    "02:00, 02:05, 02:10 and 9 more times do not exist and do not run",
                ),
                (
                    "10-25",
                    "doubled",
                    "02:00, 02:05, 02:10 and 9 more times come twice: runs both times",
                ),
            ],
        ),
        (
            "15 * * * *",
            "Australia/Lord_Howe",
            [("10-04", "skipped", "02:15 does not exist and does not run")],
        ),
    ],
)
def test_effects_of_a_year(expression: str, zone: str, wanted: list[tuple[str, str, str]]) -> None:
    assert effects(expression, zone) == wanted


@pytest.mark.parametrize("expression", ["*/15 * * * *", "* * * * *", "0 * * * *", "0 0-23 * * *"])
def test_an_even_rhythm_is_not_disturbed(expression: str) -> None:
    assert effects(expression, "Europe/Berlin") == []


def test_slots_are_the_instants_concerned() -> None:
    berlin = Cron("30 2 * * *", "Europe/Berlin")
    (moved,) = clock_changes(berlin, START, END)
    assert moved.date == date(2026, 3, 29)
    assert [slot.astimezone(UTC) for slot in moved.slots] == [datetime(2026, 3, 29, 1, tzinfo=UTC)]
    assert [f"{slot:%H:%M%z}" for slot in moved.slots] == ["03:00+0200"]
    skipped, doubled = clock_changes(Cron("*/30 2 * * *", "Europe/Berlin"), START, END)
    assert skipped.slots == ()
    assert [slot.astimezone(UTC) for slot in doubled.slots] == [
        datetime(2026, 10, 25, hour, minute, tzinfo=UTC) for hour in (0, 1) for minute in (0, 30)
    ]


def test_a_day_that_a_country_skipped() -> None:
    year = (datetime(2011, 1, 1, tzinfo=UTC), datetime(2012, 1, 1, tzinfo=UTC))
    found = clock_changes(Cron("0 12 30 12 *", "Pacific/Apia"), *year)
    assert found == (
        ClockChange(
            date(2011, 12, 30), "skipped", "12:00 does not exist and does not run", ()
        ),
    )  # fmt: skip


def test_only_changes_within_the_time_asked_are_named() -> None:
    berlin = Cron("30 2 * * *", "Europe/Berlin")
    change = datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert len(clock_changes(berlin, change, END)) == 1
    assert clock_changes(berlin, START, change) == ()


def test_slots_are_taken_too_and_intervals_have_no_changes() -> None:
    assert len(clock_changes(slots_of("30 2 * * *", "Europe/Berlin"), START, END)) == 1
    assert clock_changes(slots_of(60, "Europe/Berlin"), START, END) == ()
