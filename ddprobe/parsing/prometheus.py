"""Reads the Prometheus text format: `vllm:num_requests_running{engine="0",model_name="m"} 3.0`."""

from __future__ import annotations

import re

_SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*\})? +(\S+)")


def totals(text: str) -> dict[str, float]:
    """Each metric's value by name, summed over its label sets (engines, ranks)."""
    found: dict[str, float] = {}
    for line in text.split("\n"):
        if not line.startswith("#") and (sample := _SAMPLE.match(line)):
            try:
                value = float(sample.group(2))
            except ValueError:
                continue
            found[sample.group(1)] = found.get(sample.group(1), 0.0) + value
    return found
