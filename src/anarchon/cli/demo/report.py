"""What came of the demo, in a few lines; the tally is the last."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import TYPE_CHECKING

from anarchon.cli.demo.jobs import LEASE, PLANS
from anarchon.cli.demo.records import Kind
from anarchon.cli.demo.stage import shown
from anarchon.cli.demo.tally import Slot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from anarchon.cli.demo.play import Outcome
    from anarchon.cli.demo.stage import Kill

_HEADINGS = ("job", "runs", "skipped", "retried", "taken over", "late: median", "worst")


def report(outcome: Outcome) -> Iterator[str]:
    """Say what came of it, line by line."""
    tally = outcome.tally
    if tally.slots:
        yield from _table(outcome)
        yield ""
    for kill in outcome.stage.kills:
        yield from _story(kill)
    for slot, why in sorted(tally.doubled.items()):
        yield f"DOUBLED {shown(slot)}: {why}"
    for slot, why in sorted(tally.lost.items()):
        yield f"LOST {shown(slot)}: {why}"
    if outcome.broken_off:
        yield f"broken off; still under way and not counted: {len(tally.open)}"
    if tally.skipped:
        yield f"skipped while the run before was on, and not among the slots: {len(tally.skipped)}"
    yield tally.line()


def _story(kill: Kill) -> Iterator[str]:
    killed = f"instance {kill.instance} (pid {kill.pid})"
    yield f"{killed} was killed in the middle of {shown(kill.slot)};"
    if kill.taken_over is None:
        yield "nobody had taken that over yet"
    else:
        after = (kill.taken_over - kill.at) / 1000
        yield f"instance {kill.by} took it over {after:.1f} s later (the lease is {LEASE:g} s)"


def _table(outcome: Outcome) -> Iterator[str]:
    rows = [_HEADINGS, *_rows(outcome)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join((first.ljust(widths[0]), *cells))


def _rows(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    tally = outcome.tally
    late = _lateness(outcome)
    done, skipped = _by_job(tally.done), _by_job(tally.skipped)
    retried, taken_over = _by_job(tally.retried), _by_job(tally.taken_over)
    for plan in PLANS:
        of_job = late.get(plan.name, [])
        yield (
            plan.name,
            str(done[plan.name]),
            str(skipped[plan.name] or "-"),
            str(retried[plan.name] or "-"),
            str(taken_over[plan.name] or "-"),
            f"{statistics.median(of_job):.0f} ms" if of_job else "-",
            f"{max(of_job)} ms" if of_job else "-",
        )


def _by_job(slots: Iterable[Slot]) -> Counter[str]:
    return Counter(slot.job for slot in slots)


def _lateness(outcome: Outcome) -> dict[str, list[int]]:
    """By how many milliseconds first attempts began after their slots, by job."""
    late: dict[str, list[int]] = {}
    for record in outcome.stage.records:
        judged = Slot(record.job, record.slot) in outcome.tally.done
        if judged and record.kind is Kind.BEGAN and record.attempt == 1:
            after = record.at - outcome.stage.ahead - record.slot
            late.setdefault(record.job, []).append(after)
    return late
