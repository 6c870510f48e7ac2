"""Tables that people paste: which columns are read, whatever they are headed."""

from __future__ import annotations

import pytest

from ddprobe.evidence import tables
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import CommitPoint, PlainSpeed


def speeds(with_it: str, without: str) -> tuple[list[tuple[int, float | None]], list[tuple[int, float]]]:
    """(context, tokens per second) of the points, and of plain decoding."""
    text = f"| ctx | {with_it} | {without} | accept len |\n|---|---|---|---|\n| 1k | 88.1 | 60.2 | 2.9 |\n| 32k | 42 | 50.1 | 2.9 |\n"
    document = of_bytes("a", text.encode())
    found = tables.recognise(document, document.sample())
    assert found is not None
    points = [(fact.context_tokens, fact.tok_s) for fact in found.facts if isinstance(fact, CommitPoint)]
    plain = [(fact.context_tokens, fact.tok_s) for fact in found.facts if isinstance(fact, PlainSpeed)]
    return points, plain


@pytest.mark.parametrize(
    "with_it",
    [
        "with spec (tok/s)",
        "tok/s",
        "w/ speculative decoding tok/s",
        "spec on tok/s",
        "EAGLE3 (tok/s)",
        "speculative (t/s)",
    ],
)
@pytest.mark.parametrize(
    "without",
    [
        "without spec (tok/s)",
        "baseline tok/s",
        "no spec (tok/s)",
        "vanilla (t/s)",
        "spec off tok/s",
        "w/o EAGLE3 tok/s",
        "plain (tok/s)",
    ],
)
def test_speeds_with_speculation_and_without(with_it: str, without: str) -> None:
    points, plain = speeds(with_it, without)
    assert points == [(1024, 88.1), (32768, 42.0)]
    assert plain == [(1024, 60.2), (32768, 50.1)]


@pytest.mark.parametrize(
    "without", ["without spec", "baseline", "no of requests (tok/s)", "notes", "baseline commit"]
)
def test_a_column_that_is_no_speed_without_speculation(without: str) -> None:
    assert speeds("tok/s", without) == ([(1024, 88.1), (32768, 42.0)], [])
