"""The processes of the demo: started, listened to, killed, and never left behind.

Each holds the other end of a pipe and ends when that closes, so none outlives this process, not
even when it is killed. Each has a session of its own, so that Ctrl-C reaches this process alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anarchon

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

_STDERR_KEPT = 20
_MOST_OF_A_LINE = 1 << 16


class Child:
    """A process that was started here, and must be listened to.

    `ended` is set once it is gone and all it said was heard. `complaints` are the last lines of its
    standard error.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.pid: int = process.pid
        self.ended: asyncio.Event = asyncio.Event()
        self.complaints: list[str] = []
        self._process = process
        self._listening: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, module: str, *arguments: str) -> Self:
        """Start a module of the demo as a process."""
        # The folder that the demo is started in must not matter (-P): a redis.py of the user's in
        # it would be imported.
        root = str(Path(anarchon.__file__).parent.parent)
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            f"anarchon.cli.demo.{module}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            limit=_MOST_OF_A_LINE,
            start_new_session=True,
        )
        return cls(process)

    def listen(self, hear: Callable[[bytes], None]) -> None:
        """Hand each line that it says to `hear`."""
        self._listening = asyncio.create_task(self._listen(hear))

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.returncode

    def kill(self) -> None:
        """End it as a crash would: SIGKILL."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def tell_to_end(self, seconds: float) -> None:
        """Tell it to end; its running jobs get so many seconds."""
        pipe = self._process.stdin
        if pipe is not None and not pipe.is_closing():
            pipe.write(f"{seconds}\n".encode())
            pipe.close()

    async def end(self, seconds: float, patience: float) -> None:
        """Tell it to end, and kill it if it has not after `patience` seconds."""
        self.tell_to_end(seconds)
        try:
            async with asyncio.timeout(patience):
                await self.ended.wait()
        except TimeoutError:
            self.kill()
        finally:
            await self.ended.wait()

    async def _listen(self, hear: Callable[[bytes], None]) -> None:
        complaints = asyncio.create_task(self._keep_complaints())
        if (said := self._process.stdout) is not None:
            while line := await said.readline():
                hear(line)
        await complaints
        await self._process.wait()
        self.ended.set()

    async def _keep_complaints(self) -> None:
        if (said := self._process.stderr) is not None:
            while line := await said.readline():
                self.complaints.append(line.decode(errors="replace").rstrip())
                del self.complaints[:-_STDERR_KEPT]
