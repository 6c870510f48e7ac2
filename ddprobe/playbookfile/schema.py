"""The JSON Schema of a playbook (draft 2020-12), for editors: made from the probes' own settings and from the language.

It holds the form. What only the whole tells (references that lead nowhere, circles) is left to `playbook check`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from typing import Any, get_args, get_origin

from ddprobe import probes
from ddprobe.model import VERDICTS, Probe
from ddprobe.playbookfile import kinds, shape
from ddprobe.playbookfile.checking import MAX_STEPS
from ddprobe.playbookfile.referring import HOST_FIELDS
from ddprobe.probes import Setting
from ddprobe.verdicts.hypotheses import HYPOTHESES

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SIZE = r"^\s*[0-9]+(\.[0-9]+)?\s*[kKmMgG]?\s*$"
DURATION = r"^\s*[0-9]+(\.[0-9]+)?\s*[sSmMhHdD]?\s*$"
ID = "^[A-Za-z_][A-Za-z0-9_-]{0,39}$"
Schema = dict[str, Any]

_REFERENCE = {"$ref": "#/$defs/reference"}
_CONDITIONS = {
    "outcome": "how the step came out: any of these",
    "verdict": "verdicts on the host as the evidence stands after the step: any of these",
    "status": "how the step ended: any of these",
    "finding": "findings that warn or fail, by their ids: any of these",
    "field": "one of the step's outputs",
    "at_least": "no value of it is below",
    "at_most": "no value of it is above",
    "equals": "every value of it is this",
    "known": "whether it has a value at all",
}


def schema() -> Schema:
    """The whole schema, with the probes that this version has."""
    names = probes.names()
    kinds_of = {name: probes.load(name) for name in names}
    return {
        "$schema": DIALECT,
        "title": "ddprobe playbook",
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "about", "steps"],
        "properties": {
            "name": {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"},
            "about": {"type": "string", "description": "opens with the question that the playbook answers"},
            "vars": {
                "type": ["object", "null"],
                "description": "what whoever runs it may set: --set name=value",
                "propertyNames": {"pattern": ID},
                "additionalProperties": {"$ref": "#/$defs/var"},
            },
            "hypotheses": {
                "type": ["array", "null"],
                "description": "explanations that it is about; without them, all",
                "uniqueItems": True,
                "items": {
                    "oneOf": [{"const": name, "description": text} for name, (text, _) in HYPOTHESES.items()]
                },
            },
            "steps": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_STEPS,
                "items": {"$ref": "#/$defs/step"},
            },
            "expect": {"type": ["array", "null"], "items": {"$ref": "#/$defs/expectation"}},
        },
        "$defs": {
            "reference": {"type": "string", "pattern": _reference()},
            "var": _var(),
            "step": _step(kinds_of),
            "condition": _condition({"step": _step_id()}, ("step",)),
            "expectation": _condition(
                {
                    "about": _text("what is expected, in a sentence"),
                    "step": _step_id(),
                    "otherwise": {"enum": ["fail", "warn"], "description": "how a miss counts; fail"},
                },
                ("about",),
            ),
            **{f"with {name}": _given(kind) for name, kind in kinds_of.items()},
        },
    }


def _reference() -> str:
    name = "[A-Za-z_][A-Za-z0-9_-]*"
    forms = (rf"vars\.{name}", rf"steps\.{name}\.[A-Za-z_][A-Za-z0-9_]*", rf"host\.({'|'.join(HOST_FIELDS)})")
    return r"^\$\{(" + "|".join(forms) + r")\}$"


def _text(about: str) -> Schema:
    return {"type": "string", "description": about}


def _step_id() -> Schema:
    return {"type": "string", "pattern": ID, "description": "the id of a step"}


def _listed(item: Schema, about: str) -> Schema:
    return {"description": about, "anyOf": [item, {"type": "array", "items": item}, {"type": "null"}]}


def _some(item: Schema, about: str) -> Schema:
    return {"description": about, "anyOf": [item, {"type": "array", "minItems": 1, "items": item}]}


def _var() -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["type", "help"],
        "properties": {
            "type": {
                "oneOf": [{"const": kind.name, "description": kind.about} for kind in kinds.KINDS.values()]
            },
            "default": {"description": "without one, it must be set"},
            "help": _text("what it is, in a line"),
        },
        "allOf": [
            {
                "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
                "then": {"properties": {"default": {"anyOf": [*_DEFAULTS[name], {"type": "null"}]}}},
            }
            for name in kinds.KINDS
        ],
    }


_SIZES: list[Schema] = [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": SIZE}]
_DEFAULTS: Mapping[str, list[Schema]] = {
    "text": [{"type": "string"}],
    "int": [
        {"type": "integer"},
        {"type": "string", "pattern": r"^\s*-?\s*[0-9]+(\.[0-9]+)?\s*[kKmMgG]?\s*$"},
    ],
    "number": [{"type": "number"}, {"type": "string", "pattern": "[0-9]"}],
    "bool": [{"type": "boolean"}, {"enum": ["true", "false"]}],
    "size": _SIZES,
    "duration": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": DURATION}],
    "list": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    "sizes": [{"type": "string"}, {"type": "array", "items": {"anyOf": _SIZES}}],
}
"""What a var's default may be in the file, by its kind."""


def _step(kinds_of: Mapping[str, type[Probe]]) -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["id", "probe"],
        "properties": {
            "id": _step_id(),
            "probe": {"enum": list(kinds_of), "description": "what is asked; see ddprobe probes"},
            "with": {"type": ["object", "null"], "description": "the probe's settings"},
            "needs": _listed(
                _step_id(), "steps that must have got an answer before, else this one is skipped"
            ),
            "when": _listed(
                {"$ref": "#/$defs/condition"}, "all of these must hold, else the step is skipped"
            ),
            "timeout": {
                "description": "for the whole step on one host: 25 (seconds), 2m",
                "anyOf": [*_DEFAULTS["duration"], {"type": "null"}],
            },
        },
        "allOf": [
            {
                "if": {"properties": {"probe": {"const": name}}, "required": ["probe"]},
                "then": {
                    "properties": {"with": {"$ref": f"#/$defs/with {name}"}},
                    "required": ["with"] if _required(kind) else [],
                },
            }
            for name, kind in kinds_of.items()
        ],
    }


def _required(kind: type[Probe]) -> list[str]:
    return [setting.name for setting in probes.settings(kind) if setting.default is MISSING]


def _given(kind: type[Probe]) -> Schema:
    """The `with` of a step that asks this probe."""
    required = _required(kind)
    return {
        "type": "object" if required else ["object", "null"],
        "additionalProperties": False,
        "required": required,
        "properties": {
            setting.name: {"description": setting.help, "anyOf": [*_values(setting), _REFERENCE]}
            for setting in probes.settings(kind)
        },
    }


def _values(setting: Setting) -> Sequence[Schema]:
    text: list[Schema] = [{"type": "string"}, {"type": "integer"}]
    if get_origin(setting.type) is tuple or setting.listed:
        return [*text, {"type": "array", "items": {"anyOf": text}}]
    parts = [part for part in get_args(setting.type) if part is not type(None)]
    kind = parts[0] if parts else setting.type
    if kind is bool:
        return [{"type": "boolean"}]
    if kind is int:
        return _DEFAULTS["int"]
    if kind is float:
        return [{"type": "number"}, {"type": "string", "pattern": DURATION}]
    return text


def _condition(first: Schema, required: Sequence[str]) -> Schema:
    verdict: Schema = {"enum": sorted(VERDICTS)}
    limit: Schema = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": SIZE}, _REFERENCE]}
    parts = {
        "outcome": _some({"enum": list(shape.OUTCOMES)}, _CONDITIONS["outcome"]),
        "verdict": _some(verdict, _CONDITIONS["verdict"]),
        "status": _some({"enum": list(shape.STATUSES)}, _CONDITIONS["status"]),
        "finding": _some({"type": "string"}, _CONDITIONS["finding"]),
        "field": _text(_CONDITIONS["field"]),
        "at_least": {"description": _CONDITIONS["at_least"], **limit},
        "at_most": {"description": _CONDITIONS["at_most"], **limit},
        "equals": {
            "type": ["string", "number", "boolean"],
            "description": _CONDITIONS["equals"],
        },
        "known": {"type": "boolean", "description": _CONDITIONS["known"]},
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": {**first, **parts},
        "dependentRequired": {bound: ["field"] for bound in ("at_least", "at_most", "equals", "known")},
    }
