"""`${vars.x}`, `${steps.ID.OUTPUT}`, `${host.x}`: a value that is known later. It stands alone, never within a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ddprobe.playbook import Reference
from ddprobe.yamlfile import nearest

_WHOLE = re.compile(r"\$\{([^{}]*)\}\Z")
_INNER = re.compile(
    r"(?:(vars|host)\.([A-Za-z_][A-Za-z0-9_-]*)|(steps)\.([A-Za-z_][A-Za-z0-9_-]*)\.([A-Za-z_][A-Za-z0-9_]*))\Z"
)
FORMS = "write ${vars.NAME}, ${steps.ID.OUTPUT} or ${host.FIELD}"

HOST_FIELDS: dict[str, Any] = {
    "name": "gpu1",
    "address": "10.0.0.5",
    "user": "bench",
    "port": 22,
    "transport": "ssh",
    "engine": "sglang",
    "url": "http://127.0.0.1:30000",
    "package": "/opt/sglang",
    "python": "/usr/bin/python3",
    "drafter": "/models/drafter",
    "target": "/models/target",
    "log": "/var/log/server.log",
    "gpu_bandwidth": 1.0,
    "tags": ("lab",),
}
"""Fields of a host that a playbook may take, each with a value of its type. No keys and no names of secrets."""


def read(value: Any) -> Any:
    """The value with references in place of the texts that are some; lists as tuples. Raises `ValueError`."""
    if isinstance(value, list | tuple):
        return tuple(read(item) for item in value)
    if not isinstance(value, str) or "${" not in value:
        return value
    whole = _WHOLE.match(value)
    if whole is None:
        raise ValueError(f"a reference is the whole value, with nothing before or after it; {FORMS}")
    inner = _INNER.match(whole[1])
    if inner is None:
        raise ValueError(f"{value} is no reference; {FORMS}")
    if inner[3]:
        return Reference("steps", inner[4], inner[5])
    return Reference(inner[1], inner[2])


@dataclass(frozen=True, slots=True)
class Known:
    """The names that a playbook's references may use."""

    vars: frozenset[str]
    outputs: Mapping[str, tuple[str, ...] | None]
    """Step id → its outputs; None where its probe is not known."""
    samples: Mapping[str, Any] = field(default_factory=dict)
    """Var → a value of its kind."""

    def sample(self, reference: Reference) -> Any:
        """A value of the kind that the reference gives; None where that is not known."""
        if reference.source == "vars":
            return self.samples.get(reference.name)
        return HOST_FIELDS.get(reference.name) if reference.source == "host" else None

    def mistakes(self, reference: Reference) -> Iterator[str]:
        """Why the reference leads nowhere."""
        name = reference.name
        if reference.source == "vars" and name not in self.vars:
            yield f"{reference}: there is no var {name!r}{nearest(name, sorted(self.vars))}"
        elif reference.source == "host" and name not in HOST_FIELDS:
            near = nearest(name, HOST_FIELDS)
            yield f"{reference}: a host has no field {name!r}{near}; it has {', '.join(HOST_FIELDS)}"
        elif reference.source == "steps":
            if name not in self.outputs:
                yield f"{reference}: there is no step {name!r}{nearest(name, self.outputs)}"
            else:
                yield from self.no_output(name, reference.field, str(reference))

    def no_output(self, step: str, field: str, what: str) -> Iterator[str]:
        outputs = self.outputs.get(step)
        if outputs is not None and field not in outputs:
            has = f"it has {', '.join(outputs)}" if outputs else "it has none"
            yield f"{what}: the step {step!r} has no output {field!r}{nearest(field, outputs)}; {has}"
