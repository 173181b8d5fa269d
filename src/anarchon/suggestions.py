"""What to say of a word that is not known."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


MOST_SHOWN = 30


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the nearest known one, or all of them."""
    words = sorted(known)
    shown = ", ".join(words[:MOST_SHOWN]) + (", …" if len(words) > MOST_SHOWN else "")
    near = difflib.get_close_matches(word, words, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there are: {shown}" if words else ""
