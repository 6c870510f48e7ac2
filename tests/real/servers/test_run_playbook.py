"""`run commit-len-one` as a person types it, through a real sshd, against real servers: right verdicts, sensible gaps.

The hosts have no GPU, so that no step time is held against a card's bandwidth, and nothing is blamed on clocks.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real import sshd as real
from tests.real.servers.llamacpp import BAD_DRAFTER, StartLlama
from tests.real.servers.sglang_cpu import EASY, StartSglang
from tests.real.servers.test_commands import Person, Ran, address


def triage(person: Person, *words: str, **given: str) -> Ran:
    sets = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    ran = person.types("run", "commit-len-one", *words, *sets, "--json", expect=None, limit=400)
    assert [host["error"] for host in ran.report["hosts"]] == [""]
    assert not [s for s in ran.report["steps"] if s["status"] in ("not_run", "interrupted")]
    assert (ran.report["playbook"]["name"], len(ran.report["hypotheses"])) == ("commit-len-one", 9)
    return ran


def gaps(ran: Ran) -> dict[str, str]:
    """Steps that got no whole answer, with why."""
    return {s["id"]: "; ".join(s["reasons"]) for s in ran.report["steps"] if s["status"] == "incomplete"}


def skipped(ran: Ran) -> set[str]:
    return {step["id"] for step in ran.report["steps"] if step["status"] == "skipped"}


def verdicts(ran: Ran) -> list[str]:
    return [verdict["name"] for verdict in ran.report["verdicts"]]


def failed(ran: Ran) -> list[str]:
    return [finding["id"] for finding in ran.report["findings"] if finding["outcome"] == "fail"]


def ledger(ran: Ran) -> dict[str, str]:
    return {one["name"]: one["status"] for one in ran.report["hypotheses"]}


def test_llama_with_a_drafter(tmp_path: Path, server: real.Server, llama_server: StartLlama) -> None:
    llama = llama_server(*BAD_DRAFTER, ctx=8192)
    person = Person(tmp_path, {"gpu1": address(server, url=llama.base, engine="llamacpp")})
    ran = triage(
        person, text=llama.phrase, arms="repeat", contexts="512,1k", more_steps="80", step_contexts="512,1k,2k", timed_steps="16"
    )  # fmt: skip
    assert ran.code == 4
    told = gaps(ran)
    # A program has no source to search, a GGUF file no config.json, and the server's log was deleted.
    assert set(told) == {"config", "logs", "grep", "metrics"}
    assert "is a GGUF file" in told["config"]
    assert "which was deleted" in told["logs"]
    for step in ("grep", "metrics"):
        assert "no installed engine source was found" in told[step]
    assert skipped(ran) == {"read", "attention"}
    assert failed(ran) == []
    # One text that is repeated nearby decides nothing, and more steps of it do not either.
    assert verdicts(ran) == ["inconclusive"]
    commits = {(p["arm"], p["context_tokens"]): p["commit_mean"] for p in ran.report["points"]}
    assert {("repeat", 512), ("repeat", 1024)} <= commits.keys()
    assert all(abs(commit - 4.0) <= 0.15 for commit in commits.values())
    found = ledger(ran)
    assert (found["metric_wrong"], found["kv_lost_on_cache_hit"]) == ("refuted", "refuted")
    assert "supported" not in found.values()


def test_llama_without_a_drafter(tmp_path: Path, server: real.Server, llama_server: StartLlama) -> None:
    llama = llama_server(ctx=8192)
    person = Person(tmp_path, {"gpu1": address(server, url=llama.base, engine="llamacpp")})
    ran = triage(
        person, text=llama.phrase, arms="repeat", contexts="512", step_contexts="512,1k", timed_steps="16"
    )
    assert verdicts(ran) == ["not_speculating"]
    assert skipped(ran) == {"read", "attention", "commit-longer"}
    assert "supported" not in ledger(ran).values()


@pytest.mark.sglang_cpu
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("mode", "verdict"), [("dflash", "inconclusive"), ("plain", "not_speculating")])
def test_sglang(
    tmp_path: Path, server: real.Server, sglang_cpu: StartSglang, mode: str, verdict: str
) -> None:
    sglang = sglang_cpu(mode)
    person = Person(tmp_path, {"gpu1": address(server, url=sglang.base, engine="sglang")})
    ran = triage(
        person, "--skip", "commit-longer", text=EASY, arms="repeat", contexts="128", steps="32", step_contexts="64,128", timed_steps="16"
    )  # fmt: skip
    assert verdicts(ran) == [verdict]
    assert gaps(ran) == {}
    assert skipped(ran) == {"commit-longer"}
    assert failed(ran) == []
    # The installed engine's own source: where it counts what it commits was found and read, and its verify kernel.
    assert any(hit["path"].endswith("speculative/dflash_worker_v2.py") for hit in ran.report["hits"])
    read = {(r["path"], n) for r in ran.report["ranges"] for n in range(r["first"], r["last"] + 1)}
    assert {(hit["path"], hit["line"]) for hit in ran.report["hits"]} <= read
    (path,) = (f for s in ran.report["steps"] for f in s["facts"] if f["type"] == "VerifyPath")
    assert path["version"] == "0.5.23"
    assert "supported" not in ledger(ran).values()
