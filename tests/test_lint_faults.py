"""A fault of the lints, on files that were given: it costs what they would have found, and never the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ddprobe import lints, rejudging, store
from ddprobe.model import COLLECTED, Fact, Finding, Outcome
from tests.test_analyse import Analyse, analyse, folder, own_place

__all__ = ["analyse", "own_place"]


def broken(_facts: Sequence[Fact]) -> list[Finding]:
    raise ZeroDivisionError("boom")


def told(report: dict[str, object]) -> list[dict[str, object]]:
    findings = report["findings"]
    assert isinstance(findings, list)
    return [finding for finding in findings if "ZeroDivisionError" in finding["summary"]]


def test_it_is_one_unknown_finding_that_says_so(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = folder(tmp_path / "a")
    _, before = analyse(at)
    monkeypatch.setattr(lints, "judge", broken)
    code, report = analyse(at)
    assert code == 1  # the points still tell that the drafter is dead
    assert [verdict["name"] for verdict in report["verdicts"]] == ["drafter_dead"]
    assert report["steps"] == before["steps"]  # nothing of what was read is lost
    (fault,) = told(report)
    assert (fault["id"], fault["outcome"], fault["subject"]) == ("unanswered", "unknown", COLLECTED)
    assert str(fault["summary"]).startswith(
        "ddprobe has a bug in judging the files: ZeroDivisionError: boom ("
    )
    assert str(fault["summary"]).endswith("; please report it")


def test_an_old_report_loses_no_more_and_is_whole_once_the_fault_is_mended(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert analyse(folder(tmp_path / "a"))[1]["findings"]
    (out,) = (tmp_path / "reports").iterdir()
    with monkeypatch.context() as patched:
        patched.setattr(lints, "judge", broken)
        faulty = rejudging.rejudge(out)
        assert [f.outcome for f in faulty.findings if "boom" in f.summary] == [Outcome.UNKNOWN]
        assert [verdict.name for verdict in faulty.verdicts] == ["drafter_dead"]
    assert rejudging.rejudge(out).findings == store.load(out).findings
