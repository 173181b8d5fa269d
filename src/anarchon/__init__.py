"""Distributed cron without a leader: every instance schedules, exactly one runs each due run."""

from anarchon.backends.memory import MemoryBackend
from anarchon.backends.redis.backend import RedisBackend, ValkeyBackend
from anarchon.backends.redis.strategies.lease import Lease
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
from anarchon.jobs import JobSettings
from anarchon.runs import AttemptRecord, Run, RunRecord, RunStatus, Trigger
from anarchon.scheduler import Health, JobInfo, Scheduler
from anarchon.schedules import ClockChange, Cron, Every, Schedule, clock_changes

__version__ = "0.1.0"

__all__ = [
    "AnarchonError",
    "AttemptRecord",
    "ClockChange",
    "ConfigurationError",
    "Cron",
    "Environment",
    "Every",
    "Health",
    "JobInfo",
    "JobSettings",
    "Lease",
    "MemoryBackend",
    "NoRetry",
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
