"""What is told of an exception that user code raised, however badly it behaves.

Its text, its attributes and even its class may raise when they are looked at, or be enormous.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import types

    Triple: TypeAlias = tuple[type[BaseException], BaseException, types.TracebackType | None]

ERROR_HEAD = 500
ERROR_TAIL = 3000
MOST_FRAMES = 500
MOST_CAUSES = 50
LONGEST_TEXT = 50_000


def error_text(error: BaseException) -> str:
    """An exception in at most a few kilobytes: its line and the end of its traceback."""
    try:
        name = str(type.__getattribute__(type(error), "__qualname__"))
    except BaseException:  # noqa: BLE001 - a metaclass of the user's
        name = "an exception"
    try:
        head = f"{name}: {error}" if str(error) else name
    except BaseException:  # noqa: BLE001 - the user's own __str__ may raise anything
        head = f"{name} (its text cannot be had)"
    text = head[:ERROR_HEAD]
    if frames := _frames(error):
        text += "\n" + frames[-ERROR_TAIL:].rstrip()
    return text.encode("utf-8", "replace").decode("utf-8")


def _frames(error: BaseException) -> str:
    try:
        return "".join(traceback.format_tb(_in_the_job(error), limit=-20))
    except BaseException:  # noqa: BLE001 - a traceback is a courtesy
        return ""


def _in_the_job(error: BaseException) -> types.TracebackType | None:
    """The part of a traceback that lies in the job: the frames of this package come before it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__package__") == __package__:
        trace = trace.tb_next
    return trace


def loggable(error: BaseException) -> Triple | None:
    """An exception as logging takes it; None where to write it out would hold up the loop.

    As three parts, since logging asks whether the exception itself is true, which it may deny.
    """
    try:
        if _is_enormous(error):
            return None
        return type(error), error, _in_the_job(error) or error.__traceback__
    except BaseException:  # noqa: BLE001 - what cannot be looked at cannot be logged
        return None


def _is_enormous(error: BaseException) -> bool:
    """Whether an exception, or one that it came from, is too much to be written out."""
    seen: set[int] = set()
    todo = [error]
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if len(seen) > MOST_CAUSES or len(str(one)) > LONGEST_TEXT or _is_deep(one.__traceback__):
            return True
        within: tuple[BaseException, ...] = ()
        if isinstance(one, BaseExceptionGroup):
            within = one.exceptions  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
        if len(within) > MOST_CAUSES:
            return True
        further = (one.__cause__, one.__context__, *within)
        todo += [other for other in further if other is not None]
    return False


def _is_deep(trace: types.TracebackType | None) -> bool:
    frames = 0
    while trace is not None and frames <= MOST_FRAMES:
        trace, frames = trace.tb_next, frames + 1
    return frames > MOST_FRAMES
