"""Data-parallel ranks of one server: what each commits, and when one drafts otherwise than the rest."""

from __future__ import annotations

import pytest

from ddprobe import evidence, lints
from ddprobe.evidence import _ranks
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import DecodeSeries
from ddprobe.model import Finding, Outcome


def line(number: int, rank: str, commit: float) -> str:
    return (
        f"[2026-09-14 10:{number // 60:02d}:{number % 60:02d} {rank}TP0] Decode batch, #running-req: 1, #token: {600 + number}, "
        f"token usage: 0.01, accept len: {commit:.2f}, accept rate: {commit / 4:.2f}, cuda graph: True, gen throughput "
        "(token/s): 287.52, #queue-req: 0\n"
    )


def log(*told: tuple[str, float], lines: int = 4) -> str:
    return "".join(line(n, rank, commit) for n in range(lines) for rank, commit in told)


def read(text: str) -> tuple[DecodeSeries, Finding | None]:
    facts = evidence.facts([evidence.recognise(of_bytes("a.log", text.encode()))])
    (series,) = [fact for fact in facts if isinstance(fact, DecodeSeries)]
    return series, next((f for f in lints.judge(facts) if f.id == "RT16"), None)


def test_each_rank_by_its_name() -> None:
    series, _ = read(log(("DP10 ", 3.0), ("DP2 ", 2.0)))
    assert series.ranks == (("DP2", 4, 2.0), ("DP10", 4, 3.0))


@pytest.mark.parametrize("told", [(("", 3.0),), (("DP0 ", 3.0),)], ids=["no rank", "a single one"])
def test_no_several_ranks(told: tuple[tuple[str, float], ...]) -> None:
    series, found = read(log(*told))
    assert series.ranks == ()
    assert found is None


def test_ranks_are_read_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ranks, "MOST", 3)
    series, _ = read(log(*((f"DP{n} ", 3.0) for n in range(5))))
    assert [name for name, _, _ in series.ranks] == ["DP0", "DP1", "DP2"]


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        ((("DP0 ", 2.9), ("DP1 ", 1.0)), Outcome.FAIL),
        ((("DP0 ", 2.9), ("DP1 ", 1.05)), Outcome.FAIL),
        ((("DP0 ", 2.9), ("DP1 ", 1.06)), Outcome.WARN),
        ((("DP0 ", 1.5), ("DP1 ", 1.05)), Outcome.FAIL),
        ((("DP0 ", 1.49), ("DP1 ", 1.05)), Outcome.WARN),
        # Half of the two tokens beyond the first.
        ((("DP0 ", 3.0), ("DP1 ", 1.99)), Outcome.WARN),
        ((("DP0 ", 3.0), ("DP1 ", 2.0)), Outcome.PASS),
        ((("DP0 ", 1.0), ("DP1 ", 1.0)), Outcome.PASS),
        ((("DP0 ", 2.9), ("DP1 ", 2.8), ("DP2 ", 1.0)), Outcome.FAIL),
    ],
)
def test_ranks_that_differ(told: tuple[tuple[str, float], ...], outcome: Outcome) -> None:
    _, found = read(log(*told))
    assert found is not None
    assert found.outcome is outcome, found.summary


def test_what_is_said_of_them() -> None:
    _, found = read(log(("DP0 ", 2.9), ("DP1 ", 1.0)))
    assert found is not None
    assert found.summary == (
        "DP1 commits 1.00 (4 decode lines), and DP0 commits 2.90 (4 decode lines): the mean over all of them is of neither; "
        "that rank's drafter gets nothing right"
    )


def test_a_few_lines_of_a_rank_say_nothing_of_it() -> None:
    text = log(("DP0 ", 2.9), lines=8)
    assert read(text + log(("DP1 ", 1.0), lines=3))[1] is None
    assert read(text + log(("DP1 ", 1.0), lines=4))[1] is not None
