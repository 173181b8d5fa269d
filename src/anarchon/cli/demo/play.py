"""The course of the demo: start, watch, kill, replace, settle, judge."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from anarchon import StoreError, StoreUnavailable
from anarchon.cli.demo.cast import Cast, now
from anarchon.cli.demo.jobs import LEASE, LONG_JOB, PLANS
from anarchon.cli.demo.stage import Stage, State
from anarchon.cli.demo.tally import Slot, Terms, judge, lives_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from anarchon.cli.demo.stage import Body, Instance
    from anarchon.cli.demo.store import DemoStore
    from anarchon.cli.demo.tally import Tally

_TICK = 0.1
_STARTS_WITHIN = 30_000
_FIRST_KILL = (2000, 8000)
"""The first kill is tried after a quarter of the time, but within these bounds."""
_NEXT_KILL = 20_000
_LAST_KILL = 8000
"""How long before the end the last of several kills is, so that its story is told in time."""
_CLEAR_OF_ITS_START = 800
_CLEAR_OF_ITS_END = 600
_CLEAR_OF_OTHER_ENDS = 300
_REPLACED_AFTER_TAKEOVER = 1000
_REPLACED_AFTER_KILL = 5000
_SETTLES_WITHIN = 20_000
_DRAIN = 5.0
"""Seconds that running bodies get when somebody breaks the demo off."""


@dataclass(frozen=True, slots=True)
class Window:
    """The time that is watched, in milliseconds of the store's clock: slots in [opens, closes)."""

    opens: int
    closes: int

    def slots(self) -> list[Slot]:
        """All slots that the schedules demand in this time."""
        return [
            Slot(plan.name, time) for plan in PLANS for time in plan.slots(self.opens, self.closes)
        ]


class View(Protocol):
    """Shows the stage to people, ten times a second."""

    def show(self, stage: Stage, window: Window | None, at: int) -> None:
        """Show it as it is at `at` (this host's clock, ms); the window is None before it opens."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the demo went."""

    stage: Stage
    window: Window | None
    tally: Tally
    broken_off: bool

    @property
    def good(self) -> bool:
        """Whether all was as promised."""
        untaken = bool(self.stage.kills) and not self.tally.taken_over and not self.broken_off
        return not (self.tally.doubled or self.tally.lost or untaken)


class Play:
    """One demo, from the first instance's start to the last one's end."""

    def __init__(self, store: DemoStore, view: View, *, seconds: int, instances: int) -> None:
        self.stage: Stage = Stage()
        self._cast = Cast(self.stage, store)
        self._store = store
        self._view = view
        self._seconds = seconds
        self._instances = instances
        self._window: Window | None = None
        self._skipped: set[Slot] = set()
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._next_kill = 0

    async def perform(self) -> Outcome:
        """Play it to the end, or until a signal breaks it off; leave no process behind.

        Raises `StoreUnavailable` when an instance does not come up.
        """
        broken_off = None
        try:
            with self._signals():
                await self._start_all()
                await self._watch()
                await self._settle()
                if self._stop.is_set():
                    broken_off = now()
                await self._cast.end(_DRAIN if broken_off else 0.0, self._hurry, self._show)
                await self._ask_what_was_skipped()
        finally:
            await self._cast.bury()
        return Outcome(self.stage, self._window, self._judge(broken_off), broken_off is not None)

    @contextlib.contextmanager
    def _signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        names = ("SIGINT", "SIGTERM", "SIGHUP")
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        for number in numbers:
            with contextlib.suppress(NotImplementedError):  # Windows' loops have no handlers
                loop.add_signal_handler(number, self._break_off)
        try:
            yield
        finally:
            for number in numbers:
                with contextlib.suppress(NotImplementedError):
                    loop.remove_signal_handler(number)

    def _break_off(self) -> None:
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    # -- the course ----------------------------------------------------------------------------

    async def _start_all(self) -> None:
        for _ in range(self._instances):
            await self._cast.start()
        deadline = now() + _STARTS_WITHIN
        while len(self.stage.up) < self._instances and not self._stop.is_set():
            await self._tick()
            for instance in self.stage.instances.values():
                late = instance.state is State.STARTING and now() > deadline
                if late or instance.state is State.KILLED:
                    why = self._cast.complaint_of(instance)
                    message = f"instance {instance.number} of the demo did not come up: {why}"
                    raise StoreUnavailable(message)

    async def _watch(self) -> None:
        # Every instance is up: from the next whole second on, nothing may be missed.
        opens = (self._time() + 200) // 1000 * 1000 + 1000
        window = self._window = Window(opens, opens + self._seconds * 1000)
        self.stage.watch(window.opens, window.closes)
        earliest, latest = _FIRST_KILL
        self._next_kill = opens + min(max(self._seconds * 250, earliest), latest)
        while not self._stop.is_set() and self._time() < window.closes:
            await self._tick()
            await self._kill_when_it_is_time(window)
            await self._replace_the_killed()

    async def _settle(self) -> None:
        """Wait until everything that was due is done; the instances go on meanwhile."""
        if self._window is None:
            return
        if not self._stop.is_set():
            text = "time is up: what was due is let finish, what falls due now is not counted"
            self.stage.note(now(), text)
        deadline = self._window.closes + _SETTLES_WITHIN
        while not self._stop.is_set() and self._time() < deadline:
            await self._ask_what_was_skipped()
            if not self._judge(None).lost:
                return
            for _ in range(5):
                await self._tick()

    async def _tick(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), _TICK)
        self._cast.notice_ends()
        self._show()

    def _show(self) -> None:
        self._view.show(self.stage, self._window, now())

    def _time(self) -> int:
        """The store's clock."""
        return now() - self.stage.ahead

    # -- the kill ------------------------------------------------------------------------------

    async def _kill_when_it_is_time(self, window: Window) -> None:
        if not self._next_kill <= self._time() < window.closes:
            return
        for instance in self.stage.up:
            body = self._body_in_the_middle(instance)
            if body is not None and len(self.stage.up) > 1:
                await self._cast.kill(instance, body.slot)
                self._next_kill += _NEXT_KILL
                if self._next_kill > window.closes - _LAST_KILL:
                    self._next_kill = window.closes
                return

    def _body_in_the_middle(self, instance: Instance) -> Body | None:
        """The run of the long job that this instance is in the middle of.

        None while any other body here is about to end, or has just ended: killed between a body's
        end and the word of it to the store, its work would rightly be done again, and the tally
        would rightly call that doubled.
        """
        at = now()
        if at - instance.last_end < _CLEAR_OF_OTHER_ENDS:
            return None
        found = None
        for body in instance.bodies.values():
            plan = next(plan for plan in PLANS if plan.name == body.slot.job)
            left = body.began + plan.seconds * 1000 - at
            if plan.name == LONG_JOB:
                if left < _CLEAR_OF_ITS_END or at - body.began < _CLEAR_OF_ITS_START:
                    return None
                found = body
            elif left < _CLEAR_OF_OTHER_ENDS:
                return None
        return found

    async def _replace_the_killed(self) -> None:
        replaced = {one.replaces for one in self.stage.instances.values()}
        for kill in self.stage.kills:
            if kill.instance in replaced:
                continue
            taken_over = kill.taken_over is not None and (
                now() > kill.taken_over + _REPLACED_AFTER_TAKEOVER
            )
            if taken_over or now() > kill.at + _REPLACED_AFTER_KILL:
                await self._cast.start(replaces=kill.instance)

    # -- the tally -----------------------------------------------------------------------------

    async def _ask_what_was_skipped(self) -> None:
        if self._window is None:
            return
        with contextlib.suppress(StoreError):  # then what was known before is all there is
            self._skipped |= await self._store.skipped(len(self._window.slots()) + 100)

    def _judge(self, broken_off: int | None) -> Tally:
        due: list[Slot] = []
        if self._window is not None:
            end = self._window.closes
            if broken_off is not None:
                end = min(end, broken_off - self.stage.ahead)
            due = Window(self._window.opens, end).slots()
        return judge(
            due,
            lives_of(self.stage.records, self.stage.deaths),
            self._skipped,
            Terms(round(LEASE * 1000), self.stage.ahead, broken_off),
        )
