"""`server`: which engines run on a host, and how they are."""

from __future__ import annotations

from ddprobe.cli import flow, targets
from ddprobe.cli.options import Hosts, Options, with_options


@with_options()
def server(options: Options, hosts: Hosts = None) -> int:
    """Which engines run on the hosts: version, arguments, model, health, load, cache, environment that matters.

    Example: ddprobe server gpu1 gpu2
    """
    from ddprobe.model import Step
    from ddprobe.probes.engine.server import EngineServer

    chosen = targets.resolve(hosts, options)
    return flow.look("server", chosen, [Step("server", EngineServer())], options)
