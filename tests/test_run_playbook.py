"""A playbook carried out on the lab: chains, skipped and unwanted steps, expectations, the ledger, going on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ddprobe import __version__, rejudging, reportjson, store
from ddprobe.cli import app as cli
from ddprobe.playbookfile import conditions
from tests import books


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[books.Field]:
    with books.field(tmp_path_factory.mktemp("field")) as made:
        yield made


class Runner:
    """Runs a playbook on the lab and reads what came of it."""

    def __init__(self, field: books.Field, reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.field = field
        self.reports = reports
        self.capsys = capsys
        self.code = -1
        self.err = ""

    def __call__(self, book: str, *words: str, hosts: str = "a", said: str = "") -> Any:
        names = hosts.split()
        argv = ["run", self.field.book(book), *(said.split() if said else names), *words, "--json"]
        self.capsys.readouterr()
        self.code = cli.run([*argv, "--hosts", self.field.hosts(*names), "--reports", str(self.reports)])
        printed = self.capsys.readouterr()
        self.err = printed.err
        return json.loads(printed.out)

    @property
    def folders(self) -> list[Path]:
        return sorted(self.reports.iterdir())


@pytest.fixture
def run(field: books.Field, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(field, tmp_path / "reports", capsys)


def told(report: Any) -> list[tuple[str, str, list[str]]]:
    return [(step["id"], step["status"], step["reasons"]) for step in report["steps"]]


def test_what_is_found_is_read(run: Runner) -> None:
    report = run(books.CHAIN)
    assert [step[:2] for step in told(report)] == [("server", "done"), ("find", "done"), ("read", "done")]
    # Every hit of the search stands in a range that was read.
    read = {(r["path"], n) for r in report["ranges"] for n in range(r["first"], r["last"] + 1)}
    assert report["hits"]
    assert {(hit["path"], hit["line"]) for hit in report["hits"]} <= read
    expected = [(f["id"], f["outcome"], f["subject"], f["step"]) for f in report["findings"]][-1]
    assert expected == ("EXPECT01", "pass", "server", "")
    assert report["playbook"]["vars"] == {"pattern": "commit_lens", "many": 1.0}
    assert len(report["playbook"]["digest"]) == 64


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (("--set", "many=1000"), ("skipped", ["find.hits is 11, below 1000"])),
        (("--skip", "read"), ("skipped", ["--skip"])),
        (("--skip", "find"), ("skipped", ["it looks at 'find', which was not to run: --skip"])),
        (("--only", "server"), ("skipped", ["--only server"])),
        (("--only", "read"), ("done", [])),
    ],
)
def test_steps_that_are_not_wanted(run: Runner, words: tuple[str, ...], read: tuple[str, list[str]]) -> None:
    report = run(books.CHAIN, *words)
    (found,) = [step[1:] for step in told(report) if step[0] == "read"]
    assert found == read
    assert run.code == 0


def test_only_takes_along_what_the_step_comes_after_and_expects_nothing_of_the_rest(run: Runner) -> None:
    report = run(books.CHAIN, "--only", "read")
    assert [step[:2] for step in told(report)] == [("server", "skipped"), ("find", "done"), ("read", "done")]
    assert not [f for f in report["findings"] if f["id"].startswith("EXPECT")]


def test_a_measurement_fills_the_ledger_that_the_playbook_declares(run: Runner) -> None:
    book = books.MEASURED + (
        "  - about: there is no bug with length\n    verdict: [healthy, text_difficulty, inconclusive]\n"
    )
    report = run(book, "--set", "contexts=1k", "--set", "steps=64")
    assert [h["name"] for h in report["hypotheses"]] == ["drafter_long_context", "text_hard"]
    assert [line["name"] for line in report["ledger"]] == ["drafter_long_context", "text_hard"]
    for line, one in zip(report["ledger"], report["hypotheses"], strict=True):
        assert line[one["status"]] == ["a"]
    (verdict,) = [v["name"] for v in report["verdicts"]]
    last = report["findings"][-1]
    assert (last["id"], last["outcome"], last["subject"]) == ("EXPECT02", "pass", "host")
    assert last["summary"] == f"there is no bug with length: the host: the verdict is {verdict}"


def test_the_report_is_judged_the_same_again(run: Runner) -> None:
    report = run(books.MEASURED, "--set", "contexts=1k", "--set", "steps=16")
    (folder,) = run.folders
    again = reportjson.from_report(rejudging.rejudge(folder))
    for key in ("findings", "verdicts", "hypotheses", "ledger", "steps", "playbook"):
        assert again[key] == report[key], key


def test_going_on_keeps_what_is_whole_and_asks_the_rest(run: Runner) -> None:
    whole = run(books.CHAIN, "--set", "pattern=accept_depths", hosts="a b")
    (folder,) = run.folders
    # Of one host nothing is known of the search, of the other an answer's file is lost.
    data = json.loads((folder / "report.json").read_bytes())
    for step in data["steps"]:
        if (step["host"], step["id"]) == ("a", "find"):
            step["status"] = "incomplete"
    (folder / "report.json").write_text(json.dumps(data))
    shutil.rmtree(folder / "evidence" / "b" / "server")
    resumed = run(books.CHAIN, "--resume", str(folder), hosts="a b", said=" ")
    kept = {(s["host"], s["id"]): s["kept_from"] for s in resumed["steps"]}
    name = folder.name
    assert kept == {
        ("a", "server"): name, ("a", "find"): "", ("a", "read"): name,
        ("b", "server"): "", ("b", "find"): name, ("b", "read"): name,
    }  # fmt: skip
    assert resumed["playbook"]["vars"]["pattern"] == "accept_depths"
    assert resumed["findings"] == whole["findings"]
    new = run.folders[-1]
    assert not store.damage(new, store.load(new))
    # A report that was gone on from can be gone on from itself; what was kept is still of the first.
    third = run(books.CHAIN, "--resume", str(new), hosts="a b")
    assert {s["kept_from"] for s in third["steps"]} == {name, new.name}
    assert [host["connection"] for host in third["hosts"]] == [None, None]
    assert third["findings"] == whole["findings"]


@pytest.mark.parametrize(
    ("version", "said"), [("0.0.1", "as it is found today"), (__version__, "as it was said then")]
)
def test_what_another_version_found_is_judged_again(run: Runner, version: str, said: str) -> None:
    whole = run(books.CHAIN)
    (folder,) = run.folders
    data = json.loads((folder / "report.json").read_bytes())
    (finding,) = [f for f in data["findings"] if f["step"] == "server"][:1]
    today = finding["summary"]
    data["version"], finding["summary"] = version, "as it was said then"
    (folder / "report.json").write_text(json.dumps(data))
    resumed = run(books.CHAIN, "--resume", str(folder))
    assert {step["kept_from"] for step in resumed["steps"]} == {folder.name}
    (now, *_) = [f for f in resumed["findings"] if f["step"] == "server"]
    assert now["summary"] == (today if said == "as it is found today" else said)
    assert len(resumed["findings"]) == len(whole["findings"])


def test_evidence_that_was_altered_is_asked_again(run: Runner) -> None:
    run(books.CHAIN)
    (folder,) = run.folders
    file = next((folder / "evidence" / "a" / "find").glob("*.stdout"))
    file.write_bytes(file.read_bytes() + b"and more\n")
    resumed = run(books.CHAIN, "--resume", str(folder))
    kept = {step["id"]: step["kept_from"] for step in resumed["steps"]}
    assert kept == {"server": folder.name, "find": "", "read": folder.name}


def test_another_machine_under_the_same_name_is_asked_itself(run: Runner, field: books.Field) -> None:
    run(books.CHAIN, "--only", "server")
    (folder,) = run.folders
    hosts = field.folder / "moved.yaml"
    text = Path(field.hosts("a")).read_text()
    words = ["run", field.book(books.CHAIN), "a", "--only", "server", "--resume", str(folder), "--json"]
    for more, kept in (("", folder.name), ("    python: /usr/bin/python3\n", "")):
        hosts.write_text(text + more)
        cli.run([*words, "--hosts", str(hosts), "--reports", str(run.reports)])
        assert json.loads(run.capsys.readouterr().out)["steps"][0]["kept_from"] == kept
    # And what is of the lab is never told as if it were of a real host.
    hosts.write_text(text.replace("tags: [ddprobe-lab]", "tags: [x]"))
    assert cli.run([*words, "--hosts", str(hosts), "--reports", str(run.reports)]) == 2
    assert f"--resume: {folder} is the lab's" in run.capsys.readouterr().err


@pytest.mark.parametrize("many", ["lots", True, [1, 2], {"a": 1}, "[redacted]"])
def test_a_var_of_then_that_is_none_of_its_type_must_be_said_again(
    run: Runner, field: books.Field, many: object
) -> None:
    run(books.CHAIN, "--only", "server")
    (folder,) = run.folders
    data = json.loads((folder / "report.json").read_bytes())
    data["playbook"]["vars"]["many"] = many
    (folder / "report.json").write_text(json.dumps(data))
    words = ["run", field.book(books.CHAIN), "a", "--hosts", field.hosts("a"), "--resume", str(folder)]
    assert cli.run([*words, "--plan"]) == 2
    assert "chain needs the var 'many'" in run.capsys.readouterr().err
    assert cli.run([*words, "--plan", "--set", "many=2"]) == 0


def test_a_bug_in_what_is_expected_costs_only_that(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def boom(*_: object) -> object:
        raise TypeError("boom")

    monkeypatch.setattr(conditions, "expected", boom)
    report = run(books.CHAIN, "--only", "server")
    assert run.code == 4
    last = report["findings"][-1]
    assert (last["id"], last["outcome"], last["host"], last["subject"]) == (
        "EXPECT",
        "unknown",
        "a",
        "expect",
    )
    assert last["summary"].startswith("ddprobe has a bug in what is expected: TypeError: boom")
    assert [step["status"] for step in report["steps"]] == ["done", "skipped", "skipped"]


def test_a_step_that_asks_otherwise_than_then_runs_again(run: Runner) -> None:
    run(books.CHAIN)
    (folder,) = run.folders
    changed = books.CHAIN + "  - about: and it is read\n    step: read\n    status: done\n"
    resumed = run(changed, "--resume", folder.name, "--set", "pattern=accept_depths")
    assert [s["kept_from"] for s in resumed["steps"]] == [folder.name, "", ""]
    assert run.err == "ddprobe: the playbook is another than then: steps that ask otherwise run again\n"


def test_only_a_report_of_the_same_playbook_is_gone_on_from(run: Runner, field: books.Field) -> None:
    run(books.CHAIN, "--only", "server")
    (folder,) = run.folders
    other = field.book(books.MEASURED)
    assert cli.run(["run", other, "a", "--hosts", field.hosts("a"), "--resume", str(folder)]) == 2
    said = run.capsys.readouterr().err
    assert "is a report of the playbook 'chain', not of 'measured'" in said
    assert len(run.folders) == 1


def test_of_a_host_that_the_report_does_not_know_nothing_is_kept_and_that_is_said(run: Runner) -> None:
    run(books.CHAIN, "--only", "server")
    (folder,) = run.folders
    other = run(books.CHAIN, "--only", "server", "--resume", str(folder), hosts="b")
    assert [step["kept_from"] for step in other["steps"]] == ["", "", ""]
    assert run.err == "ddprobe: --resume: nothing is kept of b: the report is of a\n"
    run(books.CHAIN, "--only", "server", "--resume", str(folder), hosts="a b")
    assert run.err == "ddprobe: --resume: nothing is kept of b: the report is of a\n"
    run(books.CHAIN, "--only", "server", "--resume", str(folder), "-q", hosts="b")
    assert run.err == ""
    run(books.CHAIN, "--only", "server", "--resume", str(folder))
    assert run.err == ""


def test_a_host_that_moved_is_another(run: Runner, field: books.Field) -> None:
    run(books.CHAIN, "--only", "server")
    (folder,) = run.folders
    words = ["run", field.book(books.CHAIN), "a", "--only", "server", "--resume", str(folder)]
    cli.run([*words, "--hosts", field.hosts(dead=("a",)), "--reports", str(run.reports)])
    said = run.capsys.readouterr().err
    told = (
        "--resume: nothing is kept of a: in the report it stands at another address, or with other settings"
    )
    assert f"ddprobe: {told}\n" in said


def test_a_secret_among_the_vars_is_masked_and_must_be_said_again(run: Runner, field: books.Field) -> None:
    key = "hf_" + "QwErTyUiOpAsDfGhJk12"
    report = run(books.CHAIN, "--set", f"pattern={key}")
    assert report["playbook"]["vars"]["pattern"] == "[redacted]"
    (folder,) = run.folders
    for file in folder.rglob("*"):
        assert not file.is_file() or key not in file.read_text("utf-8", "replace"), file
    words = ["run", field.book(books.CHAIN), "--hosts", field.hosts("a"), "--resume", str(folder)]
    assert cli.run(words) == 2
    assert "needs the var 'pattern'" in run.capsys.readouterr().err
