"""A host, and how it is reached."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container on the host that the server runs in."""

    runtime: str
    """`docker`, `podman` or `kubectl`."""
    name: str


LAB_TAG = "ddprobe-lab"
"""Of a host that is made up: a report with one among its hosts says that it is of a lab."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host, how to reach it, and what is known of it beforehand.

    Unset (None or empty) means "as ssh_config says" or "discover it", never a default that overrides either.
    """

    name: str
    address: str | None = None
    user: str | None = None
    port: int | None = None
    identity_file: str | None = None
    known_hosts: str | None = None
    """A known_hosts file looked at in place of ssh_config's."""
    jump: str | None = None
    host_key: str = "strict"
    """`strict` or `accept-new`. A changed key is refused under both."""
    connect_timeout: float = 10.0
    command_timeout: float = 25.0
    transport: str = "ssh"
    """`ssh`, `openssh` or `local`."""
    container: Container | None = None
    engine: str | None = None
    url: str | None = None
    api_key_env: str | None = None
    package: str | None = None
    python: str | None = None
    drafter: str | None = None
    target: str | None = None
    log: str | None = None
    gpu_bandwidth: float | None = None
    tags: tuple[str, ...] = ()
