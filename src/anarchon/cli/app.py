"""Puts the commands together, and turns what they raise into a line and an exit status."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

import anarchon
from anarchon.cli.demo.command import demo
from anarchon.cli.next import next_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WRONG_USE = 2
"""The exit status for what was asked and cannot be."""
INTERRUPTED = 130
"""The exit status that shells know for Ctrl-C."""

app = typer.Typer(
    name="anarchon",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Distributed cron without a leader."""
    if version:
        typer.echo(f"anarchon {anarchon.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("demo", short_help="Start instances, kill one in the middle of a run, count the runs.")(
    demo
)
# The words of an expression are taken as they come: a shell splits one that is not in quotes.
app.command("next", options_metavar="EXPR [OPTIONS]", context_settings={"allow_extra_args": True})(
    next_runs
)


def run(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit status."""
    try:
        status: object = app(args=list(arguments), prog_name="anarchon", standalone_mode=False)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output is gone (`| head`): there is nobody to tell, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except anarchon.AnarchonError as error:
        return _refuse(str(error))
    except Exception as error:
        # Typer's own errors have moved between its versions; this method they all have.
        words: Callable[[], str] | None = getattr(error, "format_message", None)
        if words is None:
            raise
        command: str = getattr(getattr(error, "ctx", None), "command_path", "anarchon")
        return _refuse(f"{words().rstrip('.')}; see {command} --help")
    return status if isinstance(status, int) else 0


def _refuse(why: str) -> int:
    sys.stderr.write(f"anarchon: {' '.join(why.split())}\n")
    return WRONG_USE
