"""What a process of the demo says to the one that started it, a line each.

The bodies of the jobs themselves say when they begin and end, so that the tally rests on what was
really done and not on what the store believes.
"""

from __future__ import annotations

import enum
import json
import os
import threading
from dataclasses import astuple, dataclass


class Kind(enum.StrEnum):
    """What is said."""

    UP = "up"
    """The instance is ready. `detail`: by how many milliseconds this host is ahead of the store."""
    BEGAN = "began"
    """The body of an attempt began."""
    BEAT = "beat"
    """The lease of a run was renewed just now; which attempt's is not said."""
    DONE = "done"
    """The body ended with success."""
    FAILED = "failed"
    """The body ended with an error of its own."""
    STOPPED = "stopped"
    """The body was told to stop before its end."""
    SKIPPED = "skipped"
    """The instance was told that another run of the job was live at this slot."""


@dataclass(frozen=True, slots=True)
class Record:
    """One thing said by the process `pid` at `at`, in milliseconds of this host's clock."""

    kind: Kind
    pid: int
    at: int
    job: str = ""
    slot: int = 0
    attempt: int = 0
    detail: int = 0

    def line(self) -> bytes:
        """The record as a line."""
        return json.dumps(astuple(self), separators=(",", ":")).encode() + b"\n"


def record_of_line(line: bytes) -> Record:
    """Read a line. Raises `ValueError` for what is no record."""
    try:
        kind, *rest = json.loads(line)
        return Record(Kind(kind), *rest)
    except TypeError as error:
        message = f"no record: {line!r}"
        raise ValueError(message) from error


class Teller:
    """Says records into a pipe; called from any thread."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._turn = threading.Lock()

    def tell(self, record: Record) -> None:
        """Say it whole and at once: a process killed the next moment has said it, or nothing."""
        try:
            with self._turn:
                os.write(self._pipe, record.line())
        except OSError:
            return  # nobody listens any more; that is noticed where the other pipe ends
