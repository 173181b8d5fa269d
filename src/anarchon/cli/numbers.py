"""Numbers in arguments, refused in words of our own."""

from __future__ import annotations

from anarchon import ConfigurationError


def whole_number(text: str, option: str, least: int, most: int) -> int:
    """Return the whole number that the text of an option stands for.

    Raises `ConfigurationError` where it is none, or not from `least` to `most`.
    """
    digits = text.strip()
    # Longer ones are out of bounds, and no work for int().
    if digits.isascii() and digits.isdecimal() and len(digits) <= len(str(most)):
        number = int(digits)
        if least <= number <= most:
            return number
    message = f"{option} {text[:40]!r}: give a whole number from {least} to {most}"
    raise ConfigurationError(message)
