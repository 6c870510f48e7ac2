"""Steps from CUDA graphs and without: a log's lines of both are never thrown together, and what is said of them."""

from __future__ import annotations

import pytest

from ddprobe import evidence, lints
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import DecodeBin, DecodeSeries, ServerArgs
from ddprobe.model import Fact, Finding, Outcome
from tests.collected_facts import verdict
from tests.test_collected import log, names

LAUNCH = "launch_or_cpu_bound"
SERVED = ServerArgs(
    engine="sglang", origin="log", values=(("model_path", "/m"), ("speculative_algorithm", "EAGLE3"))
)


def line(second: int, context: int, speed: float, graph: bool, running: int = 1) -> str:
    return (
        f"[2026-09-14 10:{second // 60:02d}:{second % 60:02d} TP0] Decode batch, #running-req: {running}, #token: "
        f"{context * running}, token usage: 0.01, accept len: 3.00, accept rate: 0.66, cuda graph: {graph}, "
        f"gen throughput (token/s): {speed * running:.2f}, #queue-req: 0\n"
    )


def read(text: str) -> tuple[DecodeBin, ...]:
    facts = evidence.facts([evidence.recognise(of_bytes("a.log", text.encode()))])
    (series,) = [fact for fact in facts if isinstance(fact, DecodeSeries)]
    return series.bins


def test_lines_of_one_context_with_graphs_and_without_are_two_ranges() -> None:
    text = "".join(line(n, 1100 + 10 * n, 62.0, graph=False) for n in range(6))
    text += "".join(line(n, 1100 + 10 * n, 300.0, graph=True) for n in range(6))
    told = [(each.low, each.graph_share, each.lines, each.tok_s, each.tokens) for each in read(text)]
    assert told == [(1024, 0.0, 6, 62.0, 1125.0), (1024, 1.0, 6, 300.0, 1125.0)]


def test_lines_that_do_not_say_stand_apart() -> None:
    text = line(0, 1100, 300.0, graph=True) + line(1, 1100, 200.0, graph=True).replace(
        "cuda graph: True, ", ""
    )
    assert [(each.graph_share, each.tok_s) for each in read(text)] == [(None, 200.0), (1.0, 300.0)]


def test_the_mean_context_is_per_request() -> None:
    (one,) = read(line(0, 1100, 80.0, graph=True, running=4) + line(1, 1500, 80.0, graph=True, running=4))
    assert (one.running, one.tokens) == (4, 1300.0)


# --- SA09 by the log --------------------------------------------------------------------------------------


def ranged(running: int, graph: bool | None, lines: int = 4, low: int = 1024) -> DecodeBin:
    share = None if graph is None else float(graph)
    return DecodeBin(low, 2 * low, running, lines, 3.0, 3.0, 3.0, 0.6, 100.0, graph_share=share)


def sa09(*bins: DecodeBin, servers: tuple[Fact, ...] = (SERVED,)) -> Finding | None:
    return next((f for f in lints.judge([*servers, log(*bins)]) if f.id == "SA09"), None)


@pytest.mark.parametrize(
    ("bins", "outcome", "said"),
    [
        ((ranged(1, True), ranged(1, False)), Outcome.FAIL, "4 of 8 decode lines ran without CUDA graphs, with 1 running request already"),
        ((ranged(1, False),), Outcome.FAIL, "4 of 4 decode lines"),
        ((ranged(1, True), ranged(16, False)), Outcome.WARN, "those with 16 running requests and more"),
        ((ranged(16, True), ranged(16, False)), Outcome.FAIL, "with 16 running requests already"),
        ((ranged(16, True), ranged(8, False)), Outcome.FAIL, "with 8 running requests already"),
        ((ranged(1, True), ranged(1, False, lines=1)), Outcome.PASS, "not switched off"),
        ((ranged(1, True), ranged(1, False, lines=2)), Outcome.FAIL, "2 of 6"),
        ((ranged(1, True),), Outcome.PASS, "not switched off"),
        ((ranged(1, None),), Outcome.PASS, "not switched off"),
    ],
)  # fmt: skip
def test_what_a_log_says_of_graphs(bins: tuple[DecodeBin, ...], outcome: Outcome, said: str) -> None:
    found = sa09(*bins)
    assert found is not None
    assert (found.outcome, said in found.summary) == (outcome, True), found.summary


# --- graphs that end at a length --------------------------------------------------------------------------


def steps(*told: tuple[int, float, bool], lines: int = 4, running: int = 1) -> DecodeSeries:
    """(tokens, ms of a step, from graphs); 3 tokens a step."""
    return log(
        *(
            DecodeBin(
                1 << (tokens.bit_length() - 1), 1 << tokens.bit_length(), running, lines, 3.0, 3.0, 3.0, 0.6, 3000 / ms,
                graph_share=float(graph), tokens=float(tokens),
            )
            for tokens, ms, graph in told
        )
    )  # fmt: skip


def test_graphs_that_are_lost_beyond_a_length() -> None:
    found = verdict(LAUNCH, steps((1000, 10.0, True), (21000, 11.0, True), (61000, 54.0, False)))
    assert (found.kind, found.confidence) == ("beyond_a_length", "medium")
    # A ms for 20000 tokens: two more of them for 40000 more.
    assert found.reasons == (
        "between 21000 and 61000 CUDA graphs are lost, and a step takes 54 ms (1 running, 4 lines) after 11 ms (1 running, "
        "4 lines): from graphs it grew as if to 13 ms there",
    )


@pytest.mark.parametrize(
    ("told", "found"),
    [
        # 1.5 times the 13 ms that are expected.
        (((1000, 10.0, True), (21000, 11.0, True), (61000, 19.5, False)), True),
        (((1000, 10.0, True), (21000, 11.0, True), (61000, 19.4, False)), False),
        # Attention alone grows so: 10 ms for 20000 tokens.
        (((1000, 10.0, True), (21000, 20.0, True), (61000, 54.0, False)), False),
        (((21000, 11.0, True), (61000, 54.0, False)), False),
        (((1000, 10.0, True), (21000, 11.0, True)), False),
        # Faster with length is no growth to go by.
        (((1000, 12.0, True), (21000, 11.0, True), (61000, 16.5, False)), True),
        (((1000, 12.0, True), (21000, 11.0, True), (61000, 16.4, False)), False),
    ],
)  # fmt: skip
def test_what_is_more_than_growth(told: tuple[tuple[int, float, bool], ...], found: bool) -> None:
    assert (LAUNCH in names(steps(*told))) is found


def test_a_single_line_is_no_step_time() -> None:
    told = ((1000, 10.0, True), (21000, 11.0, True), (61000, 54.0, False))
    assert LAUNCH not in names(steps(*told, lines=1))
