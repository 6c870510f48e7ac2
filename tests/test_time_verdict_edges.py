"""Verdicts on time at their limits: just below, at, and just above; levers, thread blocks and clocks by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ddprobe.facts import (
    Achieved,
    CommitCheck,
    CommitPoint,
    DecodeBin,
    DecodeSeries,
    Estimate,
    GpuSample,
    GpuWindow,
    ModelConfig,
    Roofline,
    ServerArgs,
    SourceHit,
    SpeculationGain,
    StepFit,
)
from ddprobe.model import Cite, Fact, Finding, Outcome
from ddprobe.probes.draft import _step_time_law
from ddprobe.verdicts import (
    attention_kernel_bottleneck,
    bandwidth,
    counting,
    gpu_state,
    launch_or_cpu_bound,
    levers,
    spec_net_loss,
    times_only,
    verifying,
)
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ruling import Ruling
from tests.test_roofline import DENSE, KIMI, args
from tests.test_time_verdicts import LADDER, SA01, SA09, STEADY, ladder, setup, windows

RTX = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
LINE = Roofline(kv_bytes_per_token=131072.0, bandwidth=1000.0, weight_bytes=10e9, verify_width=8)
"""0.131072 µs a token; the weights take 10 ms."""
LEAST = 0.131072e-3


def case(*facts: Fact, findings: tuple[Finding, ...] = ()) -> Case:
    return Case((setup(), DENSE, *facts), findings)


def fit(form: str = "linear", a: float = 12.0, b: float = 0.0, **more: Any) -> StepFit:
    """A law as the probe told it, six medians at the ladder's lengths."""
    contexts = tuple(map(float, LADDER))
    known: dict[str, Any] = {
        "arm": "repeat", "a": Estimate(a, a, a), "b": Estimate(b), "points": 6, "steps": 540, "contexts": contexts,
        "step_ms": tuple(a + b * c for c in contexts), "weighted": True,
    }  # fmt: skip
    return StepFit(form=form, **{**known, **more})


def of(law: StepFit, *facts: Fact, findings: tuple[Finding, ...] = ()) -> Case:
    """Points along that law, the law itself, and the roofline."""
    return case(*ladder(law.at), law, LINE, *facts, findings=findings)


def told(ruling: Ruling | None) -> str:
    assert ruling is not None
    return "\n".join(ruling.verdict.reasons)


# --- the lines that count ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "cut"), [(109, False), (110, False), (111, True)])
def test_a_line_is_told_up_to_110_characters(length: int, cut: bool) -> None:
    text = "commit_len = " + "x" * (length - 13)
    (line,) = counting.lines(Case((SourceHit(path="a.py", line=1, text=text, within="f"),)))
    assert line.told == f"a.py:1 has `{text[:110]}{'…' if cut else ''}`"


def test_the_first_of_two_places_is_cited() -> None:
    hit = SourceHit(
        path="a.py", line=1, text="commit_len = f(x)", within="f", source=(Cite("grep"), Cite("other"))
    )
    assert [line.cite for line in counting.lines(Case((hit,)))] == [Cite("grep", "line 1")]
    assert [line.cite.artefact for line in counting.lines(Case((replace(hit, source=()),)))] == [""]


# --- which backend verifies ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "stated"),
    [
        ({"attention_backend": "fa3"}, "fa3"),
        ({"attention_backend": ""}, ""),
        ({"attention_backend": 3}, ""),
        ({"attention_backend": "fa3", "prefill_attention_backend": ""}, "fa3"),
        ({"attention_backend": "fa3", "prefill_attention_backend": 3}, "fa3"),
        ({"decode_attention_backend": "fa3"}, ""),
        ({"decode_attention_backend": "fa3", "speculative_attention_mode": "decode"}, "fa3"),
        ({"prefill_attention_backend": "fa3", "speculative_attention_mode": "prefill"}, "fa3"),
    ],
)
def test_the_backend_that_arguments_state(values: dict[str, Any], stated: str) -> None:
    assert verifying.stated(Case(args(**values))) == stated


@pytest.mark.parametrize(
    ("target", "card", "values", "backend"),
    [
        (KIMI, RTX, {}, "triton"),
        (DENSE, RTX, {}, ""),
        (None, RTX, {}, ""),
        (KIMI, "NVIDIA H200", {}, ""),
        (KIMI, RTX, {"attention_backend": "flashinfer"}, "flashinfer"),
    ],
)
def test_what_sglang_takes_by_itself(
    target: ModelConfig | None, card: str, values: dict[str, Any], backend: str
) -> None:
    known = (target,) if target is not None else ()
    found = Case((*known, GpuSample(index=0, name=card), *args(**values)))
    assert verifying.backend(found) == backend


# --- bandwidth, slope and thread blocks ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "said"),
    [(9.09, "9.1 GB/s"), (0.51, "0.51 GB/s"), (99.4, "99 GB/s"), (99.6, "100 GB/s"), (726.2, "726 GB/s"), (6280.4, "6280 GB/s")],
)  # fmt: skip
def test_a_rate_is_never_a_power_of_ten(rate: float, said: str) -> None:
    found = Achieved(context=131072.0, step_ms=12.0, kv_bytes=17.2e9, gb_s=rate, share=0.5)
    assert f": {said}, " in bandwidth.told(found, LINE)
    shown = dict(
        _step_time_law._roofline(LINE, [replace(found, slope_ratio=Estimate(6280.4, 999.6, 12345.0))])
    )
    assert "e+" not in "".join(shown.values())
    assert shown["slope"] == "6280 [1000, 12345] times that of reading the KV cache"


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.00994, "0.99% of"), (0.00999, "1.00% of"), (0.01, "1% of"), (0.0101, "1% of"), (0.5, "50% of")],
)
def test_a_share_below_a_hundredth_has_two_digits_more(share: float, said: str) -> None:
    found = Achieved(context=131072.0, step_ms=12.0, kv_bytes=17.2e9, gb_s=10.0, share=share)
    text = bandwidth.told(found, replace(LINE, gpu=RTX))
    assert text == (
        f"at 128k each GPU reads 17.2 GB of KV cache in a step of 12 ms: 10 GB/s, {said} 1000 GB/s (RTX PRO 6000 Blackwell)"
    )
    assert "of the slowest card, for want of this one's" in bandwidth.told(found, replace(LINE, known=False))


def test_whose_bandwidth_is_said_where_it_is_the_cards_own() -> None:
    found = Achieved(context=1024.0, step_ms=12.0, kv_bytes=1e9, gb_s=10.0, share=0.5)
    assert bandwidth.told(found, LINE).endswith("50% of 1000 GB/s")
    assert bandwidth.told(found, replace(LINE, gpu=RTX, known=False)).endswith("50% of 1000 GB/s")


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (
            Estimate(10.0),
            "the slope is 10 times that of reading the KV cache (1.31 µs per token beside 0.131)",
        ),
        (Estimate(10.0, 9.0, 11.0), "10 times that of reading the KV cache, 95 % 9–11 (1.31"),
        (Estimate(10.0, 9.0, None), "10 times that of reading the KV cache (1.31"),
        (Estimate(10.0, None, 11.0), "10 times that of reading the KV cache (1.31"),
    ],
)
def test_a_slope_in_words(ratio: Estimate, said: str) -> None:
    found = Achieved(context=1.0, step_ms=1.0, kv_bytes=1.0, gb_s=1.0, share=1.0, slope_ratio=ratio)
    assert said in bandwidth.slope(found, LINE)


def test_bandwidth_needs_a_cache_of_known_size() -> None:
    assert bandwidth.reached(of(fit(b=1e-3)), fit(b=1e-3)) is not None
    empty = case(replace(LINE, kv_bytes_per_token=0.0))
    assert bandwidth.reached(empty, fit()) is None
    assert bandwidth.reached(Case((setup(),)), fit()) is None


def blocks(width: int | None = 8, ranks: int = 1, heads: int | None = 32, *facts: Fact, **values: Any) -> str:
    target = replace(DENSE, num_attention_heads=heads)
    line = replace(LINE, gpu=RTX, verify_width=width, ranks=ranks)
    known: dict[str, Any] = {"attention_backend": "triton", **values}
    return "".join(bandwidth.blocks(Case((setup(), target, line, *args(**known), *facts)), ()))


@pytest.mark.parametrize(
    ("width", "ranks", "heads", "said"),
    [
        (8, 1, 32, "32 heads × 1 tile of 32 queries = 32 thread blocks for 188 SMs"),
        (32, 1, 32, "32 heads × 1 tile of 32 queries = 32 thread blocks"),
        (33, 1, 32, "32 heads × 2 tiles of 32 queries = 64 thread blocks"),
        (64, 4, 32, "8 heads × 2 tiles of 32 queries = 16 thread blocks"),
        (8, 64, 32, "× 1 tile of 32 queries = 1 thread block"),
        (8, 1, 187, "187 heads × 1 tile"),
        (8, 1, 188, ""),
        (8, 1, 189, ""),
        (None, 1, 32, ""),
        (8, 1, None, ""),
    ],
)
def test_thread_blocks_fewer_than_sms(width: int | None, ranks: int, heads: int | None, said: str) -> None:
    found = blocks(width, ranks, heads)
    assert said in found
    assert bool(found) is bool(said)


def test_thread_blocks_are_told_of_triton_alone() -> None:
    assert blocks(attention_backend="flashinfer") == ""
    assert blocks(enable_dp_attention=True) == ""
    assert "SGLang's default there" not in blocks()
    assert blocks().startswith("Triton verify on RTX PRO 6000 Blackwell (SM120): ")
    mla = Case(
        (setup(), KIMI, replace(LINE, gpu=RTX, ranks=8), GpuSample(index=0, name=RTX), *args(tp_size=8))
    )
    (by_default,) = bandwidth.blocks(mla, ())
    assert by_default.startswith(
        "Triton MLA verify on RTX PRO 6000 Blackwell (SM120), SGLang's default there: "
    )
    (found,) = bandwidth.blocks(mla, (SA01,))
    assert "default" not in found
    other = Case((setup(), DENSE, replace(LINE, gpu="NVIDIA H200"), *args(attention_backend="triton")))
    (hopper,) = bandwidth.blocks(other, ())
    assert hopper.startswith("Triton verify on H200: ")
    unknown = Case((setup(), DENSE, replace(LINE, gpu="NVIDIA L4"), *args(attention_backend="triton")))
    assert list(bandwidth.blocks(unknown, (SA01,))) == []


# --- levers --------------------------------------------------------------------------------------------------


def sglang(*facts: Fact, ceiling: int | None = 8, target: ModelConfig = KIMI, **values: Any) -> str:
    return "\n".join(levers.attention(Case((setup(ceiling=ceiling), target, *args(**values), *facts))))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"tp_size": 2}, "--dcp-size 2, where"),
        ({"tp_size": 8}, "--dcp-size 8, where"),
        ({"tp_size": 8, "dcp_size": 1}, "--dcp-size 8, where"),
        ({"tp_size": 8, "dcp_size": 0}, "--dcp-size 8, where"),
        ({"tp_size": 8, "dcp_size": -1}, "--dcp-size 8, where"),
        ({"tp_size": 8, "dcp_size": 2}, ""),
        ({"tp_size": 1}, ""),
        ({}, ""),
        ({"tp_size": True}, ""),
        ({"tp_size": 0}, ""),
        ({"tp_size": -2}, ""),
        ({"tp_size": "8"}, ""),
    ],
)
def test_a_latent_can_be_spread_over_several_gpus(values: dict[str, Any], said: str) -> None:
    assert said in sglang(**values)
    assert ("--dcp-size" in sglang(**values)) is bool(said)
    assert "--dcp-size" not in sglang(target=DENSE, **values)


@pytest.mark.parametrize(
    ("ceiling", "values", "said"),
    [
        (8, {}, "--speculative-num-draft-tokens 4 (now 8)"),
        (5, {}, "--speculative-num-draft-tokens 2 (now 5)"),
        (4, {}, "--speculative-num-draft-tokens 2 (now 4)"),
        (3, {}, ""),
        (2, {}, ""),
        (None, {}, ""),
        (None, {"speculative_num_draft_tokens": 16}, "--speculative-num-draft-tokens 8 (now 16)"),
        (8, {"speculative_num_draft_tokens": 16}, "--speculative-num-draft-tokens 4 (now 8)"),
    ],
)
def test_half_a_block(ceiling: int | None, values: dict[str, Any], said: str) -> None:
    found = sglang(ceiling=ceiling, **values)
    assert said in found
    assert ("a smaller block" in found) is bool(said)


def test_without_a_probe_the_arguments_tell_block_and_engine() -> None:
    vllm = Case(
        (ServerArgs(engine="vllm", origin="log", values=(("speculative_num_draft_tokens", 8),)), DENSE)
    )
    assert "num_speculative_tokens in --speculative-config 3 (now 7)" in levers.attention(vllm)[3]
    assert levers.engine(Case(())) == ""
    assert len(levers.attention(Case(()))) == 3


@pytest.mark.parametrize(
    ("high", "said"), [(0.999, " from 64k on:"), (1.0, " beyond the length"), (1.001, " beyond the length"), (None, " beyond")]
)  # fmt: skip
def test_from_where_on_speculation_surely_loses(high: float | None, said: str) -> None:
    gain = SpeculationGain(arm="repeat", context_tokens=65536, plain_ms=1.0, break_even=9.0, gain_high=high)
    far = replace(gain, context_tokens=131072, gain_high=0.5 if high == 0.999 else high)
    for facts in ((gain, far), (far, gain)):
        assert sglang(*facts).startswith(f"switch speculation off{said}")


@pytest.mark.parametrize(
    ("commits", "idle"),
    [((1.05, 1.05), True), ((1.05, 1.06), False), ((1.06, 1.05), False), ((1.0, None), True), ((), False)],
)
def test_a_token_a_step_at_every_length_gains_nothing(commits: tuple[float | None, ...], idle: bool) -> None:
    points = [
        replace(point, commit_mean=commit)
        for point, commit in zip(ladder(lambda _: 12.0), commits, strict=False)
    ]
    assert ("it gains nothing" in sglang(*points)) is idle


def test_the_slow_kernel_is_named_where_target_card_and_backend_are_known() -> None:
    card = GpuSample(index=0, name=RTX)
    assert "than Triton MLA verify" in sglang(card)
    assert "than Triton MLA verify" in sglang(card, attention_backend="triton")
    assert "than Triton MLA verify" not in sglang(card, target=DENSE, attention_backend="triton")
    assert "than Triton MLA verify" not in sglang(
        GpuSample(index=0, name="NVIDIA H200"), attention_backend="triton"
    )
    assert "than Triton MLA verify" not in sglang(attention_backend="triton")


# --- the attention kernel ------------------------------------------------------------------------------------

STEEP = fit(b=0.01)
"""76 times the roofline."""


def attention(law: StepFit, *facts: Fact, findings: tuple[Finding, ...] = ()) -> Ruling | None:
    return attention_kernel_bottleneck.judge(of(law, *facts, findings=findings))


def test_a_law_that_the_sample_does_not_show_is_none_from_five_lengths_on() -> None:
    unclear = (("unclear", "the sample neither shows growth nor excludes it"),)
    assert attention(replace(STEEP, remarks=unclear)) is None
    four = replace(STEEP, remarks=unclear, contexts=STEEP.contexts[:4], step_ms=STEEP.step_ms[:4])
    five = replace(STEEP, remarks=unclear, contexts=STEEP.contexts[:5], step_ms=STEEP.step_ms[:5])
    assert attention(four) is not None
    assert attention(five) is None
    assert attention(replace(STEEP, form="flat")) is None


@pytest.mark.parametrize(
    ("times", "weighted", "form", "found"),
    [
        (4.99, True, "knee", False),
        (5.001, True, "knee", True),
        (4.99, False, "knee", True),
        (4.99, True, "linear", True),
    ],
)
def test_two_levels_need_a_slope_of_their_own(times: float, weighted: bool, form: str, found: bool) -> None:
    """The points grow; between the two levels of the law nothing does."""
    law = fit(form, b=times * LEAST, weighted=weighted)
    points = ladder(lambda x: 12 + 0.01 * x)
    ruling = attention_kernel_bottleneck.judge(case(*points, law, LINE))
    assert (ruling is not None) is found


@pytest.mark.parametrize(
    ("dram", "sms", "said"),
    [
        (0.0999, None, "memory at work in 10.0% of the cycles at the most (30 samples)"),
        (0.05, 0.199, "memory at work in 5.0% of the cycles at the most, 20% of the SMs (30 samples)"),
        (0.05, 0.2, "memory at work in 5.0% of the cycles at the most (30 samples)"),
        (0.0, 0.0, "memory at work in 0.0% of the cycles at the most, 0% of the SMs"),
        (0.1, 0.05, ""),
        (0.11, 0.05, ""),
        (None, 0.05, ""),
    ],
)
def test_counters_that_see_memory_idle(dram: float | None, sms: float | None, said: str) -> None:
    seen = windows(dram_active=dram, sm_active=sms)
    found = "\n".join(attention_kernel_bottleneck.idle_memory(of(STEEP, *seen)))
    assert said in found
    assert bool(found) is bool(said)


def test_the_busiest_moment_counts() -> None:
    calm, busy = windows(dram_active=0.01, sm_active=0.1)[:3], windows(dram_active=0.2, sm_active=0.3)[3:]
    assert attention_kernel_bottleneck.idle_memory(of(STEEP, *calm, *busy)) == []
    half = windows(dram_active=None, sm_active=None)[3:]
    (found,) = attention_kernel_bottleneck.idle_memory(of(STEEP, *calm, *half))
    assert "1.0% of the cycles at the most, 10% of the SMs (15 samples)" in found


@pytest.mark.parametrize(
    ("checks", "confidence"),
    [
        ((), "low"),
        ((STEADY,), "medium"),
        ((replace(STEADY, name="first-again"),), "medium"),
        ((STEADY, replace(STEADY, name="first-again")), "medium"),
        ((replace(STEADY, agrees=False),), "low"),
        ((replace(STEADY, agrees=None),), "low"),
        ((STEADY, replace(STEADY, name="first-again", agrees=False)), "low"),
    ],
)
def test_a_slope_is_surer_where_the_machine_was_steady(
    checks: tuple[CommitCheck, ...], confidence: str
) -> None:
    ruling = attention(STEEP, *checks)
    assert ruling is not None
    assert ruling.verdict.confidence == confidence


def test_a_line_that_begins_below_zero_is_asked_after() -> None:
    """Points of 0 ms at no context are no such line; of −2 ms they are."""
    for intercept, asked in ((0.5, False), (-2.0, True)):
        ruling = attention(fit(a=intercept, b=0.01), STEADY)
        assert ruling is not None
        assert any("begins below zero" in text for text in ruling.verdict.missing) is asked
        assert ruling.verdict.confidence == ("low" if asked else "medium")


def test_the_lint_on_the_kernel_counts_as_a_warning_too() -> None:
    for outcome, kind in (
        (Outcome.FAIL, "serial_prefix"),
        (Outcome.WARN, "serial_prefix"),
        (Outcome.INFO, ""),
    ):
        ruling = attention(STEEP, findings=(replace(SA01, outcome=outcome),))
        assert ruling is not None
        assert ruling.verdict.kind == kind


@pytest.mark.parametrize(("count", "asks"), [(3, True), (4, True), (5, False), (6, False)])
def test_a_ladder_of_five_lengths_needs_no_more(count: int, asks: bool) -> None:
    law = replace(STEEP, contexts=STEEP.contexts[:count], step_ms=STEEP.step_ms[:count])
    ruling = attention_kernel_bottleneck.judge(case(*ladder(law.at)[:count], law, LINE, STEADY))
    assert ruling is not None
    assert any("ddprobe step-time --contexts" in text for text in ruling.verdict.next[4:]) is asks
    assert any("do not tell a line from a curve" in text for text in ruling.verdict.missing) is asks


# --- launches and the CPU ------------------------------------------------------------------------------------


def waits(
    law: StepFit, *facts: Fact, line: Roofline = LINE, findings: tuple[Finding, ...] = (SA09,)
) -> Ruling | None:
    return launch_or_cpu_bound.judge(case(*ladder(law.at), law, line, *facts, findings=findings))


@pytest.mark.parametrize(
    ("a", "low", "found"),
    [
        (50.0, 50.0, True),
        (49.999, 49.999, False),
        (60.0, 49.9, False),
        (60.0, 50.0, True),
        (50.0, None, True),
    ],
)
def test_a_constant_part_counts_by_its_lower_end(a: float, low: float | None, found: bool) -> None:
    assert (waits(replace(fit(a=a, b=1e-4), a=Estimate(a, low, a))) is not None) is found


@pytest.mark.parametrize(("first", "found"), [(120.0, True), (120.1, False)])
def test_a_constant_part_is_half_of_the_shortest_step_at_least(first: float, found: bool) -> None:
    law = fit(a=60.0, b=1e-4)
    law = replace(law, step_ms=(first, *law.step_ms[1:]))
    assert (waits(law) is not None) is found


@pytest.mark.parametrize(
    ("line", "form", "found"),
    [
        (LINE, "linear", True),
        (LINE, "flat", True),
        (LINE, "knee", False),
        (replace(LINE, weight_bytes=None), "linear", False),
        (replace(LINE, weight_bytes=0.0), "linear", False),
    ],
)
def test_a_constant_part_needs_weights_to_compare_with(line: Roofline, form: str, found: bool) -> None:
    assert (waits(fit(form, a=60.0, b=1e-4), line=line) is not None) is found


def test_what_waiting_explains() -> None:
    """A step of 100 ms of which 80 do not grow would take 100 − 80 + 10 = 30 ms."""
    law = replace(fit(a=80.0, b=1e-4), step_ms=(100.0, *fit(a=80.0, b=1e-4).step_ms[1:]))
    ruling = waits(law)
    assert ruling is not None
    assert ruling.explains == pytest.approx(100 / 30)
    # Where the constant part is more than the whole step, the weights are left: 70 / 10.
    short = waits(replace(law, step_ms=(70.0, *law.step_ms[1:])))
    assert short is not None
    assert short.explains == pytest.approx(7.0)


@pytest.mark.parametrize(
    ("utilization", "known", "findings", "confidence"),
    [
        (40.0, True, (SA09,), "high"),
        (40.0, False, (SA09,), "medium"),
        (100.0, True, (SA09,), "medium"),
        (40.0, True, (), "medium"),
    ],
)
def test_both_signs_and_the_cards_own_bandwidth_make_it_sure(
    utilization: float, known: bool, findings: tuple[Finding, ...], confidence: str
) -> None:
    line = replace(LINE, known=known)
    ruling = waits(fit(a=80.0), *windows(utilization=utilization), line=line, findings=findings)
    assert ruling is not None
    assert ruling.verdict.confidence == confidence
    assert ("at the slowest card's bandwidth" in told(ruling)) is not known


def test_the_constant_part_in_words() -> None:
    """80 ms, at least 76, beside 10 ms: 7.6 times, which is told as 8."""
    law = replace(fit(a=80.0), a=Estimate(80.0, 76.0, 84.0))
    assert (
        "is 80 (95 % 76–84) ms (6 medians, 6 lengths); reading the weights of 8 tokens takes 10 ms"
        in told(waits(law))
    )
    assert "8 times as much at the least" in told(waits(law))
    bare = replace(fit(a=80.0), a=Estimate(80.0))
    assert "is 80 ms (6 medians" in told(waits(bare, line=replace(LINE, verify_width=None)))
    assert "the weights of 1 token" in told(waits(bare, line=replace(LINE, verify_width=None)))


def test_idle_cards_are_told_by_their_middle() -> None:
    """Two cards: 10 windows at 40 %, 2 of another at 100 %; 60 samples."""
    other = tuple(replace(w, index=1, utilization=100.0) for w in windows()[:2])
    ruling = waits(fit(a=80.0), *windows(utilization=40.0), *other, findings=())
    assert (
        "no kernel ran for 60% of the time while steps were measured (median of 40 samples of 2 GPUs)"
        in told(ruling)
    )
    unseen = waits(fit(a=80.0), *windows(utilization=None), findings=())
    assert unseen is None


def knee(value: float = 6.0, low: float | None = 5.0, **more: Any) -> StepFit:
    """12 ms at 4096, the last length before the jump."""
    known: dict[str, Any] = {
        "knee": Estimate(value, low, value + 1), "knee_after": 4096.0, "knee_before": 16384.0,
        "contexts": tuple(map(float, LADDER)),
    }  # fmt: skip
    return fit("knee", **{**known, **more})


@pytest.mark.parametrize(
    ("law", "found"),
    [
        (knee(), True),
        (knee(3.0), True),
        (knee(2.999), False),
        (knee(low=0.001), True),
        (knee(low=0.0), False),
        (knee(low=-1.0), False),
        (knee(low=None), False),
        (knee(knee_after=None), False),
        (knee(knee_before=None), False),
        (knee(knee=None), False),
        (knee(a=-12.0), False),
        (knee(a=0.0), False),
        (knee(shift=Estimate(1.25)), False),
        (knee(shift=Estimate(1.249)), True),
    ],
)
def test_a_jump_that_counts(law: StepFit, found: bool) -> None:
    points = ladder(lambda x: 12 + (6 if x > 8192 else 0))
    ruling = launch_or_cpu_bound.judge(case(*points, law, LINE))
    assert (ruling is not None) is found


def test_what_a_jump_explains() -> None:
    ruling = launch_or_cpu_bound.judge(case(*ladder(lambda _: 12.0), knee(), LINE))
    assert ruling is not None
    assert ruling.explains == pytest.approx(1.5)
    assert "between 4k and 16k a step takes 6 (95 % 5–7) ms more at once, on 12 ms" in told(ruling)
    eager = launch_or_cpu_bound.judge(case(*ladder(lambda _: 12.0), knee(), LINE, findings=(SA09,)))
    assert eager is not None
    assert (eager.verdict.confidence, ruling.verdict.confidence) == ("medium", "low")


@pytest.mark.parametrize(
    ("changes", "refuted"),
    [
        ({}, True),
        ({"a": Estimate(12.0, 11.0, 49.99)}, True),
        ({"a": Estimate(12.0, 11.0, 50.0)}, False),
        ({"a": Estimate(12.0, 11.0, None)}, False),
        ({"a": Estimate(-2.0, -3.0, 0.0)}, False),
        ({"a": Estimate(0.0, -3.0, 0.001)}, True),
        ({"form": "knee"}, False),
        ({"contexts": (1024.0, 4096.0, 16384.0)}, True),
        ({"contexts": (1024.0, 4096.0)}, False),
        ({"shift": Estimate(1.25)}, False),
        ({"shift": Estimate(1.249)}, True),
    ],
)
def test_a_constant_part_of_the_weights_alone_refutes_it(changes: dict[str, Any], refuted: bool) -> None:
    law = replace(fit(), **changes)
    assert (launch_or_cpu_bound.refuted(case(*ladder(lambda _: 12.0), law, LINE)) is not None) is refuted


@pytest.mark.parametrize("line", [replace(LINE, known=False), replace(LINE, weight_bytes=None)])
def test_without_the_cards_own_time_for_the_weights_nothing_refutes_it(line: Roofline) -> None:
    assert launch_or_cpu_bound.refuted(case(*ladder(lambda _: 12.0), fit(), line)) is None


# --- the machine ---------------------------------------------------------------------------------------------


def moved(
    value: float, *facts: Fact, low: float | None = None, high: float | None = None, **more: Any
) -> Ruling | None:
    law = fit(b=1e-3, shift=Estimate(value, low, high), **more)
    return gpu_state.judge(case(*ladder(law.at), law, LINE, *facts))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1.0999, None),
        (1.1001, "slower"),
        (1 / 1.0999, None),
        (1 / 1.1001, "faster"),
        (0.0, None),
        (-1.0, None),
    ],
)
def test_a_shift_of_a_tenth_either_way(value: float, kind: str | None) -> None:
    ruling = moved(value)
    assert (ruling.verdict.kind if ruling is not None else None) == kind
    if ruling is not None:
        assert ruling.explains == pytest.approx(1.1001)


@pytest.mark.parametrize(
    ("shift", "shifted"),
    [(1.25, True), (1.2499, False), (0.8, True), (0.8001, False), (None, False), (0.0, False)],
)
def test_a_shift_of_a_quarter_makes_slopes_worthless(shift: float | None, shifted: bool) -> None:
    assert gpu_state.shifted(fit(shift=None if shift is None else Estimate(shift))) is shifted
    assert gpu_state.shifted(None) is False


@pytest.mark.parametrize(
    ("lowest", "kind", "confidence"),
    [(2279.9, "clock_drop", "high"), (2280.0, "slower", "medium"), (2400.0, "slower", "medium")],
)
def test_a_clock_below_95_percent_of_its_own_fell(lowest: float, kind: str, confidence: str) -> None:
    """2280 of 2400 MHz are 95 %."""
    ruling = moved(1.5, *windows((2400.0,) * 5 + (lowest,)))
    assert ruling is not None
    assert (ruling.verdict.kind, ruling.verdict.confidence) == (kind, confidence)
    assert ("the SM clock fell" in told(ruling)) is (kind == "clock_drop")
    assert ruling.verdict.missing == ()


def test_of_two_cards_the_one_that_fell_more_is_told_and_none_is_held_against_another() -> None:
    steady = tuple(replace(w, index=1, sm_clock_mhz=1000.0) for w in windows())
    fell = windows((2400.0,) * 5 + (1200.0,))
    for cards in ((*fell, *steady), (*steady, *(replace(w, index=2) for w in fell))):
        assert "fell from 2400 to 1200 MHz (50%; 60 samples)" in told(moved(1.5, *cards))
    apart = moved(1.5, *windows(), *steady)
    assert apart is not None
    assert apart.verdict.kind == "slower"


def test_a_card_without_clocks_leaves_them_missing() -> None:
    unknown = tuple(replace(w, sm_clock_mhz=None) for w in windows())
    ruling = moved(1.5, *unknown)
    assert ruling is not None
    assert ruling.verdict.missing == ("the GPU's clocks, power and temperature at both times",)
    idle = moved(1.5, *(replace(w, utilization_high=0.0) for w in windows((345.0, *(2400.0,) * 5))))
    assert idle is not None
    assert idle.verdict.kind == "slower"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.4, 1.6, "(6 medians at 6 lengths, 95 % 1.40–1.60)"),
        (None, 1.6, "(6 medians at 6 lengths)"),
        (1.4, None, "(6 medians at 6 lengths)"),
    ],
)
def test_a_shift_in_words(low: float | None, high: float | None, said: str) -> None:
    assert said in told(moved(1.5, low=low, high=high))


@pytest.mark.parametrize(
    ("value", "form", "said"),
    [
        (
            1.5,
            "linear",
            "at one clock a step would take 13 ms at the shortest length and 143 ms at the longest",
        ),
        (1.5, "flat", "at one clock the step time does not grow with context"),
        (1.2, "linear", ""),
    ],
)
def test_what_steps_would_take_at_one_clock(value: float, form: str, said: str) -> None:
    """12 + 1.024 and 12 + 131.072 ms. A shift below a quarter leaves the slope as it is."""
    law = fit(form, b=1e-3, shift=Estimate(value))
    found = told(gpu_state.judge(case(*ladder(law.at), law, LINE)))
    assert said in found
    assert ("at one clock" in found) is bool(said)


def test_a_shift_without_a_place_says_so_instead() -> None:
    found = told(moved(1.5, remarks=(("shift_unplaced", "nothing tells when"),)))
    assert "nothing tells when" in found
    assert "at one clock" not in found


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (("hw_slowdown", "sw_power_cap", "gpu_idle"), "the cards name hw_slowdown and sw_power_cap as what"),
        (("gpu_idle",), ""),
        (None, ""),
    ],
)
def test_reasons_that_hold_clocks(reasons: tuple[str, ...] | None, said: str) -> None:
    found = told(moved(1.5, *windows(reasons=reasons)))
    assert said in found
    assert ("the cards name" in found) is bool(said)


HELD = ("hw_slowdown",)


@pytest.mark.parametrize(("clock", "found"), [(949.9, True), (950.0, False), (950.1, False)])
def test_a_clock_held_at_95_percent_of_the_highest(clock: float, found: bool) -> None:
    law = fit()
    ruling = gpu_state.judge(
        case(*ladder(law.at), law, LINE, *windows((clock,) * 6, reasons=HELD, highest=1000.0))
    )
    assert (ruling is not None) is found
    if ruling is not None:
        assert ruling.explains == pytest.approx(1000 / clock)


def test_only_cards_that_are_held_count() -> None:
    """The second card is slow for another reason; of the first one, two of six windows are held, at half the clock."""
    free, held = windows(highest=2400.0), windows((1200.0,) * 6, reasons=HELD)
    other = tuple(replace(w, index=1, sm_clock_mhz=300.0) for w in windows(reasons=("gpu_idle",)))
    ruling = gpu_state.judge(of(fit(), *free[:4], *held[4:], *other))
    assert "hw_slowdown held the SM clock at 50% of its highest" in told(ruling)
    assert "(10 samples of 1 GPU)" in told(ruling)
    bare = windows((1200.0,) * 6, reasons=HELD, highest=0.0)
    assert gpu_state.judge(of(fit(), *bare)) is None


@pytest.mark.parametrize(
    ("reasons", "advice"),
    [
        (("sw_thermal_slowdown",), ["check fans"]),
        (("hw_thermal_slowdown",), ["check fans"]),
        (("hw_power_brake_slowdown",), []),
        (("hw_slowdown", "sw_power_cap"), ["the power limit binds"]),
        (("sw_power_cap", "sw_thermal_slowdown"), ["check fans", "the power limit binds"]),
    ],
)
def test_what_to_do_follows_the_reasons(reasons: tuple[str, ...], advice: list[str]) -> None:
    ruling = moved(1.5, *windows(reasons=reasons))
    assert ruling is not None
    assert [text[: len(said)] for text, said in zip(ruling.verdict.next, advice, strict=False)] == advice
    assert len(ruling.verdict.next) == len(advice) + 2


# --- speculation's cost --------------------------------------------------------------------------------------


def loses(
    *points: CommitPoint, plain: float = 2.0, facts: tuple[Fact, ...] = (), **of_setup: Any
) -> Ruling | None:
    baseline = tuple((c, plain) for c in LADDER)
    return spec_net_loss.judge(Case((setup(baseline=baseline, **of_setup), DENSE, *points, *facts)))


@pytest.mark.parametrize(("ms", "found"), [(15.79, False), (15.8, False), (15.81, True)])
def test_a_step_may_take_what_its_tokens_take_alone(ms: float, found: bool) -> None:
    """7.9 tokens of 2 ms."""
    assert (loses(*ladder(lambda _: ms)) is not None) is found


@pytest.mark.parametrize(("steps", "timed", "found"), [(64, 32, True), (63, 63, False), (64, 31, False)])
def test_a_point_that_counts(steps: int, timed: int, found: bool) -> None:
    points = [replace(p, steps=steps, timed_steps=timed) for p in ladder(lambda _: 20.0)]
    assert (loses(*points) is not None) is found


@pytest.mark.parametrize(
    ("arm", "low", "high", "confidence", "said"),
    [
        ("repeat", 0.5, 0.999, "medium", "(95 % 1.00–2.00)"),
        ("repeat", 0.5, 1.0, "low", "(95 % 1.00–2.00)"),
        # Without both ends the commit's own interval decides: 8.0 · 2 / 20 is below 1.
        ("repeat", None, 1.5, "medium", "at 1k"),
        ("repeat", 0.5, None, "medium", "at 1k"),
        ("prose", 0.5, 1.5, "medium", "at 1k"),
    ],
)
def test_how_sure_a_loss_is(
    arm: str, low: float | None, high: float | None, confidence: str, said: str
) -> None:
    gain = SpeculationGain(
        arm=arm, context_tokens=1024, plain_ms=2.0, break_even=10.0, gain_low=low, gain_high=high
    )
    ruling = loses(*ladder(lambda _: 20.0), facts=(gain,))
    assert ruling is not None
    assert ruling.verdict.confidence == confidence
    assert ruling.verdict.reasons[1].endswith(said)


@pytest.mark.parametrize(
    ("engine", "off", "shorter"),
    [
        ("sglang", "--speculative-algorithm;", "--speculative-num-draft-tokens"),
        ("vllm", "--speculative-config;", "num_speculative_tokens"),
        ("llamacpp", "--spec-type and -md;", "--spec-draft-n-max"),
    ],
)
def test_flags_of_each_engine(engine: str, off: str, shorter: str) -> None:
    ruling = loses(*ladder(lambda _: 20.0), engine=engine)
    assert ruling is not None
    assert f"off: start without {off} shorter: a smaller {shorter};" in ruling.verdict.next[1]


@pytest.mark.parametrize(
    ("losing", "kind"),
    [
        ((1024, 4096, 16384, 32768, 65536, 131072), ""),
        ((65536, 131072), "beyond_a_length"),
        ((131072,), "beyond_a_length"),
        ((1024,), ""),
        ((4096, 131072), ""),
    ],
)
def test_a_loss_begins_at_a_length_where_all_before_it_pay(losing: tuple[int, ...], kind: str) -> None:
    ruling = loses(*ladder(lambda x: 20.0 if x in losing else 10.0))
    assert ruling is not None
    assert ruling.verdict.kind == kind


# --- step times alone ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "said"), [(4.99, True), (5.0, False), (5.01, False)])
def test_a_slope_below_five_times_is_told_as_none_of_the_kernels(times: float, said: bool) -> None:
    """131072 bytes at 1024 GB/s are 0.128 µs: five times that is 0.64 µs."""
    line = replace(LINE, bandwidth=1024.0)
    law = fit(b=times * 0.128e-3)
    found = told(times_only.judge(case(*ladder(law.at), law, line)))
    assert ("a slope below 5 times that speaks for the kernel" in found) is said


@pytest.mark.parametrize(("count", "asked"), [(2, True), (3, False), (4, False)])
def test_three_lengths_are_asked_for(count: int, asked: bool) -> None:
    law = fit(b=1e-4)
    found = times_only.judge(case(*ladder(law.at)[:count], law, LINE)).verdict
    assert ("step times at 3 lengths or more" in found.missing) is asked
    assert any("one length tells nothing" in text for text in found.reasons) is False


def test_windows_of_another_ladder_say_nothing() -> None:
    other = tuple(replace(w, purpose="plain") for w in windows(utilization=10.0))
    seen: tuple[GpuWindow, ...] = other
    assert waits(fit(a=80.0), *seen, findings=()) is None


# --- signs and idle cards ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "slope", "said"),
    [
        ("linear", 1e-6, "it grows in a straight line"),
        ("linear", 0.0, "it grows in a straight line"),
        ("linear", -1e-6, "it falls in a straight line"),
        ("linear", -0.5, "it falls in a straight line"),
        ("flat", -1e-6, "flat, as far as the sample tells"),
        ("quadratic", -1e-6, "it grows faster and faster"),
    ],
)
def test_a_line_that_falls_is_none_that_grows(form: str, slope: float, said: str) -> None:
    points = ladder(lambda _: 12.0)
    assert said in told(times_only.judge(case(*points, fit(form, b=slope), LINE)))


@pytest.mark.parametrize(("high", "counts"), [(0.0, False), (0.1, True), (100.0, True), (None, True)])
def test_a_card_on_which_no_kernel_ran_holds_no_step(high: float | None, counts: bool) -> None:
    seen = windows((1200.0,) * 6, reasons=HELD, utilization_high=high)
    assert (gpu_state.judge(of(fit(), *seen)) is not None) is counts


@pytest.mark.parametrize(
    ("high", "middle", "waiting"),
    [(0.0, 0.0, False), (0.1, 0.0, True), (None, 40.0, True), (None, 0.0, False), (1.0, 79.9, True), (1.0, 80.0, False)],
)  # fmt: skip
def test_a_card_that_never_worked_is_not_waited_for(high: float | None, middle: float, waiting: bool) -> None:
    seen = windows(utilization=middle, utilization_high=high)
    assert (waits(fit(a=80.0), *seen, findings=()) is not None) is waiting


def test_idle_cards_beside_a_busy_one_do_not_count() -> None:
    """One card at 100 % and two that nobody uses: nothing waits."""
    busy = windows(utilization=100.0, utilization_high=100.0)
    unused = [
        replace(w, index=index, utilization=0.0, utilization_high=0.0) for w in windows() for index in (1, 2)
    ]
    assert waits(fit(a=80.0), *busy, *unused, findings=()) is None


def test_waiting_never_explains_less_than_nothing() -> None:
    """A step of 8 ms on weights of 10 ms: by the law it would take 10."""
    law = fit(a=50.0)
    ruling = waits(replace(law, step_ms=(8.0, *law.step_ms[1:])))
    assert ruling is not None
    assert ruling.explains == 1.0


@pytest.mark.parametrize(
    ("share", "low", "high", "confidence"),
    [
        (0.499, 4096, 16384, "medium"),
        (0.5, 4096, 16384, "low"),
        (None, 4096, 16384, "low"),
        (0.0, 1024, 4096, "low"),
        (0.0, 1024, 4097, "medium"),
    ],
)
def test_a_log_that_loses_its_graphs_beyond_the_jump(
    share: float | None, low: int, high: int, confidence: str
) -> None:
    bin = DecodeBin(low, high, 1, 20, 7.9, None, None, None, None, graph_share=share)
    log = DecodeSeries(engine="sglang", lines=20, bins=(bin,))
    ruling = launch_or_cpu_bound.judge(case(*ladder(lambda _: 12.0), knee(), LINE, log))
    assert ruling is not None
    assert ruling.verdict.confidence == confidence


def test_a_shift_of_a_tenth_exactly_counts() -> None:
    ruling = moved(1.1)
    assert ruling is not None
    assert ruling.verdict.kind == "slower"


@pytest.mark.parametrize(("level", "found"), [(0.5, True), (1e-3, True), (0.0, False)])
def test_a_jump_from_next_to_nothing(level: float, found: bool) -> None:
    ruling = launch_or_cpu_bound.judge(case(*ladder(lambda _: 12.0), knee(a=level), LINE))
    assert (ruling is not None) is found


def test_commits_without_a_step_time_do_not_say_what_a_step_gains() -> None:
    point = replace(ladder(lambda _: 12.0, commit=1.0)[0], purpose="point", step_ms=None)
    assert "it gains nothing" not in sglang(point)
    assert "it gains nothing" in sglang(replace(point, step_ms=12.0))


def test_what_speculation_gains_is_told_at_both_ends() -> None:
    """Steps of 7.9, 10, … and 15.8 ms that commit 7.9, beside tokens of 2 ms: 2 times as fast, and as fast."""
    times = dict(zip(LADDER, (7.9, 10.0, 11.0, 12.0, 13.0, 15.8), strict=True))
    found = Case((setup(baseline=tuple((c, 2.0) for c in LADDER)), DENSE, *ladder(lambda c: times[int(c)])))
    assert spec_net_loss.gain(found) == (
        "against the baseline, speculation makes repeat 2.00 times as fast at 1k and 1.00 times as fast at 128k"
    )
