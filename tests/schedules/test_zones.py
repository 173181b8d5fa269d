"""Names of time zones, good and bad."""

from __future__ import annotations

from datetime import UTC
from io import BytesIO
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from anarchon.errors import ScheduleError
from anarchon.schedules import slots_of, zones
from anarchon.schedules.zones import zone_of
from tests.schedules.zones import zone_names

if TYPE_CHECKING:
    from collections.abc import Callable


def test_every_zone_of_the_database_is_known() -> None:
    assert [zone_of(name).key for name in zone_names()] == zone_names()


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("Europe/Berln", "did you mean 'Europe/Berlin'?"),
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        ("Berlin", "did you mean 'Europe/Berlin'?"),
        ("America/New York", "did you mean 'America/New_York'?"),
        ("Nowhere/At_All", "Accepted are IANA names"),
        ("Europe", "Accepted are IANA names"),
        ("", "Accepted are IANA names"),
        ("/etc/localtime", "Accepted are IANA names"),
        ("../UTC", "Accepted are IANA names"),
        ("UTC\0", "Accepted are IANA names"),
        ("x" * 5000, "Accepted are IANA names"),
        ("localtime", "something else on every host"),
        ("local", "something else on every host"),
    ],
)
def test_an_unknown_zone_is_refused_with_advice(name: str, advice: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        slots_of("0 3 * * *", name)
    assert repr(name) in str(refused.value)
    assert advice in str(refused.value)


def test_without_a_database_the_advice_is_to_install_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names: Callable[[], list[str]] = list
    monkeypatch.setattr(zones, "_names", names)
    with pytest.raises(ScheduleError, match="pip install tzdata"):
        zone_of("Europe/Nowhere")


def test_a_zone_without_a_name_is_refused() -> None:
    header = b"TZif\0" + bytes(15) + b"".join(n.to_bytes(4, "big") for n in (0, 0, 0, 0, 1, 4))
    nameless = ZoneInfo.from_file(BytesIO(header + bytes(6) + b"UTC\0"))
    with pytest.raises(ScheduleError, match="has no name"):
        slots_of("0 3 * * *", nameless)


def test_other_kinds_of_time_zones_are_refused() -> None:
    with pytest.raises(ScheduleError, match=r"zoneinfo\.ZoneInfo"):
        slots_of("0 3 * * *", UTC)  # type: ignore[arg-type]
