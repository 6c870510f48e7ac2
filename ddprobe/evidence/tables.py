"""Tables of measurements: a column with the context length or the requests at once, and one with what was measured there.

    | context | accept len | tok/s |        concurrency,baseline tok/s,EAGLE3 tok/s
    |---------|------------|-------|        1,95,188
    | 1k      | 4.1        | 95    |        32,2200,2150
    | 128k    | 1.02       | 9.5   |

Speeds without speculation may have a column of their own, or rows: then a column says which (`mode`: baseline, EAGLE3).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ddprobe.evidence import points
from ddprobe.evidence.document import Document, Found
from ddprobe.facts import Acceptance, BatchSpeed, CommitPoint, PlainSpeed
from ddprobe.model import Cite, Fact
from ddprobe.parsing import acceptance, table_text

LARGEST = 256 * 1024
_CONTEXT = re.compile(
    r"(?:(?:context|ctx|prompt|input|seq(?:uence)?)(?: ?(?:length|len|tokens?|size))?|isl)(?: ?\(.*\))?"
)
_RUNNING = re.compile(
    r"(?:max )?(?:concurren(?:cy|t(?: req(?:uest)?s)?)|batch(?: ?size)?|bs|#? ?running(?:[ -]?req(?:uest)?s?)?|parallel(?: req(?:uest)?s?)?|users|clients|streams)"
)
_COLUMNS = (
    ("commit_len", re.compile(r"(?:mean |avg\.? |average )?(?:accept(?:ance|ed)?|commit(?:ted)?)[ _]?len(?:gth)?(?: \(.*\))?|commit(?:ted)? mean|mean commit|τ|tau|(?:mean |avg )?al|tok(?:en)?s?(?: ?/ ?| per )(?:verify )?step")),
    ("accept_rate", re.compile(r"(?:draft )?accept(?:ance)?[ _]?rate(?: ?\(?%?\)?)?")),
    ("tok_s", re.compile(r"(?:output |decode |gen(?:eration)? |speed |throughput )?\(?(?:tok(?:en)?s?(?:\s?/\s?| per | )s(?:ec(?:ond)?)?|tps|t/s)\)?")),
    ("step_ms", re.compile(r"(?:verify )?step(?: time| latency)? ?\(?ms\)?|ms(?: ?/ ?| per )step")),
    ("tpot_ms", re.compile(r"(?:mean |median |avg )?(?:tpot|itl)(?: ?\(ms\))?")),
    ("cached_tokens", re.compile(r"(?:prompt )?cached(?: prompt)?(?: tok(?:en)?s?)?|#cached-token")),
    ("speedup", re.compile(r"speed[- ]?up(?: \(?x\)?)?(?: vs\.? \w+)?")),
    ("verify_steps", re.compile(r"(?:verify )?steps|n steps")),
    ("text", re.compile(r"text|prompt type|arm|task")),
    ("mode", re.compile(r"mode|config(?:uration)?|setup|variant|method|run|name|model|drafter|spec(?:ulation|ulative decoding)?")),
)  # fmt: skip
"""Fields of a point, and how people head the column."""
_MEASURES = {"commit_len", "accept_rate", "tok_s", "step_ms", "verify_steps", "plain_tok_s"}
_AT_ONCE = {"commit_len", "accept_rate", "tok_s", "plain_tok_s"}
"""What makes a table of requests at once one of ours."""
_DRAFTS = r"(?:spec\w*(?: decod\w*)?|draft\w*|eagle\S*|mtp|nextn|medusa|n-?gram|dflash\d?|ddtree)"
_WITHOUT = rf"(?:without|w/o|no|non)[ -]?{_DRAFTS}\b.*|(?:baseline|vanilla|plain|autoregressive)\b.*|{_DRAFTS}[ :=]*off\b.*"
_SPEED = re.compile(r"\(?(?:tok(?:en)?s?\s?/\s?s(?:ec)?|t/s|\btps\b|\btok s\b)\)?")
_PLAIN = re.compile(rf"(?:{_WITHOUT}|without|none|off|no|false|ar|base|-|–)")
_ON = re.compile(rf"(?:with |w/ ?)?{_DRAFTS}\b.*|.*\b{_DRAFTS}|with|on|yes|true")
"""What a column of speeds, or a row, is of: without speculation, and with it."""
_THOUSANDS = re.compile(r"\(k\w*\)")


@dataclass(frozen=True, slots=True)
class _Row:
    """One row as the fields of a point, and its line."""

    fields: Mapping[str, Any]
    line: int
    plain: bool = False


def recognise(document: Document, sample: str) -> Found | None:
    """The measurements in its tables; None where it holds no table of any."""
    text = document.whole()
    if text is None or len(text) > LARGEST or "\0" in sample:
        return None
    facts = [fact for table in table_text.tables(text, _known) for fact in _facts(document.key, _rows(table))]
    if not facts:
        return None
    return Found(_what(facts), tuple(facts))


def _what(facts: Sequence[Fact]) -> str:
    told = []
    for kind, word in ((CommitPoint, "measured point"), (BatchSpeed, "speed of several requests at once")):
        if count := sum(isinstance(fact, kind) for fact in facts):
            told.append(
                f"{count} {word}" if count == 1 else f"{count} {word.replace('comparison', 'comparisons')}s"
            )
    return "a table of " + (" and ".join(told) or f"{len(facts)} stated figures")


def _several(words: str) -> str:
    return words.replace("speed ", "speeds ") if words.startswith("speed") else f"{words}s"


def _known(head: Sequence[str]) -> bool:
    named = [name for name in map(_field, head) if name]
    if len(set(named)) != len(named):
        return False
    return ("ctx_tokens" in named and not _MEASURES.isdisjoint(named)) or (
        "running" in named and not _AT_ONCE.isdisjoint(named)
    )


def _field(heading: str) -> str:
    heading = heading.lower().replace("_", " ").strip()
    if _CONTEXT.fullmatch(heading):
        return "ctx_tokens"
    if _RUNNING.fullmatch(heading):
        return "running"
    known = next((name for name, pattern in _COLUMNS if pattern.fullmatch(heading)), "")
    if known or not _SPEED.search(heading):
        return known
    # `tok/s EAGLE3`, `EAGLE3 (tok/s)`: with the unit away it says what the speed is of.
    of = _SPEED.sub(" ", heading).strip(" :-,()")
    return "plain_tok_s" if _PLAIN.fullmatch(of) else "tok_s" if _ON.fullmatch(of) else ""


def _rows(table: table_text.Table) -> list[_Row]:
    """Rows that hold a place and a figure."""
    fields = [_field(heading) for heading in table.head]
    modes = {cells[fields.index("mode")].lower() for cells in table.rows} if "mode" in fields else set()
    split = any(map(_PLAIN.fullmatch, modes)) and all(_PLAIN.fullmatch(m) or _ON.fullmatch(m) for m in modes)
    several = len([mode for mode in modes if not _PLAIN.fullmatch(mode)]) > 1
    found = []
    for cells, line in zip(table.rows, table.lines, strict=True):
        told = {
            name: value
            for name, heading, cell in zip(fields, table.head, cells, strict=True)
            if (value := _value(name, heading.lower(), cell)) is not None
        }
        mode = str(told.pop("mode", "")).lower()
        gain, speed = told.pop("speedup", None), told.get("tok_s")
        if gain and speed and "plain_tok_s" not in told:
            told["plain_tok_s"] = speed / gain
        if mode and (several or not split):
            told.setdefault("text", mode)
        if ("ctx_tokens" in told or "running" in told) and not _MEASURES.isdisjoint(told):
            found.append(_Row(told, line, split and bool(_PLAIN.fullmatch(mode))))
    return found


def _value(name: str, heading: str, cell: str) -> Any:
    """What a cell says; None where it says nothing that can be read."""
    if name in ("text", "mode"):
        return cell or None
    if name == "cached_tokens":
        return table_text.size(cell)
    if name == "ctx_tokens":
        return table_text.size(f"{cell}k" if _THOUSANDS.search(heading) and cell[-1:].isdigit() else cell)
    value = table_text.number(cell) if name else None
    if value is None:
        return None
    if name == "accept_rate" and value > 1 and "%" in heading:
        return value / 100
    return int(value) if name in ("verify_steps", "running") else value


def _facts(key: str, rows: Sequence[_Row]) -> Iterator[Fact]:
    """Points as any others, speeds without speculation, and what several requests at once give; each cited by its line."""
    alone = [row for row in rows if "ctx_tokens" in row.fields and row.fields.get("running", 1) == 1]
    measured = [row for row in alone if not row.plain]
    for fact in points.of_data(key, {"points": [row.fields for row in measured]}):
        cites = tuple(Cite(cite.artefact, _line(cite.at, measured)) for cite in fact.source)
        yield replace(fact, source=cites)
    for row in alone:
        if speed := _without(row):
            yield PlainSpeed(
                context_tokens=row.fields["ctx_tokens"], tok_s=speed, source=(Cite(key, f"line {row.line}"),)
            )
    yield from _at_once(key, [row for row in rows if row not in alone])


def _at_once(key: str, rows: Sequence[_Row]) -> Iterator[Fact]:
    plain = {_place(row): row for row in rows if _without(row)}
    paired = set()
    for row in rows:
        if row.plain:
            continue
        cite, text = Cite(key, f"line {row.line}"), str(row.fields.get("text", ""))[:60]
        if (commit := row.fields.get("commit_len")) is not None:
            figure = acceptance.from_length(commit)
            yield Acceptance(
                commit=figure.commit,
                rate=figure.rate,
                definition=figure.definition,
                window="one row of a table",
                origin="table",
                context_tokens=row.fields.get("ctx_tokens"),
                text=text,
                run=f"{key} line {row.line}",
                source=(cite,),
            )
        other = plain.get(_place(row))
        if row.fields.get("tok_s") and "running" in row.fields:
            paired.add(_place(row))
            cites = (
                (cite,) if other is None else tuple(dict.fromkeys((cite, Cite(key, f"line {other.line}"))))
            )
            yield _speeds(row, row.fields["tok_s"], None if other is None else _without(other), text, cites)
    for place, row in plain.items():
        if place not in paired and "running" in row.fields:
            yield _speeds(row, None, _without(row), "", (Cite(key, f"line {row.line}"),))


def _without(row: _Row) -> float | None:
    """The speed without speculation that a row states."""
    value = row.fields.get("tok_s" if row.plain else "plain_tok_s")
    return float(value) if value else None


def _speeds(
    row: _Row, speed: float | None, plain: float | None, text: str, cites: tuple[Cite, ...]
) -> BatchSpeed:
    return BatchSpeed(
        running=row.fields["running"],
        context_tokens=row.fields.get("ctx_tokens", 0),
        tok_s=speed,
        plain_tok_s=plain,
        text=text,
        source=cites,
    )


def _place(row: _Row) -> tuple[int | None, int | None]:
    return row.fields.get("running"), row.fields.get("ctx_tokens")


def _line(place: str, rows: Sequence[_Row]) -> str:
    found = re.match(r"\$\.points\[(\d+)\]", place)
    return f"line {rows[int(found[1])].line}" if found else place
