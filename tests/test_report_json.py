"""report.json and --json: the contract with scripts."""

from __future__ import annotations

import dataclasses
import json
from importlib import resources
from typing import Any

import jsonschema
import pytest

from ddprobe import reportjson, reportschema
from ddprobe.errors import UsageError
from ddprobe.model import Cite, Report
from ddprobe.render import jsonview
from tests import reports


def document(report: Report) -> Any:
    return json.loads(jsonview.text(report))


def test_a_report_comes_back_from_its_json_as_it_was() -> None:
    report = reports.report()
    assert reportjson.to_report(document(report)) == report


def test_the_top_level_keys_are_those_of_the_contract() -> None:
    assert list(document(reports.report())) == [
        "schema", "name", "version", "started", "seconds", "lab", "interrupted", "playbook", "outcome", "hosts",
        "findings", "verdicts", "hypotheses", "ledger", "points", "ranges", "hits", "steps", "redactions", "trouble",
    ]  # fmt: skip


def test_what_is_at_the_top() -> None:
    found = document(reports.report(lab=True))
    assert found["schema"] == "ddprobe-report/1"
    assert found["started"] == "2026-11-30T17:33:20.123456717Z"
    assert found["outcome"] == "fail"
    assert found["lab"] is True
    assert found["findings"][1] == {
        "id": "DC20",
        "outcome": "fail",
        "subject": "block size",
        "summary": "8 is below 16",
        "cites": [{"artefact": "evidence/gpu1/find/01-config.stdout", "at": "$.block_size"}],
        "measured": {"block_size": 8, "factor": 0.5, "set": None},
        "advice": "--speculative-num-draft-tokens 8",
        "source": "config.json",
        "host": "gpu1",
        "step": "find",
    }
    assert found["verdicts"][0]["name"] == "inconclusive"


def test_ranges_and_hits_stand_at_the_top_with_their_host_and_step() -> None:
    found = document(reports.report())
    assert [(r["host"], r["status"]) for r in found["ranges"]] == [
        ("gpu1", "complete"), ("gpu1", "past_end"), ("gpu2", "complete"), ("gpu2", "past_end"),
    ]  # fmt: skip
    assert found["ranges"][1] == {
        "path": "srt/a.py", "first": 50, "last": 60, "total": 9, "status": "past_end", "text": "", "symbol": "",
        "note": "9 lines", "host": "gpu1", "step": "find",
    }  # fmt: skip
    assert found["hits"][0] == {
        "path": "srt/a.py", "line": 3, "text": "x = 1", "within": "f", "host": "gpu1", "step": "find",
    }  # fmt: skip
    assert found["ranges"][0]["text"] == "x = 1\n\ty = '" + reports.HOSTILE + "'\n"


def test_the_text_is_safe_for_a_terminal_and_for_strict_readers() -> None:
    text = jsonview.text(reports.report())
    assert not any(ord(c) < 0x20 and c != "\n" for c in text)
    assert not any(c in text for c in "\x7f\x9b\u202e\ud800")
    text.encode("utf-8")

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    json.loads(text, parse_constant=refuse)


def test_an_infinite_number_is_a_string_in_json_and_a_number_again_afterwards() -> None:
    rope = document(reports.report())["steps"][0]["facts"][1]["rope"]
    assert rope["theta"] == "Infinity"


def test_facts_of_a_later_version_are_kept() -> None:
    data = document(reports.report())
    later = {"type": "Telepathy", "source": [{"artefact": "a", "at": ""}], "strength": 3, "deep": {"x": [1]}}
    data["steps"][0]["facts"] = [later]
    data["brand_new"] = 1
    report = reportjson.to_report(data)
    assert report.steps[0].facts[0] == reportjson.ForeignFact(
        type="Telepathy", values=(("strength", 3), ("deep", {"x": [1]})), source=(Cite("a"),)
    )
    assert document(report)["steps"][0]["facts"] == [later]


def test_a_known_fact_with_fields_that_do_not_fit_is_kept_as_it_is() -> None:
    data = document(reports.report())
    odd = {"type": "SourceHit", "path": 5, "line": "x", "source": []}
    data["steps"][0]["facts"] = [odd]
    data["steps"] = data["steps"][:1]
    fact = reportjson.to_report(data).steps[0].facts[0]
    assert fact == reportjson.ForeignFact(type="SourceHit", values=(("path", 5), ("line", "x")))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": None}, "no schema"),
        ({"schema": "ddprobe-report/2"}, "ddprobe-report/2"),
        ({"hosts": "gpu1"}, "is no list"),
        ({"seconds": "soon"}, "soon"),
        ({"steps": [{"id": "a"}]}, "missing"),
        ({"started": "yesterday"}, "no time"),
        ({"findings": [{"id": "a", "outcome": "great", "subject": "", "summary": ""}]}, "GREAT"),
    ],
)
def test_json_that_is_no_report_is_told_in_a_sentence(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        reportjson.to_report({**document(reports.report()), **change})


@pytest.mark.parametrize("data", [None, [], "x", 5, {}])
def test_other_json_is_no_report(data: Any) -> None:
    with pytest.raises(UsageError, match="not a ddprobe report"):
        reportjson.to_report(data)


@pytest.mark.parametrize(
    "seconds", [0.0, 1.0, 1796060000.0, 1796060000.1234567, 1796060000.5, 0.000001, 4102444799.999999]
)
def test_moments_come_back_to_the_last_digit(seconds: float) -> None:
    report = dataclasses.replace(reports.report(), started=seconds)
    assert reportjson.to_report(document(report)).started == seconds


# --- the schema --------------------------------------------------------------------------------------------


def shipped() -> Any:
    return json.loads(resources.files("ddprobe").joinpath("report.schema.json").read_text(encoding="utf-8"))


def test_the_shipped_schema_is_what_the_types_say() -> None:
    """To renew it: python -c 'from ddprobe import reportschema as s; print(s.text(), end="")' > ddprobe/report.schema.json"""
    assert shipped() == reportschema.schema()


@pytest.mark.parametrize("report", [reports.report(), Report(name="empty", version="1", started=0.0)])
def test_a_report_fulfils_the_schema(report: Report) -> None:
    jsonschema.Draft202012Validator.check_schema(shipped())
    jsonschema.Draft202012Validator(shipped()).validate(document(report))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("outcome",), "great"),
        (("hosts", 0, "name"), None),
        (("steps", 0, "facts", 0, "what"), 7),
        (("ranges", 0, "first"), "1"),
        (("findings", 0, "cites"), "a"),
        (("schema",), "ddprobe-report/2"),
    ],
)
def test_the_schema_refuses_what_is_not_so(place: tuple[str | int, ...], value: Any) -> None:
    data = document(reports.report())
    inner = data
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(shipped()).validate(data)
