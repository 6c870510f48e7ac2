"""The table of lints: which there are, in the order in which a report lists them."""

from __future__ import annotations

from typing import Any

from ddprobe.lints import (
    borrowing,
    combinations,
    depth,
    drafting,
    environment,
    gpu_clocks,
    gpu_faults,
    gpu_links,
    gpu_memory,
    identities,
    kernels,
    launch,
    layer_types,
    metrics,
    mtp,
    pairing,
    plausible,
    pooling,
    positions,
    ranks,
    rotation,
    spans,
    startup,
    taps,
    weights,
    windows,
)
from ddprobe.lints.cards import Cards
from ddprobe.lints.lint import Lint
from ddprobe.lints.measured import Measured
from ddprobe.lints.served import Served
from ddprobe.lints.started import Started

LINTS: tuple[Lint[Served], ...] = tuple(
    sorted(
        (
            lint
            for subject in (
                taps,
                pairing,
                layer_types,
                windows,
                positions,
                weights,
                launch,
                drafting,
                kernels,
                environment,
                rotation,
                mtp,
                borrowing,
                combinations,
            )
            for lint in subject.LINTS
        ),
        key=lambda lint: lint.id,
    )
)


METRICS: tuple[Lint[Measured], ...] = (
    *metrics.LINTS,
    *sorted(
        (*identities.LINTS, *pooling.LINTS, *plausible.LINTS, *spans.LINTS),
        key=lambda lint: lint.id,
    ),
    *depth.LINTS,
    *ranks.LINTS,
)
"""Those that judge what was measured."""
STARTUP: tuple[Lint[Started], ...] = startup.LINTS
"""Those that judge what logs tell of a start; some see what a lint above concludes, and have its id."""

CARDS: tuple[Lint[Cards], ...] = tuple(
    sorted(
        (lint for subject in (gpu_clocks, gpu_memory, gpu_faults, gpu_links) for lint in subject.LINTS),
        key=lambda lint: lint.id,
    )
)
"""Those that judge the GPUs of a host."""


def describe() -> dict[str, str]:
    """Each lint's id with its one line for the manual page."""
    return {lint.id: lint.text for lint in every()}


def every() -> tuple[Lint[Any], ...]:
    """All of them, whatever they judge."""
    others: tuple[Lint[Any], ...] = (*LINTS, *METRICS, *CARDS)
    own = {lint.id for lint in others}
    return (*others, *(lint for lint in STARTUP if lint.id not in own))


def named(word: str) -> tuple[Lint[Any], ...]:
    """The lints of that id, or of that alias, whatever its case."""
    wanted = word.upper()
    exact = tuple(lint for lint in every() if lint.id.upper() == wanted)
    return exact or tuple(lint for lint in every() if wanted in map(str.upper, lint.aliases))


def find(id: str) -> Lint[Any] | None:
    """The lint of that id."""
    return next((lint for lint in every() if lint.id == id), None)
