"""Lines that engines log of their acceptance, of every era, and the formula behind an accept rate."""

from __future__ import annotations

import random
from functools import partial

import pytest

from ddprobe.parsing import accept_rates, acceptance_lines, decode_log
from ddprobe.parsing.accept_rates import Pair
from tests.cputime import cpu_seconds

SGLANG = {
    # release: line, (running, tokens, commit, rate, graph, throughput)
    "0.4.10": (
        "[2025-08-01 10:00:00 TP0] Decode batch. #running-req: 3, #token: 4100, token usage: 0.01, accept len: 2.31, "
        "cuda graph: True, gen throughput (token/s): 410.00, #queue-req: 0, ",
        (3, 4100, 2.31, None, True, 410.0),
    ),
    "0.5.3 hybrid": (
        "[2025-10-01 10:00:00] Decode batch. #running-req: 1, #full token: 900, full token usage: 0.01, #swa token: 128, "
        "swa token usage: 0.02, accept len: 1.21, cuda graph: False, gen throughput (token/s): 38.00, #queue-req: 0, ",
        (1, 900, 1.21, None, False, 38.0),
    ),
    "0.5.4 with an iteration": (
        "[2025-11-01 10:00:00] Decode batch [812], #running-req: 8, #token: 4300, token usage: 0.01, accept len: 1.07, "
        "accept rate: 0.36, cuda graph: True, gen throughput (token/s): 425.00, #queue-req: 0, ",
        (8, 4300, 1.07, 0.36, True, 425.0),
    ),
    "0.5.10 on an NPU": (
        "[2026-02-01 10:00:00] Decode batch, #running-req: 2, #token: 50, token usage: 0.00, accept len: 1.50, "
        "accept rate: 0.19, waiting-image-req: 0, npu graph: True, gen throughput (token/s): 9.10, #queue-req: 1",
        (2, 50, 1.5, 0.19, True, 9.1),
    ),
    "0.5.20 hybrid with Mamba": (
        "[2026-09-01 10:00:00 TP0] Decode batch, #running-req: 1, #full token: 900, full token usage: 0.01, mamba num: 4, "
        "mamba usage: 0.12, accept len: 1.21, accept rate: 0.03, cuda graph: True, gen throughput (token/s): 38.00, "
        "#queue-req: 0",
        (1, 900, 1.21, 0.03, True, 38.0),
    ),
    "0.5.23 DSpark": (
        "[2026-11-30 15:43:25 DP1 TP0] Decode batch, #running-req: 1, #token: 36, token usage: 0.00, accept len: 3.10, "
        "accept rate: 0.30, cap len: 5.20, block accept len: 3.40, musa graph: True, gen throughput (token/s): 138.86, "
        "#queue-req: 0, est. decode TFLOPS/s (per GPU): 1.20, fwd occupancy: 97.10%",
        (1, 36, 3.1, 0.3, True, 138.86),
    ),
    "not speculating": (
        "[2026-11-30 15:43:25] Decode batch, #running-req: 1, #token: 36, token usage: 0.00, cpu graph: False, "
        "gen throughput (token/s): 138.86, #queue-req: 0",
        (1, 36, None, None, False, 138.86),
    ),
    "journald and Docker around it": (
        "2026-11-30T15:35:08+0000 gpu1 sglang[4711]: (rank 0) [2026-11-30 15:35:08] Decode batch, #running-req: 1, "
        '#token: 36, token usage: 0.00, accept len: 1.75, accept rate: 0.11, cpu graph: False, gen throughput (token/s): 7.00\\n","stream"',
        (1, 36, 1.75, 0.11, False, 7.0),
    ),
    "another order": (
        "Decode batch, gen throughput (token/s): 7.50, accept rate: 0.25, #token: 80, accept len: 1.75, #running-req: 4",
        (4, 80, 1.75, 0.25, None, 7.5),
    ),
}


@pytest.mark.parametrize("release", SGLANG)
def test_decode_line(release: str) -> None:
    text, expected = SGLANG[release]
    line = decode_log.decode_line(text)
    assert line is not None
    assert (line.running, line.tokens, line.commit, line.rate, line.graph, line.throughput) == expected


def test_fields_by_name() -> None:
    line = decode_log.decode_line(SGLANG["0.5.23 DSpark"][0])
    assert line is not None
    assert line.number("cap len") == 5.2
    assert line.number("block accept len") == 3.4
    assert line.slack("accept len") == pytest.approx(0.005)


@pytest.mark.parametrize("value", ["nan", "inf", "-1.00", "1e5", "", "1.2.3", "9" * 400])
def test_what_is_no_number_is_unknown(value: str) -> None:
    line = decode_log.decode_line(f"Decode batch, #running-req: 1, accept len: {value}, accept rate: {value}")
    assert line is not None
    assert line.commit is None
    assert line.rate is None


def test_other_lines_are_none() -> None:
    assert decode_log.decode_line("[2026-11-30 15:43:25] Prefill batch, #new-seq: 1, #new-token: 5") is None
    assert decode_log.decode_line("Decode batch") is None


def test_the_common_shape_reads_what_the_names_say() -> None:
    found = {name: decode_log.COMMON.search(text) for name, (text, _) in SGLANG.items()}
    assert {name for name, match in found.items() if match} == {
        "0.4.10", "0.5.4 with an iteration", "0.5.20 hybrid with Mamba", "journald and Docker around it",
    }  # fmt: skip
    for name, match in found.items():
        if match is None:
            continue
        running, tokens, commit, rate, graph, throughput = SGLANG[name][1]
        told = decode_log.told(match[3])
        assert told is not None
        assert (int(match[1]), int(match[2]), float(match[4])) == (running, tokens, throughput)
        assert (told.commit, told.rate, told.graph) == (commit, rate, graph)


def test_colours() -> None:
    assert decode_log.uncoloured("\x1b[32mDecode\x1b[0m batch") == "Decode batch"


def test_lines_with() -> None:
    block = "a mark 1\nnothing\nmark 2 mark\n\nmark 3"
    assert list(decode_log.lines_with(block, "mark")) == [
        (2, "a mark 1"),
        (17, "mark 2 mark"),
        (30, "mark 3"),
    ]


def test_hostile_lines_take_no_time() -> None:
    def read(text: str) -> None:
        decode_log.COMMON.findall(text)
        list(decode_log.prefills(text))
        for _, line in decode_log.lines_with(text, text[:12]):
            decode_log.decode_line(line)
            acceptance_lines.vllm_line("SpecDecoding metrics: " + line)
            acceptance_lines.llamacpp_line(line)
            acceptance_lines.tree_line(line)

    for text in (
        "Decode batch, #running-req: 1, #token: 1, " + "accept len: " * 50_000,
        "Decode batch" * 50_000,
        "draft acceptance = 1.0 (" + " " * 300_000,
        "Per-position acceptance rate: " + "0.1, " * 60_000,
        "commit_lens=[" + "1, " * 100_000,
        "Prefill batch" + "#running-req: " * 50_000,
    ):
        assert cpu_seconds(partial(read, text)) < 1


# --- the other engines ---------------------------------------------------------------------------------------

VLLM = (
    "(APIServer pid=1) INFO 05-01 14:24:50 [metrics.py:101] SpecDecoding metrics: Mean acceptance length: 5.82, Accepted "
    "throughput: 22.33 tokens/s, Drafted throughput: 22.93 tokens/s, Accepted: 670 tokens, Drafted: 688 tokens, "
    "Per-position acceptance rate: 0.964, 0.964, 0.964, 0.964, 0.964, Avg Draft acceptance rate: 97.4%"
)


def test_vllm_line() -> None:
    counts = acceptance_lines.vllm_line(VLLM)
    assert counts is not None
    assert (counts.accepted, counts.drafted, counts.commit) == (670, 688, 5.82)
    assert counts.per_position == (0.964,) * 5
    # 1 + 670 / 139 = 5.820; 138 and 140 print 5.86 and 5.79.
    assert counts.steps == 139


def test_vllm_steps_from_what_was_drafted() -> None:
    # 14 accepted and 1.05 fit 255 to 311 steps; five of 1500 drafted per step are 300.
    line = VLLM.replace("5.82", "1.05").replace("670", "14").replace("688", "1500")
    counts = acceptance_lines.vllm_line(line)
    assert counts is not None
    assert counts.steps == 300


def test_vllm_without_drafts() -> None:
    counts = acceptance_lines.vllm_line(
        "SpecDecoding metrics: Mean acceptance length: nan, Accepted: 0 tokens, Drafted: 0 tokens"
    )
    assert counts is not None
    assert (counts.drafted, counts.commit, counts.steps) == (0, None, None)


@pytest.mark.parametrize(
    ("line", "accepted", "drafted", "steps"),
    [
        ("draft acceptance = 0.56790 (   46 accepted /    81 generated), mean len =  3.71", 46, 81, 17),
        ("draft acceptance = 1.00000 (  187 accepted /   187 generated), mean len = 63.33", 187, 187, 3),
        ("draft acceptance rate = 0.73000 (  146 accepted /   200 generated)", 146, 200, None),
        ("draft acceptance = 0.00000 (    0 accepted /    93 generated), mean len =  1.00", 0, 93, None),
    ],
)
def test_llamacpp_line(line: str, accepted: int, drafted: int, steps: int | None) -> None:
    counts = acceptance_lines.llamacpp_line(f"0.03.293.539 I slot print_timing: id  0 | task 1 | {line}")
    assert counts is not None
    assert (counts.accepted, counts.drafted, counts.steps) == (accepted, drafted, steps)


def test_llamacpp_positions_and_places() -> None:
    line = (
        "0.05.000.000 I slot print_timing: id  2 | task 10 | draft acceptance = 0.53763 (   50 accepted /    93 generated), "
        "mean acceptance length =  2.61, acceptance rate per position = (0.774, 0.484, 0.355)"
    )
    counts = acceptance_lines.llamacpp_line(line)
    assert counts is not None
    assert counts.per_position == (0.774, 0.484, 0.355)
    assert counts.steps == 31
    assert acceptance_lines.llamacpp_task(line) == (2, 10)
    assert acceptance_lines.llamacpp_seconds(line) == 5.0
    assert (
        acceptance_lines.llamacpp_context(
            "I slot      release: id  0 | task 1 | stop processing: n_tokens = 325, truncated = 0"
        )
        == 325
    )
    timing = "eval time =      72.61 ms /    64 tokens (    1.15 ms per token,   867.61 tokens per second)"
    assert acceptance_lines.llamacpp_speed(timing) == 867.61
    assert acceptance_lines.llamacpp_speed(f"prompt {timing}") is None


def test_tree_lines() -> None:
    listed = acceptance_lines.tree_line("DFLASH_DDTREE verify completed. commit_lens=[3, 1]")
    assert listed is not None
    assert listed.commits == (3, 1)
    stated = acceptance_lines.tree_line("step 9 avg_accepted_depth=3.00 tree_budget=16 avg_commit_len=1.00")
    assert stated is not None
    assert (stated.commit, stated.depth) == (1.0, 3.0)
    assert acceptance_lines.tree_line("max_commit_len=8 my_avg_commit_length=2") is None


# --- accept rates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "name", "k", "rates"),
    [
        # 1.94 / 3 = 0.647 and 1.80 / 3 = 0.600
        ([(2.94, 0.65), (2.80, 0.60)], accept_rates.CORRECT, 3, [0.65, 0.60]),
        # 5.40 / 15 = 0.36 (also 6.40 / 18), 2.30 / 15 = 0.153 (but 3.30 / 18 = 0.183)
        ([(6.40, 0.36), (3.30, 0.15)], accept_rates.CORRECT, 15, [0.36, 0.15]),
        # 1 / 3 = 0.333 and 1.07 / 3 = 0.357: nothing was right in the first
        ([(1.00, 0.33), (1.07, 0.36)], accept_rates.WITH_BONUS, 2, [0.0, 0.035]),
        # 1 / 9 = 0.111
        ([(1.00, 0.11)], accept_rates.WITH_BONUS, 8, [0.0]),
        # 2.50 / 2 = 1.25: no share exceeds 1
        ([(2.50, 1.25), (1.00, 0.50)], accept_rates.ABOVE_ONE, 2, [0.75, 0.0]),
        # Zero at 1.00 counts no bonus; K does not follow.
        ([(1.00, 0.00)], accept_rates.CORRECT, None, [0.0]),
    ],
)
def test_formula(pairs: list[tuple[float, float]], name: str, k: int | None, rates: list[float]) -> None:
    told = [Pair(*pair) for pair in pairs]
    found = accept_rates.formula(told)
    assert found is not None
    assert (found.name, found.k) == (name, k)
    assert [found.correct_rate(pair) for pair in told] == pytest.approx(rates)


def test_no_formula_fits_two_servers() -> None:
    assert accept_rates.formula([Pair(1.00, 0.33), Pair(2.94, 0.65)]) is None
    assert accept_rates.formula([Pair(4.00, 0.10), Pair(1.10, 0.90)]) is None
    assert accept_rates.formula([]) is None


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 7, 8, 15])
def test_rounding_never_hides_the_formula(k: int) -> None:
    draw = random.Random(k)
    for old in (False, True):
        pairs = []
        for _ in range(200):
            steps = draw.randint(1, 400)
            right = draw.randint(0, steps * k)
            length, rate = (
                1 + right / steps,
                (right + steps) / (steps * (k + 1)) if old else right / (steps * k),
            )
            pairs.append(Pair(float(f"{length:.2f}"), float(f"{rate:.2f}")))
        found = accept_rates.formula(pairs)
        assert found is not None
        assert (found.name, found.k) == (accept_rates.WITH_BONUS if old else accept_rates.CORRECT, k)
