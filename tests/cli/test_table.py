"""Tables fit eighty columns, and nothing in them is cut off."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from anarchon.cli.output import first_line, plain
from anarchon.cli.table import Row, table

HEADER = ("JOB", "NEXT", "SCHEDULE")


def lines(*rows: Row) -> list[str]:
    return list(table(HEADER, rows))


def test_columns_are_as_wide_as_what_is_in_them() -> None:
    assert lines(Row(("a", "now", "every day")), Row(("longer", "", ""))) == [
        "JOB     NEXT  SCHEDULE",
        "a       now   every day",
        "longer",
    ]


def test_a_long_name_has_a_line_of_its_own() -> None:
    name = "n" * 70
    assert lines(Row(("short", "now", "x")), Row((name, "then", "y"))) == [
        "JOB    NEXT  SCHEDULE",
        "short  now   x",
        name,
        "       then  y",
    ]


def test_a_long_last_cell_is_wrapped_below_itself() -> None:
    words = "word " * 30
    shown = lines(Row(("a", "now", words)))
    assert shown[1].startswith("a    now   word word")
    assert all(line.startswith(" " * 11 + "word") for line in shown[2:])
    assert " ".join(shown[1:]).split() == ["a", "now", *words.split()]


def test_notes_stand_below_their_row() -> None:
    assert lines(Row(("a", "now", "x"), ("paused", "open")))[2:] == ["  paused", "  open"]


def test_wide_letters_keep_columns_aligned() -> None:
    shown = lines(Row(("日次集計", "now", "x")), Row(("abcdefgh", "now", "x")))
    assert cell_len(shown[1].split("now")[0]) == cell_len(shown[2].split("now")[0])


@pytest.mark.parametrize("columns", ["60", "80", "100"])
def test_lines_fit_whatever_is_in_them(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    middle = "Mon 2026-11-30 03:00:00 +01:00"
    names = ["a", "n" * 30, "m" * 55]
    shown = lines(*(Row((name, middle[:22], "word " * 20), ("note " * 30,)) for name in names))
    assert max(map(len, shown)) <= int(columns)
    for name in names:
        assert any(line.split(" ")[0] == name for line in shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nightly_report", "nightly_report"),
        ("Größe 日次 😀", "Größe 日次 😀"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("two\nlines", "two\\nlines"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\udcff", "\\udcff"),
    ],
)
def test_what_a_terminal_would_obey_is_spelled_out(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_the_first_line_is_the_first_that_says_something() -> None:
    assert first_line("\n  \n ValueError: x\nmore") == "ValueError: x"
    assert first_line("") == ""
