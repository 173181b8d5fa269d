"""What the jobs of these examples do: they pretend to work, and write down that they did.

The file that JOURNAL names gets a line of JSON at each start and end of a run, from all processes.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anarchon import Run

JOURNAL = Path(os.environ.get("JOURNAL", "journal.log"))
SECONDS = float(os.environ.get("WORK_SECONDS", "2"))


@contextmanager
def at_work(run: Run) -> Iterator[None]:
    """Note the start and the end of what is done inside, or that it was cut short."""
    note("start", run)
    try:
        yield
    except BaseException:
        note("cut short", run)
        raise
    note("end", run)


def note(what: str, run: Run) -> None:
    """Append a line, in one write: other processes append to the same file."""
    line = {
        "what": what,
        "job": run.job,
        "slot": run.slot,
        "attempt": run.attempt,
        "fence": run.fence,
        "trigger": run.trigger,
        "pid": os.getpid(),
        "at": time.time(),
    }
    with JOURNAL.open("a") as file:
        file.write(json.dumps(line) + "\n")
