"""Every key name.

A job's keys share one hash tag, the part in braces, so that a cluster keeps them on one node and a
script can touch all of them. In the job's part `%`, braces and control characters are
percent-encoded, so that no two jobs of a prefix share a key or leave their hash slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from anarchon.errors import ConfigurationError

_ENCODED = {chr(c): f"%{c:02X}" for c in (*range(0x20), 0x7F)} | {
    "%": "%25",
    "{": "%7B",
    "}": "%7D",
}
_TABLE = str.maketrans(_ENCODED)

PARTS = ("state", "active", "slots", "runs", "results")
"""The last part of a job's keys, in the order in which the scripts take them."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one prefix. Raises `ConfigurationError` if it is empty or has braces."""

    prefix: str

    def __post_init__(self) -> None:
        """Refuse what would move all jobs to one hash slot, or split a job's keys over several."""
        prefix = cast("object", self.prefix)
        if not isinstance(prefix, str) or not prefix or "{" in prefix or "}" in prefix:
            message = (
                f"prefix={self.prefix!r}: give a text that is not empty and has no braces"
                " (they would decide on which node of a cluster the keys lie), such as 'cron:'"
            )
            raise ConfigurationError(message)

    def of_job(self, job: str) -> tuple[str, ...]:
        """The five keys of a job: state, active, slots, runs, results."""
        tag = f"{{{self.prefix}{job.translate(_TABLE)}}}"
        return tuple(f"{tag}:{part}" for part in PARTS)

    @property
    def format(self) -> str:
        """Holds the number of the store's format."""
        return f"{self.prefix}format"

    @property
    def instances(self) -> str:
        """Holds the presence of each instance."""
        return f"{self.prefix}instances"

    @property
    def never(self) -> str:
        """A key in a job's pattern that no job can have: a bare `%` is no encoded name."""
        return f"{{{self.prefix}%}}:state"
