"""What `nvidia-smi` and its like say of one GPU at one moment."""

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
    temperature_c: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    throttled_by: tuple[str, ...] = ()
    """Reasons for lowered clocks that are in force."""
