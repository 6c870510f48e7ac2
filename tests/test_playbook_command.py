"""`ddprobe playbook`: what it lists, shows and checks, and its exit codes. It contacts nobody."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ddprobe.cli import app
from tests.cputime import cpu_seconds

SHIPPED = {"before-after", "commit-len-one", "first-look", "long-context-collapse", "nightly", "slow-decode"}
GOOD = """\
name: mine
about: |
  Is it mine?

  And a second
  paragraph.
vars:
  word: {type: text, default: commit, help: what to search for}
  steps: {type: int, help: verify steps}
hypotheses: [metric_wrong]
steps:
  - id: find
    probe: source.grep
    with: {pattern: "${vars.word}"}
  - id: read
    probe: source.read
    when: {step: find, field: hits, at_least: 1}
    with: {places: "${steps.find.ranges}"}
    timeout: 1m
  - id: commit
    probe: draft.commit
    needs: find
    with: {contexts: [1k, 4k], arms: repeat, steps: "${vars.steps}"}
expect:
  - {about: the drafter works, step: commit, field: commit_lowest, at_least: 1.5, otherwise: warn}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("platformdirs.user_config_path", lambda _name: tmp_path / "config")
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks" / "mine.yaml").write_text(GOOD)
    (tmp_path / "playbooks" / "wrong.yaml").write_text("name: wrong\nabout: Why?\nsteps: []\n")
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    assert app.run(["playbook", *words]) == code
    return capsys.readouterr()


def test_list_has_mine_and_those_that_are_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    found = {one["name"]: one for one in json.loads(said(capsys, "list", "--json").out)["playbooks"]}
    assert set(found) == {*SHIPPED, "mine", "wrong"}
    assert {name for name, one in found.items() if one["whose"] == "shipped"} == SHIPPED
    assert found["mine"] == {
        "name": "mine",
        "whose": "local",
        "file": "playbooks/mine.yaml",
        "question": "Is it mine?",
        "mistakes": [],
    }
    assert found["wrong"]["mistakes"] == ["playbooks/wrong.yaml:3:8: steps: there is none"]
    assert not any(one["mistakes"] for name, one in found.items() if name != "wrong")


def test_list_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "list").out.splitlines()
    assert any(line.split()[:2] == ["mine", "local"] and "Is it mine?" in line for line in lines)
    assert any("wrong" in line and "cannot be run: 1 mistake, see playbook check" in line for line in lines)


def test_show_tells_what_each_step_asks(capsys: pytest.CaptureFixture[str]) -> None:
    page = json.loads(said(capsys, "show", "mine", "--json").out)
    assert page["about"] == "Is it mine?\n\nAnd a second\nparagraph."
    assert [(var["name"], var["type"], var["default"], var["required"]) for var in page["vars"]] == [
        ("word", "text", "commit", False),
        ("steps", "int", None, True),
    ]
    assert page["hypotheses"] == {"metric_wrong": "the metric is wrong"}
    find, read, commit = page["steps"]
    assert (find["with"], find["after"], find["http"], find["cost"]) == (
        {"pattern": "${vars.word}"},
        [],
        [],
        "",
    )
    assert {"find", "grep"} <= set(find["programs"])
    assert (read["with"], read["after"], read["when"], read["timeout"]) == (
        {"places": "${steps.find.ranges}"},
        ["find"],
        ["find: hits is at least 1"],
        60.0,
    )
    assert commit["with"] == {"contexts": ["1k", "4k"], "arms": "repeat", "steps": "${vars.steps}"}
    assert "POST /generate" in commit["http"]
    assert commit["cost"] == "repeat: how many requests is not known before the run"
    assert page["expect"] == [
        {
            "id": "EXPECT01",
            "about": "the drafter works",
            "condition": "commit: commit_lowest is at least 1.5",
            "otherwise": "warn",
        }
    ]


def test_show_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "show", "playbooks/mine.yaml").out
    for words in (
        "Is it mine?",
        "And a second paragraph.",
        "must be set",
        "only if",
        "POST /generate",
        "EXPECT01",
    ):
        assert words in text
    assert "ddprobe run mine HOST --set steps=VALUE --plan" in text


def test_the_last_line_of_a_manual_runs_that_playbook(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def last(word: str) -> str:
        return str(said(capsys, "show", word).out.splitlines()[-1])

    whole = GOOD.replace("{type: int, help: verify steps}", "{type: int, default: 64, help: verify steps}")
    (folder / "elsewhere.yaml").write_text(whole)
    (folder / "a b.yaml").write_text(whole.replace("name: mine", "name: unshelved"))
    # The name `mine` finds another file: only the path means this one.
    assert last("./elsewhere.yaml") == "ddprobe run elsewhere.yaml HOST --plan"
    assert last("a b.yaml") == "ddprobe run 'a b.yaml' HOST --plan"
    assert last("nightly") == "ddprobe run nightly HOST --plan"


def test_a_default_that_is_empty_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "show", "slow-decode").out.splitlines()
    assert any(line.split()[:3] == ["plain_url", "text", "none"] for line in lines)


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_every_shipped_book_has_a_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = json.loads(said(capsys, "show", name, "--json").out)
    assert page["name"] == name
    assert all(step["programs"] for step in page["steps"])


def test_first_look_sends_no_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    page = json.loads(said(capsys, "show", "first-look", "--json").out)
    assert not [step["id"] for step in page["steps"] if step["cost"]]
    assert not [path for step in page["steps"] for path in step["http"] if path.startswith("POST")]


def test_check_names_every_book(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "check", "mine").out.strip() == "playbooks/mine.yaml: mine, 3 steps, 2 vars: right"
    told = said(capsys, "check", "mine", "wrong", "playbooks/none.yaml", "nightyl", code=2)
    assert "playbooks/mine.yaml: mine" in told.out
    assert told.err.splitlines() == [
        "ddprobe: playbooks/wrong.yaml:3:8: steps: there is none",
        "playbooks/none.yaml: there is no such file",
        "there is no playbook 'nightyl' (did you mean 'nightly'?)",
        "  ddprobe playbook schema prints what a playbook may hold",
    ]


def test_check_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    told = said(capsys, "check", "mine", "--json")
    assert json.loads(told.out) == {"schema": "ddprobe-playbook-check/1", "right": True, "mistakes": []}
    told = said(capsys, "check", "mine", "wrong", "--json", code=2)
    assert json.loads(told.out)["mistakes"] == ["playbooks/wrong.yaml:3:8: steps: there is none"]


def test_check_of_nothing_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert "FILE is missing" in said(capsys, "check", code=2).err


def test_a_book_cannot_write_to_the_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "playbooks" / "mine.yaml").write_text(GOOD.replace("name: mine", 'name: "mi\\e[31mne"'))
    assert "\x1b" not in said(capsys, "check", "mine", code=2).err
    _, _, rest = GOOD.partition("vars:")
    (folder / "playbooks" / "mine.yaml").write_text(f'name: mine\nabout: "Is it \\e[31mmine?"\nvars:{rest}')
    told = said(capsys, "show", "mine").out
    assert "mine?" in told
    assert "\x1b" not in told


@pytest.mark.timeout(60)
def test_what_is_no_plain_file_is_never_opened(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(folder / "playbooks" / "pipe.yaml")
    (folder / "playbooks" / "folder.yaml").mkdir()
    found = json.loads(said(capsys, "list", "--json").out)["playbooks"]
    assert {one["name"] for one in found} == {*SHIPPED, "mine", "wrong"}
    for word, why in (
        ("pipe.yaml", "it is no plain file"),
        ("folder.yaml", "it is a folder"),
        ("no.yaml", "there is no such file"),
    ):
        assert f"playbooks/{word}: {why}" in said(capsys, "check", f"playbooks/{word}", code=2).err


def test_far_too_many_steps_are_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    steps = [f"  - {{id: s{n}, probe: host.reach, needs: s{(n + 1) % 3000}}}" for n in range(3000)]
    Path("many.yaml").write_text("\n".join(["name: many", "about: How many?", "steps:", *steps]))
    told = []
    seconds = cpu_seconds(lambda: told.append(said(capsys, "check", "many.yaml", code=2).err))
    assert "many.yaml:4:3: steps: 3000 are more than 64" in told[0]
    assert seconds < 15
