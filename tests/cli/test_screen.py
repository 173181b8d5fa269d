"""The live view of the demo: what it shows of a kill and a takeover, and that it fits."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from anarchon.cli.demo.plain import PlainView
from anarchon.cli.demo.play import Window
from anarchon.cli.demo.records import Kind, Record
from anarchon.cli.demo.screen import fits, picture
from anarchon.cli.demo.stage import Stage
from anarchon.cli.demo.tally import Slot

OPENS = 1_800_000_000_000
WINDOW = Window(OPENS, OPENS + 30_000)
REPORT = Slot("build-report", OPENS)


def stage_of(instances: int) -> Stage:
    """Return a stage whose instances are all up, each with its number plus 1000 as its pid."""
    stage = Stage()
    for number in range(1, instances + 1):
        instance = stage.started(1000 + number, None, OPENS - 2000)
        stage.hear(instance, Record(Kind.UP, instance.pid, OPENS - 1000))
    return stage


def say(  # noqa: PLR0913 - what a record is
    stage: Stage, number: int, kind: Kind, after: int, slot: Slot, attempt: int = 1
) -> None:
    """Let an instance say something, so many milliseconds after the window opened."""
    instance = stage.instances[number]
    said = Record(kind, instance.pid, OPENS + after, slot.job, slot.time, attempt)
    stage.hear(instance, said)


def drawn(stage: Stage, after: int, width: int = 80, height: int = 24) -> list[str]:
    """Return the lines of the view, so many milliseconds after the window opened."""
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, color_system=None)
    console.print(picture(stage, WINDOW, OPENS + after, width, height))
    return out.getvalue().splitlines()


def line_with(lines: list[str], *words: str) -> str:
    return next(line for line in lines if all(word in line for word in words))


def test_a_run_is_shown_with_its_instance_and_lease() -> None:
    stage = stage_of(3)
    say(stage, 2, Kind.BEGAN, 0, REPORT)
    assert "build-report" in line_with(drawn(stage, 500), "1002", "up")
    assert line_with(drawn(stage, 500), "build-report", "every 3").split()[-2:] == ["s", "0"]
    assert "1.5 s" in line_with(drawn(stage, 500), "build-report", "every 3")
    say(stage, 2, Kind.BEAT, 600, REPORT)
    assert "1.9 s" in line_with(drawn(stage, 700), "build-report", "every 3")
    say(stage, 2, Kind.DONE, 4000, REPORT)
    assert "ended" in line_with(drawn(stage, 4100), "build-report", "every 3")
    assert "runs done 1 " in drawn(stage, 4100)[-1]


def test_a_kill_and_the_takeover_stand_out() -> None:
    stage = stage_of(3)
    say(stage, 2, Kind.BEGAN, 0, REPORT)
    stage.killed(stage.instances[2], REPORT, OPENS + 1000)
    lines = drawn(stage, 1500)
    assert "KILLED instance 2 while it ran build-report" in lines[1]
    assert "lease ends in 0.5 s" in lines[1]
    assert "✗ killed" in line_with(lines, "1002")
    assert "✗ 2" in line_with(lines, "build-report", "every 3")
    assert "over" in line_with(drawn(stage, 2100), "build-report", "every 3")
    say(stage, 3, Kind.BEGAN, 2200, REPORT, attempt=2)
    lines = drawn(stage, 2300)
    assert "instance 3 took over build-report" in lines[1]
    assert "1.2 s after instance 2 was killed" in lines[1]
    assert "3, attempt 2" in line_with(lines, "build-report", "every 3")
    assert line_with(lines, "TOOK OVER", "1.2 s after the kill")
    assert "taken over 1 " in lines[-1]


def test_a_retry_is_no_takeover() -> None:
    stage = stage_of(2)
    slot = Slot("charge-cards", OPENS)
    say(stage, 1, Kind.BEGAN, 0, slot)
    say(stage, 1, Kind.FAILED, 100, slot)
    say(stage, 2, Kind.BEGAN, 500, slot, attempt=2)
    lines = drawn(stage, 600)
    assert line_with(lines, "charge-cards", "failed on instance 1")
    assert line_with(lines, "instance 2 tries charge-cards", "again, attempt 2")
    assert "taken over 0   retried 1" in lines[-1]


@pytest.mark.parametrize("height", [24, 26, 30, 40])
def test_the_log_is_filled_and_a_kill_stays_in_it(height: int) -> None:
    stage = stage_of(3)
    say(stage, 2, Kind.BEGAN, 0, REPORT)
    stage.killed(stage.instances[2], REPORT, OPENS + 100)
    for second in range(1, 10):
        say(stage, 1, Kind.BEGAN, second * 1000, Slot("poll-inbox", OPENS + second * 1000))
    told = drawn(stage, 9500, height=height)
    log = [
        line for line in told[told.index(line_with(told, "what happened")) + 1 : -1] if line.strip()
    ]
    rows = height - 15
    assert len(log) == min(rows, len(stage.events))
    assert line_with(log, "KILLED")


def test_a_skipped_slot_is_told_once_though_every_instance_heard_it() -> None:
    stage = stage_of(3)
    for number in (1, 2, 3):
        say(stage, number, Kind.SKIPPED, 3000, Slot("build-report", OPENS + 3000), attempt=0)
    assert sum("skipped, the run before" in line for line in drawn(stage, 3100)) == 1


def test_an_instance_that_ends_by_itself_is_told() -> None:
    stage = stage_of(2)
    stage.gone(stage.instances[1], OPENS + 100, "exit status 1")
    assert line_with(drawn(stage, 200), "instance 1 ended by itself: exit status 1")


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (60, 20), (100, 30)])
@pytest.mark.parametrize("instances", [2, 3, 12])
def test_it_fits_into_the_terminal(width: int, height: int, instances: int) -> None:
    stage = stage_of(instances)
    slots = [Slot(job, OPENS) for job in stage.jobs]
    for slot in slots:
        say(stage, 2, Kind.BEGAN, 0, slot)
    stage.killed(stage.instances[2], REPORT, OPENS + 500)
    replacement = stage.started(2000, 2, OPENS + 600)
    for slot in slots:
        say(stage, 1, Kind.BEGAN, 2500, slot, attempt=2)
    for after in (400, 700, 2600):
        lines = drawn(stage, after, width, height)
        assert len(lines) == height
        assert max(len(line) for line in lines) <= width
        assert line_with(lines, "1002")
        assert line_with(lines, str(replacement.pid))


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    assert fits(Console(file=out, force_terminal=True))
    monkeypatch.setenv("TERM", "dumb")
    assert not fits(Console(file=out, force_terminal=True))
    monkeypatch.setenv("TERM", "xterm-256color")
    latin = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    assert not fits(Console(file=latin, force_terminal=True))


def test_what_falls_due_when_time_is_up_is_neither_told_nor_counted() -> None:
    stage = stage_of(2)
    before = Slot("charge-cards", OPENS - 3000)
    say(stage, 1, Kind.BEGAN, -3000, before)
    say(stage, 1, Kind.DONE, -2500, before)
    stage.watch(WINDOW.opens, WINDOW.closes)
    inside = Slot("charge-cards", WINDOW.closes - 3000)
    after = Slot("charge-cards", WINDOW.closes)
    for at, slot in ((27_000, inside), (30_000, after)):
        say(stage, 1, Kind.BEGAN, at, slot)
        say(stage, 1, Kind.FAILED, at + 100, slot)
        say(stage, 1, Kind.BEGAN, at + 400, slot, attempt=2)
        say(stage, 1, Kind.DONE, at + 500, slot, attempt=2)
    say(stage, 1, Kind.SKIPPED, 30_000, Slot("build-report", WINDOW.closes))
    told = [event.text for event in stage.events]
    assert sum("tries charge-cards" in text for text in told) == 1
    assert sum("failed on instance" in text for text in told) == 1
    assert sum("won charge-cards" in text for text in told) == 2
    assert not any("skipped" in text for text in told)
    sums = " ".join(drawn(stage, 31_000)[-1].split())
    assert sums == "runs done 1 taken over 0 retried 1 skipped 0"


def test_plain_lines_tell_each_event_once() -> None:
    lines: list[str] = []
    view = PlainView(lines.append)
    stage = stage_of(2)
    view.show(stage, None, OPENS - 500)
    assert lines == []
    say(stage, 1, Kind.BEGAN, 0, REPORT)
    for after in (100, 200):
        view.show(stage, WINDOW, OPENS + after)
    assert len(lines) == 6
    assert lines[4] == "all instances are up: from here on every slot is watched"
    assert lines[5].startswith("   0.0 s  instance 1 won build-report ")
    assert all(line.isascii() for line in lines)
