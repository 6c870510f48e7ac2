"""The engine's release from pasted text reaches what depends on it."""

from __future__ import annotations

import json

import pytest

from ddprobe import evidence
from ddprobe.evidence.document import of_bytes
from ddprobe.lints.served import put_together
from ddprobe.model import Fact
from ddprobe.parsing import version_text

COMMAND = "python -m sglang.launch_server --model-path /m --speculative-algorithm DFLASH\n"


def facts(*texts: str) -> tuple[Fact, ...]:
    readings = [evidence.recognise(of_bytes(str(at), text.encode())) for at, text in enumerate(texts)]
    return evidence.facts(evidence.ordered(readings))


def version(*texts: str) -> str:
    (served,) = put_together(facts(*texts))
    return served.version


@pytest.mark.parametrize(
    "text",
    [
        "torch==2.9.1\nsglang==0.5.23\n",
        "sglang[all]==0.5.23  # pinned\n",
        "Package    Version\n---------- -------\nsglang     0.5.23\ntorch      2.9.1\n",
        "sglang     0.5.23    /opt/sglang/python\n",
        "Name: sglang\nVersion: 0.5.23\nSummary: fast serving\n",
        "SGLang version: 0.5.23\n",
        "- **SGLang version**: v0.5.23\n",
        "| SGLang | 0.5.23 |\n",
        "Python: 3.12.3\nsglang: 0.5.23\nflashinfer_python: 0.6.1\n",
        ">>> import sglang\n>>> sglang.__version__\n'0.5.23'\nsglang.__version__ = '0.5.23'\n",
        json.dumps(
            {"model_path": "/m", "tp_size": 1, "speculative_algorithm": "DFLASH", "version": "0.5.23"}
        ),
        "docker run lmsysorg/sglang:v0.5.23 " + COMMAND,
    ],
)
def test_the_release_is_known(text: str) -> None:
    assert version(COMMAND, text) == "0.5.23"
    assert version(f"Our setup.\n\n```\n{COMMAND}```\n\n```\n{text}\n```\n") == "0.5.23"


def test_variables_beside_it() -> None:
    assert version("SGLANG_SIMULATE_ACC_LEN=0 " + COMMAND, "sglang==0.5.23\n") == "0.5.23"


@pytest.mark.parametrize(
    "text",
    [
        "sglang>=0.5.23\n",
        "It worked with sglang 0.5.12 and is slow since sglang 0.5.23.\n",
        "sglang==0.5.12\nsglang==0.5.23\n",
        "vllm==0.11.0\n",
        "sglang-router==0.5.23\nsgl-kernel 0.5.23\n",
        "Name: torch\nVersion: 0.5.23\n",
        "sglang: latest\n",
    ],
)
def test_the_release_is_not_known(text: str) -> None:
    assert version(COMMAND, text) == ""


def test_other_engines() -> None:
    assert [
        (one.engine, one.version) for one in version_text.read(["vLLM Version      : 0.11.0", "vllm 0.11.0"])
    ] == [("vllm", "0.11.0")]


def test_claims_stand_beside_a_version() -> None:
    told = facts("sglang==0.5.23\nWe see an accept length of 1.35 on long prompts.\n")
    assert [type(fact).__name__ for fact in told] == ["SourcePackage", "Claim"]
