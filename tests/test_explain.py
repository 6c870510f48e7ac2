"""Every lint, verdict and finding has a page, and it says what the code says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ddprobe.cli import app, explanations
from ddprobe.cli.explanations import code
from ddprobe.cli.explanations import verdicts as verdict_pages
from ddprobe.lints import table
from ddprobe.lints.lint import Lint
from ddprobe.model import VERDICTS
from ddprobe.rejudging import CHANGED, DAMAGED
from ddprobe.runner import NOT_KEPT
from ddprobe.verdicts import startup_incompatible
from ddprobe.verdicts.hypotheses import HYPOTHESES
from ddprobe.verdicts.kinds import KINDS


@pytest.mark.parametrize("lint", table.every(), ids=lambda lint: lint.id)
def test_every_lint_has_a_page_that_says_what_it_concludes(lint: Lint[Any]) -> None:
    (page,) = explanations.pages(lint.id)
    assert page["text"] == lint.text
    assert {said["outcome"] for said in page["says"]} - {"pass"}, lint.id
    assert all(said["summary"] not in ("", "…") for said in page["says"]), page["says"]
    assert explanations.blocks(page)


@pytest.mark.parametrize("name", VERDICTS)
def test_every_verdict_has_a_page(name: str) -> None:
    page = explanations.pages(name)[0]
    assert page["outcome"] == VERDICTS[name].label
    assert page["question"].endswith("?") or page["given"], name
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


@pytest.mark.parametrize(("id", "gaps"), [("SA16", True), ("DC15", False)])
def test_gaps_in_a_page_are_explained(id: str, gaps: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["explain", id]) == 0
    out = capsys.readouterr().out
    assert ("… stands for what is found." in out) is gaps
    assert ("…" in out.replace("… stands for", "")) is gaps


@pytest.mark.parametrize(
    ("kind", "verdicts"),
    [
        ("rope_position", ["long_context_bug"]),
        ("commit-path", ["metric_inconsistency"]),
        ("beyond_a_length", ["launch_or_cpu_bound", "spec_net_loss"]),
    ],
)
def test_a_kind_leads_to_the_verdicts_that_have_it(kind: str, verdicts: list[str]) -> None:
    pages = explanations.pages(kind)
    assert [page["id"] for page in pages] == verdicts
    assert all(kind.replace("-", "_") in page["kinds"] for page in pages)


@pytest.mark.parametrize("name", VERDICTS)
def test_every_kind_that_the_code_gives_is_explained(name: str) -> None:
    modules = [module for module in verdict_pages._verdict_modules() if name in verdict_pages._names(module)]
    given = {
        kind for module in modules for kind in verdict_pages._keyword(code.tree(module), "kind", name)
    } - {code.GAP, ""}
    assert given <= set(KINDS.get(name, {}))


def test_the_kinds_of_a_start_are_explained() -> None:
    assert {kind for kind, _ in startup_incompatible._KINDS} | {"other"} == set(KINDS["startup_incompatible"])


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


def test_a_verdict_says_on_which_evidence_it_is_given_when() -> None:
    assert [each["evidence"] for each in explanations.pages("drafter_dead")[0]["given"]] == [
        "after a commit probe",
        "on files and logs",
    ]
    (died,) = explanations.pages("startup_incompatible")[0]["given"]
    assert died["evidence"] == "on files and logs"
    (forged,) = explanations.pages("simulated_acceptance")[0]["given"]
    assert forged["evidence"] == "on either"


def test_abstaining_names_only_thresholds_that_it_tells() -> None:
    (page,) = explanations.pages("inconclusive")
    named = {each["name"] for each in page["thresholds"]}
    assert "MIN_STEPS" in named
    assert not named & {"DEAD", "DEAD_SHARE"}


def test_every_threshold_is_explained_by_itself() -> None:
    for name in VERDICTS:
        for each in explanations.pages(name)[0]["thresholds"]:
            assert each["about"][:1].isupper() or each["about"].startswith("R²"), each
            assert each["about"].endswith("."), each


@pytest.mark.parametrize("name", HYPOTHESES)
def test_every_hypothesis_has_a_page_that_names_what_decides_it(name: str) -> None:
    page = explanations.pages(name)[-1]
    assert page["kind"] == "hypothesis"
    assert page["text"] == HYPOTHESES[name][0]
    assert page["supported_by"], name
    assert set(page["lints"]) <= {lint.id for lint in table.every()}
    assert explanations.blocks(page)


def test_a_verdict_and_a_hypothesis_of_one_name_are_both_shown() -> None:
    assert [page["kind"] for page in explanations.pages("gpu_state")] == ["verdict", "hypothesis"]


def test_without_an_id_every_page_is_listed_by_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["explain"]) == 0
    shown = capsys.readouterr().out
    titles = [shown.index(word) for word in ("Verdicts", "Hypotheses", "Lints", "Findings")]
    assert titles == sorted(titles)
    for word in ("drafter_dead", "metric_wrong", "DC20", "L07", "logs.silent", "unanswered"):
        assert word in shown
    assert app.run(["explain", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["ids"]
    words = {word for each in told for word in (each["id"], *each["aliases"])}
    assert words == set(explanations.known())
    assert all(each["about"] for each in told)


def test_every_finding_of_ddprobe_itself_has_a_page() -> None:
    for id in ("unanswered", NOT_KEPT, CHANGED, DAMAGED):
        (page,) = explanations.pages(id)
        assert page["kind"] == "finding"


def test_a_probes_finding_names_its_probe(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["explain", "grep.nothing"]) == 0
    assert "source.grep" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "meant"), [("DC177", "DC17"), ("drafter_daed", "drafter_dead"), ("grep.nothin", "grep.nothing")]
)
def test_a_slip_gets_the_nearest_id(typed: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["explain", typed]) == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err


@pytest.mark.parametrize("typed", [" DC20", "DC20\n", "\tDC20  "])
def test_space_around_an_id_is_none_of_it(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["explain", typed, "--json"]) == 0
    assert [page["id"] for page in json.loads(capsys.readouterr().out)["pages"]] == ["DC20"]


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("x" * 100_000, f"'{'x' * 60}…'"),
        ("drafter dead" * 5, repr("drafter dead" * 5)),
        ("a\x1b[31m\u202e\nb", "'a\\x1b[31m\\u202e\\nb'"),
        ("   ", "''"),
    ],
    ids=["long", "sixty", "controls", "blank"],
)
def test_an_odd_id_is_said_back_in_one_short_line(
    typed: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["explain", typed]) == 2
    err = capsys.readouterr().err
    assert f"nothing here is called {shown}" in err
    assert len(err) < 400
    assert "\x1b" not in err


def test_json_is_the_pages_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["explain", "L18", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "ddprobe-explanation/1"
    assert [page["kind"] for page in document["pages"]] == ["lint", "lint"]


@pytest.mark.parametrize("typed", ["EXPECT01", "expect12", "EXPECT"])
def test_the_expectations_of_a_playbook_have_a_page(typed: str) -> None:
    (page,) = explanations.pages(typed)
    assert page["id"] == "EXPECT"
    assert "playbook" in page["text"]


@pytest.mark.parametrize("typed", ["EXPECT0x", "EXPECT" + "1" * 99, "EXPECTATION"])
def test_what_only_begins_like_an_expectation_has_none(typed: str) -> None:
    assert explanations.pages(typed) == ()


@pytest.mark.parametrize(
    ("lint", "outcome", "advised"),
    [
        (
            "GP01",
            "fail or warn",
            ("check fans, airflow and the room", "check the power supply and its cables"),
        ),
        ("GP03", "warn", ("-rac or -rgc resets them", "find what holds the clock")),
    ],
)
def test_an_advice_that_depends_is_said_in_each_wording(
    lint: str, outcome: str, advised: tuple[str, ...]
) -> None:
    (page,) = explanations.pages(lint)
    (said,) = [each for each in page["says"] if each["outcome"] == outcome]
    assert all(part in said["advice"] for part in advised)


@pytest.mark.parametrize("lint", table.every(), ids=lambda lint: lint.id)
def test_no_page_has_a_gap_beside_a_gap(lint: Lint[Any]) -> None:
    (page,) = explanations.pages(lint.id)
    assert "……" not in json.dumps(page, ensure_ascii=False)
