"""`gpu`: the GPUs of a host, and how they are."""

from __future__ import annotations

from ddprobe.cli import flow, targets
from ddprobe.cli.options import Hosts, Options, with_options


@with_options()
def gpu(options: Options, hosts: Hosts = None) -> int:
    """GPUs of the hosts: driver, memory, clocks and their reasons, links, processes, errors of memory, XIDs.

    Files of the kernel are looked at first and nvidia-smi last: a driver that hangs is told, and not touched again.

    Example: ddprobe gpu gpu1 gpu2
    """
    from ddprobe.model import Step
    from ddprobe.probes.gpu.state import GpuState

    chosen = targets.resolve(hosts, options)
    return flow.look("gpu", chosen, [Step("gpu", GpuState())], options)
