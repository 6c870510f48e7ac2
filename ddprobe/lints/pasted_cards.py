"""Cards as pasted nvidia-smi output shows them: its samples, one window a card."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from ddprobe.facts import GpuSample, GpuWindow
from ddprobe.model import Fact

LOW_SAMPLES = 0.2
"""Share of the samples under load that may have a lower clock than the one that counts: of few, none may."""
BUSY = 50.0
"""Percent of the time with a kernel running from which a card counts as under load."""


def windows(facts: Sequence[Fact]) -> tuple[GpuWindow, ...]:
    """Each card of which clocks, or what holds them, was sampled; a card without a number is numbered as it stands."""
    cards: dict[int, list[GpuSample]] = {}
    moments: dict[tuple[str, str], int] = {}
    for sample in facts:
        if not isinstance(sample, GpuSample) or not _tells(sample):
            continue
        index = sample.index
        if index is None:
            at = (sample.source[0].artefact if sample.source else "", sample.moment)
            index = moments.get(at, 0)
            moments[at] = index + 1
        cards.setdefault(index, []).append(sample)
    return tuple(_window(index, samples) for index, samples in sorted(cards.items()))


def _tells(sample: GpuSample) -> bool:
    """Whether it says anything of clocks, of what holds them, or of a limit that was lowered."""
    limits = sample.power_limit_w is not None and sample.power_default_w is not None
    return sample.sm_clock_mhz is not None or bool(sample.throttled_by) or limits


def _window(index: int, samples: Sequence[GpuSample]) -> GpuWindow:
    """Clocks as they were under load: an idle card lowers them by itself. A clock that was seen, and no mean of some."""
    loaded = [one for one in samples if one.utilization is not None and one.utilization >= BUSY]
    clocks = [one.sm_clock_mhz for one in loaded if one.sm_clock_mhz is not None]
    reasons = tuple(dict.fromkeys(reason for one in samples for reason in one.throttled_by))
    shown = [one for one in samples if one.throttled_by] or loaded or samples
    return GpuWindow(
        index=index,
        name=samples[0].name,
        purpose="pasted",
        samples=len(samples),
        utilization=median(one.utilization for one in loaded if one.utilization is not None)
        if loaded
        else None,
        sm_clock_mhz=sorted(clocks)[int(LOW_SAMPLES * (len(clocks) - 1))] if clocks else None,
        sm_clock_max_mhz=next((one.sm_clock_max_mhz for one in samples if one.sm_clock_max_mhz), None),
        power_limit_w=min(
            (one.power_limit_w for one in samples if one.power_limit_w is not None), default=None
        ),
        power_default_w=max(
            (one.power_default_w for one in samples if one.power_default_w is not None), default=None
        ),
        temperature_c=max(
            (one.temperature_c for one in shown if one.temperature_c is not None), default=None
        ),
        # What holds no clock is not told apart from what was not asked for.
        clock_reasons=reasons or None,
        source=tuple(dict.fromkeys(cite for one in shown[:4] for cite in one.source)),
    )
