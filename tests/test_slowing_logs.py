"""A log that slows down while a card's clock is held: when is the machine to blame?"""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe import evidence
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import DecodeBin, DecodeSeries
from ddprobe.model import Finding, Outcome
from tests.collected_facts import verdict
from tests.test_collected import fail, log, names

STATE = "gpu_state"


def slowing(
    first: float | None, last: float | None, low: float = 3.0, high: float = 3.0, **other: Any
) -> DecodeSeries:
    known: dict[str, Any] = {"low": 1024, "high": 2048, "running": 1, "lines": 12, "tokens": 1500.0}
    known |= {"commit_mean": 3.0, "commit_low": low, "commit_high": high, "rate_mean": 0.5, "tok_s": 200.0}
    return log(DecodeBin(**{**known, "graph_share": 1.0, "tok_s_first": first, "tok_s_last": last, **other}))


def warned(id: str) -> Finding:
    return Finding(id=id, outcome=Outcome.WARN, subject="GPU 0", summary="low", advice=f"mend {id}")


def test_a_card_that_is_held_down_explains_a_log_that_slows() -> None:
    found = verdict(STATE, slowing(300.0, 92.0), findings=(fail("GP01"), warned("GP03")))
    assert (found.kind, found.confidence) == ("throttled", "medium")
    assert found.reasons == (
        "with 1 running request at about 1500 tokens the log begins at 300 tok/s and ends at 92, and commits the same (3.00, "
        "12 lines)",
        "GP01: wrong",
        "GP03: low",
    )
    assert found.next[:2] == ("mend GP01", "mend GP03")


@pytest.mark.parametrize(
    ("series", "findings", "found"),
    [
        (slowing(150.0, 100.0), (fail("GP01"),), True),
        (slowing(149.0, 100.0), (fail("GP01"),), False),
        (slowing(300.0, 100.0), (warned("GP03"),), True),
        (slowing(300.0, 100.0), (fail("GP02"),), True),
        (slowing(300.0, 100.0), (fail("GP06"),), False),
        (slowing(300.0, 100.0), (), False),
        (slowing(100.0, 300.0), (fail("GP01"),), False),
        (slowing(300.0, 100.0, 2.0, 2.5), (fail("GP01"),), True),
        (slowing(300.0, 100.0, 2.0, 2.51), (fail("GP01"),), False),
        (slowing(None, None), (fail("GP01"),), False),
    ],
    ids=["just", "less", "a low clock", "a power limit", "another fault", "no fault", "faster", "steady", "it commits less", "unknown"],
)  # fmt: skip
def test_when_a_slower_log_is_the_machines(
    series: DecodeSeries, findings: tuple[Finding, ...], found: bool
) -> None:
    assert (STATE in names(series, findings=findings)) is found


@pytest.mark.parametrize(
    ("speeds", "first", "last"),
    [
        ((300, 310, 290, 200, 190, 210, 100, 90, 110), 300.0, 100.0),
        ((300, 310, 200, 190, 100, 90), 305.0, 95.0),
        ((300, 310, 200, 100, 90), None, None),
    ],
    ids=["nine lines", "six", "five"],
)
def test_first_and_last_lines_of_a_range(
    speeds: tuple[int, ...], first: float | None, last: float | None
) -> None:
    text = "".join(
        f"[2026-09-14 10:00:{n:02d} TP0] Decode batch, #running-req: 1, #token: {1100 + n}, token usage: 0.01, accept len: 3.00, "
        f"accept rate: 0.66, cuda graph: True, gen throughput (token/s): {speed:.2f}, #queue-req: 0\n"
        for n, speed in enumerate(speeds)
    )
    facts = evidence.facts([evidence.recognise(of_bytes("a.log", text.encode()))])
    (series,) = [fact for fact in facts if isinstance(fact, DecodeSeries)]
    (one,) = series.bins
    assert (one.tok_s_first, one.tok_s_last) == (first, last)
