"""The page docs/behaviour.md has the rows that are proved here, and these have every option."""

from __future__ import annotations

import inspect
import re
from itertools import chain

from anarchon import JobSettings, Scheduler
from tests.behaviour.rows import GROUPS, PAGE, rows, written

NOT_BEHAVIOUR = {"name", "timezone", "backend", "runner", "environment"}


def test_page_has_the_rows_of_the_tests() -> None:
    assert PAGE.read_text("utf-8") == written(), "write it anew: python -m tests.behaviour"


def test_every_option_has_a_row() -> None:
    options = {*JobSettings.__annotations__, *inspect.signature(Scheduler).parameters}
    told = " ".join(row.option for row in chain(*rows().values()))
    assert options - NOT_BEHAVIOUR - set(re.findall(r"\w+", told)) == set()


def test_each_part_has_a_heading_and_rows_of_its_own() -> None:
    parts = rows()
    assert len(parts) == len(GROUPS)
    assert all(heading and group for heading, group in parts.items())


def test_rows_are_sentences_and_none_stands_twice() -> None:
    every = list(chain(*rows().values()))
    assert len({(row.option, row.situation) for row in every}) == len(every)
    for row in every:
        assert row.outcome.endswith(".")
        assert row.situation[0].islower() or row.situation[0] == "`"
        assert "|" not in row.option + row.situation + row.outcome
