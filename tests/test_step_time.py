"""Step times by context on the lab, whose laws are known; the plan, the second server, and what is shown."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ddprobe import runner, statistics
from ddprobe.facts import (
    Achieved,
    CommitCheck,
    CommitPoint,
    CommitRequest,
    CommitSetup,
    Estimate,
    GpuWindow,
    Roofline,
    SpeculationGain,
    StepFit,
)
from ddprobe.lab import hosts
from ddprobe.lab.engine.decoding import Law
from ddprobe.lab.engine.heat import Heat
from ddprobe.lab.engine.wiring import Parts
from ddprobe.lab.machine import Machine
from ddprobe.model import Fact, Result, Step, StepRecord
from ddprobe.probes.draft import _commit_plan as plan
from ddprobe.probes.draft.step_time import DraftStepTime
from ddprobe.redact import Redactor
from tests.lab_session import LabSession
from tests.silent import SilentWriter
from tests.test_recordings import text

PACE = 0.2
"""Of the lab's Qwen host: its times are the law's times this."""
CONTEXTS = (1024, 2048, 4096, 8192, 16384, 32768)
LADDER = ",".join(map(str, CONTEXTS))


class AsItCame(Redactor):
    """The lab has no secrets but its own."""

    def result(self, result: Result) -> Result:
        return result


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals from an eighth of the resamples: those of the commit are tested elsewhere."""
    monkeypatch.setattr(statistics, "bootstrap", functools.partial(statistics.bootstrap, resamples=250))


def qwen(law: Law, *, heat: Heat | None = None, plain: bool = False) -> Machine:
    return hosts._qwen("lab-gpu02", Parts(law=law, heat=heat), given=hosts._NO_SPECULATION if plain else None)


def side_by_side(law: Law, without: Law) -> Machine:
    """One host with two servers: at port 31000 the one without speculation."""
    first, second = qwen(law), qwen(without, plain=True)
    return replace(first, servers={30000: first.servers[30000], 31000: second.servers[30000]})


def measured(machine: Machine, **settings: Any) -> StepRecord:
    session = LabSession(machine)
    session.redactor = AsItCame()
    step = Step("time", DraftStepTime(**{"contexts": LADDER, "seed": 3, **settings}))
    held = runner.collect(step, session.host, session, SilentWriter(), lambda *_: None)
    record, _ = runner.judge(step, held.evidence, held.broken, lambda _host, _step, key: key)
    return record


def of(record: StepRecord, purpose: str) -> tuple[CommitPoint, ...]:
    found = [f for f in record.facts if isinstance(f, CommitPoint) and f.purpose == purpose]
    return tuple(sorted(found, key=lambda point: point.context_tokens))


def every(record: StepRecord, kind: type[Fact]) -> list[Any]:
    return [fact for fact in record.facts if isinstance(fact, kind)]


def shown(record: StepRecord) -> str:
    return "\n".join(text(block) for block in DraftStepTime().show(record.facts))


# --- the points --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "ms"),
    [
        (Law.of(10.0, 0.002, noise=0.0), lambda n: 10 + 0.002 * n),
        (Law.of(10.0, 0.002, 1e-7, noise=0.0), lambda n: 10 + 0.002 * n + 1e-7 * n * n),
        (Law.of(10.0, noise=0.0), lambda _: 10.0),
        (
            Law.of(10.0, 0.002, knee_at=8000, knee_ms=30.0, noise=0.0),
            lambda n: 10 + 0.002 * n + (30 if n >= 8000 else 0),
        ),
    ],
    ids=["linear", "quadratic", "flat", "knee"],
)
def test_a_step_takes_what_the_law_says_at_the_length_that_was_timed(
    law: Law, ms: Callable[[float], float]
) -> None:
    record = measured(qwen(law))
    assert record.reasons == ()
    points = of(record, "step-time")
    assert tuple(point.context_tokens for point in points) == CONTEXTS
    for point in points:
        assert point.timed_context is not None
        assert point.context_tokens < point.timed_context < point.context_tokens + 600
        assert point.step_ms == pytest.approx(PACE * ms(point.timed_context), rel=0.01)
        assert point.timed_steps >= 64
        assert point.base == "http://127.0.0.1:30000"


def test_the_interval_of_the_median_holds_the_law_where_steps_scatter() -> None:
    """12 medians at 95 %: each miss has 1 chance in 20, three or more among 12 have 1 in 50."""
    held = 0
    for seed in (1, 2):
        law = Law.of(10.0, 0.0, noise=0.05, seed=seed)
        for point in of(measured(qwen(law), seed=seed), "step-time"):
            assert point.step_ms is not None
            assert point.step_ms_from is not None
            assert point.step_ms_to is not None
            assert point.step_ms_from < point.step_ms < point.step_ms_to
            # The textbook's width of a median over n normal values: 2 · 1.96 · 1.2533 · σ / √n.
            textbook = 2 * 1.96 * 1.2533 * (0.05 * 10 * PACE) / point.timed_steps**0.5
            assert point.step_ms_to - point.step_ms_from < 2 * textbook
            held += point.step_ms_from <= 10 * PACE <= point.step_ms_to
    assert held >= 10


def test_the_prompt_of_every_length_is_computed_whole_once() -> None:
    record = measured(qwen(Law.of(10.0, 0.002, prefill=25e-6)))
    for point in of(record, "step-time"):
        assert point.prefill_tokens is not None
        assert point.prefill_tokens >= point.context_tokens - 64
        # A token takes 25 µs beside the step's own 10 ms, and the lab's clock runs five times as fast.
        ms = PACE * (10 + 0.025 * point.context_tokens)
        assert point.first_token_ms == pytest.approx(ms, rel=0.03)
        assert point.prefill_tok_s == pytest.approx(point.context_tokens / ms * 1000, rel=0.03)
    sent = [request for request in every(record, CommitRequest) if request.purpose == "step-time"]
    again = [request for request in every(record, CommitRequest) if request.purpose == "step-time again"]
    assert {request.context_tokens for request in again} == {1024, 8192, 32768}
    assert all(request.prompt_tokens - request.cached_tokens <= 1 for request in again)
    assert len(sent) == 2 * len(CONTEXTS)


def test_commit_is_comparable_over_all_lengths() -> None:
    for point in of(measured(qwen(Law.of(10.0, 0.002))), "step-time"):
        assert point.arm == "repeat"
        assert point.commit_mean is not None
        assert point.commit_mean > 10


def test_a_clock_that_fell_in_mid_run_is_seen_by_what_is_measured_twice() -> None:
    record = measured(qwen(Law.of(10.0, 0.0, noise=0.0), heat=Heat(after=1.0, floor_mhz=1215.0)))
    told = every(record, CommitCheck)
    first, again = of(record, "step-time"), of(record, "step-time again")
    assert [point.context_tokens for point in again] == [1024, 8192, 32768]
    assert first[0].step_ms == pytest.approx(2.0, rel=0.01)
    assert all(point.step_ms == pytest.approx(4.0, rel=0.01) for point in again)
    assert told[-1].agrees is False
    assert "drifted" in told[-1].text
    assert "✗ step time once more at the end" in shown(record)


def test_without_a_fallen_clock_nothing_drifts() -> None:
    told = every(measured(qwen(Law.of(10.0, 0.002))), CommitCheck)
    assert [check.agrees for check in told if check.name == "step-time-again"] == [True, True, True]


# --- the contexts ------------------------------------------------------------------------------------------


def room(**limits: Any) -> plan.Room:
    return plan.Room(
        **{"context_limit": None, "kv_tokens": None, "max_context": None, "output": 500, "draft": 7, **limits}
    )


@pytest.mark.parametrize(
    ("limits", "contexts"),
    [
        ({"max_context": 131072}, (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)),
        ({"max_context": 32768}, (1024, 2048, 4096, 8192, 16384, 32768)),
        ({"max_context": 1048576}, (1024, 2816, 7424, 20480, 54272, 144384, 389120, 1048576)),
        ({}, (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)),
        ({"context_limit": 4096}, (111, 224, 448, 896, 1792, 3581)),
        ({"max_context": 64}, (64,)),
    ],
)
def test_lengths_lie_the_same_factor_apart(limits: dict[str, int], contexts: tuple[int, ...]) -> None:
    assert plan.spaced(room(**limits)) == contexts


def test_without_contexts_the_ladder_reaches_as_far_as_allowed() -> None:
    points = of(measured(qwen(Law.of(10.0, 0.002)), contexts="", max_context="32768"), "step-time")
    assert tuple(point.context_tokens for point in points) == CONTEXTS


# --- the plan, and the busy server -------------------------------------------------------------------------


def test_a_plan_says_what_it_costs_and_sends_nothing() -> None:
    record = measured(qwen(Law.of(10.0, 0.002)), plan=True)
    assert every(record, CommitRequest) == []
    (setup,) = every(record, CommitSetup)
    assert (setup.purpose, setup.planned_only, setup.steps_asked) == ("step-time", True, 64)
    planned = {point.context_tokens: point for point in setup.points if point.arm == "repeat"}
    assert tuple(sorted(planned)) == CONTEXTS
    for context, point in planned.items():
        # Two prompts of that length; the second shares all but the end of its beginning.
        assert (point.prompts, point.prompt_tokens) == (2, pytest.approx(2 * context, abs=64))
        assert context - 64 <= point.prefill_tokens <= context + 64
    assert "Nothing of it was sent." in shown(record)


def test_no_more_is_sent_than_was_planned() -> None:
    record = measured(qwen(Law.of(10.0, 0.002)))
    (setup,) = every(record, CommitSetup)
    sent = every(record, CommitRequest)
    assert len(sent) <= sum(point.prompts for point in setup.points)
    assert sum(request.output_tokens for request in sent) <= sum(
        point.output_tokens for point in setup.points
    )
    computed = sum(request.prompt_tokens - request.cached_tokens for request in sent)
    assert computed <= sum(point.prefill_tokens for point in setup.points)


# --- with and without speculation --------------------------------------------------------------------------


def test_a_second_server_tells_what_speculation_must_commit_to_pay() -> None:
    machine = side_by_side(Law.of(20.0, 0.004, noise=0.0), Law.of(5.0, 0.0001, noise=0.0))
    record = measured(machine, plain_url="http://127.0.0.1:31000")
    assert record.reasons == ()
    setup, plain = every(record, CommitSetup)
    assert (setup.purpose, setup.base, setup.speculating) == ("step-time", "http://127.0.0.1:30000", True)
    assert (plain.purpose, plain.base, plain.speculating) == ("plain", "http://127.0.0.1:31000", False)
    points = of(record, "plain")
    assert tuple(point.context_tokens for point in points) == CONTEXTS
    base = dict(setup.baseline)
    for point in points:
        assert point.base == "http://127.0.0.1:31000"
        assert point.commit_mean == 1.0
        assert point.timed_context is not None
        assert point.step_ms == pytest.approx(PACE * (5 + 0.0001 * point.timed_context), rel=0.01)
        assert base[point.context_tokens] == point.step_ms
    longest = of(record, "step-time")[-1]
    assert longest.step_ms is not None
    need = longest.step_ms / base[32768]
    assert need == pytest.approx((20 + 0.004 * 32768) / (5 + 0.0001 * 32768), rel=0.02)
    assert f"{need:.2f}" in shown(record)
    assert "Without speculation" in shown(record)


def test_every_answer_of_either_server_is_cited_by_its_own_key() -> None:
    machine = side_by_side(Law.of(10.0, 0.002), Law.of(5.0, 0.0001))
    record = measured(machine, contexts="1k,2k", plain_url="http://127.0.0.1:31000")
    for request in every(record, CommitRequest):
        assert request.key.startswith("plain-") == (request.purpose == "plain" or "plain" in request.key)
        assert [cite.artefact for cite in request.source] == [request.key]
    assert len({request.key for request in every(record, CommitRequest)}) == len(every(record, CommitRequest))


def test_a_second_server_that_speculates_says_nothing() -> None:
    first, second = qwen(Law.of(10.0)), qwen(Law.of(5.0))
    machine = replace(first, servers={30000: first.servers[30000], 31000: second.servers[30000]})
    record = measured(machine, contexts="1k,2k", plain_url="http://127.0.0.1:31000")
    assert of(record, "plain") == ()
    assert len(of(record, "step-time")) == 2
    assert ["speculates too" in reason for reason in record.reasons] == [True]


def test_a_second_server_that_is_not_there_costs_only_the_comparison() -> None:
    record = measured(qwen(Law.of(10.0)), contexts="1k,2k", plain_url="http://127.0.0.1:31000")
    assert len(of(record, "step-time")) == 2
    assert len(record.reasons) == 1
    assert "31000" in record.reasons[0]


def test_a_server_without_speculation_is_measured_alone() -> None:
    record = measured(qwen(Law.of(5.0, 0.0001, noise=0.0), plain=True), contexts="1k,2k")
    assert [point.commit_mean for point in of(record, "step-time")] == [1.0, 1.0]
    assert "commit\ntokens" not in shown(record)


# --- the GPUs meanwhile ------------------------------------------------------------------------------------


def point(context: int, ms: float, **more: Any) -> CommitPoint:
    return CommitPoint(
        **{
            "arm": "repeat", "context_tokens": context, "purpose": "step-time", "base": "http://127.0.0.1:30000",
            "requests": 2, "steps": 68, "commit_mean": 7.5, "step_ms": ms, "step_ms_low": ms * 0.9, "step_ms_high": ms * 1.1,
            "step_ms_from": ms * 0.97, "step_ms_to": ms * 1.03, "timed_steps": 64, "timed_context": context + 250.0, **more,
        }
    )  # fmt: skip


def window(context: int, index: int, **more: Any) -> GpuWindow:
    return GpuWindow(
        **{
            "index": index, "base": "http://127.0.0.1:30000", "purpose": "step-time", "arm": "repeat",
            "context_tokens": context, "samples": 9, "sm_clock_mhz": 2430.0, "sm_clock_max_mhz": 2600.0, "power_w": 210.0,
            "utilization": 100.0, "offset_seconds": 0.31, "offset_uncertainty_seconds": 0.02, **more,
        }
    )  # fmt: skip


def shows(*facts: Fact) -> str:
    return "\n".join(text(block) for block in DraftStepTime().show(facts))


def test_each_length_shows_what_the_cards_did_meanwhile() -> None:
    told = shows(
        point(1024, 8.0), point(4096, 9.0), window(1024, 0), window(1024, 1, sm_clock_mhz=2400.0, power_w=190.0)
    )  # fmt: skip
    assert "1k | 2 | 9 | 2400–2430 | 2600 | 190–210 | 100 %" in told
    assert "says nothing of how much of the GPU it used" in told
    assert "The host's clock is +0.31 s from this laptop's, give or take 0.02 s." in told


def test_why_clocks_were_held_is_said_with_the_lengths() -> None:
    hot = window(4096, 0, sm_clock_mhz=1215.0, clock_reasons=("sw_thermal_slowdown", "gpu_idle"))
    told = shows(point(1024, 8.0), point(4096, 16.0), window(1024, 0, clock_reasons=("gpu_idle",)), hot)
    assert "Clocks were held by sw_thermal_slowdown at 4k." in told
    assert "held by gpu_idle" not in told


@pytest.mark.parametrize(
    "other",
    [{"base": "http://127.0.0.1:31000"}, {"purpose": "plain"}, {"context_tokens": 2048}, {"samples": 0}],
)
def test_what_the_cards_did_at_another_time_is_not_shown(other: dict[str, Any]) -> None:
    assert "GPUs meanwhile" not in shows(point(1024, 8.0), window(1024, 0, **other))


def test_without_a_tool_the_step_times_stand_alone() -> None:
    told = shows(point(1024, 8.0), point(4096, 9.0))
    assert "1k | 8.00 | 7.76–8.24 | 64" in told
    assert "GPUs meanwhile" not in told


# --- whether speculation pays ------------------------------------------------------------------------------


def gain(context: int, gained: float) -> SpeculationGain:
    return SpeculationGain(
        arm="repeat", context_tokens=context, plain_ms=2.0, break_even=7.5 / gained, commit_mean=7.5, gain=gained,
        gain_low=gained * 0.95, gain_high=gained * 1.05,
    )  # fmt: skip


def test_from_where_speculation_loses_is_said_with_both_numbers() -> None:
    told = shows(point(1024, 8.0), point(4096, 30.0), gain(1024, 1.875), gain(4096, 0.5))
    assert "From 4k on speculation costs more than it gives: it takes 15.00 tokens a step and" in told
    assert "7.50 are committed there" in told
    assert "1k | 8.00 | 7.76–8.24 | 64 | – | – | 7.50 | – | 4.00 | 1.88×" in told


def test_that_it_pays_everywhere_is_said_of_this_text() -> None:
    told = shows(point(1024, 8.0), point(4096, 9.0), gain(1024, 1.9), gain(4096, 1.7))
    assert "Speculation pays at every length measured, least at 4k (1.70×)" in told


def test_where_it_cannot_be_told_nothing_is_said() -> None:
    told = shows(point(1024, 8.0), point(4096, 9.0), gain(1024, 1.9), gain(4096, 1.01))
    assert "Speculation pays" not in told
    assert "costs more than it gives" not in told


# --- the law -----------------------------------------------------------------------------------------------


def law_of(record: StepRecord, purpose: str = "step-time") -> StepFit:
    (found,) = [fact for fact in record.facts if isinstance(fact, StepFit) and fact.purpose == purpose]
    return found


@pytest.mark.parametrize(
    ("law", "form", "a", "b"),
    [
        (Law.of(10.0, 0.002, noise=0.02), "linear", 10.0, 0.002),
        (Law.of(10.0, noise=0.02), "flat", 10.0, 0.0),
        (Law.of(10.0, 0.002, 1e-6, noise=0.02), "quadratic", 10.0, 0.002),
        (Law.of(10.0, 0.001, knee_at=6000, knee_ms=40.0, noise=0.02), "knee", 10.0, 0.001),
    ],
    ids=["linear", "flat", "quadratic", "knee"],
)
def test_the_law_comes_back_out_of_the_stream(law: Law, form: str, a: float, b: float) -> None:
    """Of one seed; that intervals hold in 95 of 100 is shown where laws are fitted."""
    fit = law_of(measured(qwen(law)))
    assert (fit.form, fit.base, fit.weighted) == (form, "http://127.0.0.1:30000", True)
    assert (len(fit.contexts), fit.points) == (6, 9)
    assert fit.steps >= 9 * 64
    assert fit.at(4096) == pytest.approx(PACE * 1000 * law.exact(4096), rel=0.02)
    assert fit.at(32768) == pytest.approx(PACE * 1000 * law.exact(32768), rel=0.02)
    assert fit.a.value == pytest.approx(PACE * a, rel=0.05)
    if b:
        assert fit.b.value == pytest.approx(PACE * b, rel=0.15)


def test_a_fallen_clock_is_no_growth() -> None:
    record = measured(qwen(Law.of(10.0, noise=0.01), heat=Heat(after=1.0, floor_mhz=1215.0)))
    fit = law_of(record)
    assert fit.form == "flat"
    assert fit.shift is not None
    assert fit.shift.value == pytest.approx(2.0, rel=0.02)
    assert "times as long later in the run" in fit.remark("shift")
    assert "later in the run" in shown(record)


def test_both_servers_have_a_law_and_the_screen_tells_them_apart() -> None:
    machine = side_by_side(Law.of(20.0, 0.004, noise=0.0), Law.of(5.0, 0.0005, noise=0.0))
    record = measured(machine, plain_url="http://127.0.0.1:31000")
    assert law_of(record).b.value == pytest.approx(PACE * 0.004, rel=0.02)
    assert law_of(record, "plain").b.value == pytest.approx(PACE * 0.0005, rel=0.02)
    assert "Law of the step time\n" in shown(record)
    assert "Law of the step time, without speculation\n" in shown(record)


def fitted(**more: Any) -> StepFit:
    return StepFit(
        **{
            "arm": "repeat", "base": "http://127.0.0.1:30000", "form": "linear", "a": Estimate(8.03, 7.9, 8.2),
            "b": Estimate(0.0077, 0.0076, 0.0078), "points": 4, "steps": 256, "contexts": (1024.0, 4096.0, 16384.0),
            "step_ms": (16.0, 40.0, 134.0), "exponents": (0.66, 0.88), **more,
        }
    )  # fmt: skip


def test_the_law_is_told_with_its_intervals_and_what_qualifies_it() -> None:
    told = shows(
        point(1024, 16.0), point(4096, 40.0), fitted(remarks=(("few_contexts", "3 lengths do not tell"),))
    )
    assert "a: 8.03 [7.9, 8.2] ms" in told
    assert "b: 7.7 [7.6, 7.8] ms per 1000 tokens" in told
    assert "0.66, 0.88 (0 flat, 1 proportional)" in told
    assert "4 medians of 256 steps at 3 lengths" in told
    assert "3 lengths do not tell." in told
    assert "law" in told.splitlines()


def test_what_memory_allows_is_told_beside_what_is_reached() -> None:
    roofline = Roofline(
        base="http://127.0.0.1:30000", kv_bytes_per_token=70272.0, bandwidth=1792.0, bandwidth_source="data sheet",
        gpu="RTX PRO 6000", assumptions=("MLA's latent is held by every rank.",),
    )  # fmt: skip
    reached = Achieved(
        context=131072.0, step_ms=1011.0, kv_bytes=9.21e9, gb_s=9.11, share=0.00508, slope_ratio=Estimate(196.0, 194.0, 198.0)
    )  # fmt: skip
    told = shows(point(1024, 16.0), point(131072, 1011.0), fitted(), roofline, reached)
    assert "bandwidth: 1792 GB/s, RTX PRO 6000 (data sheet)" in told
    assert "KV cache: 70272 bytes per token: 0.0392 ms per 1000 tokens" in told
    assert "achieved: 9.11 GB/s of KV cache at 128k, 0.51 % of the bandwidth" in told
    assert "slope: 196 [194, 198] times that of reading the KV cache" in told
    assert "MLA's latent is held by every rank." in told
    assert "memory bandwidth" in told.splitlines()
