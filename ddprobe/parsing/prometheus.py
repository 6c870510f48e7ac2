"""Reads the Prometheus text format: `vllm:num_requests_running{engine="0",model_name="m"} 3.0`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{((?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*)\})? +(\S+)")
_LABEL = re.compile(r"([A-Za-z_]\w*)=\"((?:[^\"\\]|\\.)*)\"")


@dataclass(frozen=True, slots=True)
class Sample:
    """One line: a metric's value under one set of labels (their values as written, escapes and all)."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float

    def label(self, name: str) -> str:
        """The label's value; empty when it has none of that name."""
        return dict(self.labels).get(name, "")


def samples(text: str) -> Iterator[Sample]:
    """Every sample in order; lines that are none are left out."""
    for line in text.split("\n"):
        if not line.startswith("#") and (found := _SAMPLE.match(line)):
            try:
                value = float(found.group(3))
            except ValueError:
                continue
            # NaN and infinities are legal here, and nothing one can count with.
            if abs(value) < 1e290:
                yield Sample(found.group(1), tuple(_LABEL.findall(found.group(2) or "")), value)


def totals(text: str) -> dict[str, float]:
    """Each metric's value by name, summed over its label sets (engines, ranks)."""
    found: dict[str, float] = {}
    for sample in samples(text):
        found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found
