"""Reads what Linux says under /proc, in the forms that `grep`, `head` and `ls` bring it.

Several files travel in one answer: `head` puts `==> /proc/41/cmdline <==` above each, `grep -H` puts
`/proc/41/status:` before each line, and `ls -l` names each link: `… /proc/41/cwd -> /srv/models`.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from itertools import pairwise

_PID_PATH = re.compile(r"/proc/(\d{1,9})/", re.ASCII)
_ID = re.compile(r"-1\Z|\d{1,10}\Z", re.ASCII)
_LINK = re.compile(r"^l\S+ +\d+ +(\S+) .*? (/proc/(?:\d+|self)/[\w/]+)(?: -> (.*))?$")
_FOLDER = re.compile(r"^d\S+ +\d+ +(\S+) .* (/proc/\d{1,9})$", re.ASCII)
_CONTAINER = re.compile(
    r"(?P<runtime>docker|libpod|cri-containerd|crio|containerd|kubepods)"
    r"[^\n]{0,256}?(?P<id>[0-9a-f]{64}|[0-9a-f]{32})|/lxc(?:\.payload)?[./](?P<lxc>[^/\n]+)"
)
_RUNTIMES = {"libpod": "podman", "cri-containerd": "containerd", "crio": "cri-o", "kubepods": "kubernetes"}
_DESCRIPTOR = re.compile(r"l\S+ +\d+ +\S+ +\S+ +\d+ .*? (\d{1,7}) -> (.+)$")
_INPUT = re.compile(r"l\S+ +\d+ +\S+ +\S+ +\d+ .*? /proc/(\d{1,9})/fd/0 -> (.+)$")
LISTEN = "0A"


def pids(listing: str) -> tuple[int, ...]:
    """The process ids of a list of /proc paths, in ascending order."""
    return tuple(
        sorted({int(found.group(1)) for found in map(_PID_PATH.match, listing.split("\n")) if found})
    )


def sections(text: str, paths: tuple[str, ...]) -> dict[str, str]:
    """Each file's content from the answer of `head` on several files. A path whose heading is forged is left out."""
    spots = []
    for path in paths:
        heading = f"==> {path} <==\n"
        if text.count(heading) == 1:
            at = text.index(heading)
            spots.append((at, at + len(heading), path))
    if not spots:
        return {}
    spots.sort()
    ends = [at for at, _, _ in spots[1:]] + [len(text)]
    last = len(spots) - 1
    found = {}
    for number, ((_, start, path), end) in enumerate(zip(spots, ends, strict=True)):
        body = text[start:end]
        # `head` puts an empty line between one file and the next heading.
        found[path] = body.removesuffix("\n") if number < last else body
    return found


def words(cmdline: str) -> tuple[str, ...]:
    """The argv in a /proc/PID/cmdline. A title set by the process itself leaves padding behind, which goes."""
    return tuple(cmdline.rstrip("\0").split("\0")) if cmdline.strip("\0") else ()


@dataclass(frozen=True, slots=True)
class Status:
    """Who a process is and whose child."""

    pid: int
    parent: int
    uid: int


def statuses(text: str) -> dict[int, Status]:
    """Processes by id, from `grep -H` on their status files (`/proc/41/status:PPid:\t1`)."""
    fields: dict[int, dict[str, str]] = {}
    for line in text.split("\n"):
        path, _, rest = line.partition(":")
        name, _, value = rest.partition(":")
        if (pid := _PID_PATH.match(path)) and value.split():
            fields.setdefault(int(pid.group(1)), {})[name] = value.split()[0]
    return {
        pid: Status(pid, int(parent), int(uid))
        for pid, found in fields.items()
        if _ID.match(parent := found.get("PPid", "0")) and _ID.match(uid := found.get("Uid", "-1"))
    }


def links(text: str) -> dict[str, str]:
    """Where each /proc link points, from `ls -l -d`. A link that may not be read is not in it."""
    return {
        found.group(2): found.group(3)
        for found in map(_LINK.match, text.split("\n"))
        if found and found.group(3) is not None
    }


def owners(text: str) -> dict[int, str]:
    """The user of each process, from `ls -l -d /proc/PID`."""
    return {
        int(found.group(2).removeprefix("/proc/")): found.group(1)
        for found in map(_FOLDER.match, text.split("\n"))
        if found
    }


def by_pid(text: str) -> dict[int, tuple[str, ...]]:
    """Lines by process, from `grep -H` (and its `-B`, whose context lines have a dash for the colon)."""
    found: dict[int, list[str]] = {}
    for line in text.split("\n"):
        if match := re.match(r"/proc/(\d{1,9}|self)/[\w/]+[:-](.*)", line, re.ASCII):
            found.setdefault(int(match.group(1)) if match.group(1) != "self" else 0, []).append(
                match.group(2)
            )
    return {pid: tuple(lines) for pid, lines in found.items()}


def environment(text: str) -> tuple[tuple[str, str], ...]:
    """Names and values of a /proc/PID/environ, sorted by name."""
    pairs = (entry.partition("=") for entry in re.split(r"[\0\n]", text) if "=" in entry)
    return tuple(sorted((name, value) for name, _, value in pairs))


def container(cgroup: tuple[str, ...]) -> str:
    """`docker 3f2a9c1b7d4e` when a control group names a container; empty when none does."""
    found = _CONTAINER.search("\n".join(cgroup))
    if not found:
        return ""
    if found["lxc"]:
        return f"lxc {found['lxc']}"
    runtime = found["runtime"]
    return f"{_RUNTIMES.get(runtime, runtime)} {found['id'][:12]}"


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening TCP socket."""

    address: str
    port: int
    uid: int
    inode: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


def listeners(lines: tuple[str, ...]) -> tuple[Listener, ...]:
    """The listening sockets among the lines of /proc/PID/net/tcp and tcp6, by port.

    0: 0100007F:7531 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 48211 …
    """
    found = []
    for line in lines:
        parts = line.split()
        if len(parts) < 10 or parts[3] != LISTEN or ":" not in parts[1]:
            continue
        host, _, port = parts[1].partition(":")
        try:
            found.append(Listener(_address(host), int(port, 16), int(parts[7]), int(parts[9])))
        except ValueError:
            continue
    return tuple(sorted(found, key=lambda listener: (listener.port, listener.address)))


def _address(hexadecimal: str) -> str:
    """An address as the kernel prints it: 32-bit words in the host's (little-endian) byte order."""
    raw = bytes.fromhex(hexadecimal)
    raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    address = ipaddress.ip_address(raw)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def sockets(text: str) -> dict[int, frozenset[int]]:
    """The socket inodes each process holds, from `ls -l /dev/null /proc/41/fd /proc/42/fd`."""
    found: dict[int, set[int]] = {}
    pid = None
    for line in text.split("\n"):
        if heading := re.match(r"/proc/(\d{1,9})/fd:$", line):
            pid = int(heading.group(1))
            found[pid] = set()
        elif pid is not None and (inode := re.search(r" -> socket:\[(\d{1,20})\]$", line)):
            found[pid].add(int(inode.group(1)))
    return {pid: frozenset(inodes) for pid, inodes in found.items()}


def open_files(text: str) -> dict[int, dict[int, str]]:
    """What each process's descriptors lead to, from `ls -l /dev/null /proc/41/fd`; sockets and pipes included.

    l-wx------ 1 lab lab 64 Nov 30 12:00 2 -> /srv/logs/sglang.log
    """
    found: dict[int, dict[int, str]] = {}
    pid = None
    for line in text.split("\n"):
        if heading := re.match(r"/proc/(\d{1,9})/fd:$", line):
            pid = int(heading.group(1))
            found.setdefault(pid, {})
        elif pid is not None and (entry := _DESCRIPTOR.match(line)):
            found[pid].setdefault(int(entry.group(1)), entry.group(2))
    return found


def standard_inputs(text: str) -> dict[int, str]:
    """What each process reads as its standard input, from `ls -l -d /proc/[0-9]*/fd/0`."""
    return {int(found.group(1)): found.group(2) for found in map(_INPUT.match, text.split("\n")) if found}


def local_addresses(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The addresses of a network namespace, loopback aside, from `grep -B 1 '/32 host LOCAL'` on its fib_trie.

    |-- 172.17.0.2
       /32 host LOCAL
    """
    found = {
        match.group(1)
        for line, after in pairwise(lines)
        if "host LOCAL" in after and (match := re.search(r"\|-- ([\d.]+)$", line))
    }
    return tuple(sorted(address for address in found if not address.startswith("127.")))
