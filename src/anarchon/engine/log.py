"""Log lines with a stable event name and fields, under ``anarchon.*``.

Every line carries ``event`` and its fields as attributes of the record (by ``extra``). The library
adds a null handler and configures nothing.
"""

from __future__ import annotations

import contextlib
import logging

from anarchon.engine.error_text import error_text, loggable

logging.getLogger("anarchon").addHandler(logging.NullHandler())

SCHEDULER = logging.getLogger("anarchon.scheduler")
CLAIMS = logging.getLogger("anarchon.claims")
RUNS = logging.getLogger("anarchon.runs")
STORE = logging.getLogger("anarchon.store")


def tell(
    logger: logging.Logger,
    level: int,
    event: str,
    message: str,
    error: BaseException | None = None,
    /,
    **fields: object,
) -> None:
    """Log `message` with its event name, its fields, and the error's traceback if there is one.

    Of an error that is enormous only the shortened text is told.
    """
    if not logger.isEnabledFor(level):
        return
    triple = None if error is None else loggable(error)
    if error is not None and triple is None:
        message = f"{message}: {error_text(error)}"
    # An application's own filters, factories and handlers are called here; one that raises must not
    # cost a run.
    with contextlib.suppress(Exception):
        try:
            logger.log(level, "%s", message, exc_info=triple, extra={"event": event, **fields})
        except KeyError:  # a factory of the application has taken one of these names
            logger.log(level, "%s", message, exc_info=triple)
