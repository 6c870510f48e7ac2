"""Prometheus text, nvidia-smi and prose: what is taken from them, and what is not."""

from __future__ import annotations

import pytest

from ddprobe.evidence import claims, counters, gpu
from ddprobe.evidence.document import Found, of_bytes
from ddprobe.facts import Acceptance, Claim, GpuSample

VLLM = """# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 68.0
vllm:spec_decode_num_drafts_created{engine="0",model_name="m"} 1.79e+09
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 340.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 204.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 68.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"} 68.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="2"} 68.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="3"} 0.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="4"} 0.0
"""


def read(text: str) -> Found | None:
    return counters.recognise(of_bytes("m", text.encode()), text)


def figure(text: str) -> Acceptance:
    found = read(text)
    assert found is not None
    (stated,) = (fact for fact in found.facts if isinstance(fact, Acceptance))
    return stated


def test_vllm_lifetime() -> None:
    stated = figure(VLLM)
    assert (stated.commit, stated.rate, stated.draft_tokens, stated.steps) == (4.0, 0.6, 5, 68)
    assert stated.per_position == (1.0, 1.0, 1.0, 0.0, 0.0)
    assert stated.window == "lifetime"


def test_engines_of_one_server_are_added() -> None:
    second = VLLM.replace('engine="0"', 'engine="1"')
    assert figure(VLLM + second).steps == 136


def test_two_scrapes_are_a_difference() -> None:
    later = (
        VLLM.replace("} 68.0", "} 78.0")
        .replace("} 340.0", "} 390.0")
        .replace("} 204.0", "} 214.0")
        .replace('position="1"} 78.0', 'position="1"} 68.0')
        .replace('position="2"} 78.0', 'position="2"} 68.0')
    )
    stated = figure(VLLM + later)
    # 10 steps more, 50 drafted more, 10 accepted more, all of them first drafts
    assert (stated.commit, stated.rate, stated.steps, stated.window) == (2.0, 0.2, 10, "between two scrapes")
    assert stated.per_position == (1.0, 0.0, 0.0, 0.0, 0.0)


def test_a_restart_between_two_scrapes_is_no_difference() -> None:
    stated = figure(VLLM.replace("} 204.0", "} 900.0") + VLLM)
    assert (stated.commit, stated.window) == (4.0, "lifetime")


def test_tokens_without_any_series_is_no_speculation() -> None:
    stated = figure('vllm:generation_tokens_total{engine="0"} 51200.0\n')
    assert (stated.steps, stated.commit, stated.rate) == (0, None, None)


def test_a_server_that_served_nobody_says_nothing() -> None:
    found = read('vllm:generation_tokens_total{engine="0"} 0.0\n')
    assert found is not None
    assert found.facts == ()


def test_no_draft_is_no_commit_of_one() -> None:
    zero = "\n".join(
        f"llamacpp:spec_decode_num_{name}_total 0" for name in ("drafts", "draft_tokens", "accepted_tokens")
    )
    stated = figure(f"{zero}\nllamacpp:tokens_predicted_total 640\n")
    assert (stated.steps, stated.commit) == (0, None)


def test_sglang_tokens_over_steps_without_the_prefills() -> None:
    """Recorded: 303 tokens of 23 requests in 147 verify steps: (303 - 23) / 147."""
    text = """sglang:spec_verify_calls_total{model_name="t"} 147.0
sglang:num_requests_total{is_streaming="false"} 20.0
sglang:num_requests_total{is_streaming="true"} 3.0
sglang:generation_tokens_total{is_streaming="false"} 239.0
sglang:generation_tokens_total{is_streaming="true"} 64.0
sglang:spec_num_draft_tokens{tp_rank="0"} 4.0
sglang:spec_accept_length{tp_rank="0"} 1.0
"""
    stated = figure(text)
    assert stated.commit == pytest.approx(280 / 147)
    assert (stated.draft_tokens, stated.steps) == (3, 147)
    found = read(text)
    assert found is not None
    gauges = [fact for fact in found.facts if isinstance(fact, Claim)]
    assert [(c.what, c.value, c.window) for c in gauges] == [("accept length", 1.0, "last log window")]


def test_sglang_without_the_number_of_requests_is_unknown() -> None:
    text = "sglang:spec_verify_calls_total 147.0\nsglang:generation_tokens_total 303.0\n"
    assert (figure(text).commit, figure(text).steps) == (None, 147)


def test_sglang_that_does_not_speculate() -> None:
    text = "sglang:spec_num_draft_tokens 0.0\nsglang:spec_accept_length 0.0\nsglang:generation_tokens_total 900.0\n"
    assert figure(text).steps == 0


@pytest.mark.parametrize(
    "text", ["", "{}", "process_cpu_seconds_total 3\n", "see vllm:spec_decode for details"]
)
def test_other_text_is_none_of_it(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1e300", "x"])
def test_values_one_cannot_count_with(value: str) -> None:
    found = read(f"vllm:spec_decode_num_drafts_total {value}\nvllm:generation_tokens_total 1.0\n")
    assert found is not None
    assert all(not isinstance(f, Acceptance) or f.commit is None for f in found.facts)


# --- nvidia-smi --------------------------------------------------------------------------------------------

CSV = """timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], power.draw [W], power.limit [W], clocks.sm [MHz], clocks_event_reasons.active
2026/09/01 10:00:00.000, 0, NVIDIA RTX PRO 6000, 100 %, 3 %, 90000 MiB, 210.50 W, 600.00 W, 2400 MHz, 0x0000000000000000
2026/09/01 10:00:01.000, 1, NVIDIA RTX PRO 6000, [N/A], 3 %, 90000 MiB, 210.50 W, 600.00 W, 900 MHz, 0x0000000000000044
"""
TABLE = """+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.65.06              Driver Version: 580.65.06      CUDA Version: 13.0     |
|-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA H200                    On  |   00000000:0A:00.0 Off |                    0 |
| N/A   34C    P0            118W /  700W |  120000MiB / 143771MiB |     97%      Default |
+-----------------------------------------+------------------------+----------------------+
"""


def samples(text: str) -> tuple[GpuSample, ...]:
    found = gpu.recognise(of_bytes("g", text.encode()), text)
    assert found is not None
    return tuple(fact for fact in found.facts if isinstance(fact, GpuSample))


def test_csv() -> None:
    first, second = samples(CSV)
    assert (first.index, first.name, first.utilization, first.power_w) == (
        0,
        "NVIDIA RTX PRO 6000",
        100.0,
        210.5,
    )
    assert first.throttled_by == ()
    assert second.utilization is None
    assert second.throttled_by == ("sw_power_cap", "hw_thermal_slowdown")
    assert second.source[0].at == "line 3"


def test_table() -> None:
    (one,) = samples(TABLE)
    assert (one.index, one.name, one.temperature_c, one.power_w) == (0, "NVIDIA H200", 34.0, 118.0)
    assert (one.memory_used_mib, one.memory_total_mib, one.utilization) == (120000.0, 143771.0, 97.0)


DMON = """\
# gpu     pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk
# Idx       W      C      C      %      %      %      %      %      %    MHz    MHz
    0     350     88      -    100      5      0      0      0      0   2619    510
    1      71     31      -      0      0      0      0      0      0   2619   1980
# gpu     pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk
# Idx       W      C      C      %      %      %      %      %      %    MHz    MHz
    0     351     88      -     99      5      0      0      0      0   2619      -
"""


def test_dmon() -> None:
    first, second, third = samples(DMON)
    assert (first.index, first.power_w, first.temperature_c, first.utilization) == (0, 350.0, 88.0, 100.0)
    assert (first.memory_utilization, first.sm_clock_mhz) == (5.0, 510.0)
    assert (second.index, second.sm_clock_mhz) == (1, 1980.0)
    assert (third.index, third.utilization, third.sm_clock_mhz) == (0, 99.0, None)
    assert third.source[0].at == "line 7"


def test_dmon_with_times() -> None:
    text = "#Date       Time        gpu    sm   mem\n#YYYYMMDD   HH:MM:SS    Idx     %     %\n 20260501   10:00:01      3    97    12\n"
    (one,) = samples(text)
    assert (one.index, one.utilization, one.moment) == (3, 97.0, "20260501 10:00:01")


@pytest.mark.parametrize(
    "text", ["", "index, value\n1, 2\n", "NVIDIA-SMI has failed because it could not communicate"]
)
def test_no_gpu(text: str) -> None:
    assert gpu.recognise(of_bytes("g", text.encode()), text) is None


# --- prose -------------------------------------------------------------------------------------------------


def stated(text: str) -> list[tuple[str, float]]:
    found = claims.recognise(of_bytes("t", text.encode()), text)
    return [] if found is None else [(f.what, f.value) for f in found.facts if isinstance(f, Claim)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Short prompts run 20-25 tok/s with 5.9-6.1 accepted per step.",
            [
                ("throughput", 20.0),
                ("throughput", 25.0),
                ("accepted per step", 5.9),
                ("accepted per step", 6.1),
            ],
        ),
        (
            "We compared the accept rate of two builds: 0.33 on the old one, 0.65 on the new one.",
            [("accept rate", 0.33), ("accept rate", 0.65)],
        ),
        ("Average draft acceptance is 9%. Is the drafter broken?", [("accept rate", 0.09)]),
        (
            "Its acceptance falls from 70% to 16% in long documents.",
            [("accept rate", 0.7), ("accept rate", 0.16)],
        ),
        ("The mean acceptance length is 2.65 on our set of prompts.", [("accept length", 2.65)]),
        (
            "Our server: accept len 6.4 on short prompts, 1.0 on anything past 40960 tokens, both with the same text.",
            [("accept length", 6.4), ("accept length", 1.0)],
        ),
        (
            "The accept length drops from 3.42 to 1.05 past 32k.",
            [("accept length", 3.42), ("accept length", 1.05)],
        ),
        (
            "The accept length was 3.4 before, and now 1.0 with the new build.",
            [("accept length", 3.4), ("accept length", 1.0)],
        ),
        (
            "The accept length is 3.4 with temperature 0.7 and top_p 0.95 everywhere.",
            [("accept length", 3.4)],
        ),
        ("The accept length is 3.4 on sglang 0.5.12 and torch 2.9 here.", [("accept length", 3.4)]),
        (
            "The accept length is 3.4 and the model gives 61.5 tok/s to us.",
            [("throughput", 61.5), ("accept length", 3.4)],
        ),
        ("The accept length is 3.4, then 12.5 ms for each step of it.", [("accept length", 3.4)]),
        ("We only ever see 1.0 tokens per step at long context.", [("commit length", 1.0)]),
        ("The server has 8 GPUs, 188 SMs and version 0.5.23 of SGLang.", []),
        ("Nothing here has a number in it at all.", []),
    ],
)
def test_claims(text: str, expected: list[tuple[str, float]]) -> None:
    assert stated(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[2026-04-18 08:00:00 TP0] Decode batch. #running-req: 8, accept len: 1.00, accept rate: 0.33, gen throughput: 4",
        "(APIServer pid=1) INFO 09-07 SpecDecoding metrics: Mean acceptance length: 2.68, Accepted: 161 tokens, 16.1 tokens/s",
        "2026-04-18 08:00:00 INFO the mean acceptance length is 2.65 on this host",
        '{"text": "the mean acceptance length is 2.65 on our set"}',
        "acceptance_rate: 0.33",
        "repeat at a context of 256 gives 64 {'draft_acceptance_rate': 0.185}",
        "\x00the mean acceptance length is 2.65 on our set",
    ],
)
def test_logs_and_configurations_claim_nothing(text: str) -> None:
    assert stated(text) == []


def test_a_long_document_is_no_statement() -> None:
    assert stated("The mean acceptance length is 2.65 on our set.\n" * 300) == []
