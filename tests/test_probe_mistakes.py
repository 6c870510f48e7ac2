"""Settings that could never be asked: told by the probe itself, before any host is contacted."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe import probes


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("source.grep", {"pattern": "a(b", "context": 51}, ["pattern", "context"]),
        ("source.grep", {"pattern": "a", "limit": 0, "in_glob": "/etc/*"}, ["in_glob", "limit"]),
        ("source.read", {"file": "", "context": 1001, "ranges": "9-3"}, ["ranges", "context"]),
        ("engine.logs", {"since": "yesterday"}, ["since"]),
        ("engine.logs", {"since": "2h"}, []),
        ("draft.commit", {"contexts": "1k,,2k"}, ["contexts"]),
        ("draft.commit", {"contexts": "auto,64k", "max_context": "128k", "url": "https://[::1]:8080"}, []),
        ("draft.commit", {"contexts": "17m", "max_context": "0"}, ["contexts", "max_context"]),
        ("draft.commit", {"engine": "tgi", "url": "127.0.0.1:8080"}, ["engine", "url"]),
        (
            "draft.commit",
            {"seed": -1, "prompts": 65, "request_timeout": -1.0},
            ["seed", "request_timeout", "prompts"],
        ),
        ("draft.commit", {"arms": "repeat,verbatim"}, ["arms"]),
        ("draft.commit", {"arms": "repeat,verbatim", "text": "a b"}, []),
        ("draft.step_time", {"plain_url": "ftp://a", "steps": 100_001}, ["plain_url", "steps"]),
    ],
)
def test_mistakes(name: str, given: dict[str, Any], told: list[str]) -> None:
    found = list(probes.load(name).mistakes(given))
    assert [setting for setting, _ in found] == told
    assert all(text.strip() for _, text in found)
