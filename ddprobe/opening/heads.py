"""What the first and the last bytes of a file tell of it. Its name decides nothing."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from ddprobe.opening import bounds

_JSON = re.compile(rb"\{|\[\s*[\[{\"]")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def packing(head: bytes) -> str:
    """How it is packed, of its first 512 bytes; "" where it is not."""
    for magic, name in (
        (b"\x1f\x8b", "gzip"), (b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"PK\x03\x04", "zip"),
    ):  # fmt: skip
        if head.startswith(magic):
            return name
    return "tar" if head[257:262] == b"ustar" else ""


def end_of(path: Path, size: int = 4096) -> bytes:
    """The last bytes of a file, at most so many."""
    with path.open("rb") as file:
        file.seek(-min(size, file.seek(0, os.SEEK_END)), os.SEEK_END)
        return file.read()


def is_one_object(head: bytes, end: bytes) -> bool:
    """JSON that has to be held as a whole; not a log with one object a line, and none that begins with a pasted one."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not _JSON.match(start) or not end.rstrip(b" \t\r\n\0").endswith((b"}", b"]")):
        return False
    return not start.split(b"\n", 1)[0].rstrip().endswith(b"}")


def is_binary(head: bytes) -> bool:
    """Whether it holds zero bytes that are no half of an UTF-16 character."""
    return b"\0" in head and not head.startswith(_UTF16)


def as_utf8(data: bytes) -> bytes:
    """UTF-16 (what PowerShell's `>` writes) as UTF-8; all else as it is."""
    if data.startswith(_UTF16):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data


def safetensors(path: Path, head: bytes) -> bytes | None:
    """The beginning of a safetensors file, up to its weights; None where it is none."""
    size = int.from_bytes(head[:8], "little")
    if not 2 <= size <= bounds.MAX_HEADER or head[8:9] != b"{":
        return None
    with contextlib.suppress(OSError), path.open("rb") as file:
        start = file.read(8 + size)
        if len(start) == 8 + size and start.rstrip().endswith(b"}"):
            return start
    return None
