"""Verdicts on time from a ladder that was sent for its times: each for and just short, at exact thresholds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ddprobe import evidence, lints, verdicts
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import (
    CommitCheck,
    CommitPoint,
    CommitRequest,
    CommitSetup,
    DecodeBin,
    DecodeSeries,
    GpuSample,
    GpuWindow,
    ModelConfig,
    ServerArgs,
    SpeculationGain,
    VerifyPath,
)
from ddprobe.model import Cite, Fact, Finding, Outcome, Verdict
from ddprobe.verdicts import levers
from ddprobe.verdicts.case import Case
from tests.test_roofline import DENSE, DFLASH, KIMI, args

LADDER = (1024, 4096, 16384, 32768, 65536, 131072)
BANDWIDTH = 1500.9316864
"""GB/s at which DENSE's 15.009 GB of weights take 10 ms, and 131072 bytes of KV a token 0.08733 µs."""
LEAST = 131072 / BANDWIDTH * 1e-6
"""ms per token at the roofline."""
Law = Callable[[float], float]


def ladder(
    law: Law, *, commit: float = 7.9, purpose: str = "step-time", contexts: Sequence[int] = LADDER, spread: float | None = None
) -> tuple[CommitPoint, ...]:  # fmt: skip
    """Exact medians of 90 steps; `spread` is half the relative width of their 95 % intervals."""
    return tuple(
        CommitPoint(
            arm="repeat", context_tokens=c, purpose=purpose, requests=2, steps=94, drafted_steps=94, commit_mean=commit,
            commit_low=max(1.0, commit - 0.1), commit_high=commit + 0.1, ceiling=8, copied=1.0, step_ms=law(c), step_ms_low=0.99 * law(c),
            step_ms_high=1.01 * law(c), timed_steps=90, prompt_tokens=c, tok_s=commit / law(c) * 1e3,
            step_ms_from=None if spread is None else law(c) * (1 - spread), step_ms_to=None if spread is None else law(c) * (1 + spread),
        )
        for c in contexts
    )  # fmt: skip


def again(law: Law, *contexts: int) -> tuple[CommitPoint, ...]:
    return ladder(law, purpose="step-time again", contexts=contexts)


def setup(**other: Any) -> CommitSetup:
    known: dict[str, Any] = {
        "engine": "sglang", "base": "http://127.0.0.1:30000", "speculating": True, "drafter": "model", "draft_tokens": 7, "ceiling": 8,
        "purpose": "step-time",
    }  # fmt: skip
    return CommitSetup(**{**known, **other})


STEADY = CommitCheck(name="step-time-again", agrees=True, text="the same at the end")
SA09 = Finding(id="SA09", outcome=Outcome.FAIL, subject="launch", summary="--disable-cuda-graph is on")
SA01 = Finding(
    id="SA01",
    outcome=Outcome.FAIL,
    subject="launch and target",
    summary="verify runs on triton",
    advice="do not",
)


def judged(
    *facts: Fact, findings: tuple[Finding, ...] = (), bandwidth: float | None = BANDWIDTH
) -> tuple[Verdict, ...]:
    every = (
        (setup(), DENSE, *facts) if not any(isinstance(f, CommitSetup) for f in facts) else (DENSE, *facts)
    )
    return verdicts.judge(every, findings, bandwidth)  # fmt: skip


def names(*facts: Fact, **other: Any) -> list[str]:
    return [verdict.name for verdict in judged(*facts, **other)]


def the(name: str, *facts: Fact, **other: Any) -> Verdict:
    (found,) = [verdict for verdict in judged(*facts, **other) if verdict.name == name]
    return found


def windows(
    clocks: Sequence[float] = (2400.0,) * 6, *, reasons: tuple[str, ...] | None = ("none",), highest: float = 2400.0, **other: Any
) -> tuple[GpuWindow, ...]:  # fmt: skip
    return tuple(
        GpuWindow(
            index=0, purpose="step-time", arm="repeat", context_tokens=c, samples=5, sm_clock_mhz=mhz, sm_clock_max_mhz=highest,
            clock_reasons=reasons, **other,
        )
        for c, mhz in zip(LADDER, clocks, strict=True)
    )  # fmt: skip


# --- step times alone ---------------------------------------------------------------------------------------


def test_times_that_memory_explains_end_in_what_they_say() -> None:
    """Twice the roofline: a straight line that no kernel is to blame for."""
    (verdict,) = judged(*ladder(lambda x: 12 + 2 * LEAST * x))
    assert (verdict.name, verdict.kind) == ("inconclusive", "times_only")
    assert any("it grows in a straight line (6 medians at 6 lengths)" in text for text in verdict.reasons)
    assert any("the slope is 2 times that of reading the KV cache" in text for text in verdict.reasons)
    assert any("speaks for the kernel" in text for text in verdict.reasons)
    assert verdict.next[0].startswith("ddprobe commit-probe")


def test_a_flat_law_is_called_flat() -> None:
    (verdict,) = judged(*ladder(lambda _: 12.0))
    assert verdict.kind == "times_only"
    assert any("flat, as far as the sample tells" in text for text in verdict.reasons)
    assert not any("slope" in text for text in verdict.reasons)


def test_times_that_fall_are_not_said_to_grow() -> None:
    (verdict,) = judged(*ladder(lambda x: 100 - x / 4096))
    said = "\n".join(verdict.reasons)
    assert "it falls in a straight line" in said
    assert "grows" not in said


def card(index: int, **other: Any) -> tuple[GpuWindow, ...]:
    return tuple(replace(window, index=index) for window in windows(**other))


@pytest.mark.parametrize(("own", "found"), [(79.0, True), (95.0, False)])
def test_cards_that_others_leave_idle_are_not_the_servers(own: float, found: bool) -> None:
    """A server on one of eight cards: that no kernel ran on the seven others says nothing of its steps."""
    idle = [w for n in range(1, 8) for w in card(n, utilization=0.0, utilization_high=0.0)]
    points = ladder(lambda x: 80 + LEAST * x)
    used = card(0, utilization=own, utilization_high=100.0)
    assert ("launch_or_cpu_bound" in names(*points, *used, *idle)) is found


def test_where_no_card_works_the_steps_are_made_elsewhere() -> None:
    idle = [w for n in range(8) for w in card(n, utilization=0.0, utilization_high=0.0)]
    assert "launch_or_cpu_bound" not in names(*ladder(lambda x: 80 + LEAST * x), *idle)


def test_what_holds_an_idle_cards_clock_holds_no_step() -> None:
    hot = {"reasons": ("hw_thermal_slowdown",), "clocks": (1200.0,) * 6}
    points = ladder(lambda x: 12 + 2 * LEAST * x)
    idle = card(1, utilization=0.0, utilization_high=0.0, **hot)
    assert "gpu_state" not in names(*points, *card(0, utilization=98.0, utilization_high=100.0), *idle)
    assert "gpu_state" in names(*points, *card(0, utilization=98.0, utilization_high=100.0, **hot))


def test_requests_that_all_failed_are_no_measurement() -> None:
    failed = CommitRequest(
        key="q", purpose="step-time", arm="repeat", context_tokens=1024, prompt=0, error="refused"
    )
    (verdict,) = judged(failed)
    assert (verdict.name, verdict.kind) == ("inconclusive", "no_measurement")


def test_one_length_tells_no_growth() -> None:
    (verdict,) = judged(*ladder(lambda _: 12.0, contexts=(1024,)))
    assert verdict.kind == "times_only"
    assert "one length tells nothing of its growth" in verdict.reasons[0]
    assert "a second length (--contexts)" in verdict.missing


def test_beside_a_commit_probe_its_verdict_counts_too() -> None:
    """What the commit probe measured is judged by its rules; the slope comes from the ladder that was sent for it."""
    commits = ladder(lambda x: 12 + 0.001 * x, commit=1.0, purpose="point", contexts=(1024, 16384))
    found = names(
        setup(purpose="commit"), setup(), *commits, *ladder(lambda x: 12 + 0.001 * x, commit=1.0), STEADY
    )
    assert set(found) == {"attention_kernel_bottleneck", "drafter_dead"}


# --- the attention kernel -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "found"), [(5.001, True), (4.999, False)])
def test_five_times_the_roofline(times: float, found: bool) -> None:
    assert (
        "attention_kernel_bottleneck" in names(*ladder(lambda x: 12 + times * LEAST * x), STEADY)
    ) is found


def test_what_is_told_of_it() -> None:
    """10 µs a token: 114.5 times the roofline; at 131072 tokens 17.2 GB in 1322.7 ms are 13 GB/s, 0.87 % of 1501."""
    verdict = the("attention_kernel_bottleneck", *ladder(lambda x: 12 + 0.01 * x), STEADY)
    assert verdict.confidence == "medium"
    assert any("115 times as much, 0.9% of the roofline" in text for text in verdict.reasons)
    (reached,) = [text for text in verdict.reasons if "each GPU reads" in text]
    assert reached.startswith(
        "at 128k each GPU reads 17.2 GB of KV cache in a step of 1323 ms: 13 GB/s, 0.87% of 1500.93 GB/s"
    )


def test_a_law_that_is_flat_but_for_noise_is_none() -> None:
    """Medians between 9 and 13 ms without order: the sample shows no growth."""
    times = dict(zip(LADDER, (10.0, 12.6, 9.2, 12.9, 9.1, 12.8), strict=True))
    assert "attention_kernel_bottleneck" not in names(*ladder(lambda x: times[int(x)]), bandwidth=1e9)


@pytest.mark.parametrize(("fell", "found"), [(1.24, True), (1.26, False)])
def test_no_slope_counts_beside_a_clock_that_dropped(fell: float, found: bool) -> None:
    """The longest two lengths, and what was measured again, at the lower clock."""
    law: Law = lambda x: 12 + 0.01 * x  # noqa: E731
    late = {65536, 131072}
    points = ladder(lambda x: law(x) * (fell if x in late else 1.0))
    seen = windows([2400.0 if c not in late else 2400.0 / fell for c in LADDER])
    told = names(*points, *seen)
    assert ("attention_kernel_bottleneck" in told) is found
    assert "gpu_state" in told


def test_a_jump_between_two_levels_is_no_slope() -> None:
    points = ladder(lambda x: 12 + LEAST * x + (40 if x > 8192 else 0), spread=1e-3)
    assert names(*points, STEADY) == ["launch_or_cpu_bound"]


def test_a_curve_is_told_as_one_and_lowers_nothing_but_the_confidence() -> None:
    verdict = the("attention_kernel_bottleneck", *ladder(lambda x: 12 + 1e-3 * x + 1e-7 * x * x), STEADY)
    assert any("grows faster the longer the context" in text for text in verdict.reasons)
    assert verdict.confidence == "low"


def test_counters_that_see_memory_idle_are_told() -> None:
    points = ladder(lambda x: 12 + 0.01 * x)
    seen = windows(utilization=100.0, dram_active=0.012, sm_active=0.045)
    verdict = the("attention_kernel_bottleneck", *points, *seen, STEADY)
    assert any(
        "memory at work in 1.2% of the cycles at the most, 4% of the SMs (30 samples)" in t
        for t in verdict.reasons
    )
    busy = the("attention_kernel_bottleneck", *points, *windows(dram_active=0.1), STEADY)
    assert not any("counters" in text for text in busy.reasons)


PATH = VerifyPath(
    version="0.5.23", backend="triton", kernel="extend_attention_fwd", split_kv=False, told="sglang 0.5.23: serial (x.py:238)",
    source=(Cite("attention", "x.py:238"),),
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "values", "kind"),
    [
        (PATH, {"attention_backend": "triton"}, "serial_prefix"),
        (PATH, {"attention_backend": "flashinfer"}, ""),
        (PATH, {"attention_backend": "flashinfer", "prefill_attention_backend": "triton"}, "serial_prefix"),
        (PATH, {"attention_backend": "triton", "prefill_attention_backend": "flashinfer"}, ""),
        (PATH, {"prefill_attention_backend": "triton", "speculative_attention_mode": "decode"}, ""),
        (
            PATH,
            {"decode_attention_backend": "triton", "speculative_attention_mode": "decode"},
            "serial_prefix",
        ),
        (PATH, {}, ""),  # nobody says what a target without MLA verifies in
        (replace(PATH, split_kv=None), {"attention_backend": "triton"}, ""),
    ],
)
def test_the_installed_source_names_the_kernel(path: VerifyPath, values: dict[str, Any], kind: str) -> None:
    verdict = the(
        "attention_kernel_bottleneck", *ladder(lambda x: 12 + 0.01 * x), STEADY, path, *args(**values)
    )
    assert verdict.kind == kind
    assert (path.told in verdict.reasons) is bool(kind)
    assert (Cite("attention", "x.py:238") in verdict.cites) is bool(kind)


@pytest.mark.parametrize(
    ("card", "kind"), [("NVIDIA RTX PRO 6000 Blackwell Server Edition", "serial_prefix"), ("NVIDIA H200", "")]
)
def test_what_sglang_takes_by_itself_counts_where_it_is_triton(card: str, kind: str) -> None:
    """MLA and no backend named: triton on a workstation Blackwell, another elsewhere."""
    facts = (setup(), KIMI, *args(**DFLASH), GpuSample(index=0, name=card), PATH)
    (verdict,) = verdicts.judge((*facts, *ladder(lambda x: 8.5 + 0.0077 * x), STEADY), ())
    assert (verdict.kind, PATH.told in verdict.reasons) == (kind, bool(kind))


def test_the_bandwidth_is_that_of_the_memory_at_its_clock() -> None:
    """12481 of 14000 MHz: 1792 GB/s come to 1597.6; the card that was idle does not count."""
    card = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
    facts = (setup(), KIMI, *args(**DFLASH), *ladder(lambda x: 8.5 + 0.0077 * x), STEADY)
    seen = windows(name=card, utilization_high=100.0, memory_clock_mhz=12481.0, memory_clock_max_mhz=14000.0)
    idle = windows(name=card, utilization_high=0.0, memory_clock_mhz=405.0, memory_clock_max_mhz=14000.0)
    (verdict,) = verdicts.judge((*facts, *seen, *idle), ())
    assert any(
        "1597.57 GB/s, RTX PRO 6000 Blackwell by its data sheet and its memory's clock (89% of the highest)" in text
        for text in verdict.reasons
    )  # fmt: skip
    (given,) = verdicts.judge((*facts, *seen), (), 1792.0)
    assert any("1792 GB/s, the host's gpu_bandwidth" in text for text in given.reasons)


def test_thread_blocks_of_a_verify_step_on_triton() -> None:
    """64 heads over 8 GPUs, 8 queries in one tile of 32: 8 blocks for 188 SMs."""
    cards = tuple(GpuSample(index=i, name="NVIDIA RTX PRO 6000 Blackwell Server Edition") for i in range(8))
    facts = (setup(), KIMI, *args(**DFLASH), *cards, *ladder(lambda x: 8.5 + 0.0077 * x), STEADY)
    (verdict,) = verdicts.judge(facts, (SA01,))
    assert verdict.kind == "serial_prefix"
    assert any(
        text.startswith("Triton MLA verify on RTX PRO 6000 Blackwell (SM120): one request has 8 heads × 1 tile of 32 queries = 8")
        for text in verdict.reasons
    )  # fmt: skip
    assert any("1792 GB/s, RTX PRO 6000 Blackwell by its data sheet" in text for text in verdict.reasons)
    spread = (*facts[:2], *args(**DFLASH, enable_dp_attention=True), *facts[3:])
    (other,) = verdicts.judge(spread, (SA01,))
    assert not any("thread blocks" in text for text in other.reasons)


def test_another_kernel_is_another_than_the_one_that_verifies() -> None:
    facts = (setup(), DENSE, *ladder(lambda x: x))
    told = [
        levers.attention(Case((*facts, *args(**names))))[1]
        for names in ({"attention_backend": "flashinfer"}, {"attention_backend": "triton"}, {})
    ]
    assert told[0].startswith("verify in another kernel than flashinfer: another --attention-backend")
    assert all(text.startswith("verify in another kernel: a chain, no draft tree") for text in told[1:])


# --- what to do about it ------------------------------------------------------------------------------------


def test_the_levers_stand_in_their_order() -> None:
    cards = (GpuSample(index=0, name="NVIDIA RTX PRO 6000 Blackwell"),)
    found = levers.attention(Case((setup(), KIMI, *args(**DFLASH), *cards, *ladder(lambda x: x))))
    flags = (
        "--speculative-algorithm", "--attention-backend flashinfer", "--kv-cache-dtype fp8_e4m3", "--speculative-num-draft-tokens 4",
        "--dcp-size 8", "TRITON_MLA",
    )  # fmt: skip
    assert len(found) == len(flags)
    for said, flag in zip(found, flags, strict=True):
        assert flag in said
    assert all("undo" in said for said in found[:5])
    assert "than Triton MLA verify, which is serial on SM120" in found[1]
    assert "--decode-attention-backend flashinfer --speculative-attention-mode decode" in found[1]
    assert "RT05" in found[1]


def test_levers_for_other_targets_and_engines() -> None:
    dense = levers.attention(Case((setup(), DENSE, *ladder(lambda x: x))))
    assert len(dense) == 4
    assert not any("dcp" in said or "MLA" in said for said in dense)
    vllm = levers.attention(Case((setup(engine="vllm"), DENSE)))
    assert "--speculative-config" in vllm[0]
    assert "num_speculative_tokens in --speculative-config 3 (now 7)" in vllm[3]
    assert levers.attention(Case((setup(engine="llamacpp"), DENSE))) == ()


def test_a_block_of_three_cannot_be_halved() -> None:
    found = levers.attention(Case((setup(ceiling=3), DENSE)))
    assert not any("smaller block" in said for said in found)


def test_from_where_on_speculation_is_to_be_off() -> None:
    gain = SpeculationGain(arm="repeat", context_tokens=65536, plain_ms=1.0, break_even=9.0, gain_high=0.9)
    near = replace(gain, context_tokens=16384, gain_high=1.0)
    at = levers.attention(Case((setup(), DENSE, gain, near)))
    assert at[0].startswith("switch speculation off from 64k on:")
    idle = levers.attention(Case((setup(), DENSE, *ladder(lambda x: x, commit=1.0))))
    assert "gains nothing" in idle[0]


# --- launches and the CPU -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("constant", "found"), [(50.01, True), (49.99, False)])
def test_a_constant_part_of_five_times_the_weights(constant: float, found: bool) -> None:
    """The weights take 10 ms."""
    points = ladder(lambda x: constant + LEAST * x)
    assert ("launch_or_cpu_bound" in names(*points, findings=(SA09,))) is found


def test_a_constant_part_alone_does_not_say_what_is_waited_for() -> None:
    assert "launch_or_cpu_bound" not in names(*ladder(lambda x: 80 + LEAST * x))


@pytest.mark.parametrize(("utilization", "found"), [(79.9, True), (80.0, False), (100.0, False)])
def test_cards_without_a_kernel_for_a_fifth_of_the_time_wait(utilization: float, found: bool) -> None:
    points = ladder(lambda x: 80 + LEAST * x)
    assert ("launch_or_cpu_bound" in names(*points, *windows(utilization=utilization))) is found


def test_what_is_told_of_launches() -> None:
    verdict = the(
        "launch_or_cpu_bound", *ladder(lambda x: 80 + LEAST * x), *windows(utilization=40.0), findings=(SA09,)
    )
    assert (verdict.kind, verdict.confidence) == ("graphs_missing", "high")
    assert (
        "is 80 (95 % 80–80) ms (6 medians, 6 lengths); reading the weights of 8 tokens takes 10 ms"
        in verdict.reasons[0]
    )
    assert "SA09: --disable-cuda-graph is on" in verdict.reasons
    assert any("no kernel ran for 60% of the time" in text for text in verdict.reasons)
    assert "undo" in verdict.next[0]
    waiting = the("launch_or_cpu_bound", *ladder(lambda x: 80 + LEAST * x), *windows(utilization=40.0))
    assert (waiting.kind, waiting.confidence) == ("waiting", "medium")


@pytest.mark.parametrize(("share", "found"), [(0.26, True), (0.24, False)])
def test_a_jump_counts_from_a_quarter_of_a_step(share: float, found: bool) -> None:
    """At 4096 tokens, the last length before it, a step takes 12 ms."""
    points = ladder(lambda x: 12 + (12 * share if x > 8192 else 0), spread=1e-3)
    assert ("launch_or_cpu_bound" in names(*points)) is found


def test_a_log_that_loses_its_graphs_makes_a_jump_surer() -> None:
    points = ladder(lambda x: 12 + (12 if x > 8192 else 0), spread=1e-3)
    alone = the("launch_or_cpu_bound", *points)
    assert (alone.kind, alone.confidence) == ("beyond_a_length", "low")
    assert any("cuda graph: False" in text for text in alone.missing)
    eager = DecodeBin(8192, 32768, 1, 20, 7.9, None, None, None, None, graph_share=0.0)

    def beside(found: DecodeBin) -> str:
        log = DecodeSeries(engine="sglang", lines=20, bins=(found,))
        return the("launch_or_cpu_bound", *points, log).confidence

    assert beside(eager) == "medium"
    assert beside(replace(eager, low=0, high=4096)) == "low"
    assert beside(replace(eager, graph_share=1.0)) == "low"


# --- the machine --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("moved", "found"), [(1.11, True), (1.09, False)])
def test_a_tenth_more_at_the_end_is_another_machine(moved: float, found: bool) -> None:
    law: Law = lambda x: 12 + LEAST * x  # noqa: E731
    late = again(lambda x: moved * law(x), 1024, 32768, 131072)
    assert ("gpu_state" in names(*ladder(law), *late)) is found


def test_where_there_is_no_gpu_its_clocks_are_not_to_blame() -> None:
    none = Finding(id="gpu.none", outcome=Outcome.WARN, subject="gpu1", summary="no GPU")
    moved = (*ladder(lambda x: 12 + LEAST * x), *again(lambda x: 24 + 2 * LEAST * x, 1024, 32768, 131072))
    assert names(*moved) == ["gpu_state"]
    assert names(*moved, findings=(none,)) == ["inconclusive"]


def test_a_clock_that_fell_is_named_with_its_reasons() -> None:
    clocks = (2400.0, 2400.0, 2400.0, 2400.0, 1200.0, 1200.0)
    points = ladder(lambda x: 12 * (2 if x > 40_000 else 1))
    verdict = the("gpu_state", *points, *windows(clocks, reasons=("sw_thermal_slowdown",)))
    assert (verdict.kind, verdict.confidence) == ("clock_drop", "high")
    assert "took 2.00 times as long" in verdict.reasons[0]
    assert any("fell from 2400 to 1200 MHz (50%; 30 samples)" in text for text in verdict.reasons)
    assert any("does not grow with context" in text for text in verdict.reasons)
    assert verdict.next[0].startswith("check fans")


def test_a_power_limit_says_what_it_is() -> None:
    clocks = (2400.0, 2400.0, 2400.0, 2400.0, 1200.0, 1200.0)
    points = ladder(lambda x: 12 * (2 if x > 40_000 else 1))
    assert "-pl" in the("gpu_state", *points, *windows(clocks, reasons=("sw_power_cap",))).next[0]


@pytest.mark.parametrize(
    ("clock", "reasons", "found"),
    [
        (1200.0, ("hw_thermal_slowdown",), True),
        (0.949 * 2400, ("hw_slowdown",), True),
        (0.951 * 2400, ("hw_slowdown",), False),
        (1200.0, ("sw_power_cap",), False),
        (1200.0, ("gpu_idle",), False),
        (1200.0, None, False),
    ],
)
def test_clocks_held_down_all_the_time(clock: float, reasons: tuple[str, ...] | None, found: bool) -> None:
    """Nothing moves, so no step time shows it; a power limit under full load is ordinary."""
    told = judged(*ladder(lambda x: 12 + LEAST * x), *windows((clock,) * 6, reasons=reasons))
    assert [(v.name, v.kind) for v in told if v.name == "gpu_state"] == (
        [("gpu_state", "throttled")] if found else []
    )


# --- speculation's cost -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("plain", "found"), [(2.0, True), (2.1, False)])
def test_a_ladder_of_times_and_a_baseline_give_the_break_even(plain: float, found: bool) -> None:
    """A step of 16 ms that commits 7.9: without speculation a token may take 16 / 7.9 = 2.025 ms."""
    baseline = tuple((c, plain) for c in LADDER)
    assert ("spec_net_loss" in names(setup(baseline=baseline), *ladder(lambda _: 16.0))) is found


def test_from_which_length_on_it_loses() -> None:
    """Steps of 10 ms + 1 ms per 4k; a token takes 2 ms at any length: 15.8 ms is what 7.9 tokens may take, so 24k."""
    baseline = tuple((c, 2.0) for c in LADDER)
    verdict = the("spec_net_loss", setup(baseline=baseline), *ladder(lambda x: 10 + x / 4096))
    assert verdict.kind == "beyond_a_length"
    assert any("from 32k on it does not" in text for text in verdict.reasons)
    assert any("a step must commit 21.00 to pay" in text for text in verdict.reasons)
    assert "start without --speculative-algorithm" in verdict.next[1]


@pytest.mark.parametrize(("high", "confidence"), [(0.999, "medium"), (1.001, "low")])
def test_a_loss_is_sure_where_the_times_leave_no_doubt(high: float, confidence: str) -> None:
    """Of repeated text, a drafter's best case, medium is the most."""
    baseline = tuple((c, 2.0) for c in LADDER)
    gain = SpeculationGain(
        arm="repeat", context_tokens=1024, plain_ms=2.0, break_even=10.0, gain_low=0.5, gain_high=high
    )
    verdict = the("spec_net_loss", setup(baseline=baseline), *ladder(lambda _: 20.0), gain)
    assert verdict.confidence == confidence
    assert f"1.27 times slower at 1k (95 % {1 / high:.2f}–2.00)" in verdict.reasons[1]


# --- order and ledger ---------------------------------------------------------------------------------------


def test_what_explains_more_of_the_lost_speed_comes_first() -> None:
    """Steps grow by 2.6; a drafter that is dead loses 7.9 / 1."""
    slow = ladder(lambda x: 12 + 0.00015 * x, commit=1.0)
    near = ladder(lambda x: 12 + 0.00015 * x, commit=1.0, purpose="point", contexts=(1024, 16384))
    mild = names(setup(purpose="commit"), *near, *slow, STEADY, bandwidth=8000.0)
    assert mild == ["drafter_dead", "attention_kernel_bottleneck"]
    steep = ladder(lambda x: 12 + 0.01 * x, commit=1.0)
    assert names(setup(purpose="commit"), *near, *steep, STEADY)[0] == "attention_kernel_bottleneck"


def ledger(*facts: Fact, **other: Any) -> dict[str, tuple[str, str]]:
    every = (setup(), DENSE, *facts)
    found = verdicts.judge(every, other.get("findings", ()), BANDWIDTH)
    told = verdicts.ledger(every, other.get("findings", ()), found, BANDWIDTH)
    return {one.name: (one.status, one.evidence) for one in told}


def test_the_ledger_of_a_slow_kernel() -> None:
    found = ledger(*ladder(lambda x: 12 + 0.01 * x), STEADY)
    assert found["attention_kernel"][0] == "supported"
    assert found["cpu_or_launch_bound"][0] == "refuted"
    assert found["gpu_state"] == ("refuted", "the same at the end")


def test_the_ledger_of_a_flat_law() -> None:
    found = ledger(*ladder(lambda _: 12.0), STEADY)
    assert found["attention_kernel"] == (
        "refuted",
        "the step time is flat over 6 lengths up to 128k (6 medians)",
    )
    status, said = found["cpu_or_launch_bound"]
    assert status == "refuted"
    assert "12 ms (6 medians), and reading the weights takes 10 ms of that" in said


def test_the_weights_take_so_many_ms_of_the_constant_part_and_no_share_of_it() -> None:
    status, said = ledger(*ladder(lambda x: 11 + LEAST * x), STEADY)["cpu_or_launch_bound"]
    assert status == "refuted"
    assert said.endswith("is 11 ms (6 medians), and reading the weights takes 10 ms of that")


@pytest.mark.parametrize("drafted", [None, 0], ids=["no source", "counted none"])
@pytest.mark.parametrize("purpose", ["step-time", "point"])
def test_a_server_that_does_not_speculate_is_told_by_its_step_times_too(
    drafted: int | None, purpose: str
) -> None:
    points = ladder(lambda _: 12.0, commit=1.0, purpose=purpose)
    off = setup(speculating=False, drafter="", draft_tokens=None, ceiling=None)
    found = judged(off, *(replace(each, drafted_steps=drafted) for each in points), STEADY)
    assert [(one.name, one.kind, one.confidence) for one in found][:1] == [("not_speculating", "off", "high")]


def test_step_times_with_drafts_are_of_a_server_that_speculates() -> None:
    off = setup(speculating=False, drafter="")
    assert "not_speculating" not in [one.name for one in judged(off, *ladder(lambda _: 12.0), STEADY)]
    idle = [replace(p, purpose="point", drafted_steps=0) for p in ladder(lambda _: 12.0, commit=1.0)]
    assert "not_speculating" not in [one.name for one in judged(*idle, *ladder(lambda _: 12.0), STEADY)]


def test_the_ledger_of_a_clock_that_dropped() -> None:
    clocks = (2400.0, 2400.0, 2400.0, 2400.0, 1200.0, 1200.0)
    found = ledger(*ladder(lambda x: 12 * (2 if x > 40_000 else 1)), *windows(clocks))
    assert found["gpu_state"][0] == "supported"
    assert found["attention_kernel"][0] == "untested"
    assert found["cpu_or_launch_bound"][0] == "untested"


def test_the_ledger_of_missing_graphs() -> None:
    found = ledger(*ladder(lambda x: 80 + LEAST * x), findings=(SA09,))
    assert found["cpu_or_launch_bound"][0] == "supported"


# --- the founding numbers -----------------------------------------------------------------------------------

FOUNDING: dict[str, Any] = {
    "schema": "case-points/1", "max_commit_len": 8, "model": "Kimi-K2.6", "gpus": "8 x RTX PRO 6000", "engine": "sglang",
    "server_args": {"tp_size": 8, "speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": 8},
    "points": [
        {"text": "repeated", "ctx_tokens": 1400, "commit_len": 1.0, "step_ms": 8.0, "tok_s": 118},
        {"text": "repeated", "ctx_tokens": 185000, "commit_len": 1.0, "step_ms": 1430, "tok_s": 0.7},
    ],
}  # fmt: skip


def read(document: dict[str, Any]) -> tuple[Fact, ...]:
    reading = evidence.recognise(of_bytes("founding.json", json.dumps(document).encode()))
    return evidence.facts((reading,))


def analysed(document: dict[str, Any]) -> Verdict:
    facts = read(document)
    found = verdicts.judge_collected(facts, tuple(lints.judge(facts)))
    assert found[0].name == "attention_kernel_bottleneck"
    return found[0]


def test_the_founding_numbers_as_a_points_file() -> None:
    verdict = analysed(FOUNDING)
    said = "\n".join(verdict.reasons)
    assert "9.1 GB/s, 0.51% of 1792 GB/s (RTX PRO 6000 Blackwell)" in said
    assert "the slope is 198 times that of reading the KV cache (7.75 µs per token beside 0.0392)" in said
    assert "the line begins at -2.84 ms" in said
    assert "two lengths make a line whatever the law is" in said
    assert "Triton MLA verify on RTX PRO 6000 Blackwell (SM120)" in said
    assert "8 thread blocks for 188 SMs" in said
    assert (verdict.kind, verdict.confidence) == ("serial_prefix", "low")
    assert "than Triton MLA verify, which is serial on SM120" in verdict.next[1]
    assert not any("broken drafter" in text for text in verdict.ruled_out)


def test_with_its_backend_named_the_lint_speaks_too() -> None:
    named = {**FOUNDING["server_args"], "attention_backend": "triton", "context_length": 262144}
    verdict = analysed({**FOUNDING, "server_args": named})
    assert verdict.kind == "serial_prefix"
    assert any(
        text.startswith("SA01: verify runs on attention backend triton, MLA") for text in verdict.reasons
    )


def test_on_another_backend_nothing_is_said_of_triton() -> None:
    named = {**FOUNDING["server_args"], "attention_backend": "flashinfer"}
    verdict = analysed({**FOUNDING, "server_args": named})
    assert "Triton MLA" not in "\n".join((*verdict.reasons, *verdict.next))


def test_without_the_cards_the_slowest_is_taken() -> None:
    """At 864 GB/s 9.1 GB/s are 1.05 %, and the slope is 95 times the roofline."""
    verdict = analysed({k: v for k, v in FOUNDING.items() if k != "gpus"})
    said = "\n".join(verdict.reasons)
    assert "of the slowest card, for want of this one's: 1% of 864 GB/s" in said
    assert "95.2 times" in said


def test_points_alone_say_nothing_of_memory() -> None:
    verdict = analysed({k: FOUNDING[k] for k in ("schema", "max_commit_len", "points")})
    assert "GB/s" not in "\n".join(verdict.reasons)
    assert any("the target's config.json" in text for text in verdict.missing)


def test_where_points_were_measured_is_read_from_their_file() -> None:
    facts = read(
        {
            **FOUNDING,
            "gpus": ["NVIDIA H200", "NVIDIA H200"],
            "server_args": {"--tp-size": 2, "nested": {"a": 1}},
        }
    )
    assert [fact.name for fact in facts if isinstance(fact, GpuSample)] == ["NVIDIA H200"] * 2
    (given,) = [fact for fact in facts if isinstance(fact, ServerArgs)]
    assert given.values == (("tp_size", 2),)
    assert given.cut
    (target,) = [fact for fact in facts if isinstance(fact, ModelConfig)]
    assert (target.role, target.kv_lora_rank, target.num_hidden_layers) == ("target", 512, 61)
    assert "the file that is served was not read" in target.notes[0]


def test_a_configuration_in_the_file_counts_before_a_name() -> None:
    facts = read({**FOUNDING, "target_config": {"model_type": "llama", "num_hidden_layers": 2}, "gpus": 7})
    (target,) = [fact for fact in facts if isinstance(fact, ModelConfig)]
    assert target.num_hidden_layers == 2
    assert not any(isinstance(fact, GpuSample) for fact in facts)
    unknown = read({**FOUNDING, "model": "Kimi-K3"})
    assert not any(isinstance(fact, ModelConfig) for fact in unknown)
