"""Lines of any server's log: what a container runtime or a journal wrapped around them, and when they were written.

    [2026-11-30 15:35:08 TP0] Decode batch, …
    (APIServer pid=7) INFO 11-30 15:35:08 [loggers.py:259] SpecDecoding metrics: …
    2026-11-30T15:35:08+0000 gpu1 sglang[4711]: [2026-11-30 15:35:08] Decode batch, …      (journal)
    2026-11-30T15:35:08.120450198Z stderr F [2026-11-30 15:35:08] Decode batch, …          (CRI)
    {"log":"[2026-11-30 15:35:08] Decode batch, …\\n","stream":"stderr","time":"…"}         (docker)
    {"ts":"…","level":"INFO","message":"Decode batch, …"}                                  (loggers that write JSON)

Times are those that the line itself tells, on the clock of its writer: a zone is not known, and none is assumed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any

from ddprobe.errors import UsageError
from ddprobe.parsing import sizes

_STAMP = re.compile(r"(?<!\d)(?:(\d{4})[-/])?(\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?!\d)")
_WITHIN = 96
"""Characters of a line's beginning in which its time stands."""
_JOURNAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:?\d\d \S+ [^\s:\[]+(?:\[\d+\])?: ")
_CRI = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) std(?:out|err) [FP] ")
_TEXTS = ("log", "MESSAGE", "message", "msg", "textPayload", "line")
"""Under what names a line stands in JSON around it: Docker's, journald's, those of loggers and of cloud consoles."""
_TIMES = (
    "time",
    "@timestamp",
    "timestamp",
    "ts",
    "asctime",
    "datetime",
    "receiveTimestamp",
    "__REALTIME_TIMESTAMP",
)
_OTHERS = frozenset(
    (*_TIMES, "stream", "level", "levelname", "lvl", "severity", "PRIORITY", "logger", "labels", "_PID")
)
"""Names that stand beside such a line, one of them at least, and not beside what else JSON holds a line each of."""
_SINCE = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d")
_SINCE_TIME = ("%H:%M:%S", "%H:%M")
LONGEST = timedelta(days=3660)

Since = timedelta | datetime | time
"""How long ago, a moment, or the last time that it was this late in the day."""


def unwrapped(line: str) -> str:
    """The line as the server wrote it."""
    if (record := _record(line)) is not None:
        text = within(record)
        return line if text is None else text.rstrip("\r\n")
    found = _CRI.match(line) or _JOURNAL.match(line)
    return line[found.end() :] if found else line


def _record(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        held = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return held if isinstance(held, dict) else None


def within(record: Mapping[str, Any]) -> str | None:
    """The line that a record of a log is around; None where it is no such record."""
    if not any(name in record for name in _OTHERS):
        return record["log"] if set(record) == {"log"} and isinstance(record["log"], str) else None
    inner = record.get("jsonPayload")
    for holder in (record, inner if isinstance(inner, dict) else {}):
        for name in _TEXTS:
            if isinstance(text := holder.get(name), str):
                return text
    return None


def moment(line: str, year: int) -> datetime | None:
    """When the line was written, as it says; `year` is that of lines which tell month and day alone."""
    found = _STAMP.search(line, 0, _WITHIN)
    if found is None:
        return None
    own, month, day, hour, minute, second = found.groups()
    try:
        return datetime(int(own or year), int(month), int(day), int(hour), int(minute), int(second))
    except ValueError:
        return None


def since(text: str) -> Since:
    """What `--since` says. Raises `UsageError` for what is neither a duration nor a time."""
    text = text.strip()
    for form in _SINCE:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    for form in _SINCE_TIME:
        try:
            return datetime.strptime(text, form).time()
        except ValueError:
            continue
    try:
        ago = timedelta(seconds=sizes.duration(text))
    except (UsageError, OverflowError):
        raise UsageError(
            f"{text!r} is neither a duration nor a time",
            "as in 30m, 2h, 1d, 14:30, 2026-01-31 or '2026-01-31 14:30' (the log's own clock)",
        ) from None
    if not timedelta() < ago <= LONGEST:
        raise UsageError(f"{text!r} is out of bounds", "above 0 and at most ten years")
    return ago


def begin(asked: Since, now: datetime) -> datetime:
    """The moment that is meant, on a clock that shows `now`."""
    if isinstance(asked, timedelta):
        return now - asked
    if isinstance(asked, datetime):
        return asked
    today = datetime.combine(now.date(), asked)
    return today if today <= now else today - timedelta(days=1)


def wrapped_moment(line: str, year: int) -> datetime | None:
    """When the runtime or journal that keeps the line took it, where it says so."""
    if (record := _record(line)) is not None:
        told = (str(record[name]) for name in _TIMES if name in record)
        return next((at for text in told if (at := moment(text, year)) is not None), None)
    return moment(line, year) if _CRI.match(line) or _JOURNAL.match(line) else None


def moments(lines: Sequence[str], year: int) -> list[datetime | None]:
    """Of each line; where none tells its own time, the time that its runtime or journal took it."""
    found = [_own_moment(line, year) for line in lines]
    if any(found):
        return found
    return [wrapped_moment(line, year) for line in lines]


def ends(lines: Sequence[str], year: int) -> tuple[datetime, datetime] | None:
    """The first and the last time that `moments` would give, without looking at the lines between."""
    for read in (_own_moment, wrapped_moment):
        first = next((at for line in lines if (at := read(line, year))), None)
        if first is not None:
            return first, next((at for line in reversed(lines) if (at := read(line, year))), first)
    return None


def _own_moment(line: str, year: int) -> datetime | None:
    return moment(unwrapped(line), year)
