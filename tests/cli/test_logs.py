"""What is logged, as lines for people and as JSON."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
import warnings
from typing import TYPE_CHECKING, cast

import pytest

from anarchon import ConfigurationError
from anarchon.cli.logs import JsonLines, Lines, configure

if TYPE_CHECKING:
    from collections.abc import Iterator


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    logger = logging.getLogger("anarchon.runs")
    yield logger
    logger.handlers = [h for h in logger.handlers if not isinstance(h, logging.StreamHandler)]


def json_of(record: logging.LogRecord) -> dict[str, object]:
    line = JsonLines().format(record)
    assert "\n" not in line
    assert line.isascii()

    def refuse(name: str) -> object:
        raise AssertionError(f"{name} is not JSON")

    return cast("dict[str, object]", json.loads(line, parse_constant=refuse))


def record(message: object = "done", **fields: object) -> logging.LogRecord:
    return logging.makeLogRecord(
        {"name": "anarchon.runs", "levelname": "INFO", "msg": message, "created": 0.25, **fields}
    )


def raised() -> object:
    """Return what logging is handed of an exception."""
    try:
        int("gone")
    except ValueError:
        return sys.exc_info()
    raise AssertionError


def test_json_has_the_usual_keys_first_and_then_every_field() -> None:
    told = json_of(record("ended well", event="run.succeeded", job="report", attempt=2))
    assert list(told.items()) == [
        ("time", "1970-01-01T00:00:00.250+00:00"),
        ("level", "INFO"),
        ("logger", "anarchon.runs"),
        ("event", "run.succeeded"),
        ("message", "ended well"),
        ("job", "report"),
        ("attempt", 2),
    ]


def test_json_has_no_event_where_the_record_has_none() -> None:
    assert "event" not in json_of(record())


def test_json_has_the_traceback_as_text() -> None:
    told = json_of(record(exc_info=raised()))
    assert str(told["exception"]).startswith("Traceback (most recent call last):\n  File ")
    assert str(told["exception"]).endswith("invalid literal for int() with base 10: 'gone'")


def test_json_has_no_exception_where_none_was_under_way() -> None:
    assert "exception" not in json_of(record(exc_info=(None, None, None)))


def test_a_field_never_takes_the_place_of_a_usual_key() -> None:
    told = json_of(record("own", time="noon", level=7, logger="x", exception="y"))
    assert told["time"] == "1970-01-01T00:00:00.250+00:00"
    assert (told["level"], told["logger"], told["message"]) == ("INFO", "anarchon.runs", "own")
    assert (told["extra_time"], told["extra_level"], told["extra_logger"]) == ("noon", 7, "x")
    assert told["extra_exception"] == "y"


class Unwilling:
    def __repr__(self) -> str:
        raise RuntimeError("no")


CIRCLE: list[object] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, None),
        ({"a": [1, True]}, {"a": [1, True]}),
        (float("nan"), "nan"),
        ([float("inf")], "[inf]"),
        ({1, 2}, "{1, 2}"),
        (b"x", "b'x'"),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        (CIRCLE, "[[...]]"),
        (Unwilling(), "<Unwilling>"),
        ("two\nlines \udcff \U0001f600", "two\nlines \udcff \U0001f600"),
    ],
)
def test_every_value_can_be_written(value: object, written: object) -> None:
    assert json_of(record(field=value))["field"] == written


def test_a_wrong_log_call_is_a_line_too() -> None:
    assert json_of(record("%d of %d", args=("x",)))["message"] == "%d of %d ('x',)"


# -- for people --------------------------------------------------------------------------------


def test_in_a_file_a_line_has_date_and_offset() -> None:
    line = Lines(io.StringIO()).format(record("ended well"))
    assert re.fullmatch(
        r"(?:1970-01-01|1969-12-31) \d\d:\d\d:00\.250[+-]\d\d:\d\d INFO     ended well", line
    )


def test_in_a_terminal_a_line_has_the_time() -> None:
    line = Lines(Terminal()).format(record("ended well"))
    assert re.fullmatch(r"\d\d:\d\d:00\.250 INFO     ended well", line)


def test_other_loggers_are_named() -> None:
    line = Lines(Terminal()).format(record("sent", name="app.mail"))
    assert line.endswith("INFO     app.mail: sent")
    assert Lines(Terminal()).format(record("sent", name="root")).endswith("INFO     sent")


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    warning = record("late", levelname="WARNING")
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[33mWARNING \x1b[0m late" in Lines(Terminal()).format(warning)
    assert "\x1b" not in Lines(Terminal()).format(record())
    assert "\x1b" not in Lines(io.StringIO()).format(warning)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in Lines(Terminal()).format(warning)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in Lines(Terminal()).format(warning)


def test_a_traceback_follows_its_line() -> None:
    text = Lines(io.StringIO()).format(record("failed", exc_info=raised()))
    first, second, *_, last = text.splitlines()
    assert first.endswith("INFO     failed")
    assert second == "Traceback (most recent call last):"
    assert last == "ValueError: invalid literal for int() with base 10: 'gone'"


def test_a_terminal_is_not_made_to_obey_a_message() -> None:
    line = Lines(Terminal()).format(record("job \x1b[2J\u202e of\tothers\nand more"))
    assert line.endswith("job \\x1b[2J\\u202e of\tothers\nand more")


# -- configured --------------------------------------------------------------------------------


def test_configured_it_tells_the_level_asked_for_once(
    capsys: pytest.CaptureFixture[str], log: logging.Logger
) -> None:
    configure("warning", as_json=False)
    configure("WARNING", as_json=True)
    logging.basicConfig(level=logging.DEBUG)  # as a module of the user's may call it
    log.info("quiet")
    log.warning("loud", extra={"event": "x.y"})
    out, err = capsys.readouterr()
    assert out == ""
    assert [json.loads(line)["message"] for line in err.splitlines()] == ["loud"]


def test_warnings_are_lines_of_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", as_json=True)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)
        warnings.warn("an old way", DeprecationWarning, stacklevel=1)
    [line] = capsys.readouterr().err.splitlines()
    assert json.loads(line)["logger"] == "py.warnings"


@pytest.mark.parametrize(
    ("word", "advice"), [("warn", "did you mean 'warning'?"), ("7", "there are: critical, debug")]
)
def test_an_unknown_level_is_refused(word: str, advice: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(f"--log-level '{word}'; {advice}")):
        configure(word, as_json=False)
