"""Files that were given: read again from what the report keeps of them, and judged together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ddprobe import evidence, store
from ddprobe.evidence.document import Found, of_bytes
from ddprobe.facts import EvidenceFile
from ddprobe.model import Fact, Finding, Outcome, StepRecord
from ddprobe.running.judging import bug

Read = tuple[evidence.Reading | None, StepRecord]


def read_again(folder: Path, steps: Sequence[StepRecord], lost: Mapping[str, str]) -> list[Read]:
    """Each step, of a file that is there with what it says today, and how it was understood."""
    read: list[Read] = []
    for step in steps:
        file = next((fact for fact in step.facts if isinstance(fact, EvidenceFile)), None)
        if file is None:
            read.append((None, step))
            continue
        path = step.artefacts[0].files[0][1] if step.artefacts and step.artefacts[0].files else ""
        others = tuple(fact for fact in step.facts if fact is not file)
        reading = evidence.Reading(of_bytes(file.name, b""), (Found("", others),))
        if file.kept and path and path not in lost:
            try:
                data = store.read(folder, path)
            except (OSError, ValueError):
                pass  # it went away this moment
            else:
                reading = evidence.recognise(of_bytes(file.name, data))
                what = tuple(dict.fromkeys(each.what for each in reading.found))
                file, at = dataclasses.replace(file, recognised=what), paths_of(reading, path)
                facts = (placed(fact, at) for each in reading.found for fact in each.facts)
                step = dataclasses.replace(step, facts=(file, *facts))
        read.append((reading, step))
    return read


def together(read: Sequence[Read], host: str) -> tuple[tuple[Fact, ...], list[Finding]]:
    """What the files say together, in the order in which they were judged."""
    readings = [
        (file.order, reading, step)
        for reading, step in read
        if reading is not None
        for file in files_of((step,))[:1]
    ]
    ordered = sorted(readings, key=lambda each: (each[0], each[1].rank))
    paths: dict[str, str] = {}
    for _, reading, step in ordered:
        paths |= paths_of(reading, store.artefact_path(step.artefacts, reading.document.key))
    facts, found = judge_files([reading for _, reading, _ in ordered], host, paths)
    new = [
        (step.id, trouble)
        for _, reading, step in ordered
        for trouble in reading.troubles
        if not any(trouble in reason for reason in step.reasons)
    ]
    return facts, [*(_unanswered(name, trouble, host) for name, trouble in new), *found]


def paths_of(reading: evidence.Reading, path: str) -> dict[str, str]:
    """Where the document and its parts are kept, by key."""
    return dict.fromkeys((reading.document.key, *reading.parts), path)


def judge_files(
    readings: Iterable[evidence.Reading], host: str, paths: dict[str, str]
) -> tuple[tuple[Fact, ...], list[Finding]]:
    """What documents that belong together say, and what every lint finds in it; they are taken in this order.

    A fault in laying the facts together costs that alone, one of the lints what they would have found; both are told as
    unknown.
    """
    from ddprobe import lints

    troubles: list[str] = []
    facts = tuple(placed(fact, paths) for fact in evidence.facts(readings, troubles))
    try:
        found = lints.judge(facts)
    except Exception as error:
        found = []
        troubles.append(bug("judging the files", error))
    told = [_unanswered(host, trouble, host) for trouble in troubles]
    return facts, [*told, *(dataclasses.replace(finding, host=host) for finding in found)]


def _unanswered(subject: str, trouble: str, host: str) -> Finding:
    return Finding(id="unanswered", outcome=Outcome.UNKNOWN, subject=subject, summary=trouble, host=host)


def placed(fact: Fact, paths: dict[str, str]) -> Fact:
    """The fact, citing files of the report."""
    cites = tuple(dataclasses.replace(c, artefact=paths.get(c.artefact, c.artefact)) for c in fact.source)
    return dataclasses.replace(fact, source=cites)


def files_of(steps: Iterable[StepRecord]) -> tuple[EvidenceFile, ...]:
    """The files that these steps are on."""
    return tuple(fact for step in steps for fact in step.facts if isinstance(fact, EvidenceFile))
