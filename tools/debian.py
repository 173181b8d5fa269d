"""Downloads Debian packages and unpacks them into a folder, without root and installing nothing.

The mirror is the one that the system itself uses; the package lists are kept apart from the
system's, so that nothing of it is changed.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TIMEOUT = 300  # seconds for one command; the largest download is a list of 9 MB
_SOURCES = Path("/etc/apt")


@dataclass(frozen=True)
class Packages:
    """Packages by name, and the Debian suites they and what they need come from.

    The first suite is preferred. On other systems with apt (Ubuntu) the system's own suite is
    taken, and the caller checks the version.
    """

    names: tuple[str, ...]
    suites: tuple[str, ...]


class AptError(Exception):
    """The packages cannot be had here; the text says why."""


@dataclass(frozen=True)
class _Mirror:
    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str | None


@dataclass(frozen=True)
class _Apt:
    """The options that give apt a state of its own below `folder`."""

    folder: Path
    options: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        for name in ("lists/partial", "cache"):
            (self.folder / name).mkdir(parents=True)
        settings = {
            "Dir::Etc::sourcelist": self.folder / "sources.list",
            "Dir::Etc::sourceparts": "-",
            "Dir::State::lists": self.folder / "lists",
            "Dir::Cache": self.folder / "cache",
            "APT::Sandbox::User": "",  # the sandbox user could not write into a user's cache
            "Acquire::Languages": "none",
            "APT::Update::Error-Mode": "any",  # else a list that could not be had is a warning
            "Acquire::Retries": "2",
            "Acquire::http::Timeout": "20",
        }
        object.__setattr__(self, "options", tuple(f"-o{k}={v}" for k, v in settings.items()))

    def run(self, *arguments: str) -> str:
        return _run("apt-get", "-q", *self.options, *arguments, cwd=self.folder)


def unpack(packages: Packages, folder: Path, program: str) -> None:
    """Fill `folder` with the packages and a script named `program` that starts /usr/bin/program.

    Raises:
        AptError: there is no apt here, or it did not deliver.
    """
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            raise AptError(f"there is no {tool} on this system")
    apt = _Apt(folder / "apt")
    (apt.folder / "sources.list").write_text("\n".join(_source_lines(packages.suites)) + "\n")
    apt.run("update")
    apt.run("download", *_with_missing(apt, packages))
    root = folder / "root"
    for archive in sorted(apt.folder.glob("*.deb")):
        _run("dpkg", "-x", str(archive), str(root), cwd=folder)
    shutil.rmtree(apt.folder)
    _write_start_script(folder, root, program)


def _with_missing(apt: _Apt, packages: Packages) -> list[str]:
    # A simulated installation tells which libraries this system lacks.
    answer = apt.run("-s", f"-t{_suites(packages.suites)[0]}", "install", *packages.names)
    return sorted({*packages.names, *re.findall(r"^Inst (\S+)", answer, re.MULTILINE)})


def _write_start_script(folder: Path, root: Path, program: str) -> None:
    found = {str(path.parent.relative_to(folder)) for path in root.rglob("*.so*")}
    libraries = ":".join(f"$here/{path}" for path in sorted(found))
    script = folder / program
    script.write_text(
        "#!/bin/sh\n"
        'here=$(cd "$(dirname "$0")" && pwd)\n'
        f'LD_LIBRARY_PATH="{libraries}" exec "$here/root/usr/bin/{program}" "$@"\n'
    )
    script.chmod(0o755)


def _suites(debian_suites: tuple[str, ...]) -> tuple[str, ...]:
    release = platform.freedesktop_os_release()
    if release["ID"] == "debian":
        return debian_suites
    return (release.get("VERSION_CODENAME", "stable"),)


def _source_lines(debian_suites: tuple[str, ...]) -> list[str]:
    mirror = _system_mirror()
    option = f"[signed-by={mirror.signed_by}] " if mirror.signed_by else ""
    components = " ".join(c for c in ("main", "universe") if c in mirror.components)
    return [f"deb {option}{mirror.uri} {suite} {components}" for suite in _suites(debian_suites)]


def _system_mirror() -> _Mirror:
    codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    mirrors = [mirror for mirror in _mirrors() if "main" in mirror.components]
    if not mirrors:
        raise AptError(f"no package mirror is configured below {_SOURCES}")
    return next((mirror for mirror in mirrors if codename in mirror.suites), mirrors[0])


def _mirrors() -> Iterator[_Mirror]:
    for path in sorted(_SOURCES.glob("sources.list*/*.sources")):
        yield from _deb822(path.read_text())
    for path in (_SOURCES / "sources.list", *sorted(_SOURCES.glob("sources.list.d/*.list"))):
        if path.exists():
            yield from _one_line_style(path.read_text())


def _deb822(text: str) -> Iterator[_Mirror]:
    text = re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)
    for stanza in re.split(r"\n\s*\n", text):
        found = re.findall(r"^([\w-]+):[ \t]*(\S.*)$", stanza, re.MULTILINE)
        fields = {key.lower(): value for key, value in found}
        if "deb" in fields.get("types", "").split() and "uris" in fields:
            yield _Mirror(
                uri=fields["uris"].split()[0],
                suites=tuple(fields.get("suites", "").split()),
                components=tuple(fields.get("components", "").split()),
                signed_by=fields.get("signed-by"),
            )


def _one_line_style(text: str) -> Iterator[_Mirror]:
    for found in re.finditer(r"^deb\s+(?:\[(.*?)\]\s+)?(\S+)\s+(\S+)\s+(.*)$", text, re.MULTILINE):
        options, uri, suite, components = found.groups()
        signed_by = re.search(r"signed-by=(\S+)", options or "")
        if not uri.startswith("cdrom:"):
            yield _Mirror(
                uri=uri,
                suites=(suite,),
                components=tuple(components.split()),
                signed_by=signed_by[1] if signed_by else None,
            )


def _run(*command: str, cwd: Path) -> str:
    shown = shlex.join([part for part in command if not part.startswith(("-o", "-q"))])
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_TIMEOUT,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        raise AptError(f"`{shown}` took longer than {_TIMEOUT} s") from None
    if done.returncode != 0:
        raise AptError(f"`{shown}` failed: {_last_words(done.stdout.splitlines())}")
    return done.stdout


def _last_words(lines: Sequence[str]) -> str:
    complaints = [line for line in lines if line.startswith("E:")] or list(lines[-3:])
    return " / ".join(line.strip() for line in complaints) or "without a word"
