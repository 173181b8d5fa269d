"""Far from any change of the clock, cronsim and croniter are right whenever they agree."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim, CronSimError
from hypothesis import assume, event, given
from hypothesis import strategies as st

from anarchon.schedules.offsets import offsets_of
from tests.schedules.asking import legal
from tests.schedules.debian import moment, utc
from tests.schedules.expressions import expression
from tests.schedules.zones import zone_names

if TYPE_CHECKING:
    import random

DAY = 86_400
INSTANTS = st.integers(utc("1972-01-10"), utc("2037-01-01"))


def by_cronsim(text: str, start: datetime) -> datetime | None:
    """Return the first slot after `start`; None where it gives up after 50 years."""
    return next(iter(CronSim(text, start)), None)


def by_croniter(text: str, start: datetime) -> datetime | None:
    """Return the first slot after `start`; None where it cannot read the expression."""
    try:
        return croniter(text, start, ret_type=datetime, second_at_beginning=True).get_next(datetime)
    except (ValueError, KeyError, TypeError):
        return None


@given(rng=st.randoms(use_true_random=False), zone=st.sampled_from(zone_names()), start=INSTANTS)
def test_both_agree(rng: random.Random, zone: str, start: int) -> None:
    text = expression(rng, specials=False)
    cron = legal(text, zone)
    assume(cron is not None)
    assert cron is not None
    answer = cron.next_after_seconds(start)
    assert answer is not None
    assume(answer < start + 366 * DAY)
    changes = offsets_of(ZoneInfo(zone)).changes(start - DAY, answer + DAY)
    assume(next(changes, None) is None)
    asked = moment(start).astimezone(ZoneInfo(zone))
    first = by_cronsim(text, asked)
    second = by_croniter(text, asked)
    event("they agree" if first == second else "they disagree")
    if first == second:
        assert moment(answer) == first


@given(rng=st.randoms(use_true_random=False), start=INSTANTS)
def test_cronsim_in_utc_for_everything_it_reads(rng: random.Random, start: int) -> None:
    """In UTC its clock-change rule does not come in, and the syntax is ours in full."""
    text = expression(rng)
    try:
        wanted = by_cronsim(text, moment(start))
    except CronSimError:
        wanted = None
    cron = legal(text)
    if cron is None:
        assert wanted is None
        return
    answer = cron.next_after(moment(start))
    assert answer is not None
    if wanted is None:  # It looks 50 years ahead and no further.
        assert answer > moment(start) + timedelta(days=50 * 365)
    else:
        assert answer == wanted
