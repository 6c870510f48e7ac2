"""The files of a report folder: their names, and how hostile names become safe ones."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from io import BufferedReader
from pathlib import Path

from ddprobe import plainfile
from ddprobe.model import Artefact

EVENTS = "events.jsonl"
REPORT = "report.json"
PAGE = "report.md"
MANIFEST = "MANIFEST.sha256"
EVENTS_SCHEMA = "ddprobe-events/1"
MAX_NAME = 80
MAX_FILE = 1024**3
"""Bytes of a file of a report, at most: a larger one is not read, whatever it is."""
NOT_REACHED = "was not reached before the run was interrupted"

_ODD = re.compile(r"[^A-Za-z0-9_.+@=-]+")


def safe_name(name: str) -> str:
    """A file name for it: plain characters, no dot in front, not long; told apart by a hash where that changed it."""
    plain = _ODD.sub("_", name).lstrip(".-") or "_"
    if plain == name and len(plain) <= MAX_NAME:
        return plain
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{plain[: MAX_NAME - 7].rstrip('.')}~{mark}"


def inside(folder: Path, path: str) -> Path:
    """A file of the report; a report that somebody sent may name others. Raises `ValueError`."""
    try:
        found, whole = (folder / path).resolve(), folder.resolve()
    except RuntimeError:  # a link to itself, before Python 3.13
        raise ValueError(f"{path!r} is a link that leads to itself") from None
    if not found.is_relative_to(whole):
        raise ValueError(f"{path!r} is outside of the report")
    return found


def opened(folder: Path, path: str) -> BufferedReader:
    """A file of the report, to be read. Raises `OSError`, and `ValueError` of one that is outside of it."""
    return plainfile.opened(inside(folder, path), MAX_FILE)


def read(folder: Path, path: str) -> bytes:
    """The bytes of a file of the report. Raises as `opened` does."""
    return plainfile.read(inside(folder, path), MAX_FILE)


def paths_of(artefact: Artefact) -> tuple[str, ...]:
    """The files of an answer, with the one that says how it came."""
    own = tuple(path for _, path in artefact.files)
    if artefact.kind == "file" or not own:
        return own
    return (*own, own[0].rpartition(".")[0] + ".json")


def artefact_path(artefacts: Sequence[Artefact], key: str) -> str:
    """The main evidence file of the last answer under this key, relative to the folder; else the key itself."""
    return next((kept.files[0][1] for kept in reversed(artefacts) if kept.key == key and kept.files), key)
