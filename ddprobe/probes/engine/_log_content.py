"""What came of a log: its recent lines, and in order all those that may say something of a start or an end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from ddprobe.errors import Unanswered
from ddprobe.model import MIB, Command, Evidence, Gap
from ddprobe.parsing import log_lines
from ddprobe.parsing.log_lines import Since
from ddprobe.probes.engine import _log_following
from ddprobe.probes.engine import _log_reading as reading
from ddprobe.probes.engine._log_following import Follower
from ddprobe.probes.engine._log_places import Place

PACKED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ": "xz",
    b"BZh": "bzip2",
    b"PK\x03\x04": "zip",
}
_ANY_YEAR = 2000
"""Of a journal's lines that tell none; the journal's own times do."""


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of one answer, and which lines of the log they are (0: not known)."""

    key: str
    lines: tuple[str, ...]
    numbers: tuple[int, ...]
    year: int

    def kept(self, places: Sequence[int]) -> Part:
        """Only the lines in these places."""
        return replace(
            self,
            lines=tuple(self.lines[place] for place in places),
            numbers=tuple(self.numbers[place] for place in places),
        )


@dataclass(frozen=True, slots=True)
class Content:
    """What was read of one log."""

    recent: Part
    """What acceptance and throughput are taken from."""
    story: tuple[Part, ...]
    """What start-up facts and warnings are looked for in."""
    read: str
    size: int | None = None
    age: float | None = None
    since: datetime | None = None
    whole: Part | None = None
    """The recent lines before only those since then were kept; None: nothing was asked for by time."""
    reaches: bool = True
    """False: the time asked for reaches further back than what was read."""
    decode_lines: int | None = None
    notes: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()


def content(evidence: Evidence, number: int, place: Place, since: Since | None) -> Content:
    """All that came of one log. Raises `Unanswered` when nothing of it can be read."""
    recent = _recent(evidence, number, place)
    got = _journal(recent) if place.journal else _file(evidence, number, place, recent)
    if since is not None:
        got = _limited(evidence, number, place, got, since)
    if rotated := _rotated(evidence, number):
        got = replace(got, notes=(*got.notes, f"older parts beside it were not read: {', '.join(rotated)}"))
    got = _followed(evidence, number, place, got)
    lines = (got.whole or got.recent).lines
    if not lines and (size := reading.tail_size(evidence, number)):
        raise Unanswered(
            got.recent.key, f"its last {max(size // MIB, 1)} MiB are one line, of which nothing can be read"
        )
    if why := _no_text(lines):
        raise Unanswered(got.recent.key, why)
    return got


ODD_SHARE = 0.3
"""Of the characters of what is no text: bytes at random have 0.6, a log in an old encoding less than 0.1."""
_ODD = re.compile("[\ufffd\0-\x08\x0e-\x1a\x1c-\x1f]")


def _no_text(lines: Sequence[str]) -> str:
    """Why nothing can be read in these lines; empty where something can."""
    # Before what follows a log that was cut short in place, its file may be filled up with zeros.
    text = "\n".join(line.lstrip("\0") for line in lines)
    if not text.strip():
        return "it is empty" if not any(lines) else "it holds no text"
    odd = len(_ODD.findall(text)) / len(text)
    return f"it is no text: {100 * odd:.0f} % of it are characters that no log has" if odd > ODD_SHARE else ""


def more(evidence: Evidence, number: int, place: Place, since: Since | None) -> tuple[Command, ...]:
    """A longer recent part, where the one that came begins after the time asked for, or holds no whole line."""
    if place.journal:
        return ()
    try:
        size = reading.status(evidence, f"log-{number}-status").size
        recent = _recent(evidence, number, place)
    except Unanswered:
        return ()
    further = reading.longer(number, place, size, reading.tail_size(evidence, number))
    if further and not recent.lines:
        return (further,)
    if since is None:
        return ()
    begin, ends = _begin(evidence, number, recent, since), log_lines.ends(recent.lines, recent.year)
    return (further,) if further and begin and ends and ends[0] > begin else ()


# --- the parts ---------------------------------------------------------------------------------------------


def _recent(evidence: Evidence, number: int, place: Place) -> Part:
    if place.journal:
        key = f"log-{number}-journal"
        part = _part(evidence, key, _ANY_YEAR)
        if not part.lines:
            raise Unanswered(key, f"the journal has no line of {place.path} that this user may read")
        return part
    status = reading.status(evidence, f"log-{number}-status")
    year = datetime.fromtimestamp(status.written, UTC).year
    if size := reading.tail_size(evidence, number):
        part = _part(evidence, f"log-{number}-tail-{size}", year)
        # The first one may have lost its beginning, unless all of the log is there.
        return part.kept(range(size < status.size, len(part.lines)))
    return _part(evidence, f"log-{number}-whole", year, numbered=True)


def _part(evidence: Evidence, key: str, year: int, *, numbered: bool = False) -> Part:
    answer = evidence.command(key)
    text = answer.text
    for magic, name in PACKED.items():
        if answer.stdout.startswith(magic):
            raise Unanswered(
                key, f"it is packed ({name}): unpack it and run ddprobe analyse on it, or name another log"
            )
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    numbers = range(1, len(lines) + 1) if numbered else [0] * len(lines)
    return Part(key, tuple(line.rstrip("\r") for line in lines), tuple(numbers), year)


def _journal(recent: Part) -> Content:
    return Content(recent, (recent,), read=f"its last lines, at most {reading.JOURNAL_LINES:,}")


def _file(evidence: Evidence, number: int, place: Place, recent: Part) -> Content:
    here = reading.status(evidence, f"log-{number}-status")
    now = _now(evidence)
    whole = Content(
        recent,
        (recent,),
        read="whole",
        size=here.size,
        age=max(0.0, now - here.written) if now is not None and here.written else None,
    )
    got = reading.tail_size(evidence, number)
    return _searched(evidence, number, place, whole, got) if got else whole


def _searched(evidence: Evidence, number: int, place: Place, whole: Content, got: int) -> Content:
    """Of a large log: its beginning, what grep found, and its recent part."""
    at, recent = f"log-{number}", whole.recent
    story: list[Part] = []
    read: list[str] = []
    notes: list[str] = []
    gaps: list[Gap] = []
    try:
        head = _part(evidence, f"{at}-head", recent.year, numbered=True)
        story.append(head.kept(range(len(head.lines) - 1)))  # the last one may have lost its end
        read.append(f"its first {reading.HEAD // 1024} KiB")
    except Unanswered as error:
        gaps.append(Gap(place.path, f"its beginning was not read: {error.reason}"))
    read.append(f"its last {got // MIB} MiB")
    cut = True
    try:
        found = _found(evidence, f"{at}-signs", recent.year)
        cut = len(found.lines) >= reading.MOST_SIGNS
        known = len(story[0].lines) if story else 0
        story.append(found.kept([n for n, line in enumerate(found.numbers) if line > known]))
        read.append("what grep found in all of it")
    except Unanswered as error:
        gaps.append(Gap(place.path, f"it was not searched for warnings as a whole: {error.reason}"))
    if cut:
        story.append(recent)
        notes.append("not all lines that may be warnings were looked at: counts of them are too low")
    decode_lines = None
    try:
        decode_lines = int(evidence.text(f"{at}-lines").strip()[:12])
    except (Unanswered, ValueError):
        notes.append("how many lines about decoding it has in all was not counted")
    return replace(
        whole,
        story=tuple(story),
        read=", ".join(read),
        decode_lines=decode_lines,
        notes=tuple(notes),
        gaps=tuple(gaps),
    )


def _found(evidence: Evidence, key: str, year: int) -> Part:
    """Lines that `grep -n` found, with their numbers."""
    pairs = [line.partition(":") for line in evidence.text(key).split("\n")]
    kept = [
        (int(number[:12]), rest)
        for number, colon, rest in pairs
        if colon and number.isascii() and number.isdecimal()
    ]
    return Part(key, tuple(line for _, line in kept), tuple(number for number, _ in kept), year)


def _joined(one: Part, other: Part) -> Part:
    return replace(one, lines=(*one.lines, *other.lines), numbers=(*one.numbers, *other.numbers))


def _rotated(evidence: Evidence, number: int) -> tuple[str, ...]:
    key = f"log-{number}-rotated"
    try:
        listed = evidence.text(key).split("\n") if evidence.has(key) else []
    except Unanswered:
        return ()
    names = [path.rpartition("/")[2] for path in listed if path.startswith("/")]
    return tuple(names[:8]) + ((f"{len(names) - 8} more",) if len(names) > 8 else ())


def _followed(evidence: Evidence, number: int, place: Place, got: Content) -> Content:
    """With the lines that were added while the log was followed."""
    follower = Follower()
    data, key = b"", ""
    for added in follower.take(evidence.results):
        if added.number == number:
            data += b"\n" if added.anew else added.data
            key = key or added.key
    lines = tuple(line.rstrip("\r") for line in data.decode("utf-8", "replace").split("\n") if line)
    if lines:
        part = Part(key, lines, (0,) * len(lines), got.recent.year)
        whole = got.whole and _joined(got.whole, part)
        got = replace(got, recent=_joined(got.recent, part), whole=whole, story=(*got.story, part))
    notes, gaps = got.notes, got.gaps
    if times := follower.times(number):
        often = f" {times} times" if times > 1 else ""
        notes = (*notes, f"{_log_following.REPLACED}{often}; its new beginning was read")
        gaps = (*gaps, Gap(place.path, f"{_log_following.REPLACED}{often}: {_log_following.MISSING_LINES}"))
    if gone := follower.gone(number):
        gaps = (*gaps, Gap(place.path, f"while it was followed it went away: {gone}"))
    return replace(got, notes=notes, gaps=gaps)


# --- since when --------------------------------------------------------------------------------------------


def _limited(evidence: Evidence, number: int, place: Place, got: Content, since: Since) -> Content:
    """Only the recent lines from the time asked for on."""
    when = log_lines.moments(got.recent.lines, got.recent.year)
    begin, earliest = _begin(evidence, number, got.recent, since), _first(when)
    if begin is None or earliest is None:
        gap = Gap(place.path, "its lines tell no time: which were written since then is unknown")
        return replace(got, gaps=(*got.gaps, gap))
    notes = got.notes
    partly = bool(place.journal) or 0 < reading.tail_size(evidence, number) < (got.size or 0)
    reaches = not (partly and earliest > begin)
    if not reaches:
        notes = (
            *notes,
            f"the time asked for reaches further back than what was read, which begins at {earliest}",
        )
    kept: list[int] = []
    latest: datetime | None = None
    for at, moment in enumerate(when):
        latest = moment or latest  # a line without a time (of a traceback) is as old as the one above it
        if latest is not None and latest >= begin:
            kept.append(at)
    return replace(
        got, recent=got.recent.kept(kept), since=begin, whole=got.recent, reaches=reaches, notes=notes
    )


def _begin(evidence: Evidence, number: int, recent: Part, since: Since) -> datetime | None:
    """Where the time asked for begins on the log's own clock, whose zone need not be known for it."""
    ends = log_lines.ends(recent.lines, recent.year)
    if ends is None:
        return None
    silent = 0.0
    try:
        written, now = reading.status(evidence, f"log-{number}-status").written, _now(evidence)
        silent = max(0.0, now - written) if now is not None and written else 0.0
    except Unanswered:
        pass  # a journal: its last line is taken for the present
    return log_lines.begin(since, ends[1] + timedelta(seconds=silent))


def _first(when: Sequence[datetime | None]) -> datetime | None:
    return next((moment for moment in when if moment), None)


def _now(evidence: Evidence) -> float | None:
    try:
        return float(evidence.text("now").strip()[:20])
    except (Unanswered, ValueError):
        return None
