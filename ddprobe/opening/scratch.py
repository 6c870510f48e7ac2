"""The private folder that things are unpacked into, and how much may come into it."""

from __future__ import annotations

import select
import shutil
import threading
from pathlib import Path
from typing import BinaryIO

from ddprobe.opening import bounds


class Refused(Exception):
    """What is not unpacked, and why: it would fill the disk, or nothing here can unpack it."""


class Scratch:
    """One for a run: the bounds hold for all that comes into it together."""

    def __init__(self, folder: Path, cancelled: threading.Event) -> None:
        self._folder = folder
        self._cancelled = cancelled
        self._places = 0
        self._unpacked = 0
        self._looked = 0

    @property
    def cancelled(self) -> bool:
        """Whether the person has enough."""
        return self._cancelled.is_set()

    def place(self) -> Path:
        """A new empty folder in it."""
        self._places += 1
        place = self._folder / str(self._places)
        place.mkdir(mode=0o700)
        return place

    def copy(self, stream: BinaryIO, file: BinaryIO, packed: int, before: int = 0) -> int:
        """Unpack one stream, as far as the bounds allow. Returns what the archive came to so far.

        `packed`: bytes of the archive. `before`: what it came to before. Raises `Refused`, or what its unpacker raises.
        """
        # What comes before a damaged place is had only by reading no further than the next piece.
        read = getattr(stream, "read1", stream.read)
        while piece := read(bounds.CHUNK):
            if self._cancelled.is_set():
                break
            before += len(piece)
            self._unpacked += len(piece)
            if before > bounds.CHECKED_FROM and before > bounds.MAX_RATIO * packed:
                raise Refused(f"it unpacks to more than {bounds.MAX_RATIO} times its size, and is not opened")
            if self._unpacked > bounds.MAX_UNPACKED:
                raise Refused(f"more than {bounds.MAX_UNPACKED // 1024**3} GiB would have to be unpacked")
            if self._unpacked - self._looked >= bounds.CHECKED_FROM:
                self._looked = self._unpacked
                if shutil.disk_usage(self._folder).free < bounds.LEAST_FREE:
                    raise Refused(
                        f"it would leave less than {bounds.LEAST_FREE // 1024**3} GiB of the disk free"
                    )
            file.write(piece)
        return before

    def drain(self, stream: BinaryIO, target: Path) -> tuple[int, bool]:
        """Write what comes to a file, until it ends or the person has enough: its bytes, and whether it was too much."""
        written = 0
        with target.open("wb") as file:
            while not self._cancelled.is_set():
                if not _ready(stream):
                    continue
                piece = stream.read1(bounds.CHUNK) if hasattr(stream, "read1") else stream.read(bounds.CHUNK)
                if not piece:
                    break
                if written + len(piece) > bounds.MAX_UNPACKED:
                    return written, True
                file.write(piece)
                written += len(piece)
        return written, False


def _ready(stream: BinaryIO) -> bool:
    """Whether something can be read now; looks up every so often, so that Ctrl-C is seen."""
    try:
        number = stream.fileno()
        return bool(select.select([number], [], [], 0.2)[0])
    except (OSError, ValueError):
        return True
