"""From the command line's words to hosts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ddprobe import inventory
from ddprobe.cli import streams
from ddprobe.cli.options import Options
from ddprobe.errors import UsageError
from ddprobe.inventory import Inventory
from ddprobe.model import Host
from ddprobe.parsing import sizes


def load(options: Options) -> Inventory | None:
    """The inventory, if there is one. What is ignored in it is said on stderr."""
    path = inventory.find(options.hosts_file)
    if path is None:
        return None
    from ddprobe import hostsfile

    found = hostsfile.load(path)
    for warning in found.warnings:
        streams.note(f"ddprobe: warning: {warning}")
    return found


def resolve(words: Sequence[str] | None, options: Options) -> tuple[Host, ...]:
    """The hosts that a command looks at, with `--timeout` applied."""
    return limited(inventory.select(words or (), load(options)), options)


def limited(hosts: Sequence[Host], options: Options) -> tuple[Host, ...]:
    """The hosts with `--timeout` as the time that one question may take."""
    limit = seconds(options)
    if limit is None:
        return tuple(hosts)
    return tuple(dataclasses.replace(host, command_timeout=limit) for host in hosts)


def seconds(options: Options) -> float | None:
    """What `--timeout` says; None where it is not given."""
    if options.timeout is None:
        return None
    try:
        found = sizes.duration(options.timeout)
    except UsageError as error:
        raise UsageError(f"--timeout: {error.message}", error.advice) from None
    if not 0 < found <= 3600:
        raise UsageError(f"--timeout {options.timeout!r} is out of bounds", "above 0 and at most 1h")
    return found
