"""Sizes and durations as people type them."""

from __future__ import annotations

import pytest

from ddprobe.errors import UsageError
from ddprobe.parsing import sizes


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("1k", 1024),
        ("1.5k", 1536),
        ("128k", 131072),
        ("1m", 1048576),
        ("4096", 4096),
        (" 2K ", 2048),
        ("0", 0),
    ],
)
def test_sizes(text: str, tokens: int) -> None:
    assert sizes.size(text) == tokens


@pytest.mark.parametrize("text", ["", "k", "-1", "1.5", "0.0001k", "1x", "1kk", "1e3", "1" * 20, "½k", "١k"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        sizes.size(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("25", 25.0), ("1.5s", 1.5), ("2m", 120.0), ("1h", 3600.0), ("1d", 86400.0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert sizes.duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "1 hour", "nan", "inf"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        sizes.duration(text)
