"""Is this the host that was met before? known_hosts as OpenSSH reads it, and the one check of a host key."""

from __future__ import annotations

import base64
import binascii
import contextlib
import fnmatch
import hashlib
import hmac
import os
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko

from ddprobe import plainfile
from ddprobe.errors import HostKeyChanged, HostKeyUnknown
from ddprobe.sessions.sshconfig import OPENSSH_ADVICE, Hop, short

CERT_AUTHORITY = "@cert-authority"
REVOKED = "@revoked"
MAX_FILE = 64 * 1024 * 1024
"""Bytes of a known_hosts file, at most: some 300,000 keys."""
_WRITING = threading.Lock()

# What a key's own type is called → the algorithms that can prove it, best first.
_ALGORITHMS = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A line of a known_hosts file that speaks of the name looked for."""

    type: str
    blob: bytes
    place: str
    """`file:line`."""
    marker: str = ""


def fingerprint(blob: bytes) -> str:
    """`SHA256:…` as ssh prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def lookup(files: Iterable[Path], name: str) -> tuple[KnownKey, ...]:
    """Every line that speaks of `name`, in order. A file that is missing or a line that is broken holds none."""
    return tuple(key for path in files for key in _lines(path, name.lower()))


def _lines(path: Path, name: str) -> Iterator[KnownKey]:
    try:
        text = plainfile.read(path, MAX_FILE).decode("utf-8", "replace")
    except OSError:
        return
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
        if len(fields) < 3 or fields[0].startswith("#") or not _matches(fields[0], name):
            continue
        with contextlib.suppress(binascii.Error, ValueError):
            yield KnownKey(fields[1], base64.b64decode(fields[2], validate=True), f"{path}:{number}", marker)


def _matches(patterns: str, name: str) -> bool:
    """OpenSSH's host field: hashed, or patterns with * and ?, of which one with ! excludes."""
    if patterns.startswith("|1|"):
        return _matches_hash(patterns, name)
    found = False
    for pattern in patterns.lower().split(","):
        wanted = pattern.removeprefix("!")
        # Brackets are literal here (`[host]:port`), a character class in fnmatch.
        if fnmatch.fnmatchcase(name, wanted.replace("[", "[[]")):
            if pattern.startswith("!"):
                return False
            found = True
    return found


def _matches_hash(field: str, name: str) -> bool:
    parts = field.split("|")
    if len(parts) != 4:
        return False
    try:
        salt, digest = base64.b64decode(parts[2]), base64.b64decode(parts[3])
    except binascii.Error:
        return False
    return hmac.compare_digest(hmac.digest(salt, name.encode(), "sha1"), digest)


class Checker(paramiko.MissingHostKeyPolicy):
    """Decides on one hop's host key, under strict checking or `accept-new`. A changed key is refused under both.

    The client is left without host keys of its own, so that every key comes to `missing_host_key`: Paramiko's own
    check knows neither several keys of one type nor revoked ones. `transport` must be the client's
    `transport_factory`: it asks for the types of key that are known, as ssh does.
    """

    def __init__(self, hop: Hop, accept_new: bool = False) -> None:
        self.hop = hop
        self.accept_new = accept_new
        self.fingerprint = ""
        """`ssh-ed25519 SHA256:…` once the key was seen, accepted or not."""
        self.notes: list[str] = []
        self.name = _name(hop)
        files = (*hop.known_hosts_files, *hop.global_known_hosts_files)
        self._known = lookup(files, self.name)
        self._without_port: tuple[KnownKey, ...] = ()
        if not self._known and self.name != hop.address.lower() and not hop.host_key_alias:
            # ssh takes a key known for the address at large, but does not call another one "changed".
            self._without_port = lookup(files, hop.address)

    def prepare(self, client: paramiko.SSHClient) -> dict[str, Any]:
        """Make the client ask us about every host key. Returns what `client.connect` must be given besides."""
        client.set_missing_host_key_policy(self)
        return {"transport_factory": self.transport}

    def transport(self, sock: Any, **options: Any) -> paramiko.Transport:
        """A transport that prefers the types of key this host is known by."""
        transport = paramiko.Transport(sock, **options)
        security = transport.get_security_options()
        known = [
            algorithm
            for key in (*self._known, *self._without_port)
            if not key.marker
            for algorithm in _ALGORITHMS.get(key.type, (key.type,))
            if algorithm in security.key_types
        ]
        security.key_types = tuple(dict.fromkeys((*known, *security.key_types)))
        return transport

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Paramiko's hook. Raises `HostKeyUnknown` or `HostKeyChanged` unless the key may be trusted."""
        self.check(key.get_name(), key.asbytes())

    def check(self, type_: str, blob: bytes) -> None:
        """Raise `HostKeyUnknown` or `HostKeyChanged` unless the key may be trusted."""
        self.fingerprint = f"{type_} {fingerprint(blob)}"
        everywhere = (*self._known, *self._without_port)
        for known in everywhere:
            if known.marker == REVOKED and known.blob == blob:
                raise HostKeyChanged(
                    f"{self.hop.name}: its host key {self.fingerprint} is marked as revoked at {known.place}",
                    "somebody may be in the way: ask whoever runs the host",
                )
        if any(not known.marker and known.blob == blob for known in everywhere):
            return
        plain = [known for known in self._known if not known.marker and _usable(known.type)]
        if plain:
            same = next((known for known in plain if known.type == type_), plain[0])
            raise HostKeyChanged(
                f"{self.hop.name}: its host key has changed: {self.fingerprint} is offered, "
                f"{same.type} {fingerprint(same.blob)} is known from {same.place}",
                "somebody may be in the way. If the host was set up anew, "
                f"remove the old key with `ssh-keygen -R '{self.name}'`",
            )
        if not self.accept_new:
            raise self._unknown()
        self._remember(type_, blob)

    def _unknown(self) -> HostKeyUnknown:
        message = (
            f"{self.hop.name}: its host key {self.fingerprint} ({self.name}) is not in {self.hop.looked_in}"
        )
        if any(known.marker == CERT_AUTHORITY for known in self._known):
            return HostKeyUnknown(message, f"its key is certified by an authority: {OPENSSH_ADVICE}")
        return HostKeyUnknown(
            message,
            f"compare the fingerprint while connecting once with `{self.hop.by_hand}`, "
            "or set `host_key: accept-new`",
        )

    def _remember(self, type_: str, blob: bytes) -> None:
        """Append to the first known_hosts file, as ssh does."""
        note = f"{self.hop.name}: its host key {self.fingerprint} was never seen before and was accepted"
        if not self.hop.known_hosts_files:
            self.notes.append(f"{note}; ssh_config names no file to keep it in")
            return
        path = self.hop.known_hosts_files[0]
        name = _hashed(self.name) if self.hop.hash_known_hosts else self.name
        line = f"{name} {type_} {base64.b64encode(blob).decode()}\n"
        try:
            with _WRITING:
                _append(path, line)
        except OSError as error:
            self.notes.append(f"{note}; it could not be kept in {short(path)}: {error.strerror}")
        else:
            self.notes.append(f"{note}; it is now in {short(path)}")


def _name(hop: Hop) -> str:
    """What the host is called in known_hosts."""
    if hop.host_key_alias:
        return hop.host_key_alias.lower()
    address = hop.address.lower()
    return address if hop.port == 22 else f"[{address}]:{hop.port}"


def _usable(type_: str) -> bool:
    """Whether Paramiko could have checked a key of this type at all."""
    return (
        type_ in ("ssh-rsa", "ssh-ed25519") or re.match(r"ecdsa-sha2-nistp(256|384|521)\Z", type_) is not None
    )


def _hashed(name: str) -> str:
    salt = os.urandom(20)
    digest = hmac.digest(salt, name.encode(), "sha1")
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def _append(path: Path, line: str) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        torn = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
        file.write((b"\n" if torn else b"") + line.encode())
