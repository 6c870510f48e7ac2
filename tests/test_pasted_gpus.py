"""Cards that are slowed down, seen in pasted nvidia-smi output: findings, and a line in the ledger."""

from __future__ import annotations

import pytest

from ddprobe import evidence, rejudging
from ddprobe.evidence.document import of_bytes
from ddprobe.model import Finding, Host, Hypothesis, Outcome

NAMES = "index, name, utilization.gpu [%], temperature.gpu, clocks.sm [MHz], clocks.max.sm [MHz]"
SLOW = "0, NVIDIA H100 80GB HBM3, 98 %, 88, 345 MHz, 1980 MHz"
FINE = "1, NVIDIA H100 80GB HBM3, 97 %, 61, 1755 MHz, 1980 MHz"
HOT = f"{NAMES}, clocks_event_reasons.active\n{SLOW}, 0x0000000000000060\n{FINE}, 0x0000000000000000\n"
LOW = f"{NAMES}\n{SLOW}\n{FINE}\n"
LOG = """\
==============NVSMI LOG==============

Driver Version                            : 570.86.15
Attached GPUs                             : 2
GPU 00000000:17:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    Clocks Event Reasons
        Idle                              : Not Active
        SW Power Cap                      : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
        SW Thermal Slowdown               : Not Active
    FB Memory Usage
        Total                             : 81559 MiB
        Used                              : 71000 MiB
    Utilization
        Gpu                               : 98 %
    Temperature
        GPU Current Temp                  : 88 C
    Clocks
        SM                                : 345 MHz
    Max Clocks
        SM                                : 1980 MHz
GPU 00000000:18:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    Clocks Event Reasons
        Idle                              : Active
        HW Slowdown                       : Not Active
    Clocks
        SM                                : 345 MHz
    Max Clocks
        SM                                : 1980 MHz
"""
DEAD = (
    "[2026-09-10 12:00:00] server_args=ServerArgs(model_path='/m', speculative_algorithm='DFLASH', "
    "speculative_num_draft_tokens=16)\n"
    + "[2026-09-10 12:01:00] Decode batch. #running-req: 1, #token: 2000, token usage: 0.01, accept len: 1.00, "
    "accept rate: 0.00, cuda graph: True, gen throughput (token/s): 60.0, #queue-req: 0\n" * 60
)  # fmt: skip


def judged(*texts: str) -> tuple[dict[str, Finding], list[str], Hypothesis]:
    readings = [evidence.recognise(of_bytes(str(at), text.encode())) for at, text in enumerate(texts)]
    facts, findings = rejudging.judge_files(evidence.ordered(readings), "collected", {})
    verdicts, ledger = rejudging.ruled(Host(name="collected"), facts, findings)
    (line,) = (one for one in ledger if one.name == "gpu_state")
    return {f.id: f for f in findings if f.id.startswith("GP")}, [v.name for v in verdicts], line


@pytest.mark.parametrize("text", [HOT, LOG], ids=["csv", "log"])
def test_a_card_that_is_held_down(text: str) -> None:
    found, _, line = judged(text)
    assert found["GP01"].outcome is Outcome.FAIL
    assert found["GP01"].summary.startswith("GPU 0 slowed down by")
    assert "up to 88 °C (1 sample" in found["GP01"].summary
    assert found["GP03"].outcome is Outcome.WARN
    assert found["GP03"].summary.startswith("GPU 0 at 345 of 1980 MHz under load (17%, limit 70%); held by")
    assert "clocks are held down by hw_" in line.evidence


def test_a_clock_that_is_low() -> None:
    found, _, line = judged(LOW)
    assert set(found) == {"GP03"}
    assert found["GP03"].summary.endswith("under load (17%, limit 70%); nothing says what holds it")
    assert line.evidence.startswith("GP03: GPU 0 at 345 of 1980 MHz")


def test_beside_a_dead_drafter() -> None:
    found, names, line = judged(HOT, DEAD)
    assert found["GP01"].outcome is Outcome.FAIL
    assert names == ["drafter_dead"]
    assert (line.status, line.evidence[:24]) == ("untested", "clocks are held down by ")


@pytest.mark.parametrize(
    "text",
    [
        LOW.replace("98 %", "0 %"),
        LOW.replace("345 MHz", "1750 MHz"),
        LOW.replace("345 MHz", "[N/A]"),
        LOG.replace(": Active", ": Not Active").replace("98 %", "3 %"),
    ],
    ids=["idle", "near its highest", "no clock", "idle, in a log"],
)
def test_a_card_that_is_not_slowed_down(text: str) -> None:
    found, _, line = judged(text)
    assert all(finding.outcome is Outcome.PASS for finding in found.values())
    assert line.evidence == ""


def test_a_power_limit_alone_is_no_fault() -> None:
    found, _, _ = judged(
        HOT.replace("0x0000000000000060", "0x0000000000000004").replace("345 MHz", "1700 MHz")
    )
    assert {id: finding.outcome for id, finding in found.items()} == {
        "GP01": Outcome.PASS,
        "GP03": Outcome.PASS,
    }


def test_samples_of_a_card_are_one() -> None:
    rows = "".join(f"2026/09/10 12:00:{second:02d}, 0, 97 %, 600 MHz, 1980 MHz\n" for second in range(30))
    found, _, _ = judged(
        "timestamp, index, utilization.gpu [%], clocks.sm [MHz], clocks.max.sm [MHz]\n" + rows
    )
    assert found["GP03"].summary.startswith("GPU 0 at 600 of 1980 MHz under load (30%, limit 70%)")


def test_cards_without_a_number() -> None:
    found, _, _ = judged("\n".join(line.partition(", ")[2] for line in LOW.splitlines()))
    assert found["GP03"].summary.startswith("GPU 0 at 345 of 1980 MHz")


# --- what somebody set, and what the kernel says -----------------------------------------------------------

SET = f"{NAMES}, clocks_event_reasons.active\n0, NVIDIA H100 80GB HBM3, 98 %, 51, 1200 MHz, 1980 MHz, 0x0000000000000002\n"
LIMITS = (
    "index, name, utilization.gpu [%], power.draw [W], power.limit [W], power.default_limit [W], clocks_event_reasons.active\n"
    "0, NVIDIA H100 80GB HBM3, 98 %, 199 W, 200 W, 700 W, {reasons}\n"
)


@pytest.mark.parametrize(
    "text",
    [
        SET,
        SET.replace(
            "clocks_event_reasons.active", "clocks_event_reasons.applications_clocks_setting"
        ).replace("0x0000000000000002", "Active"),
        LOG.replace(": Active", ": Not Active")
        .replace(
            "Idle                              : Not Active", "Applications Clocks Setting       : Active", 1
        )
        .replace("SM                                : 345", "SM                                : 1200", 1),
    ],
    ids=["bits", "a column", "log"],
)
def test_clocks_that_somebody_set_are_named_and_no_slowdown(text: str) -> None:
    found, _, _ = judged(text)
    assert found["GP01"].outcome is Outcome.PASS
    assert found["GP03"].summary.endswith("(61%, limit 70%); held by applications_clocks_setting")
    assert "-rac" in found["GP03"].advice


@pytest.mark.parametrize(
    ("text", "outcome", "said"),
    [
        (LIMITS.format(reasons="0x0000000000000004"), Outcome.WARN, "GPU 0 limited to 200 W of 700 W, and it binds"),
        (LIMITS.format(reasons="0x0000000000000000"), Outcome.INFO, "GPU 0 limited to 200 W of 700 W"),
        (LIMITS.format(reasons="0x0000000000000000").replace("200 W", "700 W"), Outcome.PASS, "no power limit"),
    ],
    ids=["it binds", "it does not", "not lowered"],
)  # fmt: skip
def test_a_power_limit_that_was_lowered(text: str, outcome: Outcome, said: str) -> None:
    found, _, _ = judged(text)
    assert (found["GP02"].outcome, found["GP02"].summary.startswith(said)) == (outcome, True)


def test_the_limits_of_a_log() -> None:
    power = "    GPU Power Readings\n        Power Draw                        : 199.00 W\n"
    power += "        Current Power Limit               : 200.00 W\n        Default Power Limit               : 700.00 W\n"
    found, _, _ = judged(LOG.replace("    Utilization\n", power + "    Utilization\n", 1))
    assert found["GP02"].summary == "GPU 0 limited to 200 W of 700 W"


@pytest.mark.parametrize(
    ("clocks", "said"),
    [
        ((1980, 600), "GPU 0 at 600 of 1980 MHz"),
        ((1980, 1980, 1980, 1980, 600), "GPU 0 at 600 of 1980 MHz"),
        ((1980, 1980, 1980, 1980, 1980, 600), ""),
        ((1980, 1980, 1980, 1980, 700, 600), "GPU 0 at 700 of 1980 MHz"),
    ],
    ids=["one of two", "one of five", "one of six", "two of six"],
)
def test_a_clock_that_was_seen_counts_and_no_mean(clocks: tuple[int, ...], said: str) -> None:
    rows = "".join(f"0, NVIDIA H100 80GB HBM3, 98 %, 60, {clock} MHz, 1980 MHz\n" for clock in clocks)
    found, _, _ = judged(f"{NAMES}\n{rows}")
    assert found["GP03"].summary.startswith(said or "SM clocks under load")
    assert found["GP03"].outcome is (Outcome.WARN if said else Outcome.PASS)


XID = "NVRM: Xid (PCI:0000:19:00): {number}, pid='<unknown>', name=<unknown>, {text}\n"
FALLEN = XID.format(number=79, text="GPU has fallen off the bus.")


@pytest.mark.parametrize(
    ("text", "outcome", "said"),
    [
        (f"[ 9001.120000] {FALLEN}", Outcome.FAIL, "XID 79 on 0000:19:00.0: the card has fallen off the bus"),
        (f"2026-11-30T12:00:00+0000 gpu1 kernel: {FALLEN}", Outcome.FAIL, "XID 79"),
        (f"[ 1.5] usb 1-1: new device\n[ 9001.1] {FALLEN}[ 9002.1] eth0: link up\n", Outcome.FAIL, "XID 79"),
        ("[ 7.000000] " + XID.format(number=63, text="Row Remapper: New row"), Outcome.WARN, "XID 63"),
        ("[ 7.000000] " + XID.format(number=31, text="MMU Fault"), Outcome.INFO, "XID 31"),
    ],
    ids=["dmesg", "journal", "among other lines", "to watch", "of a program"],
)  # fmt: skip
def test_a_kernel_log(text: str, outcome: Outcome, said: str) -> None:
    found, _, _ = judged(text)
    assert (found["GP06"].outcome, found["GP06"].summary.startswith(said)) == (outcome, True)
    (cite,) = found["GP06"].cites
    assert cite.at == f"line {text[: text.index('NVRM')].count(chr(10)) + 1}"


@pytest.mark.parametrize(
    "text",
    [
        "[ 1.0] usb 1-1: new device\n",
        "[ 1.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.65.06\n",
        "What does NVRM: Xid mean, please?\n",
    ],
)
def test_a_kernel_log_without_a_word_on_cards(text: str) -> None:
    assert "GP06" not in judged(text)[0]
