"""Goes through what was named, and through what that holds. What is no regular file is not read."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from ddprobe.errors import UsageError
from ddprobe.opening import archives, bounds, folders, heads
from ddprobe.opening.found import Closed, OldReport, Opened, Progress, Taken, is_report, shown
from ddprobe.opening.scratch import Refused, Scratch
from ddprobe.store import REPORT

STDIN = "stdin"


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
        self._scratch = Scratch(scratch, cancelled)
        self._reports = reports.resolve() if reports is not None else None
        self._tell = progress
        self._files = 0

    def _progress(self, now: str) -> None:
        self._tell(shown(now))

    def all(self, paths: Sequence[str]) -> Iterator[Opened]:
        """Everything under these paths, in order. The folder where reports are kept counts only where it is named."""
        for opened in self._all(paths):
            yield replace(opened, name=shown(opened.name))

    def _all(self, paths: Sequence[str]) -> Iterator[Opened]:
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
            found = False
            for opened in self._folder(path, ""):
                found = True
                yield opened
            if not found:
                yield Closed(name, f"the folder holds no file{folders.hidden(path)}", lost=False)
        else:
            yield from self._file(path, name, 0)

    def _folder(self, root: Path, prefix: str, depth: int = 0) -> Iterator[Opened]:
        for met in folders.walk(root, prefix, self._reports):
            if isinstance(met, OldReport | Closed):
                yield met
                continue
            path, name = met
            if self._files >= bounds.MAX_FILES:
                why = f"more than {bounds.MAX_FILES} files: it and those after it are not read"
                yield Closed(name, why)
                return
            yield from self._file(path, name, depth)

    def _file(self, path: Path, name: str, depth: int) -> Iterator[Opened]:
        if self._scratch.cancelled:
            return
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                yield Closed(name, "it is no regular file")
                return
            with path.open("rb") as file:
                head = file.read(512)
            self._files += 1
            packing = heads.packing(head)
            if not packing:
                yield Taken(name, path)
            elif depth >= bounds.MAX_DEPTH:
                why = f"archives more than {bounds.MAX_DEPTH} deep in each other are not opened"
                yield Closed(name, why)
            elif packing in archives.ARCHIVES:
                yield from self._archive(path, name, packing, depth)
            else:
                yield from self._compressed(path, name, packing, depth)
        except Refused as refused:
            yield Closed(name, str(refused))
        except archives.BROKEN as error:
            said = getattr(error, "strerror", None) or str(error) or type(error).__name__
            yield Closed(name, f"it cannot be read: {said}")
        except (RuntimeError, ValueError) as error:  # a zip with a password, a foreign method
            yield Closed(name, f"it cannot be unpacked: {error}")

    def _compressed(self, path: Path, name: str, packing: str, depth: int) -> Iterator[Opened]:
        target = self._scratch.place() / "content"
        self._progress(f"unpacking {name}")
        broken = archives.decompress(path, packing, self._scratch, target)
        yield from self._file(target, name, depth + 1)
        if broken:
            yield Closed(name, f"its end is missing or damaged: {broken}")

    def _archive(self, path: Path, name: str, packing: str, depth: int) -> Iterator[Opened]:
        place = self._scratch.place()
        self._progress(f"unpacking {name}")
        troubles = archives.unpack(path, packing, name, self._scratch, place)
        if troubles is None:
            return
        if is_report(place):
            yield OldReport(place, name)
        else:
            yield from self._folder(place, f"{name}/", depth + 1)
        yield from troubles

    def _stream(self, stream: BinaryIO, name: str) -> Iterator[Opened]:
        """Everything that comes, until it ends or the person has enough."""
        target = self._scratch.place() / "content"
        self._progress(f"reading {name}")
        written, more = self._scratch.drain(stream, target)
        if more:
            yield Closed(name, f"more than {bounds.MAX_UNPACKED // 1024**3} GiB came: the rest is not read")
        if written and self._scratch.cancelled:
            yield Taken(name, target)  # what came until the person had enough
        elif written:
            yield from self._file(target, name, 0)
        else:
            yield Closed(name, "nothing came")
