"""The table of lints: which there are, in the order in which a report lists them."""

from __future__ import annotations

from typing import Any

from ddprobe.lints import (
    drafting,
    environment,
    kernels,
    launch,
    metrics,
    pairing,
    positions,
    taps,
    weights,
    windows,
)
from ddprobe.lints.lint import Lint
from ddprobe.lints.measured import Measured
from ddprobe.lints.served import Served

LINTS: tuple[Lint[Served], ...] = tuple(
    sorted(
        (
            lint
            for subject in (
                taps,
                pairing,
                windows,
                positions,
                weights,
                launch,
                drafting,
                kernels,
                environment,
            )
            for lint in subject.LINTS
        ),
        key=lambda lint: lint.id,
    )
)


METRICS: tuple[Lint[Measured], ...] = metrics.LINTS
"""Those that judge what was measured."""


def describe() -> dict[str, str]:
    """Each lint's id with its one line for the manual page."""
    return {lint.id: lint.text for lint in every()}


def every() -> tuple[Lint[Any], ...]:
    """All of them, whatever they judge."""
    return (*LINTS, *METRICS)


def find(id: str) -> Lint[Any] | None:
    """The lint of that id."""
    return next((lint for lint in every() if lint.id == id), None)
