"""Distributed cron without a leader: every instance schedules, exactly one runs each due run."""

from anarchon.backends.memory import MemoryBackend
from anarchon.backends.redis.backend import RedisBackend, ValkeyBackend
from anarchon.backends.redis.strategies.lease import Lease
from anarchon.background import BackgroundScheduler
from anarchon.engine.environment import Environment
from anarchon.errors import (
    AnarchonError,
    ConfigurationError,
    NoRetry,
    RunMoved,
    RunRefused,
    ScheduleError,
    SchedulerStateError,
    StoreError,
    StoreFormatError,
    StorePermissionError,
    StoreRefused,
    StoreServerError,
    StoreUnavailable,
    UnknownJobError,
)
from anarchon.events import Event, EventName
from anarchon.jobs import JobSettings
from anarchon.reports import (
    Explanation,
    Finding,
    Health,
    InstanceInfo,
    JobInfo,
    JobState,
    Reason,
)
from anarchon.runs import AttemptRecord, Run, RunRecord, RunStatus, Trigger
from anarchon.scheduler import Scheduler
from anarchon.schedules import ClockChange, Cron, Every, Schedule, clock_changes
from anarchon.version import __version__ as __version__

__all__ = [
    "AnarchonError",
    "AttemptRecord",
    "BackgroundScheduler",
    "ClockChange",
    "ConfigurationError",
    "Cron",
    "Environment",
    "Event",
    "EventName",
    "Every",
    "Explanation",
    "Finding",
    "Health",
    "InstanceInfo",
    "JobInfo",
    "JobSettings",
    "JobState",
    "Lease",
    "MemoryBackend",
    "NoRetry",
    "Reason",
    "RedisBackend",
    "Run",
    "RunMoved",
    "RunRecord",
    "RunRefused",
    "RunStatus",
    "Schedule",
    "ScheduleError",
    "Scheduler",
    "SchedulerStateError",
    "StoreError",
    "StoreFormatError",
    "StorePermissionError",
    "StoreRefused",
    "StoreServerError",
    "StoreUnavailable",
    "Trigger",
    "UnknownJobError",
    "ValkeyBackend",
    "clock_changes",
]
