"""Help that names arguments as people write them, whichever version of typer there is."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class PlainCommand(TyperCommand):
    """A command whose arguments are shown by their names, without types and braces.

    Its arguments are declared hidden, so that typer does not list them in its own way too.
    """

    # The types of context and formatter are click's, which some versions of typer bring along.

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the shape is click's
        """The arguments, then the options: `TARGET JOB [RUN] [OPTIONS]`."""
        names = [
            str(each.metavar) if each.required else f"[{each.metavar}]"
            for each in self.params
            if each.param_type_name == "argument"
        ]
        return [*names, "[OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments with what they mean, then the options."""
        rows = [
            (str(each.metavar), str(getattr(each, "help", "")))
            for each in self.params
            if each.param_type_name == "argument"
        ]
        with formatter.section("Arguments"):
            formatter.write_dl(rows)
        super().format_options(ctx, formatter)
