"""The live instances of a store, on a screen and as JSON."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from anarchon.cli.asking import iso
from anarchon.cli.output import plain
from anarchon.cli.table import Row, table
from anarchon.cli.times import in_words, took

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from anarchon import InstanceInfo


def instance_lines(instances: Sequence[InstanceInfo], now: datetime) -> Iterator[str]:
    """A table of instances; `now` is the time by which they are silent for so long."""
    rows = [
        Row(
            (
                plain(each.runner),
                f"{_seconds(now - each.last_seen)} ago",
                _difference(each.clock_ahead),
                took(each.loop_lag),
                plain(each.version),
            )
        )
        for each in instances
    ]
    yield from table(("INSTANCE", "SEEN", "CLOCK", "LAG", "VERSION"), rows)


def instance_as_json(instance: InstanceInfo) -> dict[str, object]:
    """An instance as an object."""
    return {
        "runner": instance.runner,
        "last_seen": iso(instance.last_seen),
        "clock_ahead": instance.clock_ahead,
        "loop_lag": instance.loop_lag,
        "version": instance.version,
        "jobs": None if instance.jobs is None else dict(instance.jobs),
        "jobs_digest": instance.jobs_digest,
    }


def definitions(instances: Iterable[InstanceInfo]) -> dict[str, dict[str, list[str]]]:
    """Of each job by name: its definitions, and which instances have them."""
    found: dict[str, dict[str, list[str]]] = {}
    for instance in instances:
        for job, definition in (instance.jobs or {}).items():
            found.setdefault(job, {}).setdefault(definition, []).append(instance.runner)
    return dict(sorted(found.items()))


def _seconds(length: timedelta) -> str:
    seconds = max(0, round(length.total_seconds()))
    return in_words(timedelta(seconds=seconds)) if seconds else "0 s"


def _difference(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else '-'}{took(abs(seconds))}"
