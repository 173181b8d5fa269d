"""A job's keys on a real server and a reference book, brought into one form to be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

from anarchon.backends.base import Outcome, State
from anarchon.backends.redis.strategies.lease import TRIGGER_LETTERS, TRIGGERS
from anarchon.backends.reference import JobBook, Nonsense, Record, member_of

if TYPE_CHECKING:
    from anarchon.backends.redis.keys import Keys
    from tests.support.resp import Connection, Reply

Row: TypeAlias = tuple[object, ...]

LARGE = "9" * 16
NONSENSE = (
    "",
    "nonsense",
    "R 1 3",
    "R x 3 1 1 1 s tok - r",
    "R 4 3 1 1 1 s tok - r",
    "R 0 3 1 1 1 s tok - r",
    f"R {LARGE} {LARGE} 1 1 1 s tok - r",
    f"R 1 {LARGE} 1 1 1 s tok - r",
    f"R 1 3 {LARGE} 1 1 s tok - r",
    f"R 1 3 1 {LARGE} 1 s tok - r",
    f"W 1 3 1 1 {LARGE} s tok - r",
    "R 1 3 1 1 1 x tok - r",
    "R 1 3 1 1 1 s tok x r",
    "Z 1 3 1 1 1 s tok - r",
    "D 1 1 1 s tok s extra",
    f"D {LARGE} 1 1 s tok s",
    f"K 1 {LARGE} 1 s tok s",
    f"X 1 1 {LARGE} s tok s",
    "D 1 1 1 s tok z",
)
"""Records that make no sense, each for a reason of its own."""

_NO_RECORD: Row = ("nonsense",)
_OPEN_PARTS = 10
_CLOSED_PARTS = 7


@dataclass
class Contents:
    """All that is stored of a job, in plain values."""

    records: dict[str, Row]
    fields: dict[str, str]
    active: set[str]
    slots: dict[str, int]
    runs: list[Row]
    results: dict[str, int]


def text(reply: Reply) -> str:
    """Decode a bulk string."""
    if not isinstance(reply, bytes):
        raise TypeError(reply)
    return reply.decode()


def texts(reply: Reply) -> list[str]:
    """Decode an array of bulk strings."""
    return [text(part) for part in cast("list[Reply]", reply)]


def pairs(reply: Reply) -> dict[str, str]:
    """Decode a flat array of names and values."""
    flat = texts(reply)
    return dict(zip(flat[::2], flat[1::2], strict=True))


def read_server(connection: Connection, keys: Keys, job: str) -> Contents:
    """What the scripts wrote."""
    state, active, slots, runs, results = keys.of_job(job)
    records: dict[str, Row] = {}
    fields: dict[str, str] = {}
    for name, value in pairs(connection.command("HGETALL", state)).items():
        if name[0] in "0123456789m":
            records[name] = _parsed(value)
        else:
            fields[name] = value
    entries = cast("list[list[Reply]]", connection.command("XRANGE", runs, "-", "+"))
    return Contents(
        records=records,
        fields=fields,
        active=set(texts(connection.command("SMEMBERS", active))),
        slots=_scores(connection.command("ZRANGE", slots, 0, -1, "WITHSCORES")),
        runs=[_began(pairs(entry[1])) for entry in entries],
        results=_scores(connection.command("ZRANGE", results, 0, -1, "WITHSCORES")),
    )


def read_book(book: JobBook) -> Contents:
    """What the reference keeps."""
    fields = {"floor": book.floor, "floor:manual": book.floor_manual, "fence": book.fence}
    told = {name: str(value) for name, value in fields.items() if value}
    if book.since is not None:
        told |= {"since": str(book.since), "schedule": book.schedule_key}
    if book.paused is not None:
        told["paused"] = f"{book.paused[0]} {book.paused[1]}"
    return Contents(
        records={run: _row(record) for run, record in book.records.items()},
        fields=told,
        active=set(book.active),
        slots=dict(book.slots),
        runs=[
            (entry.run, entry.attempt, entry.fence, entry.start, entry.trigger, entry.runner)
            for entry in book.attempts
        ],
        results={member_of(result): score for result, score in book.results.items()},
    )


def _scores(reply: Reply) -> dict[str, int]:
    return {member: int(float(score)) for member, score in pairs(reply).items()}


def _began(entry: dict[str, str]) -> Row:
    return (
        entry["run"],
        int(entry["attempt"]),
        int(entry["fence"]),
        int(entry["start"]),
        TRIGGERS[entry["trigger"]],
        entry["runner"],
    )


def _parsed(packed: str) -> Row:
    # A parser of its own: simple, and knowing only what the scripts' contract says.
    if packed in NONSENSE:
        return _NO_RECORD
    parts = packed.split(" ", _OPEN_PARTS - 1)
    if parts[0] in {"R", "W"} and len(parts) == _OPEN_PARTS:
        letter, attempt, most, end, granted, fence, trigger, token, outcome, runner = parts
        numbers = (int(attempt), int(most), int(end), int(granted), int(fence))
        outcome, flag = outcome[:1], outcome[1:] == "!"
        return (State(letter), *numbers, TRIGGERS[trigger], token, Outcome(outcome), flag, runner)
    if parts[0] in {"D", "X", "C", "K"} and len(parts) == _CLOSED_PARTS:
        letter, attempt, end, fence, trigger, token, outcome = parts
        numbers = (int(attempt), 0, int(end), 0, int(fence))
        return (State(letter), *numbers, TRIGGERS[trigger], token, Outcome(outcome), False, "")
    return _NO_RECORD


def _row(record: Record | Nonsense) -> Row:
    if isinstance(record, Nonsense):
        return _NO_RECORD
    return (
        record.state,
        record.attempt,
        record.max_attempts,
        record.end,
        record.granted,
        record.fence,
        record.trigger,
        record.token,
        record.outcome,
        record.cancel,
        record.runner,
    )


def packed(record: Record) -> str:
    """An open record as the scripts write it."""
    flag = "!" if record.cancel else ""
    return (
        f"{record.state} {record.attempt} {record.max_attempts} {record.end} {record.granted}"
        f" {record.fence} {TRIGGER_LETTERS[record.trigger]} {record.token}"
        f" {record.outcome}{flag} {record.runner}"
    )
