"""Whether the rest of this laptop is fit: Python and packages, the hosts file, room for reports, the terminal."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from pathlib import Path

from ddprobe import __version__, inventory
from ddprobe.cli.checks.check import Check
from ddprobe.errors import DdprobeError
from ddprobe.inventory import Inventory
from ddprobe.model import Outcome
from ddprobe.render import count

PACKAGES = (
    "fabric",
    "paramiko",
    "httpcore",
    "typer",
    "rich",
    "PyYAML",
    "pydantic",
    "platformdirs",
    "ClusterShell",
)
MIN_FREE_MIB = 200


def python() -> Check:
    return Check(
        Outcome.PASS if sys.version_info >= (3, 11) else Outcome.FAIL,
        "python",
        f"{platform.python_version()} at {sys.executable}, {platform.system()} {platform.release()}",
        "" if sys.version_info >= (3, 11) else "ddprobe needs Python 3.11 or newer",
    )


def packages() -> Check:
    """Versions of what ddprobe stands on."""
    found, missing = [f"ddprobe {__version__}"], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return Check(
            Outcome.FAIL, "packages", f"missing: {', '.join(missing)}", "install ddprobe again with pip"
        )
    return Check(Outcome.PASS, "packages", ", ".join(found))


def hosts(hosts_file: str | None) -> tuple[Inventory | None, Check]:
    """The hosts file, if there is one and it is right."""
    try:
        path = inventory.find(hosts_file)
        if path is None:
            looked = ", ".join(str(place) for place in inventory.places())
            return None, Check(
                Outcome.INFO, "hosts file", f"none (looked at {looked}); a HOST is what ssh takes"
            )
        from ddprobe import hostsfile

        found = hostsfile.load(path)
    except DdprobeError as error:
        return None, Check(Outcome.FAIL, "hosts file", error.message, error.advice)
    return found, Check(Outcome.PASS, "hosts file", f"{found.path}, {count(len(found.hosts), 'host')}")


def reports_folder(folder: Path) -> Check:
    """Whether a report could be written, and has room."""
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    room = shutil.disk_usage(there)
    why = ""
    if not there.is_dir():
        why = f"{there} is a file"
    elif not os.access(there, os.W_OK | os.X_OK):
        why = f"{there} is not a folder of yours"
    elif not room.total:
        why = f"{there} keeps no files"
    if why:
        return Check(Outcome.FAIL, "reports", f"{folder} cannot be written: {why}", "use --reports DIR")
    free = room.free // 2**20
    if free < MIN_FREE_MIB:
        return Check(
            Outcome.WARN, "reports", f"{folder}: {free} MiB free; a report may need more", "use --reports DIR"
        )
    return Check(Outcome.PASS, "reports", f"{folder.absolute()}, {free / 1024:.1f} GiB free")


def terminal() -> Check:
    """Whether the screen can show what is printed."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    kind = (
        f"{shutil.get_terminal_size().columns} columns"
        if sys.stdout.isatty()
        else "stdout is no terminal: plain text"
    )
    if encoding != "utf8":
        return Check(
            Outcome.WARN,
            "terminal",
            f"{kind}, encoding {sys.stdout.encoding}: some characters are replaced",
            "set a UTF-8 locale",
        )
    return Check(Outcome.PASS, "terminal", f"{kind}, UTF-8")
