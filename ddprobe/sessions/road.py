"""The SSH connections to a host, one a hop: Fabric connects them, ddprobe supplies the socket, the keys, the checks.

Every trouble is told by the phase it came in: Paramiko's own texts do not tell a timeout from a refusal. One deadline
holds for the whole chain, and `cancelled` ends it at once: both cut the socket under whatever waits.
"""

from __future__ import annotations

import contextlib
import logging
import random
import re
import time
from typing import Any

import fabric
import paramiko

from ddprobe.errors import HostError, Unreachable
from ddprobe.sessions.dial import INTERRUPTED, Limit, Wire, dial
from ddprobe.sessions.framing import printable
from ddprobe.sessions.hostkeys import Checker
from ddprobe.sessions.identities import Identities
from ddprobe.sessions.sshconfig import OPENSSH_ADVICE, Hop, Route

# Paramiko logs a traceback for every connection that fails; without a handler Python prints it.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

ATTEMPTS = 5
"""A server past its MaxStartups hangs up on newcomers at random: the next attempt may pass."""

_NO_BANNER = "Error reading SSH protocol banner"
_CROWDED = (
    "sshd may be crowded (MaxStartups) or refuse this address (fail2ban, PerSourcePenalties): wait a minute; "
    "or is it another port?"
)


class Road:
    """The open connections from here to the host. `transport` is the last one's."""

    def __init__(self, route: Route, accept_new: bool, limit: Limit, wire: Wire) -> None:
        """Connect over `wire`, which leads to the first hop. Raises `HostError`."""
        self.route = route
        self.accept_new = accept_new
        self.notes = list(route.notes)
        self.host_key = ""
        self._connections: list[Any] = []
        self._limit = limit
        self._wire = wire
        try:
            with limit.enforced(lambda: self._wire.cut()):
                for hop in route.hops:
                    self._connect(hop)
        except BaseException:
            self.close()
            raise

    @property
    def transport(self) -> paramiko.Transport:
        transport: paramiko.Transport = self._connections[-1].transport
        return transport

    def close(self) -> None:
        """Give every connection back. Cutting the wire first wakes their threads, which else sleep on."""
        self._wire.cut()
        for connection in reversed(self._connections):
            with contextlib.suppress(Exception):
                connection.client.close()
        self._wire.close()

    def _connect(self, hop: Hop) -> None:
        """Connect one hop, again where the server seems to be crowded."""
        for attempt in range(ATTEMPTS):
            try:
                self._attempt(hop)
                return
            except _HungUp as error:
                pause = random.uniform(0.1, 0.4) * 2**attempt
                if attempt + 1 == ATTEMPTS or self._wire.proxy is not None or not self._limit.sleep(pause):
                    raise error.told from None
                if not self._connections:
                    self._wire.close()
                    self._wire = dial(hop, self._limit)

    def _attempt(self, hop: Hop) -> None:
        checker = Checker(hop, self.accept_new)
        identities = Identities(hop, self._limit)
        connection = self._make(hop, checker, identities)
        started = time.monotonic()
        try:
            connection.open()
        except Exception as error:
            transport = connection.client.get_transport()
            named = bool(transport is not None and transport.remote_version)
            with contextlib.suppress(Exception):
                connection.client.close()
            told = self._explain(error, hop, checker, identities, named)
            early = not checker.fingerprint and not self._limit.over and time.monotonic() - started < 5
            if early and not isinstance(error, HostError | paramiko.ChannelException):
                raise _HungUp(told) from None
            raise told from None
        finally:
            self.notes += checker.notes
        self._connections.append(connection)
        self.host_key = checker.fingerprint

    def _make(self, hop: Hop, checker: Checker, identities: Identities) -> Any:
        """Fabric's connection, not yet open. Its own limits come after ours: they would all sound alike."""
        gateway = self._connections[-1] if self._connections else None
        patience = self._limit.seconds + Limit.PROMPT
        options: dict[str, Any] = {
            "auth_strategy": identities,
            "banner_timeout": patience,
            "auth_timeout": patience,
            "channel_timeout": patience,
        }
        if gateway is None:
            options["sock"] = self._wire.socket
        connection = fabric.Connection(
            host=hop.address,
            user=hop.user,
            port=hop.port,
            # From no file: `ssh -G` was asked already. One each: they are not safe to share.
            config=fabric.Config(lazy=True, ssh_config=paramiko.SSHConfig()),
            gateway=gateway,
            forward_agent=False,
            connect_timeout=patience,
            connect_kwargs=options,
        )
        options |= checker.prepare(connection.client)
        options["transport_factory"] = _patient(options["transport_factory"])
        return connection

    def _explain(
        self, error: Exception, hop: Hop, checker: Checker, identities: Identities, named: bool
    ) -> HostError:
        """The error in words, by the phase in which it came."""
        if isinstance(error, HostError):
            return error
        name = f"{hop.name} ({hop.address}:{hop.port})"
        if self._limit.cancelled.is_set():
            return Unreachable(f"{hop.name}: {INTERRUPTED}")
        if isinstance(error, paramiko.ChannelException):
            before = self._connections[-1].original_host
            if error.code == 1:
                return Unreachable(f"{name}: the jump host {before} forbids forwarding (AllowTcpForwarding)")
            return Unreachable(f"{name}: the jump host {before} cannot reach it: {error.text}")
        phase = "in the key exchange" if named else "before it named itself"
        if identities.started:
            phase = "while it checked who we are"
        elif checker.fingerprint:
            phase = "after the key exchange"
        if self._limit.over:
            return Unreachable(
                f"{name}: no answer within {self._limit.seconds:g} s, {phase}",
                "raise connect_timeout if it is slow",
            )
        if self._wire.proxy is not None and not checker.fingerprint:
            said = self._wire.proxy_words()
            why = f": {said}" if said else ""
            return Unreachable(f"{name}: its ProxyCommand leads to no SSH server{why}", OPENSSH_ADVICE)
        words = printable(re.sub(rf"^{_NO_BANNER}|\[Errno \d+\] ", "", str(error)).encode())[:200]
        why = f": {words}" if words else ""
        if not named and "codec can't decode" in words:
            return Unreachable(f"{name}: what answers there is no SSH server", "is it the right port?")
        if "Indecipherable protocol version" in words:
            return Unreachable(f"{name}: what answers there is no SSH server{why}", "is it the right port?")
        if named and not checker.fingerprint and isinstance(error, paramiko.SSHException):
            return Unreachable(f"{name}: the SSH handshake failed{why}", OPENSSH_ADVICE)
        advice = f"look with `{hop.by_hand} -v`" if named else _CROWDED
        return Unreachable(f"{name}: the connection was closed {phase}{why}", advice)


class _HungUp(Exception):
    """The server closed before it named itself."""

    def __init__(self, told: HostError) -> None:
        super().__init__(told.message)
        self.told = told


def _patient(factory: Any) -> Any:
    """A transport without a limit of its own on the key exchange: Paramiko's timer would outlive a failed one."""

    def make(*args: Any, **options: Any) -> paramiko.Transport:
        transport: paramiko.Transport = factory(*args, **options)
        transport.packetizer.start_handshake = lambda timeout: None  # type: ignore[method-assign]  # noqa: ARG005
        return transport

    return make
