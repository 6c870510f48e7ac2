"""What does the installed engine source say at these lines, or in this function?

Reads the file on the host, never one on this laptop. FILE is a path relative to the installed package
(`srt/speculative/dflash_worker.py`), a bare name if it is unique, a dotted module
(`sglang.srt.speculative.dflash_worker`), or an absolute path on the host.

Every range has its own status: `complete`; `cut`, with the byte and line it was cut at; `past_end`, with the number
of lines there are; or why there is nothing to read: `missing`, `denied`, `binary`, `directory`, `ambiguous`, each with
the nearest names on the host. Lines are counted as `sed -n` counts them. A file of up to 2 MiB is fetched whole; of
a larger one, only the ranges.

A function or class (`symbol`) is found by parsing the file, decorators included; a name that is defined several times
gives all its definitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from ddprobe.blocks import Block, Code, Paragraph
from ddprobe.errors import Unanswered, UsageError
from ddprobe.facts import SourceRange
from ddprobe.model import Cite, Conversation, Evidence, Fact, Finding, Gap, Help, Host, Outcome, Probe, Result
from ddprobe.parsing import line_ranges, source_paths, source_text
from ddprobe.parsing.line_ranges import LineRange
from ddprobe.probes import installed
from ddprobe.probes.source import _cutting, _file, _nothing
from ddprobe.probes.source._file import Place, Wish

MAX_CONTEXT = 1000
WITHOUT_FILE = ("missing", "denied", "binary", "directory", "ambiguous")


@dataclass(frozen=True, kw_only=True)
class SourceRead(Probe):
    """Reads ranges of lines, functions or classes of an installed source file."""

    file: Annotated[str, Help("path in the package, bare name, dotted module, or absolute path on the host")]
    ranges: Annotated[str, Help("lines to read: 1395-1450,1580-1620; A+N is A and the N lines after it")] = ""
    symbol: Annotated[str, Help("function, class or Class.method to read in place of lines")] = ""
    context: Annotated[int, Help("lines to read before and after each range")] = 0
    exists_here: Annotated[
        bool, Help("whether FILE exists on this laptop, to say so when the host lacks it")
    ] = False

    findings: ClassVar[dict[str, str]] = {
        "read.past_end": "a range ends after the last line of the file",
    }

    def __post_init__(self) -> None:
        """Raises `UsageError` for what cannot be read, before any host is contacted."""
        source_paths.check_file(self.file)
        if line_ranges.parse(self.ranges) and self.symbol:
            raise UsageError(
                "both lines and a symbol are asked for", "give FILE:RANGES or --symbol, not both"
            )
        if not 0 <= self.context <= MAX_CONTEXT:
            raise UsageError(f"a context of {self.context} lines", f"ask for 0 to {MAX_CONTEXT}")

    def collect(self, host: Host) -> Conversation:
        wish = self._wish((yield from installed.find(host)).path)
        told: tuple[Result, ...] = ()
        while questions := _file.next_questions(wish, Evidence(host, told)):
            told += yield questions

    def _wish(self, package: str) -> Wish:
        return Wish(
            file=self.file,
            package=package,
            ranges=line_ranges.parse(self.ranges),
            symbol=self.symbol,
            context=self.context,
            exists_here=self.exists_here,
        )

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        source = installed.understood(evidence)
        yield from source.facts()
        if not self.file.startswith("/"):
            source.the()
        wish = self._wish(source.path)
        if _file.is_secret(wish):
            yield from self._without(wish, self.file, ("denied", _nothing.SECRET), evidence)
            return
        if not evidence.started_with(_file.STAT):
            raise Unanswered(self.file, "was not looked for")
        place = _file.standing(evidence)
        if place is None:
            title = installed.title(source.package) if source.package else "the package"
            status, note = _nothing.missing(wish, evidence, title)
            yield from self._without(wish, self.file, (status, note), evidence)
            return
        path = source_paths.relative(place.path, wish.package)
        reason = self._unreadable(wish, place, evidence)
        if reason is not None:
            yield from self._without(wish, path, reason, evidence)
            return
        pieces = _file.in_pieces(wish, place)
        ranges = (
            _cutting.pieces(wish, place, evidence)
            if pieces
            else _cutting.whole(wish, place, evidence.command(_file.FILE))
        )
        for each in ranges:
            yield each
            yield from _judge(each)

    def _unreadable(self, wish: Wish, place: Place, evidence: Evidence) -> tuple[str, str] | None:
        """Status and sentence when what stands there cannot be read; None when it can."""
        kind = place.status.kind
        if _file.leads_to_secrets(place, evidence):
            return "denied", _nothing.leads_to_secrets(place)
        if kind == "denied":
            return "denied", _nothing.denied(place, evidence)
        if kind == "directory":
            return "directory", _nothing.directory(evidence)
        if kind != "file":
            return "binary", _nothing.binary(place)
        first = evidence.command(_file.HEAD if _file.in_pieces(wish, place) else _file.FILE)
        if _file.denied(first):
            return "denied", _nothing.denied(place, evidence)
        return ("binary", _nothing.binary(place)) if source_text.is_binary(first.stdout) else None

    def _without(
        self, wish: Wish, path: str, reason: tuple[str, str], evidence: Evidence
    ) -> Iterator[Fact | Gap]:
        """Each thing asked for, with the reason why there is nothing of it."""
        status, note = reason
        cites = tuple(Cite(result.key) for result in evidence.started_with(_file.STAT))
        for asked in wish.ranges or (LineRange(0, 0),):
            yield SourceRange(
                path=path,
                first=asked.first,
                last=asked.last,
                total=None,
                status=status,
                text="",
                symbol=self.symbol,
                note=note,
                source=cites,
            )
        yield Gap(self.file, note, cites)

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        package = installed.of(facts)
        ranges = [fact for fact in facts if isinstance(fact, SourceRange)]
        if package and any(not each.path.startswith("/") for each in ranges):
            yield Paragraph(f"{installed.title(package)} at {package.path}", tone="dim")
        told = set()
        for each in ranges:
            if each.status in WITHOUT_FILE and each.note in told:
                continue
            told.add(each.note)
            yield _block(each)


def _judge(each: SourceRange) -> Iterator[Finding | Gap]:
    """A range past the end is an answer; a cut one, or a symbol that is not there, is none."""
    if each.status == "past_end":
        yield Finding(
            id="read.past_end",
            outcome=Outcome.INFO,
            subject=_subject(each),
            summary=each.note,
            cites=each.source,
        )
    elif each.status != "complete":
        yield Gap(_subject(each), each.note, each.source)


def _subject(each: SourceRange, of: str = "") -> str:
    lines = f":{LineRange(each.first, each.last)}" if each.last else ""
    symbol = f" {each.symbol}" if each.symbol else ""
    return f"{each.path}{lines}{of}{symbol}"


def _block(each: SourceRange) -> Block:
    """The range as code, or its status in a sentence when there is no line of it."""
    if each.status in WITHOUT_FILE:
        subject = f"{each.path} {each.symbol}".strip()
        return Paragraph(f"{each.status}: {subject}: {each.note}", tone="bad")
    if not each.text and each.status != "complete":
        return Paragraph(
            f"{_subject(each)}: {each.note}", tone="warn" if each.status == "past_end" else "bad"
        )
    lines = each.text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return Code(
        path=each.path,
        lines=tuple(enumerate((line.removesuffix("\r") for line in lines), each.first)),
        language=source_paths.language(each.path),
        title=_subject(each, f" of {each.total} lines" if each.total is not None else ""),
        note="; ".join(part for part in ("complete" if each.status == "complete" else "", each.note) if part),
        marked=each.focus,
    )
