"""What a cron expression may say, and how a bad one is refused."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from anarchon.errors import ScheduleError
from anarchon.schedules import Cron
from tests.schedules.asking import upcoming

START = datetime(2026, 1, 1, tzinfo=UTC)
DAILY = "0 0 * * *"


def days(expression: str, count: int) -> list[str]:
    return [f"{slot:%m-%d}" for slot in upcoming(Cron(expression), START, count)]


def refusal(expression: str, timezone: str | None = None) -> str:
    with pytest.raises(ScheduleError) as refused:
        Cron(expression, timezone)
    return str(refused.value)


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", DAILY),
        ("@midnight", DAILY),
        (" @Hourly ", "0 * * * *"),
    ],
)
def test_named_expressions_stand_for_fields(name: str, expression: str) -> None:
    assert Cron(name) == Cron(expression)
    assert Cron(name).key == f"cron:{expression}@UTC"


@pytest.mark.parametrize(
    ("spelling", "expression"),
    [
        ("  0\t0 *  * mon-Fri ", "0 0 * * MON-FRI"),
        ("0 0 0 * * *", DAILY),
        ("00 0 0 * * *", DAILY),
    ],
)
def test_spelling_does_not_change_a_schedule(spelling: str, expression: str) -> None:
    assert Cron(spelling).key == f"cron:{expression}@UTC"
    assert Cron(spelling) == Cron(expression)
    assert hash(Cron(spelling)) == hash(Cron(expression))
    assert Cron(spelling).expr == spelling


def test_what_changes_a_schedule() -> None:
    berlin = Cron(DAILY, "Europe/Berlin")
    assert berlin.key == "cron:0 0 * * *@Europe/Berlin"
    assert berlin == Cron(DAILY, ZoneInfo("Europe/Berlin"))
    assert berlin != Cron(DAILY)
    assert berlin != Cron("1 0 * * *", "Europe/Berlin")


def test_cron_is_frozen_and_can_be_pickled() -> None:
    cron = Cron("0 3 * * *", "Europe/Berlin")
    with pytest.raises(AttributeError):
        cron.expr = DAILY  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(cron))  # noqa: S301 - our own bytes
    assert again == cron
    assert again.next_after(START) == cron.next_after(START)


def test_seconds_come_first() -> None:
    slots = upcoming(Cron("*/20 30 12 * * *"), START, 4)
    assert [f"{slot:%d %H:%M:%S}" for slot in slots] == [
        "01 12:30:00",
        "01 12:30:20",
        "01 12:30:40",
        "02 12:30:00",
    ]


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("0 0 L * *", ["01-31", "02-28", "03-31"]),
        ("0 0 LW * *", ["01-30", "02-27", "03-31"]),
        ("0 0 LW 5,8 *", ["05-29", "08-31", "05-31"]),
        ("0 0 * * 5L", ["01-30", "02-27", "03-27"]),
        ("0 0 * * 7L", ["01-25", "02-22", "03-29"]),
        ("0 0 * * 0L", ["01-25", "02-22", "03-29"]),
        ("0 0 * * mon#1", ["01-05", "02-02", "03-02"]),
        ("0 0 * * 1#5", ["03-30", "06-29", "08-31"]),
        ("0 0 * * 7#1", ["01-04", "02-01", "03-01"]),
        ("0 0 15,L * *", ["01-15", "01-31", "02-15"]),
        ("0 0 L * 1#1", ["01-05", "01-31", "02-02"]),
        ("0 0 * * 5-7", ["01-02", "01-03", "01-04"]),
        ("0 0 * * 5/1", ["01-02", "01-03", "01-04"]),
        ("0 0 * * 0-7/7", ["01-04", "01-11", "01-18"]),
        ("0 0 10/10 * *", ["01-10", "01-20", "01-30"]),
        ("0 0 1 */5 *", ["06-01", "11-01", "01-01"]),
        ("0 0 29 2 1#5", ["02-29", "03-01", "03-01"]),
    ],
)
def test_days(expression: str, wanted: list[str]) -> None:
    if expression == "0 0 29 2 1#5":  # Either: 29 February, or a fifth Monday in February.
        assert days(expression, 1) == wanted[:1]
    else:
        assert days(expression, 3) == wanted


def test_a_range_of_one_value_is_one_value() -> None:
    """In contrast to a lone number, with a step it does not run on to the end."""
    assert Cron("5-5/15 * * * *").expression.minute.values == (5,)
    assert Cron("5/15 * * * *").expression.minute.values == (5, 20, 35, 50)


def test_rare_dates_are_found() -> None:
    assert Cron("0 0 29 2 *").next_after(datetime(2096, 3, 1, tzinfo=UTC)) == datetime(
        2104, 2, 29, tzinfo=UTC
    )
    assert Cron("0 0 * 2 MON#5").next_after(datetime(2072, 3, 1, tzinfo=UTC)) == datetime(
        2112, 2, 29, tzinfo=UTC
    )


def test_the_end_of_time_is_none_and_no_error() -> None:
    end = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    assert Cron("* * * * *", "Pacific/Apia").next_after(end) is None
    assert Cron(DAILY, "America/New_York").next_after(end) is None
    assert Cron("0 0 29 2 *").next_after(datetime(9996, 3, 1, tzinfo=UTC)) is None
    december = datetime(9999, 12, 1, tzinfo=UTC)
    assert Cron("0 23 31 12 *", "America/New_York").next_after(december) is None


def test_the_beginning_of_time_is_no_error() -> None:
    begin = datetime(1, 1, 1, tzinfo=UTC)
    for zone in ("Pacific/Apia", "America/New_York", "UTC"):
        answer = Cron("0 0 * * *", zone).next_after(begin)
        assert answer is not None
        assert answer > begin


@pytest.mark.parametrize(
    ("expression", "fault", "advice"),
    [
        ("60 * * * *", "minute '60'", "Accepted: 0-59"),
        ("* 24 * * *", "hour '24'", "Accepted: 0-23"),
        ("* * 0 * *", "day-of-month '0'", "Accepted: 1-31"),
        ("* * * 13 *", "month '13'", "1-12 or JAN-DEC"),
        ("* * * * 8", "day-of-week '8'", "0-7 or SUN-SAT"),
        ("60 * * * * *", "second '60'", "Accepted: 0-59"),
        ("1,2,x * * * *", "minute 'X' in '1,2,X'", "no minute"),
        ("1,,2 * * * *", "minute '' in '1,,2'", "empty"),
        ("-5 * * * *", "minute '-5'", "'' is no minute"),
        ("5- * * * *", "minute '5-'", "'' is no minute"),
        ("1-2-3 * * * *", "minute '1-2-3'", "'2-3' is no minute"),
        ("*/0 * * * *", "minute '*/0'", "step of 0"),
        ("*/-5 * * * *", "minute '*/-5'", "no whole number"),
        ("*/ * * * *", "minute '*/'", "no whole number"),
        ("*/5/2 * * * *", "minute '*/5/2'", "no whole number"),
        ("*/90 * * * *", "minute '*/90'", "give seconds or a timedelta"),
        ("*5 * * * *", "minute '*5'", "no minute"),
        ("30-10 * * * *", "minute '30-10'", "write 30-59,0-10"),
        ("0 22-2 * * *", "hour '22-2'", "write 22-23,0-2"),
        ("0 0 * NOV-FEB *", "month 'NOV-FEB'", "write 11-12,1-2"),
        ("0 0 * * FRI-MON", "day-of-week 'FRI-MON'", "write 5-7,1"),
        ("0 0 * * 7-2", "day-of-week '7-2'", "write 7,1-2"),
        ("0 0 ? * MON", "day-of-month '?'", "write \\*"),
        ("0 0 15W * *", "day-of-month '15W'", "only LW"),
        ("0 0 L-3 * *", "day-of-month 'L-3'", "L \\(the last day\\)"),
        ("0 0 L/2 * *", "day-of-month 'L/2'", "L \\(the last day\\)"),
        ("0 0 * * L", "day-of-week 'L'", "5L is the last Friday"),
        ("0 0 * * FRIL", "day-of-week 'FRIL'", "5L is the last Friday"),
        ("0 0 * * 9L", "day-of-week '9L'", "out of range 0-7"),
        ("0 0 * * MON#0", "day-of-week 'MON#0'", "1 to 5"),
        ("0 0 * * MON#6", "day-of-week 'MON#6'", "1 to 5"),
        ("0 0 * * #2", "day-of-week '#2'", "'' is no day-of-week"),
        ("0 0 * * 1-5#2", "day-of-week '1-5#2'", "'1-5' is no day-of-week"),
        ("L * * * *", "minute 'L'", "no minute"),
        ("0 0 * MONDAY *", "month 'MONDAY'", "no month"),
        ("\N{ARABIC-INDIC DIGIT FIVE} * * * *", "minute", "is no minute"),
        ("²/2 * * * *", "minute '²/2'", "no minute"),
        ("9999999999999999999 * * * *", "minute '9999999999999999999'", "out of range"),
    ],
)
def test_a_bad_field_is_refused_by_name(expression: str, fault: str, advice: str) -> None:
    message = refusal(expression)
    assert repr(expression) in message
    assert fault in message
    assert advice.replace("\\", "") in message


@pytest.mark.parametrize(
    ("expression", "advice"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        ("*", "has 1 field."),
        ("* * * *", "has 4 fields. Accepted: 5"),
        ("0 0 1 1 * 2026 7", "there is no field for years"),
        ("@reboot", "when your program starts"),
        ("@every 5m", "timedelta(minutes=5)"),
        ("@dayly", "did you mean @daily?"),
        ("@fullmoon", "The names known are @yearly"),
        ("CRON_TZ=Europe/Berlin 0 3 * * *", "timezone="),
        ("* " * 600, "at most 1000"),
    ],
)
def test_a_bad_expression_is_refused_with_advice(expression: str, advice: str) -> None:
    assert advice in refusal(expression)


def test_an_expression_that_is_no_text_is_refused() -> None:
    with pytest.raises(ScheduleError, match="is a string, not 5"):
        Cron(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "expression",
    ["0 0 30 2 *", "0 0 31 */2,4 0#1", "0 0 31 2,4,6,9,11 *", "0 0 */20 * 1L", "0 0 30 2 *,1"],
)
def test_dates_that_never_come_are_refused(expression: str) -> None:
    if expression == "0 0 31 */2,4 0#1":  # Either is enough, and first Sundays there are.
        assert Cron(expression).next_after(START) is not None
    else:
        assert "never fires" in refusal(expression)


def test_times_that_are_always_skipped_are_refused_in_few_questions() -> None:
    """The European gap, each year: a wildcard job there never runs, a fixed-time job does."""
    zone = "Europe/Berlin"
    before = Cron(DAILY, zone).offsets.probes
    assert "never fires in Europe/Berlin" in refusal("*/15 2 * 3 7L", zone)
    assert Cron(DAILY, zone).offsets.probes - before < 50_000
    assert Cron("*/15 2 * 3 7L").next_after(START) is not None
    gap_end = Cron("0 2 * 3 7L", zone).next_after(START)
    assert gap_end is not None
    assert gap_end.astimezone(UTC) == datetime(2026, 3, 29, 1, tzinfo=UTC)


def test_answers_are_in_the_zone_of_the_schedule() -> None:
    answer = Cron("0 3 * * *", "Asia/Tokyo").next_after(START)
    assert answer is not None
    assert f"{answer:%H:%M}" == "03:00"
    assert answer.tzinfo is ZoneInfo("Asia/Tokyo")
