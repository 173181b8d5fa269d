"""The seam to a client library: two calls, and errors sorted into refused and unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from anarchon.errors import StoreError, StorePermissionError, StoreRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

Argument: TypeAlias = str | int
"""A part of a command."""

Reply: TypeAlias = "str | int | list[Reply] | None"
"""A reply, with bytes decoded. Scripts answer one flat list of texts and integers."""


class NoScript(StoreRefused):
    """The server does not have the script that was called by its digest; nothing happened."""


class Client(Protocol):
    """What anarchon needs of a client library.

    Both calls raise `StoreUnavailable` when it is unknown whether the command ran, `StoreRefused`
    when it did not, and another `StoreError` for what repeating does not mend.
    """

    async def send(self, *command: Argument) -> Reply:
        """Send one command and answer its reply."""
        ...

    async def send_many(self, commands: Sequence[Sequence[Argument]]) -> list[Reply]:
        """Send several commands in order on one connection, and answer their replies."""
        ...

    async def close(self) -> None:
        """Close what was opened here; a client that was given stays open."""
        ...


_NOT_NOW = (
    "READONLY",
    "OOM",
    "MISCONF",
    "NOREPLICAS",
    "CLUSTERDOWN",
    "LOADING",
    "BUSY",
    "TRYAGAIN",
    "MASTERDOWN",
)
_NOT_ALLOWED = (
    "NOAUTH",
    "WRONGPASS",
    "NOPERM",
    "invalid password",
    "invalid username-password",
    "can't run this command",
    "can't access at least one of the keys",
    "ACL failure",
)


def error_of_reply(text: str) -> StoreError:
    """The error that an error reply stands for.

    The code words are searched in the whole text: servers before 7.0 wrap what a script met in a
    plain ERR, and some clients put words of their own in front.
    """
    if "NOSCRIPT" in text or "NoScriptError" in text:
        return NoScript(text)
    if any(word in text for word in _NOT_ALLOWED):
        return StorePermissionError(
            f"the store does not let this user do it: {text}. Check user and password, and the"
            " permissions listed in docs/keys.md"
        )
    if any(word in text for word in _NOT_NOW):
        return StoreRefused(text)
    return StoreError(text)


def decoded(reply: object) -> Reply:
    """A client's reply with bytes turned into text, whatever `decode_responses` says."""
    if isinstance(reply, bytes):
        return reply.decode("utf-8", "replace")
    if isinstance(reply, dict):  # some clients take INFO apart by themselves
        pairs = cast("dict[object, object]", reply).items()
        return [decoded(part) for pair in pairs for part in pair]
    if isinstance(reply, (list, tuple)):
        return [decoded(part) for part in cast("list[object]", reply)]
    if reply is None or isinstance(reply, (str, int)):
        return reply
    return str(reply)
