"""The host and its servers, as found in the process table and as the servers say of themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ddprobe.model import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered(Fact):
    """Something ddprobe found by itself, and from what it concluded it."""

    what: str
    """`package`, `python`, `drafter`, `target`, `port`, `cache`, `engine`, …"""
    value: str
    origin: str
    """In words: `--speculative-draft-model-path of pid 4711`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach(Fact):
    """A host answered."""

    system: str
    """`Linux 6.1.0 x86_64`"""
    user: str
    hostname: str
    shell: str = ""
    clock_offset_seconds: float | None = None
    """Host's clock minus the laptop's, and its error is half the round trip."""
    round_trip_ms: float | None = None
    gpus: tuple[str, ...] = ()
    driver: str = ""
    """The NVIDIA driver's version."""
    engines: tuple[str, ...] | None = ()
    """`SGLang pid 4711`; None when the processes could not be searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProcess(Fact):
    """One running inference server: its main process, found in the process table.

    With pid 0, what somebody collected of one: no process is known, only its environment.
    """

    engine: str
    """`sglang`, `vllm` or `llamacpp`."""
    pid: int
    argv: tuple[str, ...]
    ranks: tuple[int, ...] = ()
    """PIDs of its workers (schedulers, tensor-parallel ranks)."""
    user: str = ""
    cwd: str = ""
    executable: str = ""
    root: str = ""
    """Prefix that makes its paths readable from the host: `` or `/proc/4711/root` in a container."""
    container: str = ""
    """`docker 3f2a9c…` when its control group says so."""
    environment: tuple[tuple[str, str], ...] = ()
    """Allow-listed variables only."""
    environment_seen: bool = True
    """False when its environment could not be read: then an absent variable says nothing."""
    listens: tuple[str, ...] = ()
    """`127.0.0.1:30000`"""
    base: str = ""
    """`http://127.0.0.1:30000`, when a port is known."""
    package: str = ""
    """The installed package's folder on the host: the one that holds `srt/`. Without the `root` prefix."""
    version: str = ""
    python: str = ""

    @property
    def name(self) -> str:
        """`sglang pid 4711`: what other facts call this server; empty where its process is not known."""
        return f"{self.engine} pid {self.pid}" if self.pid else ""


SPEAKS_OF_IT = ("speculative_algorithm", "speculative_config")
"""Arguments on speculation, of which a server names one whenever it tells all that it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerArgs(Fact):
    """An engine's arguments under their canonical names (`speculative_num_draft_tokens`)."""

    engine: str
    origin: str
    """`command line`, `/server_info` or `log`."""
    version: str = ""
    values: tuple[tuple[str, Any], ...] = ()
    """What was given on the command line, or everything as resolved by the server."""
    resolved: bool = False
    """True when the server itself said so (defaults filled in)."""
    server: str = ""
    """The `name` of the process they belong to."""
    elsewhere: str = ""
    """A file that holds further arguments, which were not read (`--config FILE`); empty when these are all."""
    cut: bool = False
    """The text ended, or left some out, before all were told: one that is absent here may have been given."""

    def get(self, name: str, default: Any = None) -> Any:
        return dict(self.values).get(name, default)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState(Fact):
    """What a server said of itself over HTTP."""

    engine: str
    base: str
    healthy: bool | None = None
    version: str = ""
    model: str = ""
    draft_model: str = ""
    context_length: int | None = None
    running_requests: int | None = None
    waiting_requests: int | None = None
    token_usage: float | None = None
    accept_length_lifetime: float | None = None
    """SGLang's `avg_spec_accept_length`: lifetime, per rank, updated at log ticks. Not a measurement of now."""
    details: tuple[tuple[str, str], ...] = ()
    server: str = ""
    """The `name` of the process that said it."""
