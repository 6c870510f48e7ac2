"""Goes through a folder that was named: what is read of it, and what is not. Links that lead out are not followed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ddprobe.opening.found import Closed, OldReport, is_report


def walk(root: Path, prefix: str, reports: Path | None) -> Iterator[tuple[Path, str] | OldReport | Closed]:
    """Files and their names, in the order of their names; a report within is one.

    `reports`: where reports are kept, resolved; it is not gone into.
    """
    inside = _places(root)
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        name = prefix + folder.relative_to(root).as_posix()
        if folder != root and is_report(folder):
            yield OldReport(folder, name)
            continue
        try:
            entries = sorted(folder.iterdir())
        except OSError as error:
            told = name if folder != root else prefix.rstrip("/") or root.name or root.resolve().name
            yield Closed(told, error.strerror or str(error))
            continue
        folders = []
        for entry in entries:
            name = prefix + entry.relative_to(root).as_posix()
            if entry.is_symlink():
                try:
                    led = entry.resolve()
                except (OSError, RuntimeError):  # Python before 3.13 raises RuntimeError
                    yield Closed(name, "it is a link that leads to itself")
                    continue
                if not any(led.is_relative_to(place) for place in inside):
                    yield Closed(name, "it is a link to a place outside of the folder")
                    continue
                if led.is_dir():
                    continue  # it is gone through where it stands
            if not entry.is_dir():
                yield entry, name
            elif not entry.name.startswith(".") and entry.resolve() != reports:
                folders.append(entry)
        waiting += reversed(folders)


def _places(root: Path) -> list[Path]:
    """Where links of the folder may lead: into itself, and of a Hugging Face cache to the blobs of its model."""
    whole = root.resolve()
    return [whole, whole.parent.parent / "blobs"] if whole.parent.name == "snapshots" else [whole]


def hidden(folder: Path) -> str:
    """That there is something in it that is not looked into."""
    try:
        dotted = any(entry.name.startswith(".") and entry.is_dir() for entry in folder.iterdir())
    except OSError:
        return ""
    return ": folders whose names begin with a dot are not looked into" if dotted else ""
