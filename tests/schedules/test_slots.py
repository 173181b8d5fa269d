"""What the engine asks, for every kind of schedule that a user may declare."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast
from zoneinfo import ZoneInfo

import pytest

from anarchon.errors import ConfigurationError, ScheduleError
from anarchon.schedules import Cron, Every, Schedule, slots_of
from tests.schedules.asking import walked
from tests.schedules.debian import utc

if TYPE_CHECKING:
    from collections.abc import Callable

START = utc("2026-01-01") * 1000
BERLIN = ZoneInfo("Europe/Berlin")


class Own:
    """A schedule of the user's own."""

    def __init__(self, answer: Callable[[datetime], object], key: object = "tides:kiel") -> None:
        self._answer = answer
        self.key = cast("str", key)
        self.asked: list[datetime] = []

    def next_after(self, moment: datetime, /) -> datetime | None:
        self.asked.append(moment)
        return cast("datetime | None", self._answer(moment))


class OwnWithZone(Own):
    timezone = BERLIN


@pytest.mark.parametrize(
    ("schedule", "timezone", "key", "zone"),
    [
        ("0 3 * * *", None, "cron:0 3 * * *@UTC", "UTC"),
        ("0 3 * * *", "Europe/Berlin", "cron:0 3 * * *@Europe/Berlin", "Europe/Berlin"),
        ("0 3 * * *", BERLIN, "cron:0 3 * * *@Europe/Berlin", "Europe/Berlin"),
        (Cron("0 3 * * *"), "Europe/Berlin", "cron:0 3 * * *@Europe/Berlin", "Europe/Berlin"),
        (Cron("0 3 * * *", "Europe/Berlin"), None, "cron:0 3 * * *@Europe/Berlin", "Europe/Berlin"),
        (Cron("@daily"), None, "cron:0 0 * * *@UTC", "UTC"),
        (60, None, "every:60000", "UTC"),
        (0.5, "Europe/Berlin", "every:500", "Europe/Berlin"),
        (timedelta(hours=1), None, "every:3600000", "UTC"),
        (Every(60), "Europe/Berlin", "every:60000", "Europe/Berlin"),
    ],
)
def test_key_and_zone(
    schedule: str | float | timedelta | Schedule,
    timezone: str | ZoneInfo | None,
    key: str,
    zone: str,
) -> None:
    slots = slots_of(schedule, timezone)
    assert (slots.key, slots.timezone.key) == (key, zone)


def test_a_zone_in_two_places_is_refused() -> None:
    for schedule in (Cron("0 3 * * *", "UTC"), OwnWithZone(lambda _: None)):
        with pytest.raises(ConfigurationError, match="one of the two places") as refused:
            slots_of(schedule, "Europe/Berlin")
        assert repr(schedule.key) in str(refused.value)


def test_an_own_schedule_is_asked_and_shown_in_the_zone_of_the_job_or_its_own() -> None:
    own = Own(lambda moment: moment + timedelta(hours=1))
    assert slots_of(own, "Europe/Berlin").timezone is BERLIN
    assert slots_of(own, "Europe/Berlin").next_after(START) == START + 3_600_000
    assert own.asked[-1].tzinfo is BERLIN
    assert slots_of(own).timezone.key == "UTC"
    assert slots_of(OwnWithZone(lambda _: None)).timezone is BERLIN
    assert slots_of(own).key == "tides:kiel"
    assert slots_of(own).explain() == "by the schedule tides:kiel"


def test_an_own_schedule_may_end() -> None:
    slots = slots_of(Own(lambda _: None))
    assert slots.next_after(START) is None
    assert slots.newest(START, 0) is None


def test_an_own_schedule_may_end_with_the_last_of_all_datetimes() -> None:
    slots = slots_of(Own(lambda _: datetime.max.replace(tzinfo=UTC)))
    assert slots.next_after(START) is None


def test_an_own_schedule_may_answer_in_any_zone() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    slots = slots_of(Own(lambda moment: (moment + timedelta(minutes=1)).astimezone(tokyo)))
    assert slots.next_after(START) == START + 60_000


def test_an_own_schedule_in_an_hour_that_comes_twice() -> None:
    """Datetimes of one zone compare by the wall; what counts is the instant."""
    second_pass = utc("2026-10-25T01:15") * 1000
    answer = datetime(2026, 10, 25, 2, 15, tzinfo=BERLIN, fold=1)
    slots = slots_of(Own(lambda _: answer), "Europe/Berlin")
    assert slots.next_after(utc("2026-10-25T00:45") * 1000) == second_pass
    assert slots.next_after(second_pass - 1) == second_pass
    with pytest.raises(ScheduleError, match="not after"):
        slots.next_after(second_pass)


def test_parts_of_milliseconds_are_cut_off_and_slots_still_grow() -> None:
    step = timedelta(microseconds=400)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    slots = slots_of(Own(lambda moment: epoch + ((moment - epoch) // step + 1) * step))
    seen = list(walked(slots.next_after, START, START + 10))
    assert seen == list(range(START + 1, START + 11))
    assert slots.newest(START + 10, START) == START + 10


def same(moment: datetime) -> object:
    return moment


def earlier(moment: datetime) -> object:
    return moment - timedelta(seconds=1)


def naive(moment: datetime) -> object:
    return moment.replace(tzinfo=None) + timedelta(hours=1)


def number(moment: datetime) -> object:
    return moment.timestamp() + 5


def text(moment: datetime) -> object:
    return str(moment)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (same, "not after the moment asked"),
        (earlier, "not after the moment asked"),
        (naive, "answered the naive"),
        (number, "answered 1767225605.0"),
        (text, "answered '2026-01-01"),
    ],
)
def test_nonsense_from_an_own_schedule_is_an_error_with_its_key(
    answer: Callable[[datetime], object], fault: str
) -> None:
    slots = slots_of(Own(answer))
    with pytest.raises(ScheduleError, match=fault) as refused:
        slots.next_after(START)
    assert "'tides:kiel'" in str(refused.value)


def test_what_an_own_schedule_raises_is_kept_as_the_cause() -> None:
    def fail(_: datetime) -> datetime:
        raise LookupError("no tide table")

    with pytest.raises(ScheduleError, match=r"'tides:kiel'.*no tide table") as refused:
        slots_of(Own(fail)).next_after(START)
    assert isinstance(refused.value.__cause__, LookupError)


@pytest.mark.parametrize("key", [None, "", "  ", 5])
def test_an_own_schedule_needs_a_key(key: object) -> None:
    with pytest.raises(ScheduleError, match="give a text that names the schedule"):
        slots_of(Own(lambda _: None, key))


class WithoutKey:
    def next_after(self, moment: datetime, /) -> datetime | None:
        return moment


@pytest.mark.parametrize(
    ("schedule", "advice"),
    [
        (None, "give a cron expression"),
        (object(), "give a cron expression"),
        (Cron, "give a cron expression"),
        ([1, 2], "give a cron expression"),
        (True, "give seconds as a number"),
        (WithoutKey(), "the key of schedule WithoutKey"),
    ],
)
def test_what_is_no_schedule_is_refused(schedule: object, advice: str) -> None:
    with pytest.raises(ScheduleError, match=advice):
        slots_of(cast("str", schedule))


def test_the_edges_of_time_are_no_errors() -> None:
    own = Own(lambda moment: moment + timedelta(seconds=1))
    for schedule in ("* * * * *", "* * * * * *", "0 3 * * *", 60, own):
        slots = slots_of(schedule, "Pacific/Apia")
        assert slots.next_after(10**17) is None
        first = slots.next_after(-(10**17))
        assert first is not None
        assert first >= utc("0001-01-02") * 1000
        assert slots.newest(10**17, 10**17 - 1) is None


@pytest.mark.parametrize("schedule", ["* * * * * *", 1])
@pytest.mark.parametrize("second", [START, 0, -1000, -START])
def test_parts_of_seconds_are_before_the_next_second(schedule: str | float, second: int) -> None:
    slots = slots_of(schedule)
    for asked in (second, second + 1, second + 999):
        assert slots.next_after(asked) == second + 1000
        assert slots.newest(asked, second - 1) == second
    assert slots.newest(second - 1, second - 1000) is None


def test_slots_are_equal_when_their_schedules_are() -> None:
    assert slots_of("0 3 * * *") == slots_of(Cron("0  3 * * *"))
    assert slots_of("0 3 * * *") != slots_of("0 4 * * *")
