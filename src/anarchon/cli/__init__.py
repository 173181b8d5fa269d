"""The command line: one file a command. It comes with the extra `cli` and uses public names only.

Nothing is imported here that the extra brings, so that its absence can be told in one sentence,
and so that the processes of the demo, which need none of it, start quickly.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_EXTRA = {"rich", "typer"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `anarchon` with `arguments` (the process' own unless given); return the exit status.

    0: done. 1: it found something wrong. 2: it was asked for what cannot be, told in one line.
    """
    try:
        from anarchon.cli.app import run  # noqa: PLC0415 - the extra may not be there
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        sys.stderr.write(
            f"anarchon: the command line needs {error.name}, which comes with an extra:"
            " pip install 'anarchon[cli]'\n"
        )
        return 2
    return run(sys.argv[1:] if arguments is None else arguments)
