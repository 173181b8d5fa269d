"""Which client library an object belongs to, without importing any that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from anarchon.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from anarchon.backends.redis.clients.base import Client

ACCEPTED = (
    "a URL (redis://, rediss://, unix://), a mapping of redis-py's keyword options, or a"
    " redis.asyncio.Redis client"
)


def connector(given: object, option: str) -> tuple[Callable[[float], Client], bool]:
    """How to make a client from what was `given`, and whether it is opened (and closed) here.

    Raises `ConfigurationError` for an object of an unknown kind; `option` names it.
    """
    if isinstance(given, str):
        return _by_url(given, option), True
    if _is_mapping(given):
        return _by_options(cast("Mapping[str, Any]", given)), True
    if _is_redis_py(given):
        return _given_redis_py(given), False
    kind = f"{type(given).__module__}.{type(given).__qualname__}".removeprefix("builtins.")
    message = f"{option}= was given a {kind}; accepted are: {ACCEPTED}"
    raise ConfigurationError(message)


def _is_mapping(given: object) -> bool:
    return (
        hasattr(given, "keys")
        and hasattr(given, "__getitem__")
        and not hasattr(given, "execute_command")
    )


def _is_redis_py(given: object) -> bool:
    # By module: the classes of other libraries are no subclasses, and are not imported to see it.
    return any(
        cls.__module__ == "redis.asyncio.client" and cls.__name__ == "Redis"
        for cls in type(given).__mro__
    )


def _by_url(url: str, option: str) -> Callable[[float], Client]:
    if not url.startswith(("redis://", "rediss://", "unix://")):
        message = (
            f"{option}= is no URL of a store: it must begin with redis://, rediss:// or unix://"
        )
        raise ConfigurationError(message)
    from anarchon.backends.redis.clients import redis_py  # noqa: PLC0415 - only when it is used

    redis_py.from_url(url, 1.0)  # refuses a malformed URL where it is given; connects nothing
    return lambda timeout: redis_py.from_url(url, timeout)


def _by_options(options: Mapping[str, Any]) -> Callable[[float], Client]:
    from anarchon.backends.redis.clients import redis_py  # noqa: PLC0415 - only when it is used

    redis_py.from_options(options, 1.0)  # refuses unknown options where they are given
    return lambda timeout: redis_py.from_options(options, timeout)


def _given_redis_py(given: object) -> Callable[[float], Client]:
    from anarchon.backends.redis.clients import redis_py  # noqa: PLC0415 - only when it is used

    return lambda _timeout: redis_py.RedisPyClient(cast("Any", given), owned=False)
