"""A bug of ddprobe's own in one place of `analyse`: it costs what stands there, is said in one line, and the rest is judged."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from ddprobe import evidence, rejudging, store
from ddprobe.evidence import beside, configs, pasted, prompts
from ddprobe.evidence.document import Document, of_bytes
from ddprobe.facts import EvidenceFile
from tests.test_analyse import ARGS, DEAD, Analyse, analyse, decode_lines, files, folder, own_place

__all__ = ["analyse", "own_place"]

DEAD_FIRST = ["drafter_dead"]


def broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a bug that\nnobody knew of")


def told(report: dict[str, Any]) -> list[str]:
    """Every line on a bug, of each place once."""
    lines = [finding["summary"] for finding in report["findings"] if finding["id"] == "unanswered"]
    assert all(
        "ddprobe has a bug in" in line and "RuntimeError: a bug that nobody" in line for line in lines
    ), lines
    return sorted(set(lines))


def names(report: dict[str, Any]) -> list[str]:
    return [verdict["name"] for verdict in report["verdicts"]]


@pytest.mark.parametrize("name", evidence.RECOGNISERS)
def test_a_bug_in_one_recogniser_costs_its_own_facts(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    at = folder(tmp_path / "case")
    (at / "server.log").write_text(ARGS + decode_lines(30, "1.02"))
    (at / "note.txt").write_text("the drafter was quick on Monday\n")
    whole = {fact["type"] for step in analyse(at)[1]["steps"] for fact in step["facts"]}
    monkeypatch.setattr(importlib.import_module(f"ddprobe.evidence.{name}"), "recognise", broken)
    code, report = analyse(at)
    assert code in (0, 1)
    left = {fact["type"] for step in report["steps"] for fact in step["facts"]}
    assert left <= whole
    assert len(whole - left) <= 3
    # The points say it, and so does the log: without the one there is the other.
    assert names(report)[:1] == DEAD_FIRST
    assert [line for line in told(report) if f"a bug in reading {name}: " in line]
    assert len(told(report)) == 1


@pytest.mark.parametrize(
    ("module", "function"),
    [(pasted, "unwrapped"), (pasted, "parts"), (evidence.conclusions, "recognise")],
    ids=["unwrapping", "parts", "conclusions"],
)
def test_a_bug_in_what_comes_before_costs_no_file(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch, module: Any, function: str
) -> None:
    at = folder(tmp_path / "case")
    known = {name: file["recognised"] for name, file in files(analyse(at)[1]).items()}
    monkeypatch.setattr(module, function, broken)
    _, report = analyse(at)
    assert {name: file["recognised"] for name, file in files(report).items()} == known
    assert names(report)[:1] == DEAD_FIRST
    assert len(told(report)) == 1


def test_a_bug_in_laying_facts_together_costs_only_that(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = folder(tmp_path / "case")
    _, sound = analyse(at)
    monkeypatch.setattr(configs, "merge", broken)
    _, report = analyse(at)
    assert names(report) == names(sound)
    (line,) = told(report)
    assert "a bug in reading what belongs together: " in line
    assert {f["id"] for f in sound["findings"]} <= {f["id"] for f in report["findings"]}
    with pytest.raises(RuntimeError):
        evidence.facts([evidence.recognise(of_bytes("x", ARGS.encode()))])


def test_where_requests_cannot_be_taken_out_the_file_is_no_evidence(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What users write must not be read as what a server says: better none of the file than all of it."""

    def only_logs(document: Document, text: str) -> Document:
        return broken() if "Decode batch" in text else document

    at = folder(tmp_path / "case")
    (at / "server.log").write_text(decode_lines(30))
    monkeypatch.setattr(prompts, "without", only_logs)
    _, report = analyse(at)
    assert files(report)["server.log"]["recognised"] == []
    assert names(report)[:1] == DEAD_FIRST
    assert len(told(report)) == 1


@pytest.mark.parametrize("name", ["decode_logs", "launch", "startup"])
def test_of_a_large_log_the_rest_is_read_too(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    log = ARGS + decode_lines(30)
    monkeypatch.setattr(importlib.import_module(f"ddprobe.evidence.{name}"), "recognise", broken)
    reading = evidence.recognise(Document("x", lambda: iter((log.encode(),)), large=True))
    assert len(reading.troubles) == 1
    assert reading.found
    assert reading.rest is not None


def test_a_large_log_that_cannot_be_followed_costs_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside.Beside, "rest", broken)
    reading = evidence.recognise(Document("x", lambda: iter((ARGS.encode(),)), large=True))
    assert (reading.found, len(reading.troubles)) == ((), 1)


def test_a_file_that_cannot_be_read_is_no_bug() -> None:
    def gone() -> Any:
        raise OSError("No such device")

    with pytest.raises(OSError, match="No such device"):
        evidence.recognise(Document("x", gone))


def test_a_bug_of_a_later_version_is_said_when_a_report_is_judged_again(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = folder(tmp_path / "case", DEAD)
    analyse(at)
    (kept,) = (tmp_path / "reports").iterdir()
    for name in ("configs", "launch"):
        monkeypatch.setattr(importlib.import_module(f"ddprobe.evidence.{name}"), "recognise", broken)
    report = rejudging.rejudge(kept, store.kept(kept))
    unread = [finding for finding in report.findings if finding.id == "unanswered"]
    assert {
        line.split(" has a bug in reading ")[1].split(":")[0] for line in (f.summary for f in unread)
    } == {
        "configs",
        "launch",
    }
    of_files = [fact.name for step in report.steps for fact in step.facts if isinstance(fact, EvidenceFile)]
    assert {finding.subject for finding in unread} <= {step.id for step in report.steps}
    assert json.dumps(of_files).count("points.json") == 1
    assert [verdict.name for verdict in report.verdicts][:1] == DEAD_FIRST
