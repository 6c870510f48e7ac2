"""What a measurement would cost, and what of it is left, in words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ddprobe.probes.draft import _cost
from ddprobe.probes.draft._commit_ladder import Ladder


def test_large_numbers_are_readable() -> None:
    """3 texts of 4 prompts at 1k and 128k, 64 steps: 1,585,152 tokens of prompt."""
    told = _cost.commit({"contexts": "1k,128k", "arms": "repeat,far-copy,prose", "prompts": 4, "steps": 64})
    assert f"{3 * 4 * (1024 + 131072):,}" == "1,585,152"
    assert "1,585,152 of prompt" in told
    assert "24 requests and a few controls" in told


@pytest.mark.parametrize(
    ("left", "tail"),
    [(None, ""), (0.0, ""), (0.4, ""), (0.6, ", about 1 s left"), (200.0, ", about 3 min left")],
)
def test_no_time_that_rounds_to_nothing_is_left(left: float | None, tail: str) -> None:
    ladder: Any = SimpleNamespace(_left=lambda _number, _variant: left, places=["one"])
    place: Any = SimpleNamespace(script=SimpleNamespace(label="repeat"), context=1024)
    assert Ladder._about(ladder, place, 3, 4, 0) == f"repeat at 1k (point 1 of 1), prompt 4 of 4{tail}"
