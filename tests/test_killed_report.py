"""What a run that was killed leaves: JSON, screen, list and a new judgement say the same, and never more than there is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ddprobe import runner, store
from ddprobe.cli import app
from ddprobe.lab import hosts
from ddprobe.model import Step
from ddprobe.playbookfile.load import load
from ddprobe.playbookfile.values import set_vars
from ddprobe.probes.draft.commit import DraftCommit
from ddprobe.probes.engine.server import EngineServer
from ddprobe.probes.host.reach import HostReach
from ddprobe.running.booked import Booked
from ddprobe.store import ReportWriter
from tests.lab_session import LabSession

OVER = "the run ended before the step did"
BOOK = """\
name: measured
about: Is the drafter broken at long context?
vars:
  contexts: {type: sizes, default: "1k", help: lengths}
steps:
  - id: commit
    probe: draft.commit
    with: {contexts: "${vars.contexts}", arms: repeat, steps: 16, prompts: 1}
  - id: later
    probe: host.reach
    needs: commit
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    session = LabSession(hosts.healthy())
    writer = ReportWriter.create(tmp_path_factory.mktemp("whole"), "look")
    steps = [
        Step("server", EngineServer()),
        Step("commit", DraftCommit(contexts="1k,2k", arms="repeat", seed=7)),
        Step("reach", HostReach()),
    ]
    runner.run("look", [session.host], steps, writer, lambda *_: session, lab=True)
    return writer.folder


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "reports"


def events(whole: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (whole / "events.jsonl").read_bytes().splitlines()]


def killed(whole: Path, reports: Path, number: int) -> Path:
    """The folder as a run leaves it that was killed after so many events."""
    told = (whole / "events.jsonl").read_bytes().splitlines(keepends=True)
    folder = shutil.copytree(whole, reports / f"killed-{number}")
    for name in ("report.json", "report.md", "MANIFEST.sha256"):
        (folder / name).unlink()
    (folder / "events.jsonl").write_bytes(b"".join(told[:number]))
    return folder


def at(whole: Path, wanted: Callable[[dict[str, Any]], bool]) -> list[int]:
    """How many events there are with each of those that are wanted as the last."""
    return [number for number, event in enumerate(events(whole), 1) if wanted(event)]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert app.run(list(words)) in (0, 4)
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """The report as JSON, once the screen and the list of reports said the same."""
    report = json.loads(said(capsys, "report", "show", str(folder), "--json"))
    listed = json.loads(said(capsys, "report", "list", "--reports", str(folder.parent), "--json"))["reports"]
    (mine,) = (one for one in listed if Path(one["folder"]).name == folder.name)
    assert (mine["outcome"], mine["word"]) == (report["outcome"], "interrupted")
    assert mine["seconds"] == report["seconds"]
    assert f"? interrupted  {len(report['hosts'])} host" in said(capsys, "report", "show", str(folder))
    return report


def unanswered(report: Any) -> list[tuple[str, str]]:
    return [(f["step"], f["summary"]) for f in report["findings"] if f["id"] == "unanswered"]


def statuses(report: Any) -> dict[str, str]:
    return {step["id"]: step["status"] for step in report["steps"]}


def test_a_step_under_way_is_unanswered_and_its_points_are_those_that_were_measured(
    whole: Path, reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = json.loads((whole / "report.json").read_bytes())["points"]
    assert len(points) == 2
    answers = at(whole, lambda e: e["event"] == "answer" and e["step"] == "commit")
    seen = set()
    for number in answers[:: max(1, len(answers) // 12)] + answers[-1:]:
        report = shown(killed(whole, reports, number), capsys)
        assert (report["outcome"], report["interrupted"]) == ("unknown", True)
        assert ("commit", OVER) in unanswered(report)
        assert statuses(report) == {"server": "done", "commit": "interrupted", "reach": "not_run"}
        assert 0 < report["seconds"] < 300
        for point in report["points"]:
            (same,) = (p for p in points if p["context_tokens"] == point["context_tokens"])
            assert point["steps"] <= same["steps"]
            if point["steps"] == same["steps"]:
                assert point["commit_mean"] == same["commit_mean"]
        seen.add(len(report["points"]))
    assert seen == {0, 1, 2}
    assert report["points"] == points
    assert report["verdicts"]
    assert report["hypotheses"]


def test_a_step_that_had_begun_and_got_nothing_is_unanswered_too(
    whole: Path, reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (number,) = at(whole, lambda e: e["event"] == "begin" and e["record"]["id"] == "server")
    report = shown(killed(whole, reports, number), capsys)
    assert report["outcome"] == "unknown"
    assert unanswered(report) == [("server", OVER)]
    assert statuses(report) == {"server": "interrupted", "commit": "not_run", "reach": "not_run"}
    assert report["hosts"][0]["error"] == ""


def test_between_two_steps_nothing_is_unanswered_and_the_outcome_unknown(
    whole: Path, reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (number,) = at(whole, lambda e: e["event"] == "step" and e["record"]["id"] == "commit")
    report = shown(killed(whole, reports, number), capsys)
    assert report["outcome"] == "unknown"
    assert unanswered(report) == []
    assert statuses(report) == {"server": "done", "commit": "done", "reach": "not_run"}
    was = json.loads((whole / "report.json").read_bytes())
    assert report["points"] == was["points"]
    assert [v["name"] for v in report["verdicts"]] == [v["name"] for v in was["verdicts"]]


def test_a_step_of_a_playbook_is_judged_by_what_it_asked_with(
    tmp_path: Path, reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "book.yaml").write_text(BOOK)
    book = load(tmp_path / "book.yaml")
    booked = Booked(book, set_vars(book, ()), {})
    session = LabSession(hosts.healthy())
    writer = ReportWriter.create(tmp_path / "given", "measured")
    runner.run(
        book.name, [session.host], booked.stages, writer, lambda *_: session, lab=True, book=booked.told
    )
    answers = at(writer.folder, lambda e: e["event"] == "answer" and e["step"] == "commit")
    report = shown(killed(writer.folder, reports, answers[-1]), capsys)
    assert statuses(report) == {"commit": "interrupted", "later": "not_run"}
    assert report["points"] == json.loads((writer.folder / "report.json").read_bytes())["points"]
    assert [point["context_tokens"] for point in report["points"]] == [1024]


def test_whenever_it_was_killed_no_view_calls_it_a_pass(
    whole: Path, reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    total = len(events(whole))
    for number in range(1, total, max(1, total // 20)):
        assert shown(killed(whole, reports, number), capsys)["outcome"] == "unknown", number


def test_it_is_judged_again_as_it_is_shown(
    whole: Path, reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = at(whole, lambda e: e["event"] == "answer" and e["step"] == "commit")
    folder = killed(whole, reports, answers[-3])
    seen = shown(folder, capsys)
    again = json.loads(said(capsys, "analyse", str(folder), "--json", "--reports", "analysed"))
    assert again["outcome"] == "unknown"
    assert unanswered(again) == unanswered(seen)
    assert again["points"] == seen["points"]
    assert {**statuses(again), f"{folder.name} again": ""}.keys() == {*statuses(seen), f"{folder.name} again"}
    assert statuses(again)["commit"] == "interrupted"
    assert [v["name"] for v in again["verdicts"]] == [v["name"] for v in seen["verdicts"]]


def test_a_whole_run_is_not_taken_for_a_killed_one(
    whole: Path, reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(whole, reports / "whole")
    assert unanswered(json.loads(said(capsys, "report", "show", str(folder), "--json"))) == []
    assert not store.kept(folder).killed
    (folder / "report.json").unlink()
    found = store.load(folder)
    assert (found.interrupted, found.seconds) == (False, store.load(whole).seconds)
    assert not store.kept(folder).killed, "it came to its end, and lost a file later"


@pytest.mark.parametrize(
    "moment", ['"soon"', "null", '"9999-99-99T99:99:99Z"', "7", '"1970-01-01T00:00:01Z"']
)
def test_a_moment_that_is_none_costs_no_event(whole: Path, reports: Path, moment: str) -> None:
    folder = killed(whole, reports, len(events(whole)) - 1)
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]
    for line in lines[1:]:
        line["at"] = json.loads(moment)
    (folder / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = store.load(folder)
    assert 0 <= found.seconds < 300
    assert [step.status for step in found.steps] == ["done", "done", "done"]
