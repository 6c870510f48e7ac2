"""The command line of step-time: options into settings, mistakes before anything is contacted, and its baseline."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from ddprobe.cli import app, flow
from ddprobe.facts import CommitPoint
from ddprobe.model import Fact, Host, Step
from ddprobe.probes.draft.step_time import DraftStepTime
from ddprobe.render import jsonview
from tests import commit_facts as given

OFF = dataclasses.replace(given.SETUP, speculating=False, purpose="step-time")


@pytest.fixture(autouse=True)
def looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[DraftStepTime]:
    """What would have been looked at; nothing is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("DDPROBE_HOSTS", "DDPROBE_REPORTS"):
        monkeypatch.delenv(name, raising=False)
    seen: list[DraftStepTime] = []

    def look(name: str, hosts: Sequence[Host], steps: Sequence[Step], _: object) -> int:
        assert (name, [step.id for step in steps], [host.name for host in hosts]) == (
            "step-time",
            ["time"],
            ["a"],
        )
        assert isinstance(steps[0].probe, DraftStepTime)
        seen.append(steps[0].probe)
        return 0

    monkeypatch.setattr(flow, "look", look)
    return seen


def settings(line: str, looked: list[DraftStepTime]) -> DraftStepTime:
    assert app.run(["step-time", *line.split()]) == 0
    return looked[-1]


def mistakes(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert app.run(["step-time", *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    return told.err.splitlines()


def test_options_become_settings(looked: list[DraftStepTime]) -> None:
    Path("mine.txt").write_bytes(b"one two ")
    line = (
        "a --contexts 1k,1.5k,auto --steps 128 --text mine.txt --plan --while-busy --max-context 64k --seed 7 "
        "--engine vllm --url http://127.0.0.1:8000/ --plain-url http://127.0.0.1:8001/ --timeout 2m"
    )
    assert settings(line, looked) == DraftStepTime(
        contexts="1024,1536,auto",
        steps=128,
        text="one two ",
        plan=True,
        while_busy=True,
        max_context="65536",
        seed=7,
        engine="vllm",
        url="http://127.0.0.1:8000",
        plain_url="http://127.0.0.1:8001",
        request_timeout=120.0,
    )


def test_without_options_the_probe_decides_but_for_the_seed(looked: list[DraftStepTime]) -> None:
    first, second = settings("a", looked), settings("a", looked)
    assert first == DraftStepTime(seed=first.seed)
    assert first.seed != second.seed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--contexts 1k,,2k", "--contexts '1k,,2k' has an empty place"),
        ("--steps 0", "--steps 0 is out of bounds"),
        ("--max-context big", "--max-context: 'big' is not a size"),
        ("--engine sglagn", "--engine: there is no engine 'sglagn'"),
        ("--plain-url gpu1:30000", "--plain-url 'gpu1:30000': a URL here is scheme, address and port as the host sees it: http://127.0.0.1:30000"),
        ("--baseline gone", "--baseline: there is no report in reports"),
        ("--baseline gone --plain-url http://127.0.0.1:1", "--plain-url and --baseline say the same thing in two ways"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_line_and_nothing_is_run(
    words: str, said: str, capsys: pytest.CaptureFixture[str], looked: list[DraftStepTime]
) -> None:
    assert mistakes(capsys, "a", *words.split())[0] == f"ddprobe: {said}"
    assert looked == []


def test_mistakes_name_this_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert mistakes(capsys, "a", "--steps", "x", "--seed", "y")[-1] == "  see ddprobe step-time --help"


# --- the baseline ------------------------------------------------------------------------------------------


def kept(*facts: Fact) -> Path:
    folder = Path("reports", "2026-11-30T00-00-00Z-step-time")
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(jsonview.text(given.report(*facts)))
    return folder


def plain(context: int, step_ms: float, purpose: str) -> CommitPoint:
    return CommitPoint(
        arm="repeat", context_tokens=context, purpose=purpose, steps=64, commit_mean=1.0, drafted_steps=0, step_ms=step_ms
    )  # fmt: skip


def test_an_earlier_step_time_report_without_speculation_is_a_baseline(looked: list[DraftStepTime]) -> None:
    kept(
        OFF,
        plain(1024, 8.125, "step-time"),
        plain(4096, 9.5, "step-time"),
        plain(1024, 99.0, "step-time again"),
    )
    assert settings("a --baseline step-time", looked).baseline == "1024:8.125,4096:9.5"


def test_of_two_servers_side_by_side_the_one_without_speculation_counts(looked: list[DraftStepTime]) -> None:
    speculating = dataclasses.replace(given.SETUP, purpose="step-time")
    timed = dataclasses.replace(given.POINTS[0], purpose="step-time")
    kept(speculating, timed, dataclasses.replace(OFF, purpose="plain"), plain(1024, 8.0, "plain"))
    assert settings("a --baseline step-time", looked).baseline == "1024:8"


def test_a_step_time_report_with_speculation_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    kept(
        dataclasses.replace(given.SETUP, purpose="step-time"),
        dataclasses.replace(given.POINTS[0], purpose="step-time"),
    )
    assert "was speculating" in mistakes(capsys, "a", "--baseline", "step-time")[0]
