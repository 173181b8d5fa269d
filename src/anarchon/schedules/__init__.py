"""Schedules: when a job is due. Pure: no clock is read and nothing is remembered but answers.

`slots_of` turns what a user declared into `Slots`, which the engine asks.
"""

from __future__ import annotations

from anarchon.schedules.changes import ClockChange, clock_changes
from anarchon.schedules.cron import Cron
from anarchon.schedules.every import Every
from anarchon.schedules.protocol import Schedule
from anarchon.schedules.slots import Slots, slots_of

__all__ = ["ClockChange", "Cron", "Every", "Schedule", "Slots", "clock_changes", "slots_of"]
