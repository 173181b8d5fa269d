"""The demo as plain lines, for pipes, files and simple terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from anarchon.cli.demo.play import Window
    from anarchon.cli.demo.stage import Stage


class PlainView:
    """Writes each event as a line, with the seconds since the watched time opened."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._told = 0
        self._opened = False

    def show(self, stage: Stage, window: Window | None, at: int) -> None:
        """Write what has happened since the last time."""
        del at  # each event has a moment of its own
        if window is None:
            return
        for event in stage.events[self._told :]:
            since = (event.at - stage.ahead - window.opens) / 1000
            if since >= 0 and not self._opened:
                self._opened = True
                self._write("all instances are up: from here on every slot is watched")
            self._write(f"{since:6.1f} s  {event.text}")
        self._told = len(stage.events)
