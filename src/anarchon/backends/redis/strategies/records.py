"""What the scripts keep of runs, read back: history rows, records, results."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from anarchon.backends.base import RUN_ID, Outcome, State, order_of
from anarchon.backends.history import Began, Result, Standing, compose, compose_run
from anarchon.runs import FARTHEST, RunRecord, RunStatus, Trigger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from anarchon.backends.redis.clients.base import Reply

_RECORD = re.compile(
    r"(?:(?P<open>[RW]) (?P<attempt>\d{1,15}) (?P<most>\d{1,15})"
    r" (?P<end>\d{1,15}) \d{1,15} \d{1,15}"
    r" [scm] \S+ (?P<outcome>[-sftncrui])!? .*"
    r"|(?P<closed>[DXCK]) (?P<tried>\d{1,15}) \d{1,15} \d{1,15}"
    r" [scm] \S+ (?P<how>[-sftncruiop]))",
    re.DOTALL | re.ASCII,
)


def read_history(
    job: str, parts: Sequence[Reply], triggers: Mapping[str, Trigger], limit: int
) -> tuple[RunRecord, ...]:
    """Put the answer of the history script together. Rows that make no sense are left out."""
    rows, parts = _rows(parts, 6)
    began = [entry for row in rows if (entry := _began(row, triggers))]
    rows, parts = _rows(parts, 2)
    results = [result for row in rows if (result := _result(row[0]))]
    rows, _ = _rows(parts, 2)
    standings = {run: standing for run, record in rows if (standing := read_standing(record))}
    return compose(job, began, results, standings, limit)


def read_run(
    job: str, run: str, parts: Sequence[Reply], triggers: Mapping[str, Trigger]
) -> tuple[RunRecord | None, int]:
    """Put together what the look script tells of a run: its record, attempts and results.

    Answers also the end of its lease or wait, 0 where it is over.
    """
    standing = read_standing(str(parts[0]))
    rows, parts = _rows(parts[1:], 6)
    began = [entry for row in rows if (entry := _began(row, triggers))]
    rows, _ = _rows(parts, 2)
    results = [result for row in rows if (result := _result(row[0]))]
    return compose_run(job, run, began, results, standing), standing.end if standing else 0


def _rows(parts: Sequence[Reply], width: int) -> tuple[list[list[str]], Sequence[Reply]]:
    end = 1 + width * int(str(parts[0]))
    texts = [str(part) for part in parts[1:end]]
    return [texts[i : i + width] for i in range(0, len(texts), width)], parts[end:]


def _is_whole(text: str) -> bool:
    return re.fullmatch("[0-9]{1,15}", text) is not None and int(text) <= FARTHEST


def _is_run(text: str) -> bool:
    return RUN_ID.fullmatch(text) is not None and order_of(text) <= FARTHEST


def _began(row: Sequence[str], triggers: Mapping[str, Trigger]) -> Began | None:
    run, attempt, fence, start, trigger, runner = row
    sound = _is_run(run) and all(_is_whole(number) for number in (attempt, fence, start))
    if not sound or trigger not in triggers:
        return None
    return Began(run, int(attempt), int(fence), int(start), triggers[trigger], runner)


def _result(member: str) -> Result | None:
    run, attempt, status, end, error = (*member.split(" ", 4), "", "", "", "")[:5]
    if not (_is_run(run) and _is_whole(attempt) and _is_whole(end)):
        return None
    if status not in {known.value for known in RunStatus}:
        return None
    return Result(run, int(attempt), RunStatus(status), int(end), error)


def read_standing(record: str) -> Standing | None:
    """Where a packed record says that its run stands; None where it makes no sense."""
    match = _RECORD.fullmatch(record)
    if match is None:
        return None
    letter, attempt, outcome = match.group("open", "attempt", "outcome")
    if letter is None:
        letter, attempt, outcome = match.group("closed", "tried", "how")
    elif not 1 <= int(attempt) <= int(match["most"]):
        return None
    return Standing(State(letter), int(attempt), Outcome(outcome), int(match["end"] or 0))
