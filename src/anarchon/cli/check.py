"""`anarchon check`: whether the store and the instances are as they should be."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from anarchon.cli.asking import AsJson, Prefix, Target, scheduler_of
from anarchon.cli.output import painted, plain, say, say_json, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anarchon import Finding
    from anarchon.cli.output import Colour

_COLOURS: dict[str, Colour] = {"ok": "green", "warning": "yellow", "error": "red"}
_LEVEL = max(map(len, _COLOURS)) + 2


def check(target: Target, *, prefix: Prefix = None, as_json: AsJson = False) -> int:
    """Look whether the store and the instances are as they should be, and say what to do.

    The server, its answers, clocks, eviction, permissions, the format of the data, the instances
    and whether they agree about the jobs. The exit status is 1 if there is any error; warnings
    alone leave it 0.
    """
    findings = asyncio.run(scheduler_of(target, prefix).check())
    errors = sum(each.level == "error" for each in findings)
    warnings = sum(each.level == "warning" for each in findings)
    if as_json:
        say_json(
            {
                "ok": not errors,
                "errors": errors,
                "warnings": warnings,
                "findings": [
                    {
                        "subject": each.subject,
                        "level": each.level,
                        "text": each.text,
                        "advice": each.advice,
                    }
                    for each in findings
                ],
            }
        )
        return 1 if errors else 0
    for finding in findings:
        say(_lines(finding))
    say("")
    say(_sum(errors, warnings))
    return 1 if errors else 0


def _lines(finding: Finding) -> Iterator[str]:
    start, below = finding.level.ljust(_LEVEL), " " * _LEVEL
    first, *rest = wrapped(f"{plain(finding.subject)}: {plain(finding.text)}", start, below)
    # Painted after it is wrapped: colours have no width.
    word = painted(finding.level, _COLOURS[finding.level], sys.stdout)
    yield word + first[len(finding.level) :]
    yield from rest
    if finding.advice:
        yield from wrapped(f"-> {plain(finding.advice)}", below, below + "   ")


def _sum(errors: int, warnings: int) -> str:
    if not errors and not warnings:
        return "All is well."
    counts = [
        f"{count} {word}{'' if count == 1 else 's'}"
        for count, word in ((errors, "error"), (warnings, "warning"))
        if count
    ]
    return ", ".join(counts)
