"""What the lines of a log come to: where it is, its acceptance by context and over time, and the lines that matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ddprobe.evidence import decode_logs, startup
from ddprobe.evidence.document import Document, of_bytes
from ddprobe.facts import Acceptance, Claim, DecodeSeries, LogEvent, LogFile
from ddprobe.model import Cite, Fact, Finding, Gap, Outcome
from ddprobe.parsing import log_lines
from ddprobe.probes.engine import _log_timeline
from ddprobe.probes.engine._log_content import Content, Part
from ddprobe.probes.engine._log_places import Place

_MAYBE = (
    "no request was decoded, or the server logs too little (SGLang: --decode-log-interval; vLLM: --disable-log-stats was "
    "given), or this is another program's log"
)


def of(place: Place, content: Content) -> Iterator[Fact | Finding | Gap]:
    """All that is known from one log."""
    yield _file(place, content)
    yield from content.gaps
    yield from _events(content)
    series = [fact for fact in _decoding(content.recent) if not isinstance(fact, LogEvent)]
    yield from series
    timeline = _log_timeline.of(place.path, content.recent)
    if timeline is not None:
        yield timeline
    if not any(isinstance(fact, DecodeSeries | Acceptance | Claim) for fact in series):
        yield _silent(place, content) if content.whole is None else _idle(place, content, content.whole)


def _file(place: Place, content: Content) -> LogFile:
    ends = log_lines.ends(content.recent.lines, content.recent.year)
    return LogFile(
        path=place.path,
        origin=place.origin,
        server=place.server,
        size=content.size,
        read=content.read,
        age_seconds=content.age,
        first=str(ends[0]) if ends else "",
        last=str(ends[1]) if ends else "",
        since=str(content.since.replace(microsecond=0)) if content.since else "",
        decode_lines=content.decode_lines,
        notes=content.notes,
        source=(Cite(content.recent.key),),
    )


def _silent(place: Place, content: Content) -> Finding:
    """A log without a line about decoding."""
    count = content.decode_lines
    all_of_it = f"; in all of it there are {count:,}" if count else ""
    return Finding(
        id="logs.silent",
        outcome=Outcome.UNKNOWN,
        subject=place.path,
        summary=f"no line about decoding in what was read ({_lines(content.recent)}){all_of_it}: acceptance is unknown",
        cites=(Cite(content.recent.key),),
        advice=_MAYBE,
    )


def _idle(place: Place, content: Content, whole: Part) -> Finding | Gap:
    """A stretch of time without a line about decoding: an answer where all of it was read."""
    ends = log_lines.ends(whole.lines, whole.year)
    written = f"; the log's last line is of {ends[1]}" if ends else ""
    last = _log_timeline.last(whole)
    decoded = (
        f", its last one about decoding of {last}" if last else ", and none that was read is about decoding"
    )
    since = f"since {content.since:%Y-%m-%d %H:%M:%S}"
    summary = f"no line was written {since}{written}{decoded}"
    if content.recent.lines:
        summary = f"none of the {_lines(content.recent)} {since} is about decoding{written}{decoded}"
    if not content.reaches:
        return Gap(place.path, f"{summary}; what lies before was not read", (Cite(content.recent.key),))
    return Finding(
        id="logs.idle",
        outcome=Outcome.INFO,
        subject=place.path,
        summary=summary,
        cites=(Cite(content.recent.key),),
        advice="ask for an earlier time" if last else _MAYBE,
    )


def _lines(part: Part) -> str:
    return f"{len(part.lines):,} line{'s' * (len(part.lines) != 1)}"


def _decoding(part: Part) -> tuple[Fact, ...]:
    """What the decode log's recogniser makes of the recent lines."""
    document = _document(part.key, _bare(part.lines))
    # A live server has one set of arguments, and the log is told over time.
    found = decode_logs.recognise(document, document.sample(), apart=False)
    return tuple(replace(fact, source=(Cite(part.key),)) for fact in found.facts) if found else ()


def _events(content: Content) -> tuple[LogEvent, ...]:
    """Start-up facts and warnings, each at its first line."""
    lines = [line for part in content.story for line in _bare(part.lines)]
    places = [(part.key, number) for part in content.story for number in part.numbers]
    document = _document(content.recent.key, lines)
    found = startup.recognise(document, document.sample())
    return tuple(
        _placed(fact, places) for fact in (found.facts if found else ()) if isinstance(fact, LogEvent)
    )


def _placed(event: LogEvent, places: Sequence[tuple[str, int]]) -> LogEvent:
    """The event with lines of the log in place of lines of what was read (0 where they are not known)."""
    key, number = places[event.line - 1]
    values = tuple(
        (name, str(places[int(value) - 1][1]) if name == "last" else value) for name, value in event.values
    )
    at = f"line {number}" if number else ""
    return replace(event, line=number, values=values, source=(Cite(key, at),))


def _bare(lines: Sequence[str]) -> list[str]:
    """The lines without what was wrapped around them. JSON among them is some other program's."""
    found = [log_lines.unwrapped(line) for line in lines]
    return ["" if line.startswith("{") else line for line in found]


def _document(key: str, lines: list[str]) -> Document:
    return of_bytes(key, "\n".join(lines).encode("utf-8", "replace"))
