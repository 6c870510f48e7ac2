"""What hosts answered, as data files, and what each probe must make of it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from ddprobe import blocks, probes
from ddprobe.model import Fact, Outcome, Step
from ddprobe.runner import collect, judge
from tests import recorded
from tests.recorded import RecordedSession
from tests.silent import SilentWriter


def name_of(path: Path) -> str:
    return "/".join(path.with_suffix("").parts[-3:])


@pytest.mark.parametrize("path", recorded.recordings(), ids=name_of)
def test_recording(path: Path) -> None:
    content = recorded.load(path)
    probe_class = probes.load(".".join(path.parts[-3:-1]))
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in (content.get("settings") or {}).items()}
    step = Step("step", probe_class(**settings))
    host = recorded.host(content)
    session = RecordedSession(host, content.get("answers") or [], path.parent)

    collected = collect(step, host, session, SilentWriter(), lambda _host, _now: None)
    record, findings = judge(step, collected.evidence, collected.broken, lambda _host, _step, key: key)
    assert not session.unasked, f"answers that were never asked for: {sorted(session.unasked)}"

    expect = content["expect"]
    for wanted in expect.get("facts", []):
        assert_fact(wanted, record.facts)
    got = sorted((f.id, f.outcome.label) for f in findings if f.id != "unanswered")
    if "findings" in expect:
        assert got == sorted((w["id"], w["outcome"]) for w in expect["findings"])
    for wanted in expect.get("findings_include", []):
        assert (wanted["id"], wanted["outcome"]) in got, f"{wanted} not in {got}"
    gaps = expect.get("gaps", [])
    assert len(record.reasons) == len(gaps), record.reasons
    for wanted in gaps:
        assert any(wanted in reason for reason in record.reasons), f"{wanted!r} not in {record.reasons}"
    outputs = probe_class.output(record.facts, findings)
    assert set(outputs) <= set(probe_class.outputs)
    for name, value in expect.get("outputs", {}).items():
        told = outputs.get(name)
        assert (list(told) if isinstance(told, tuple) else told) == value, f"the output {name} is {told!r}"
    shown = "\n".join(text(block) for block in step.probe.show(record.facts))
    for wanted in expect.get("shows", []):
        assert wanted in shown, f"{wanted!r} is not shown in:\n{shown}"
    for unwanted in expect.get("hides", []):
        assert unwanted not in shown, f"{unwanted!r} is shown in:\n{shown}"
    for finding in findings:
        assert isinstance(finding.outcome, Outcome)
        for cite in finding.cites:
            assert collected.evidence.has(cite.artefact), f"{finding.id} cites {cite.artefact}, never asked"


def assert_fact(wanted: dict[str, Any], facts: tuple[Fact, ...]) -> None:
    kind = wanted["type"]
    near = []
    for fact in facts:
        if type(fact).__name__ != kind:
            continue
        have = {f.name: plain(getattr(fact, f.name)) for f in fields(fact)}
        if all(name in have and have[name] == value for name, value in wanted.items() if name != "type"):
            return
        near.append({name: have.get(name, "no such field") for name in wanted if name != "type"})
    raise AssertionError(f"no fact {wanted}; of that type there are {near}")


def plain(value: Any) -> Any:
    """A fact's value as YAML would hold it."""
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def text(block: blocks.Block) -> str:
    """All that a block says, in one string."""
    match block:
        case blocks.Heading() | blocks.Paragraph():
            return block.text
        case blocks.Table():
            return "\n".join(
                [block.title, " | ".join(block.columns), *map(" | ".join, block.rows), block.caption]
            )
        case blocks.Code():
            lines = [f"{number} {line}" for number, line in block.lines]
            return "\n".join([block.path, block.title, *lines, block.note])
        case blocks.Pairs():
            return "\n".join([block.title, *(f"{name}: {value}" for name, value in block.rows)])
        case blocks.Plot():
            return "\n".join([block.title, *block.places, *(series.name for series in block.series)])
