"""What the GPUs did while each length was measured, in the columns of a table and in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ddprobe.blocks import Block, Paragraph, Table
from ddprobe.facts import CommitPoint, GpuWindow
from ddprobe.model import Fact
from ddprobe.probes.draft._commit_notes import DASH, context

Windows = Sequence[GpuWindow]
_IDLE = ("gpu_idle", "none", "active")
"""Reasons that are no complaint."""


def blocks(facts: Sequence[Fact], points: Sequence[CommitPoint]) -> Iterator[Block]:
    """A row for each length that was sampled; nothing where no tool sampled."""
    found = [fact for fact in facts if isinstance(fact, GpuWindow) and fact.samples]
    rows = [(point, mine) for point in points if (mine := of_point(found, point))]
    if not rows:
        return
    columns: list[tuple[str, Callable[[Windows], str]]] = [
        ("samples\na card", lambda ws: _span([w.samples for w in ws])),
        ("SM clock\nMHz", lambda ws: _span([w.sm_clock_mhz for w in ws])),
        ("of\nMHz", lambda ws: _span([w.sm_clock_max_mhz for w in ws])),
        ("power\nW", lambda ws: _span([w.power_w for w in ws])),
        ("°C", lambda ws: _span([w.temperature_c for w in ws])),
        ("kernel\nrunning", lambda ws: _span([w.utilization for w in ws], " %")),
        ("SM\nactive", lambda ws: _span([_percent(w.sm_active) for w in ws], " %")),
        ("DRAM\nactive", lambda ws: _span([_percent(w.dram_active) for w in ws], " %")),
    ]
    shown = [(name, cell) for name, cell in columns if any(cell(mine) != DASH for _, mine in rows)]
    yield Table(
        ("context\ntokens", "cards", *(name for name, _ in shown)),
        tuple(
            (
                context(point.context_tokens),
                str(len({w.index for w in mine})),
                *(cell(mine) for _, cell in shown),
            )
            for point, mine in rows
        ),
        "GPUs meanwhile",
        "Medians over the samples; the lowest and the highest card. Kernel running: share of the time in which any kernel "
        f"ran, which says nothing of how much of the GPU it used. {_offset(found)}".strip(),
    )
    yield from _reasons(rows)


def of_point(windows: Windows, point: CommitPoint) -> list[GpuWindow]:
    """The windows of the point's own measurement, one for each card."""
    return [
        window
        for window in windows
        if (window.purpose, window.arm, window.context_tokens)
        == (point.purpose, point.arm, point.context_tokens)
        and window.base in ("", point.base)
    ]


def _reasons(rows: Sequence[tuple[CommitPoint, Windows]]) -> Iterator[Paragraph]:
    """Why clocks were lowered, with the lengths at which that was."""
    lengths: dict[str, list[str]] = {}
    for point, windows in rows:
        for reason in sorted({r for w in windows for r in w.clock_reasons or () if r not in _IDLE}):
            lengths.setdefault(reason, []).append(context(point.context_tokens))
    for reason, those in lengths.items():
        yield Paragraph(f"Clocks were held by {reason} at {', '.join(those)}.", "warn")


def _offset(windows: Windows) -> str:
    known = [w for w in windows if w.offset_seconds is not None]
    if not known:
        return ""
    first = known[0]
    within = (
        f", give or take {first.offset_uncertainty_seconds:.2g} s"
        if first.offset_uncertainty_seconds is not None
        else ""
    )
    # Never "-0.00".
    offset = round(first.offset_seconds or 0.0, 2) + 0.0
    return f"The host's clock is {offset:+.2f} s from this laptop's{within}."


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _span(values: Sequence[float | None], unit: str = "") -> str:
    """`2430`, or `1215–2430` where cards differ."""
    known = [value for value in values if value is not None]
    if not known:
        return DASH
    ends = dict.fromkeys((f"{min(known):.0f}", f"{max(known):.0f}"))
    return "–".join(ends) + unit
