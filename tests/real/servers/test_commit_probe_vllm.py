"""`commit-probe` as a person types it, against a real vLLM whose drafter was limited to 2048 tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real import sshd as real
from tests.real.servers import vllm
from tests.real.servers.test_commands import Person, address
from tests.real.servers.vllm import VllmServer

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def collapsing() -> Iterator[VllmServer]:
    with vllm.serving(*vllm.COLLAPSE) as running:
        yield running


def test_the_collapse_at_the_drafters_own_limit(
    tmp_path: Path, server: real.Server, collapsing: VllmServer
) -> None:
    person = Person(tmp_path, {"gpu1": address(server)})
    text = tmp_path / "phrase.txt"
    text.write_text(collapsing.phrase)
    ran = person.types(
        "commit-probe", "--url", collapsing.base, "--engine", "vllm", "--contexts", "256,1k,1900,2100,4k",
        "--arms", "repeat", "--text", str(text), "--json", expect=None,
    )  # fmt: skip
    means = {point["context_tokens"]: point["commit_mean"] for point in ran.report["points"]}
    assert all(abs(means[context] - 6.0) <= 0.2 for context in (256, 1024))
    assert all(abs(means[context] - 1.0) <= 0.1 for context in (2100, 4096))
    first: dict[str, Any] = ran.report["verdicts"][0]
    assert (first["name"], first["kind"]) == ("long_context_bug", "draft_length_limit")
    said = " ".join(first["reasons"])
    assert "max_model_len" in said
    assert "2048" in said
    assert ran.code == 1


def test_a_chat_in_the_servers_own_template(
    tmp_path: Path, server: real.Server, collapsing: VllmServer
) -> None:
    """Its template only joins messages, and takes no notice of thinking: the phrase at the end decides."""
    person = Person(tmp_path, {"gpu1": address(server)})
    text = tmp_path / "phrase.txt"
    text.write_text(collapsing.phrase)
    ran = person.types(
        "commit-probe", "--url", collapsing.base, "--engine", "vllm", "--contexts", "256", "--arms", "chat",
        "--text", str(text), "--json", expect=None,
    )  # fmt: skip
    (point,) = ran.report["points"]
    assert (point["arm"], point["prompt_tokens"]) == ("chat", 256)
    assert abs(point["commit_mean"] - 6.0) <= 0.2
