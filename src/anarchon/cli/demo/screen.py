"""The demo as a live view on a terminal."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from anarchon.cli.demo.jobs import LEASE
from anarchon.cli.demo.stage import Mark, State, shown, time_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from rich.console import Console

    from anarchon.cli.demo.play import Window
    from anarchon.cli.demo.stage import Body, Event, Instance, JobView, Stage

_LOUD = {Mark.KILLED, Mark.TAKEN_OVER, Mark.TROUBLE}
_LOUD_FOR = 10_000
"""For how many milliseconds such events stay in a log that is full."""
_ALARM = "bold white on red"
_STYLES = {
    Mark.INSTANCE: "cyan",
    Mark.WON: "",
    Mark.FAILED: "yellow",
    Mark.RETRIED: "yellow",
    Mark.SKIPPED: "dim",
    Mark.KILLED: _ALARM,
    Mark.TAKEN_OVER: "bold green",
    Mark.TROUBLE: "bold red",
}
_STATE_STYLES = {
    State.STARTING: "cyan",
    State.UP: "green",
    State.KILLED: _ALARM,
    State.ENDED: "dim",
}
_FIXED_LINES = 7
"""The title, the news, three headings, the jobs' header, and the sums."""
_LEAST_LOG = 4
_WIDE = 100
_BAR, _WIDE_BAR = 8, 24


class ScreenView:
    """Draws the stage anew each time."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, stage: Stage, window: Window | None, at: int) -> None:
        """Draw it as it is at `at`."""
        width, height = self._live.console.size
        self._live.update(picture(stage, window, at, width, height), refresh=True)


def picture(stage: Stage, window: Window | None, at: int, width: int, height: int) -> Group:
    """The stage as it is at `at`; what does not fit into the terminal is left out."""
    left = height - _FIXED_LINES - len(stage.jobs)
    people = _instances(stage, max(2, left - _LEAST_LOG))
    return Group(
        _title(stage, window, at),
        _news(stage, at, width),
        _heading("instances"),
        people,
        _heading("jobs"),
        _jobs(stage, at, _WIDE_BAR if width >= _WIDE else _BAR),
        _heading("what happened"),
        _log(stage, window, at, max(1, left - people.row_count)),
        _sums(stage),
    )


@contextlib.contextmanager
def screen(console: Console) -> Generator[ScreenView]:
    """Have the terminal for the view, and give it back as it was."""
    with Live(console=console, screen=True, auto_refresh=False) as live:
        yield ScreenView(live)


def fits(console: Console) -> bool:
    """Whether a terminal can show the view: it can move the cursor, and knows its characters."""
    return console.is_terminal and not console.is_dumb_terminal and "utf" in console.encoding


def _title(stage: Stage, window: Window | None, at: int) -> Table:
    line = Table.grid(expand=True)
    line.add_column()
    line.add_column(justify="right")
    line.add_row(Text("anarchon demo", style="bold"), Text(_progress(stage, window, at)))
    return line


def _progress(stage: Stage, window: Window | None, at: int) -> str:
    if window is None:
        return "starting"
    if stage.closing:
        return "ending the instances"
    since = at - stage.ahead - window.opens
    length = window.closes - window.opens
    if since < 0:
        return f"watched from {time_of(window.opens)} on"
    if since >= length:
        return "time is up: what is due later is not counted"
    return f"{since / 1000:.0f} of {length / 1000:.0f} s"


def _news(stage: Stage, at: int, width: int) -> Text:
    """Tell of the last kill, and what became of the run."""
    if not stage.kills:
        text = "No leader: whoever asks first wins a run, the others stand by."
        return Text(text, style="dim", no_wrap=True)
    kill = stage.kills[-1]
    if kill.taken_over is None:
        body = stage.jobs[kill.slot.job].bodies.get(kill.slot)
        left = body.lease_left(at) if body else 0.0
        text = f"✗ KILLED instance {kill.instance} while it ran {shown(kill.slot)}:"
        return Text(f"{text} lease ends in {left:.1f} s".ljust(width), style=_ALARM, no_wrap=True)
    after = (kill.taken_over - kill.at) / 1000
    text = (
        f"✓ instance {kill.by} took over {shown(kill.slot)} {after:.1f} s after instance"
        f" {kill.instance} was killed"
    )
    return Text(text, style="bold green", no_wrap=True)


def _heading(text: str) -> Rule:
    return Rule(Text(text, style="dim"), align="left", style="dim")


def _instances(stage: Stage, room: int) -> Table:
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(justify="right", style="bold", width=2)
    table.add_column(no_wrap=True, width=11)
    table.add_column(no_wrap=True, width=8)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    everybody = list(stage.instances.values())
    shown_ones = everybody
    if len(everybody) > room:
        # Whoever was killed or is new is what there is to see.
        by_interest = sorted(everybody, key=lambda one: one.state is State.UP and not one.replaces)
        shown_ones = sorted(by_interest[: room - 1], key=lambda one: one.number)
    for instance in shown_ones:
        table.add_row(
            str(instance.number),
            Text(f"pid {instance.pid}", style="dim"),
            _state(instance),
            _what_it_runs(instance),
        )
    if len(everybody) > len(shown_ones):
        table.add_row("", Text(f"and {len(everybody) - len(shown_ones)} more", style="dim"), "", "")
    return table


def _state(instance: Instance) -> Text:
    name = instance.state.value
    if instance.state is State.KILLED:
        name = "✗ killed"
    elif instance.state is State.UP and instance.replaces:
        name = "up, new"
    return Text(name.ljust(8), style=_STATE_STYLES[instance.state])


def _what_it_runs(instance: Instance) -> Text:
    text = ", ".join(shown(slot) for slot in instance.bodies)
    if instance.state is State.KILLED:
        return Text(f"ran {text}" if text else "", style="red")
    if instance.replaces and instance.state is State.STARTING:
        return Text(f"in place of instance {instance.replaces}", style="cyan")
    return Text(text)


def _jobs(stage: Stage, at: int, bar: int) -> Table:
    # Widths are fixed, so that nothing jumps about.
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading, width in (("job", 13), ("schedule", 17), ("slot", 10), ("instance", 12)):
        table.add_column(heading, width=width, no_wrap=True)
    table.add_column("lease", width=bar + 6, no_wrap=True)
    table.add_column("done", width=4, no_wrap=True, justify="right")
    for job in stage.jobs.values():
        slot, who, lease = _who_runs_it(job, at, bar)
        schedule, done = Text(job.schedule, style="dim"), Text(str(stage.done(job)), style="dim")
        table.add_row(Text(job.name, style="bold"), schedule, slot, who, lease, done)
    return table


def _who_runs_it(job: JobView, at: int, bar: int) -> tuple[Text, Text, Text]:
    body = _most_telling(job)
    if body is None:
        last = job.last
        if last is None:
            return Text(""), Text(""), Text("")
        slot = Text(time_of(last.slot.time), style="dim")
        return slot, Text(str(last.instance), style="dim"), Text("ended", style="dim")
    style = "bold red" if body.dead else "green"
    who = f"✗ {body.instance}" if body.dead else str(body.instance)
    if body.attempt > 1:
        who += f", attempt {body.attempt}"
    slot = Text(time_of(body.slot.time), style=style)
    return slot, Text(who, style=style), _lease_bar(body, at, bar)


def _most_telling(job: JobView) -> Body | None:
    """A run whose instance is dead, else the newest."""
    bodies = sorted(job.bodies.values(), key=lambda body: (body.dead is not None, body.slot))
    return bodies[-1] if bodies else None


def _lease_bar(body: Body, at: int, width: int) -> Text:
    left = body.lease_left(at)
    full = round(left / LEASE * width)
    style = "bold red" if body.dead else "green"
    text = Text("━" * full, style=style)
    text.append("╌" * (width - full), style="bright_black")
    text.append(f" {left:.1f} s" if left else " over", style=style)
    return text


def _log(stage: Stage, window: Window | None, at: int, room: int) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", style="dim", no_wrap=True, width=7)
    table.add_column(no_wrap=True, overflow="ellipsis")
    opens = window.opens + stage.ahead if window else at
    for event in _picked(stage.events, at, room):
        since = f"{(event.at - opens) / 1000:.1f} s" if window else ""
        table.add_row(since, Text(event.text, style=_STYLES[event.mark]))
    for _ in range(room - table.row_count):
        table.add_row("", "")
    return table


def _picked(events: list[Event], at: int, room: int) -> list[Event]:
    """The newest events; those that matter are kept for a while at the cost of the others."""
    newest = events[-100:]
    loud = [e for e in newest if e.mark in _LOUD and at - e.at < _LOUD_FOR][-(room // 2 + 1) :]
    others = [event for event in newest if event not in loud]
    kept = others[max(0, len(others) - (room - len(loud))) :]
    return sorted([*loud, *kept], key=lambda event: event.at)[-room:]


def _sums(stage: Stage) -> Text:
    done = sum(stage.done(job) for job in stage.jobs.values())
    taken = sum(1 for event in stage.events if event.mark is Mark.TAKEN_OVER)
    retried = sum(1 for event in stage.events if event.mark is Mark.RETRIED)
    skipped = stage.skipped_counted
    return Text(
        f"runs done {done}   taken over {taken}   retried {retried}   skipped {skipped}",
        style="bold",
    )
