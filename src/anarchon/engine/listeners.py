"""Listeners: user code that hears of events, and can harm nothing by what it does.

Each listener has a queue and hears one event at a time, in order. It runs in a task of its own, or
in threads if it is a plain function, so that one that is slow or never ends holds up nobody else.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from anarchon.callables import is_async, refuse_what_is_no_function, takes_argument
from anarchon.engine.descendants import Descendants
from anarchon.engine.ending import cancel_and_wait
from anarchon.engine.log import SCHEDULER, tell
from anarchon.engine.threads import in_thread
from anarchon.errors import ConfigurationError
from anarchon.events import EVENT_NAMES
from anarchon.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from anarchon.events import Event, EventName

MOST_WAITING = 1000
"""How many events a listener may be behind; what comes then is not told to it."""
LAST_WORDS = 1.0
"""Seconds that listeners get at a stop to hear what they have not heard yet."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A declared listener."""

    function: Callable[..., object]
    events: frozenset[EventName]
    takes_event: bool
    in_thread: bool

    @property
    def name(self) -> str:
        """What the log calls it."""
        name: str = getattr(self.function, "__qualname__", "") or type(self.function).__qualname__
        return name


def checked_events(events: Iterable[object]) -> frozenset[EventName]:
    """The names that a listener is declared for. Raises `ConfigurationError`."""
    names = tuple(events)
    if not names or any(callable(name) for name in names):
        message = (
            'on() takes names of events and is called before it decorates: @scheduler.on("failed");'
            f" there are {', '.join(EVENT_NAMES)}"
        )
        raise ConfigurationError(message)
    for name in names:
        if name not in EVENT_NAMES:
            message = f"no event is named {name!r}{did_you_mean(str(name), EVENT_NAMES)}"
            raise ConfigurationError(message)
    return frozenset(name for name in EVENT_NAMES if name in names)


def make_listener(function: Callable[..., object], events: frozenset[EventName]) -> Listener:
    """Check a listener. Raises `ConfigurationError`."""
    refuse_what_is_no_function(function, 'a listener is a function: @scheduler.on("failed")')
    takes = takes_argument(function, f"listener {function!r}", "a listener", "Event")
    return Listener(function, events, takes_event=takes, in_thread=not is_async(function))


class Listeners:
    """Tells events to the listeners of one instance."""

    def __init__(self, listeners: Iterable[Listener]) -> None:
        """Tell `listeners`."""
        self._ears = [_Ear(listener) for listener in listeners]
        self._closed = False

    def wanted(self, name: EventName) -> bool:
        """Whether anybody listens for events of a name."""
        return any(name in ear.listener.events for ear in self._ears)

    def hand_out(self, event: Event) -> None:
        """Tell an event; never waits, never raises."""
        for ear in self._ears:
            if not self._closed and event.name in ear.listener.events and ear.take(event):
                # What it starts is its own, as with a job: an exit in there must not be the loop's.
                context = Descendants().context()
                ear.task = asyncio.get_running_loop().create_task(ear.hear(), context=context)

    async def close(self) -> None:
        """Let listeners hear what is left, for a short time, then end them."""
        self._closed = True
        tasks = [ear.task for ear in self._ears if ear.task is not None and not ear.task.done()]
        if tasks:
            _, pending = await asyncio.wait(tasks, timeout=LAST_WORDS)
            await cancel_and_wait(pending)


class _Ear:
    """One listener, and what it has not heard yet."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.task: asyncio.Task[None] | None = None
        self._waiting: deque[Event] = deque()
        self._behind = False

    def take(self, event: Event) -> bool:
        """Keep an event for the listener; whether somebody has to make it hear."""
        if len(self._waiting) >= MOST_WAITING:
            if not self._behind:
                self._behind = True
                message = (
                    f"the listener {self.listener.name} is {MOST_WAITING} events behind; until it"
                    " has caught up, it is told nothing more"
                )
                tell(SCHEDULER, logging.WARNING, "listener.behind", message)
        else:
            self._waiting.append(event)
        return self.task is None or self.task.done()

    async def hear(self) -> None:
        while self._waiting:
            await self._hear(self._waiting.popleft())
        self._behind = False

    async def _hear(self, event: Event) -> None:
        """Call the listener. Raises nothing but the cancellation of this task."""
        task = asyncio.current_task()
        try:
            await self._call(event)
        except BaseException as error:
            if task is not None and task.cancelling():
                if isinstance(error, GeneratorExit):
                    raise  # it ignored its cancellations, and is thrown away
                raise asyncio.CancelledError from None
            message = f"the listener {self.listener.name} failed at {event.name}"
            tell(SCHEDULER, logging.ERROR, "listener.failed", message, error)

    async def _call(self, event: Event) -> None:
        function = self.listener.function
        arguments = (event,) if self.listener.takes_event else ()
        if self.listener.in_thread:
            name = f"anarchon-listener-{self.listener.name}"[:60]
            ended = await in_thread(asyncio.get_running_loop(), name, lambda: function(*arguments))
            if ended.error is not None:
                raise ended.error
            value = ended.value
        else:
            value = function(*arguments)
        if inspect.isawaitable(value):
            await cast("Awaitable[object]", value)
