"""`grep` over a made-up tree."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddprobe.lab.ere import BadPattern, compile_pattern
from ddprobe.lab.machine import Machine
from ddprobe.lab.programs import Arguments, Output
from ddprobe.lab.tree import TreeError


def grep(machine: Machine, given: Arguments, out: Output) -> None:
    kind = "fixed" if given.has("-F") else "extended" if given.has("-E") else "basic"
    try:
        pattern = compile_pattern(
            "\n".join(given.values("-e")), kind=kind, ignore_case=given.has("-i"), words=given.has("-w")
        )
    except BadPattern as error:
        out.complain(str(error), 2)
        return
    search = _Search(given, pattern, out)
    out.exit = 1
    for path in given.operands:
        try:
            search.file(path, machine.tree.read(path))
        except TreeError as error:
            search.failed = True
            if not given.has("-s"):
                out.complain(f"{path}: {error}", 2)
    out.exit = 2 if search.failed else 0 if search.matched else 1


class _Search:
    """One run of grep: its options, and what carries over from file to file."""

    def __init__(self, given: Arguments, pattern: re.Pattern[bytes], out: Output) -> None:
        self.given = given
        self.pattern = pattern
        self.out = out
        self.matched = False
        self.failed = False
        self.printed = False
        around = given.value("-C")
        self.before = int(given.value("-B") or around or 0)
        self.after = int(given.value("-A") or around or 0)
        self.grouped = any(given.has(option) for option in ("-A", "-B", "-C")) and not given.has("-o")
        named = (option for option, _ in reversed(given.options) if option in ("-h", "-H"))
        self.named = next(named, "-H" if len(given.operands) > 1 else "-h") == "-H"

    def file(self, path: str, data: bytes) -> None:
        binary = b"\0" in data and not self.given.has("-a")
        if binary and self.given.has("-I"):
            return
        if binary:
            data = data.replace(b"\0", b"\n")
        lines = data.removesuffix(b"\n").split(b"\n") if data else []
        limit = self.given.value("-m")
        hits = [number for number, line in enumerate(lines) if self.pattern.search(line)]
        hits = hits if limit is None else hits[: int(limit)]
        self.matched = self.matched or bool(hits)
        name = path.encode("utf-8", "surrogateescape")
        if self.given.has("-l"):
            self.out.stdout += name + b"\n" if hits else b""
        elif self.given.has("-c"):
            self.out.stdout += (name + b":" if self.named else b"") + b"%d\n" % len(hits)
        elif binary:
            self.out.stderr += b"grep: " + name + b": binary file matches\n" if hits else b""
        else:
            self.show(name, lines, hits)

    def show(self, name: bytes, lines: list[bytes], hits: list[int]) -> None:
        previous = -1
        for number, hit in self.with_context(len(lines), hits):
            if self.grouped and self.printed and (previous < 0 or number > previous + 1):
                self.out.stdout += b"--\n"
            self.printed, previous = True, number
            sign = b":" if hit else b"-"
            prefix = name + sign if self.named else b""
            if self.given.has("-n"):
                prefix += b"%d" % (number + 1) + sign
            for part in self.parts(lines[number]) if self.given.has("-o") else (lines[number],):
                self.out.stdout += prefix + part + b"\n"

    def with_context(self, total: int, hits: list[int]) -> Iterator[tuple[int, bool]]:
        if not self.grouped:
            yield from ((number, True) for number in hits)
            return
        chosen = set(hits)
        wanted = {
            n for hit in hits for n in range(max(0, hit - self.before), min(total, hit + self.after + 1))
        }
        yield from ((number, number in chosen) for number in sorted(wanted))

    def parts(self, line: bytes) -> Iterator[bytes]:
        """Each match in the line, the longest at its place (Python's alternation takes the first)."""
        at = 0
        while at <= len(line) and (found := self.pattern.search(line, at)):
            end = found.end()
            if b"|" in self.pattern.pattern and b"$" not in self.pattern.pattern:
                longer = (
                    cut
                    for cut in range(len(line), end, -1)
                    if self.pattern.fullmatch(line, found.start(), cut)
                )
                end = next(longer, end)
            if end > found.start():
                yield line[found.start() : end]
            at = max(end, found.start() + 1)
