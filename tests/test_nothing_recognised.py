"""`analyse` on what is no evidence: nothing at all, prose without figures, source code; and what its help says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ddprobe import evidence, rejudging, runner
from ddprobe.cli import app
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import Claim, EvidenceFile, ServerArgs
from ddprobe.model import Host, Report
from ddprobe.parsing import source_code
from ddprobe.verdicts.collected import nothing
from tests.test_analyse import decode_lines

PYTHON = '''"""Thresholds of acceptance.

An accept rate of 0.33 on the old build and 0.65 on the new one is what people report.
"""

from __future__ import annotations

import math

# The accept rate was 9% in the field, and the accept length 1.00.
DEAD = 0.05


def judge(rate: float) -> bool:
    """Whether an acceptance rate of 0.05 or less is dead: 20 tok/s and less."""
    return rate <= DEAD  # the accept length is 1.0 then
'''
CUDA = """#include <cuda_runtime.h>
#include "verify.h"

/* The average acceptance length is 3.2 on the old kernel.
 * The accept rate is about 0.4 with it. */
static int launch(int rows) {
    // the acceptance rate is 0.41 here
    return rows * 2;
}
"""
DIFF = """diff --git a/x.py b/x.py
index 1234567..89abcde 100644
--- a/x.py
+++ b/x.py
@@ -1,3 +1,3 @@
 # the accept rate is 0.33 with this constant
-LIMIT = 3
+LIMIT = 4
"""
CLAIM = "The accept rate was 0.33 on the old build, and 0.65 on the new one."


def claims(text: str) -> list[float]:
    reading = evidence.recognise(of_bytes("a", text.encode()))
    return [fact.value for found in reading.found for fact in found.facts if isinstance(fact, Claim)]


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DDPROBE_REPORTS", raising=False)


def analyse(capsys: pytest.CaptureFixture[str], *paths: str) -> tuple[int, dict[str, Any]]:
    code = app.run(["analyse", *paths, "--json"])
    return code, json.loads(capsys.readouterr().out)


def reasons(report: dict[str, Any]) -> list[str]:
    (verdict,) = report["verdicts"]
    assert (verdict["name"], verdict["kind"]) == ("inconclusive", nothing.KIND)
    assert report["hypotheses"] == []
    return list(verdict["reasons"])


# --- nothing -----------------------------------------------------------------------------------------------


def test_an_empty_folder_gets_a_sentence_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    code, report = analyse(capsys, "empty")
    assert code == 4
    assert reasons(report) == ["empty: the folder holds no file"]
    assert any("config.json" in sentence for sentence in report["verdicts"][0]["missing"])
    assert any("a log of SGLang, vLLM or llama.cpp" in s for s in report["verdicts"][0]["missing"])


def test_a_folder_whose_files_are_hidden_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    Path("hidden/.cache").mkdir(parents=True)
    Path("hidden/.cache/server.log").write_text(CLAIM)
    _, report = analyse(capsys, "hidden")
    assert reasons(report)[0].endswith("folders whose names begin with a dot are not looked into")


def test_an_empty_folder_beside_evidence_costs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    Path("claim.txt").write_text(CLAIM)
    _, report = analyse(capsys, "empty", "claim.txt")
    assert [step["status"] for step in report["steps"]] == ["done", "done"]
    assert report["verdicts"][0]["kind"] != nothing.KIND
    assert report["hypotheses"]


def test_what_was_given_is_named_and_what_became_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text("Lorem ipsum dolor sit amet.\n")
    Path("zero").touch()
    Path("module").write_text(PYTHON)
    code, report = analyse(capsys, "a.txt", "zero", "module")
    assert code == 4
    assert reasons(report) == [
        "a.txt holds nothing that is recognised as evidence",
        "zero is empty",
        "module: source code (Python), which is no evidence",
    ]


UNMEASURED = {
    "packages": ("sglang==0.5.23\ntorch==2.8.0\n", "installed: sglang 0.5.23"),
    "container": (
        "services:\n  a:\n    image: vllm/vllm-openai:v0.32.0\n    environment:\n      VLLM_ATTENTION_BACKEND: TRITON_MLA\n",
        "variables that a server is started with",
    ),
    "table": ("| context | tok/s |\n|---|---|\n| 1k | 95 |\n", "a table of 1 measured point"),
}


@pytest.mark.parametrize("name", UNMEASURED)
def test_what_is_understood_and_decides_nothing_is_named(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text, what = UNMEASURED[name]
    Path(name).write_text(text)
    Path("a.txt").write_text("Lorem ipsum dolor sit amet.\n")
    _, report = analyse(capsys, name, "a.txt")
    (verdict,) = report["verdicts"]
    assert verdict["kind"] == "no_measurement"
    assert verdict["reasons"] == ["nothing here says how many tokens a step commits", f"{name}: {what}"]
    (folder,) = Path("reports").iterdir()
    assert analyse(capsys, str(folder))[1]["verdicts"] == report["verdicts"]


def test_where_something_is_measured_no_file_is_named_so(capsys: pytest.CaptureFixture[str]) -> None:
    Path("packages").write_text(UNMEASURED["packages"][0])
    Path("server.log").write_text(decode_lines(100, "3.10"))
    _, report = analyse(capsys, "packages", "server.log")
    assert not [r for verdict in report["verdicts"] for r in verdict["reasons"] if r.startswith("packages")]


@pytest.mark.parametrize("word", ["Compose file", "Dockerfile", "as a table", "pip freeze"])
def test_every_kind_that_is_recognised_is_offered(word: str) -> None:
    assert [sentence for sentence in nothing.verdict(()).missing if word in sentence]


def test_many_files_are_counted_and_few_are_named() -> None:
    files = [EvidenceFile(name=f"{n}.txt", size=9, sha256="x") for n in range(214)]
    (reason,) = nothing.verdict(files).reasons
    assert reason == (
        "214 files (0.txt, 1.txt, 2.txt, 3.txt, 4.txt, …) hold nothing that is recognised as evidence"
    )


def test_a_person_sees_a_sentence_and_no_empty_table(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    assert app.run(["analyse", "empty"]) == 4
    said = capsys.readouterr().out
    assert "Nothing that was given is recognised as evidence." in said
    assert "the folder holds no file" in said
    assert "recognised as  " not in said
    assert "Hypotheses" not in said
    assert "0 files" in said


def test_the_report_on_nothing_is_judged_again_to_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text("Lorem ipsum dolor sit amet.\n")
    Path("empty").mkdir()
    _, before = analyse(capsys, "a.txt", "empty")
    (folder,) = Path("reports").iterdir()
    code, after = analyse(capsys, str(folder))
    assert code == 4
    assert (after["verdicts"], after["hypotheses"]) == (before["verdicts"], [])
    (told,) = (fact for step in after["steps"] for fact in step["facts"] if fact["type"] == "Rejudged")
    assert told["same"]


# --- source code -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "language"),
    [(PYTHON, "Python"), (CUDA, "C"), (DIFF, "a diff")],
)
def test_source_is_known_by_its_lines_and_claims_nothing(text: str, language: str) -> None:
    assert source_code.language(text) == language
    assert claims(text) == []


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("package main\n\nimport (\n\t\"fmt\"\n)\n\nfunc main() {\n\tfmt.Println(1)\n}\n", "Go"),
        ("use std::fs;\n\npub fn rate() -> f64 {\n    0.33\n}\n", "Rust"),
        ("import x from 'y';\nexport const rate = 0.33;\nfunction f() {\n  return 1;\n}\n", "JavaScript"),
        ('"""Only a docstring: the accept rate is 0.33 here."""\n', "Python"),
        ("#!/usr/bin/env python3\nimport sys\nprint(sys.argv)\n", "Python"),
    ],
)  # fmt: skip
def test_other_languages(text: str, language: str) -> None:
    assert source_code.language(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        CLAIM,
        f"# Report\n\nfrom the log:\n\n* {CLAIM}\n\nimport of the model took long\n",
        "[2026-11-30 15:48:22] Decode batch, #running-req: 1, accept len: 1.75\n" * 5,
        "key: value\nother: 3\nlist:\n  - 1\n  - 2\n",
        f"Steps:\n```python\nimport sglang\nfrom sglang import Engine\n```\n{CLAIM}\n",
        # Two lines of code in a page of prose make no program.
        "import torch\nimport sglang\n" + f"{CLAIM}\n" * 8,
    ],
)
def test_prose_and_logs_are_no_source(text: str) -> None:
    assert source_code.language(text) == ""


def test_prose_around_code_is_read_and_the_code_is_not() -> None:
    text = f"Here is what I run:\n\n```python\n{PYTHON}```\n\n{CLAIM}\n"
    assert sorted(claims(text)) == [0.33, 0.65]


def test_arguments_in_a_fence_of_code_are_still_read() -> None:
    text = f"{CLAIM}\n\n```\npython -m sglang.launch_server --model-path /m --speculative-algorithm DFLASH\n```\n"
    reading = evidence.recognise(of_bytes("a", text.encode()))
    assert any(isinstance(fact, ServerArgs) for found in reading.found for fact in found.facts)


def test_a_folder_of_source_code_states_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Its docstrings show log lines and command lines as examples: nobody's server wrote them."""
    Path("src").mkdir()
    Path("src/one.txt").write_text(PYTHON)
    Path("src/two.py").write_text(
        '"""Reads decode lines.\n\n'
        "    [2026-11-30 15:48:22 TP0] Decode batch, #running-req: 1, #token: 13, token usage: 0.00, accept len: 1.75, "
        "accept rate: 0.25, cuda graph: True, gen throughput (token/s): 61.36, #queue-req: 0\n"
        "    python -m sglang.launch_server --model-path /m --speculative-algorithm DFLASH\n"
        '"""\n\nimport re\n\n\ndef read(line):\n    return re.match("x", line)\n'
    )
    code, report = analyse(capsys, "src")
    assert code == 4
    assert reasons(report) == ["one.txt and two.py: source code (Python), which is no evidence"]
    assert {fact["type"] for step in report["steps"] for fact in step["facts"]} == {"EvidenceFile"}


# --- help, and what is carried over ------------------------------------------------------------------------


def test_help_is_silent_on_options_that_change_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["analyse", "--help"]) == 0
    said = capsys.readouterr().out
    assert "--hosts FILE" not in said
    assert "--timeout S" not in said
    assert "--reports" in said
    assert "--hosts and --timeout change nothing" in " ".join(said.split())


def test_options_that_change_nothing_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text("Lorem ipsum\n")
    assert app.run(["analyse", "a.txt", "--hosts", "none.yaml", "--timeout", "3"]) == 4
    capsys.readouterr()


def test_the_ledger_is_reckoned_with_the_bandwidth_of_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """By `rejudging.ruled`, which knows the host; an analysis takes that ledger as it is."""
    asked: list[float | None] = []

    def ledger(report: Report, bandwidths: dict[str, float | None]) -> Report:
        asked.extend(bandwidths.values())
        return report

    monkeypatch.setattr(runner, "with_hypotheses", ledger)
    rejudging.ruled(Host(name="gpu1", gpu_bandwidth=1792.0), (), ())
    assert asked == [1792.0]
