"""GPUs: what a driver, its tools and the kernel say of each card, of the links between them, and over a time."""

from __future__ import annotations

from dataclasses import dataclass

from ddprobe.model import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSample(Fact):
    """One GPU at one moment. None is "it does not say"."""

    index: int | None = None
    name: str = ""
    moment: str = ""
    """As it stands there."""
    utilization: float | None = None
    """Share of the time in which any kernel ran, percent: says nothing of how much of the GPU it used."""
    memory_utilization: float | None = None
    """Share of the time in which memory was read or written, percent: no bandwidth."""
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    power_default_w: float | None = None
    """The limit that the card comes with."""
    temperature_c: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    throttled_by: tuple[str, ...] = ()
    """Reasons for lowered clocks that are in force, clocks that somebody set among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuDriver(Fact):
    """The driver of a host's cards, and how far it could be asked. One for each host that has any."""

    vendor: str = "nvidia"
    """`nvidia` or `amd`."""
    module: str = ""
    """Version of the kernel module that is loaded, by `/proc/driver/nvidia/version`."""
    open_module: bool | None = None
    """True for NVIDIA's open kernel module."""
    tool: str = ""
    """`nvidia-smi`, `amd-smi` or `rocm-smi`: the one that answered; empty when none did."""
    tool_version: str = ""
    """Version of the driver by the tool's own libraries."""
    cuda: str = ""
    """Newest CUDA that the driver runs: `13.0`."""
    state: str = "answers"
    """`answers`, `hangs` (it was asked and did not answer in time), `stuck` (processes hung in it, so it was not
    asked), `refuses` (the tool ended with an error), `garbled` (it wrote something unreadable), `absent` (there is no
    tool), `cut` (the answer did not come whole) or `unasked` (no tool was started: who sleeps in the kernel is unknown, or
    the run ended before)."""
    complaint: str = ""
    """What the tool said in place of an answer."""
    stuck: tuple[str, ...] = ()
    """Processes in uninterruptible sleep that wait in the driver: `nvidia-smi pid 4711 (since …)`."""
    log_read: bool | None = None
    """Whether the kernel's log could be read; None when it was not asked for."""
    dcgm: str = ""
    """`dcgmi`'s version where it is installed; empty otherwise."""
    nodes: int | None = None
    """Cards that the PCI bus lists with this vendor's number, whether the driver sees them or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu(Fact):
    """One card. None (an empty text) is "it does not say"; where the driver hangs, only name and bus are known."""

    index: int | None = None
    vendor: str = "nvidia"
    name: str = ""
    bus: str = ""
    """PCI address: `0000:17:00.0`, in lower case."""
    uuid: str = ""
    minor: int | None = None
    driver: str = ""
    compute_capability: str = ""
    """`9.0`"""
    memory_total_mib: float | None = None
    memory_used_mib: float | None = None
    utilization: float | None = None
    """Share of the last moments in which any kernel ran, percent: 100 is not "busy"."""
    memory_utilization: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    """The limit that is in force."""
    power_default_w: float | None = None
    """The limit that the card comes with."""
    temperature_c: float | None = None
    slowdown_margin_c: float | None = None
    """Degrees that are left until the clocks are lowered, where the card tells (`temperature.gpu.tlimit`)."""
    memory_temperature_c: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    memory_clock_mhz: float | None = None
    memory_clock_max_mhz: float | None = None
    performance_state: str = ""
    """`P0`"""
    clock_reasons: tuple[str, ...] | None = None
    """Why the clocks are where they are: `gpu_idle`, `sw_power_cap`, `hw_thermal_slowdown`, …; None when unknown."""
    persistence: bool | None = None
    mig: bool | None = None
    mig_instances: int | None = None
    ecc: bool | None = None
    ecc_uncorrected: int | None = None
    """Uncorrected memory errors since the driver was loaded."""
    ecc_uncorrected_ever: int | None = None
    ecc_corrected: int | None = None
    """Corrected memory errors since the driver was loaded."""
    rows_remapped: int | None = None
    """Rows replaced after uncorrectable errors."""
    rows_pending: bool | None = None
    """A row waits to be replaced at the next reset."""
    rows_failed: bool | None = None
    """A row could not be replaced."""
    pcie_gen: int | None = None
    pcie_gen_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    numa: str = ""
    """NUMA node of the card by the topology matrix."""
    unread: tuple[tuple[str, str], ...] = ()
    """Fields of nvidia-smi that hold no value though the card has such a thing, with what stands there:
    `("memory.used", "[GPU is lost]")`. One that the card does not have (`[N/A]`) is none of them."""
    details: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """`GPU 3`, or where it is on the bus when it has no number."""
        return f"GPU {self.index}" if self.index is not None else f"GPU at {self.bus or 'an unknown place'}"

    @property
    def kind(self) -> str:
        """Its name as samples have it: a card cut up by MIG says so, since what runs on a part has a part's bandwidth."""
        return f"{self.name} MIG" if self.name and self.mig else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLink(Fact):
    """How two cards reach each other."""

    first: int
    second: int
    kind: str
    """As the topology matrix says: `NV18`, `PIX`, `PXB`, `PHB`, `NODE`, `SYS`; `XGMI` or `PCIE` on AMD."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess(Fact):
    """A process that holds memory of a card."""

    pid: int
    gpu: int | None = None
    """The card's index."""
    uuid: str = ""
    name: str = ""
    memory_mib: float | None = None
    kind: str = "compute"
    """`compute`, `graphics` or `stuck` (in uninterruptible sleep, whatever card it holds)."""
    user: str = ""
    container: str = ""
    """`docker 3f2a9c…` when its control group says so."""
    server: str = ""
    """`sglang pid 4711`: the inference server it belongs to; empty for any other."""
    visible: bool = True
    """False when the process table does not show it: it is in another name space, or has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFault(Fact):
    """Something that the kernel's log says of a card."""

    kind: str
    """`xid`, `sxid` (NVSwitch), `driver` (any other complaint of the driver), `stuck` (a hung task) or `bus` (PCIe)."""
    number: int | None = None
    """The XID."""
    bus: str = ""
    gpu: int | None = None
    moment: str = ""
    """As the log has it."""
    text: str = ""
    count: int = 1
    """How often it stands in what was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuWindow(Fact):
    """What a sampler saw of one card while one point was measured. None is "it does not say"."""

    index: int
    name: str = ""
    base: str = ""
    """The server that was measured: `http://127.0.0.1:30000`."""
    purpose: str = ""
    """That of the point: `point`, `step-time`, `step-time again`, …"""
    arm: str = ""
    context_tokens: int | None = None
    """The point's length, as asked for."""
    samples: int = 0
    started: float = 0.0
    """First and last moment of the window, seconds since the epoch on the laptop's clock."""
    ended: float = 0.0
    offset_seconds: float | None = None
    """Host's clock minus the laptop's, by which the samples were placed."""
    offset_uncertainty_seconds: float | None = None
    utilization: float | None = None
    """Median; percent of the time with any kernel running. 100 is not "busy"."""
    utilization_low: float | None = None
    utilization_high: float | None = None
    memory_utilization: float | None = None
    sm_clock_mhz: float | None = None
    """Median of the samples in which a kernel ran, of all where none did; so its ends."""
    sm_clock_low_mhz: float | None = None
    sm_clock_high_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    memory_clock_mhz: float | None = None
    """Median of the same samples as the clock of the SMs."""
    memory_clock_max_mhz: float | None = None
    power_w: float | None = None
    power_low_w: float | None = None
    power_high_w: float | None = None
    power_limit_w: float | None = None
    power_default_w: float | None = None
    """The limit that the card comes with, of pasted samples."""
    temperature_c: float | None = None
    temperature_low_c: float | None = None
    temperature_high_c: float | None = None
    memory_used_mib: float | None = None
    memory_used_low_mib: float | None = None
    memory_used_high_mib: float | None = None
    memory_total_mib: float | None = None
    clock_reasons: tuple[str, ...] | None = None
    """Every reason that was in force in any sample; None when none of them tells."""
    sm_active: float | None = None
    """Mean share of SM time with a warp on it, 0…1 (DCGM 1002), where the host has it."""
    dram_active: float | None = None
    """Mean share of cycles in which memory moved data, 0…1 (DCGM 1005)."""
    tensor_active: float | None = None
    pcie_gen: int | None = None
    pcie_width: int | None = None

    @property
    def working_clock_mhz(self) -> float | None:
        """Clock of the SMs at work. None where no sample saw a kernel run: an idle card lowers its clock."""
        return None if self.utilization_high == 0 else self.sm_clock_mhz
