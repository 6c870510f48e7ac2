"""An SSH server in this process, on loopback, in front of a made-up host."""

from __future__ import annotations

import base64
import contextlib
import io
import logging
import socket
import threading
import time
from collections.abc import Callable

import paramiko
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from paramiko.common import (
    AUTH_FAILED,
    AUTH_SUCCESSFUL,
    OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED,
    OPEN_FAILED_CONNECT_FAILED,
    OPEN_SUCCEEDED,
)

from ddprobe.lab import http
from ddprobe.lab.machine import Machine
from ddprobe.lab.shell import SORRY, Shell, Unrecognised

SHELL = b"exec /bin/sh -s"
BANNER = "ddprobe lab: this host is made up and lives inside ddprobe.\r\n"
LOOPBACK = ("127.0.0.1", "localhost", "::1", "0.0.0.0")
_LOG = "ddprobe.lab.ssh"
_GONE = (paramiko.SSHException, EOFError, OSError)
"""How Paramiko says that the other side went away."""
_POLL = 0.05
"""Seconds between two looks at whether a connection is over."""


def new_key() -> tuple[paramiko.PKey, str]:
    """A fresh ed25519 key, and its private part in OpenSSH's form."""
    private = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return paramiko.Ed25519Key.from_private_key(io.StringIO(private.decode())), private.decode()


class Sshd:
    """Listens from `start` to `stop`. Every thread it starts has ended when `stop` returns."""

    def __init__(self, machine: Machine, client_key: paramiko.PKey) -> None:
        self.machine = machine
        self.client_key = client_key
        self.host_key, _ = new_key()
        self.port = 0
        self._listener = socket.socket()
        self._stopping = threading.Event()
        self._transports: list[paramiko.Transport] = []
        self._threads: list[threading.Thread] = []
        # A client that goes away in the middle is no news; Paramiko would print a traceback.
        log = logging.getLogger(_LOG)
        log.addHandler(logging.NullHandler())
        log.propagate = False

    @property
    def known_hosts_line(self) -> str:
        key = base64.b64encode(self.host_key.asbytes()).decode()
        return f"[127.0.0.1]:{self.port} {self.host_key.get_name()} {key}\n"

    def start(self) -> None:
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)
        self._listener.settimeout(0.5)
        self.port = self._listener.getsockname()[1]
        self.spawn(self._accept)

    def spawn(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True, name="ddprobe-lab")
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for transport in list(self._transports):
            transport.close()
        for thread in list(self._threads):
            thread.join(5)
        for transport in self._transports:
            transport.join(5)

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            client.settimeout(None)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.spawn(lambda client=client: self._connection(client))  # type: ignore[misc]

    def _connection(self, client: socket.socket) -> None:
        transport = paramiko.Transport(client)
        transport.local_version = "SSH-2.0-ddprobe_lab"
        transport.set_log_channel(_LOG)
        transport.add_server_key(self.host_key)
        self._transports.append(transport)
        gate = _Gate(self, transport)
        opened: list[paramiko.Channel] = []
        with contextlib.suppress(*_GONE):
            transport.start_server(server=gate)
            while transport.is_active() and not self._stopping.is_set():
                channel = transport.accept(_POLL)
                if channel is not None:
                    # Paramiko itself does not hold a channel: until its request comes, nobody else would, and it closed.
                    opened = [*(one for one in opened if not one.closed), channel]
                    if channel.chanid in gate.forwards:
                        self._forward(channel, gate.forwards.pop(channel.chanid))
        transport.close()

    def _forward(self, channel: paramiko.Channel, port: int) -> None:
        def serve() -> None:
            with contextlib.suppress(*_GONE), contextlib.closing(channel):
                http.serve(channel, self.machine.servers[port])

        self.spawn(serve)

    def shell(self, channel: paramiko.Channel) -> None:
        """Answer scripts on this channel until it is closed from the other side."""
        shell = Shell(self.machine)
        status = 0
        with contextlib.suppress(*_GONE), contextlib.closing(channel):
            try:
                while (data := _received(channel, shell.waits)) != b"":
                    for stdout, stderr in shell.feed(data or b""):
                        channel.sendall(stdout)
                        channel.sendall_stderr(stderr)
            except Unrecognised:
                channel.sendall_stderr(SORRY)
                status = 126
            channel.send_exit_status(status)


class _Gate(paramiko.ServerInterface):
    """Who may come in, and what for."""

    def __init__(self, sshd: Sshd, transport: paramiko.Transport) -> None:
        self.sshd = sshd
        self.transport = transport
        self.forwards: dict[int, int] = {}

    def get_banner(self) -> tuple[str, str]:
        return BANNER, "en-US"

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        # An agent with many keys offers them all before ours; Paramiko would hang up at the tenth.
        self.transport.auth_handler.auth_fail_count = 0  # type: ignore[union-attr]
        known = username == self.sshd.machine.user and key == self.sshd.client_key
        return AUTH_SUCCESSFUL if known else AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        if kind == "session":
            return OPEN_SUCCEEDED
        return OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        if command == SHELL:
            self.sshd.spawn(lambda: self.sshd.shell(channel))
        else:
            self.sshd.spawn(lambda: _apologise(channel))
        return True

    def check_channel_shell_request(self, channel: paramiko.Channel) -> bool:
        self.sshd.spawn(lambda: _apologise(channel))
        return True

    def check_channel_pty_request(self, *_: object) -> bool:
        return True

    def check_channel_direct_tcpip_request(
        self, chanid: int, origin: tuple[str, int], destination: tuple[str, int]
    ) -> int:
        address, port = destination
        server = self.sshd.machine.servers.get(port)
        if address not in LOOPBACK or server is None or not server.alive:
            return OPEN_FAILED_CONNECT_FAILED
        self.forwards[chanid] = port
        return OPEN_SUCCEEDED


def _received(channel: paramiko.Channel, seconds: float | None) -> bytes | None:
    """What comes next; nothing at its end, and None when nothing came within that time."""
    channel.settimeout(seconds)
    try:
        return channel.recv(65536)
    except TimeoutError:
        return None
    finally:
        channel.settimeout(None)


def _apologise(channel: paramiko.Channel) -> None:
    # The request is granted only after this thread was started; a word before that confuses some clients.
    time.sleep(0.05)
    with contextlib.suppress(*_GONE), contextlib.closing(channel):
        channel.sendall_stderr(SORRY.replace(b"\n", b"\r\n"))
        channel.send_exit_status(126)
