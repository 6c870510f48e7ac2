"""`commit-probe` as a person types it, through a real sshd, against the real SGLang on a CPU (512 tokens of context)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real import sshd as real
from tests.real.servers.sglang_cpu import EASY, HARD, SglangCpu, StartSglang
from tests.real.servers.test_commands import Person, Ran, address

pytestmark = [pytest.mark.sglang_cpu, pytest.mark.timeout(420)]
KEY = "sk-commit-probe-canary-77ab"


@pytest.fixture
def person(tmp_path: Path, server: real.Server) -> Person:
    return Person(tmp_path, {"gpu1": address(server)})


def probe(person: Person, sglang: SglangCpu, *words: str, text: str = "", **more: Any) -> Ran:
    given: tuple[str, ...] = ()
    if text:
        (person.folder / "own.txt").write_text(text)
        given = ("--text", str(person.folder / "own.txt"))
    return person.types(
        "commit-probe", "--url", sglang.base, "--engine", "sglang", *words, *given, "--json", expect=None, **more
    )  # fmt: skip


def facts(ran: Ran, kind: str) -> list[dict[str, Any]]:
    return [fact for step in ran.report["steps"] for fact in step["facts"] if fact["type"] == kind]


@pytest.mark.parametrize(("text", "commit"), [(EASY, 4.0), (HARD, 1.0)])
def test_dflash_verbatim(person: Person, sglang_cpu: StartSglang, text: str, commit: float) -> None:
    ran = probe(person, sglang_cpu("dflash"), "--arms", "verbatim", text=text)
    (point,) = ran.report["points"]
    assert point["commit_mean"] == commit
    assert point["steps"] >= 64
    assert point["ceiling"] == 4
    assert point["prompt_tokens"] == len(text)  # a token is a byte
    for request in facts(ran, "CommitRequest"):
        assert request["disagreements"] == []
        origins = {account["origin"] for account in request["accounts"]}
        assert {"meta_info histogram", "meta_info"} <= origins
        # On a busy machine steps come together, and then the stream does not count.
        assert "stream" in origins or request["merged_chunks"]
    (setup,) = facts(ran, "CommitSetup")
    assert (setup["method"], setup["drafter"], setup["speculating"]) == ("DFLASH", "model", True)
    stated = [claim["value"] for claim in facts(ran, "Claim") if claim["what"] == "accept length"]
    assert all(1.0 <= value <= 4.0 for value in stated)


def test_a_ladder_within_512_tokens(person: Person, sglang_cpu: StartSglang) -> None:
    ran = probe(person, sglang_cpu("dflash"), "--contexts", "128,256", "--arms", "repeat")
    assert [point["prompt_tokens"] for point in ran.report["points"]] == [128, 256]
    assert all(point["steps"] >= 64 for point in ran.report["points"])
    cached = [r["cached_tokens"] for r in facts(ran, "CommitRequest") if r["purpose"] == "cached"]
    assert all(tokens > 0 for tokens in cached)


def test_a_chat_in_the_servers_own_template(person: Person, sglang_cpu: StartSglang) -> None:
    ran = probe(person, sglang_cpu("dflash"), "--contexts", "256", "--arms", "chat", text="Why?")
    (point,) = ran.report["points"]
    # The template has no switch for thinking; the answer begins after `assistant` and a new line.
    assert (point["arm"], point["prompt_tokens"]) == ("chat", 256)
    requests = list(ran.folder.rglob("*chat-256-point-1.request"))
    ids = json.loads(requests[0].read_bytes())["input_ids"]
    shown = {
        message: json.loads(next(ran.folder.rglob(f"*chat-{message}.body")).read_bytes())["tokens"]
        for message in ("amber", "violet")
    }
    head = next(at for at, pair in enumerate(zip(*shown.values(), strict=False)) if len(set(pair)) == 2)
    # A token is a byte, but for the special ones: `<|im_start|>user`, `<|im_end|>`, `<|im_start|>assistant`.
    assert (head, len(shown["amber"])) == (1 + len("user\n"), head + len("amber") + 2 + len("\nassistant\n"))
    assert ids[:head] == shown["amber"][:head]
    tail = shown["amber"][head + len("amber") :]
    assert ids[-len(tail) :] == tail


def test_ngram_is_a_lookup(person: Person, sglang_cpu: StartSglang) -> None:
    ran = probe(person, sglang_cpu("ngram"), "--contexts", "128", "--arms", "repeat")
    (setup,) = facts(ran, "CommitSetup")
    assert (setup["method"], setup["drafter"]) == ("NGRAM", "lookup")
    assert not {"healthy", "drafter_dead"} & {verdict["name"] for verdict in ran.report["verdicts"]}


def test_plain_does_not_speculate_and_the_key_is_stored_nowhere(
    tmp_path: Path, server: real.Server, sglang_cpu: StartSglang
) -> None:
    sglang = sglang_cpu("plain", "--api-key", KEY)
    (tmp_path / "without").mkdir()
    stranger = Person(tmp_path / "without", {"gpu1": address(server)})
    refused = probe(stranger, sglang, "--contexts", "128")
    assert refused.code == 4
    assert "api_key_env" in refused.out
    person = Person(tmp_path, {"gpu1": address(server, api_key_env="PROBE_KEY")})
    ran = probe(person, sglang, "--contexts", "128", PROBE_KEY=KEY)
    assert ran.report["verdicts"][0]["name"] == "not_speculating"
    assert KEY not in ran.out
    assert all(KEY.encode() not in path.read_bytes() for path in ran.folder.rglob("*") if path.is_file())
