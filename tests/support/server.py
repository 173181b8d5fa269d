"""Starts real servers for tests: on loopback, on a free port, in a folder of their own."""

from __future__ import annotations

import atexit
import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from tests.support.resp import Argument, Connection, Reply, ReplyError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self, Unpack

_READY_WITHIN = 20.0  # seconds; a server starts in a tenth, but two cores may be busy
_ATTEMPTS = 5  # a port that was free may be taken by somebody else before the server has it

Setting = str | int


class ServerError(Exception):
    """The server did not start, or ended by itself; the text ends with its last log lines."""


class Options(TypedDict, total=False):
    """How a server is configured; without any, it persists nothing and anybody may do all.

    `append_only`: keep an append-only file, written at every command. `password`: the default
    user's. `users`: ACL rules without their first word, as in ``"app on >secret ~* +@all"``.
    `replica_of`: the server to follow; the replica is ready once it has that one's data.
    `settings`: further lines of the configuration file by name, as in ``{"maxmemory": "10mb"}``;
    a sequence stands for several lines.
    """

    append_only: bool
    password: str
    users: Sequence[str]
    replica_of: Server
    settings: Mapping[str, Setting | Sequence[Setting]]


class Server:
    """A server process, as a context manager: running inside, gone (with its data) after it.

    `program` is the path of a redis-server or valkey-server (see tools/servers.py).
    """

    def __init__(self, program: Path, **options: Unpack[Options]) -> None:
        self.program = program
        self.password = options.get("password")
        self.folder = Path(tempfile.mkdtemp(prefix="anarchon-server-"))
        self.port = 0
        self._follows = "replica_of" in options
        self._lines = _configuration(options)
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    @property
    def url(self) -> str:
        """The URL a client takes."""
        secret = "" if self.password is None else f":{self.password}@"
        return f"redis://{secret}127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        """Whether the process lives; a paused one does."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id.

        Raises:
            ServerError: it is not running.
        """
        if self._process is None or self._process.poll() is not None:
            raise self._broken("the server is not running")
        return self._process.pid

    def start(self) -> Self:
        """Start it and wait until it answers; on the former port if it ran before."""
        if self.running:
            return self
        atexit.register(self.close)
        if self.port:
            self._start_on(self.port)
            return self
        for attempt in range(_ATTEMPTS):
            try:
                self._start_on(_free_port())
            except ServerError as error:
                if "in use" not in str(error) or attempt == _ATTEMPTS - 1:
                    raise
            else:
                break
        return self

    def stop(self) -> None:
        """End it in an orderly way (SIGTERM); data that it persists stays for the next start."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would (SIGKILL); data that it persists stays for the next start."""
        self._end(signal.SIGKILL)

    def restart(self, *, keep_data: bool) -> None:
        """Stop and start it on the same port, with its data or empty."""
        if keep_data and self.running:
            self.command("SAVE")
        self.stop()
        if not keep_data:
            self._forget_data()
        self.start()

    def pause(self) -> None:
        """Suspend the process: connections stay open, nothing is answered until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        self._signal(signal.SIGCONT)

    def command(self, *arguments: Argument) -> Reply:
        """Send one command, as the default user, and return its reply.

        Raises:
            ReplyError: the server answered with an error.
            OSError: there was no answer.
        """
        connection = self._connection or self.connect()
        self._connection = connection
        try:
            return connection.command(*arguments)
        except OSError:
            self._disconnect()
            raise

    def connect(self) -> Connection:
        """Open a connection of the caller's own, authenticated as the default user."""
        return self._connect(self.port)

    def flush(self) -> None:
        """Remove all data and all loaded scripts."""
        self.command("FLUSHALL")
        self.command("SCRIPT", "FLUSH")

    def log(self) -> str:
        """Return what the server wrote to its log."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self) -> None:
        """End it at once and remove its folder; may be called twice."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.close)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self, port: int) -> Connection:
        connection = Connection(port)
        if self.password is not None:
            connection.command("AUTH", self.password)
        return connection

    def _start_on(self, port: int) -> None:
        # In a file, not as arguments: passwords must not show in the list of processes.
        lines = (f"port {port}", f"dir {self.folder}", *self._lines)
        configuration = self.folder / "server.conf"
        configuration.write_text("\n".join(lines) + "\n")
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.program, configuration],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait_until_ready(port)
        except BaseException:
            self.kill()
            raise
        self.port = port

    def _wait_until_ready(self, port: int) -> None:
        deadline = time.monotonic() + _READY_WITHIN
        while time.monotonic() < deadline:
            if not self.running:
                raise self._broken("the server ended at once")
            if _answers(port) and (not self._follows or self._is_linked(port)):
                return
            time.sleep(0.01)  # between two attempts; there is nothing to wait on before it listens
        raise self._broken(f"the server was not ready within {_READY_WITHIN:g} s")

    def _is_linked(self, port: int) -> bool:
        # WAIT does not tell: before the first write that is replicated, any replica satisfies it.
        with self._connect(port) as connection:
            answer = connection.command("INFO", "replication")
        return isinstance(answer, bytes) and b"master_link_status:up" in answer

    def _end(self, number: signal.Signals) -> None:
        self._disconnect()
        process = self._process
        if process is None:
            return
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)  # a paused process would not hear SIGTERM
        try:
            process.wait(_READY_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._process = None

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            raise self._broken("the server is not running")
        self._process.send_signal(number)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _forget_data(self) -> None:
        for path in self.folder.iterdir():
            if path.name in {"server.conf", "log"}:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _broken(self, what: str) -> ServerError:
        tail = "\n".join(self.log().splitlines()[-8:])
        return ServerError(f"{what}\n{self.program}\n{tail}")


def _configuration(options: Options) -> list[str]:
    append_only = "yes" if options.get("append_only") else "no"
    lines = ["bind 127.0.0.1", "daemonize no", 'save ""']
    lines.append("repl-diskless-sync-delay 0")  # else a replica's first sync waits for 5 s
    lines += [f"appendonly {append_only}", "appendfsync always"]
    if "password" in options:
        lines.append(f"requirepass {options['password']}")
    lines += [f"user {user}" for user in options.get("users", ())]
    if "replica_of" in options:
        lines += _replication(options["replica_of"])
    for name, value in options.get("settings", {}).items():
        values = [value] if isinstance(value, str | int) else value
        lines += [f"{name} {one}" for one in values]
    return lines


def _replication(primary: Server) -> list[str]:
    lines = [f"replicaof 127.0.0.1 {primary.port}"]
    if primary.password is not None:
        lines.append(f"masterauth {primary.password}")
    return lines


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), Connection(port, timeout=1.0) as connection:
        try:
            connection.command("PING")
        except ReplyError as error:
            return error.code != "LOADING"
        return True
    return False
