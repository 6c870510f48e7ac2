"""The table of lints: which there are, in the order in which a report lists them."""

from __future__ import annotations

from ddprobe.lints import drafting, environment, kernels, launch, pairing, positions, taps, weights, windows
from ddprobe.lints.lint import Lint

LINTS: tuple[Lint, ...] = tuple(
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


def describe() -> dict[str, str]:
    """Each lint's id with its one line for the manual page."""
    return {lint.id: lint.text for lint in LINTS}


def find(id: str) -> Lint | None:
    """The lint of that id."""
    return next((lint for lint in LINTS if lint.id == id), None)
