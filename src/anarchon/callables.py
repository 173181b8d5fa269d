"""What can be told of a user's function before it is called."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING

from anarchon.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable


def refuse_what_is_no_function(function: object, advice: str) -> None:
    """Raise `ConfigurationError` for what cannot be called."""
    if not callable(function):
        message = f"{function!r} cannot be called: {advice}"
        raise ConfigurationError(message)


def innermost(function: object) -> object:
    """The function inside of partial ones."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def is_async(function: object) -> bool:
    """Whether calling it gives a coroutine."""
    inner = innermost(function)
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(
        getattr(inner, "__call__", None)  # noqa: B004 - an object with an async __call__
    )


def takes_argument(function: Callable[..., object], who: str, kind: str, argument: str) -> bool:
    """Whether it takes one argument, or none. `who` is it, `kind` and `argument` what it may be.

    Raises `ConfigurationError` for one that takes more, and for generator functions.
    """
    inner = innermost(function)
    call = getattr(inner, "__call__", None)  # noqa: B004 - an object whose __call__ is a generator
    for candidate in (inner, call):
        if inspect.isgeneratorfunction(candidate) or inspect.isasyncgenfunction(candidate):
            message = f"{who}: a generator function does nothing when called; return instead"
            raise ConfigurationError(message)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False  # builtins without a signature take nothing
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    takes = [p for p in parameters if p.kind in positional]
    needed = [p for p in takes if p.default is inspect.Parameter.empty]
    keywords = [
        p
        for p in parameters
        if p.kind is inspect.Parameter.KEYWORD_ONLY and p.default is inspect.Parameter.empty
    ]
    if len(needed) > 1 or keywords:
        names = ", ".join(p.name for p in (*needed, *keywords))
        message = (
            f"{who}: {kind} takes nothing, or one {argument}; this one needs {names}. Bind the rest"
            " with functools.partial"
        )
        raise ConfigurationError(message)
    return bool(needed)


def place_of(function: Callable[..., object]) -> str:
    """Where it is written, for messages."""
    inner = innermost(function)
    code = getattr(inspect.unwrap(inner) if callable(inner) else inner, "__code__", None)
    if code is None:
        return getattr(inner, "__module__", None) or "?"
    return f"{code.co_filename}:{code.co_firstlineno}"
