"""What does the installed engine source say at these lines, or in this function?

Reads the file on the host, never one on this laptop. FILE is a path relative to the installed package
(`srt/speculative/dflash_worker.py`), a bare name if it is unique, a dotted module
(`sglang.srt.speculative.dflash_worker`), or an absolute path on the host.

Every range has its own status: `complete`; `cut`, with the byte and line it was cut at; `past_end`, with the number
of lines there are; or why there is nothing to read: `missing`, `denied`, `binary`, `directory`, `ambiguous`, each with
the nearest names on the host. Lines are counted as `sed -n` counts them. A file of up to 2 MiB is fetched whole; of
a larger one, only the ranges.

Several files are read at once as `places`, each FILE:RANGES: what `grep` proposes.

A function or class (`symbol`) is found by parsing the file, decorators included; a name that is defined several times
gives all its definitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ddprobe.blocks import Block, Code, Paragraph
from ddprobe.errors import Unanswered, UsageError
from ddprobe.facts import SourcePackage, SourceRange
from ddprobe.model import (
    Cite,
    Command,
    Conversation,
    Evidence,
    Fact,
    Finding,
    Gap,
    Help,
    Host,
    Listed,
    Outcome,
    Probe,
    Result,
)
from ddprobe.parsing import line_ranges, source_paths, source_text
from ddprobe.parsing.line_ranges import LineRange
from ddprobe.probes import _given, installed
from ddprobe.probes.source import _cutting, _file, _nothing, _places
from ddprobe.probes.source._file import Place, Wish

MAX_CONTEXT = 1000
MAX_PLACES = 24
WITHOUT_FILE = ("missing", "denied", "binary", "directory", "ambiguous")


@dataclass(frozen=True, kw_only=True)
class SourceRead(Probe):
    """Reads ranges of lines, functions or classes of an installed source file."""

    file: Annotated[
        str, Help("path in the package, bare name, dotted module, or absolute path on the host")
    ] = ""
    ranges: Annotated[
        str, Listed(), Help("lines to read: 1395-1450,1580-1620; A+N is A and the N lines after it")
    ] = ""
    symbol: Annotated[str, Help("function, class or Class.method to read in place of lines")] = ""
    places: Annotated[
        tuple[str, ...], Help("several files in place of one, each FILE:RANGES, as a search proposes them")
    ] = ()
    context: Annotated[int, Help("lines to read before and after each range")] = 0
    exists_here: Annotated[
        bool, Help("whether FILE exists on this laptop, to say so when the host lacks it")
    ] = False

    findings: ClassVar[dict[str, str]] = {
        "read.past_end": "a range ends after the last line of the file",
    }
    outputs: ClassVar[dict[str, str]] = {
        "asked": "how many ranges were asked for",
        "complete": "how many of them were read whole",
        "files": "the files read, relative to the package",
        "text": "what was read, one text a range",
    }

    def __post_init__(self) -> None:
        """Raises `UsageError` for what cannot be read, before any host is contacted."""
        if bool(self.file) is bool(self.places):
            what = "both a file and places are" if self.file else "neither a file nor places are"
            raise UsageError(f"{what} asked for", "give `file`, or `places` as a search proposes them")
        if self.places and (self.ranges or self.symbol):
            raise UsageError("places bring their own lines", "give ranges or a symbol beside `file` only")
        if len(self.places) > MAX_PLACES:
            raise UsageError(f"{len(self.places)} places are asked for", f"ask for at most {MAX_PLACES}")
        for place in self.places:
            source_paths.check_file(line_ranges.split_target(place)[0])
        if not self.places:
            source_paths.check_file(self.file)
        if line_ranges.parse(self.ranges) and self.symbol:
            raise UsageError(
                "both lines and a symbol are asked for", "give FILE:RANGES or --symbol, not both"
            )
        if not 0 <= self.context <= MAX_CONTEXT:
            raise UsageError(f"a context of {self.context} lines", f"ask for 0 to {MAX_CONTEXT}")

    @classmethod
    def mistakes(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        if given.get("file"):
            yield from _given.wrong(given, "file", source_paths.check_file)
        yield from _given.wrong(given, "ranges", line_ranges.parse)
        yield from _given.outside(given, "context", 0, MAX_CONTEXT)

    @classmethod
    def output(cls, facts: Sequence[Fact], findings: Sequence[Finding]) -> Mapping[str, Any]:
        ranges = [fact for fact in facts if isinstance(fact, SourceRange)]
        if not ranges:
            return {}
        read = [each for each in ranges if each.status not in WITHOUT_FILE]
        return {
            "asked": len(ranges),
            "complete": sum(each.status == "complete" for each in ranges),
            "files": tuple(dict.fromkeys(each.path for each in read)),
            "text": tuple(each.text for each in read),
        }

    def collect(self, host: Host) -> Conversation:
        wishes = self._wishes((yield from installed.find(host)).path)
        told: tuple[Result, ...] = ()
        while questions := self._next(wishes, Evidence(host, told)):
            told += yield questions

    def _next(self, wishes: Mapping[str, Wish], known: Evidence) -> tuple[Command, ...]:
        return tuple(
            _places.asked(question, prefix)
            for prefix, wish in wishes.items()
            for question in _file.next_questions(wish, _places.answered(known, prefix))
        )

    def _wishes(self, package: str) -> dict[str, Wish]:
        """What is asked of each file, by how its keys begin."""
        places = [line_ranges.split_target(place) for place in self.places] or [(self.file, self.ranges)]
        return {
            _places.prefix(number, bool(self.places)): Wish(
                file=file,
                package=package,
                ranges=line_ranges.parse(ranges),
                symbol=self.symbol,
                context=self.context,
                exists_here=self.exists_here,
            )
            for number, (file, ranges) in enumerate(places, 1)
        }

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        source = installed.understood(evidence)
        yield from source.facts()
        wishes = self._wishes(source.path)
        if not all(wish.file.startswith("/") for wish in wishes.values()):
            source.the()
        for prefix, wish in wishes.items():
            mine = _places.answered(evidence, prefix)
            yield from _places.told(self._file(wish, source.package, mine), prefix)

    def _file(
        self, wish: Wish, package: SourcePackage | None, evidence: Evidence
    ) -> Iterator[SourceRange | Finding | Gap]:
        if _file.is_secret(wish):
            yield from self._without(wish, wish.file, ("denied", _nothing.SECRET), evidence)
            return
        if not evidence.started_with(_file.STAT):
            if not self.places:
                raise Unanswered(wish.file, "was not looked for")
            yield Gap(wish.file, "was not looked for")
            return
        try:
            place = _file.standing(evidence)
        except Unanswered as error:
            if not self.places:
                raise
            yield Gap(wish.file, error.reason, (Cite(error.key),))
            return
        if place is None:
            title = installed.title(package) if package else "the package"
            status, note = _nothing.missing(wish, evidence, title)
            yield from self._without(wish, wish.file, (status, note), evidence)
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
    ) -> Iterator[SourceRange | Gap]:
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
                symbol=wish.symbol,
                note=note,
                source=cites,
            )
        yield Gap(wish.file, note, cites)

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
