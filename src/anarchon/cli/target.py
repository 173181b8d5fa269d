"""`module:scheduler`: imports what a user names, starts nothing, and says what is wrong with it."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import pkgutil
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

import anarchon
from anarchon import AnarchonError, ConfigurationError, Scheduler
from anarchon.cli.nearest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from types import ModuleType, TracebackType

_PACKAGE = str(Path(anarchon.__file__).parent)
_LOADERS = (__file__, importlib.__file__, "<frozen importlib")
_BETWEEN = {"asyncio", "concurrent.futures"}
"""Packages of the standard library through which the user's code may have called ours."""


class TargetError(ConfigurationError):
    """The module, or the factory in it, raised an exception; `trace` shows where."""

    def __init__(self, message: str, trace: str) -> None:
        super().__init__(message)
        self.trace: str = trace


def load(target: str) -> Scheduler:
    """Return the scheduler at `module:attribute`, or the one that a factory there makes.

    Raises `ConfigurationError`, and `TargetError` where the user's own code raised something.
    """
    name, _, path = target.partition(":")
    _check(target, name, path)
    folder = str(Path.cwd())
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)
    with _nothing_starts():
        module = _import(name)
        found = _attribute(module, path)
        if isinstance(found, Scheduler):
            return found
        return _made_by(found, module, path)


def _check(target: str, name: str, path: str) -> None:
    # What may be a URL gone wrong is not repeated: it may hold a password.
    if "@" in target or "//" in target:
        message = "TARGET is neither module:scheduler nor the URL of a store"
        raise ConfigurationError(message)
    if name.endswith(".py") or "/" in name or os.sep in name:
        dotted = name.removesuffix(".py").replace(os.sep, "/").strip("./").replace("/", ".")
        message = f"TARGET {target!r}: give a module, not a file: {dotted}:{path or 'scheduler'}"
        raise ConfigurationError(message)
    parts = [*name.split("."), *path.split(".")]
    if not all(part.isidentifier() for part in parts):
        before, dot, last = name.rpartition(".")
        guess = f"{before}:{last}" if dot and not path else f"{name.strip('.')}:scheduler"
        message = f"TARGET {target!r}: give module:scheduler, such as {guess}"
        raise ConfigurationError(message)


# -- the module ------------------------------------------------------------------------------------


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if _own_frames(error) is not None:  # some import inside it
            _told(error, f"{name} cannot be imported")
        message = f"there is no module {name!r} here{did_you_mean(name, _modules_beside(name))}"
        raise ConfigurationError(message) from error
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may raise anything
        _told(error, f"{name} cannot be imported")


def _modules_beside(name: str) -> Iterator[str]:
    parent, dot, _ = name.rpartition(".")
    package = sys.modules.get(parent)
    paths = getattr(package, "__path__", ()) if parent else [str(Path.cwd())]
    for module in pkgutil.iter_modules(paths):
        yield f"{parent}{dot}{module.name}"


@contextlib.contextmanager
def _nothing_starts() -> Generator[None]:
    """Refuse to start a scheduler meanwhile: a module that starts its own would do so twice.

    Whatever starts one, `run` and the background included, goes through `start`.
    """
    kept = Scheduler.start

    async def refuse(_scheduler: Scheduler, **_options: object) -> NoReturn:
        message = (
            "this starts the scheduler while its module is imported. Put it under"
            ' `if __name__ == "__main__":`, or where it is called later'
        )
        raise ConfigurationError(message)

    type.__setattr__(Scheduler, "start", refuse)
    try:
        yield
    finally:
        type.__setattr__(Scheduler, "start", kept)


# -- what is in it ---------------------------------------------------------------------------------


def _attribute(module: ModuleType, path: str) -> object:
    found: object = module
    so_far = module.__name__
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            message = f"{so_far} has no {part!r}{did_you_mean(part, _candidates(found))}"
            raise ConfigurationError(message) from error
        so_far = f"{so_far}.{part}"
    return found


def _candidates(holder: object) -> list[str]:
    """The names of the schedulers in a module or object, or of what may lead to one."""
    named = {name: getattr(holder, name, None) for name in dir(holder) if not name.startswith("_")}
    found = [name for name, value in named.items() if isinstance(value, Scheduler)]
    return found or [
        name
        for name, value in named.items()
        if inspect.isroutine(value)
        and getattr(value, "__module__", "") == getattr(holder, "__name__", None)
    ]


def _made_by(found: object, module: ModuleType, path: str) -> Scheduler:
    where = f"{module.__name__}:{path}"
    if (why := _no_factory(found, module)) is not None:
        message = f"{where} is {why}, not a Scheduler{_others(module, path)}"
        raise ConfigurationError(message)
    try:
        made: object = cast("Callable[[], object]", found)()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may raise anything
        _told(error, f"{where}() failed")
    if not isinstance(made, Scheduler):
        message = f"{where}() returned an object of type {type(made).__name__}, not a Scheduler"
        raise ConfigurationError(message)
    return made


def _no_factory(found: object, module: ModuleType) -> str | None:
    """Why this is not to be called, if so: a job that is named by mistake must not run."""
    if inspect.isclass(found):
        own = issubclass(found, Scheduler) and found is not Scheduler
        return None if own else f"the class {found.__name__} itself"
    if not callable(found):
        return f"an object of type {type(found).__name__}"
    jobs = {job.name for each in _schedulers(module).values() for job in each.jobs}
    if getattr(found, "__qualname__", None) in jobs:
        return "a job"
    if inspect.iscoroutinefunction(found):
        return "a coroutine function"
    try:
        signature = inspect.signature(found)
        signature.bind()
    except (TypeError, ValueError):
        return "a function that needs arguments"
    if signature.return_annotation in {None, "None"}:
        return "a function that returns nothing"
    return None


def _others(module: ModuleType, path: str) -> str:
    names = [f"{module.__name__}:{name}" for name in _schedulers(module)]
    if len(names) == 1:
        return f"; did you mean {names[0]}?"
    return did_you_mean(f"{module.__name__}:{path}", names)


def _schedulers(module: ModuleType) -> dict[str, Scheduler]:
    return {name: each for name, each in vars(module).items() if isinstance(each, Scheduler)}


# -- what was raised in it -------------------------------------------------------------------------


def _told(error: BaseException, what: str) -> NoReturn:
    """Raise what tells of an exception in the user's code: ours by its place, others in full."""
    frames = _own_frames(error)
    if isinstance(error, AnarchonError):
        message = f"{_place(frames)}{error}"
        raise ConfigurationError(message) from error
    if isinstance(error, SystemExit):
        message = f"{_place(frames)}{what}: it called sys.exit({error.code!r})"
        raise ConfigurationError(message) from error
    trace = "".join(traceback.format_exception(type(error), error, frames))
    last = traceback.format_exception_only(type(error), error)[-1].strip()
    raise TargetError(f"{what}: {last}", trace) from error.with_traceback(frames)


def _own_frames(error: BaseException) -> TracebackType | None:
    """The part of a traceback that begins in the user's code; None if it never gets there."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_LOADERS):
        trace = trace.tb_next
    return trace


def _place(frames: TracebackType | None) -> str:
    """The line of the user's code that called into this package, as the start of a message."""
    last = None
    for frame, line in traceback.walk_tb(frames):
        if frame.f_code.co_filename.startswith(_PACKAGE):
            break
        if frame.f_globals.get("__package__") not in _BETWEEN:
            last = (frame.f_code.co_filename, line)
    if last is None:
        return ""
    name, line = last
    with contextlib.suppress(ValueError):
        name = str(Path(name).relative_to(Path.cwd()))
    return f"{name}:{line}: "
