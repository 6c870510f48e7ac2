"""Markdown tables of points: a column with the context length, and one with what was measured there.

| context | accept len | tok/s |
|---------|------------|-------|
| 1k      | 4.1        | 95    |
| 128k    | 1.02       | 9.5   |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ddprobe.evidence import points
from ddprobe.evidence.document import Document, Found
from ddprobe.facts import CommitPoint, PlainSpeed
from ddprobe.model import Cite, Fact

LARGEST = 256 * 1024
MOST_ROWS = 200
_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)+\|?\s*")
_CONTEXT = re.compile(r"(?:context|ctx|prompt|input)(?: ?(?:length|len|tokens?|size))?(?: \(.*\))?")
_COLUMNS = (
    ("commit_len", re.compile(r"(?:mean |avg\.? |average )?(?:accept(?:ance|ed)?|commit(?:ted)?)[ _]?len(?:gth)?(?: \(.*\))?|commit(?:ted)? mean|mean commit")),
    ("accept_rate", re.compile(r"(?:draft )?accept(?:ance)?[ _]?rate(?: \(?%?\)?)?")),
    ("tok_s", re.compile(r"(?:decode |gen(?:eration)? )?(?:tok(?:en)?s?\s?/\s?s(?:ec)?|tps|t/s|throughput \(tok/s\))")),
    ("step_ms", re.compile(r"(?:verify )?step(?: time)? ?\(?ms\)?")),
    ("verify_steps", re.compile(r"(?:verify )?steps|n steps")),
    ("text", re.compile(r"text|prompt type|arm|task")),
)  # fmt: skip
"""Fields of a point, and how people head the column."""
_DRAFTS = r"(?:spec\w*(?: decod\w*)?|draft\w*|eagle\S*|mtp|dflash\d?|ddtree)"
_SPEED = re.compile(r"tok(?:en)?s?\s?/\s?s|t/s|\btps\b")
_SPEEDS = (
    ("plain_tok_s", re.compile(rf"(?:without|w/o|no|non)[ -]?{_DRAFTS}\b.*|(?:baseline|vanilla|plain|autoregressive)\b.*|{_DRAFTS} off\b.*")),
    ("tok_s", re.compile(rf"(?:with|w/) ?{_DRAFTS}\b.*|{_DRAFTS}(?: on)?(?![\w ]* off)\b.*")),
)  # fmt: skip
"""Of a table that has tokens per second with speculation and without."""
_NUMBER = re.compile(r"[~≈]?\s*(\d{1,7}(?:\.\d{1,6})?)\s*(%|x|ms|tok/s|t/s)?")
_FACTORS = {"k": 1024, "m": 1024**2}
_SIZE = re.compile(r"[~≈]?\s*(\d{1,4}(?:[.,]\d{1,3})?\s?[kKmM]?|\d{1,8})(?:\s*(?:tok(?:en)?s?))?")


def recognise(document: Document, sample: str) -> Found | None:
    """The points in its tables; None where it holds no table of points."""
    if "|" not in sample:
        return None
    text = document.whole()
    if text is None or len(text) > LARGEST:
        return None
    facts = [fact for table in _tables(text.split("\n")) for fact in _facts(document.key, *table)]
    if not facts:
        return None
    count = sum(isinstance(fact, CommitPoint) for fact in facts)
    return Found(f"a table of {count} measured point{'s' if count > 1 else ''}", tuple(facts))


def _tables(lines: list[str]) -> Iterator[tuple[list[Mapping[str, Any]], list[int]]]:
    """Rows that hold a point, each as the fields of one, and the lines that they stand in."""
    for number in range(1, len(lines)):
        if not _RULE.fullmatch(lines[number]):
            continue
        head = [_field(cell) for cell in _cells(lines[number - 1])]
        named = [name for name in head if name]
        if "ctx_tokens" not in named or len(named) < 2 or len(set(named)) != len(named):
            continue
        rows: list[Mapping[str, Any]] = []
        at: list[int] = []
        for index in range(number + 1, min(len(lines), number + 1 + MOST_ROWS)):
            cells = _cells(lines[index])
            if len(cells) != len(head):
                break
            row = {
                name: value
                for name, cell in zip(head, cells, strict=True)
                if (value := _value(name, cell)) is not None
            }
            if "ctx_tokens" in row and len(row) > 1:
                rows.append(row)
                at.append(index + 1)
        if rows:
            yield rows, at


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("*`_ ") for cell in line.strip().strip("|").split("|")] if "|" in line else []


def _field(heading: str) -> str:
    heading = heading.lower().replace("_", " ")
    if _CONTEXT.fullmatch(heading):
        return "ctx_tokens"
    known = next((name for name, pattern in _COLUMNS if pattern.fullmatch(heading)), "")
    if known or not _SPEED.search(heading):
        return known
    return next((name for name, pattern in _SPEEDS if pattern.fullmatch(heading)), "")


def _value(name: str, cell: str) -> Any:
    """What a cell says; None where it says nothing that can be read."""
    if name == "text":
        return cell or None
    if name == "ctx_tokens":
        return _size(cell)
    found = _NUMBER.fullmatch(cell) if name else None
    if found is None:
        return None
    value = float(found[1]) / (100 if found[2] == "%" else 1)
    return int(value) if name == "verify_steps" else value


def _size(cell: str) -> int | None:
    found = _SIZE.fullmatch(cell)
    if found is None:
        return None
    text = re.sub(r",(?=\d{3}\Z)", "", found[1].replace(" ", "").lower()).replace(",", ".")
    factor = _FACTORS.get(text[-1], 1)
    return round(float(text.rstrip("km")) * factor)


def _facts(key: str, rows: list[Mapping[str, Any]], at: list[int]) -> Iterator[Fact]:
    """The points as any others, cited by their lines."""
    for fact in points.of_data(key, {"points": rows}):
        cites = tuple(Cite(cite.artefact, _line(cite.at, at)) for cite in fact.source)
        yield replace(fact, source=cites)
    for row, line in zip(rows, at, strict=True):
        if speed := row.get("plain_tok_s"):
            yield PlainSpeed(
                context_tokens=row["ctx_tokens"], tok_s=speed, source=(Cite(key, f"line {line}"),)
            )


def _line(place: str, at: list[int]) -> str:
    found = re.match(r"\$\.points\[(\d+)\]", place)
    return f"line {at[int(found[1])]}" if found else place
