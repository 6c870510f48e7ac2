"""Verdicts on step times of the lab, whose laws are known: what is to blame is blamed, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ddprobe import runner, verdicts
from ddprobe.facts import Achieved, Roofline, StepFit, VerifyPath
from ddprobe.lab import hosts
from ddprobe.lab.engine.decoding import Law
from ddprobe.lab.engine.heat import Heat
from ddprobe.lab.machine import Machine
from ddprobe.model import Step, StepRecord
from ddprobe.probes.source.attention import SourceAttention
from tests.lab_session import LabSession
from tests.silent import SilentWriter
from tests.test_step_time import PACE, coarse, every, measured, qwen, shown

__all__ = ["coarse"]


def told(record: StepRecord) -> list[tuple[str, str]]:
    """Names and kinds of the verdicts on what the step knows."""
    return [(v.name, v.kind) for v in verdicts.judge(record.facts, ())]


FLAT = Law.of(10.0, noise=0.02)
STEEP = Law.of(10.0, 0.02, noise=0.02)
"""4 µs a token on the lab's clock, beside 0.0088 µs for 147456 bytes at 16750 GB/s."""
MILD = Law.of(10.0, 1.5e-4, noise=0.02)
"""0.03 µs a token: 3.4 times what memory takes."""
ALONE = [("inconclusive", "times_only")]


@pytest.mark.parametrize(
    ("machine", "right"),
    [
        pytest.param(lambda: qwen(FLAT), ALONE, id="flat"),
        pytest.param(lambda: qwen(MILD), ALONE, id="as memory allows"),
        pytest.param(lambda: qwen(STEEP), [("attention_kernel_bottleneck", "")], id="steep"),
        pytest.param(lambda: qwen(FLAT, heat=Heat(after=0.6)), [("gpu_state", "clock_drop")], id="flat, and the clock drops"),
        pytest.param(lambda: qwen(MILD, heat=Heat(after=0.6)), [("gpu_state", "clock_drop")], id="the clock drops"),
        pytest.param(
            lambda: qwen(Law.of(10.0, 5e-5, knee_at=8000, knee_ms=30.0, noise=0.02)),
            [("launch_or_cpu_bound", "beyond_a_length")],
            id="a knee",
        ),
        pytest.param(hosts.hot_gpus, [("gpu_state", "clock_drop")], id="the scenario of hot GPUs"),
        pytest.param(hosts.healthy, ALONE, id="the scenario where nothing is wrong"),
    ],
)  # fmt: skip
def test_what_is_to_blame_is_blamed(machine: object, right: list[tuple[str, str]]) -> None:
    assert callable(machine)
    built = machine()
    assert isinstance(built, Machine)
    record = measured(built)
    assert record.reasons == ()
    assert told(record) == right


def test_the_step_states_the_roofline_and_how_near_it_comes() -> None:
    """36 layers · 8 heads · 128 · 2 · 2 bytes; an H100's 3350 GB/s on a clock that runs five times as fast are 16750."""
    record = measured(qwen(STEEP))
    (law,), (line,), (reached,) = (every(record, kind) for kind in (StepFit, Roofline, Achieved))
    assert line.kv_bytes_per_token == 147456
    assert line.bandwidth == 3350 / PACE
    assert line.known
    assert law.form == "linear"
    assert law.b.value == pytest.approx(0.02 * PACE, rel=0.02)
    assert reached.slope_ratio is not None
    assert reached.slope_ratio.value == pytest.approx(0.02 * PACE / (147456 / 16750 * 1e-6), rel=0.02)
    screen = shown(record)
    assert "times that of reading the KV cache" in screen
    assert "16750 GB/s" in screen


def source_of(machine: Machine) -> StepRecord:
    """What the installed source of that host says of the verify step."""
    session = LabSession(machine)
    step = Step("attention", SourceAttention())
    held = runner.collect(step, session.host, session, SilentWriter(), lambda *_: None)
    record, _ = runner.judge(step, held.evidence, held.broken, lambda _host, _step, key: key)
    assert record.reasons == ()
    return record


@pytest.mark.parametrize(
    ("build", "first"),
    [
        (hosts.founding_story, ("metric_inconsistency", "commit_path")),
        (hosts.slow_attention, ("attention_kernel_bottleneck", "serial_prefix")),
    ],
)
def test_the_scenarios_whose_verify_step_is_serial(
    build: Callable[[], Machine], first: tuple[str, str]
) -> None:
    """7.7 µs a token beside 0.039: in the founding story what cannot be trusted comes first, and this behind it."""
    machine = build()
    facts = (*measured(machine, contexts="1k,2k,4k,8k,16k").facts, *source_of(machine).facts)
    found = verdicts.judge(facts, ())
    assert (found[0].name, found[0].kind) == first
    slow = found[-1]
    assert (slow.name, slow.kind, slow.confidence) == (
        "attention_kernel_bottleneck",
        "serial_prefix",
        "medium",
    )
    assert any("0.5% of the roofline" in text for text in slow.reasons)
    assert any(
        "8 heads × 1 tile of 32 queries = 8 thread blocks for 188 SMs" in text for text in slow.reasons
    )
    assert "than Triton MLA verify, which is serial on SM120" in slow.next[1]
    ledger = {one.name: one.status for one in verdicts.ledger(facts, (), found)}
    assert ledger["attention_kernel"] == "supported"


def test_the_labs_tree_is_read_as_the_engines_is() -> None:
    (path,) = every(source_of(hosts.founding_story()), VerifyPath)
    assert (path.backend, path.kernel, path.split_kv) == ("triton", "extend_attention_fwd", False)
    assert "split-KV verify is for AMD gfx95 only, and for a chain (topk 1)" in path.told
    attention = "srt/layers/attention"
    assert [cite.at for cite in path.source] == [
        f"{attention}/triton_backend.py:13",
        f"{attention}/triton_backend.py:32",
        f"{attention}/triton_ops/extend_attention.py:14",
    ]
