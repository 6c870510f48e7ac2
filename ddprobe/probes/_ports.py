"""Discovery: which ports a server listens on, and where its own host would ask it, in a network of its own or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ddprobe.engines.base import Engine
from ddprobe.facts import ServerProcess
from ddprobe.parsing import proc

Lines = Mapping[int, tuple[str, ...]]
"""By process; 0 is ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What Linux says of the sockets of all servers."""

    listeners: Lines
    """Lines of /proc/PID/net/tcp and tcp6: all that listens in the process's network."""
    addresses: Lines
    """Lines of /proc/PID/net/fib_trie."""
    sockets: Mapping[int, frozenset[int]]
    """Inodes of the sockets each process holds; a process that is not in it may not be looked into."""
    links: Mapping[str, str]
    """`/proc/PID/ns/net` and where it points."""

    def added(self, server: ServerProcess, engine: Engine, uid: int, notes: list[str]) -> ServerProcess:
        """The server with where it listens, and the base of its URLs; what is unknown is noted."""
        given = engine.given(server.argv, server.environment)
        wanted = given.get("port", engine.default_port)
        mine = self._mine(server.pid, uid, wanted)
        server = replace(server, listens=tuple(str(listener) for listener in mine))
        chosen = next((listener for listener in mine if listener.port == wanted), None)
        if chosen is None and len(mine) == 1:
            chosen = mine[0]
        if chosen is None:
            if mine:
                notes.append(
                    f"pid {server.pid} listens on {', '.join(server.listens)} and not on port {wanted}: "
                    "which of them to ask is unknown"
                )
            return server
        address = self._address(server.pid, chosen, notes)
        scheme = "https" if engine.certificate in given else "http"
        return replace(server, base=f"{scheme}://{address}:{chosen.port}") if address else server

    def _mine(self, pid: int, uid: int, wanted: object) -> tuple[proc.Listener, ...]:
        """The process's own listeners. Where its sockets may not be seen: its user's on the port it was given."""
        everything = proc.listeners(self.listeners.get(pid, ()))
        held = self.sockets.get(pid)
        if held is not None:
            return tuple(listener for listener in everything if listener.inode in held)
        return tuple(listener for listener in everything if listener.port == wanted and listener.uid == uid)

    def _address(self, pid: int, listener: proc.Listener, notes: list[str]) -> str:
        """The address to ask, in brackets if it is an IPv6 one; empty when there is none."""
        address = listener.address
        if self._same_network(pid):
            address = "127.0.0.1" if _is_any(address) else address
        elif address.startswith("127.") or address == "::1":
            notes.append(
                f"pid {pid} listens on {listener} inside its own network: it cannot be asked from the host"
            )
            return ""
        elif _is_any(address):
            local = proc.local_addresses(self.addresses.get(pid, ()))
            if not local:
                notes.append(
                    f"pid {pid} listens on port {listener.port} in its own network, whose address is unknown"
                )
                return ""
            address = local[0]
        return f"[{address}]" if ":" in address else address

    def _same_network(self, pid: int) -> bool:
        """By the namespace links, or where they may not be read, by the addresses that both have."""
        ours, theirs = self.links.get("/proc/self/ns/net"), self.links.get(f"/proc/{pid}/ns/net")
        if ours and theirs:
            return ours == theirs
        here, there = self.addresses.get(0, ()), self.addresses.get(pid, ())
        return proc.local_addresses(here) == proc.local_addresses(there)


def _is_any(address: str) -> bool:
    return address in ("0.0.0.0", "::")
