"""What may not come back from a host: secrets are masked by the name before them and by their shape, on bytes.

A secret seen once (`api_key` in `/server_info`) is masked wherever else it turns up in the run, also JSON-escaped,
URL-encoded, in hex and in base64. Every scan is linear: a host cannot stall it.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import threading
from collections.abc import Iterator

from ddprobe.model import Command, Glob, HttpRequest, HttpResult, Result
from ddprobe.redact import names
from ddprobe.redact.known import Form, beginning, forms, is_learnable
from ddprobe.redact.named import by_name
from ddprobe.redact.shapes import by_shape, in_urls
from ddprobe.redact.spans import MASK, NO_VALUE, NOT_KEPT, Span, secrets_in

MAX_LEARNED = 256


class Redactor:
    """Masks secrets in what a run brings back. One for all hosts of a run; any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._known: dict[bytes, tuple[Form, ...]] = {}

    @property
    def count(self) -> int:
        """How many times something was masked so far."""
        return self._count

    def learn(self, value: str | bytes) -> None:
        """Mask this value from now on, whatever stands before it. Trivial ones (`None`, `auto`, numbers) are not."""
        raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        if not is_learnable(raw):
            return
        with self._lock:
            if raw not in self._known and len(self._known) < MAX_LEARNED:
                self._known = {**self._known, raw: forms(raw)}

    def text(self, text: str) -> str:
        """The text without secrets."""
        return self.data(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def data(self, data: bytes, *, source: bool = False, cut: bool = False) -> bytes:
        """The bytes without secrets.

        `source`: program text, where `password=args.password` names a secret and holds none. `cut`: the end is
        missing, so the last word may be the beginning of a secret.
        """
        for scan in (by_name, in_urls, by_shape):
            data = self._mask(data, scan(data, source, cut), learn=not source)
        return self._mask_known(data, cut)

    def prose(self, text: str) -> str:
        """A sentence of our own that may quote a secret: masked where its shape, or what was learned, betrays it."""
        data = text.encode("utf-8", "surrogatepass")
        for scan in (in_urls, by_shape):
            data = self._mask(data, scan(data, False, False))
        return self._mask_known(data, False).decode("utf-8", "surrogatepass")

    def known(self, data: bytes) -> bytes:
        """The bytes without what was learned so far, for what was written before it was."""
        return self._mask_known(data, False)

    def environment(self, data: bytes, *, cut: bool = False) -> bytes:
        """`/proc/<pid>/environ`: allow-listed variables, of the others the name alone."""
        entries = data.split(b"\0")
        return b"\0".join(
            self._variable(entry, cut and number == len(entries) - 1) for number, entry in enumerate(entries)
        )

    def result(self, result: Result) -> Result:
        """The answer without secrets, its question included."""
        if isinstance(result, HttpResult):
            return dataclasses.replace(
                result,
                question=self._request(result.question),
                headers=self._headers(result.headers),
                body=self.data(result.body, cut=result.truncated or result.timed_out or bool(result.failure)),
                failure=self.text(result.failure),
            )
        cut = result.truncated or result.stopped or result.exit_code is None
        return dataclasses.replace(
            result,
            question=self._command(result.question),
            stdout=self.environment(result.stdout, cut=cut)
            if _reads_environment(result.question)
            else self._output(result.question, result.stdout, cut),
            stderr=self.data(result.stderr, cut=result.stderr_truncated or cut),
            failure=self.text(result.failure),
        )

    def _output(self, question: Command, stdout: bytes, cut: bool) -> bytes:
        """What a command printed: program text as such, and of a search over both, each line as its file is."""
        files = _files_read(question)
        source = {file for file in files if _SOURCE_FILE.search(file)}
        if not source or len(source) == len(files) or question.argv[0] != "grep":
            return self.data(stdout, source=bool(source) and len(source) == len(files), cut=cut)
        parts: list[tuple[bool, list[bytes]]] = []
        for line in stdout.splitlines(keepends=True):
            kind = any(
                line[: found.start()].decode("utf-8", "replace") in source for found in _SIGN.finditer(line)
            )
            if not parts or parts[-1][0] is not kind:
                parts.append((kind, []))
            parts[-1][1].append(line)
        return b"".join(
            self.data(b"".join(lines), source=kind, cut=cut and number == len(parts))
            for number, (kind, lines) in enumerate(parts, 1)
        )

    def _command(self, question: Command) -> Command:
        argv = tuple(word if isinstance(word, Glob) else self.text(word) for word in question.argv)
        return dataclasses.replace(question, argv=argv, stdin=self.data(question.stdin))

    def _request(self, question: HttpRequest) -> HttpRequest:
        return dataclasses.replace(
            question,
            path=self.text(question.path),
            base=self.text(question.base),
            headers=self._headers(question.headers),
            body=self.data(question.body),
        )

    def _headers(self, headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        clean = (self.text(f"{name}: {value}").partition(": ") for name, value in headers)
        return tuple((name, value) for name, _, value in clean)

    def _variable(self, entry: bytes, cut: bool) -> bytes:
        name, equals, value = entry.partition(b"=")
        if not entry:
            return entry
        if not equals or not _VARIABLE.match(name):
            return NOT_KEPT
        text = name.decode("ascii")
        if names.is_secret(text) and value.lower() not in NO_VALUE:
            return name + b"=" + self._mask(value, iter((Span(0, len(value), MASK, secrets_in(value)),)))
        clean = self.data(value, cut=cut)  # also where it is not kept: a secret in it is learned
        return name + b"=" + (clean if names.is_kept_variable(text) else NOT_KEPT)

    def _mask(self, data: bytes, spans: Iterator[Span], *, learn: bool = True) -> bytes:
        pieces: list[bytes] = []
        at = 0
        for span in spans:
            if span.start < at:
                continue
            pieces += (data[at : span.start], span.mask)
            at = span.end
            for value in span.learn if learn else ():
                self.learn(value)
        if not pieces:
            return data
        with self._lock:
            self._count += len(pieces) // 2
        pieces.append(data[at:])
        return b"".join(pieces)

    def _mask_known(self, data: bytes, cut: bool) -> bytes:
        masked = 0
        for secret in self._known.values():
            for form in secret:
                if form.written in data:
                    data, times = form.pattern.subn(MASK, data)
                    masked += times
                if cut and (begun := beginning(form.written, data)):
                    data = data[:-begun] + MASK
                    masked += 1
        if masked:
            with self._lock:
                self._count += masked
        return data


_VARIABLE = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{0,199}\Z")
_SOURCE_FILE = re.compile(r"\.(py|pyi|pyx|c|cc|cpp|cu|cuh|h|hpp|rs|go|js|ts)\Z")


_SIGN = re.compile(rb"[:-](?=\d)")


def _reads_environment(question: Command) -> bool:
    return (
        len(question.argv) == 2 and question.argv[0] == "cat" and str(question.argv[1]).endswith("/environ")
    )


def _files_read(question: Command) -> list[str]:
    """The files whose content a command prints; a pattern that looks like one is none."""
    if question.argv[0] not in ("cat", "head", "tail", "sed", "grep"):
        return []
    words = [str(word) for word in question.argv]
    return [word for before, word in itertools.pairwise(words) if word.startswith("/") and before != "-e"]
