"""Why there is nothing to read where FILE points, in a sentence, with the nearest names on the host."""

from __future__ import annotations

import posixpath

from ddprobe.errors import Unanswered
from ddprobe.model import Evidence
from ddprobe.parsing import source_paths
from ddprobe.probes.source import _file
from ddprobe.probes.source._file import Place, Wish

SHOWN_NAMES = 12
SHOWN_ENTRIES = 40


def missing(wish: Wish, evidence: Evidence, title: str) -> tuple[str, str]:
    """Status and sentence when no file stands at any path that FILE may mean."""
    called = _file.called_so(wish, evidence)
    if len(called) > 1:
        paths = [source_paths.relative(path, wish.package) for path in called]
        return "ambiguous", (
            f"{len(paths)} files of {title} are called so: {_some(paths, SHOWN_NAMES)}; "
            "give more of the path of the one you mean"
        )
    host = evidence.host.name
    here = f"it exists on this laptop, but not on {host}: read looks at the installed file there; "
    place = f" in {title} at {wish.package}" if wish.package and not wish.file.startswith("/") else ""
    if folder := _file.nearest_folder(evidence):
        names = _beside(wish, folder, evidence)
    else:
        near = _file.nearest(wish, evidence)
        names = f"nearest names there: {', '.join(near)}" if near else "no name there comes near"
    return "missing", f"{host} has no such file{place}; {here if wish.exists_here else ''}{names}"


def _beside(wish: Wish, folder: str, evidence: Evidence) -> str:
    """For a path outside the package: how far it goes on the host, and what lies there."""
    path = source_paths.guesses(posixpath.normpath(wish.file), wish.package)[0]
    lost = path[len(folder.rstrip("/")) + 1 :].split("/")
    deep = f"its nearest folder there is {folder}, which" if len(lost) > 1 else f"{folder}"
    entries = _file.entries(evidence)
    near = source_paths.near_names(lost[0], entries or ())
    if entries is None:
        says = f"{deep} could not be listed"
    elif near:
        says = f"{deep} has {', '.join(near)}"
    else:
        says = f"{deep} has {len(entries)} entries, none called like {lost[0]}"
    same = _file.same_in_package(wish, evidence)
    return f"{says}; the installed package has {same}" if same else says


SECRET = "it looks like a file that holds secrets, which ddprobe does not read"


def leads_to_secrets(place: Place) -> str:
    return f"the links of {place.path} end at a file that looks like one that holds secrets, which ddprobe does not read"


def denied(place: Place, evidence: Evidence) -> str:
    """The file, or a folder above it, may not be read by us."""
    try:
        user = f"user {evidence.text(_file.USER).strip()}"
    except Unanswered:
        user = "the user"
    if place.status.kind == "denied":
        return f"no permission: {user} may not enter the folder that holds {place.path}"
    return (
        f"no permission: {user} may not read it, it belongs to {place.status.owner}, mode {place.status.mode}"
    )


def directory(evidence: Evidence) -> str:
    result = evidence.command(_file.ENTRIES)
    if not result.whole or result.exit_code:
        return "it is a directory, whose entries could not be listed"
    entries = [name for name in result.text.split("\n") if name and name != "__pycache__"]
    if not entries:
        return "it is an empty directory"
    return f"it is a directory with {len(entries)} entries: {_some(entries, SHOWN_ENTRIES)}"


def binary(place: Place) -> str:
    if place.status.kind == "other":
        return f"it is no file to read but a {place.status.description}"
    return f"it is a binary file of {place.status.size} bytes"


def _some(names: list[str], count: int) -> str:
    more = f" and {len(names) - count} more" if len(names) > count else ""
    return f"{', '.join(names[:count])}{more}"
