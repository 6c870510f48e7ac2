"""What qualifies the points of a commit probe, in words: failures, steps without a draft, copying, loops, checks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from ddprobe.blocks import Block, Heading, Paragraph
from ddprobe.facts import CommitCheck, CommitPoint, CommitRequest
from ddprobe.model import Fact
from ddprobe.parsing import sizes

DASH = "–"
LEAST_COPIED = 0.95
"""Below it a target that should copy did not, and its commit says little (the decision table's last row)."""
MOST_SENTENCES = 6
_NUMBERS = re.compile(r"\d[\d.,]*")
_CHECKS = {
    "cold-cached": "prompt sent cold, and again from the cache",
    "same-prompt": "same prompt twice",
    "first-again": "first point once more at the end",
    "step-time-again": "step time once more at the end",
    "prompt-length": "length of prompts",
    "sources": "sources of the counts",
}


def context(tokens: int, prompt_tokens: int | None = None) -> str:
    """`64k`; of a text sent as it is, its own length."""
    if tokens:
        return sizes.short(tokens)
    return DASH if prompt_tokens is None else str(prompt_tokens)


def percent(share: float | None) -> str:
    """`93 %`, or a dash for what is unknown."""
    return DASH if share is None or not math.isfinite(share) else f"{100 * share:.0f} %"


def decimal(value: float | None) -> str:
    """Three digits, or a dash for what is unknown."""
    if value is None or not math.isfinite(value):
        return DASH
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def of_points(points: Sequence[CommitPoint], requests: Sequence[CommitRequest]) -> Iterator[Block]:
    """A sentence for each thing that a reader of the table must know, with all points of which it holds."""
    alike: dict[tuple[str, str], list[CommitPoint]] = {}
    for point in points:
        mine = [r for r in requests if r.arm == point.arm and r.context_tokens == point.context_tokens]
        for told in _of_point(point, mine):
            alike.setdefault(told, []).append(point)
    notes = [Paragraph(f"{_where(places)}: {text}", tone) for (text, tone), places in alike.items()]
    notes += of_requests(requests, disagreements_only=True)
    if notes:
        yield Heading("What these numbers are worth")
        yield from notes


def of_requests(requests: Sequence[CommitRequest], disagreements_only: bool = False) -> Iterator[Paragraph]:
    """Why requests gave no measurement, and where their sources contradict each other; what differs only in numbers once."""
    alike: dict[str, list[tuple[CommitRequest, str]]] = {}
    for request in requests:
        failed = (request.error,) if request.error and not disagreements_only else ()
        for sentence in (*_of_one_source(request.disagreements), *failed):
            alike.setdefault(_NUMBERS.sub("#", sentence), []).append((request, sentence))
    for told in list(alike.values())[:MOST_SENTENCES]:
        request, sentence = told[0]
        where = f"{request.arm} at {context(request.context_tokens, request.prompt_tokens)}"
        count = len({id(one) for one, _ in told})
        more = (
            f" (and the like in {count - 1} of the other {len(requests) - 1} requests)" if count > 1 else ""
        )
        yield Paragraph(f"{where}: {sentence}{more}", "bad")
    if len(alike) > MOST_SENTENCES:
        yield Paragraph(f"{len(alike) - MOST_SENTENCES} more kinds of it are in the report.", "bad")


def _of_one_source(sentences: Sequence[str]) -> list[str]:
    """The sentences, without those that a source's total repeats of its histogram."""
    seen = {
        sentence.replace(" histogram says ", " says ")
        for sentence in sentences
        if " histogram says " in sentence
    }
    return [sentence for sentence in sentences if sentence not in seen]


def _where(points: Sequence[CommitPoint]) -> str:
    """`repeat at 1k and 64k, prose at 1k`."""
    lengths: dict[str, list[str]] = {}
    for point in points:
        lengths.setdefault(point.arm, []).append(context(point.context_tokens, point.prompt_tokens))
    return ", ".join(f"{arm} at {_listed(those)}" for arm, those in lengths.items())


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _of_point(point: CommitPoint, requests: Sequence[CommitRequest]) -> Iterator[tuple[str, str]]:
    errors = list(dict.fromkeys(request.error for request in requests if request.error))
    if point.failed:
        why = f": {'; '.join(errors[:3])}" if errors else ""
        yield f"{point.failed} of {point.requests} requests gave no measurement{why}", "warn"
    elif point.commit_mean is None:
        yield f"the commit length is unknown: {'; '.join(errors[:3]) or 'no source says it'}", "warn"
    if point.drafted_steps == 0 and point.steps:
        yield f"nothing was drafted in {point.steps} steps", "warn"
    elif point.drafted_steps is not None and point.drafted_steps < point.steps:
        only = (
            ""
            if point.drafted_commit_mean is None
            else f"; the others commit {point.drafted_commit_mean:.2f}"
        )
        yield f"{point.steps - point.drafted_steps} of {point.steps} steps had no draft{only}", "plain"
    if point.copied is not None and point.copied < LEAST_COPIED:
        yield (
            f"the target copied only {percent(point.copied)} of the text, so the commit is not comparable",
            "warn",
        )
    if point.loops:
        loops = list(dict.fromkeys(request.loop for request in requests if request.loop))
        how = f" ({'; '.join(loops[:2])})" if loops else ""
        yield (
            f"{point.loops} of {point.requests} outputs went in a circle{how}: such text is easy to draft",
            "warn",
        )
    merged = sum(request.merged_chunks for request in requests if request.purpose == "point")
    if merged:
        yield f"{merged} pieces of the stream held more than one step, so step times say less", "plain"
    if point.step_ms is not None and 0 < point.timed_steps < point.steps // 2:
        yield f"the step time is from {point.timed_steps} of {point.steps} steps", "plain"


def checks(facts: Sequence[Fact]) -> Iterator[Block]:
    """The controls in words."""
    found = [fact for fact in facts if isinstance(fact, CommitCheck)]
    if found:
        yield Heading("Controls")
    for check in found:
        mark, tone = {True: ("✓", "good"), False: ("✗", "bad"), None: ("?", "warn")}[check.agrees]
        yield Paragraph(f"{mark} {_CHECKS.get(check.name, check.name)}: {check.text}", tone)
