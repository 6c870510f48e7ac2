"""Answers as JSON: what is none, or none that can be read, is unanswered and no crash."""

from __future__ import annotations

import pytest

from ddprobe.errors import Unanswered
from ddprobe.model import Command, CommandResult, Evidence, Host


def answered(stdout: bytes) -> Evidence:
    asked = Command(key="config", argv=("cat", "config.json"))
    return Evidence(Host(name="gpu1"), (CommandResult(question=asked, exit_code=0, stdout=stdout),))


def test_json_is_read() -> None:
    assert answered(b'{"block_size": 8}').json("config") == {"block_size": 8}


@pytest.mark.parametrize(
    ("stdout", "reason"),
    [
        (b"{", "is not JSON"),
        (b"[" * 200_000, "nested too deep"),
        (b'{"a":' * 200_000 + b"1" + b"}" * 200_000, "nested too deep"),
    ],
)
def test_what_is_none_is_unanswered(stdout: bytes, reason: str) -> None:
    with pytest.raises(Unanswered, match=reason):
        answered(stdout).json("config")
