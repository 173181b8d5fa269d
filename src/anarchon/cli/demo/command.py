"""`anarchon demo`: the options, and which view they lead to."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from anarchon.cli.demo.plain import PlainView
from anarchon.cli.demo.play import Play
from anarchon.cli.demo.report import report
from anarchon.cli.demo.screen import fits, screen
from anarchon.cli.demo.store import demo_store
from anarchon.cli.numbers import whole_number

if TYPE_CHECKING:
    from anarchon.cli.demo.play import View


def demo(
    *,
    seconds: Annotated[
        str, typer.Option(metavar="N", help="How many seconds to watch, 8 to 600.")
    ] = "30",
    instances: Annotated[
        str, typer.Option(metavar="N", help="How many instances to start, 2 to 12.")
    ] = "3",
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            show_default=False,
            help="A Redis or Valkey to use instead of a server of its own.",
        ),
    ] = None,
) -> int:
    """Start several instances, kill one in the middle of a run, and count the runs.

    Without --url it starts a server of its own, which the extra "embedded" brings.
    """
    watched = whole_number(seconds, "--seconds", 8, 600)
    return asyncio.run(_demo(watched, whole_number(instances, "--instances", 2, 12), url))


async def _demo(seconds: int, instances: int, url: str | None) -> int:
    async with demo_store(url) as store:
        _write(f"{instances} instances, no leader; store: {store.name}")
        with contextlib.ExitStack() as stack:
            console = Console(highlight=False)
            live = sys.stdout.isatty() and fits(console)
            view: View = stack.enter_context(screen(console)) if live else PlainView(_write)
            outcome = await Play(store, view, seconds=seconds, instances=instances).perform()
    for line in report(outcome):
        _write(line)
    return 0 if outcome.good else 1


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
