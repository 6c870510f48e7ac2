"""The bytes of one file that was found: held where it is small, streamed by where it is large, hashed in either case."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from ddprobe.evidence.document import WHOLE, Document, of_bytes
from ddprobe.opening import bounds, heads
from ddprobe.opening.found import Progress, Taken


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
        if (start := heads.safetensors(taken.path, head)) is not None:
            self.kept = start
            self._hashed = True
            self._digest = hashlib.sha256(start)
            self.size = len(start)
        elif self.size > bounds.LARGE and heads.is_binary(head):
            self.trouble = "it is binary, and no kind that ddprobe reads"
        elif self.size <= bounds.LARGE or (
            self.size <= WHOLE and heads.is_one_object(head, heads.end_of(taken.path))
        ):
            data = taken.path.read_bytes()
            self._digest.update(data)
            self._hashed = True
            self.kept = mask(heads.as_utf8(data))
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
                while piece := file.read(bounds.CHUNK):
                    yield piece
            return
        digest, done, told = hashlib.sha256(), 0, 0
        hashing: Future[None] | None = None
        # Hashing a megabyte lets go of the interpreter: it costs nothing where there is a second core.
        with ThreadPoolExecutor(1) as side, self._path.open("rb", buffering=0) as file:
            while piece := file.read(bounds.CHUNK):
                if hashing is not None:
                    hashing.result()
                hashing = side.submit(digest.update, piece)
                done += len(piece)
                if done - told >= 32 * bounds.CHUNK:
                    told = done
                    self._progress(f"{self._name}: {done >> 20} of {max(self.size, done) >> 20} MiB")
                if self._cancelled.is_set():
                    self.trouble = f"interrupted after {done} bytes"
                    return
                yield piece
        self._digest, self._hashed, self.size = digest, True, done
