"""Looks at a store and at the instances that share it; says what is wrong and what to do."""

from __future__ import annotations

import json
import statistics
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from anarchon.engine.presence import SILENT_MS, definitions_of
from anarchon.errors import (
    StoreFormatError,
    StorePermissionError,
    StoreRefused,
    StoreServerError,
    StoreUnavailable,
)
from anarchon.reports import Finding, InstanceInfo
from anarchon.runs import moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from anarchon.backends.base import Presences, Store, StoreFacts
    from anarchon.engine.clock import Clock
    from anarchon.jobs import Job

ASKED = 9
"""How often the time is asked for, to tell the latency."""
SLOW_MS = 50
FAR_MS = 1000
LAZY_MS = 1000
OVERDUE = timedelta(seconds=90)

NOBODY = "Start one; if one runs, it uses another server, database or prefix."

UNREACHED = (
    "server",
    "Is the address right, the server up, and the way to it open from this host?",
)
_ADVICE: dict[type[Exception], tuple[str, str]] = {
    StoreFormatError: ("format", "Upgrade anarchon here, or choose another prefix."),
    StorePermissionError: ("permissions", "Grant what is missing: see the page on keys."),
    StoreServerError: ("server", "Point anarchon at the primary."),
    StoreUnavailable: UNREACHED,
    StoreRefused: UNREACHED,
}


async def check_up(store: Store, clock: Clock, jobs: Iterable[Job]) -> tuple[Finding, ...]:
    """Look at everything; `jobs` are those declared here."""
    findings: list[Finding] = []
    try:
        warnings = await store.open()
        findings += [
            *_about_server(await store.facts(), warnings),
            Finding("permissions", "ok", "every command that anarchon needs may be called"),
            Finding("format", "ok", "the store's format is the one that this version writes"),
        ]
        findings += await _about_time(store, clock)
        presences = await store.instances()
    except Exception as error:  # noqa: BLE001 - what is wrong is a finding
        subject, advice = _ADVICE.get(type(error), ("store", "See the server's own log."))
        text = str(error) or type(error).__name__
        return (*findings, Finding(subject, "error", text, advice))
    instances = instances_of(presences)
    about_jobs = _about_jobs(instances, definitions_of(jobs))
    now = moment(presences.time)
    return (*findings, *_about_instances(instances, now), *about_jobs)


def _about_server(facts: StoreFacts, warnings: tuple[str, ...]) -> list[Finding]:
    name = facts.server or "it answers; its version may not be asked for (no permission for INFO)"
    findings = [Finding("server", "ok", name)]
    if warnings:
        findings += [
            Finding("eviction", "warning", text, "Set maxmemory-policy noeviction.")
            for text in warnings
        ]
    elif facts.server:
        findings.append(Finding("eviction", "ok", "the server does not evict anarchon's keys"))
    if facts.kept is False:
        findings.append(
            Finding(
                "persistence",
                "warning",
                "no append-only file: a restart of the server forgets the newest runs, or all",
                "Set appendonly yes, so that no run is started twice after a crash.",
            )
        )
    return findings


async def _about_time(store: Store, clock: Clock) -> list[Finding]:
    took: list[float] = []
    ahead: list[float] = []
    for _ in range(ASKED):
        sent, wall = clock.boot(), clock.wall()
        time = await store.clock("", "", 0)
        took.append((clock.boot() - sent) * 1000)
        ahead.append(wall + took[-1] / 2 - time)
    latency = statistics.median(took)
    slow = latency > SLOW_MS
    found = [
        Finding(
            "latency",
            "warning" if slow else "ok",
            f"a call takes {latency:.1f} ms (the slowest of {ASKED}: {max(took):.1f} ms)",
            "Put instances nearer to the store: each run starts so much later." if slow else "",
        )
    ]
    difference = statistics.median(ahead)
    side = "ahead of" if difference > 0 else "behind"
    far = abs(difference) > FAR_MS
    text = f"this host's clock is {abs(difference) / 1000:.3f} s {side} the store's"
    advice = "Runs follow the store's clock; keep both in step by NTP." if far else ""
    return [*found, Finding("clock", "warning" if far else "ok", text, advice)]


def instances_of(presences: Presences) -> tuple[InstanceInfo, ...]:
    """The instances as they told of themselves, without the silent and what makes no sense."""
    found: list[InstanceInfo] = []
    for shown in presences.instances:
        if shown.seen + SILENT_MS < presences.time:
            continue  # nobody was there to drop it
        told = _read(shown.told)
        jobs = told.get("jobs")
        found.append(
            InstanceInfo(
                runner=shown.runner,
                last_seen=moment(min(shown.seen, presences.time)),
                clock_ahead=_number(told.get("ahead")) / 1000,
                loop_lag=_number(told.get("lag")) / 1000,
                version=str(told.get("version", "")),
                jobs=_definitions(jobs),
                jobs_digest=str(told.get("digest", "")),
            )
        )
    return tuple(sorted(found, key=lambda info: info.runner))


def _read(told: str) -> Mapping[str, object]:
    try:
        value: object = json.loads(told)
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _definitions(value: object) -> Mapping[str, str] | None:
    if not isinstance(value, dict):
        return None
    return {str(k): str(v) for k, v in cast("Mapping[object, object]", value).items()}


def _about_instances(instances: Sequence[InstanceInfo], now: datetime) -> list[Finding]:
    found = [_about_instance(info, now) for info in instances]
    if all(_is_overdue(info, now) for info in instances):
        text = "no instance has shown itself in the last minute: nobody runs jobs here"
        found.append(Finding("instances", "error", text, NOBODY))
    elif not any(info.jobs_digest for info in instances):
        text = "no instance runs jobs on their schedules: those that are here wait for run_now"
        found.append(Finding("instances", "warning", text, NOBODY))
    return found


def _is_overdue(info: InstanceInfo, now: datetime) -> bool:
    return now - info.last_seen > OVERDUE


def _about_instance(info: InstanceInfo, now: datetime) -> Finding:
    troubles: list[str] = []
    advice: list[str] = []
    if _is_overdue(info, now):
        troubles.append("it shows itself once a minute, so it died, or does not reach the store")
        advice.append("Look whether it runs.")
    if abs(info.clock_ahead) * 1000 > FAR_MS:
        side = "ahead of" if info.clock_ahead > 0 else "behind"
        troubles.append(f"its clock is {abs(info.clock_ahead):.1f} s {side} the store's")
        advice.append("Keep the host's clock in step by NTP.")
    if info.loop_lag * 1000 > LAZY_MS:
        troubles.append(f"its event loop was {info.loop_lag:.1f} s late")
        advice.append("A job blocks its event loop: make it a plain function, or await.")
    seen = f"{info.runner}: last seen {info.last_seen:%H:%M:%S} UTC"
    text = f"{seen}; {'; '.join(troubles)}" if troubles else seen
    return Finding("instance", "warning" if troubles else "ok", text, " ".join(advice))


def _about_jobs(instances: Iterable[InstanceInfo], declared: Mapping[str, object]) -> list[Finding]:
    """Compare the definitions of jobs between all that tell them, this process included."""
    telling = {info.runner: info.jobs for info in instances if info.jobs is not None}
    digests = {info.jobs_digest for info in instances if info.jobs_digest}
    if declared:
        digests.add(str(declared["digest"]))
        if (here := _definitions(declared["jobs"])) is not None:
            telling["this process"] = here
    advice = (
        "While a deploy is under way this passes. Otherwise deploy one version everywhere, or give"
        " a changed job another name."
    )
    found: list[Finding] = []
    for name in sorted({name for jobs in telling.values() for name in jobs}):
        versions: dict[str, list[str]] = {}
        for runner, jobs in telling.items():
            versions.setdefault(jobs.get(name, ""), []).append(runner)
        if len(versions) > 1:
            told = "; ".join(
                f"{definition or 'not declared'} ({', '.join(sorted(runners))})"
                for definition, runners in sorted(versions.items())
            )
            found.append(Finding("job", "warning", f"{name} differs: {told}", advice))
    if not found and len(digests) > 1:
        text = "instances declare different jobs, too many of them to tell which"
        found.append(Finding("jobs", "warning", text, advice))
    if not found and (telling or digests):
        found.append(Finding("jobs", "ok", "all instances declare the same jobs"))
    return found
