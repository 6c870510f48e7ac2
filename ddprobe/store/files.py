"""The files of a report folder: their names, and how hostile names become safe ones."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from ddprobe.model import Artefact

EVENTS = "events.jsonl"
REPORT = "report.json"
PAGE = "report.md"
MANIFEST = "MANIFEST.sha256"
EVENTS_SCHEMA = "ddprobe-events/1"
MAX_NAME = 80
NOT_REACHED = "was not reached before the run was interrupted"

_ODD = re.compile(r"[^A-Za-z0-9_.+@=-]+")


def safe_name(name: str) -> str:
    """A file name for it: plain characters, no dot in front, not long; told apart by a hash where that changed it."""
    plain = _ODD.sub("_", name).lstrip(".-") or "_"
    if plain == name and len(plain) <= MAX_NAME:
        return plain
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{plain[: MAX_NAME - 7].rstrip('.')}~{mark}"


def paths_of(artefact: Artefact) -> tuple[str, ...]:
    """The files of an answer, with the one that says how it came."""
    own = tuple(path for _, path in artefact.files)
    if artefact.kind == "file" or not own:
        return own
    return (*own, own[0].rpartition(".")[0] + ".json")


def artefact_path(artefacts: Sequence[Artefact], key: str) -> str:
    """The main evidence file of the last answer under this key, relative to the folder; else the key itself."""
    return next((kept.files[0][1] for kept in reversed(artefacts) if kept.key == key and kept.files), key)
