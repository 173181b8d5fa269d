"""What a pursuit goes after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from anarchon.backends.base import order_of
from anarchon.runs import Trigger

if TYPE_CHECKING:
    from anarchon.jobs import Job


@dataclass(frozen=True, slots=True)
class Chase:
    """What a pursuit goes after. `deadline` and `last` are moments of the server's clock, in ms."""

    job: Job
    run: str
    trigger: Trigger
    deadline: int
    last: int
    since_applies: bool = False
    seen: int = 0

    @property
    def slot(self) -> int:
        """What the store compares with its clock; 0 for a manual run."""
        return 0 if self.trigger is Trigger.MANUAL else order_of(self.run)
