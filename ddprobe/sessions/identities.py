"""Who we are: the keys to offer to one server, in ssh's order, and what became of each.

First the agent's keys that ssh_config names, then (unless `IdentitiesOnly`) its others, then key files that the agent
does not hold. A passphrase is asked for only where stdin is a terminal, once a key and run.
"""

from __future__ import annotations

import base64
import binascii
import getpass
import os
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.agent import AgentSSH

from ddprobe import plainfile
from ddprobe.errors import NotAuthenticated
from ddprobe.sessions.dial import Limit
from ddprobe.sessions.sshconfig import OPENSSH_ADVICE, Hop

_PROMPTING = threading.Lock()
_UNLOCKED: dict[Path, str] = {}
_PUBLIC = (b"ssh-", b"ecdsa-", b"sk-")
_MAX_KEY_FILE = 64 * 1024


@dataclass(frozen=True, slots=True)
class _Identity:
    label: str
    key: paramiko.PKey


class Identities:
    """Paramiko's `auth_strategy` for one hop. Raises `NotAuthenticated` with what was tried."""

    def __init__(self, hop: Hop, limit: Limit) -> None:
        self.hop = hop
        self.started = False
        self._limit = limit
        self._tried: list[str] = []
        self._skipped: list[str] = []
        self._allowed: list[str] = []

    def authenticate(self, transport: paramiko.Transport) -> list[str]:
        """Offer one key after another until the server is content."""
        self.started = True
        agent = _Agent(self.hop.identity_agent)
        try:
            for identity in self._sources(agent):
                self._tried.append(identity.label)
                if self._offer(transport, identity.key):
                    return []
                if self._limit.stop:
                    # The road was cut by ourselves; whoever cut it says why.
                    raise EOFError
                if not transport.is_active():
                    raise NotAuthenticated(
                        f"{self._who()}: the server hung up after {len(self._tried)} keys it does not know",
                        f"name the right one: `IdentityFile` with `IdentitiesOnly yes` for {self.hop.name}",
                    )
            raise self._refused()
        finally:
            agent.close()

    def _offer(self, transport: paramiko.Transport, key: paramiko.PKey) -> bool:
        try:
            self._allowed = transport.auth_publickey(self.hop.user, key)
        except paramiko.BadAuthenticationType as error:
            self._allowed = list(error.allowed_types)
        except paramiko.AuthenticationException as error:
            if "timeout" in str(error).lower():
                raise
        except (paramiko.SSHException, UnsupportedAlgorithm, ValueError) as error:
            # An agent that refuses to sign, a key too small for the library: the next one may do.
            self._tried[-1] += f" ({str(error)[:100]})"
        return transport.is_authenticated()

    def _who(self) -> str:
        return f"{self.hop.name}: {self.hop.user}@{self.hop.address}"

    def _refused(self) -> NotAuthenticated:
        skipped = f"; not usable: {', '.join(self._skipped)}" if self._skipped else ""
        if not self._tried:
            looked = ", ".join(str(path) for path in self.hop.identity_files) or "none is configured"
            return NotAuthenticated(
                f"{self._who()}: there is no key to offer: the agent has none, and no file of {looked}{skipped}",
                f"try `{self.hop.by_hand}`; `ssh-add` a key, or name it as `identity_file`",
            )
        wants = [method for method in self._allowed if method != "publickey"]
        message = f"{self._who()} was refused; offered: {', '.join(self._tried)}{skipped}"
        if wants:
            return NotAuthenticated(
                f"{message}; the server would take: {', '.join(self._allowed)}",
                f"install a key with `ssh-copy-id`, or {OPENSSH_ADVICE}",
            )
        return NotAuthenticated(
            message, f"compare with `{self.hop.by_hand} -v`: is it the right user, the right key?"
        )

    def _sources(self, agent: _Agent) -> Iterator[_Identity]:
        files = [path for path in self.hop.identity_files if path.is_file()]
        blobs = {path: _public_blob(path) for path in self.hop.identity_files}
        named = [
            key for blob in blobs.values() for key in agent.keys if blob is not None and key.blob == blob
        ]
        held = {key.blob for key in named}
        yield from (_Identity(_label(key), key) for key in named)
        if not self.hop.identities_only:
            others = (key for key in agent.keys if key.blob not in held)
            yield from (_Identity(_label(key), key) for key in others)
        for path in files:
            if blobs[path] not in held or blobs[path] is None:
                yield from self._from_file(path)

    def _from_file(self, path: Path) -> Iterator[_Identity]:
        """The key in the file; with its certificate first, where one lies beside it."""
        try:
            if plainfile.read(path, _MAX_KEY_FILE).startswith(_PUBLIC):
                return
            key = self._load(path)
        except (OSError, ValueError, TypeError, paramiko.SSHException, UnsupportedAlgorithm) as error:
            self._skipped.append(f"{path} ({_reason(error)})")
            return
        if key.public_blob is not None:
            yield _Identity(f"{path} with its certificate", key)
            key.public_blob = None
        yield _Identity(str(path), key)

    def _load(self, path: Path) -> paramiko.PKey:
        with _PROMPTING:
            known = _UNLOCKED.get(path)
            try:
                return _read_key(path, known)
            except (TypeError, paramiko.PasswordRequiredException):
                # What cryptography says of an encrypted key without a passphrase.
                if not sys.stdin or not sys.stdin.isatty():
                    raise ValueError("it needs a passphrase and stdin is no terminal: `ssh-add` it") from None
            with self._limit.paused():
                passphrase = getpass.getpass(f"Passphrase for {path}: ")
            key = _read_key(path, passphrase)
            _UNLOCKED[path] = passphrase
            return key


def _read_key(path: Path, passphrase: str | None) -> paramiko.PKey:
    """The key in the file, with a certificate that lies beside it."""
    secret = passphrase.encode() if passphrase is not None else None
    return paramiko.PKey.from_path(path, secret)  # type: ignore[arg-type]


def _reason(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "it may not be read"
    told = plainfile.said(error) if isinstance(error, OSError) else str(error)
    return " ".join(told.split())[:120] or type(error).__name__


def _label(key: paramiko.AgentKey) -> str:
    return f"the agent's {key.get_name()} {key.comment}".rstrip()


def _public_blob(path: Path) -> bytes | None:
    """The public half of a key file, from the `.pub` beside it or from its own clear part."""
    for candidate in (path.with_name(f"{path.name}.pub"), path):
        try:
            data = plainfile.read(candidate, _MAX_KEY_FILE)
        except OSError:
            continue
        try:
            if data.startswith(_PUBLIC):
                return base64.b64decode(data.split()[1])
            if data.startswith(b"-----BEGIN OPENSSH PRIVATE KEY-----"):
                return _clear_part(base64.b64decode(b"".join(data.split(b"-----")[2].split())))
        except (IndexError, ValueError, binascii.Error, struct.error):
            continue
    return None


def _clear_part(data: bytes) -> bytes:
    """The public key within OpenSSH's own format (PROTOCOL.key): magic, cipher, kdf, options, count, public key."""
    at = len(b"openssh-key-v1\0")
    for _ in range(3):
        at += 4 + struct.unpack_from(">I", data, at)[0]
    (size,) = struct.unpack_from(">I", data, at + 4)
    return data[at + 8 : at + 8 + size]


class _Agent(AgentSSH):
    """The agent at the socket that ssh_config names, or the environment's. One that is not there has no keys."""

    def __init__(self, where: str | None) -> None:
        super().__init__()
        path = os.environ.get("SSH_AUTH_SOCK", "") if where is None else where
        if not path or path == "none":
            return
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(5)
        try:
            connection.connect(path)
            self._connect(connection)  # type: ignore[attr-defined]
        except (OSError, paramiko.SSHException):
            connection.close()

    @property
    def keys(self) -> tuple[paramiko.AgentKey, ...]:
        """Those that Paramiko can offer: no hardware keys, no certificates."""
        return tuple(key for key in self.get_keys() if getattr(key, "inner_key", None) is not None)

    def close(self) -> None:
        self._close()  # type: ignore[attr-defined]
