"""The options of a scheduler, checked; and words for what is not one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anarchon.durations import Duration, milliseconds
from anarchon.engine.environment import Environment
from anarchon.engine.heartbeat import BELIEVED_SHARE
from anarchon.engine.instance import EngineOptions
from anarchon.errors import ConfigurationError
from anarchon.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGEST_HISTORY = 1_000_000
MOST_AT_ONCE = 1_000_000
LONGEST_RUNNER = 200
SLOWEST_CALL_MS = 5000
SHORTEST_LEASE_MS = 100


def refuse_unknown(given: Iterable[str], known: Iterable[str]) -> None:
    """Raise `ConfigurationError` for an option of a job that does not exist."""
    known = tuple(known)
    for option in given:
        if option not in known:
            message = f"a job has no option {option!r}{did_you_mean(option, known)}"
            raise ConfigurationError(message)


def checked_runner(runner: object) -> str | None:
    """The name of an instance, if one is given. Raises `ConfigurationError`."""
    if runner is None:
        return None
    if isinstance(runner, str) and runner.isprintable() and 0 < len(runner) <= LONGEST_RUNNER:
        return runner
    message = (
        f"runner={runner!r}: give a printable text of at most {LONGEST_RUNNER} characters,"
        " different in each instance"
    )
    raise ConfigurationError(message)


def whole_number(value: object, option: str, most: int) -> int:
    """A whole number from 1 to `most`. Raises `ConfigurationError`; `option` names it."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        message = f"{option}={value!r}: give a whole number from 1 to {most}"
        raise ConfigurationError(message)
    return value


def refuse_what_is_no_backend(backend: object) -> None:
    """Raise `ConfigurationError` for what cannot be a backend."""
    if isinstance(backend, type) or not (
        hasattr(backend, "connect") and hasattr(backend, "shares_connection")
    ):
        message = (
            f"backend= was given a {type(backend).__name__}: give a backend, such as"
            " RedisBackend(redis=...), ValkeyBackend(valkey=...) or MemoryBackend()"
        )
        raise ConfigurationError(message)


def refuse_what_is_no_environment(environment: object) -> None:
    """Raise `ConfigurationError` for what is no `Environment`."""
    if not isinstance(environment, Environment):
        message = f"environment= was given a {type(environment).__name__}: give an Environment"
        raise ConfigurationError(message)


def engine_options(  # noqa: PLR0913 - the options of a scheduler
    lease: Duration,
    heartbeat: Duration | None,
    history_size: int,
    history_ttl: Duration | None,
    max_concurrent_runs: int | None,
    max_threads: int,
) -> EngineOptions:
    """Check a scheduler's options. Raises `ConfigurationError`."""
    lease_ms = milliseconds(lease, "lease", least=SHORTEST_LEASE_MS)
    heartbeat_ms = (
        lease_ms // 3 if heartbeat is None else milliseconds(heartbeat, "heartbeat", least=1)
    )
    # A heartbeat must be answered while the holder believes in its lease.
    believed = round(lease_ms * BELIEVED_SHARE)
    rest, least_rest = believed - heartbeat_ms, lease_ms // 10
    if rest < least_rest:
        message = (
            f"heartbeat={heartbeat!r} leaves no time before the lease of {lease!r} is over: give at"
            f" most {(believed - least_rest) / 1000:g} s, better a third of the lease"
        )
        raise ConfigurationError(message)
    return EngineOptions(
        lease=lease_ms,
        heartbeat=heartbeat_ms,
        call_timeout=min(SLOWEST_CALL_MS, rest // 2),
        history_size=whole_number(history_size, "history_size", LARGEST_HISTORY),
        history_ttl=0 if history_ttl is None else milliseconds(history_ttl, "history_ttl", least=1),
        max_concurrent_runs=(
            None
            if max_concurrent_runs is None
            else whole_number(max_concurrent_runs, "max_concurrent_runs", MOST_AT_ONCE)
        ),
        max_threads=whole_number(max_threads, "max_threads", MOST_AT_ONCE),
    )
