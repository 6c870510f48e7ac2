"""`inspect-config`: drafter, target and server arguments side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from ddprobe.cli import flow, targets
from ddprobe.cli.options import Hosts, Options, with_options


@with_options()
def inspect_config(
    options: Options,
    hosts: Hosts = None,
    drafter: Annotated[
        str | None, typer.Option(metavar="P", help="The drafter: a folder or file on the host, or a hub id.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="P", help="The target: a folder or file on the host, or a hub id.")
    ] = None,
) -> int:
    """Drafter config, target config and server arguments side by side, and what is wrong between them.

    What is not given is found: the running server, its arguments, the Hugging Face cache. The report says what was
    found, and from what.

    Example: ddprobe inspect-config gpu1 --drafter z-lab/Kimi-K2.6-DFlash
    """
    from ddprobe.model import Step
    from ddprobe.probes.draft.config import DraftConfig

    chosen = targets.resolve(hosts, options)
    given = {name: value for name, value in (("drafter", drafter), ("target", target)) if value}
    return flow.look("inspect-config", chosen, [Step("config", DraftConfig(**given))], options)
