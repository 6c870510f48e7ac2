"""Opens what is to be analysed: files, folders, archives, stdin and old reports, within bounds.

Nothing is trusted: archives unpack into a private folder that is removed afterwards, so much and no more; links that
lead out of a folder are not followed; what is no regular file is not read. What a file is called decides nothing.
"""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import hashlib
import lzma
import os
import re
import select
import stat
import sys
import tarfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from ddprobe.errors import UsageError
from ddprobe.evidence.document import WHOLE, Document, of_bytes
from ddprobe.store import EVENTS, REPORT

LARGE = 4 * 1024 * 1024
"""From so many bytes on, a text is read as it streams by, and is not copied into the report."""
CHUNK = 1024 * 1024
MAX_FILES = 2000
MAX_DEPTH = 3
"""Archives within archives."""
MAX_UNPACKED = 8 * 1024**3
MAX_RATIO = 250
"""Times its own size that an archive may unpack to, once that is more than `CHECKED_FROM`."""
CHECKED_FROM = 64 * 1024 * 1024
MAX_HEADER = 64 * 1024 * 1024
STDIN = "stdin"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class OldReport:
    """The folder of a report."""

    folder: Path
    name: str


@dataclass(frozen=True, slots=True)
class Taken:
    """A regular file on this disk."""

    name: str
    """As a person knows it."""
    path: Path


@dataclass(frozen=True, slots=True)
class Closed:
    """Something that is not read, and why."""

    name: str
    why: str


Opened = OldReport | Taken | Closed


def check(paths: Sequence[str]) -> None:
    """Raises `UsageError` when something that was named is not there."""
    absent = [path for path in paths if path != "-" and not os.path.lexists(path)]
    if absent:
        raise UsageError(
            f"there is no {', '.join(absent)}", "name files, folders, archives or report folders; - is stdin"
        )
    if list(paths).count("-") > 1:
        raise UsageError("- stands twice, and stdin can be read once", "name it once")


class Opener:
    """Goes through what was named. One for a run: the bounds hold for all of it together."""

    def __init__(
        self, scratch: Path, progress: Progress, cancelled: threading.Event, reports: Path | None = None
    ) -> None:
        self._scratch = scratch
        self._reports = reports.resolve() if reports is not None else None
        self._progress = progress
        self._cancelled = cancelled
        self._files = 0
        self._places = 0
        self._unpacked = 0

    def all(self, paths: Sequence[str]) -> Iterator[Opened]:
        """Everything under these paths, in order. The folder where reports are kept counts only where it is named."""
        for path in paths:
            if path == "-" and sys.stdin is None:  # closed by the shell: <&-
                yield Closed(STDIN, "it is closed")
            elif path == "-":
                yield from self._stream(sys.stdin.buffer, STDIN)
            else:
                yield from self._named(Path(path))

    def _named(self, path: Path) -> Iterator[Opened]:
        name = path.name or path.resolve().name
        try:
            mode = path.stat().st_mode
            if stat.S_ISFIFO(mode) and path.parent.as_posix() in ("/dev/fd", "/proc/self/fd"):
                with path.open("rb") as stream:  # <(command) of a shell
                    yield from self._stream(stream, name)
                return
        except OSError as error:
            yield Closed(name, error.strerror or str(error))
            return
        if is_report(path) or (path.name == REPORT and (path.parent / "evidence").is_dir()):
            yield OldReport(path if path.is_dir() else path.parent, name)
        elif path.is_dir():
            yield from self._folder(path, "")
        else:
            yield from self._file(path, name, 0)

    def _folder(self, root: Path, prefix: str, depth: int = 0) -> Iterator[Opened]:
        """Files in the order of their names; a report within is one."""
        inside = [root.resolve()]
        if root.resolve().parent.name == "snapshots":  # of a Hugging Face cache: its files are links to blobs
            inside.append(root.resolve().parent.parent / "blobs")
        waiting = [root]
        while waiting:
            folder = waiting.pop()
            name = prefix + folder.relative_to(root).as_posix()
            if folder != root and is_report(folder):
                yield OldReport(folder, name)
                continue
            try:
                entries = sorted(folder.iterdir())
            except OSError as error:
                told = name if folder != root else prefix.rstrip("/") or root.name or root.resolve().name
                yield Closed(told, error.strerror or str(error))
                continue
            folders = []
            for entry in entries:
                name = prefix + entry.relative_to(root).as_posix()
                if entry.is_symlink():
                    try:
                        led = entry.resolve()
                    except (OSError, RuntimeError):  # Python before 3.13 raises RuntimeError
                        yield Closed(name, "it is a link that leads to itself")
                        continue
                    if not any(led.is_relative_to(place) for place in inside):
                        yield Closed(name, "it is a link to a place outside of the folder")
                        continue
                    if led.is_dir():
                        continue  # it is gone through where it stands
                if entry.is_dir():
                    if not entry.name.startswith(".") and entry.resolve() != self._reports:
                        folders.append(entry)
                    continue
                if self._files >= MAX_FILES:
                    yield Closed(name, f"more than {MAX_FILES} files: it and those after it are not read")
                    return
                yield from self._file(entry, name, depth)
            waiting += reversed(folders)

    # --- one file ----------------------------------------------------------------------------------------

    def _file(self, path: Path, name: str, depth: int) -> Iterator[Opened]:
        if self._cancelled.is_set():
            return
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                yield Closed(name, "it is no regular file")
                return
            with path.open("rb") as file:
                head = file.read(512)
            self._files += 1
            packing = _packing(head)
            if packing and depth >= MAX_DEPTH:
                yield Closed(name, f"archives more than {MAX_DEPTH} deep in each other are not opened")
            elif packing == "zip":
                yield from self._archive(_zip_members, path, name, depth)
            elif packing == "tar":
                yield from self._archive(_tar_members, path, name, depth)
            elif packing:
                yield from self._compressed(path, name, packing, depth)
            else:
                yield Taken(name, path)
        except _Bomb as bomb:
            yield Closed(name, str(bomb))
        except (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile) as error:
            said = getattr(error, "strerror", None) or str(error) or type(error).__name__
            yield Closed(name, f"it cannot be read: {said}")
        except (RuntimeError, ValueError) as error:  # a zip with a password, a foreign method
            yield Closed(name, f"it cannot be unpacked: {error}")

    def _compressed(self, path: Path, name: str, packing: str, depth: int) -> Iterator[Opened]:
        if packing == "zstd":
            opened = _zstd(path)
            if opened is None:
                yield Closed(name, "it is packed with zstd, which this Python cannot unpack: unpack it first")
                return
        else:
            opened = _UNPACKERS[packing](path)
        target = self._place() / "content"
        self._progress(f"unpacking {name}")
        broken = ""
        with opened as stream, target.open("wb") as file:
            try:
                self._copy(stream, file, path.stat().st_size)
            except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                if not file.tell():
                    raise
                broken = str(error)
        yield from self._file(target, name, depth + 1)
        if broken:
            yield Closed(name, f"its end is missing or damaged: {broken}")

    def _archive(
        self, members: Callable[[Path], Iterator[_Member | Closed]], path: Path, name: str, depth: int
    ) -> Iterator[Opened]:
        place = self._place()
        size = path.stat().st_size
        self._progress(f"unpacking {name}")
        troubles: list[Closed] = []
        written = 0
        try:
            for number, member in enumerate(members(path)):
                if self._cancelled.is_set():
                    return
                if number >= MAX_FILES:
                    troubles.append(
                        Closed(name, f"it holds more than {MAX_FILES} files: the rest is not read")
                    )
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
                    inner = "/".join(member.parts)
                    troubles.append(
                        Closed(f"{name}/{inner}", f"it cannot be unpacked under this name: {error.strerror}")
                    )
                    continue
                with placed as file, member.open() as stream:
                    written = self._copy(stream, file, size, written)
        except (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile) as error:
            troubles.append(Closed(name, f"its end is missing or damaged: {error}"))
        except _Bomb as bomb:
            troubles.append(Closed(name, str(bomb)))
        if is_report(place):
            yield OldReport(place, name)
        else:
            yield from self._folder(place, f"{name}/", depth + 1)
        yield from troubles

    def _copy(self, stream: BinaryIO, file: BinaryIO, packed: int, before: int = 0) -> int:
        """Unpack one stream, as far as the bounds allow. Returns what the archive came to so far."""
        # What comes before a damaged place is had only by reading no further than the next piece.
        read = getattr(stream, "read1", stream.read)
        while piece := read(CHUNK):
            if self._cancelled.is_set():
                break
            before += len(piece)
            self._unpacked += len(piece)
            if before > CHECKED_FROM and before > MAX_RATIO * packed:
                raise _Bomb(f"it unpacks to more than {MAX_RATIO} times its size, and is not opened")
            if self._unpacked > MAX_UNPACKED:
                raise _Bomb(f"more than {MAX_UNPACKED // 1024**3} GiB would have to be unpacked")
            file.write(piece)
        return before

    def _stream(self, stream: BinaryIO, name: str) -> Iterator[Opened]:
        """Everything that comes, until it ends or the person has enough."""
        target = self._place() / "content"
        self._progress(f"reading {name}")
        written = 0
        with target.open("wb") as file:
            while not self._cancelled.is_set():
                if not _ready(stream):
                    continue
                piece = stream.read1(CHUNK) if hasattr(stream, "read1") else stream.read(CHUNK)
                if not piece:
                    break
                written += len(piece)
                if written > MAX_UNPACKED:
                    yield Closed(name, f"more than {MAX_UNPACKED // 1024**3} GiB came: the rest is not read")
                    break
                file.write(piece)
        with target.open("rb") as file:
            whole = file.seek(0, os.SEEK_END)
        if whole and self._cancelled.is_set():
            yield Taken(name, target)  # what came until the person had enough
        elif whole:
            yield from self._file(target, name, 0)
        else:
            yield Closed(name, "nothing came")

    def _place(self) -> Path:
        self._places += 1
        place = self._scratch / str(self._places)
        place.mkdir(mode=0o700)
        return place


_UNPACKERS: dict[str, Callable[[Path], Any]] = {"gzip": gzip.open, "xz": lzma.open, "bzip2": bz2.open}


class _Bomb(Exception):
    """An archive that would fill the disk."""


def is_report(folder: Path) -> bool:
    """Whether the folder is that of a report; one that may not be looked into is none."""
    try:
        return (folder / EVENTS).is_file() or ((folder / REPORT).is_file() and (folder / "evidence").is_dir())
    except OSError:
        return False


# --- archives ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Member:
    parts: tuple[str, ...]
    open: Callable[[], Any]


def _packing(head: bytes) -> str:
    for magic, name in (
        (b"\x1f\x8b", "gzip"), (b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"PK\x03\x04", "zip"),
    ):  # fmt: skip
        if head.startswith(magic):
            return name
    return "tar" if head[257:262] == b"ustar" else ""


def _zstd(path: Path) -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    return zstd.open(path)


def _parts(name: str) -> tuple[str, ...] | None:
    """A member's place within the archive; None where it would lie outside."""
    path = PurePosixPath(name.replace("\\", "/"))
    parts = tuple(part for part in path.parts if part != ".")
    if not parts or path.is_absolute() or ".." in parts or "\0" in name or len(name) > 1000:
        return None
    return tuple(part.encode("utf-8", "replace").decode()[:200] for part in parts)


def _zip_members(path: Path) -> Iterator[_Member | Closed]:
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


def _ready(stream: BinaryIO) -> bool:
    """Whether something can be read now; looks up every so often, so that Ctrl-C is seen."""
    try:
        number = stream.fileno()
        return bool(select.select([number], [], [], 0.2)[0])
    except (OSError, ValueError):
        return True


# --- contents ----------------------------------------------------------------------------------------------


class Content:
    """The bytes of a file: as a document to be recognised, its size, and its SHA-256 once it was read whole."""

    def __init__(
        self, taken: Taken, mask: Callable[[bytes], bytes], progress: Progress, cancelled: threading.Event
    ) -> None:
        self._path = taken.path
        self._name = taken.name
        self._progress = progress
        self._cancelled = cancelled
        self._digest = hashlib.sha256()
        self._hashed = False
        self.size = taken.path.stat().st_size
        self.kept: bytes | None = None
        """The whole, secrets masked; None where it is too large, or no text."""
        self.trouble = ""
        with taken.path.open("rb") as file:
            head = file.read(64 * 1024)
        if (start := _safetensors(taken.path, head)) is not None:
            self.kept = start
            self._hashed = True
            self._digest = hashlib.sha256(start)
            self.size = len(start)
        elif b"\0" in head and self.size > LARGE and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
            self.trouble = "it is binary, and no kind that ddprobe reads"
        elif self.size <= LARGE or (self.size <= WHOLE and _is_one_object(head)):
            data = taken.path.read_bytes()
            self._digest.update(data)
            self._hashed = True
            self.kept = mask(_as_utf8(data))
        self.document: Document | None = None
        if self.kept is not None:
            self.document = of_bytes(taken.name, self.kept)
        elif not self.trouble:
            self.document = Document(taken.name, self._pieces, large=True)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest() if self._hashed else ""

    def _pieces(self) -> Iterator[bytes]:
        """The file, piece by piece. Its first reading to the end is hashed on the side, and tells how far it is."""
        if self._hashed:
            with self._path.open("rb") as file:
                while piece := file.read(CHUNK):
                    yield piece
            return
        digest, done, told = hashlib.sha256(), 0, 0
        hashing: Future[None] | None = None
        # Hashing a megabyte lets go of the interpreter: it costs nothing where there is a second core.
        with ThreadPoolExecutor(1) as side, self._path.open("rb", buffering=0) as file:
            while piece := file.read(CHUNK):
                if hashing is not None:
                    hashing.result()
                hashing = side.submit(digest.update, piece)
                done += len(piece)
                if done - told >= 32 * CHUNK:
                    told = done
                    self._progress(f"{self._name}: {done >> 20} of {max(self.size, done) >> 20} MiB")
                if self._cancelled.is_set():
                    self.trouble = f"interrupted after {done} bytes"
                    return
                yield piece
        self._digest, self._hashed, self.size = digest, True, done


_JSON = re.compile(rb"\{|\[\s*[\[{\"]")


def _is_one_object(head: bytes) -> bool:
    """JSON that has to be held as a whole; not a log with one object a line."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return bool(_JSON.match(start)) and not start.split(b"\n", 1)[0].rstrip().endswith(b"}")


def _as_utf8(data: bytes) -> bytes:
    """UTF-16 (what PowerShell's `>` writes) as UTF-8; all else as it is."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data


def _safetensors(path: Path, head: bytes) -> bytes | None:
    """The beginning of a safetensors file, up to its weights; None where it is none."""
    size = int.from_bytes(head[:8], "little")
    if not 2 <= size <= MAX_HEADER or head[8:9] != b"{":
        return None
    with contextlib.suppress(OSError), path.open("rb") as file:
        start = file.read(8 + size)
        if len(start) == 8 + size and start.rstrip().endswith(b"}"):
            return start
    return None
