"""What a person sees of files that were given: one table of them all, then what is in them, as their probes show it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ddprobe.blocks import Block, Heading, Paragraph, Table
from ddprobe.facts import (
    Acceptance,
    Claim,
    CommitPoint,
    DecodeSeries,
    EvidenceFile,
    LogEvent,
    LogFile,
    ModelConfig,
    Rejudged,
    ServerArgs,
)
from ddprobe.facts.files import FILES
from ddprobe.facts.logs import GIVEN
from ddprobe.model import KIB, MIB, Fact, StepRecord

TITLE = "files"
MOST_LOGS = 4
FEW = 5
MOST = 40
"""Files and changes that are listed; the report holds them all."""


def folded(steps: Iterable[StepRecord]) -> Iterator[StepRecord]:
    """The steps, those on files of one host as a single one: a person looks at them side by side."""
    files: dict[str, list[StepRecord]] = {}
    others: list[StepRecord] = []
    for step in steps:
        if step.probe == FILES:
            files.setdefault(step.host, []).append(step)
        else:
            others.append(step)
    for host, mine in files.items():
        yield StepRecord(
            id=TITLE,
            probe=FILES,
            host=host,
            status="done",
            facts=tuple(fact for step in mine for fact in step.facts),
        )
    yield from others


def given(steps: Iterable[StepRecord]) -> int:
    """How many files there were; a folder without any is none."""
    return sum(step.status != "done" or any(map(_held, step.facts)) for step in steps)


def _held(fact: Fact) -> bool:
    return not isinstance(fact, EvidenceFile) or bool(fact.size or fact.sha256)


def blocks(facts: Sequence[Fact]) -> Iterator[Block]:
    """The files, what their facts are, and how an old report fared."""
    files = [fact for fact in facts if isinstance(fact, EvidenceFile)]
    # Where nothing is recognised, the verdict says of each of a few files why: a table would say it again.
    if len(files) > FEW or any(file.recognised for file in files):
        yield _table(files)
        yield from _contents(facts)
    for fact in facts:
        if isinstance(fact, Rejudged):
            yield from _rejudged(fact)


def _table(files: Sequence[EvidenceFile]) -> Table:
    rows = tuple((file.name, _what(file), _size(file)) for file in files[:MOST])
    unknown = tuple(number for number, file in enumerate(files[:MOST]) if not file.recognised or file.trouble)
    more = f"{len(files) - MOST} more are in the report. " if len(files) > MOST else ""
    streamed = [file for file in files if not file.kept and not file.same_as]
    cut = any(file.sha256 and not file.trouble for file in streamed)
    note = "Of large logs only the lines beside the decode log are kept." if cut else ""
    return Table(("file", "recognised as", "size"), rows, caption=f"{more}{note}".strip(), emphasis=unknown)


def _what(file: EvidenceFile) -> str:
    told = "\n".join(file.recognised)
    if not file.size and file.sha256:
        return told or "nothing: it is empty"
    trouble = f"not read: {file.trouble}" if not file.sha256 else f"not whole: {file.trouble}"
    if file.trouble:
        return f"{told}\n{trouble}".strip()
    return told or "nothing that ddprobe knows"


def _size(file: EvidenceFile) -> str:
    if file.size >= MIB:
        return f"{file.size / MIB:.1f} MiB"
    return f"{file.size / KIB:.1f} KiB" if file.size >= KIB else f"{file.size} B"


def _contents(facts: Sequence[Fact]) -> Iterator[Block]:
    """Configurations and arguments side by side, and points with their plots: as the looks at a host show them."""
    if any(isinstance(fact, (ModelConfig, ServerArgs)) for fact in facts):
        from ddprobe.evidence import configs
        from ddprobe.probes.draft.config import DraftConfig

        told = [f for f in configs.merge(facts) if not isinstance(f, EvidenceFile)]
        yield from DraftConfig().show(told)
    yield from _logs(facts)
    yield from _points(facts)


def _points(facts: Sequence[Fact]) -> Iterator[Block]:
    """What was measured by context, as the probe shows it that measures so."""
    purposes = {fact.purpose for fact in facts if isinstance(fact, CommitPoint)}
    if "step-time" in purposes:
        from ddprobe.probes.draft.step_time import DraftStepTime

        yield from DraftStepTime().show(facts)
    if purposes - {"step-time", "step-time again", "plain", "plain again"}:
        from ddprobe.probes.draft.commit import DraftCommit

        yield from DraftCommit().show(_with_ceilings(facts))


def _with_ceilings(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Points whose ceiling the server's arguments or its log tell, as verdicts take it."""
    from ddprobe.verdicts.case import Case
    from ddprobe.verdicts.collected import figures

    most = figures.ceiling(Case(tuple(facts), ()))
    if most is None or most < 2:
        return tuple(facts)
    return tuple(
        replace(fact, ceiling=most, share_of_ceiling=(fact.commit_mean - 1) / (most - 1))
        if isinstance(fact, CommitPoint)
        and fact.ceiling is None
        and fact.commit_mean is not None
        and fact.commit_mean <= most
        else fact
        for fact in facts
    )


def _logs(facts: Sequence[Fact]) -> Iterator[Block]:
    """Each log as `logs` shows it. The facts of a file stand behind it."""
    told: list[list[Fact]] = []
    for fact in facts:
        if isinstance(fact, EvidenceFile):
            told.append([LogFile(path=fact.name, origin=GIVEN, size=fact.size)])
        elif told and (isinstance(fact, (LogEvent, DecodeSeries, Acceptance)) or _of_a_log(fact)):
            told[-1].append(fact)
    logs = [own for own in told if any(isinstance(fact, (LogEvent, DecodeSeries)) for fact in own)]
    if logs:
        from ddprobe.probes.engine.logs import EngineLogs

        yield from EngineLogs().show([fact for own in logs[:MOST_LOGS] for fact in own])


def _of_a_log(fact: Fact) -> bool:
    from ddprobe.evidence import decode_logs

    return isinstance(fact, Claim) and fact.origin.startswith(decode_logs.ORIGIN)


def _rejudged(fact: Rejudged) -> Iterator[Block]:
    wrote = f"ddprobe {fact.version}" if fact.version else "a ddprobe that does not say its version"
    if fact.same:
        yield Paragraph(
            f"{fact.report}, written by {wrote}: judged again, everything came out the same.", "good"
        )
        return
    yield Heading(f"{fact.report}, judged again")
    yield Paragraph(f"Written by {wrote}; judged by {fact.version_now}. What changed:")
    rows = [
        (word, name)
        for word, names in (("new", fact.added), ("gone", fact.removed), ("changed", fact.changed))
        for name in names
    ]
    yield Table(("", "finding or verdict"), tuple(rows[:MOST]))
