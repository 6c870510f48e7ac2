"""Discovery, second half: which Python package each server runs from, its version, and what else is installed.

Python is never started on the host. A package's folder follows from how its interpreter finds modules: the folder
it was started in (`-m`), PYTHONPATH, then the site-packages of its environment, editable installs among them.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from ddprobe import engines, readonly
from ddprobe.engines.base import python_run
from ddprobe.errors import Refused
from ddprobe.facts import ServerProcess
from ddprobe.model import Command, Evidence, Glob, Host, Word
from ddprobe.probes._processes import Processes, Running
from ddprobe.probes._shelf import Installed, Shelf, version_order

_USUAL = (
    "/usr/local/lib/python3*/dist-packages",
    "/usr/local/lib/python3*/site-packages",
    "/usr/lib/python3*/site-packages",
    "/usr/lib/python3/dist-packages",
    "/sgl-workspace/sglang/python",
    "/opt/*/lib/python3*/site-packages",
    "/opt/conda/envs/*/lib/python3*/site-packages",
    "/root/.venv/lib/python3*/site-packages",
    "/root/.local/lib/python3*/site-packages",
    "/root/*/lib/python3*/site-packages",
    "/root/*conda3/envs/*/lib/python3*/site-packages",
    "/home/*/.venv/lib/python3*/site-packages",
    "/home/*/.local/lib/python3*/site-packages",
    "/home/*/*/lib/python3*/site-packages",
    "/home/*/*conda3/envs/*/lib/python3*/site-packages",
)
# Home folders may be on a network file system that has gone away.
ELSEWHERE_TIMEOUT = 8.0
_GLOBBABLE = re.compile(r"/[A-Za-z0-9_./*+@,=:-]*\Z")
_VERSION_LINE = '^__version__ *=|^MAPPING|^/|"url" *:'


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that may hold the package, and why it is looked at."""

    root: str
    folder: str
    """May hold `python3*`: the host expands it."""
    why: str

    @property
    def on_host(self) -> str:
        """As the host sees it, without a slash at its end: empty for the root."""
        return (self.root + self.folder).rstrip("/")


# --- where to look -----------------------------------------------------------------------------------------


def third(host: Host, found: Processes) -> tuple[Command, ...]:
    """Where the packages of the running servers are, and which others are installed."""
    near = {
        package: tuple(
            place for run in found.running if run.engine.package == package for place in _places(run)
        )
        for package in _wanted(host, found)
    }
    asked: list[Command] = []
    for package, places in near.items():
        asked += _look("near", package, _given(host, package) + places)
    for package, places in near.items():
        asked += _look("elsewhere", package, _usual(places))
    return tuple(asked)


def _wanted(host: Host, found: Processes) -> tuple[str, ...]:
    """The packages of the engines that run; with none running, of the engine named, or of all."""
    running = [run.engine.package for run in found.running if run.engine.package]
    named = [engines.TABLE[host.engine].package] if host.engine in engines.TABLE else []
    every = running or named or [engine.package for engine in engines.TABLE.values()]
    return tuple(dict.fromkeys(package for package in every if package))


def _given(host: Host, package: str) -> tuple[Place, ...]:
    """What the inventory says."""
    found = []
    if host.package and posixpath.basename(host.package) == package:
        found.append(Place("", posixpath.dirname(host.package), "`package` of the inventory"))
    if host.python:
        found.append(Place("", _site(_prefix(host.python), ""), "`python` of the inventory"))
    return tuple(found)


def _places(run: Running) -> tuple[Place, ...]:
    """Where this server's interpreter finds modules, in its order."""
    server = run.server
    named = dict(server.environment)
    found: list[tuple[str, str]] = []

    def add(folder: str, why: str) -> None:
        found.append((posixpath.normpath(posixpath.join(server.cwd or "/", folder)), why))

    started = python_run(server.argv)
    if started is not None and started.module and server.cwd:
        add(server.cwd, "start folder")
    for entry in filter(None, named.get("PYTHONPATH", "").split(":")):
        add(entry, "PYTHONPATH")
    if server.python:
        add(_site(_prefix(server.python), server.executable), server.argv[0])
    else:
        for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
            if named.get(name):
                add(_site(named[name], server.executable), name)
    for folder in run.libraries:
        add(folder, "libraries loaded")
    if not server.python:
        for folder in named.get("PATH", "").split(":"):
            if folder.startswith("/") and folder.endswith("/bin"):
                add(_site(posixpath.dirname(folder), server.executable), "PATH")
    if server.executable:
        add(_site(_prefix(server.executable), server.executable), "interpreter")
        if _prefix(server.executable) == "/usr":
            for folder in _USUAL[:4]:
                add(folder, "interpreter")
    if server.root:
        for folder in _USUAL[:6]:
            add(folder, "usual place in the container")
    first = dict(reversed(found))
    return tuple(
        Place(server.root, folder, f"{first[folder]} of pid {server.pid}")
        for folder in dict.fromkeys(folder for folder, _ in found)
    )


def _prefix(interpreter: str) -> str:
    """The environment of an interpreter: `/opt/venv` for `/opt/venv/bin/python`."""
    return posixpath.dirname(posixpath.dirname(interpreter))


def _site(prefix: str, executable: str) -> str:
    """The site-packages of an environment: the interpreter's own version where its name tells, else any."""
    version = re.search(r"python(3\.\d+t?)$", executable)
    return f"{prefix}/lib/python{version.group(1) if version else '3*'}/site-packages"


def _usual(near: tuple[Place, ...]) -> tuple[Place, ...]:
    """The usual places, and the environments beside those that are used."""
    beside = []
    for place in near:
        environment, lib, _ = place.folder.partition("/lib/python3")
        above = posixpath.dirname(environment)
        # Beside `/venv` lie /proc and /dev, which no pattern may stand for.
        if lib and not environment.startswith("/usr") and above != "/":
            beside.append(f"{above}/*/lib/python3*/site-packages")
    taken = {place.folder for place in near if not place.root}
    return tuple(
        Place("", folder, "installed on the host")
        for folder in dict.fromkeys([*beside, *_USUAL])
        if folder not in taken
    )


def _look(where: str, package: str, places: tuple[Place, ...]) -> tuple[Command, ...]:
    """Two questions: what lies in these places, and what the files there say of version and origin."""
    folders = tuple(dict.fromkeys(place.on_host for place in places))
    if not folders:
        return ()

    def words(*names: str) -> tuple[Word, ...]:
        return tuple(
            word for folder in folders for name in names if (word := _word(folder, name)) is not None
        )

    timeout = ELSEWHERE_TIMEOUT if where == "elsewhere" else None
    return (
        Command(
            key=f"{where}-{package}",
            argv=("ls", "-1", "-d", *words(f"{package}/__init__.py", f"{package}*.dist-info", f"__editable__*{package}*")),
            exits=(0, 1, 2),
            timeout=timeout,
        ),
        Command(
            key=f"{where}-{package}-version",
            argv=(
                "grep", "-a", "-s", "-H", "-m", "3", "-E", "-e", _VERSION_LINE,
                *words(
                    f"{package}/_version.py", f"{package}/version.py", f"{package}*.dist-info/direct_url.json",
                    f"__editable__*{package}*", f"{package}.egg-link",
                ),
            ),
            exits=(0, 1, 2),
            timeout=timeout,
        ),
    )  # fmt: skip


def _word(folder: str, name: str) -> Word | None:
    """The path or pattern; None where a pattern cannot say it, or the policy does not allow it to be read."""
    path = f"{folder}/{name}"
    if "*" in path and not _GLOBBABLE.match(path):
        return None
    word: Word = Glob(path) if "*" in path else path
    try:
        readonly.check(Command(key="word", argv=("grep", "-e", "x", word)))
    except Refused:
        return None
    return word


# --- what was found ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Packages:
    """What is installed, for one package."""

    package: str
    of_servers: tuple[tuple[ServerProcess, Installed, str], ...] = ()
    given: Installed | None = None
    others: tuple[Installed, ...] = ()
    notes: tuple[str, ...] = ()


def read(evidence: Evidence, found: Processes) -> tuple[Packages, ...]:
    """For each package of interest: what each server runs from, and what else is installed."""
    return tuple(_read(evidence, found, package) for package in _wanted(evidence.host, found))


def _read(evidence: Evidence, found: Processes, package: str) -> Packages:
    shelf = Shelf(evidence, package)
    given = next((at for place in _given(evidence.host, package) if (at := shelf.at(place.on_host))), None)
    of_servers = []
    notes = list(shelf.notes)
    for run in found.running:
        if run.engine.package != package:
            continue
        for place in _places(run):
            if (at := shelf.at(place.on_host)) is not None:
                of_servers.append((run.server, at, place.why))
                break
        else:
            why = "some places may not be read" if shelf.denied else "it is in none of the usual places"
            notes.append(f"the {package} that pid {run.server.pid} runs from was not found: {why}")
    used = {installed.path for _, installed, _ in of_servers} | ({given.path} if given else set())
    others = {at.path: at for at in shelf.installed.values() if at.path not in used}
    ordered = sorted(others.values(), key=lambda at: version_order(at.version), reverse=True)
    notes += [note for at in shelf.installed.values() if at.path in used for note in at.notes]
    return Packages(package, tuple(of_servers), given, tuple(ordered), tuple(notes))
