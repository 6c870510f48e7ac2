"""Measured points, per-request records and summaries of tools, as JSON, JSON lines, or as Python prints it.

    case-points/1   {"max_commit_len": 8, "points": [{"text": "hard_prose", "ctx_tokens": …, "commit_len": …}, …]}
                    and where they were measured, as `evidence.setting` reads it
    our own         the `points` of a report.json, in a document, as a list, or a line each
    requests        records of `evidence.requests`, wherever they stand in the document
    summaries       what `evidence.summaries` takes from numbers by their names

Of a point its numbers count, the kind of text it was measured on, and what else tells two series apart (arm, thinking,
temperature). Notes, labels, titles and provenance do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ddprobe.arms.outputs import loop
from ddprobe.engines.base import items, mapping, number, text, whole_number
from ddprobe.evidence import setting
from ddprobe.evidence.document import Document, Found
from ddprobe.evidence.requests import requests
from ddprobe.evidence.summaries import server, summary
from ddprobe.facts import Acceptance, Claim, CommitCheck, CommitPoint, CommitRequest, PlainSpeed
from ddprobe.model import Cite, Fact
from ddprobe.parsing import acceptance, bounded_json, python_repr
from ddprobe.parsing.acceptance import Canonical

TEXTS = {
    "repeat": "repeat",
    "repeated": "repeat",
    "repeated_text": "repeat",
    "repetition": "repeat",
    "hard_prose": "prose",
    "hard_text": "prose",
    "prose": "prose",
}
"""The kinds of text that have an arm of their own; any other is an arm of its own name."""
MOST_POINTS = 2000
LOOKED_AT = 4000
"""Characters of an output's sample in which a circle is looked for."""
FROM_CACHE = 0.1
"""A prompt of which more than this share came from the prefix cache was served by it."""
SAME = 0.85
"""Commits cold and from the cache within this of each other are the same."""
FULL = 0.995
ABOVE = 1.1
"""A length this far above the most that a step commits is no rounding, and no prefill's token counted in."""

_OURS = {"commit_mean": "commit_len", "steps": "verify_steps", "ceiling": "max_commit_len"}
"""What the points of a report call a point's fields."""
_OTHERS = {
    "accept_len": "commit_len",
    "accept_length": "commit_len",
    "acceptance_length": "commit_len",
    "mean_acceptance_length": "commit_len",
    "context": "ctx_tokens",
    "context_length": "ctx_tokens",
}
"""What people call them."""
_AT_ONCE = ("running", "running_requests", "concurrency", "max_concurrency", "batch_size")
"""How many requests the server had meanwhile: more of them make a longer step, whatever the context."""
_PRINTED = re.compile(r"\s*(?:\[\s*)?\{\s*'")
"""As Python prints a dict, or a list of them."""
_CONTEXT = ("ctx_tokens", "context_tokens", "context_len", "ctx")


def recognise(document: Document, sample: str) -> Found | None:
    """What the document measured or states; None when it is no JSON, or says nothing of speculation."""
    if not sample.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        return None
    data = _load(document)
    # A report holds facts already: they are taken as they are, where reports are read.
    if data is None or text(mapping(data).get("schema")).startswith("ddprobe-report/"):
        return None
    points = tuple(_points(document.key, data))
    where = tuple(setting.facts(document.key, mapping(data))) if points else ()
    asked = tuple(requests(document.key, data))
    told = tuple(server(document.key, data))
    # What was read as something is not read once more as a summary.
    stated = () if points or asked or told else tuple(summary(document.key, data))
    facts: tuple[Fact, ...] = (*points, *where, *asked, *told, *stated)
    if not facts:
        return None
    return Found(_what(facts), facts)


def of_data(key: str, data: Any) -> tuple[Fact, ...]:
    """Points that stand in another form, brought to `{"points": […]}`."""
    return tuple(_points(key, data))


def _what(facts: tuple[Fact, ...]) -> str:
    def count(kind: type[Fact]) -> int:
        return sum(isinstance(fact, kind) for fact in facts)

    told = [
        f"{count(kind)} {word if count(kind) == 1 else word + 's'}"
        for kind, word in (
            (CommitPoint, "measured point"),
            (CommitRequest, "request record"),
            (PlainSpeed, "speed without speculation"),
            (Claim, "stated figure"),
        )
        if count(kind)
    ]
    return ", ".join(told).replace("speed without speculations", "speeds without speculation")


def _load(document: Document) -> Any:
    """The document's JSON, or the list of its lines' JSON; None when it is neither."""
    whole = document.whole()
    if whole is None:
        return None
    try:
        return bounded_json.loads(whole)
    except ValueError:
        pass
    if _PRINTED.match(whole):
        read = python_repr.read(whole, len(whole) - len(whole.lstrip()))
        return read.value if read.whole and isinstance(read.value, list | dict) else None
    found = []
    for line in whole.splitlines():
        if not line.strip():
            continue
        try:
            found.append(bounded_json.loads(line))
        except ValueError:
            return None
    return found or None


# --- points ------------------------------------------------------------------------------------------------


def _points(key: str, data: Any) -> Iterator[Fact]:
    whole = mapping(data)
    stands, listed = _listed(data)
    rows = [_renamed(row) for row in items(listed)[:MOST_POINTS]]
    if not any(map(_is_point, rows)):
        return
    most = whole_number(whole.get("max_commit_len"))
    if most is None and (drafts := whole_number(whole.get("num_speculative_tokens"))) is not None:
        most = drafts + 1
    seen: dict[tuple[str, int], int] = {}
    made: list[tuple[CommitPoint, Mapping[str, Any]]] = []
    for index, row in enumerate(rows):
        if _is_point(row):
            ceiling = whole_number(row.get("max_commit_len")) if most is None else most
            point, told = _point(key, f"{stands}[{index}]", row, ceiling if ceiling and ceiling > 1 else None)
            made.append((point, row))
            yield from told if len(told) > 1 else ()
            yield from _impossible(key, f"{stands}[{index}]", row, point.ceiling)
    cached = _cached([point for point, _ in made])
    for index, (point, read) in enumerate(made):
        if index in cached:
            cold = made[cached[index]]
            yield replace(point, purpose="cached")
            yield _cold_cached(cold[0], point)
            yield _as_request(key, cold[0], cold[1], "cold")
            yield _as_request(key, point, read, "cached")
            continue
        place = (point.arm, point.context_tokens)
        seen[place] = seen.get(place, 0) + 1
        # Nothing that counts tells it from an earlier one: a series of its own, or the earlier one would be hidden.
        yield point if seen[place] == 1 else replace(point, arm=f"{point.arm} #{seen[place]}")


def _listed(data: Any) -> tuple[str, Any]:
    """Where the points stand, and they: under their own name, as the whole document, or under any name if each has a length."""
    whole = mapping(data)
    if "points" in whole:
        return "$.points", whole["points"]
    if isinstance(data, list):
        ours = any("commit_mean" in mapping(row) for row in data[:MOST_POINTS]) or _placed(data)
        return "$", data if ours else []
    named = next((name for name, value in whole.items() if isinstance(value, list) and _placed(value)), "")
    return f"$.{named}", whole.get(named)


def _placed(rows: list[Any]) -> bool:
    """Each has a context length, and a figure that only a measurement of speculation has."""
    told = [_renamed(row) for row in map(mapping, rows[:MOST_POINTS])]
    return bool(told) and all(
        any(whole_number(row.get(name)) is not None for name in _CONTEXT)
        and any(number(row.get(name)) is not None for name in ("commit_len", "accept_rate"))
        for row in told
    )


def _renamed(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A point with the names that cases have, whether it is of a report or of somebody's own making."""
    known = {**_OURS, **_OTHERS}
    return {**{known[name]: row[name] for name in known if name in row}, **row}


def _is_point(row: Mapping[str, Any]) -> bool:
    measures = ("commit_len", "accept_rate", "tok_s", "step_ms", "verify_steps")
    return any(number(row.get(name)) is not None for name in measures)


def _point(
    key: str, place: str, row: Mapping[str, Any], most: int | None
) -> tuple[CommitPoint, list[Acceptance]]:
    """One row as a point, and what each of its figures says by itself."""
    arm = _arm(row)
    context = next((c for n in _CONTEXT if (c := whole_number(row.get(n))) is not None), None) or 0
    figures = _figures(row, most)
    best = next((f for _, f in figures if f.commit is not None), None)
    commit = best.commit if best is not None else None
    output, steps = whole_number(row.get("completion_tokens")), _count(row, "verify_steps")
    drafted_steps = steps
    if row.get("drafted") == 0 and not steps:
        # Without a draft a step commits its one token.
        commit, drafted_steps = 1.0, 0
        steps = output - 1 if output is not None and output > 1 else None
    tpot, step_ms, speed = (number(row.get(name)) for name in ("tpot_ms", "step_ms", "tok_s"))
    if step_ms is None and tpot is not None and commit is not None:
        step_ms = commit * tpot
    if speed is None and tpot:
        speed = 1000 / tpot
    sample = text(row.get("output_sample"))[:LOOKED_AT]
    point = CommitPoint(
        arm=arm,
        context_tokens=max(context, 0),
        requests=1,
        cached_tokens=_count(row, "cached_tokens"),
        steps=steps or 0,
        drafted_steps=drafted_steps,
        commit_mean=commit,
        drafted_commit_mean=commit if drafted_steps != 0 else None,
        ceiling=most,
        share_of_ceiling=(commit - 1) / (most - 1) if commit is not None and most else None,
        saturated=bool(commit is not None and most and FULL * most <= commit <= ABOVE * most),
        accept_rate=next((f.rate for _, f in figures if f.rate is not None), None),
        per_position=_shares(row.get("per_position")),
        step_ms=step_ms,
        tok_s=speed,
        loops=int(bool(sample and loop(tuple(map(ord, sample))))),
        origin="points",
        source=(Cite(key, place),),
    )
    told = [
        Acceptance(
            commit=figure.commit,
            rate=figure.rate,
            draft_tokens=figure.draft_tokens,
            definition=figure.definition,
            window="one point",
            steps=figure.steps,
            origin=origin,
            context_tokens=point.context_tokens,
            text=arm,
            run=f"{key} {place}",
            source=(Cite(key, place),),
        )
        for origin, figure in figures
    ]
    return point, told


def _figures(row: Mapping[str, Any], most: int | None) -> list[tuple[str, Canonical]]:
    """Every figure of acceptance in the row, the one that the row itself calls its commit first."""
    drafts = most - 1 if most else None
    steps, output = _count(row, "verify_steps"), whole_number(row.get("completion_tokens"))
    accepted, drafted = _count(row, "accepted"), _count(row, "drafted")
    length, rate, per_step = (number(row.get(n)) for n in ("commit_len", "accept_rate", "drafts_per_step"))
    found: list[tuple[str, Canonical]] = []
    if length is not None:
        found.append(("commit_len", acceptance.from_length(length, drafts, steps)))
    if steps and accepted is not None:
        found.append(("accepted / steps", acceptance.from_counts(steps, accepted, drafted, drafts)))
    if steps and output is not None:
        found.append(("completion_tokens / verify_steps", acceptance.from_tokens(output, steps, drafts)))
    if rate is not None:
        found.append(("accept_rate", acceptance.from_rate(rate, per_step or drafts, steps)))
    return found


def _impossible(key: str, place: str, row: Mapping[str, Any], most: int | None) -> Iterator[Claim]:
    """Figures that no drafter can have: stated, and no measurement."""
    for name, what, can in (
        ("commit_len", "commit length", acceptance.length),
        ("accept_rate", "accept rate", acceptance.share),
    ):
        value = number(row.get(name))
        if value is None:
            continue
        beyond = name == "commit_len" and most is not None and value > most * ABOVE
        if beyond or can(value) is None:
            cite = Cite(key, f"{place}.{name}")
            yield Claim(what=what, value=value, origin=f"{place[2:]} {name}", run=key, source=(cite,))


def _arm(row: Mapping[str, Any]) -> str:
    """The kind of text, and what else tells this series from another."""
    if "commit_mean" in row and "text" not in row:
        return text(row.get("arm"))[:60] or "text"
    kind = text(row.get("text", row.get("arm"))).strip().lower() or "text"
    words = [TEXTS.get(kind, re.sub(r"\s+", "-", kind)[:40])]
    if "text" in row and (other := text(row.get("arm")).strip()) and TEXTS.get(other.lower()) != words[0]:
        words.append(other[:20])
    if isinstance(thinking := row.get("enable_thinking"), bool):
        words.append("thinking" if thinking else "no-thinking")
    at_once = next((n for name in _AT_ONCE if (n := whole_number(row.get(name))) is not None), 1)
    if at_once > 1:
        words.append(f"{at_once}-at-once")
    if temperature := number(row.get("temperature")):
        words.append(f"t={temperature:g}")
    return " ".join(words)


def _shares(value: Any) -> tuple[float, ...] | None:
    shares = [number(item) for item in value] if isinstance(value, list) else []
    known = tuple(share for share in shares if share is not None and 0 <= share <= 1)
    return known if known and len(known) == len(shares) <= 256 else None


def _count(row: Mapping[str, Any], name: str) -> int | None:
    count = whole_number(row.get(name))
    return count if count is not None and count >= 0 else None


# --- cold and from the cache -------------------------------------------------------------------------------


def _cached(points: list[CommitPoint]) -> dict[int, int]:
    """Points whose prompt came from the prefix cache, each with its like that was computed."""
    found = {}
    for index, point in enumerate(points):
        for other, cold in enumerate(points):
            alike = (cold.arm, cold.context_tokens) == (point.arm, point.context_tokens)
            if alike and _share(cold) == "cold" and _share(point) == "cached":
                found[index] = other
                break
    return found


def _share(point: CommitPoint) -> str:
    if point.cached_tokens is None or not point.context_tokens:
        return ""
    return "cached" if point.cached_tokens > FROM_CACHE * point.context_tokens else "cold"


def _cold_cached(cold: CommitPoint, cached: CommitPoint) -> CommitCheck:
    first, second = cold.commit_mean, cached.commit_mean
    known = first is not None and second is not None
    agrees = SAME <= second / first <= 1 / SAME if known and first and second is not None else None
    said = ", where nothing was drafted" if cached.drafted_steps == 0 else ""
    return CommitCheck(
        name="cold-cached",
        agrees=agrees,
        text=f"{cold.arm} at {cold.context_tokens} commits {_told(first)} cold and {_told(second)} from the cache{said}",
        arm=cold.arm,
        context_tokens=cold.context_tokens,
        first=first,
        second=second,
        steps=cold.steps + cached.steps,
        source=(*cold.source, *cached.source),
    )


def _told(commit: float | None) -> str:
    return "unknown" if commit is None else f"{commit:.2f}"


def _as_request(key: str, point: CommitPoint, row: Mapping[str, Any], purpose: str) -> CommitRequest:
    return CommitRequest(
        key=key,
        purpose=purpose,
        arm=point.arm,
        context_tokens=point.context_tokens,
        prompt=0,
        cached_tokens=_count(row, "cached_tokens"),
        output_tokens=whole_number(row.get("completion_tokens")),
        num_spec_steps=point.drafted_steps,
        num_accepted_draft_tokens=_count(row, "accepted"),
        num_draft_tokens=_count(row, "drafted"),
        origin="points",
        source=point.source,
    )
