"""The JSON Schema of a report, from the types themselves. `report.schema.json` in this package is its text."""

from __future__ import annotations

import dataclasses
import inspect
import types
from typing import Any, Union, get_args, get_origin

from ddprobe import facts, reportjson
from ddprobe.model import Fact, LedgerLine, Outcome, Report

_SCALARS = {str: "string", int: "integer", bool: "boolean", type(None): "null"}
_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
_MOMENT = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}


def text() -> str:
    """What `report.schema.json` must hold."""
    return reportjson.text(schema(), indent=2) + "\n"


def schema() -> dict[str, Any]:
    """The schema of `report.json` and of `--json`. Later versions of ddprobe may add fields."""
    definitions: dict[str, Any] = {}
    report = _record(Report, definitions)
    known = [_reference(kind, definitions) for kind in reportjson.fact_types().values()]
    definitions["Fact"] = {
        "description": "Something known, with the answers it comes from. Unknown types come from later versions.",
        "type": "object",
        "required": ["type", "source"],
        "if": {"properties": {"type": {"enum": sorted(reportjson.fact_types())}}},
        "then": {"oneOf": known},
    }
    definitions["Verdict"]["required"].append("outcome")
    definitions["Verdict"]["properties"]["outcome"] = _of(Outcome, definitions)
    derived = {
        "schema": {"const": reportjson.SCHEMA},
        "outcome": _of(Outcome, definitions),
        "ledger": {"type": "array", "items": _reference(LedgerLine, definitions)},
        "points": _points(definitions),
        "ranges": _lines(facts.SourceRange, reportjson.RANGE_FIELDS, definitions),
        "hits": _lines(facts.SourceHit, reportjson.HIT_FIELDS, definitions),
    }
    properties = {**derived, **report["properties"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": reportjson.SCHEMA,
        "description": inspect.getdoc(Report),
        "type": "object",
        "required": sorted(properties),
        "properties": properties,
        "$defs": dict(sorted(definitions.items())),
    }


def _lines(kind: type, names: tuple[str, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    hints = {**reportjson.hints_of(kind), "host": str, "step": str}
    properties = {name: _of(hints[name], definitions) for name in (*names, "host", "step")}
    return {
        "type": "array",
        "items": {"type": "object", "required": list(properties), "properties": properties},
    }


def _points(definitions: dict[str, Any]) -> dict[str, Any]:
    hints = reportjson.hints_of(facts.CommitPoint)
    measured = {name: _of(hints[name], definitions) for name in reportjson.POINT_FIELDS}
    properties = {"host": {"type": "string"}, **measured, "source": {"type": "string"}}
    about = inspect.getdoc(facts.CommitPoint)
    return {
        "type": "array",
        "items": {
            "description": about,
            "type": "object",
            "required": list(properties),
            "properties": properties,
        },
    }


def _record(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = reportjson.hints_of(kind)
    properties = {name: _MOMENT if name == "started" else _of(hints[name], definitions) for name in hints}
    if issubclass(kind, Fact) and kind is not Fact:
        properties = {"type": {"const": kind.__name__}, **properties}
    about = (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")
    return {
        "description": about,
        "type": "object",
        "required": list(properties),
        "properties": properties,
    }


def _reference(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}  # a type may contain itself
        definitions[kind.__name__] = _record(kind, definitions)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _of(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if hint is Any:
        return {}
    if hint is Fact:
        return {"$ref": "#/$defs/Fact"}
    if isinstance(hint, type) and issubclass(hint, Outcome):
        return {"enum": [outcome.label for outcome in hint]}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _reference(hint, definitions)
    if get_origin(hint) in (Union, types.UnionType):
        return {"anyOf": [_of(inner, definitions) for inner in get_args(hint)]}
    if get_origin(hint) is tuple:
        arguments = get_args(hint)
        if arguments[-1:] == (...,):
            items = {"type": "array", "items": _of(arguments[0], definitions)}
            if not reportjson.is_pairs(hint):
                return items
            value = _of(get_args(arguments[0])[1], definitions)
            return {"anyOf": [{"type": "object", "additionalProperties": value}, items]}
        parts = [_of(inner, definitions) for inner in arguments]
        return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
    if hint is float:
        return _NUMBER
    return {"type": _SCALARS[hint]}
