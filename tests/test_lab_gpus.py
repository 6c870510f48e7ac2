"""The lab's cards: what they say of themselves is what its engine goes by, and heat slows both."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import pytest

from ddprobe import runner
from ddprobe.facts import Gpu, GpuDriver, GpuLink, GpuProcess
from ddprobe.lab import shell
from ddprobe.lab.engine.decoding import Law
from ddprobe.lab.engine.heat import Heat
from ddprobe.lab.machine import Machine
from ddprobe.lab.scenarios import scenario
from ddprobe.model import Command, Fact, Finding, HttpRequest, Outcome, Step
from ddprobe.probes.gpu.state import GpuState
from tests.lab_session import LabSession
from tests.silent import SilentWriter

BASE = "http://127.0.0.1:30000"


def built(name: str) -> Machine:
    return scenario(name).build()


def ask(machine: Machine, *argv: str) -> tuple[str, int]:
    out = shell.run(machine, Command(key="k", argv=argv, timeout=60.0))
    return out.stdout.decode(), out.exit


# --- the law of a step -------------------------------------------------------------------------------------


def test_a_law_in_milliseconds() -> None:
    law = Law.of(8.0, 0.002, 1e-8, knee_at=32768, knee_ms=5.0, noise=0.0)
    assert law.of_step(0) == pytest.approx(0.008)
    assert law.of_step(10_000) == pytest.approx(0.008 + 0.020 + 0.001)
    assert law.exact(32_767) == pytest.approx(0.008 + 0.065534 + 0.010736763, abs=1e-7)
    assert law.exact(32_768) - law.exact(32_767) == pytest.approx(0.005 + 0.002e-3 + 65535e-11, abs=1e-9)


def test_without_noise_a_law_keeps_its_spread_of_a_few_per_mille() -> None:
    law = Law(step=0.0085, per_token=7.7e-6)
    shares = [law.of_step(length) / law.exact(length) for length in range(1000, 1400)]
    assert min(shares) == pytest.approx(0.99)
    assert max(shares) == pytest.approx(1.01)
    assert law.of_step(1234, 1) == law.of_step(1234, 2)


def test_noise_is_as_large_as_it_says_and_the_same_for_a_seed() -> None:
    law = Law.of(10.0, noise=0.05, seed=3)
    times = [law.of_step(5000, ordinal) * 1000 for ordinal in range(2000)]
    assert statistics.mean(times) == pytest.approx(10.0, abs=4 * 0.5 / math.sqrt(2000))
    assert statistics.stdev(times) == pytest.approx(0.5, rel=0.08)
    assert times == [law.of_step(5000, ordinal) * 1000 for ordinal in range(2000)]
    assert times != [replace(law, seed=4).of_step(5000, ordinal) * 1000 for ordinal in range(2000)]


def test_a_paced_law_keeps_its_shape() -> None:
    law = Law.of(8.0, 0.002, 1e-8, knee_at=100, knee_ms=5.0, noise=0.1, seed=9)
    paced = law.paced(0.25)
    for length in (0, 99, 100, 50_000):
        assert paced.of_step(length, 7) == pytest.approx(law.of_step(length, 7) / 4)


def test_heat_lowers_the_clock_and_stretches_steps_by_as_much() -> None:
    heat = Heat(after=1.0, ramp=1.0, clock_mhz=2000.0, floor_mhz=1000.0, cool_c=40.0, hot_c=90.0)
    assert (heat.mhz, heat.slows, heat.celsius) == (2000.0, 1.0, 40.0)
    assert heat.work(1.0) == 1.0
    assert (heat.mhz, heat.celsius) == (2000.0, 65.0)
    heat.worked = 1.5
    assert heat.mhz == 1500.0
    assert heat.work(0.3) == pytest.approx(0.4)
    heat.worked = 50.0
    assert (heat.mhz, heat.slows, heat.celsius) == (1000.0, 2.0, 90.0)


def test_heat_remembers_its_clock_by_moment() -> None:
    heat = Heat(after=0.0, ramp=2.0, clock_mhz=2000.0, floor_mhz=1000.0)
    heat.note(100.0)
    heat.worked = 1.0
    heat.note(101.0)
    assert [heat.at(moment)[0] for moment in (99.0, 100.0, 100.9, 101.0, 500.0)] == [
        2000,
        2000,
        2000,
        1500,
        1500,
    ]


# --- its programs ------------------------------------------------------------------------------------------


def test_a_query_with_and_without_header_and_units() -> None:
    machine = built("healthy")
    fields = "index,clocks.sm,clocks.max.sm,clocks_event_reasons.active"
    assert ask(machine, "nvidia-smi", f"--query-gpu={fields}", "--format=csv") == (
        "index, clocks.current.sm [MHz], clocks.max.sm [MHz], clocks_event_reasons.active\n"
        "0, 345 MHz, 1980 MHz, 0x0000000000000001\n",
        0,
    )
    bare = ask(machine, "nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits")
    assert bare == ("0, 345, 1980, 0x0000000000000001\n", 0)


def test_an_unknown_field_is_refused_as_the_real_tool_refuses_it() -> None:
    said, code = ask(built("healthy"), "nvidia-smi", "--query-gpu=index,heat", "--format=csv")
    assert (said.split("\n")[0], code) == ('Field "heat" is not a valid field to query.', 2)


def test_what_the_policy_refuses_the_lab_does_too() -> None:
    said, code = ask(built("healthy"), "nvidia-smi", "-r")
    assert (said, code) == ("", 126)


@pytest.mark.parametrize("program", ["dcgmi -v", "rocm-smi --showuse --json", "amd-smi static --json"])
def test_tools_that_the_lab_does_not_have(program: str) -> None:
    assert ask(built("healthy"), *program.split()) == ("", 127)


@pytest.mark.parametrize(("words", "every"), [(("-l", "2"), 2.0), (("-lms", "500"), 0.5)])
def test_a_loop_is_a_sample_at_each_moment(words: tuple[str, str], every: float) -> None:
    machine = built("founding-story")
    argv = ("nvidia-smi", "--query-gpu=timestamp,index", "--format=csv,noheader,nounits", *words)
    out = shell.run(machine, Command(key="k", argv=argv, timeout=60.0))
    assert out.every == every
    assert out.sample is not None
    assert bytes(out.stdout) == b""
    lines = out.sample(1_790_000_000.25).decode().splitlines()
    assert lines == [f"2026/09/21 14:13:20.250, {index}" for index in range(8)]


# --- the probe on it ---------------------------------------------------------------------------------------


def looked(machine: Machine) -> tuple[tuple[Fact, ...], list[Finding], tuple[str, ...]]:
    session = LabSession(machine)
    step = Step("gpu", GpuState())
    collected = runner.collect(step, session.host, session, SilentWriter(), lambda _host, _now: None)
    record, findings = runner.judge(step, collected.evidence, collected.broken, lambda _host, _step, key: key)
    return record.facts, list(findings), record.reasons


def test_the_founding_story_has_eight_cards_under_one_server() -> None:
    facts, findings, reasons = looked(built("founding-story"))
    assert reasons == ()
    gpus = [fact for fact in facts if isinstance(fact, Gpu)]
    assert [gpu.index for gpu in gpus] == list(range(8))
    assert {gpu.name for gpu in gpus} == {"NVIDIA RTX PRO 6000 Blackwell Server Edition"}
    assert {gpu.clock_reasons for gpu in gpus} == {("gpu_idle",)}
    (driver,) = [fact for fact in facts if isinstance(fact, GpuDriver)]
    assert (driver.module, driver.tool_version, driver.state, driver.nodes) == (
        "580.95.05",
        "580.95.05",
        "answers",
        8,
    )
    held = {(fact.gpu, fact.server) for fact in facts if isinstance(fact, GpuProcess)}
    assert held == {(index, "sglang pid 4711") for index in range(8)}
    assert len([fact for fact in facts if isinstance(fact, GpuLink)]) == 28
    assert [(f.id, f.outcome) for f in findings if f.outcome > Outcome.PASS] == [("GP09", Outcome.WARN)]


def test_a_healthy_host_has_nothing_to_complain_of() -> None:
    _, findings, reasons = looked(built("healthy"))
    assert reasons == ()
    assert [f.summary for f in findings if f.outcome > Outcome.PASS] == []


def generate(session: LabSession, tokens: int) -> float:
    """A request of so many tokens; the seconds that it took on paper."""
    body = f'{{"input_ids": [{", ".join(["9"] * 64)}], "sampling_params": {{"max_new_tokens": {tokens}}}}}'.encode()
    request = HttpRequest(key="g", method="POST", path="/generate", base=BASE, body=body)
    began = session.now
    (result,) = session._carry((request,))
    assert result.whole, result.trouble
    return session.now - began


def test_hot_cards_slow_down_while_they_work_and_say_so() -> None:
    machine = built("hot-gpus")
    session = LabSession(machine)
    cards = machine.gpus
    assert cards is not None
    first = generate(session, 400)
    while (
        cards.engine is not None
        and cards.engine.model.heat is not None
        and cards.engine.model.heat.mhz > 990.0
    ):
        generate(session, 400)
    last = generate(session, 400)
    assert last / first > 1.5
    middle = session.now - last / 2
    (reading,) = cards.at(middle)
    assert (reading.busy, reading.mhz, reading.reasons) == (True, 990.0, 0x20)
    cells = cards.cells(reading, middle)
    assert (cells["clocks.sm"], cells["clocks_event_reasons.active"]) == ("990 MHz", "0x0000000000000020")
    assert cells["temperature.gpu"] == "92"
    (later,) = cards.at(session.now + 60)
    assert (later.busy, later.reasons) == (False, 0x1)


def test_two_builds_of_a_hot_host_do_not_share_their_heat() -> None:
    one, other = built("hot-gpus"), built("hot-gpus")
    generate(LabSession(one), 400)
    assert other.gpus is not None
    assert other.gpus.engine is not None
    assert other.gpus.engine.model.heat is not None
    assert other.gpus.engine.model.heat.worked == 0.0


@pytest.mark.parametrize("name", ["founding-story", "healthy", "slow-attention"])
def test_other_hosts_are_cooled_well(name: str) -> None:
    machine = built(name)
    assert machine.gpus is not None
    assert machine.gpus.engine is not None
    assert machine.gpus.engine.model.heat is None
