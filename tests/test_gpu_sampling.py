"""What a GPU sampler saw while each point was measured: reading, placing on the laptop's clock, windows."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ddprobe import gpu_cards, lab, readonly, runner
from ddprobe.facts import CommitRequest, GpuWindow
from ddprobe.lab import hosts
from ddprobe.lab.machine import Machine
from ddprobe.model import (
    Asked,
    Begin,
    Command,
    CommandResult,
    End,
    Evidence,
    Host,
    HttpRequest,
    HttpResult,
    Step,
)
from ddprobe.parsing import dcgm_dmon
from ddprobe.probes.draft.step_time import DraftStepTime
from ddprobe.probes.gpu import _samples, _sampling
from ddprobe.probes.gpu._samples import Clock, Sample, Span
from ddprobe.redact import Redactor
from ddprobe.sessions import open_session
from tests.lab_session import LabSession
from tests.silent import SilentWriter

NOON = 1_782_907_200.0
"""2026-07-01 12:00:00 UTC."""
LOOP = (
    "2026/07/01 12:00:00.250, 0, 100, 11, 2430, 2430, 12481, 0x0000000000000000, 331.20, 600.00, 61, 80211, 97887, 5, 16, 12481\n"
    "2026/07/01 12:00:00.251, 1, 99, 11, 1410, 2430, 12481, 0x0000000000000060, 212.75, 600.00, 88, 80211, 97887, 5, 16, 12481\n"
)
BASE = "http://127.0.0.1:30000"


def span(started: float, ended: float, context: int = 1024, purpose: str = "step-time") -> Span:
    return Span(
        base=BASE, purpose=purpose, arm="repeat", context_tokens=context, started=started, ended=ended
    )


def at(*moments: float, **more: Any) -> list[Sample]:
    return [Sample(**({"at": moment, "index": 0} | more)) for moment in moments]


class TestReading:
    def test_each_row_is_a_sample(self) -> None:
        first, second = _samples.samples(LOOP, _samples.FIELDS)
        assert first == Sample(
            at=NOON + 0.25,
            index=0,
            utilization=100,
            memory_utilization=11,
            sm_clock_mhz=2430,
            sm_clock_max_mhz=2430,
            memory_clock_mhz=12481,
            memory_clock_max_mhz=12481,
            clock_reasons=(),
            power_w=331.2,
            power_limit_w=600,
            temperature_c=61,
            memory_used_mib=80211,
            memory_total_mib=97887,
            pcie_gen=5,
            pcie_width=16,
        )
        assert (second.index, second.sm_clock_mhz, second.temperature_c) == (1, 1410, 88)
        assert second.clock_reasons == ("sw_thermal_slowdown", "hw_thermal_slowdown")

    def test_what_a_card_does_not_tell_is_none(self) -> None:
        line = "2026/07/01 12:00:00.250, 0, [N/A], [Not Supported], ERR!, 1, [N/A], [N/A], [N/A], N/A, 30, 5, 6, [N/A], 16, [N/A]\n"
        (sample,) = _samples.samples(line, _samples.FIELDS)
        assert (sample.utilization, sample.memory_utilization, sample.sm_clock_mhz) == (None, None, None)
        assert (sample.clock_reasons, sample.power_w, sample.power_limit_w) == (None, None, None)
        assert (sample.pcie_gen, sample.pcie_width, sample.temperature_c) == (None, 16, 30)

    @pytest.mark.parametrize(
        "text",
        [
            LOOP.splitlines()[0],  # stopped in mid-line
            "2026/07/01 12:00:00.250, 0, 100\n",
            "2026/13/01 12:00:00.250" + LOOP.splitlines()[0][23:] + "\n",
            "yesterday" + LOOP.splitlines()[0][23:] + "\n",
            LOOP.splitlines()[0].replace(", 0,", ", GPU0,") + "\n",
            "Unable to determine the device handle for GPU 0000:17:00.0: GPU is lost.\n",
            "\x1b[31m\0\n,,,,,,,,,,,,,,,\n",
            "",
        ],
    )
    def test_what_is_no_whole_row_is_left_out(self, text: str) -> None:
        assert _samples.samples(text, _samples.FIELDS) == ()
        assert len(_samples.samples(text + "\n" + LOOP, _samples.FIELDS)) in (2, 3)

    def test_an_older_name_of_a_field(self) -> None:
        older = tuple(name.replace("_event_", "_throttle_") for name in _samples.FIELDS)
        assert _samples.samples(LOOP, older) == _samples.samples(LOOP, _samples.FIELDS)

    def test_without_a_field_that_the_driver_does_not_know(self) -> None:
        fewer = tuple(name for name in _samples.FIELDS if name != "clocks_event_reasons.active")
        text = LOOP.replace("0x0000000000000000, ", "").replace("0x0000000000000060, ", "")
        assert [sample.clock_reasons for sample in _samples.samples(text, fewer)] == [None, None]


class TestClock:
    def test_the_offset_lies_between_the_bounds_of_a_look(self) -> None:
        found = _samples.clock([(100.0, "103.000000000", 100.2)])
        assert found is not None
        assert (found.offset, found.uncertainty) == pytest.approx((2.9, 0.1))

    def test_a_drift_between_two_looks_is_within_the_bounds(self) -> None:
        found = _samples.clock([(100.0, "103.0", 100.2), (200.0, "203.5", 200.1)])
        assert found is not None
        # 2.8 … 3.0 and 3.4 … 3.5
        assert (found.offset - found.uncertainty, found.offset + found.uncertainty) == pytest.approx(
            (2.8, 3.5)
        )

    @pytest.mark.parametrize("looks", [[], [(1.0, "", 2.0)], [(1.0, "nan", 2.0)], [(2.0, "5.0", 1.0)]])
    def test_no_look_no_clock(self, looks: Sequence[tuple[float, str, float]]) -> None:
        assert _samples.clock(looks) is None

    @pytest.mark.parametrize("zone", [0, 2, -7, 5.5, 5.75, 14, -11])
    @pytest.mark.parametrize("delay", [0.05, 1.2, 40])
    def test_the_time_zone_comes_out(self, zone: float, delay: float) -> None:
        clock = Clock(offset=-3.0, uncertainty=0.1)
        shown = NOON + delay + clock.offset + zone * 3600
        (one,) = _samples.placed(at(shown), NOON, clock)
        assert one.at == pytest.approx(NOON + delay)

    @pytest.mark.parametrize("shown", [NOON - 30, NOON + 200, NOON + 400, NOON + 15 * 3600, NOON - 9 * 86400])
    def test_a_clock_that_is_another_one_places_nothing(self, shown: float) -> None:
        assert _samples.placed(at(shown), NOON, Clock(0.0, 0.1)) == ()


class TestWindows:
    def test_medians_ends_and_every_reason(self) -> None:
        seen = [
            Sample(
                at=10 + n, index=0, sm_clock_mhz=mhz, power_w=watts, temperature_c=60 + n, clock_reasons=why
            )
            for n, (mhz, watts, why) in enumerate(
                [(2430, 300, ()), (1500, 310, ("sw_power_cap",)), (2400, 305, ("sw_power_cap", "sync_boost"))]
            )
        ]
        (window,) = _samples.windows(seen, Clock(0.5, 0.1), [span(9.5, 12.5)])
        assert (window.index, window.samples, window.context_tokens, window.base) == (0, 3, 1024, BASE)
        assert (window.sm_clock_mhz, window.sm_clock_low_mhz, window.sm_clock_high_mhz) == (2400, 1500, 2430)
        assert (window.power_w, window.power_low_w, window.power_high_w) == (305, 300, 310)
        assert (window.temperature_c, window.temperature_low_c, window.temperature_high_c) == (61, 60, 62)
        assert window.clock_reasons == ("sw_power_cap", "sync_boost")
        assert (window.offset_seconds, window.offset_uncertainty_seconds) == (0.5, 0.1)
        assert (window.started, window.ended) == (9.5, 12.5)
        # What no sample told.
        assert (window.utilization, window.memory_used_mib, window.pcie_gen) == (None, None, None)

    def test_the_clock_is_that_of_the_samples_in_which_a_kernel_ran(self) -> None:
        seen = [
            Sample(at=10 + n, index=0, sm_clock_mhz=mhz, utilization=percent)
            for n, (mhz, percent) in enumerate([(345, 0), (2430, 100), (2400, 90), (345, 0)])
        ]
        (window,) = _samples.windows(seen, Clock(0, 0), [span(9, 14)])
        assert (window.sm_clock_mhz, window.sm_clock_low_mhz, window.sm_clock_high_mhz) == (2415, 2400, 2430)
        assert (window.samples, window.utilization, window.working_clock_mhz) == (4, 45, 2415)
        (resting,) = _samples.windows([seen[0], seen[3]], Clock(0, 0), [span(9, 14)])
        assert (resting.sm_clock_mhz, resting.working_clock_mhz) == (345, None)

    def test_reasons_are_unknown_when_none_tells(self) -> None:
        (window,) = _samples.windows(at(10), Clock(0, 0), [span(9, 11)])
        assert window.clock_reasons is None
        (window,) = _samples.windows(at(10, clock_reasons=()), Clock(0, 0), [span(9, 11)])
        assert window.clock_reasons == ()

    @pytest.mark.parametrize(
        ("moment", "seen"), [(9.9, 0), (10.0, 0), (10.4, 0), (10.5, 1), (11.5, 1), (11.6, 0), (12.1, 0)]
    )
    def test_only_what_surely_lies_within_counts(self, moment: float, seen: int) -> None:
        assert len(_samples.windows(at(moment), Clock(0, 0.5), [span(10, 12)])) == seen

    def test_a_point_of_two_requests_is_one_window_and_the_pause_is_none_of_it(self) -> None:
        seen = at(1, 2, utilization=100) + at(3.5, utilization=0) + at(5, utilization=100)
        (window,) = _samples.windows(seen, Clock(0, 0), [span(0.5, 2.5), span(4.5, 5.5)])
        assert (window.samples, window.utilization_low, window.started, window.ended) == (3, 100, 0.5, 5.5)

    def test_points_are_apart_by_length_and_purpose_and_cards_by_number(self) -> None:
        seen = at(1, 11, 21, index=1) + at(1, 11, 21)
        spans = [span(0, 2, 64), span(10, 12, 1024), span(20, 22, 64, "step-time again")]
        found = _samples.windows(seen, Clock(0, 0), spans)
        assert [(w.context_tokens, w.purpose, w.index, w.samples) for w in found] == [
            (64, "step-time", 0, 1),
            (64, "step-time", 1, 1),
            (1024, "step-time", 0, 1),
            (1024, "step-time", 1, 1),
            (64, "step-time again", 0, 1),
            (64, "step-time again", 1, 1),
        ]

    def test_nothing_seen_no_window(self) -> None:
        assert _samples.windows([], Clock(0, 0), [span(0, 1)]) == ()
        assert _samples.windows(at(1), Clock(0, 0), []) == ()


DMON = (
    "#Entity   SMACT        TENSO        DRAMA        POWER\n"
    "ID                                               W\n"
    "GPU 1     0.043        0.001        0.312        231.440\n"
    "GPU 0     0.041        N/A          0.308        229.872\n"
    "GPU 1     0.045        0.001        0.314        230.000\n"
    "# Entity  SMACT        TENSO        DRAMA        POWER\n"
    "GPU 0     0.043        0.001        0.310        228.000\n"
)


class TestActivity:
    def test_rounds_of_dcgm(self) -> None:
        assert dcgm_dmon.rounds(DMON) == (
            {
                1: {1002: 0.043, 1004: 0.001, 1005: 0.312, 155: 231.44},
                0: {1002: 0.041, 1005: 0.308, 155: 229.872},
            },
            {
                1: {1002: 0.045, 1004: 0.001, 1005: 0.314, 155: 230.0},
                0: {1002: 0.043, 1004: 0.001, 1005: 0.31, 155: 228.0},
            },
        )

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "GPU 0 0.1 0.2\n",
            "Error: unable to connect to host engine\n",
            DMON.splitlines()[0],
            "#Entity SMACT\nGPU 0 1e9\n",
        ],
    )
    def test_what_is_no_round(self, text: str) -> None:
        assert [values for cards in dcgm_dmon.rounds(text) for values in cards.values() if values] == []

    def window(self, rounds: int, ran: tuple[float, float], ended: float = 9.0) -> GpuWindow:
        text = "#Entity SMACT DRAMA\n" + "".join(f"GPU 0 0.{n:02} 0.5\n" for n in range(rounds))
        spans = [span(2, ended)]
        found = _samples.windows(at(3), Clock(0, 0), spans)
        (window,) = _samples.with_activity(found, text, ran, 1.0, spans)
        return window

    def test_rounds_are_spread_over_the_time_it_ran(self) -> None:
        window = self.window(10, (0.0, 10.0))
        # Middles at 0.5, 1.5, …; a second of doubt: those from 3.5 to 7.5.
        assert window.sm_active == pytest.approx(0.05)
        assert (window.dram_active, window.tensor_active) == (0.5, None)

    def test_what_cannot_be_placed_does_not_count(self) -> None:
        assert self.window(3, (0.0, 10.0)).sm_active is None
        assert self.window(10, (0.0, 10.0), ended=3.5).sm_active is None
        # Two seconds unaccounted for: two seconds of doubt.
        assert self.window(8, (0.0, 10.0)).sm_active == pytest.approx((0.03 + 0.04) / 2, abs=0.011)

    def test_a_share_above_one_is_none(self) -> None:
        spans = [span(0, 10)]
        text = "#Entity SMACT\n" + "GPU 0 99.5\n" * 10
        found = _samples.windows(at(5), Clock(0, 0), spans)
        assert _samples.with_activity(found, text, (0, 10), 1.0, spans)[0].sm_active is None


# --- the conversation ----------------------------------------------------------------------------------------

HEAD = (
    "timestamp, index, utilization.gpu [%], utilization.memory [%], clocks.current.sm [MHz], clocks.max.sm [MHz], "
    "clocks.current.memory [MHz], clocks_event_reasons.active, power.draw [W], enforced.power.limit [W], temperature.gpu, "
    "memory.used [MiB], memory.total [MiB], pcie.link.gen.current, pcie.link.width.current, clocks.max.memory [MHz], mig.mode.current, "
    "name\n"
)
ROW = (
    "2026/07/01 12:00:00.000, 0, 0 %, 0 %, 345 MHz, 2430 MHz, 405 MHz, 0x0000000000000001, 33.00 W, 600.00 W, 34, "
    "80211 MiB, 97887 MiB, 1, 16, 12481 MHz, Disabled, NVIDIA RTX PRO 6000\n"
)
NOT_THERE = (127, "", "setsid: failed to execute nvidia-smi: No such file or directory\n")
TOO_OLD = (2, 'Field "clocks_event_reasons.active" is not a valid field to query.\n\n', "")


def conversation(*answers: tuple[int, str, str], dcgm: int = 127) -> tuple[list[Asked], tuple[str, ...]]:
    """What is asked of a host whose nvidia-smi gives these answers one after another, and what was begun."""
    left = list(answers)
    asked: list[Asked] = []
    talk: Generator[Asked, Any, tuple[str, ...]] = _sampling.begin("p-")
    sent: Any = None
    try:
        while True:
            question = talk.send(sent)
            asked.append(question)
            for one in question if isinstance(question, tuple) else (question,):
                assert not isinstance(one, End)
                readonly.check(one.command if isinstance(one, Begin) else one)
            if isinstance(question, Begin):
                sent = None
            elif isinstance(question, tuple):
                sent = tuple(CommandResult(question=q, exit_code=0, stdout=b"1.0\n") for q in question)  # type: ignore[arg-type]
            elif isinstance(question, Command) and question.argv[0] == "dcgmi":
                sent = CommandResult(question=question, exit_code=dcgm)
            else:
                assert isinstance(question, Command)
                code, out, err = left.pop(0)
                sent = CommandResult(
                    question=question,
                    exit_code=code,
                    stdout=out.encode(),
                    stderr=err.encode(),
                    timed_out=code < 0,
                )
    except StopIteration as stop:
        return asked, stop.value


def commands(asked: Sequence[Asked]) -> list[Command]:
    return [one.command for one in asked if isinstance(one, Begin)]


def test_a_loop_is_begun_where_the_driver_answers() -> None:
    asked, begun = conversation((0, HEAD + ROW, ""))
    (loop,) = commands(asked)
    assert begun == ("p-gpu-samples",)
    assert loop.argv == (
        "nvidia-smi",
        f"--query-gpu={','.join(_samples.FIELDS)}",
        "--format=csv,noheader,nounits",
        "-lms",
        "200",
    )
    assert loop.timeout == 7200


def test_counters_of_dcgm_where_its_engine_runs() -> None:
    asked, begun = conversation((0, HEAD + ROW, ""), dcgm=0)
    assert begun == ("p-gpu-samples", "p-gpu-activity")
    assert commands(asked)[1].argv == ("dcgmi", "dmon", "-e", "1002,1004,1005,155", "-d", "200")


def test_an_older_driver_is_asked_in_its_own_words() -> None:
    older = HEAD.replace("_event_", "_throttle_")
    asked, begun = conversation(TOO_OLD, (0, older + ROW, ""))
    assert begun == ("p-gpu-samples",)
    assert "clocks_throttle_reasons.active" in commands(asked)[0].argv[1]  # type: ignore[operator]


@pytest.mark.parametrize("count", [1, 4, 9, 13])
def test_a_driver_that_lacks_many_fields_is_sampled_without_them(count: int) -> None:
    lacking = _samples.FIELDS[-count:]
    known = [
        at for at, name in enumerate((*_samples.FIELDS, "mig.mode.current", "name")) if name not in lacking
    ]
    refused = [(2, f'Field "{name}" is not a valid field to query.\n\n', "") for name in lacking]
    if "clocks_event_reasons.active" in lacking:
        refused.append((2, 'Field "clocks_throttle_reasons.active" is not a valid field to query.\n\n', ""))
    said = "".join(", ".join(line.split(", ")[at] for at in known) for line in (HEAD, ROW))
    asked, begun = conversation(*refused, (0, said, ""))
    assert begun == ("p-gpu-samples",)
    assert commands(asked)[0].argv[1] == f"--query-gpu={','.join(_samples.FIELDS[:-count])}"


@pytest.mark.parametrize(
    "answers",
    [
        (NOT_THERE,),
        ((-1, "", ""),),
        ((9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", ""),),
        ((0, "No devices were found\n", ""),),
        ((0, "garbage, that, is, no, heading\n", ""),),
        ((0, HEAD, ""),),
        (TOO_OLD, (2, 'Field "name" is not a valid field to query.\n', ""), (2, "no\n", "")),
    ],
    ids=["none", "hangs", "no driver", "no card", "garbage", "empty", "knows nothing"],
)
def test_without_an_answer_nothing_is_begun(answers: tuple[tuple[int, str, str], ...]) -> None:
    asked, begun = conversation(*answers)
    assert begun == ()
    assert commands(asked) == []
    assert list(_sampling.end(begun)) == []


def test_a_driver_that_hangs_is_asked_once() -> None:
    asked, _ = conversation((-1, "", ""))
    assert len(asked) == 1


# --- what it says afterwards ---------------------------------------------------------------------------------


def evidence(loop: str, *, stopped: bool = True, dates: bool = True, row: str = ROW) -> Evidence:
    """A transcript: the laptop's clock stands at noon, the host's is two seconds ahead and two hours east."""
    fields = ",".join(_samples.FIELDS)
    query = Command(key="gpu-samples", argv=("nvidia-smi", f"--query-gpu={fields}"), timeout=7200)
    look = Command(
        key="gpu-look-1", argv=("nvidia-smi", f"--query-gpu={fields},mig.mode.current,name"), timeout=20
    )
    request = HttpRequest(key="r1", method="POST", path="/generate", base=BASE)
    date = [Command(key=f"gpu-clock-before-{n}", argv=("date", "+%s.%N")) for n in (1, 2)]
    results: list[Any] = [CommandResult(question=look, exit_code=0, stdout=(HEAD + row).encode())]
    if dates:
        results += [
            CommandResult(question=date[0], exit_code=0, stdout=b"1782907202.020000000\n", started=NOON),
            CommandResult(
                question=date[1], exit_code=0, stdout=b"1782907202.030000000\n", started=NOON + 0.04
            ),
        ]
    results += [
        HttpResult(question=request, status=200, started=NOON + 1, seconds=4.0),
        CommandResult(
            question=query,
            exit_code=143,
            stdout=loop.encode(),
            started=NOON + 0.05,
            seconds=9,
            stopped=stopped,
        ),
    ]
    return Evidence(Host(name="gpu1"), tuple(results))


def request(**more: Any) -> CommitRequest:
    given: dict[str, Any] = {
        "key": "r1",
        "purpose": "step-time",
        "arm": "repeat",
        "context_tokens": 64,
        "prompt": 0,
    }
    return CommitRequest(**(given | {"first_token_ms": 1000.0, "seconds": 4.0} | more))


def loop(*seconds: float, mhz: int = 2400) -> str:
    """A line at each of these laptop's seconds after noon, as the host dates it."""
    return "".join(
        f"2026/07/01 14:00:{moment + 2:06.3f}, 0, 100, 11, {mhz}, 2430, 12481, 0x0000000000000004, 590.00, 600.00, 61, "
        "80211, 97887, 5, 16, 12481\n"
        for moment in seconds
    )


def test_a_window_is_from_the_first_token_to_the_end() -> None:
    # Decoding from 2 s to 5 s.
    found = list(_sampling.windows(evidence(loop(0.5, 1.5, 2.5, 3.5, 4.5, 5.5)), [request()]))
    (window,) = found
    assert (window.samples, window.index, window.name) == (3, 0, "NVIDIA RTX PRO 6000")
    assert (window.started, window.ended) == (NOON + 2, NOON + 5)
    assert (window.purpose, window.arm, window.context_tokens, window.base) == (
        "step-time",
        "repeat",
        64,
        BASE,
    )
    assert (window.clock_reasons, window.power_w, window.sm_clock_mhz) == (("sw_power_cap",), 590, 2400)
    assert window.offset_seconds == pytest.approx(2.0)
    assert window.offset_uncertainty_seconds == pytest.approx(0.02)
    assert [cite.artefact for cite in window.source] == ["gpu-samples", "gpu-clock-before-1"]


@pytest.mark.parametrize(
    "changes", [{"purpose": "warm-up"}, {"error": "HTTP 500"}, {"first_token_ms": None}, {"key": "r2"}]
)
def test_what_was_not_decoded_has_no_window(changes: dict[str, Any]) -> None:
    assert list(_sampling.windows(evidence(loop(0.5, 3)), [request(**changes)])) == []


def test_no_window_without_a_clock_or_a_sampler() -> None:
    assert list(_sampling.windows(evidence(loop(0.5, 3), dates=False), [request()])) == []
    assert list(_sampling.windows(Evidence(Host(name="gpu1")), [request()])) == []


def test_a_sampler_that_broke_off_still_saw_what_it_saw() -> None:
    cut = evidence(loop(0.5, 2.5, 3.5) + "2026/07/01 14:00:0", stopped=False)
    results = (*cut.results[:-1], replace(cut.results[-1], failure="the road failed"))
    (window,) = _sampling.windows(Evidence(cut.host, results), [request()])
    assert window.samples == 2


@pytest.mark.parametrize(
    ("moments", "seen"),
    [
        ((0.5, 2.5, 3.5), 2),
        ((0.5, 2.5, 2.2, 3.5), 3),  # by less than a second
        ((0.5, 2.5, 3.5, 1.0), 0),  # set back by more than a second
        ((0.5, 2.5, 33.5, 34.5), 0),  # set ahead: beyond the sampler's own end
    ],
    ids=["steady", "out of order", "set back", "set ahead"],
)
def test_no_window_where_the_hosts_clock_was_set_meanwhile(moments: tuple[float, ...], seen: int) -> None:
    found = list(_sampling.windows(evidence(loop(*moments)), [request()]))
    assert [window.samples for window in found] == ([seen] if seen else [])


def test_a_card_cut_up_by_mig_is_no_whole_card() -> None:
    (window,) = _sampling.windows(
        evidence(loop(0.5, 2.5), row=ROW.replace("Disabled", "Enabled")), [request()]
    )
    assert window.name == "NVIDIA RTX PRO 6000 MIG"
    assert gpu_cards.card(window.name) is None


@pytest.mark.parametrize(
    ("code", "before", "after"),
    [
        (0, "Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error\n", ""),
        (15, "", "Unable to determine the device handle for GPU 0000:34:00.0: GPU is lost.\n"),
        (14, "WARNING: infoROM is corrupted at gpu 0000:34:00.0\n", ""),
    ],
)
def test_cards_that_answer_are_sampled_beside_one_that_does_not(code: int, before: str, after: str) -> None:
    _, begun = conversation((code, before + HEAD + ROW + after, ""))
    assert begun == ("p-gpu-samples",)


def test_values_that_no_card_has_are_not_read() -> None:
    line = LOOP.splitlines()[0].replace(", 100, 11, 2430,", ", 4294967295, -1, -2430,") + "\n"
    (sample,) = _samples.samples(line.replace("331.20", "-1.00").replace(" 61,", " -5,"), _samples.FIELDS)
    assert (sample.utilization, sample.memory_utilization, sample.sm_clock_mhz) == (None, None, None)
    assert (sample.power_w, sample.temperature_c) == (None, -5)


# --- the lab's cards, in the session's own time --------------------------------------------------------------


def measured(machine: Machine) -> tuple[LabSession, list[GpuWindow]]:
    session = LabSession(machine)
    step = Step("step-time", DraftStepTime(contexts="1k,64k", steps=256))
    held = runner.collect(step, session.host, session, SilentWriter(), lambda *_: None)
    assert held.broken == ()
    facts = step.probe.interpret(held.evidence)
    return session, [fact for fact in facts if isinstance(fact, GpuWindow)]


def test_a_clock_that_falls_in_mid_run_is_seen_where_it_fell() -> None:
    session, found = measured(hosts.hot_gpus())
    assert session.beside == []
    clocks = {
        (window.purpose, window.context_tokens): (window.sm_clock_low_mhz, window.clock_reasons)
        for window in found
    }
    # Cool at first; at the end it is hot, whatever the length.
    slow = (990, ("sw_thermal_slowdown",))
    assert clocks == {
        ("step-time", 1024): (1980, ()),
        ("step-time", 65536): slow,
        ("step-time again", 1024): slow,
        ("step-time again", 65536): slow,
    }
    assert {window.sm_clock_max_mhz for window in found} == {1980}
    assert all(window.samples >= 3 for window in found)
    assert {(window.name, window.utilization) for window in found} == {("NVIDIA H100 80GB HBM3", 100)}


def test_a_healthy_host_shows_no_reason() -> None:
    session, found = measured(hosts.healthy())
    assert session.beside == []
    assert {(window.context_tokens, window.purpose) for window in found} >= {
        (1024, "step-time"),
        (65536, "step-time"),
    }
    assert {window.clock_reasons for window in found} == {()}
    assert {(window.sm_clock_low_mhz, window.sm_clock_high_mhz) for window in found} == {(1980, 1980)}
    assert all(window.samples >= 1 and window.offset_seconds == 0 for window in found)


# --- over its own SSH server ----------------------------------------------------------------


def test_the_lab_goes_on_until_it_is_stopped() -> None:
    fields = ",".join(_samples.FIELDS)
    argv = ("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits", "-lms", "200")
    with lab.running() as host:
        session = open_session(host, Redactor(), threading.Event())
        try:
            one = session.begin(Command(key="s", argv=argv, timeout=60))
            time.sleep(0.9)
            assert session.ask([Command(key="a", argv=("hostname",))])[0].text == "lab-gpu01\n"
            before = time.monotonic()
            result = one.end()
            assert time.monotonic() - before < 1
            late = session.begin(Command(key="t", argv=argv, timeout=1)).end()
            assert late.stopped
            again = session.begin(Command(key="u", argv=argv, timeout=1))
            time.sleep(2.5)
            timed_out = again.end()
            assert session.sweep() == 0
        finally:
            session.close()
    assert (result.stopped, result.trouble, result.exit_code) == (True, "", 143)
    seen = _samples.samples(result.text, _samples.FIELDS)
    assert {sample.index for sample in seen} == set(range(8))
    assert 24 <= len(seen) <= 64
    assert seen[-1].at - seen[0].at > 0.3
    assert timed_out.timed_out
    assert timed_out.stdout.count(b"\n") >= 8
