"""A host over SSH: Fabric's connections (`road`), shells on Paramiko's own channels, HTTP on direct-tcpip ones.

Nothing travels through `Connection.run`: it re-joins its whole buffer every 1000 bytes. A channel is only ever
closed, never shut down for writing: an EOF that overtakes a CLOSE makes sshd drop the whole connection.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ddprobe.errors import HostError, NoShell, Unreachable
from ddprobe.model import Connection, Host
from ddprobe.redact import Redactor
from ddprobe.sessions.asking import NoMoreSessions, Pipe
from ddprobe.sessions.container import command_line
from ddprobe.sessions.shell import ShellSession
from ddprobe.sessions.stream import lost

if TYPE_CHECKING:
    import paramiko

    from ddprobe.sessions.http import Web
    from ddprobe.sessions.road import Road

_PIECE = 65536


class SshSession(ShellSession):
    """A session over one SSH connection (and one to each jump host before it)."""

    def __init__(self, host: Host, redactor: Redactor, cancelled: threading.Event) -> None:
        super().__init__(host, redactor, cancelled)
        self._line = command_line(host)
        before = time.monotonic()
        self._road = _open_road(host, cancelled)
        try:
            self._start()
        except NoMoreSessions as error:
            self._road.close()
            raise self._no_session(str(error)) from None
        except NoShell:
            dead = not self._road.transport.is_active()
            self._road.close()
            if dead:
                raise Unreachable(
                    f"{host.name}: the connection was lost right after the login",
                    "try again: was sshd restarted?",
                ) from None
            raise
        except BaseException:
            self._road.close()
            raise
        self._connect_seconds = time.monotonic() - before

    @property
    def connection(self) -> Connection:
        last = self._road.route.last
        return Connection(
            transport="ssh",
            address=last.address,
            user=last.user,
            port=last.port,
            host_key=self._road.host_key,
            connect_seconds=self._connect_seconds,
            notes=(*self._road.notes, *self._all_notes()),
        )

    def close(self) -> None:
        super().close()
        self._road.close()

    def _open_pipe(self) -> Pipe:
        return ChannelPipe(self._road.transport, self._line, self.host)

    def _make_web(self) -> Web:
        from ddprobe.sessions.http import Web, through

        return Web(self.host, self.cancelled, through(self._road.transport), self._run)


def _open_road(host: Host, cancelled: threading.Event) -> Road:
    """Resolve and connect. The heavy imports go on while `ssh -G` is asked and the first packets travel."""
    importing = threading.Thread(target=_import, daemon=True)
    importing.start()
    from ddprobe.sessions.dial import Limit, dial
    from ddprobe.sessions.sshconfig import resolve

    route = resolve(host)
    try:
        limit = Limit(route.last.connect_timeout, cancelled)
        wire = dial(route.hops[0], limit)
        importing.join()
        from ddprobe.sessions.road import Road

        return Road(route, host.host_key == "accept-new", limit, wire)
    except HostError as error:
        if not error.message.startswith(host.name):
            error.message = f"{host.name}: {error.message}"
        raise


def _import() -> None:
    import ddprobe.sessions.road  # noqa: F401


class ChannelPipe:
    """A session channel on which the host runs a shell."""

    def __init__(self, transport: paramiko.Transport, line: str, host: Host) -> None:
        import paramiko

        self._transport = transport
        self._lost: tuple[type[Exception], ...] = (OSError, *lost())
        try:
            self._channel = transport.open_session(timeout=host.connect_timeout)
        except paramiko.ChannelException as error:
            raise NoMoreSessions(error.text) from None
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise Unreachable(
                f"{host.name}: the connection is dead: {_last_words(transport, error)}"
            ) from None
        try:
            self._channel.settimeout(host.connect_timeout)
            self._channel.exec_command(line)
        except (paramiko.SSHException, EOFError, OSError) as error:
            self._channel.close()
            raise Unreachable(f"{host.name}: it runs no commands: {_last_words(transport, error)}") from None
        self._channel.settimeout(0)
        self._descriptor = self._channel.fileno()

    def descriptors(self) -> Sequence[int]:
        return (self._descriptor,)

    def send(self, data: memoryview) -> int:
        try:
            return self._channel.send(bytes(data))
        except self._lost:
            # No room now, or closed: what was said before the end is still to be read.
            return 0

    def receive(self) -> tuple[bytes, bytes]:
        channel = self._channel
        try:
            stdout = channel.recv(_PIECE) if channel.recv_ready() else b""
            stderr = channel.recv_stderr(_PIECE) if channel.recv_stderr_ready() else b""
        except self._lost:
            # Whoever reads tells the other side so; where that is gone, `ended` says it.
            return b"", b""
        return stdout, stderr

    @property
    def ended(self) -> bool:
        channel = self._channel
        over = channel.eof_received or channel.closed or not self._transport.is_active()
        return bool(over and not channel.recv_ready() and not channel.recv_stderr_ready())

    @property
    def epitaph(self) -> str:
        if not self._transport.is_active():
            return f"the connection was lost: {_last_words(self._transport, EOFError())}"
        self._channel.status_event.wait(0.5)
        # −1 is a signal, or no word at all.
        code = self._channel.exit_status
        return f"exit code {code}" if code >= 0 else "the host closed the channel"

    def close(self) -> None:
        with contextlib.suppress(Exception):
            # Else what comes just now is signalled through a descriptor that is closed already, or another's by then:
            # Paramiko's thread dies of it, and the whole connection.
            for buffer in (self._channel.in_buffer, self._channel.in_stderr_buffer):
                buffer.set_event(threading.Event())
            self._channel.close()


def _last_words(transport: paramiko.Transport, error: Exception) -> str:
    known = transport.get_exception() or error
    return " ".join(str(known).split())[:200] or "closed by the other side"
