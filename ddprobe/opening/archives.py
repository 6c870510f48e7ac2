"""Archives and packed files, taken apart within bounds. What lies outside, is locked or is no file is told."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ddprobe.opening import bounds, heads
from ddprobe.opening.found import Closed
from ddprobe.opening.scratch import Refused, Scratch

BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile)
"""What the unpackers raise at a damaged place, or where the disk fails."""
_UNPACKERS: dict[str, Callable[[Path], Any]] = {"gzip": gzip.open, "xz": lzma.open, "bzip2": bz2.open}


@dataclass(frozen=True, slots=True)
class _Member:
    parts: tuple[str, ...]
    open: Callable[[], Any]

    @property
    def name(self) -> str:
        return "/".join(self.parts)


def unpack(path: Path, packing: str, name: str, scratch: Scratch, place: Path) -> list[Closed] | None:
    """Put an archive's members into an empty folder: what of it is not there, and why. None: it was broken off."""
    size = path.stat().st_size
    troubles: list[Closed] = []
    written = refusals = 0
    try:
        for number, member in enumerate(_MEMBERS[packing](path)):
            if scratch.cancelled:
                return None
            if number >= bounds.MAX_FILES:
                why = f"it holds more than {bounds.MAX_FILES} files: the rest is not read"
                troubles.append(Closed(name, why))
                break
            if isinstance(member, Closed):
                troubles.append(Closed(f"{name}/{member.name}", member.why))
                continue
            target = place.joinpath(*member.parts)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                placed = target.open("wb")
            except OSError as error:  # a name that is too long, or a file's that is a folder's too
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise
                why = f"it cannot be unpacked under this name: {error.strerror}"
                troubles.append(Closed(f"{name}/{member.name}", why))
                continue
            try:
                with placed as file, member.open() as stream:
                    written = scratch.copy(stream, file, size, written)
            except Refused as refused:
                target.unlink()
                written, refusals = 0, refusals + 1
                troubles.append(Closed(f"{name}/{member.name}", str(refused)))
                if refusals >= bounds.MOST_BOMBS:
                    troubles.append(Closed(name, "the rest of it is not read"))
                    break
    except BROKEN as error:
        troubles.append(Closed(name, f"its end is missing or damaged: {error}"))
    except Refused as refused:
        troubles.append(Closed(name, str(refused)))
    return troubles


def decompress(path: Path, packing: str, scratch: Scratch, target: Path) -> str:
    """Unpack one file as far as it goes; why it ends early, "" where it does not.

    Raises `Refused`, or what the unpacker raises where nothing could be had.
    """
    with _stream_of(path, packing) as stream, target.open("wb") as file:
        try:
            scratch.copy(stream, file, path.stat().st_size)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            if not file.tell():
                raise
            return str(error)
        except Refused:
            file.truncate(0)
            raise
    return ""


def _stream_of(path: Path, packing: str) -> Any:
    if packing != "zstd":
        return _UNPACKERS[packing](path)
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        why = "it is packed with zstd, which this Python cannot unpack: unpack it first"
        raise Refused(why) from None
    return zstd.open(path)


def _parts(name: str) -> tuple[str, ...] | None:
    """A member's place within the archive; None where it would lie outside."""
    path = PurePosixPath(name.replace("\\", "/"))
    parts = tuple(part for part in path.parts if part != ".")
    if not parts or path.is_absolute() or ".." in parts or "\0" in name or len(name) > 1000:
        return None
    return tuple(part.encode("utf-8", "replace").decode()[:200] for part in parts)


def _contents(path: Path) -> int:
    """Bytes of a zip's table of contents, as its end says; 0 where it has none."""
    end = heads.end_of(path, 64 * 1024 + 22)
    at = end.rfind(b"PK\5\6")
    return int.from_bytes(end[at + 12 : at + 16], "little") if at >= 0 else 0


def _zip_members(path: Path) -> Iterator[_Member | Closed]:
    if _contents(path) > bounds.MAX_CONTENTS:
        most = bounds.MAX_CONTENTS >> 20
        raise Refused(f"its table of contents has more than {most} MiB, and it is not opened")
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            parts = _parts(info.filename)
            if info.is_dir():
                continue
            if parts is None:
                yield Closed(info.filename, "it names a place outside of the archive")
            elif info.flag_bits & 1:
                yield Closed(info.filename, "it is locked with a password")
            else:
                yield _Member(parts, lambda info=info: archive.open(info))  # type: ignore[misc]


def _tar_members(path: Path) -> Iterator[_Member | Closed]:
    with tarfile.open(path, "r:") as archive:
        for info in archive:
            parts = _parts(info.name)
            if info.isdir():
                continue
            if parts is None:
                yield Closed(info.name, "it names a place outside of the archive")
                continue
            stream = archive.extractfile(info) if info.isreg() else None
            if stream is None:
                yield Closed(info.name, "it is a link or no regular file")
            else:
                yield _Member(parts, lambda stream=stream: stream)  # type: ignore[misc]


_MEMBERS: dict[str, Callable[[Path], Iterator[_Member | Closed]]] = {"zip": _zip_members, "tar": _tar_members}
ARCHIVES = frozenset(_MEMBERS)
