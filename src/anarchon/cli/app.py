"""Puts the commands together, and turns what they raise into a line and an exit status."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer

import anarchon
from anarchon.cli.cancel import cancel
from anarchon.cli.check import check
from anarchon.cli.demo.command import demo
from anarchon.cli.forget import forget
from anarchon.cli.history import history
from anarchon.cli.jobs import jobs
from anarchon.cli.next import next_runs
from anarchon.cli.output import plain
from anarchon.cli.pause import pause, resume
from anarchon.cli.plain_help import PlainCommand
from anarchon.cli.run import run_target
from anarchon.cli.run_now import run_now
from anarchon.cli.target import TargetError
from anarchon.cli.why import why

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WRONG_USE = 2
"""The exit status for what was asked and cannot be."""
INTERRUPTED = 130
"""The exit status that shells know for Ctrl-C."""

_SECRETS = ((r"://(?!:password@)\S*@", "://***@"), (r"password=[^\s&]+", "password=***"))
"""What an argument in the wrong place may have brought into a message: the parts of a URL."""

app: typer.Typer = typer.Typer(
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


_COMMANDS: tuple[tuple[str, Callable[..., int | None], str], ...] = (
    ("run", run_target, "Run the jobs of a scheduler in this process."),
    ("check", check, "Look whether the store and the instances are well."),
    ("jobs", jobs, "List the jobs, with their next runs."),
    ("history", history, "Show the newest runs of a job."),
    ("why", why, "Say why a run took place or did not."),
    ("run-now", run_now, "Run a job here and now."),
    ("pause", pause, "Hold back the scheduled runs of a job."),
    ("resume", resume, "Let a paused job go on."),
    ("cancel", cancel, "Cancel the open runs of a job, or one of them."),
    ("forget", forget, "Delete all that is stored of a job."),
)
for _name, _function, _summary in _COMMANDS:
    app.command(_name, cls=PlainCommand, short_help=_summary)(_function)
app.command("demo", short_help="Start instances, kill one in the middle of a run, count the runs.")(
    demo
)
# The words of an expression are taken as they come: a shell splits one that is not in quotes.
app.command(
    "next",
    short_help="Show when a schedule is due, and what clock changes do to it.",
    options_metavar="EXPR [OPTIONS]",
    context_settings={"allow_extra_args": True},
)(next_runs)


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
    except TargetError as error:
        sys.stderr.write(error.trace)
        return _refuse(str(error))
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


def _refuse(what: str) -> int:
    line = " ".join(what.split())
    for pattern, mask in _SECRETS:
        line = re.sub(pattern, mask, line)
    sys.stderr.write(f"anarchon: {plain(line)}\n")
    return WRONG_USE
