"""The command line of the commit probe: options into settings, and every mistake before anything is contacted."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from ddprobe.cli import app, flow
from ddprobe.facts import CommitPoint
from ddprobe.model import Fact, Host, Step
from ddprobe.probes.draft.commit import DraftCommit
from ddprobe.render import jsonview
from tests import commit_facts as given
from tests import reports

OFF = dataclasses.replace(given.SETUP, speculating=False)


@pytest.fixture(autouse=True)
def looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[Host, ...], DraftCommit]]:
    """What would have been looked at; nothing is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("DDPROBE_HOSTS", "DDPROBE_REPORTS"):
        monkeypatch.delenv(name, raising=False)
    seen: list[tuple[tuple[Host, ...], DraftCommit]] = []

    def look(name: str, hosts: Sequence[Host], steps: Sequence[Step], _: object) -> int:
        assert (name, [step.id for step in steps]) == ("commit-probe", ["commit"])
        assert isinstance(steps[0].probe, DraftCommit)
        seen.append((tuple(hosts), steps[0].probe))
        return 0

    monkeypatch.setattr(flow, "look", look)
    return seen


Looked = list[tuple[tuple[Host, ...], DraftCommit]]


def settings(line: str, looked: Looked) -> DraftCommit:
    assert app.run(["commit-probe", *line.split()]) == 0
    return looked[-1][1]


def mistakes(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert app.run(["commit-probe", *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    return told.err.splitlines()


def test_options_become_settings(looked: Looked) -> None:
    Path("mine.txt").write_bytes("\ufeffÄ\r\ntwo \n".encode())
    line = (
        "a b --contexts 1k,1.5k,auto --arms repeat,verbatim,repeat --steps 128 --prompts 8 --text mine.txt --plan "
        "--while-busy --max-context 64k --cold --seed 7 --engine vllm --url http://127.0.0.1:8000/ --timeout 2m"
    )
    assert settings(line, looked) == DraftCommit(
        contexts="1024,1536,auto",
        arms="repeat,verbatim",
        steps=128,
        prompts=8,
        text="\ufeffÄ\r\ntwo \n",
        plan=True,
        while_busy=True,
        max_context="65536",
        cold=True,
        seed=7,
        engine="vllm",
        url="http://127.0.0.1:8000",
        request_timeout=120.0,
    )
    assert [host.name for host in looked[0][0]] == ["a", "b"]


def test_without_options_the_probe_decides_but_for_the_seed(looked: Looked) -> None:
    first, second = settings("a", looked), settings("a", looked)
    assert first == DraftCommit(seed=first.seed)
    assert 0 <= first.seed < 2**31
    assert first.seed != second.seed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--contexts 1k,,2k", ["--contexts '1k,,2k' has an empty place", "  as in 1k,16k,64k,128k, or auto"]),
        ("--contexts 1q", ["--contexts: '1q' is not a size", "  sizes look like 4096, 1k (1024), 1.5k, 128k or 1m"]),
        ("--contexts 0", ["--contexts: 0 tokens are out of bounds", "  from 1 to 16m"]),
        ("--contexts 17m", ["--contexts: 17m tokens are out of bounds", "  from 1 to 16m"]),
        ("--arms repaet", ["--arms: there is no arm 'repaet'", "  did you mean repeat?"]),
        ("--arms verbatim", ["the arm verbatim sends a text of yours as it is", "  give it with --text FILE"]),
        ("--steps 0", ["--steps 0 is out of bounds", "  from 1 to 100000"]),
        ("--steps many", ["--steps 'many' is not a whole number"]),
        ("--prompts 65", ["--prompts 65 is out of bounds", "  from 1 to 64"]),
        ("--seed 2147483648", ["--seed 2147483648 is out of bounds", "  from 0 to 2147483647"]),
        ("--seed -1", ["--seed -1 is out of bounds", "  from 0 to 2147483647"]),
        ("--seed ²", ["--seed '²' is not a whole number"]),
        ("--max-context big", ["--max-context: 'big' is not a size", "  sizes look like 4096, 1k (1024), 1.5k, 128k or 1m"]),
        ("--engine sglagn", ["--engine: there is no engine 'sglagn'", "  did you mean sglang?"]),
        ("--url gpu1:30000", ["--url 'gpu1:30000': a URL here is scheme, address and port as the host sees it: http://127.0.0.1:30000"]),
        ("--text gone.txt", ["--text gone.txt: No such file or directory"]),
        ("--text .", ["--text .: it is a folder"]),
        ("--timeout soon", ["--timeout: 'soon' is not a duration", "  durations look like 25 (seconds), 1.5s, 2m or 1h"]),
        ("--baseline gone", ["--baseline: there is no report in reports", "  name a folder of reports with --reports"]),
    ],
)  # fmt: skip
def test_a_mistake_is_a_line_and_nothing_is_run(
    words: str, said: list[str], capsys: pytest.CaptureFixture[str], looked: Looked
) -> None:
    told = mistakes(capsys, "a", *words.split())
    assert [told[0].removeprefix("ddprobe: "), *told[1:]] == said
    assert looked == []


@pytest.mark.parametrize(
    "option", ["--contexts", "--arms", "--text", "--max-context", "--engine", "--url", "--baseline"]
)
@pytest.mark.parametrize("value", ["", " "])
def test_an_empty_value_is_not_taken_for_none(
    option: str, value: str, capsys: pytest.CaptureFixture[str], looked: Looked
) -> None:
    told = mistakes(capsys, "a", option, value)
    assert told == [
        f"ddprobe: {option} {value!r} names nothing",
        f"  give {option} a value, or leave it out",
    ]
    assert looked == []


def test_mistakes_come_all_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert mistakes(capsys, "a", "--steps", "x", "--arms", "repaet", "--seed", "y") == [
        "ddprobe: 3 mistakes:",
        "  --arms: there is no arm 'repaet' (did you mean repeat?)",
        "  --steps 'x' is not a whole number",
        "  --seed 'y' is not a whole number",
        "  see ddprobe commit-probe --help",
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"one\ntwo\n\xff", "not UTF-8 at byte 8 (line 3)"),
        (b" \n\t", "there is no text in it"),
        (b"x" * (8 * 2**20 + 1), "it is larger than 8 MiB"),
    ],
)
def test_a_text_that_cannot_be_taken_says_why(
    data: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.txt").write_bytes(data)
    assert mistakes(capsys, "a", "--text", "t.txt")[0] == f"ddprobe: --text t.txt: {said}"


# --- the baseline ------------------------------------------------------------------------------------------


def kept(*facts: Fact, hosts: tuple[str, ...] = ("gpu1",)) -> Path:
    """A report of these facts, in a folder of reports."""
    folder = Path("reports", "2026-11-30T00-00-00Z-commit-probe")
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(jsonview.text(given.report(*facts, hosts=hosts)))
    return folder


def plain(context: int, step_ms: float | None, **fields: object) -> CommitPoint:
    return CommitPoint(
        arm="repeat",
        context_tokens=context,
        steps=64,
        commit_mean=1.0,
        drafted_steps=0,
        step_ms=step_ms,
        **fields,  # type: ignore[arg-type]
    )


def test_a_baseline_is_milliseconds_per_token_by_context(looked: Looked) -> None:
    again = plain(1024, 99.0, purpose="again")
    other = dataclasses.replace(plain(2048, 7.0), arm="repeat-wide")
    unknown = dataclasses.replace(plain(4096, 7.5), commit_mean=None)
    folder = kept(OFF, plain(16384, 9.4), plain(1024, 8.125), again, other, unknown, plain(65536, None))
    for name in ("commit-probe", folder.name, str(folder)):
        probe = settings(f"a --baseline {name}", looked)
        assert probe.baseline == "1024:8.125,4096:7.5,16384:9.4"


@pytest.mark.parametrize(
    ("facts", "hosts", "said"),
    [
        ((OFF,), ("a",), "has no point of the arm repeat"),
        ((OFF, plain(1024, None)), ("a",), "has no step time"),
        ((OFF, plain(1024, 8.0)), ("a", "b"), "is of several hosts"),
        ((given.SETUP, plain(1024, 8.0)), ("a",), "was speculating"),
        ((OFF, given.POINTS[0]), ("a",), "was speculating"),
        (
            (dataclasses.replace(OFF, speculating=None), plain(1024, 8.0), dataclasses.replace(plain(2048, 8.0), commit_mean=None, drafted_steps=None)),
            ("a",),
            "was speculating is unknown",
        ),
    ],
)  # fmt: skip
def test_a_report_that_is_no_baseline_says_why(
    facts: tuple[Fact, ...], hosts: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(*facts, hosts=hosts)
    told = mistakes(capsys, "a", "--baseline", "commit-probe")
    assert told[0].startswith("ddprobe: --baseline: ")
    assert said in told[0]


def test_a_baseline_of_another_kind_of_report_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    kept()
    assert "has no point of the arm repeat" in mistakes(capsys, "a", "--baseline", "commit-probe")[0]
    Path("reports/2026-11-30T00-00-00Z-commit-probe/report.json").write_text(json.dumps({"schema": "x"}))
    assert mistakes(capsys, "a", "--baseline", "commit-probe")[0].startswith("ddprobe: --baseline: this JSON")


# --- the list of reports -----------------------------------------------------------------------------------


def test_the_list_of_reports_names_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path("reports", "2026-11-30T00-00-00Z-commit-probe")
    folder.mkdir(parents=True)
    report = given.report(OFF, verdicts=(given.VERDICT, given.KERNEL))
    (folder / "report.json").write_text(jsonview.text(report))
    reports.sign(folder)
    assert app.run(["report", "list"]) == 0
    assert re.search(r"fail: long_context_bug\n", capsys.readouterr().out)
    assert app.run(["report", "list", "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)["reports"]
    assert found["verdicts"] == ["long_context_bug", "attention_kernel_bottleneck"]
