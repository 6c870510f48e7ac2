"""Reports whose folder lost something: what is missing or altered is named, and what rests on it is unknown."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ddprobe import reportjson, runner, store
from ddprobe.cli import app
from ddprobe.errors import UsageError
from ddprobe.lab import hosts
from ddprobe.model import Step
from ddprobe.probes.draft.config import DraftConfig
from ddprobe.probes.engine.server import EngineServer
from ddprobe.store import ReportWriter
from tests import reports
from tests.lab_session import LabSession
from tests.test_analyse import ALIVE, ARGS, DEAD, Analyse, analyse, decode_lines, folder, own_place

__all__ = ["analyse", "own_place"]
REST = "what rests on it is unknown"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a look at a made-up host, as it was written."""
    session = LabSession(hosts.healthy())
    writer = ReportWriter.create(tmp_path_factory.mktemp("whole"), "look")
    steps = [Step("config", DraftConfig()), Step("server", EngineServer())]
    runner.run("look", [session.host], steps, writer, lambda *_: session)
    return writer.folder


@pytest.fixture
def old(tmp_path: Path, whole: Path) -> Path:
    """A copy that may be damaged."""
    return shutil.copytree(whole, tmp_path / "old")


@pytest.fixture
def collected(tmp_path: Path, analyse: Analyse) -> Path:
    """The report of an analysis of files: a drafter that is dead."""
    analyse(folder(tmp_path / "given"), "--reports", tmp_path / "kept")
    (found,) = (tmp_path / "kept").iterdir()
    return found


def damaged(report: dict[str, Any]) -> dict[str, str]:
    """Each damaged file, and what is said of it."""
    found = [f for f in report["findings"] if f["id"] == "report.damaged"]
    assert all(f["outcome"] == "unknown" for f in found)
    return {f["subject"]: f["summary"] for f in found}


def config_of_the_drafter(at: Path) -> Path:
    (found,) = (at / "evidence").glob("*/config/*DFlash*config.stdout")
    return found


def facts(report: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [fact for step in report["steps"] for fact in step["facts"] if fact["type"] == kind]


def test_a_whole_report_is_not_called_damaged(whole: Path, analyse: Analyse) -> None:
    _, report = analyse(whole)
    assert damaged(report) == {}
    assert len(facts(report, "ModelConfig")) == 2


@pytest.mark.parametrize("how", ["is not what was written", "is missing"])
def test_evidence_that_was_altered_or_taken_away_is_no_evidence(
    old: Path, analyse: Analyse, how: str
) -> None:
    config = config_of_the_drafter(old)
    if how == "is missing":
        config.unlink()
    else:
        config.write_bytes(config.read_bytes().replace(b'"block_size": 16', b'"block_size": 17'))
    path = config.relative_to(old).as_posix()
    code, report = analyse(old)
    assert code == 4
    assert damaged(report) == {path: f"{path} {how}: {REST}"}
    assert [fact["role"] for fact in facts(report, "ModelConfig")] == ["target"]
    assert any(f["summary"].endswith(f": what was kept of it {how}") for f in report["findings"])
    (kept,) = Path("reports").iterdir()
    assert not (kept / path).exists(), "what was altered is not handed on under a new manifest"
    again = next(step for step in report["steps"] if step["id"] == "old again")
    assert again["reasons"] == [f"{path} {how}: {REST}"]


def test_a_file_that_says_how_an_answer_came_counts_too(old: Path, analyse: Analyse) -> None:
    about = config_of_the_drafter(old).with_suffix(".json")
    about.write_text(about.read_text().replace('"truncated": false', '"truncated": true'))
    _, report = analyse(old)
    assert list(damaged(report)) == [about.relative_to(old).as_posix()]
    assert [fact["role"] for fact in facts(report, "ModelConfig")] == ["target"]


def test_the_damage_is_told_of_the_report_of_the_report_too(
    old: Path, tmp_path: Path, analyse: Analyse
) -> None:
    config = config_of_the_drafter(old)
    config.unlink()
    analyse(old)
    (first,) = (tmp_path / "reports").iterdir()
    code, report = analyse(first)
    assert code == 4
    path = config.relative_to(old).as_posix()
    about = config.with_suffix(".json").relative_to(old).as_posix()
    assert damaged(report) == {each: f"{each} is missing: {REST}" for each in (about, path)}
    assert [fact["role"] for fact in facts(report, "ModelConfig")] == ["target"]


def test_an_edited_report_json_gives_way_to_the_events(old: Path, analyse: Analyse) -> None:
    was = json.loads((old / "report.json").read_text())
    edited = {**was, "findings": [], "steps": [{**step, "facts": []} for step in was["steps"]]}
    (old / "report.json").write_text(json.dumps(edited))
    code, report = analyse(old)
    assert code == 4
    told = "report.json is not what was written: what events.jsonl and the evidence tell is taken"
    assert damaged(report) == {"report.json": told}
    others = [finding for finding in report["findings"] if finding["id"] != "report.damaged"]
    assert reportjson.text([f for f in others if f["step"]]) == reportjson.text(was["findings"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"schema": "ddprobe-report/1", "hos', "cannot read"),
        ('{"schema": "ddprobe-report/2"}', "the report's schema is 'ddprobe-report/2'"),
        ('{"schema": "ddprobe-report/1", "name": "x", "version": "1", "started": null, "steps": 3}', "is no"),
        ("[" * 100_000, "cannot read"),
        ("", "cannot read"),
    ],
)
def test_a_report_json_that_cannot_be_read_gives_way_too(
    old: Path, analyse: Analyse, content: str, said: str
) -> None:
    was = json.loads((old / "report.json").read_text())
    (old / "report.json").write_text(content)
    reports.sign(old)
    _, report = analyse(old)
    assert list(damaged(report)) == ["report.json"]
    assert said in damaged(report)["report.json"]
    assert len(facts(report, "ModelConfig")) == 2
    assert [host["name"] for host in report["hosts"]] == [host["name"] for host in was["hosts"]]


def test_with_both_gone_the_evidence_is_judged_by_what_it_holds(old: Path, analyse: Analyse) -> None:
    (old / "report.json").write_text('{"schema": ')
    (old / "events.jsonl").write_text("nothing\n")
    code, report = analyse(old)
    assert code == 4
    assert list(damaged(report)) == ["events.jsonl", "report.json"]
    assert sorted(fact["role"] for fact in facts(report, "ModelConfig")) == ["drafter", "target"]
    assert not [s["id"] for s in report["steps"] if s["id"].endswith((".json", ".request"))]


def test_events_that_were_edited_are_said_and_the_rest_is_as_it_was(old: Path, analyse: Analyse) -> None:
    with (old / "events.jsonl").open("a") as file:
        file.write("{}\n")
    code, report = analyse(old)
    assert code == 4
    assert damaged(report) == {"events.jsonl": f"events.jsonl is not what was written: {REST}"}
    assert len(facts(report, "ModelConfig")) == 2


def test_lines_that_say_nothing_are_counted_and_a_torn_last_one_is_none(old: Path) -> None:
    (old / "report.json").unlink()
    (old / "MANIFEST.sha256").unlink()
    assert store.kept(old).damage == ()
    events = old / "events.jsonl"
    lines = events.read_bytes().splitlines(keepends=True)
    events.write_bytes(
        b"".join((*lines[:3], lines[3][:40] + b"\n", b"no event\n", *lines[4:-1], lines[-1][:30]))
    )
    (trouble,) = store.kept(old).damage
    assert (trouble.path, trouble.how) == ("events.jsonl", "has 2 lines that cannot be read")


def test_events_of_another_version_are_said(old: Path) -> None:
    (old / "report.json").unlink()
    (old / "MANIFEST.sha256").unlink()
    events = old / "events.jsonl"
    events.write_text(events.read_text().replace('"ddprobe-events/1"', '"ddprobe-events/9"'))
    (trouble,) = store.kept(old).damage
    assert trouble.how == "has the schema 'ddprobe-events/9'; this ddprobe reads ddprobe-events/1"


def test_without_a_manifest_nobody_knows(old: Path, analyse: Analyse) -> None:
    for lost in (lambda: (old / "MANIFEST.sha256").write_text("x\n"), (old / "MANIFEST.sha256").unlink):
        lost()
        _, report = analyse(old)
        assert damaged(report) == {
            "MANIFEST.sha256": "MANIFEST.sha256 is missing, or has no line that can be read: whether the other files were "
            "altered is unknown"
        }
        assert len(facts(report, "ModelConfig")) == 2


def test_an_answer_that_the_manifest_does_not_name_is_none(old: Path, analyse: Analyse) -> None:
    path = config_of_the_drafter(old).relative_to(old).as_posix()
    manifest = old / "MANIFEST.sha256"
    manifest.write_text("".join(line for line in manifest.read_text().splitlines(True) if path not in line))
    _, report = analyse(old)
    assert damaged(report) == {path: f"{path} stands in no line of MANIFEST.sha256: {REST}"}
    assert [fact["role"] for fact in facts(report, "ModelConfig")] == ["target"]


def test_a_link_out_of_the_report_is_not_followed(old: Path, tmp_path: Path, analyse: Analyse) -> None:
    config = config_of_the_drafter(old)
    (tmp_path / "elsewhere").write_bytes(config.read_bytes())
    config.unlink()
    config.symlink_to(tmp_path / "elsewhere")
    _, report = analyse(old)
    assert list(damaged(report).values()) == [
        f"{config.relative_to(old).as_posix()} is outside of the report: {REST}"
    ]


def test_files_that_were_given_are_no_evidence_once_altered(collected: Path, analyse: Analyse) -> None:
    (points,) = (collected / "evidence").rglob("*points.json")
    points.write_text(json.dumps(ALIVE))
    code, report = analyse(collected)
    assert code == 4
    assert list(damaged(report)) == [points.relative_to(collected).as_posix()]
    assert [verdict["name"] for verdict in report["verdicts"]] == ["inconclusive"]
    (file,) = (fact for fact in facts(report, "EvidenceFile") if fact["name"] == "points.json")
    assert (file["recognised"], file["trouble"]) == ([], "what was kept of it is not what was written")


def test_the_analysis_of_files_is_had_from_its_events(collected: Path, analyse: Analyse) -> None:
    (collected / "report.json").write_text("{")
    _, report = analyse(collected)
    assert list(damaged(report)) == ["report.json"]
    assert [verdict["name"] for verdict in report["verdicts"]] == ["drafter_dead"]


def test_of_a_streamed_log_the_events_do_not_tell_enough(
    tmp_path: Path, analyse: Analyse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ddprobe.opening.bounds.LARGE", 10_000)
    (tmp_path / "big.log").write_text(ARGS + decode_lines(500))
    analyse("big.log", "--reports", tmp_path / "kept")
    (at,) = (tmp_path / "kept").iterdir()
    (at / "report.json").write_text("{")
    code, report = analyse(at)
    assert code == 4
    (step,) = (step for step in report["steps"] if step["id"] == "big.log")
    assert (step["status"], len(step["reasons"])) == ("incomplete", 1)
    assert "is not known any more" in step["reasons"][0]
    assert facts(report, "DecodeSeries") == []


def test_of_many_damaged_files_the_first_are_named_and_the_rest_counted(old: Path, analyse: Analyse) -> None:
    there = len([path for path in (old / "evidence").rglob("*") if path.is_file()])
    shutil.rmtree(old / "evidence")
    _, report = analyse(old)
    told = damaged(report)
    assert len(told) == 21
    assert told["the report's folder"].startswith(f"{there - 20} more files are missing")


def test_what_holds_nothing_any_more_is_said(tmp_path: Path, analyse: Analyse) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "events.jsonl").write_text("\x00\xff\n")
    code, report = analyse("empty")
    assert code == 4
    assert [verdict["name"] for verdict in report["verdicts"]] == ["inconclusive"]
    (file,) = facts(report, "EvidenceFile")
    assert "nothing is left of the report in" in file["trouble"]
    with pytest.raises(UsageError, match="nothing is left"):
        store.kept(tmp_path / "empty")


# --- shown -------------------------------------------------------------------------------------------------


def shown(at: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert app.run(["report", "show", str(at), *words]) in (0, 1, 4)
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out


def test_a_damaged_report_is_not_shown_as_if_it_were_whole(
    old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is not what was written" not in shown(old, capsys)
    config = config_of_the_drafter(old)
    config.write_bytes(b"{}")
    told = json.loads(shown(old, capsys, "--json"))
    assert list(damaged(told)) == [config.relative_to(old).as_posix()]
    assert "is not what was written" in shown(old, capsys, "--markdown")
    assert "is not what was written" in shown(old, capsys)


def test_a_report_whose_report_json_is_damaged_is_shown_from_its_events(
    old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (old / "report.json").write_text("{")
    told = json.loads(shown(old, capsys, "--json"))
    assert list(damaged(told)) == ["report.json"]
    assert {step["id"] for step in told["steps"]} == {"config", "server"}


# --- a list of reports ---------------------------------------------------------------------------------------


def listed(at: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The report among those beside it: as JSON, once the table said the same."""
    assert app.run(["report", "list", "--reports", str(at.parent)]) == 0
    table = " ".join(capsys.readouterr().out.split())
    assert app.run(["report", "list", "--reports", str(at.parent), "--json"]) == 0
    reports_there = json.loads(capsys.readouterr().out)["reports"]
    (found,) = (one for one in reports_there if Path(one["folder"]).name == at.name)
    assert ("damaged: " in table) is bool(found["trouble"])
    return dict(found)


def test_a_whole_report_has_no_mark_in_the_list(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = listed(old, capsys)
    assert (found["outcome"], found["word"], found["trouble"]) == (
        json.loads(shown(old, capsys, "--json"))["outcome"],
        found["outcome"],
        "",
    )
    assert found["outcome"] != "unknown"


@pytest.mark.parametrize("content", ["", "{", None], ids=["empty", "cut", "edited"])
def test_a_list_says_of_a_damaged_report_what_it_shows(
    old: Path, capsys: pytest.CaptureFixture[str], content: str | None
) -> None:
    if content is None:
        was = json.loads((old / "report.json").read_text())
        content = json.dumps({**was, "findings": [], "seconds": 9999.0})
    (old / "report.json").write_text(content)
    found, seen = listed(old, capsys), json.loads(shown(old, capsys, "--json"))
    assert (found["outcome"], found["seconds"]) == (seen["outcome"], seen["seconds"])
    assert found["outcome"] == "unknown"
    assert found["word"] == "unknown"
    assert found["trouble"] == "report.json is not what was written"


def test_a_list_says_that_a_manifest_is_gone(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (old / "MANIFEST.sha256").unlink()
    found = listed(old, capsys)
    assert found["outcome"] == json.loads(shown(old, capsys, "--json"))["outcome"] == "unknown"
    assert found["trouble"].startswith("MANIFEST.sha256 is missing")


def test_a_list_does_not_look_at_evidence(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config_of_the_drafter(old).write_bytes(b"{}")
    assert listed(old, capsys)["trouble"] == ""


# --- whatever stands there -----------------------------------------------------------------------------------


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value within JSON; of a list only to its first."""
    found: list[tuple[Any, ...]] = [above] if above else []
    items = (
        value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    )
    for name, inner in items:
        found += places(inner, (*above, name))
    return found


def changed(value: Any, way: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    copy = json.loads(json.dumps(value))
    at = copy
    for name in way[:-1]:
        at = at[name]
    change(at, way[-1])
    return copy


@pytest.mark.parametrize("odd", [None, -1, "../../x", [], {}, [[]]])
def test_a_report_json_that_was_changed_anywhere_ends_in_no_traceback(collected: Path, odd: Any) -> None:
    from ddprobe import rejudging

    was = json.loads((collected / "report.json").read_text())
    (collected / "events.jsonl").unlink()
    was["steps"] = was["steps"][:2]
    ways = [way for way in places(was) if way[0] in ("steps", "hosts", "name", "version", "started")]
    assert len(ways) > 50
    for way in ways:

        def put(at: Any, name: Any) -> None:
            at[name] = odd

        (collected / "report.json").write_text(json.dumps(changed(was, way, put)))
        (collected / "MANIFEST.sha256").unlink(missing_ok=True)
        try:
            rejudging.rejudge(collected)
        except UsageError:
            continue


def test_dead_points_are_what_these_tests_rest_on() -> None:
    assert {point["commit_len"] for point in DEAD["points"]} == {1.1, 1.05}
