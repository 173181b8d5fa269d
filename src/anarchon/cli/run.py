"""`anarchon run`: an instance as a process of its own."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import signal
import sys
from typing import TYPE_CHECKING

from anarchon import AnarchonError
from anarchon.cli.asking import Code, code_of
from anarchon.cli.logs import OWN, LogJson, LogLevel, configure
from anarchon.cli.target import TargetError

if TYPE_CHECKING:
    from types import FrameType


def run_target(target: Code, *, log_json: LogJson = False, log_level: LogLevel = "info") -> int:
    """Run the jobs of a scheduler until SIGTERM or Ctrl-C.

    Running jobs then get the scheduler's shutdown_timeout; a second signal ends that wait. TARGET
    is the module, as for import, and the name of the scheduler in it, or of a function that makes
    one. Logs go to standard error.
    """
    configure(log_level, as_json=log_json)
    with contextlib.suppress(KeyboardInterrupt):  # asked to end before it had begun
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.default_int_handler)
        try:
            code_of(target, "run").run()
        except Exception as error:
            if not log_json:
                raise
            return _told(error)
        _end_at_once_when_told_again()
    return 0


def _told(error: Exception) -> int:
    """Log what ends the process, so that the log holds JSON to its last line."""
    if isinstance(error, AnarchonError):
        OWN.critical(
            "%s",
            error,
            extra={"event": "cli.refused"},
            exc_info=error.__cause__ if isinstance(error, TargetError) else None,
        )
        return 2
    OWN.critical("unexpected error: %s", error, extra={"event": "cli.failed"}, exc_info=error)
    return 1


def _end_at_once_when_told_again() -> None:
    """A further signal finds nothing left to stop."""

    def end(_number: int, _frame: FrameType | None) -> None:
        # The process ends here in any case, with whatever of its output can still be written.
        with contextlib.suppress(Exception):
            logging.shutdown()
            sys.stdout.flush()
        os._exit(0)

    def ignore() -> None:
        # The interpreter, which takes Python's handlers away at its end, leaves this as it is.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    atexit.register(ignore)
