"""Logging for the commands that run jobs: lines for people, or JSON for programs."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from anarchon import ConfigurationError
from anarchon.cli.nearest import did_you_mean
from anarchon.cli.output import has_colour, painted, plain

if TYPE_CHECKING:
    from typing import TextIO

    from anarchon.cli.output import Colour

OWN: logging.Logger = logging.getLogger("anarchon.cli")

_LEVELS = ("debug", "info", "warning", "error", "critical")
_COLOURS: dict[str, Colour] = {
    "DEBUG": "dim",
    "WARNING": "yellow",
    "ERROR": "red",
    "CRITICAL": "red",
}
_USUAL = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}
_KEYS = ("time", "level", "logger", "event", "message", "exception", "stack")

LogJson = Annotated[
    bool, typer.Option("--log-json", help="Log lines of JSON, with all fields, for programs.")
]
LogLevel = Annotated[
    str,
    typer.Option("--log-level", metavar="LEVEL", help="The least level: debug to critical."),
]


def configure(level: str, *, as_json: bool) -> None:
    """Log everything from `level` on to standard error. Raises `ConfigurationError`."""
    word = level.strip().lower()
    if word not in _LEVELS:
        message = f"--log-level {level[:40]!r}{did_you_mean(word, _LEVELS)}"
        raise ConfigurationError(message)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else Lines(sys.stderr))
    root = logging.getLogger()
    # In place of what is there: a module that calls logging.basicConfig() later changes nothing.
    root.handlers[:] = [handler]
    root.setLevel(word.upper())
    logging.captureWarnings(as_json)


class Lines(logging.Formatter):
    """Time, level, message; other loggers than anarchon's by name."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._to_terminal = stream.isatty()

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - the name and shape that logging calls
        """The local time; in a file also the date and the offset."""
        local = datetime.fromtimestamp(record.created, UTC).astimezone()
        if self._to_terminal:
            return local.time().isoformat("milliseconds")
        return local.isoformat(" ", "milliseconds")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """One line; a traceback follows it."""
        level = f"{record.levelname:<8}"
        if has_colour(self._stream):
            level = painted(level, _COLOURS.get(record.levelname), self._stream)
        root = record.name.partition(".")[0]
        name = "" if root in {"anarchon", "root"} else f"{record.name}: "
        # Ours may quote what a store holds; what others colour, they colour on purpose.
        message = plain(record.message, keep="\n\t") if root == "anarchon" else record.message
        return f"{self.formatTime(record)} {level} {name}{message}"


class JsonLines(logging.Formatter):
    """One JSON object a line: the usual keys, then every field that the record was given."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line; what JSON cannot hold is written as its repr."""
        answer: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
        }
        fields = {key: value for key, value in vars(record).items() if key not in _USUAL}
        if "event" in fields:
            answer["event"] = fields.pop("event")
        answer["message"] = _message(record)
        for key, value in fields.items():
            answer[f"extra_{key}" if key in _KEYS else key] = value
        if record.exc_info and record.exc_info[0] is not None:
            answer["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            answer["stack"] = record.stack_info
        # ASCII: such a line stays whole in whatever encoding the log is read.
        return "{" + ", ".join(f"{json.dumps(key)}: {_dump(answer[key])}" for key in answer) + "}"


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - a mistake in a log call must not break the lines
        return f"{record.msg} {record.args!r}"


def _dump(value: object) -> str:
    try:
        return json.dumps(value, default=str, allow_nan=False)
    except Exception:  # noqa: BLE001 - whatever the fields of the user's are
        return json.dumps(shown(value))


def shown(value: object) -> str:
    """An object as Python writes it, also where its own ``__repr__`` raises."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - as above
        return f"<{type(value).__qualname__}>"
