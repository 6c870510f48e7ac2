"""Are the cards as fast as they can be?"""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.facts import Gpu, GpuWindow
from ddprobe.lints.cards import Cards, cards_lint, cites, in_part, named, sampled, under_load
from ddprobe.lints.lint import Judgement, NotKnown, fail, fine, note, warn

HARDWARE = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
HEAT = ("sw_thermal_slowdown", "hw_thermal_slowdown")
LOW = 0.7
"""Share of the card's highest SM clock below which a clock under load is low: base clocks lie near it."""
NVML = "NVML nvmlClocksEventReasons; nvidia-smi --help-query-gpu, clocks_event_reasons"


def _reasons(each: Gpu | GpuWindow) -> tuple[str, ...]:
    return each.clock_reasons or ()


def _both(cards: Cards) -> tuple[Gpu | GpuWindow, ...]:
    """What a sampler saw, then the one look."""
    found: list[Gpu | GpuWindow] = [*cards.windows, *cards.pasted]
    found += cards.gpus
    return tuple(found)


def _told(cards: Cards) -> tuple[Gpu | GpuWindow, ...]:
    """Cards and windows of which the reasons are known. Raises `NotKnown` when there is none."""
    found = tuple(each for each in _both(cards) if each.clock_reasons is not None)
    if not found:
        raise NotKnown("the reasons of the clocks (clocks_event_reasons.active)")
    return found


def _silent(cards: Cards, told: Sequence[Gpu | GpuWindow]) -> list[Gpu]:
    """Cards that are none of these: one that a sampler saw counts by what it saw."""
    seen = {each.index for each in told}
    return [gpu for gpu in cards.gpus if gpu.index not in seen]


def _looks(found: tuple[Gpu | GpuWindow, ...]) -> str:
    """From how much it is concluded."""
    windows = [each for each in found if isinstance(each, GpuWindow)]
    samples = sum(each.samples for each in windows if each.purpose != "pasted")
    pasted = sum(each.samples for each in windows if each.purpose == "pasted")
    single = sum(isinstance(each, Gpu) for each in found)
    told = [f"{samples} samples under load"] if samples else []
    told += [f"{pasted} sample{'s' if pasted > 1 else ''} of nvidia-smi"] if pasted else []
    return " and ".join(told + ([f"one look at {single} card{'s' if single > 1 else ''}"] if single else []))


def _celsius(found: tuple[Gpu | GpuWindow, ...]) -> str:
    known = [each.temperature_c for each in found if each.temperature_c is not None]
    return f", at up to {max(known):.0f} °C" if known else ""


@cards_lint(
    "GP01",
    "neither heat nor hardware holds the clocks down",
    source=NVML,
    subject="GPU clocks",
    applies=lambda cards: sampled(cards) or any(each.clock_reasons for each in cards.pasted),
)
def slowdown(cards: Cards) -> Judgement | None:
    told = _told(cards)
    silent = _silent(cards, told)
    held = tuple(each for each in told if set(_reasons(each)) & {*HARDWARE, *HEAT})
    if not held:
        return in_part(
            fine(f"no slowdown by heat or hardware in {_looks(told)}", cites(told)),
            silent,
            "the reasons of the clocks",
        )
    reasons = [name for name in (*HARDWARE, *HEAT) if any(name in _reasons(each) for each in held)]
    reasons = list(dict.fromkeys(reasons))
    hot = any(name in HEAT for name in reasons)
    advice = (
        "check fans, airflow and the room; step times that were measured meanwhile do not count"
        if hot
        else "check the power supply and its cables (hw_slowdown, hw_power_brake_slowdown); step times that were measured "
        "meanwhile do not count"
    )
    judged = fail if set(reasons) & set(HARDWARE) else warn
    found = judged(
        f"{named([each.index for each in held])} slowed down by {', '.join(reasons)}{_celsius(held)} ({_looks(told)})",
        advice,
        cites(held),
        cards=len({each.index for each in held}),
    )
    return in_part(found, silent, "the reasons of the clocks")


@cards_lint(
    "GP02",
    "the power limit is the one that the card comes with",
    source=f"{NVML}; nvidia-smi power.default_limit",
    subject="GPU power",
    applies=lambda cards: sampled(cards) or any(map(_limited, cards.pasted)),
)
def power(cards: Cards) -> Judgement | None:
    limits: tuple[Gpu | GpuWindow, ...] = (*cards.gpus, *cards.pasted)
    lowered = tuple(
        gpu
        for gpu in limits
        if gpu.power_limit_w is not None
        and gpu.power_default_w is not None
        and gpu.power_limit_w < gpu.power_default_w
    )
    capped = tuple(each for each in _both(cards) if "sw_power_cap" in _reasons(each))
    if lowered:
        worst = min(lowered, key=lambda gpu: (gpu.power_limit_w or 0) / (gpu.power_default_w or 1))
        binds = ", and it binds (sw_power_cap)" if capped else ""
        judged = warn if capped else note
        return judged(
            f"{named([gpu.index for gpu in lowered])} limited to {worst.power_limit_w:.0f} W of {worst.power_default_w:.0f} W"
            f"{binds}",
            f"whoever looks after the host may raise it: nvidia-smi -pl {worst.power_default_w:.0f}; undo it with "
            f"-pl {worst.power_limit_w:.0f}, and measure step time again",
            cites(lowered),
        )
    if capped:
        return note(
            f"{named([each.index for each in capped])} at the power limit (sw_power_cap): ordinary under full load, and a "
            "sign that clocks vary with the work",
            "compare step times only at the same power limit",
            cites(capped),
        )
    known = [each for each in limits if each.power_limit_w is not None and each.power_default_w is not None]
    told = [*known, *(each for each in _both(cards) if each.clock_reasons is not None)]
    if not told:
        raise NotKnown("power limits")
    return in_part(
        fine("no power limit binds or is lowered", cites(known)), _silent(cards, told), "the power limit"
    )


@cards_lint(
    "GP03",
    "under load the clock is near its highest",
    source="nvidia-smi clocks.sm and clocks.max.sm; a card under load boosts to near its highest clock",
    subject="GPU clocks",
    applies=lambda cards: (
        bool(cards.windows) or any(map(under_load, cards.gpus)) or any(map(_clocked, cards.pasted))
    ),
)
def low_clock(cards: Cards) -> Judgement | None:
    loaded: list[Gpu | GpuWindow] = [
        w for w in cards.windows if w.utilization is not None and w.utilization >= 50
    ]
    loaded += [each for each in cards.pasted if _clocked(each)]
    loaded += [gpu for gpu in cards.gpus if under_load(gpu)]
    known = [each for each in loaded if each.sm_clock_mhz is not None and each.sm_clock_max_mhz]
    if not known:
        raise NotKnown("SM clocks under load")
    low = [each for each in known if _share(each) < LOW]
    if not low:
        lowest = min(map(_share, known))
        near = fine(
            f"SM clocks under load at {lowest:.0%} of the highest or more ({len(known)} looks, limit {LOW:.0%})",
            cites(known),
        )
        silent = [gpu for gpu in _silent(cards, known) if gpu in loaded or _not_read(gpu, "utilization.gpu")]
        return in_part(near, silent, "the clock under load")
    worst = min(low, key=_share)
    reasons = [name for each in low for name in _reasons(each) if name != "gpu_idle"]
    why = f"; held by {', '.join(dict.fromkeys(reasons))}" if reasons else _no_reason(worst)
    set_by_hand = "applications_clocks_setting" in reasons
    return warn(
        f"{named([each.index for each in low])} at {worst.sm_clock_mhz:.0f} of {worst.sm_clock_max_mhz:.0f} MHz under load "
        f"({_share(worst):.0%}, limit {LOW:.0%}){why}",
        "the clocks were set lower: nvidia-smi -q -d CLOCK shows to what; -rac or -rgc resets them"
        if set_by_hand
        else "find what holds the clock (heat, power, clocks that were locked), and measure step time again",
        cites(low),
        share=round(_share(worst), 3),
    )


def _limited(pasted: GpuWindow) -> bool:
    return pasted.power_limit_w is not None and pasted.power_default_w is not None


def _not_read(gpu: Gpu, field: str) -> bool:
    return any(name == field for name, _ in gpu.unread)


def _no_reason(each: Gpu | GpuWindow) -> str:
    return "; nothing says what holds it" if each.clock_reasons is None else "; the card names no reason"


def _clocked(pasted: GpuWindow) -> bool:
    """Whether its clock was seen under load."""
    return (
        pasted.utilization is not None and pasted.sm_clock_mhz is not None and bool(pasted.sm_clock_max_mhz)
    )


def _share(each: Gpu | GpuWindow) -> float:
    return (each.sm_clock_mhz or 0.0) / (each.sm_clock_max_mhz or 1.0)


LINTS = (slowdown, power, low_clock)
