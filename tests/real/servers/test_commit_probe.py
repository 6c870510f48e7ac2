"""`commit-probe` as a person types it, through a real sshd, against a real llama-server whose truth is known."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.real import sshd as real
from tests.real.servers.llamacpp import BAD_DRAFTER, NGRAM_MAP_K, NGRAM_SIMPLE, LlamaServer, StartLlama
from tests.real.servers.test_commands import Person, Ran, address

TRUTH = 4.0
"""What a step commits with `BAD_DRAFTER`: three drafts right, and the bonus token."""


@pytest.fixture
def person(tmp_path: Path, server: real.Server) -> Person:
    return Person(tmp_path, {"gpu1": address(server)})


def probe(
    person: Person,
    llama: LlamaServer,
    *words: str,
    contexts: str = "256,1k",
    expect: int | None = None,
    **more: Any,
) -> Ran:
    text = person.folder / "phrase.txt"
    text.write_text(llama.phrase)
    asked = () if "--contexts" in words else ("--contexts", contexts)
    return person.types(
        "commit-probe", "--url", llama.base, "--engine", "llamacpp", *asked, "--text", str(text), *words, "--json",
        expect=expect, **more,
    )  # fmt: skip


def points(ran: Ran) -> dict[tuple[str, int], dict[str, Any]]:
    return {(point["arm"], point["context_tokens"]): point for point in ran.report["points"]}


def facts(ran: Ran, kind: str) -> list[dict[str, Any]]:
    return [fact for step in ran.report["steps"] for fact in step["facts"] if fact["type"] == kind]


def verdicts(ran: Ran) -> list[str]:
    return [verdict["name"] for verdict in ran.report["verdicts"]]


def test_the_founding_command_line_reads_the_known_truth(person: Person, llama_server: StartLlama) -> None:
    llama = llama_server(*BAD_DRAFTER)
    ran = probe(person, llama, "--arms", "repeat", contexts="256,1k,4k,16k")
    found = points(ran)
    assert sorted(context for _, context in found) == [256, 1024, 4096, 16384]
    for point in found.values():
        assert point["arm"] == "repeat"
        assert point["steps"] >= 64
        assert point["ceiling"] == 6
        assert abs(point["commit_mean"] - TRUTH) <= 0.1
        assert point["commit_low"] <= point["commit_mean"] <= point["commit_high"]
        assert point["commit_high"] - point["commit_low"] <= 0.3
        assert abs(point["accept_rate"] - 0.6) < 0.03  # three of five drafts
        assert point["step_ms"] > 0
        assert point["tok_s"] > 0
    assert all(not request["disagreements"] for request in facts(ran, "CommitRequest"))
    assert "long_context_bug" not in verdicts(ran)


def test_the_ladder_costs_about_one_longest_prompt(person: Person, llama_server: StartLlama) -> None:
    llama = llama_server(*BAD_DRAFTER)
    ran = probe(person, llama, "--arms", "repeat", contexts="1k,4k,16k")
    sent = [r for r in facts(ran, "CommitRequest") if r["purpose"] == "point"]
    computed = sum(r["prompt_tokens"] - r["cached_tokens"] for r in sent)
    assert computed < 1.2 * 16384
    assert sum(r["prompt_tokens"] for r in sent) > 3 * computed


def test_every_prompt_has_the_length_asked_for(person: Person, llama_server: StartLlama) -> None:
    ran = probe(person, llama_server(*BAD_DRAFTER), "--arms", "repeat")
    for point in points(ran).values():
        assert point["prompt_tokens"] == point["context_tokens"]
    assert [check["agrees"] for check in facts(ran, "CommitCheck") if check["name"] == "prompt-length"] == []


def test_cold_leaves_the_prefix_cache_out(person: Person, llama_server: StartLlama) -> None:
    ran = probe(person, llama_server(*BAD_DRAFTER), "--arms", "repeat", "--cold")
    assert all(abs(point["commit_mean"] - TRUTH) <= 0.1 for point in points(ran).values())
    sent = [r for r in facts(ran, "CommitRequest") if r["purpose"] == "point"]
    assert all(request["cached_tokens"] < 32 for request in sent)


def test_a_server_without_speculation(person: Person, llama_server: StartLlama) -> None:
    ran = probe(person, llama_server(), contexts="256,1k")
    assert verdicts(ran)[0] == "not_speculating"
    for point in points(ran).values():
        # Nothing was drafted: the steps are known, and no accept rate is made up.
        assert point["accept_rate"] is None
        assert point["commit_mean"] in (None, 1.0)


def test_a_lookup_drafter_is_no_proof_of_a_drafter(person: Person, llama_server: StartLlama) -> None:
    ran = probe(person, llama_server(*NGRAM_SIMPLE), "--arms", "repeat")
    (setup,) = facts(ran, "CommitSetup")
    assert (setup["drafter"], setup["speculating"]) == ("lookup", True)
    assert all(point["commit_mean"] > 5 for point in points(ran).values())
    assert not {"healthy", "drafter_dead", "long_context_bug"} & set(verdicts(ran))


def test_the_state_effect_of_a_lookup_is_no_context_collapse(
    person: Person, llama_server: StartLlama
) -> None:
    ran = probe(person, llama_server(*NGRAM_MAP_K), "--arms", "repeat", contexts="256,1k,4k")
    assert not {"long_context_bug", "long_context_decay", "drafter_dead"} & set(verdicts(ran))


def test_what_does_not_fit_is_refused_and_the_rest_is_measured(
    person: Person, llama_server: StartLlama
) -> None:
    llama = llama_server(*BAD_DRAFTER, ctx=4096)
    ran = probe(person, llama, "--arms", "repeat", contexts="1k,16k", expect=4)
    assert list(points(ran)) == [("repeat", 1024)]
    (reason,) = [r for step in ran.report["steps"] for r in step["reasons"]]
    assert "16384" in reason
    assert "4096 tokens per request" in reason


def test_the_founding_contexts_are_taken_as_far_as_they_fit(person: Person, llama_server: StartLlama) -> None:
    llama = llama_server(*BAD_DRAFTER, ctx=4096)
    ran = person.types(
        "commit-probe", "--url", llama.base, "--engine", "llamacpp", "--arms", "repeat", "--json", expect=None
    )
    assert [context for _, context in points(ran)] == [1024]
    (setup,) = facts(ran, "CommitSetup")
    assert len(setup["left_out"]) == 3
    assert all(step["status"] == "done" for step in ran.report["steps"])


def test_a_plan_sends_nothing(person: Person, llama_server: StartLlama) -> None:
    llama = llama_server(*BAD_DRAFTER)
    ran = probe(person, llama, "--plan", expect=0)
    (setup,) = facts(ran, "CommitSetup")
    assert setup["planned_only"]
    assert setup["points"]
    assert facts(ran, "CommitRequest") == []
    posts = [
        a["question"]
        for step in ran.report["steps"]
        for a in step["artefacts"]
        if a["question"].startswith("POST")
    ]
    assert posts == []
    shown = person.types("commit-probe", "--url", llama.base, "--engine", "llamacpp", "--plan", expect=0).out
    assert "tokens" in shown


def test_a_chat_in_the_servers_own_template(person: Person, llama_server: StartLlama) -> None:
    """Its template only joins messages, and takes no notice of thinking: the phrase at the end decides."""
    ran = probe(person, llama_server(*BAD_DRAFTER), "--arms", "chat")
    assert list(points(ran)) == [("chat", 256), ("chat", 1024)]
    for point in points(ran).values():
        assert point["prompt_tokens"] == point["context_tokens"]
        # The phrase ends the same way in all four prompts, so each has a first step that commits fewer.
        assert abs(point["commit_mean"] - TRUTH) <= 0.2
    assert all(step["status"] == "done" for step in ran.report["steps"])


def test_verbatim_sends_the_text_byte_for_byte(person: Person, llama_server: StartLlama) -> None:
    llama = llama_server(*BAD_DRAFTER)
    text = person.folder / "own.txt"
    text.write_bytes((llama.phrase * 3).encode())
    ran = person.types(
        "commit-probe", "--url", llama.base, "--engine", "llamacpp", "--arms", "verbatim", "--text", str(text), "--json",
        expect=None,
    )  # fmt: skip
    (point,) = ran.report["points"]
    assert (point["arm"], point["prompt_tokens"]) == ("verbatim", 24)
    assert abs(point["commit_mean"] - TRUTH) <= 0.1
    bodies = [json.loads(path.read_bytes()) for path in ran.folder.rglob("*verbatim*.request")]
    assert bodies
    assert all(body["prompt"].encode() == text.read_bytes() for body in bodies)


def test_the_report_holds_what_was_sent_and_judges_the_same_again(
    person: Person, llama_server: StartLlama
) -> None:
    ran = probe(person, llama_server(*BAD_DRAFTER), "--arms", "repeat")
    requests = facts(ran, "CommitRequest")
    for request in requests:
        assert request["accounts"]
        assert request["source"][0]["artefact"].endswith(".body")
        about = json.loads((ran.folder / request["source"][0]["artefact"]).with_suffix(".json").read_bytes())
        sent = (ran.folder / request["source"][0]["artefact"]).with_suffix(".request").read_bytes()
        assert about["asked"]["body_sha256"] == hashlib.sha256(sent).hexdigest()
    again = person.types(
        "report", "show", ran.folder.name, "--json", DDPROBE_REPORTS=str(ran.reports), expect=None
    )
    assert again.report == ran.report


def test_a_killed_run_still_shows_what_it_measured(person: Person, llama_server: StartLlama) -> None:
    llama = llama_server(*BAD_DRAFTER)
    text = person.folder / "phrase.txt"
    text.write_text(llama.phrase)
    reports = person.folder / "reports-killed"
    running = subprocess.Popen(
        [
            sys.executable, "-m", "ddprobe", "commit-probe", "--url", llama.base, "--engine", "llamacpp", "--contexts",
            "256,1k,4k,16k", "--arms", "repeat", "--text", str(text), "--reports", str(reports), "--json",
        ],
        env={**os.environ, "DDPROBE_HOSTS": str(person.hosts)}, cwd=person.folder, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    limit = time.monotonic() + 60
    while not list(reports.glob("*/evidence/*/*/*repeat-256-point-4*.json")) and time.monotonic() < limit:
        time.sleep(0.02)
    running.kill()
    running.wait()
    shown = person.types("report", "show", "--json", DDPROBE_REPORTS=str(reports), expect=None).report
    assert shown["interrupted"]
    (first,) = (point for point in shown["points"] if point["context_tokens"] == 256)
    assert abs(first["commit_mean"] - TRUTH) <= 0.1
    assert first["steps"] >= 64
    assert [verdict["name"] for verdict in shown["verdicts"]] == ["inconclusive"]
