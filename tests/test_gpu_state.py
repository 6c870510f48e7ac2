"""The ladder: what is asked of a host about its GPUs, in which order, and when nothing more is asked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ddprobe import lints, readonly, reportjson
from ddprobe.facts import Gpu, GpuDriver, GpuFault, GpuLink, GpuProcess, GpuWindow
from ddprobe.model import Cite, Command, CommandResult, Evidence, Fact, Finding, Gap, Host, Outcome, Step
from ddprobe.parsing import nvidia_smi
from ddprobe.probes.gpu.state import GpuState
from ddprobe.running.judging import judge

HOST = Host(name="gpu1")
TOOLS = ("nvidia-smi", "dcgmi", "rocm-smi", "amd-smi")
BUS = "/sys/bus/pci/devices/0000:41:00.0"
FIELDS = nvidia_smi.CARD_FIELDS
CARD = {
    "index": "0", "name": "NVIDIA H200", "uuid": "GPU-1", "pci.bus_id": "00000000:41:00.0", "driver_version": "570.1",
}  # fmt: skip
ANSWERS: dict[str, str] = {
    "displays": f"{BUS}/class:0x030200\n",
    "vendors": f"{BUS}/vendor:0x10de\n",
    "uptime": "864000.00 1.00\n",
    "dmesg": "[    0.000000] Linux version 6.8.0\n",
    "driver": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.1  Release Build\n",
    "smi": ", ".join(FIELDS) + "\n" + ", ".join(CARD.get(field, "[N/A]") for field in FIELDS) + "\n",
    "apps": "gpu_uuid, pid, used_gpu_memory [MiB], process_name\nGPU-1, 77, 512 MiB, python3\n",
}
NO_MATCH = (
    "cards",
    "sleeping",
    "links",
    "sleepers",
    "wchan",
    "candidates",
    "workers",
    "proc-mount",
    "app-groups",
)

Change = Callable[[Command], CommandResult | None]


def answer(command: Command, **changes: object) -> CommandResult:
    text = ANSWERS.get(command.key, "")
    fields: dict[str, object] = {
        "exit_code": 1 if command.key in NO_MATCH else 0,
        "stdout": text.encode(),
        **changes,
    }
    return CommandResult(question=command, **fields)  # type: ignore[arg-type]


def climbed(change: Change = lambda _command: None) -> Evidence:
    """The whole conversation with a healthy host that has one card, but for what `change` answers otherwise."""
    conversation = GpuState().collect(HOST)
    results: list[CommandResult] = []
    try:
        asked = next(conversation)
        while True:
            questions = asked if isinstance(asked, tuple) else (asked,)
            answers = []
            for question in questions:
                assert isinstance(question, Command)
                readonly.check(question)
                answers.append(change(question) or answer(question))
            results += answers
            asked = conversation.send(tuple(answers) if isinstance(asked, tuple) else answers[0])
    except StopIteration:
        return Evidence(HOST, tuple(results))


def told(evidence: Evidence) -> list[Fact | Finding | Gap]:
    return list(GpuState().interpret(evidence))


def found(evidence: Evidence) -> dict[str, Outcome]:
    return {item.id: item.outcome for item in told(evidence) if isinstance(item, Finding)}


def asked(evidence: Evidence) -> list[str]:
    return [result.key for result in evidence.results]


def tools(evidence: Evidence) -> list[str]:
    return [
        str(r.question)
        for r in evidence.results
        if isinstance(r, CommandResult) and r.question.argv[0] in TOOLS
    ]


def hang(key: str) -> Change:
    def change(command: Command) -> CommandResult | None:
        if command.key != key:
            return None
        return CommandResult(question=command, timed_out=True, seconds=20.0)

    return change


# --- the order ---------------------------------------------------------------------------------------------


def test_files_and_logs_come_before_any_tool_and_tools_one_by_one() -> None:
    evidence = climbed()
    keys = asked(evidence)
    assert keys[: keys.index("smi")] == [
        "cards", "driver", "displays", "vendors", "sleeping", "uptime", "dmesg", "links",
    ]  # fmt: skip
    assert keys[keys.index("smi") :] == [
        "smi", "remapped", "apps", "list", "topology", "version", "dcgm", "app-owners", "app-groups", "candidates",
        "workers", "proc-mount",
    ]  # fmt: skip
    assert found(evidence) == {}
    assert not [item for item in told(evidence) if isinstance(item, Gap)]


def test_every_touch_of_the_driver_is_watched_and_travels_alone() -> None:
    for result in climbed().results:
        assert isinstance(result, CommandResult)
        if result.question.argv[0] == "nvidia-smi":
            assert result.question.timeout == nvidia_smi.TIMEOUT
            assert result.question.alone


@pytest.mark.parametrize("key", ["smi", "remapped", "apps", "list", "topology", "version"])
def test_after_one_that_hangs_nothing_touches_the_driver(key: str) -> None:
    evidence = climbed(hang(key))
    assert evidence.results[-1].key == key
    assert found(evidence)["gpu.wedged"] is Outcome.FAIL
    (driver,) = [item for item in told(evidence) if isinstance(item, GpuDriver)]
    assert driver.state == "hangs"
    assert any(isinstance(item, Gap) for item in told(evidence))


@pytest.mark.parametrize("key", ["cards", "driver"])
def test_where_the_drivers_files_hang_no_tool_is_started(key: str) -> None:
    evidence = climbed(hang(key))
    assert tools(evidence) == []
    assert found(evidence)["gpu.wedged"] is Outcome.FAIL


def test_where_it_is_unknown_who_sleeps_no_tool_is_started() -> None:
    evidence = climbed(hang("sleeping"))
    assert tools(evidence) == []
    assert found(evidence) == {}
    assert [item.reason for item in told(evidence) if isinstance(item, Gap)] == [
        "timed out after 20.0 s (0 bytes had come)"
    ]
    (driver,) = [item for item in told(evidence) if isinstance(item, GpuDriver)]
    assert driver.state == "unasked"


# --- who sleeps --------------------------------------------------------------------------------------------


def asleep(name: str, wait: str, later: str = "D (disk sleep)") -> Change:
    said = {
        "sleeping": "/proc/9/status:State:\tD (disk sleep)\n",
        "sleepers": f"/proc/9/status:Name:\t{name}\n/proc/9/status:State:\t{later}\n",
        "wchan": f"/proc/9/wchan:{wait}\n",
    }

    def change(command: Command) -> CommandResult | None:
        return (
            answer(command, exit_code=0, stdout=said[command.key].encode()) if command.key in said else None
        )

    return change


@pytest.mark.parametrize(
    ("name", "wait", "later", "stuck"),
    [
        ("nvidia-smi", "0", "D (disk sleep)", True),
        ("python3", "nvidia_ioctl", "D (disk sleep)", True),
        ("python3", "os_acquire_rwlock_write", "D (disk sleep)", True),
        ("python3", "uvm_ioctl", "D (disk sleep)", True),
        ("nvidia-smi", "0", "S (sleeping)", False),
        ("python3", "folio_wait_bit_common", "D (disk sleep)", False),
        ("python3", "0", "D (disk sleep)", False),
    ],
)
def test_only_who_sleeps_twice_in_the_driver_keeps_the_tool_away(
    name: str, wait: str, later: str, stuck: bool
) -> None:
    evidence = climbed(asleep(name, wait, later))
    assert (tools(evidence) == []) is stuck
    assert ("gpu.wedged" in found(evidence)) is stuck


def test_command_lines_of_sleepers_are_never_read() -> None:
    for result in climbed(asleep("nvidia-smi", "nv_lock")).results:
        assert "cmdline" not in str(result.question)
        assert "environ" not in str(result.question)


# --- other answers -----------------------------------------------------------------------------------------


def refused(code: int, said: str) -> Change:
    return lambda command: (
        answer(command, exit_code=code, stdout=said.encode()) if command.key == "smi" else None
    )


@pytest.mark.parametrize(
    ("code", "said", "advice"),
    [
        (18, "Failed to initialize NVML: Driver/library version mismatch\n", "reboot"),
        (255, "Failed to initialize NVML: Unknown Error\n", "start the container again"),
        (9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "dkms"),
        (6, "No devices were found\n", "XID 79"),
        (0, "No devices were found\n", "XID 79"),
        (4, "Insufficient Permissions\n", "/dev"),
    ],
)
def test_an_error_of_the_tool_is_told_in_its_own_words(code: int, said: str, advice: str) -> None:
    evidence = climbed(refused(code, said))
    (finding,) = [item for item in told(evidence) if isinstance(item, Finding)]
    assert (finding.id, finding.outcome) == ("gpu.refused", Outcome.FAIL)
    assert said.strip() in finding.summary
    assert advice in finding.advice
    assert asked(evidence)[-1] == "smi"


def test_a_garbled_answer_is_a_gap_and_no_second_one_is_asked_for() -> None:
    evidence = climbed(refused(0, "Segmentation fault\n"))
    (gap,) = [item for item in told(evidence) if isinstance(item, Gap)]
    assert "Segmentation fault" in gap.reason
    assert tools(evidence) == [str(evidence.result("smi").question)]
    assert not any(isinstance(item, Gpu) and item.index is not None for item in told(evidence))


def table(count: int, **cells: str) -> str:
    """What nvidia-smi tells of that many cards."""
    rows = ({**CARD, "index": str(n), "uuid": f"GPU-{n}", "pci.bus_id": f"00000000:{0x41 + n:02X}:00.0", **cells} for n in range(count))  # fmt: skip
    return "".join(
        line + "\n"
        for line in (
            ", ".join(FIELDS),
            *(", ".join(row.get(field, "[N/A]") for field in FIELDS) for row in rows),
        )
    )


LOST = "Unable to determine the device handle for GPU15: 0000:50:00.0: Unknown Error\n"


@pytest.mark.parametrize("code", [0, 15, 255])
@pytest.mark.parametrize("first", [True, False], ids=["before the rows", "behind them"])
def test_one_lost_card_hides_none_of_the_others(code: int, first: bool) -> None:
    said = LOST + table(15) if first else table(15) + LOST
    evidence = climbed(refused(code, said))
    shown = [item for item in told(evidence) if isinstance(item, Gpu) and item.index is not None]
    assert [gpu.index for gpu in shown] == list(range(15))
    assert found(evidence)["gpu.lost"] == Outcome.FAIL
    (finding,) = [item for item in told(evidence) if isinstance(item, Finding) and item.id == "gpu.lost"]
    assert "tells of 15 cards" in finding.summary
    assert LOST.strip() in finding.summary
    assert "topology" in asked(evidence)


def test_a_complaint_beside_an_answer_is_told_and_the_answer_stands() -> None:
    evidence = climbed(refused(14, "WARNING: infoROM is corrupted at gpu 0000:41:00.0\n" + table(1)))
    assert found(evidence) == {"gpu.refused": Outcome.WARN}
    assert [item.index for item in told(evidence) if isinstance(item, Gpu)] == [0]


def test_a_card_that_is_listed_again_is_one_card() -> None:
    said = table(2)
    evidence = climbed(refused(0, said + said.partition("\n")[2]))
    assert [item.index for item in told(evidence) if isinstance(item, Gpu)] == [0, 1]


def test_a_list_without_end_is_read_in_time_and_bounded() -> None:
    evidence = climbed(refused(0, table(4000)))
    assert len([item for item in told(evidence) if isinstance(item, Gpu)]) == 256


@pytest.mark.parametrize(
    ("field", "cell"),
    [
        ("utilization.gpu", "4294967295 %"), ("utilization.gpu", "-1 %"), ("power.draw", "-1.00 W"), ("clocks.sm", "-5 MHz"),
        ("memory.used", "-1 MiB"), ("memory.total", "ERR!"), ("pcie.link.width.current", "-4"), ("clocks.sm", "[Unknown Error]"),
    ],
)  # fmt: skip
def test_a_value_that_no_card_has_is_unknown(field: str, cell: str) -> None:
    evidence = climbed(refused(0, table(1, **{field: cell})))
    (gpu,) = [item for item in told(evidence) if isinstance(item, Gpu)]
    assert (gpu.index, gpu.name) == (0, "NVIDIA H200")
    read = (gpu.utilization, gpu.power_w, gpu.sm_clock_mhz, gpu.memory_used_mib, gpu.pcie_width)
    assert (*read, gpu.memory_total_mib) == (None,) * 6


def test_a_comma_in_a_number_is_no_card_with_shifted_cells() -> None:
    evidence = climbed(refused(0, table(1, **{"power.draw": "35,27 W"})))
    assert not [item for item in told(evidence) if isinstance(item, Gpu) and item.index is not None]
    assert [item.subject for item in told(evidence) if isinstance(item, Gap)] == ["nvidia-smi"]


def test_a_denied_log_is_unknown_and_an_empty_journal_is_no_log() -> None:
    evidence = climbed(
        lambda command: answer(command, exit_code=1, stdout=b"") if command.key == "dmesg" else None
    )
    assert "kernel-journal" in asked(evidence)
    assert found(evidence) == {"gpu.log": Outcome.UNKNOWN}


def nothing(command: Command) -> CommandResult | None:
    """A host without cards, driver and tool."""
    if command.key in ("displays", "vendors", "driver"):
        return answer(command, exit_code=1, stdout=b"")
    return answer(command, exit_code=127, stdout=b"") if command.argv[0] in TOOLS else None


def cut_off(key: str, base: Change = nothing) -> Change:
    """The same, but for one answer that did not come whole."""
    return lambda command: (
        answer(command, exit_code=None, stdout=b"", failure="interrupted")
        if command.key == key
        else base(command)
    )


def test_a_host_without_cards_and_tool_has_none() -> None:
    assert found(climbed(nothing)) == {"gpu.none": Outcome.WARN}


@pytest.mark.parametrize("key", ["displays", "vendors", "driver", "sleeping", "smi"])
def test_no_gpu_is_said_of_whole_answers_alone(key: str) -> None:
    record, findings = judge(
        Step("gpu", GpuState()), climbed(cut_off(key)), (), lambda _host, _step, key: key
    )
    assert record.status == "incomplete"
    assert "gpu.none" not in {finding.id for finding in findings}


def test_an_end_before_the_tool_answered_leaves_all_unknown() -> None:
    results = climbed(nothing).results
    for count in range(len(results)):
        record, findings = judge(
            Step("gpu", GpuState()), Evidence(HOST, results[:count]), (), lambda _host, _step, key: key
        )
        assert record.status == "incomplete", count
        assert {finding.outcome for finding in findings} == {Outcome.UNKNOWN}, count


def test_an_end_before_the_tool_answered_is_no_tool_that_is_missing() -> None:
    results = climbed().results
    before = [result.key for result in results].index("smi")
    evidence = Evidence(HOST, results[:before])
    assert found(evidence) == {}
    (driver,) = [item for item in told(evidence) if isinstance(item, GpuDriver)]
    assert driver.state == "unasked"
    assert [item.subject for item in told(evidence) if isinstance(item, Gap)] == ["nvidia-smi"]


def test_a_tool_that_may_not_be_started_is_there() -> None:
    def forbidden(command: Command) -> CommandResult | None:
        if command.key == "smi":
            said = b"setsid: failed to execute nvidia-smi: Permission denied"
            return answer(command, exit_code=126, stdout=b"", stderr=said)
        return nothing(command)

    evidence = climbed(forbidden)
    assert found(evidence) == {}
    (gap,) = [item for item in told(evidence) if isinstance(item, Gap)]
    assert "exit code 126: setsid: failed to execute nvidia-smi: Permission denied" in gap.reason


def test_findings_are_documented() -> None:
    changes = (hang("smi"), refused(9, "x"), refused(127, ""), asleep("nvidia-smi", "0"))
    given = {id for change in changes for id in found(climbed(change))}
    assert given <= set(GpuState.findings)


# --- facts as JSON -----------------------------------------------------------------------------------------

FACTS: tuple[Fact, ...] = (
    Gpu(
        index=0,
        clock_reasons=("sw_power_cap",),
        details=(("a", "b"),),
        mig=False,
        source=(Cite("smi", "GPU 0"),),
    ),
    Gpu(index=1, clock_reasons=None),
    Gpu(index=2, clock_reasons=()),
    GpuDriver(stuck=("nvidia-smi pid 9",), open_module=True, log_read=False),
    GpuLink(first=0, second=1, kind="NV18"),
    GpuProcess(pid=4711, gpu=0, memory_mib=1.5),
    GpuFault(kind="xid", number=79),
    GpuWindow(
        index=0, samples=9, started=1_790_000_000.25, ended=1_790_000_003.5, clock_reasons=("gpu_idle",)
    ),
)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: type(fact).__name__)
def test_facts_survive_a_report(fact: Fact) -> None:
    assert reportjson.decode(Fact, reportjson.encode(fact)) == fact


def test_cards_that_only_the_bus_knows_are_not_judged() -> None:
    assert lints.judge([Gpu(bus="0000:41:00.0"), Gpu(vendor="amd", index=0)]) == []
