"""The report folder: written as answers arrive, read back whole, also after a crash.

    <UTC time>-<name>/
    ├── events.jsonl             one JSON object a line, flushed as things happen: start, begin, answer, step, host, finish
    ├── evidence/<host>/<step>/  NN-<key>.stdout, .stderr or .body: the bytes as they came (secrets masked);
    │                            NN-<key>.request: the body that was sent; NN-<key>.json: the question and how it ended
    ├── report.json              everything, once the run is over
    ├── report.md
    └── MANIFEST.sha256          for `sha256sum -c`: every other file

What cannot be written (a full disk) ends no run: the rest is still tried, and `trouble` says what happened.
Folders are 0700 and files 0600. Names from hosts and probes become safe file names: no separators, no dots in
front, no two that differ in case alone.
"""

from ddprobe.store.damage import DAMAGED, Damage, Kept, damage, kept
from ddprobe.store.files import (
    EVENTS,
    MANIFEST,
    NOT_REACHED,
    PAGE,
    REPORT,
    artefact_path,
    inside,
    paths_of,
    read,
    safe_name,
)
from ddprobe.store.listing import ReportSummary, holds_report, list_reports, report_folders
from ddprobe.store.reading import evidence, known_host, load, transcript
from ddprobe.store.writing import ELSEWHERE, ReportWriter

__all__ = [
    "DAMAGED",
    "ELSEWHERE",
    "EVENTS",
    "MANIFEST",
    "NOT_REACHED",
    "PAGE",
    "REPORT",
    "Damage",
    "Kept",
    "ReportSummary",
    "ReportWriter",
    "artefact_path",
    "damage",
    "evidence",
    "holds_report",
    "inside",
    "kept",
    "known_host",
    "list_reports",
    "load",
    "paths_of",
    "read",
    "report_folders",
    "safe_name",
    "transcript",
]
