"""What a made-up process, its sockets and its GPUs look like under /proc."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ddprobe.lab.tree import File, Folder, Link, Tree

_NAMESPACES = {
    "cgroup": 4026531835, "ipc": 4026531839, "mnt": 4026531841, "net": 4026531840,
    "pid": 4026531836, "user": 4026531837, "uts": 4026531838,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    pid: int
    parent: int
    uid: int
    argv: tuple[str, ...]
    name: str
    """`comm`: the kernel keeps 15 characters of it."""
    executable: str
    cwd: str = "/"
    environment: Mapping[str, str] = field(default_factory=dict)
    cgroup: str = "/init.scope"
    sockets: tuple[int, ...] = ()
    """Inodes."""
    output: str = "/dev/null"
    started: int = 0


@dataclass(frozen=True, slots=True)
class Listener:
    address: str
    port: int
    uid: int
    inode: int


def add_proc(
    tree: Tree, processes: Sequence[Process], listeners: Sequence[Listener], *, kernel: str, now: int
) -> None:
    """Fill /proc. `/proc/self` is the last process: the shell that a session talks to."""
    _text(tree, "/proc/version", f"Linux version {kernel} (ddprobe lab) #1 SMP PREEMPT_DYNAMIC\n", now)
    _text(tree, "/proc/uptime", "1041377.40 131094511.08\n", now)
    _text(tree, "/proc/loadavg", "8.11 8.04 7.92 9/2710 91244\n", now)
    for process in processes:
        _process(tree, process, listeners, now)
    tree.add("/proc/self", Link(target=str(processes[-1].pid), modified=now))
    _text(tree, "/proc/mounts", "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n", now)
    tree.add("/proc/net", Link(target="self/net", modified=now))


def add_gpus(tree: Tree, model: str, addresses: Sequence[str], *, driver: str, now: int) -> None:
    """What the NVIDIA driver says of each GPU."""
    _text(
        tree,
        "/proc/driver/nvidia/version",
        f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {driver}  Release Build  (ddprobe lab)\n",
        now,
    )
    for number, address in enumerate(addresses):
        _text(
            tree,
            f"/proc/driver/nvidia/gpus/{address}/information",
            f"Model: \t\t {model}\nIRQ:   \t\t {240 + number}\n"
            f"GPU UUID: \t GPU-1ab00000-0000-4000-8000-{number:012x}\nVideo BIOS: \t 98.02.8d.00.05\n"
            f"Bus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\n"
            f"Bus Location: \t {address}\nDevice Minor: \t {number}\nGPU Firmware: \t {driver}\nGPU Excluded:\t No\n",
            now,
        )


def _text(tree: Tree, path: str, text: str, now: int, *, uid: int = 0, mode: int = 0o444) -> None:
    # Linux says that a file under /proc is empty, whatever it holds.
    tree.add(path, File(content=text.encode(), size=0, uid=uid, mode=mode, modified=now))


def _process(tree: Tree, process: Process, listeners: Sequence[Listener], now: int) -> None:
    at = f"/proc/{process.pid}"
    uid, born = process.uid, process.started or now

    def text(name: str, content: str, mode: int = 0o444) -> None:
        _text(tree, f"{at}/{name}", content, born, uid=uid, mode=mode)

    def link(name: str, target: str) -> None:
        tree.add(f"{at}/{name}", Link(target=target, uid=uid, mode=0o700, modified=born))

    tree.add(at, Folder(uid=uid, mode=0o555, modified=born))
    comm = process.name[:15]
    text("cmdline", "".join(f"{word}\0" for word in process.argv))
    text("comm", f"{comm}\n", 0o644)
    text("stat", f"{process.pid} ({comm}) S {process.parent} {process.pid} {process.pid} 0 -1 4194560\n")
    text("status", _status(process, comm))
    text("environ", "".join(f"{name}={value}\0" for name, value in process.environment.items()), 0o400)
    text("cgroup", f"0::{process.cgroup}\n")
    link("cwd", process.cwd)
    link("exe", process.executable)
    link("root", "/")
    tree.add(f"{at}/fd", Folder(uid=uid, mode=0o500, modified=born))
    held = ["/dev/null", process.output, process.output, *(f"socket:[{inode}]" for inode in process.sockets)]
    for number, target in enumerate(held):
        link(f"fd/{number}", target)
    tree.add(f"{at}/ns", Folder(uid=uid, mode=0o500, modified=born))
    for name, inode in _NAMESPACES.items():
        link(f"ns/{name}", f"{name}:[{inode}]")
    text("net/tcp", _tcp([one for one in listeners if ":" not in one.address]))
    text("net/tcp6", _tcp([one for one in listeners if ":" in one.address]))
    text("net/fib_trie", _FIB_TRIE)


def _status(process: Process, comm: str) -> str:
    ids = "\t".join([str(process.uid)] * 4)
    return (
        f"Name:\t{comm}\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t{process.pid}\nNgid:\t0\nPid:\t{process.pid}\n"
        f"PPid:\t{process.parent}\nTracerPid:\t0\nUid:\t{ids}\nGid:\t{ids}\nFDSize:\t256\nGroups:\t{process.uid} \n"
        f"NStgid:\t{process.pid}\nNSpid:\t{process.pid}\nThreads:\t1\n"
    )


def _tcp(listeners: Sequence[Listener]) -> str:
    rows = [
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
    ]
    for number, one in enumerate(listeners):
        local = _hex(one.address)
        rows.append(
            f"{number:4d}: {local}:{one.port:04X} {'0' * len(local)}:0000 0A 00000000:00000000 00:00000000 00000000"
            f" {one.uid:5d}        0 {one.inode} 1 0000000000000000 100 0 0 10 0"
        )
    return "\n".join(rows) + "\n"


def _hex(address: str) -> str:
    """An address as the kernel prints it: 32-bit words in little-endian order."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    raw = socket.inet_pton(family, address)
    return "".join(f"{word:08X}" for word in struct.unpack(f"<{len(raw) // 4}I", raw))


_FIB_TRIE = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 10.11.0.21
        /32 host LOCAL
     |-- 127.0.0.1
        /32 host LOCAL
Local:
  +-- 0.0.0.0/0 3 0 5
     |-- 10.11.0.21
        /32 host LOCAL
     |-- 127.0.0.1
        /32 host LOCAL
"""
