"""`run --plan`: what would be asked, exactly where it is known, with its cost; nobody is connected to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ddprobe.cli import app as cli
from tests import books

HOSTS = """\
hosts:
  gpu1: {address: 192.0.2.1, url: 'http://127.0.0.1:30000', engine: sglang}
  gpu2: {address: 192.0.2.2}
"""


@pytest.fixture(autouse=True)
def nobody_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a plan connected")

    monkeypatch.setattr("ddprobe.sessions.open_session", refuse)
    monkeypatch.setattr("socket.socket.connect", refuse)


def plan(tmp_path: Path, capsys: pytest.CaptureFixture[str], book: str, *words: str) -> Any:
    assert cli.run([*command(tmp_path, book), *words, "--plan", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def command(tmp_path: Path, book: str) -> list[str]:
    (tmp_path / "hosts.yaml").write_text(HOSTS)
    (tmp_path / "book.yaml").write_text(book)
    reports = tmp_path / "reports"
    hosts = str(tmp_path / "hosts.yaml")
    return ["run", str(tmp_path / "book.yaml"), "gpu1", "gpu2", "--hosts", hosts, "--reports", str(reports)]


def test_the_plan_of_a_chain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = plan(tmp_path, capsys, books.CHAIN, "--set", "pattern=mask_token", "--skip", "server")
    assert found["schema"] == "ddprobe-plan/1"
    assert found["hosts"] == ["gpu1", "gpu2"]
    assert found["vars"] == {"pattern": "mask_token", "many": 1.0}
    server, find, read = found["steps"]
    assert (server["id"], server["skipped"]) == ("server", "--skip")
    assert find["settings"] == {"pattern": "mask_token"}
    assert find["first"]
    assert all(word.split()[0] in find["programs"] for word in find["first"])
    assert find["http"] == []
    # What it reads depends on what is found: only the bound is known.
    assert read["first"] == []
    assert read["settings"] == {"places": "${steps.find.ranges}"}
    assert read["when"] == ["find: hits is at least ${vars.many}"]
    assert "sed" in read["programs"]
    assert [step["cost"] for step in found["steps"]] == ["", "", ""]
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize(
    ("words", "cost"),
    [
        # 4 prompts of 16 steps at 2 lengths; 1 + 8 × 17 tokens of output each.
        (
            (),
            "repeat: 2 lengths up to 2k, as far as they fit: 8 requests and a few controls, some 1,096 tokens of output "
            "(blocks of 8; others in proportion) and 12,288 of prompt, most of it from the prefix cache",
        ),
        # 4 prompts of 64 steps; 1 + 8 × 65 tokens each.
        (
            ("--set", "contexts=64k", "--set", "steps=256"),
            "repeat: 1 length up to 64k, as far as they fit: 4 requests and a few controls, some 2,084 tokens of output "
            "(blocks of 8; others in proportion) and 262,144 of prompt, most of it from the prefix cache",
        ),
    ],
)
def test_what_a_measurement_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], cost: str
) -> None:
    found = plan(tmp_path, capsys, books.MEASURED, *words)
    costs = {step["id"]: step["cost"] for step in found["steps"]}
    assert costs.pop("commit") == cost
    assert set(costs.values()) == {""}
    assert [step["id"] for step in found["steps"] if step["measures"]] == ["commit"]


def test_lengths_that_an_earlier_step_gives_have_no_cost_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = books.MEASURED.replace(
        'contexts: "${vars.contexts}"', 'contexts: ["1k", "${steps.config.context_limit}"]'
    )
    book = book.replace('  contexts: {type: sizes, default: "1k,2k", help: lengths}\n', "")
    found = plan(tmp_path, capsys, book)
    (cost,) = [step["cost"] for step in found["steps"] if step["id"] == "commit"]
    assert cost.startswith("repeat: 4 requests a length, each with some 137 tokens of output")
    assert "not known before the run" in cost


def test_a_person_reads_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([*command(tmp_path, books.MEASURED), "--plan"]) == 0
    # Where a long line is wrapped is not the matter here.
    printed = " ".join(capsys.readouterr().out.split())
    for words in (
        "Plan of measured",
        "Nothing was sent. It would look at gpu1, gpu2.",
        "POST /generate",
        "depends on what the steps before it find",
        "Prompts that the servers would be sent",
        "nothing is simulated",
    ):
        assert words in printed


def test_a_plan_needs_no_host(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("DDPROBE_HOSTS", raising=False)
    (tmp_path / "book.yaml").write_text(books.CHAIN)
    assert cli.run(["run", "book.yaml", "--plan", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hosts"] == ["HOST"]
