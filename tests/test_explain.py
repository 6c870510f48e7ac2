"""Every lint, verdict and finding has a page, and it says what the code says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ddprobe.cli import app, explanations
from ddprobe.lints import table
from ddprobe.lints.lint import Lint
from ddprobe.model import VERDICTS


@pytest.mark.parametrize("lint", table.every(), ids=lambda lint: lint.id)
def test_every_lint_has_a_page_that_says_what_it_concludes(lint: Lint[Any]) -> None:
    (page,) = explanations.pages(lint.id)
    assert page["text"] == lint.text
    assert {said["outcome"] for said in page["says"]} - {"pass"}, lint.id
    assert all(said["summary"] not in ("", "…") for said in page["says"]), page["says"]
    assert explanations.blocks(page)


@pytest.mark.parametrize("name", VERDICTS)
def test_every_verdict_has_a_page(name: str) -> None:
    (page,) = explanations.pages(name)
    assert page["outcome"] == VERDICTS[name].label
    assert page["question"].endswith("?") or page["supports"], name
    assert explanations.blocks(page)


def test_a_lint_says_condition_advice_and_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["explain", "dc17"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "DC17 (also L24)" in shown
    assert "a bfloat16 drafter is not run in float16" in shown
    assert "lmdeploy#4991" in shown
    (page,) = explanations.pages("DC17")
    assert {
        "outcome": "fail",
        "summary": "--dtype … forces float16 on a bfloat16 drafter: its joined features overflow (limit 65504)",
        "advice": "serve with --dtype bfloat16",
    } in page["says"]


def test_an_outcome_that_depends_is_said_as_both() -> None:
    (page,) = explanations.pages("DC48")
    assert [said["outcome"] for said in page["says"]] == ["warn or info"]


def test_an_alias_shows_every_lint_that_has_it() -> None:
    assert [page["id"] for page in explanations.pages("L18")] == ["DC08", "DC14"]


def test_what_must_be_known_is_named() -> None:
    (page,) = explanations.pages("DC28")
    assert "the tensor names of the target's weights" in page["reads"]


def test_a_verdict_names_its_thresholds_with_their_values() -> None:
    (page,) = explanations.pages("drafter_dead")
    named = {each["name"]: each["value"] for each in page["thresholds"]}
    assert named["SHORT"] == 2048
    assert "miswired" in page["kinds"]


def test_a_probes_finding_names_its_probe(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["explain", "grep.nothing"]) == 0
    assert "source.grep" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "meant"), [("DC177", "DC17"), ("drafter_daed", "drafter_dead"), ("grep.nothin", "grep.nothing")]
)
def test_a_slip_gets_the_nearest_id(typed: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["explain", typed]) == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err


def test_json_is_the_pages_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["explain", "L18", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "ddprobe-explanation/1"
    assert [page["kind"] for page in document["pages"]] == ["lint", "lint"]
