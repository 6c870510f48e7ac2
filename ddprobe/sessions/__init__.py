"""The ways to a host, and the one function that opens them."""

from __future__ import annotations

import threading

from ddprobe.errors import UsageError
from ddprobe.model import Host
from ddprobe.redact import Redactor
from ddprobe.sessions.base import Session

TRANSPORTS = ("ssh", "openssh", "local")


def open_session(host: Host, redactor: Redactor, cancelled: threading.Event) -> Session:
    """Connect to the host by its `transport`. Raises `HostError` when it cannot be reached or refuses us."""
    if host.transport == "ssh":
        from ddprobe.sessions.ssh import SshSession

        return SshSession(host, redactor, cancelled)
    if host.transport == "openssh":
        from ddprobe.sessions.openssh import OpensshSession

        return OpensshSession(host, redactor, cancelled)
    if host.transport == "local":
        from ddprobe.sessions.local import LocalSession

        return LocalSession(host, redactor, cancelled)
    raise UsageError(
        f"{host.name}: there is no transport {host.transport!r}", f"one of {', '.join(TRANSPORTS)}"
    )
