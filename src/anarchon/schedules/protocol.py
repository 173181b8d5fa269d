"""What a schedule is, to anarchon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime


class Schedule(Protocol):
    """Anything that can say when a job is due.

    `Cron` and `Every` are schedules; an object of your own needs these two members and nothing
    else. The answers must depend on the schedule and the moment alone, never on the instance
    or on when it started: otherwise instances disagree on what is due.
    """

    @property
    def key(self) -> str:
        """Names the schedule. A changed key means a changed schedule."""
        ...

    def next_after(self, moment: datetime, /) -> datetime | None:
        """Return the first slot strictly after an aware `moment`, aware too; None: never again."""
        ...
