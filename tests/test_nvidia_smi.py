"""What nvidia-smi, the PCI bus, the kernel's log and AMD's tools write, read as their documentation has it."""

from __future__ import annotations

import pytest

from ddprobe.parsing import amd_smi, nvidia_proc, nvidia_smi, pci, xid

# --- nvidia-smi --------------------------------------------------------------------------------------------


def test_a_query_is_read_by_the_fields_asked_for() -> None:
    text = (
        "index, name, memory.used [MiB], clocks.current.sm [MHz]\n"
        "0, NVIDIA H100 80GB HBM3, 71234 MiB, 1980 MHz\n"
        "1, NVIDIA H100 80GB HBM3, [N/A], 210 MHz\n"
    )
    first, second = nvidia_smi.rows(text, ("index", "name", "memory.used", "clocks.sm"))
    assert first == {
        "index": "0",
        "name": "NVIDIA H100 80GB HBM3",
        "memory.used": "71234 MiB",
        "clocks.sm": "1980 MHz",
    }
    assert nvidia_smi.number(second["memory.used"]) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No devices were found\n",
        "0, NVIDIA H100, 5 MiB\n",
        "index, name\n0, NVIDIA H100\n",
        "index, memory.used [MiB], name\n0, 5 MiB, x\n",
    ],
    ids=["nothing", "a sentence", "no header", "a field too few", "another order"],
)
def test_what_has_another_header_is_not_read(text: str) -> None:
    assert nvidia_smi.rows(text, ("index", "name", "memory.used")) == ()


def test_complaints_around_the_rows_are_no_rows() -> None:
    fields = ("index", "name", "power.draw")
    text = (
        "Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error\n"
        "index, name, power.draw [W]\n0, NVIDIA L4, 35.27 W\n\x00\x00\n2, NVIDIA L4, 35,27 W\n"
    )
    assert [row["index"] for row in nvidia_smi.rows(text, fields)] == ["0"]
    said = nvidia_smi.stray(text, fields)
    assert said == "Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error"
    assert nvidia_smi.lost(said)
    assert nvidia_smi.stray("index, name, power.draw [W]\n0, NVIDIA L4, 1 W\n\x00\n", fields) == ""


def test_a_field_that_is_not_known_is_found_behind_a_complaint() -> None:
    said = 'Unable to determine the device handle for GPU1: Unknown Error\nField "pstate" is not a valid field to query.\n'
    assert nvidia_smi.accepted(("index", "pstate"), said) == ("index",)


def test_a_name_with_commas_stays_whole() -> None:
    text = "gpu_uuid, pid, used_gpu_memory [MiB], process_name\nGPU-1, 77, 512 MiB, python3 -c a, b\n"
    (row,) = nvidia_smi.rows(text, nvidia_smi.APPS)
    assert (row["pid"], row["process_name"]) == ("77", "python3 -c a, b")


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("71234 MiB", 71234.0), ("412.88 W", 412.88), ("98 %", 98.0), ("52", 52.0), ("-3", -3.0), ("0", 0.0),
        ("[N/A]", None), ("N/A", None), ("[Not Supported]", None), ("[GPU requires reset]", None), ("ERR!", None), ("", None),
        ("1e99", None), ("9" * 40, None), ("0x12", None), (None, None),
    ],
)  # fmt: skip
def test_numbers(cell: str | None, number: float | None) -> None:
    assert nvidia_smi.number(cell) == number


def test_whole_numbers_and_switches() -> None:
    assert [nvidia_smi.whole(cell) for cell in ("3", "3.0", "3.5", "[N/A]")] == [3, 3, None, None]
    assert [nvidia_smi.switch(cell) for cell in ("Enabled", "Disabled", "Yes", "No", "[N/A]", "", None)] == [
        True, False, True, False, None, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        ("0x0000000000000000", ()),
        ("0x0000000000000001", ("gpu_idle",)),
        ("0x0000000000000004", ("sw_power_cap",)),
        ("0x0000000000000068", ("hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown")),
        ("0x0000000000000092", ("applications_clocks_setting", "sync_boost", "hw_power_brake_slowdown")),
        ("0x0000000000000100", ("display_clock_setting",)),
        ("0x0000000000000204", ("sw_power_cap", "0x200")),
        ("[N/A]", None),
        ("Active", None),
        ("0x", None),
        ("", None),
        (None, None),
    ],
)
def test_reasons_of_clocks(mask: str | None, names: tuple[str, ...] | None) -> None:
    assert nvidia_smi.reasons(mask) == names


@pytest.mark.parametrize(
    ("cell", "bus"),
    [
        ("00000000:17:00.0", "0000:17:00.0"),
        ("0000000A:3D:00.0", "000a:3d:00.0"),
        ("00010000:3D:00.0", ""),
        ("0000:3D:00.1", "0000:3d:00.1"),
        ("00000008:01:00.0", "0008:01:00.0"),
        ("[N/A]", ""),
        (None, ""),
    ],
)
def test_addresses(cell: str | None, bus: str) -> None:
    assert nvidia_smi.bus(cell) == bus


def test_a_field_that_an_older_driver_does_not_know_is_renamed_or_left_out() -> None:
    fields = ("index", "clocks_event_reasons.active", "compute_cap")
    complaint = 'Field "{}" is not a valid field to query.'
    renamed = nvidia_smi.accepted(fields, complaint.format("clocks_event_reasons.active"))
    assert renamed == ("index", "clocks_throttle_reasons.active", "compute_cap")
    assert nvidia_smi.accepted(renamed, complaint.format("compute_cap")) == renamed[:2]
    assert nvidia_smi.accepted(renamed, complaint.format("clocks_throttle_reasons.active")) == (
        "index",
        "compute_cap",
    )
    assert nvidia_smi.accepted(fields, complaint.format("another")) == fields
    assert nvidia_smi.accepted(fields, "No devices were found") == fields


def test_mig_devices_are_counted_by_card() -> None:
    text = (
        "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f)\n"
        "  MIG 3g.40gb     Device  0: (UUID: MIG-1)\n  MIG 4g.40gb     Device  1: (UUID: MIG-2)\n"
        "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-c0ff)\n"
    )
    assert nvidia_smi.instances(text) == {0: 2, 1: 0}
    assert nvidia_smi.instances("No devices found.\n") == {}


TOPOLOGY = (
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tSYS\tPIX\t0-55,112-167\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tNODE\tSYS\t0-55,112-167\t0\t\tN/A\n"
    "GPU2\tSYS\tNODE\t X \tSYS\t56-111\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\tSYS\t X \n\nLegend:\n\n  X    = Self\n"
)


def test_the_topology_matrix() -> None:
    links, numa = nvidia_smi.topology(TOPOLOGY)
    assert links == ((0, 1, "NV18"), (0, 2, "SYS"), (1, 2, "NODE"))
    assert numa == {0: "0", 1: "0", 2: "1"}
    assert nvidia_smi.topology("Failed to run topology matrix\n") == ((), {})


def test_the_version_of_cuda() -> None:
    text = "NVIDIA-SMI version  : 570.133.20\nDRIVER version      : 570.133.20\nCUDA Version        : 12.8\n"
    assert nvidia_smi.cuda(text) == "12.8"
    assert nvidia_smi.cuda("Invalid combination of input arguments.\n") == ""


# --- what knows of cards without the driver ----------------------------------------------------------------


def test_cards_in_the_drivers_own_files() -> None:
    place = "/proc/driver/nvidia/gpus/0000:17:00.0/information"
    text = (
        f"{place}:Model: \t\t NVIDIA H200\n{place}:GPU UUID: \t GPU-????????-????-????-????-????????????\n"
        f"{place}:Device Minor: \t 0\n{place}:GPU Excluded:\t No\n"
    )
    assert nvidia_proc.cards(text) == (nvidia_proc.Card(bus="0000:17:00.0", model="NVIDIA H200", minor=0),)
    assert (
        nvidia_proc.is_open("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release")
        is True
    )
    assert nvidia_proc.is_open("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu") is False
    assert nvidia_proc.is_open("") is None


def test_cards_on_the_bus() -> None:
    place = "/sys/bus/pci/devices"
    displays = f"{place}/0000:17:00.0/class:0x030200\n{place}/0000:00:02.0/class:0x030000\n{place}/0000:0c:00.0/class:0x120000\n"
    vendors = f"{place}/0000:17:00.0/vendor:0x10de\n{place}/0000:17:00.1/vendor:0x10de\n{place}/0000:0c:00.0/vendor:0x1002\n"
    cards = pci.cards(displays, vendors)
    assert [(card.bus, card.vendor) for card in cards] == [
        ("0000:0c:00.0", "amd"),
        ("0000:17:00.0", "nvidia"),
    ]
    links = (
        f"{place}/0000:17:00.0/current_link_speed:2.5 GT/s PCIe\n{place}/0000:17:00.0/max_link_speed:64.0 GT/s PCIe\n"
        f"{place}/0000:17:00.0/current_link_width:8\n{place}/0000:17:00.0/max_link_width:16\n"
        f"{place}/0000:0c:00.0/current_link_speed:Unknown\n{place}/0000:0c:00.0/current_link_width:63\n"
    )
    gone, fine = pci.with_links(cards, links)
    assert (fine.gen, fine.gen_max, fine.width, fine.width_max, fine.gone) == (1, 6, 8, 16, False)
    assert (gone.gen, gone.width, gone.gone) == (None, None, True)


# --- the kernel's log --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "kind", "number", "bus", "moment"),
    [
        (
            "[ 8123.412345] NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "xid", 79, "0000:41:00.0", "8123.412345 s after start",
        ),
        (
            "[Mon Nov 30 12:00:00 2026] NVRM: Xid (PCI:0000:41:00): 48, pid=12, name=x, An uncorrectable double bit error",
            "xid", 48, "0000:41:00.0", "Mon Nov 30 12:00:00 2026",
        ),
        (
            "2026-11-30T12:00:00+0000 gpu1 kernel: NVRM: Xid (PCI:0000:41:00): 13, Graphics Exception",
            "xid", 13, "0000:41:00.0", "2026-11-30T12:00:00+0000",
        ),
        (
            "[1.5] nvidia-nvswitch3: SXid (PCI:0000:06:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error",
            "sxid", 12028, "0000:06:00.0", "1.5 s after start",
        ),
        (
            "[2.5] NVRM: GPU 0000:41:00.0: GPU has fallen off the bus.", "driver", None, "0000:41:00.0", "2.5 s after start",
        ),
        ("[3.5] NVRM: API mismatch: the client has the version 535.183.01, but", "driver", None, "", "3.5 s after start"),
        ("[4.5] INFO: task nvidia-smi:91244 blocked for more than 120 seconds.", "stuck", 91244, "", "4.5 s after start"),
        ("[5.5] nvidia 0000:41:00.0: PCIe Bus Error: severity=Corrected", "bus", None, "0000:41:00.0", "5.5 s after start"),
        ("[6.5] amdgpu 0000:0c:00.0: amdgpu: GPU reset begin!", "driver", None, "0000:0c:00.0", "6.5 s after start"),
    ],
)  # fmt: skip
def test_lines_of_the_kernels_log(line: str, kind: str, number: int | None, bus: str, moment: str) -> None:
    (found,) = xid.lines(f"[    0.000000] Linux version 6.8.0\n{line}\n")
    assert (found.kind, found.number, found.bus, found.moment, found.at) == (kind, number, bus, moment, 2)


@pytest.mark.parametrize(
    "line",
    [
        "[1.0] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.86.15",
        "[1.0] NVRM: GPU at PCI:0000:41:00: GPU-7a1c",
        "[1.0] INFO: task jbd2/sda1-8:777 blocked for more than 120 seconds.",
        "[1.0] amdgpu: Virtual CRAT table created for CPU",
        "[1.0] a text about an Xid (PCI:0000:41:00): 79",
    ],
)
def test_ordinary_lines_are_none(line: str) -> None:
    assert xid.lines(line) == ()


def test_the_same_kind_of_line_is_counted_and_the_last_is_kept() -> None:
    text = "".join(
        f"[{second}.5] NVRM: Xid (PCI:0000:41:00): 31, pid={second}, MMU Fault\n" for second in (5, 6, 7)
    )
    other = "[6.7] NVRM: Xid (PCI:0000:61:00): 31, MMU Fault\n"
    same, apart = sorted(xid.lines(text + other), key=lambda line: line.bus)
    assert (same.count, same.moment, same.uptime) == (3, "7.5 s after start", 7.5)
    assert (apart.count, apart.bus) == (1, "0000:61:00.0")


# --- AMD ---------------------------------------------------------------------------------------------------


def test_rocm_smi() -> None:
    text = (
        'WARNING: AMD GPU device(s) is/are in a low-power state.\n{"card1": {"Card Series": "N/A", "Card Model": "0x74a1", '
        '"VRAM Total Memory (B)": "1048576", "Temperature (Sensor edge) (C)": "40.0"}, "system": {"Driver version": "6.1"}}'
    )
    (card,) = amd_smi.rocm(text)
    assert (card.index, card.name, card.driver) == (1, "0x74a1", "6.1")
    assert (card.memory_total_mib, card.memory_used_mib, card.temperature_c, card.power_w) == (
        1.0,
        None,
        40.0,
        None,
    )


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", '{"card0": 3}', '{"gpu_data": [{"gpu": true}]}', "no GPU\n"]
)
def test_what_is_no_answer_of_amds_tools(text: str) -> None:
    assert amd_smi.rocm(text) == ()
    assert amd_smi.amd(text, text) == ()


def test_newer_amd_smi_puts_its_list_under_a_name() -> None:
    static = '{"gpu_data": [{"gpu": 2, "asic": {"market_name": "AMD Instinct MI355X"}, "bus": {"bdf": "0000:0C:00.0"}}]}'
    (card,) = amd_smi.amd(static, "")
    assert (card.index, card.name, card.bus) == (2, "AMD Instinct MI355X", "0000:0c:00.0")
    assert card.utilization is None
