"""Every row of cron_cases.csv, and the cases DST-*, NAI-* and DRF-* as far as they are schedules.

The rows were worked out by a simulation of Debian's cron and by a calendar, independently.
"""

from __future__ import annotations

import csv
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from anarchon.errors import ConfigurationError, ScheduleError
from anarchon.schedules import Cron, Every, clock_changes, slots_of
from tests.schedules.asking import upcoming, walked

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = Path(__file__).parent.parent / "data" / "cron_cases.csv"
ROWS = list(csv.DictReader(CASES.read_text("utf-8").splitlines()))
HOUR_MS = 3_600_000


def at(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def ms(text: str) -> int:
    return int(at(text).timestamp()) * 1000


def name_of(row: dict[str, str]) -> str:
    return f"{row['expr']} {row['timezone']} {row['start_utc']}"


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_row_of_the_table(row: dict[str, str]) -> None:
    wanted = [at(each) for each in row["next_utc"].split(";")]
    cron = Cron(row["expr"], row["timezone"])
    assert upcoming(cron, at(row["start_utc"]), len(wanted)) == wanted, row["why"]


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_row_of_the_table_in_milliseconds(row: dict[str, str]) -> None:
    wanted = [ms(each) for each in row["next_utc"].split(";")]
    slots = slots_of(row["expr"], row["timezone"])
    assert list(walked(slots.next_after, ms(row["start_utc"]), wanted[-1])) == wanted
    assert slots.newest(wanted[-1], ms(row["start_utc"])) == wanted[-1]
    assert slots.newest(wanted[-1] - 1, ms(row["start_utc"])) == wanted[-2]
    assert slots.newest(wanted[0] - 1, ms(row["start_utc"])) is None


def test_DST_01_a_time_in_the_spring_gap_is_asked_for_at_every_minute() -> None:
    fixed = slots_of("0 1 30 3 *", "Europe/Lisbon")
    minutely = slots_of("* * * * *", "Europe/Lisbon")
    for now in range(ms("2025-03-29T23:59"), ms("2025-03-30T23:59"), 60_000):
        end_of_gap = ms("2025-03-30T01:00")
        assert fixed.next_after(now) == (end_of_gap if now < end_of_gap else ms("2026-03-30T00:00"))
        assert minutely.next_after(now) == now + 60_000


def test_DST_01_a_wildcard_in_a_zone_of_quarter_hours_comes_to_an_end() -> None:
    cron = Cron("45 */3 * * *", "Pacific/Chatham")
    before = cron.offsets.probes
    wanted = [at("2026-04-04T15:00"), at("2026-04-04T18:00"), at("2026-04-04T21:00")]
    assert upcoming(cron, at("2026-04-04T12:00"), 3) == wanted
    assert cron.offsets.probes - before < 1000
    for minute in range(4 * 60):
        now = at("2026-04-04T12:00") + timedelta(minutes=minute)
        assert cron.next_after(now) == next(each for each in wanted if each > now)


def test_DST_03_in_the_second_pass_of_a_repeated_hour_the_answer_is_tomorrow() -> None:
    slots = slots_of("30 1 * * *", "America/New_York")
    for minutes in range(6):
        asked = ms("2026-11-01T06:15") + minutes * 60_000
        assert slots.next_after(asked) == ms("2026-11-02T06:30")
        assert slots.newest(asked, asked - HOUR_MS) == ms("2026-11-01T05:30")
        assert slots.newest(asked, ms("2026-11-01T05:30")) is None


@pytest.mark.parametrize(
    "expression",
    [
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "0 0 */31 2 MON#5",
        "60 * * * *",
        "",
        "* * * *",
        "0 0 * * SAT-SUN",
        "*/0 * * * *",
        "@reboot",
    ],
)
def test_DST_04_what_cannot_fire_is_refused_where_it_is_declared(expression: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        slots_of(expression, None)
    assert repr(expression) in str(refused.value)
    assert isinstance(refused.value, ConfigurationError)


def test_DST_04_saturday_to_sunday_is_refused_with_a_hint() -> None:
    with pytest.raises(ScheduleError, match="write 6-7"):
        Cron("0 0 * * SAT-SUN")


def test_DST_04_what_looks_impossible_and_is_not() -> None:
    assert Cron("0 0 29 2 *").next_after(at("2026-01-01")) == at("2028-02-29")
    assert Cron("@daily").next_after(at("2026-01-01")) == at("2026-01-02")


# Both day fields restricted: Debian's rule looks at the first character of either.
@pytest.mark.parametrize("row", [row for row in ROWS if row["expr"].split()[2] != "*"
                                 and row["expr"].split()[4] != "*"], ids=name_of)  # fmt: skip
def test_DST_05_day_fields_combine_by_their_leading_star(row: dict[str, str]) -> None:
    day_of_month, day_of_week = row["expr"].split()[2::2]
    wanted = [at(each) for each in row["next_utc"].split(";")]
    assert upcoming(Cron(row["expr"], row["timezone"]), at(row["start_utc"]), 1) == wanted[:1]
    expression = Cron(row["expr"]).expression
    assert expression.both_days_must_match == ("*" in {day_of_month[0], day_of_week[0]})


@pytest.fixture
def host_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the process believe in another host time zone."""
    if request.param is None:
        monkeypatch.delenv("TZ", raising=False)
    else:
        monkeypatch.setenv("TZ", request.param)
    _take_over_host_zone()
    yield
    monkeypatch.undo()
    _take_over_host_zone()


def _take_over_host_zone() -> None:
    if hasattr(time, "tzset"):
        time.tzset()


@pytest.mark.usefixtures("host_zone")
@pytest.mark.parametrize(
    "host_zone", ["Europe/London", "Asia/Kolkata", "America/New_York", None], indirect=True
)
@pytest.mark.parametrize("timezone", ["UTC", None])
def test_DST_07_the_zone_of_the_host_does_not_matter(timezone: str | None) -> None:
    assert os.environ.get("TZ") in {"Europe/London", "Asia/Kolkata", "America/New_York", None}
    slots = slots_of("30 1 * * *", timezone)
    assert slots.next_after(ms("2026-10-25T00:00")) == ms("2026-10-25T01:30")
    assert slots.next_after(ms("2026-10-25T01:30")) == ms("2026-10-26T01:30")
    assert slots.timezone.key == "UTC"
    assert slots.key == "cron:30 1 * * *@UTC"


@pytest.mark.parametrize("schedule", [Cron("0 3 * * *", "Europe/Berlin"), Every(60)])
def test_NAI_01_naive_datetimes_are_refused_and_never_given(schedule: Cron | Every) -> None:
    with pytest.raises(ValueError, match="naive"):
        schedule.next_after(datetime(2026, 1, 1))  # noqa: DTZ001 - naive on purpose
    answer = schedule.next_after(at("2026-01-01"))
    assert answer is not None
    assert answer.utcoffset() is not None


def test_NAI_01_clock_changes_refuse_naive_datetimes() -> None:
    cron = Cron("30 2 * * *", "Europe/Berlin")
    naive = datetime(2026, 1, 1)  # noqa: DTZ001 - naive on purpose
    with pytest.raises(ValueError, match="naive"):
        clock_changes(cron, naive, at("2027-01-01"))
    with pytest.raises(ValueError, match="naive"):
        clock_changes(cron, at("2026-01-01"), naive)


def test_NAI_01_equal_moments_of_different_zones_get_equal_answers() -> None:
    cron = Cron("0 3 * * *", "Europe/Berlin")
    here = at("2026-06-01T12:00:00+09:00")
    assert cron.next_after(here) == cron.next_after(here.astimezone(UTC))


@pytest.mark.parametrize("schedule", [5, timedelta(seconds=5), "*/5 * * * * *", Every(5)])
def test_DRF_02_instances_started_at_any_time_share_their_slots(
    schedule: float | timedelta | str | Every,
) -> None:
    begin = ms("2026-01-01T00:00")
    seen: list[list[int]] = []
    for started in (0, 370, 810):
        slots = slots_of(schedule)
        seen.append(list(walked(slots.next_after, begin + started, begin + 60_000)))
    assert seen[0] == [begin + 5000 * each for each in range(1, 13)]
    assert seen[1:] == [seen[0], seen[0]]
