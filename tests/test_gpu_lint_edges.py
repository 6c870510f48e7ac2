"""Lints on cards at their limits: just below, at, and just above; several cards, and cards that do not say."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe.facts import Gpu, GpuDriver, GpuFault, GpuLink, GpuProcess, GpuSample, GpuWindow
from ddprobe.lints import pasted_cards, table, xids
from ddprobe.lints.cards import Cards, named
from ddprobe.model import Cite, Fact, Finding, Outcome


def looked(id: str, *facts: Fact) -> Finding | None:
    cards = Cards.of_facts(facts)
    assert cards is not None
    (lint,) = [one for one in table.CARDS if one.id == id]
    found = lint.look(cards)
    assert found is None or "has a bug" not in found.summary, found.summary
    return found


def the(id: str, *facts: Fact) -> Finding:
    found = looked(id, *facts)
    assert found is not None
    return found


def gpu(index: int = 0, **fields: Any) -> Gpu:
    return Gpu(index=index, source=(Cite("smi", f"GPU {index}"),), **fields)


def window(index: int = 0, **fields: Any) -> GpuWindow:
    return GpuWindow(index=index, samples=5, source=(Cite("sampler", f"GPU {index}"),), **fields)


def holder(pid: int, on: int, server: str = "s", **fields: Any) -> GpuProcess:
    return GpuProcess(pid=pid, gpu=on, server=server, source=(Cite("smi", f"pid {pid}"),), **fields)


# --- which cards, and how they are named ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "GPU 0"),
        (7, "GPUs 0, 1, 2, 3, 4, 5, 6"),
        (8, "GPUs 0, 1, 2, 3, 4, 5, 6, 7"),
        (9, "GPUs 0, 1, 2, 3, 4, 5, 6, 7 and 1 more"),
    ],
)
def test_a_sentence_lists_eight_cards(count: int, words: str) -> None:
    assert named(list(range(count))) == words


def test_what_holds_two_cards_and_is_no_server_is_none() -> None:
    cards = Cards.of_facts((gpu(), holder(1, 0, ""), holder(1, 1, ""), GpuProcess(pid=2, server="s")))
    assert cards is not None
    assert cards.served() == ()


# --- clocks --------------------------------------------------------------------------------------------------


def test_of_several_lowered_limits_the_lowest_share_is_told() -> None:
    """500 of 600 W are 83 %, 300 of 400 W are 75 %."""
    mild, hard = (
        gpu(0, power_limit_w=500.0, power_default_w=600.0),
        gpu(1, power_limit_w=300.0, power_default_w=400.0),
    )
    for facts in ((mild, hard), (hard, mild)):
        found = the("GP02", *facts)
        assert found.outcome is Outcome.INFO
        assert found.summary.startswith("GPUs 0, 1 limited to 300 W of 400 W")


@pytest.mark.parametrize("fields", [{"power_limit_w": 700.0}, {"power_default_w": 700.0}])
def test_half_of_what_a_power_limit_needs_tells_nothing(fields: dict[str, Any]) -> None:
    assert the("GP02", gpu(**fields)).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(("utilization", "outcome"), [(49.9, "unknown"), (50.0, "warn"), (None, "unknown")])
def test_a_window_is_under_load_from_half_of_the_time(utilization: float | None, outcome: str) -> None:
    seen = window(utilization=utilization, sm_clock_mhz=900.0, sm_clock_max_mhz=1980.0)
    assert the("GP03", seen).outcome.label == outcome


@pytest.mark.parametrize(("utilization", "outcome"), [(49.9, None), (50.0, "warn")])
def test_a_card_is_under_load_from_half_of_the_time(utilization: float, outcome: str | None) -> None:
    found = looked("GP03", gpu(utilization=utilization, sm_clock_mhz=900.0, sm_clock_max_mhz=1980.0))
    assert (found and found.outcome.label) == outcome


@pytest.mark.parametrize("fields", [{"sm_clock_max_mhz": 1980.0}, {"sm_clock_mhz": 900.0}])
def test_one_of_two_clocks_makes_no_share(fields: dict[str, Any]) -> None:
    assert the("GP03", gpu(utilization=90.0, **fields)).outcome is Outcome.UNKNOWN


def test_a_share_is_told_by_its_thousandths() -> None:
    """660 of 1980 MHz."""
    found = the("GP03", gpu(utilization=90.0, sm_clock_mhz=660.0, sm_clock_max_mhz=1980.0))
    assert found.measured == (("share", 0.333),)


# --- pasted output -------------------------------------------------------------------------------------------


def sample(**fields: Any) -> GpuSample:
    known: dict[str, Any] = {"sm_clock_mhz": 900.0, "moment": "12:00", "source": (Cite("paste"),)}
    return GpuSample(**{**known, **fields})


def test_a_pasted_sample_counts_for_its_clock_or_for_what_holds_it() -> None:
    nothing = sample(index=0, sm_clock_mhz=None)
    held = sample(index=1, sm_clock_mhz=None, throttled_by=("hw_slowdown",))
    clocked = sample(index=2)
    found = pasted_cards.windows((nothing, held, clocked))
    assert [one.index for one in found] == [1, 2]
    assert [one.clock_reasons for one in found] == [("hw_slowdown",), None]


def test_cards_without_a_number_are_counted_from_0_at_every_moment() -> None:
    first, second, later = sample(name="a"), sample(name="b"), sample(name="a", moment="12:01")
    found = pasted_cards.windows((first, second, later))
    assert [(one.index, one.name, one.samples) for one in found] == [(0, "a", 2), (1, "b", 1)]


@pytest.mark.parametrize(("utilization", "clock"), [(49.9, None), (50.0, 900.0), (None, None)])
def test_a_pasted_clock_counts_under_load_only(utilization: float | None, clock: float | None) -> None:
    (found,) = pasted_cards.windows((sample(index=0, utilization=utilization),))
    assert found.sm_clock_mhz == clock
    assert found.utilization == (None if clock is None else utilization)


def test_the_card_is_named_as_in_its_first_sample() -> None:
    first, second = sample(index=0, name="H100"), sample(index=0, name="", moment="12:01")
    assert [one.name for one in pasted_cards.windows((first, second))] == ["H100"]


# --- memory --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "words"), [(1, "1 uncorrected error of"), (2, "2 uncorrected errors of")])
def test_errors_of_all_cards_are_added(count: int, words: str) -> None:
    cards = [gpu(at, ecc=True, ecc_uncorrected=1) for at in range(count)]
    found = the("GP04", *cards, gpu(9, ecc=True, ecc_uncorrected=0))
    assert found.summary.startswith(words)
    assert found.measured == (("errors", count),)


def test_errors_of_a_life_are_added() -> None:
    cards = [gpu(at, ecc=True, ecc_uncorrected=0, ecc_uncorrected_ever=3) for at in range(2)]
    assert "and 6 in the life of GPUs 0, 1" in the("GP04", *cards).summary


def test_ecc_off_on_one_of_two_leaves_the_other_unknown() -> None:
    assert the("GP04", gpu(0, ecc=False), gpu(1, ecc=True)).outcome is Outcome.UNKNOWN


def test_rows_of_all_cards_are_added() -> None:
    cards = [gpu(at, rows_pending=False, rows_failed=False, rows_remapped=2) for at in range(2)]
    assert "(4 were, after uncorrectable errors)" in the("GP05", *cards, gpu(2)).summary


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"rows_pending": True}, "warn"),
        ({"rows_failed": True}, "fail"),
        ({"rows_pending": False}, "pass"),
        ({"rows_failed": False}, "pass"),
    ],
)
def test_one_answer_about_rows_is_enough(fields: dict[str, bool], outcome: str) -> None:
    assert the("GP05", gpu(**fields)).outcome.label == outcome


SERVER = holder(9, 0, memory_mib=70000.0)


def test_memory_of_another_process_may_be_unknown() -> None:
    found = the("GP08", gpu(), SERVER, holder(77, 0, "", name="python3"))
    assert found.outcome is Outcome.WARN
    assert "1 other process holds an unknown amount on the server's cards" in found.summary
    assert found.measured == (("mib", 0),)


@pytest.mark.parametrize(
    ("count", "tail"), [(4, "pid 103 on GPU 0)"), (5, "and 1 more)"), (6, "and 2 more)")]
)
def test_four_other_processes_are_listed(count: int, tail: str) -> None:
    found = the("GP08", gpu(), SERVER, *(holder(100 + at, 0, "", memory_mib=2000.0) for at in range(count)))
    assert found.summary.startswith(f"{count} other processes hold {2000 * count} MiB")
    assert found.summary.endswith(tail)
    assert f"pid {103} on" in found.summary
    assert "pid 104 on" not in found.summary


def test_of_several_cards_the_one_that_lost_most_is_told() -> None:
    """72500 − 70000 = 2500 MiB on the first, 3000 on the second; the third is no server's."""
    cards = (gpu(0, memory_used_mib=72500.0), gpu(1, memory_used_mib=73000.0), gpu(2, memory_used_mib=9000.0))
    found = the("GP08", *cards, SERVER, holder(9, 1, memory_mib=70000.0))
    assert found.summary.startswith("3000 MiB of GPU 1 are held by no process that is shown")


@pytest.mark.parametrize(
    ("fields", "mib"),
    [
        ({}, 70000.0),
        ({"memory_used_mib": 90000.0, "mig": True}, 70000.0),
        ({"memory_used_mib": 90000.0}, None),
    ],
    ids=["use not known", "cut up", "a process that does not say"],
)
def test_what_is_not_known_is_not_lost(fields: dict[str, Any], mib: float | None) -> None:
    assert the("GP08", gpu(**fields), holder(9, 0, memory_mib=mib)).outcome is Outcome.PASS


# --- faults --------------------------------------------------------------------------------------------------

LEVELS = {
    # NVIDIA's catalogue: what a program does wrong; what ends one program or is a warning; a defect; a card that is gone.
    "program": (13, 31, 43, 45, 69),
    "watch": (32, 38, 63, 68, 94, 109, 121, 154),
    "hardware": (48, 64, 74, 92, 136, 144, 145, 149),
    "gone": (61, 62, 79, 95, 110, 119, 120, 140, 143),
}


@pytest.mark.parametrize(
    ("number", "level"), [(number, level) for level, numbers in LEVELS.items() for number in numbers]
)
def test_what_an_xid_means(number: int, level: str) -> None:
    assert xids.meaning(number).level == level
    assert "not listed" not in xids.meaning(number).text


def test_no_other_number_is_in_the_catalogue() -> None:
    assert set(xids.CATALOGUE) == {number for numbers in LEVELS.values() for number in numbers}
    for number in set(range(200)) - set(xids.CATALOGUE):
        assert xids.meaning(number) is xids.UNLISTED
    assert xids.meaning(None) is xids.UNLISTED


@pytest.mark.parametrize(
    ("count", "tail"),
    [
        (3, ""),
        (4, ""),
        (5, "; and 1 further kind of line"),
        (6, "; and 2 further kinds of line"),
    ],
)
def test_the_last_four_of_the_worst_are_told(count: int, tail: str) -> None:
    faults = [GpuFault(kind="xid", number=48, gpu=at) for at in range(count)]
    found = the("GP06", *faults)
    told = [f"XID 48 on GPU {at}: double-bit ECC error" for at in range(count)][-4:]
    assert found.summary == "; ".join(told) + tail


@pytest.mark.parametrize(
    ("count", "moment", "words"),
    [
        (1, "", ""),
        (2, "", " (2 times)"),
        (1, "5 h ago", " (5 h ago)"),
        (2, "5 h ago", " (2 times, last 5 h ago)"),
    ],
)
def test_how_often_and_when(count: int, moment: str, words: str) -> None:
    fault = GpuFault(kind="xid", number=48, gpu=2, count=count, moment=moment)
    assert the("GP06", fault).summary == f"XID 48 on GPU 2: double-bit ECC error{words}"


@pytest.mark.parametrize(
    ("kind", "text", "outcome"),
    [
        ("driver", "NVRM: GPU 0000:41:00.0: RmInitAdapter failed! (0x24:0xffff:1436)", "fail"),
        ("driver", "NVRM: GPU is lost", "fail"),
        ("driver", "NVRM: GPU reset required", "fail"),
        ("driver", "NVRM: loading out of tree", "warn"),
        ("sxid", "Fatal, Link 32 failed", "fail"),
        ("sxid", "Non-fatal, Link 32", "warn"),
        ("bus", "pcieport 0000:40:01.0: AER: Corrected error", "warn"),
    ],
)
def test_lines_that_are_no_xid(kind: str, text: str, outcome: str) -> None:
    found = the("GP06", GpuFault(kind=kind, number=12028 if kind == "sxid" else None, text=text))
    assert found.outcome.label == outcome
    where = "SXid 12028 of an NVSwitch" if kind == "sxid" else "a card"
    assert found.summary == f"{where}: {text}"


def test_a_log_that_was_read_is_cited_and_nothing_else() -> None:
    asked = GpuDriver(log_read=True, source=(Cite("dmesg"), Cite("nvidia-smi"), Cite("journal")))
    assert the("GP06", asked).cites == (Cite("dmesg"), Cite("journal"))


def test_a_hung_task_without_a_driver_is_no_xid() -> None:
    found = the("GP06", GpuFault(kind="stuck", text="task nvidia-smi:4711 blocked"))
    assert (found.outcome, found.cites) == (Outcome.PASS, ())


# --- links ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [{"pcie_width": 16}, {"pcie_width_max": 16}])
def test_one_of_two_widths_tells_nothing(fields: dict[str, int]) -> None:
    assert the("GP07", gpu(**fields)).outcome is Outcome.UNKNOWN


def test_the_first_of_several_narrow_or_slow_links_is_told() -> None:
    full: dict[str, Any] = {"pcie_width_max": 16, "pcie_gen_max": 5, "utilization": 90.0}
    cards = (
        gpu(0, pcie_width=8, pcie_gen=5, **full),
        gpu(1, pcie_width=4, pcie_gen=5, **full),
        gpu(2, pcie_width=16, pcie_gen=4, **full),
        gpu(3, pcie_width=16, pcie_gen=3, **full),
    )
    assert "GPUs 0, 1 × 8 of 16; GPUs 2, 3 at generation 4 of 5 under load" in the("GP07", *cards).summary


@pytest.mark.parametrize(
    ("seen", "utilization", "outcome", "words"),
    [
        ((), 0.0, "pass", "speed not judged: no card was under load"),
        ((None,), 0.0, "pass", "speed not judged: no card was under load"),
        ((None,), 90.0, "warn", "at generation 3 of 5 under load"),
        ((4,), 0.0, "warn", "at generation 4 of 5 under load"),
        ((4, 5, 1), 90.0, "pass", "speed judged under load on 1 of 1"),
    ],
)
def test_the_fastest_generation_of_the_sampler_counts_before_one_look(
    seen: tuple[int | None, ...], utilization: float, outcome: str, words: str
) -> None:
    card = gpu(pcie_width=16, pcie_width_max=16, pcie_gen=3, pcie_gen_max=5, utilization=utilization)
    found = the("GP07", card, *(window(pcie_gen=gen) for gen in seen))
    assert found.outcome.label == outcome
    assert words in found.summary


@pytest.mark.parametrize(
    ("kinds", "outcome", "words"),
    [
        (("PIX", "SYS", "SYS"), "warn", "2 of 3 pairs of them reach each other across the processors (SYS)"),
        (("PHB", "NODE", "PIX"), "warn", "1 of 3 pairs of them reach each other across host bridges (NODE)"),
        (("PHB", "PIX", "PHB"), "info", "2 of 3 pairs of them reach each other through the host's bridge"),
        (("PXB", "NV18", "PIX"), "pass", "by NVLink or a PCIe switch"),
    ],
)
def test_the_farthest_kind_of_link_is_told(kinds: tuple[str, ...], outcome: str, words: str) -> None:
    pairs = ((0, 1), (0, 2), (1, 2))
    links = [GpuLink(first=a, second=b, kind=kind) for (a, b), kind in zip(pairs, kinds, strict=True)]
    found = the("GP09", gpu(), *links, *(holder(at, at) for at in range(3)))
    assert found.outcome.label == outcome
    assert words in found.summary


def test_links_of_other_cards_say_nothing_of_these() -> None:
    far = GpuLink(first=2, second=3, kind="SYS")
    assert the("GP09", gpu(), far, holder(1, 0), holder(1, 1)).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("names", "outcome"),
    [
        (("L4", "L4", "L4"), "pass"),
        (("L4", "L4", "H100"), "info"),  # the third is no server's
        (("L4", "H100", "L4"), "warn"),
    ],
)
def test_cards_of_one_server_are_compared_by_their_names(names: tuple[str, ...], outcome: str) -> None:
    cards = [gpu(at, name=name) for at, name in enumerate(names)]
    assert the("GP12", *cards, holder(1, 0), holder(1, 1)).outcome.label == outcome


@pytest.mark.parametrize(
    ("instances", "words"),
    [(None, "(0 instances)"), (1, "(1 instance)"), (2, "(2 instances)")],
)
def test_instances_of_a_card_that_is_cut_up(instances: int | None, words: str) -> None:
    assert words in the("GP12", gpu(name="A100", mig=True, mig_instances=instances)).summary


def test_a_card_without_a_name_is_no_other_kind() -> None:
    told = the("GP12", gpu(0, name="NVIDIA L4"), gpu(1, name=""))
    assert told.outcome.label == "pass"
    assert the("GP12", gpu(0, name=""), gpu(1, name="")).summary.startswith("2 × a card without a name")


# --- cards that do not say -----------------------------------------------------------------------------------

SAYS: dict[str, dict[str, Any]] = {
    "GP01": {"clock_reasons": ()},
    "GP02": {"power_limit_w": 700.0, "power_default_w": 700.0},
    "GP04": {"ecc": True, "ecc_uncorrected": 0},
    "GP05": {"rows_pending": False, "rows_failed": False},
    "GP07": {"pcie_width": 16, "pcie_width_max": 16},
    "GP10": {"persistence": True},
    "GP12": {"mig": False},
}
"""What a card says that passes."""
ALL_HAVE = ("GP01", "GP02", "GP07", "GP10")
"""Lints on what every card has; the others are on what a kind of card may lack."""


@pytest.mark.parametrize("id", SAYS)
def test_what_some_cards_do_not_say_is_unknown_of_these(id: str) -> None:
    says, silent = [gpu(at, name="H100", **SAYS[id]) for at in range(2)], gpu(2, name="H100")
    assert the(id, *says).outcome is Outcome.PASS
    found = the(id, *says, silent)
    assert found.outcome is Outcome.UNKNOWN
    assert found.summary.endswith("of GPU 2")
    assert Cite("smi", "GPU 2") in found.cites


@pytest.mark.parametrize("id", SAYS)
def test_what_another_kind_of_card_does_not_have_is_known(id: str) -> None:
    found = the(id, gpu(0, name="H100", **SAYS[id]), gpu(1, name="T400"))
    known = {"GP12": Outcome.INFO}.get(id, Outcome.PASS)
    assert found.outcome is (Outcome.UNKNOWN if id in ALL_HAVE else known)


@pytest.mark.parametrize(
    ("id", "field"),
    [
        ("GP04", "ecc.mode.current"),
        ("GP05", "remapped_rows.pending"),
        ("GP12", "mig.mode.current"),
        ("GP12", "name"),
    ],
)
def test_what_a_cell_withholds_is_unknown_whatever_the_kind(id: str, field: str) -> None:
    says = gpu(0, name="H100", **SAYS[id])
    withheld = gpu(1, name="H100" if field != "name" else "", unread=((field, "[Unknown Error]"),))
    other = gpu(1, name="H100", unread=(("clocks.sm", "[Unknown Error]"),), **SAYS[id])
    assert the(id, says, withheld).outcome is Outcome.UNKNOWN
    assert the(id, says, other).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("id", "bad", "outcome"),
    [
        ("GP01", {"clock_reasons": ("hw_slowdown",)}, "fail"),
        ("GP01", {"clock_reasons": ("sw_thermal_slowdown",)}, "warn"),
        ("GP04", {"ecc": True, "ecc_uncorrected": 1}, "fail"),
        ("GP04", {"ecc": True, "ecc_uncorrected": 0, "ecc_uncorrected_ever": 1}, "unknown"),
        ("GP05", {"rows_failed": True}, "fail"),
        ("GP05", {"rows_pending": True}, "warn"),
        ("GP07", {"pcie_width": 8, "pcie_width_max": 16}, "warn"),
        ("GP10", {"persistence": False}, "unknown"),
        ("GP12", {"mig": True, "mig_instances": 2}, "unknown"),
    ],
)
def test_a_fault_stands_beside_what_is_not_known(id: str, bad: dict[str, Any], outcome: str) -> None:
    alone, found = the(id, gpu(0, **bad)), the(id, gpu(0, **bad), gpu(1))
    assert found.outcome.label == outcome
    assert found.summary.startswith(alone.summary)
    assert found.summary.endswith("of GPU 1")
    assert found.advice == alone.advice


def test_ecc_that_is_off_beside_counts_is_told() -> None:
    found = the("GP04", gpu(0, ecc=True, ecc_uncorrected=0), gpu(1, ecc=False))
    assert found.outcome is Outcome.INFO
    assert "ECC is off on GPU 1" in found.summary


def test_counts_that_no_card_tells_are_not_those_of_cards_without_ecc() -> None:
    hidden = {"unread": (("ecc.mode.current", "[Insufficient Permissions]"),)}
    assert the("GP04", gpu(0, **hidden)).outcome is Outcome.UNKNOWN


def test_what_a_sampler_saw_of_a_card_is_known_of_it() -> None:
    seen = window(1, clock_reasons=())
    assert the("GP01", gpu(0, clock_reasons=()), gpu(1), seen).outcome is Outcome.PASS
    assert the("GP01", gpu(0, clock_reasons=()), gpu(2), seen).outcome is Outcome.UNKNOWN


def test_a_loaded_card_without_a_clock_is_named() -> None:
    fast: dict[str, Any] = {"utilization": 99.0, "sm_clock_mhz": 1980.0, "sm_clock_max_mhz": 1980.0}
    idle, mute = gpu(1, utilization=0.0), gpu(2, utilization=99.0)
    assert the("GP03", gpu(0, **fast), idle).outcome is Outcome.PASS
    assert the("GP03", gpu(0, **fast), mute).summary.endswith("the clock under load of GPU 2")
    lost = gpu(3, unread=(("utilization.gpu", "[GPU is lost]"),))
    assert the("GP03", gpu(0, **fast), lost).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("instances", "words"), [(0, "none cut up by MIG"), (None, "known not to be cut up by MIG: 0")]
)
def test_a_list_without_instances_tells_that_none_is_cut_up(instances: int | None, words: str) -> None:
    found = the(
        "GP12", gpu(0, name="L4", mig_instances=instances), gpu(1, name="L4", mig_instances=instances)
    )
    assert found.outcome is Outcome.PASS
    assert words in found.summary


def test_a_pair_of_cards_whose_link_is_not_known_is_named() -> None:
    links = [GpuLink(first=0, second=1, kind="NV18"), GpuLink(first=0, second=2, kind="NV18")]
    holders = [holder(at, at) for at in range(3)]
    assert "GPUs 1, 2 of s" in the("GP09", gpu(), *links, *holders).summary
    whole = GpuLink(first=1, second=2, kind="NV18")
    assert the("GP09", gpu(), *links, whole, *holders).outcome is Outcome.PASS
