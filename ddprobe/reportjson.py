"""A report as JSON and back, without loss: what `--json` prints and `report.json` holds.

Every record is an object of its fields. A field `started` is ISO 8601 in UTC (null: never). Pairs with distinct
names are an object. A fact carries its class as `type`. Infinite numbers and NaN are the strings `Infinity`,
`-Infinity` and `NaN`. At the top stand, besides the report's own fields, what is derived from them: `outcome`,
`ledger` (each hypothesis with the hosts that support, refute or did not test it), `ranges` and `hits` (the source read and found, one a line) and `points` (one per arm and context measured); a verdict
has its `outcome`.
"""

from __future__ import annotations

import calendar
import dataclasses
import enum
import functools
import json
import math
import re
import time
import types
from collections.abc import Mapping
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ddprobe import facts as known_facts
from ddprobe import probes
from ddprobe.errors import UsageError
from ddprobe.model import Fact, Outcome, Probe, Report, StepRecord, summed

SCHEMA = "ddprobe-report/1"
MAX_BITS = 14_000
RANGE_FIELDS = ("path", "first", "last", "total", "status", "text", "symbol", "note")
HIT_FIELDS = ("path", "line", "text", "within")
POINT_FIELDS = (
    "arm", "context_tokens", "steps", "commit_mean", "commit_low", "commit_high", "ceiling", "accept_rate", "step_ms",
    "tok_s", "cached_tokens", "prompt_tokens",
)  # fmt: skip
"""Of a `CommitPoint`; the point's `host` stands before them and its `origin`, as `source`, behind them."""
POINT_PURPOSES = ("point", "step-time")
"""What was measured once more, or on a second server, stands among the facts alone."""

_INFINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
# Characters that JSON lets through and a terminal or an encoder does not: C1, bidirectional, separators, halves.
_UNSAFE = re.compile(
    "[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?Z\Z")

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFact(Fact):
    """A fact of a type, or with fields, that this version does not know: kept as it is."""

    type: str
    values: tuple[tuple[str, Any], ...] = ()


class NotAReport(UsageError):
    """The JSON is not what a report looks like."""


def text(data: Any, indent: int | None = None) -> str:
    """JSON text that any terminal and any encoding can take."""
    separators = (",", ":") if indent is None else None
    written = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", written)


# --- there -------------------------------------------------------------------------------------------------


def from_report(report: Report) -> dict[str, Any]:
    """The whole report, with what is derived from it at the top."""
    fields = encode(report)
    found: dict[str, list[dict[str, Any]]] = {"SourceRange": [], "SourceHit": [], "CommitPoint": []}
    for step in fields["steps"]:
        for fact in step["facts"]:
            if fact["type"] in found:
                found[fact["type"]].append({**fact, "host": step["host"], "step": step["id"]})
    for verdict, encoded in zip(report.verdicts, fields["verdicts"], strict=True):
        encoded["outcome"] = verdict.outcome.label
    return {
        "schema": SCHEMA,
        **{
            name: fields.pop(name)
            for name in ("name", "version", "started", "seconds", "lab", "interrupted", "playbook")
        },
        "outcome": report.outcome.label,
        **{name: fields.pop(name) for name in ("hosts", "findings", "verdicts", "hypotheses")},
        "ledger": encode(summed(report.hypotheses)),
        "points": [_point(fact) for fact in found["CommitPoint"] if fact.get("purpose") in POINT_PURPOSES],
        "ranges": [_pick(fact, RANGE_FIELDS) for fact in found["SourceRange"]],
        "hits": [_pick(fact, HIT_FIELDS) for fact in found["SourceHit"]],
        **fields,
    }


def _pick(fact: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: fact[name] for name in (*names, "host", "step")}


def _point(fact: Mapping[str, Any]) -> dict[str, Any]:
    measured = {name: fact.get(name) for name in POINT_FIELDS}
    return {"host": fact["host"], **measured, "source": fact.get("origin", "")}


def encode(value: Any, hint: Any = Any) -> Any:
    """The value as JSON can hold it, in the shape that its type asks for."""
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, ForeignFact):
        return {"type": value.type, **encode(dict(value.values)), "source": encode(value.source)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        hints = hints_of(type(value))
        fields = {name: _field(name, getattr(value, name), hints[name]) for name in hints}
        return {"type": type(value).__name__, **fields} if isinstance(value, Fact) else fields
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return hex(value)  # Python neither writes nor reads so many decimal digits
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (tuple, list, set, frozenset)):
        if is_pairs(hint) and len({name for name, _ in value}) == len(value):
            return {name: encode(inner) for name, inner in value}
        inner = item_hint(hint)
        return [
            encode(item, inner)
            for item in (value if isinstance(value, (tuple, list)) else sorted(value, key=str))
        ]
    if isinstance(value, Mapping):
        return {str(name): encode(inner) for name, inner in value.items()}
    return str(value)


def _field(name: str, value: Any, hint: Any) -> Any:
    return moment(value) if name == "started" else encode(value, hint)


def moment(seconds: float) -> str | None:
    """Seconds since the epoch as ISO 8601 in UTC, to the last digit; None for never (0)."""
    if not seconds:
        return None
    whole, _, fraction = f"{seconds:.9f}".partition(".")
    fraction = fraction.rstrip("0")
    return (
        time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(int(whole)))
        + (f".{fraction}" if fraction else "")
        + "Z"
    )


# --- and back ----------------------------------------------------------------------------------------------


def to_report(data: Any) -> Report:
    """The report that this JSON was. Raises `NotAReport`; facts and fields of later versions are tolerated."""
    if not isinstance(data, dict) or not str(data.get("schema", "")).startswith("ddprobe-report/"):
        raise NotAReport("this JSON is not a ddprobe report: it has no schema ddprobe-report/1")
    if data["schema"] != SCHEMA:
        raise NotAReport(
            f"the report's schema is {data['schema']!r}; this ddprobe reads {SCHEMA}", "update ddprobe"
        )
    return decode(Report, data)


def decode(hint: type[T], data: Any) -> T:
    """A value of that type from its JSON. Raises `NotAReport`."""
    try:
        found: T = _decode(hint, data)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise NotAReport(f"this is no {getattr(hint, '__name__', hint)}: {error}") from None
    return found


def _decode(hint: Any, data: Any) -> Any:
    if hint is Any:
        return data
    if hint is Fact:
        return _fact(data)
    if isinstance(hint, type) and issubclass(hint, Outcome):
        return hint[str(data).upper()]
    if dataclasses.is_dataclass(hint):
        return _record(hint, data)
    if get_origin(hint) in (Union, types.UnionType):
        return _either(get_args(hint), data)
    if get_origin(hint) is tuple:
        arguments = get_args(hint)
        if is_pairs(hint) and isinstance(data, dict):
            return tuple((name, _decode(get_args(arguments[0])[1], inner)) for name, inner in data.items())
        if not isinstance(data, list):
            raise ValueError(f"{data!r:.80} is no list")
        if arguments[-1:] == (...,):
            return tuple(_decode(arguments[0], item) for item in data)
        return tuple(_decode(inner, item) for inner, item in zip(arguments, data, strict=True))
    if hint is float:
        if isinstance(data, str):
            return _INFINITE[data]
        if isinstance(data, bool):
            raise ValueError(f"{data!r} is no number")
        return float(data)
    if hint is int and isinstance(data, bool):
        raise ValueError(f"{data!r} is no number")
    if not isinstance(data, hint):
        raise ValueError(f"{data!r:.80} is no {getattr(hint, '__name__', hint)}")
    return data


def _either(hints: tuple[Any, ...], data: Any) -> Any:
    if data is None and type(None) in hints:
        return None
    if type(data) in hints:
        return data
    for hint in hints:
        try:
            return _decode(hint, data)
        except (ValueError, TypeError, KeyError):
            continue
    raise ValueError(f"{data!r:.80} is of no type that may stand here")


def _record(hint: Any, data: Any) -> Any:
    if not isinstance(data, dict):
        raise ValueError(f"{data!r:.80} is no object")
    hints = hints_of(hint)
    return hint(**{name: _read_field(name, data[name], hints[name]) for name in hints if name in data})


def _read_field(name: str, data: Any, hint: Any) -> Any:
    return since_epoch(data) if name == "started" else _decode(hint, data)


def since_epoch(data: Any) -> float:
    """The seconds of a `moment`. Raises `ValueError` or `TypeError` of what is none."""
    if data is None:
        return 0.0
    found = _MOMENT.match(data)
    if not found:
        raise ValueError(f"{data!r:.80} is no time in UTC")
    whole = calendar.timegm(tuple(int(part) for part in found.groups()[:6]))
    return float(f"{whole}{found.group(7) or ''}")


def _fact(data: Any) -> Fact:
    if not isinstance(data, dict):
        raise ValueError(f"{data!r:.80} is no fact")
    kind = fact_types().get(str(data.get("type")))
    if kind is not None:
        try:
            fact: Fact = _record(kind, data)
        except (ValueError, TypeError, KeyError):
            pass
        else:
            return fact
    try:
        source = _decode(hints_of(Fact)["source"], data.get("source", []))
    except (ValueError, TypeError, KeyError):
        source = ()
    values = tuple((name, inner) for name, inner in data.items() if name not in ("type", "source"))
    return ForeignFact(type=str(data.get("type")), values=values, source=source)


def probe_of(step: StepRecord) -> Probe:
    """The probe that the step ran, with its settings. Raises `UsageError` when this version has none of that name."""
    kind = probes.load(step.probe)
    given = dict(step.settings)
    settings = {
        setting.name: decode(setting.type, encode(given[setting.name], setting.type))
        for setting in probes.settings(kind)
        if setting.name in given
    }
    return kind(**settings)


# --- types -------------------------------------------------------------------------------------------------


@functools.cache
def fact_types() -> dict[str, type[Fact]]:
    """Every kind of fact by its name."""
    return {
        name: kind
        for name, kind in vars(known_facts).items()
        if isinstance(kind, type) and issubclass(kind, Fact) and kind is not Fact
    }


@functools.cache
def hints_of(record: Any) -> dict[str, Any]:
    """The fields of a record with their types, in order."""
    hints = get_type_hints(record)
    return {field.name: hints[field.name] for field in dataclasses.fields(record)}


def is_pairs(hint: Any) -> bool:
    """Whether it is `tuple[tuple[str, X], ...]`."""
    arguments = get_args(hint)
    if get_origin(hint) is not tuple or arguments[-1:] != (...,) or get_origin(arguments[0]) is not tuple:
        return False
    pair = get_args(arguments[0])
    return len(pair) == 2 and pair[0] is str


def item_hint(hint: Any) -> Any:
    """The type of a sequence's items."""
    arguments = get_args(hint)
    return arguments[0] if get_origin(hint) is tuple and arguments[-1:] == (...,) else Any
