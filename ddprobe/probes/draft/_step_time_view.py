"""What a person sees of step times: the plan, or a row for each length, the plot, and what qualifies them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ddprobe.blocks import Block, Heading, Paragraph, Plot, Series, Spread, Table
from ddprobe.facts import CommitPoint, CommitRequest, CommitSetup, SpeculationGain
from ddprobe.model import Fact
from ddprobe.parsing import sizes
from ddprobe.probes.draft import _commit_head, _step_time_gpus, _step_time_law
from ddprobe.probes.draft import _commit_notes as notes
from ddprobe.probes.draft._commit_notes import DASH, context, decimal
from ddprobe.probes.draft._gain import loses_from


def blocks(facts: Sequence[Fact]) -> Iterator[Block]:
    """Of each server: what it is, then the plan or the measurement."""
    setups = [fact for fact in facts if isinstance(fact, CommitSetup)]
    requests = [fact for fact in facts if isinstance(fact, CommitRequest)]
    points, plain = _ladder(facts, "step-time"), _ladder(facts, "plain")
    for setup in setups:
        yield from _commit_head.blocks(setup)
    if points:
        found = [fact for fact in facts if isinstance(fact, SpeculationGain)]
        yield _table(points, setups[0] if setups else None, found)
        yield from _pays(found)
        yield from _plot(points, plain, facts)
        yield from _step_time_law.blocks(facts)
        yield from notes.of_points(points, [r for r in requests if r.purpose == "step-time"])
    elif setups and not setups[0].planned_only:
        yield Paragraph("Nothing was measured.", "warn")
        yield from notes.of_requests(requests)
    if plain:
        yield _plain_table(plain)
    yield from _step_time_gpus.blocks(facts, points)
    yield from notes.checks(facts)
    left_out = [reason for setup in setups for reason in setup.left_out]
    if left_out:
        yield Heading("Left out")
        yield from (Paragraph(reason, "warn") for reason in left_out)


def _ladder(facts: Sequence[Fact], purpose: str) -> list[CommitPoint]:
    found = [fact for fact in facts if isinstance(fact, CommitPoint) and fact.purpose == purpose]
    return sorted(found, key=lambda point: point.context_tokens)


# --- tables ------------------------------------------------------------------------------------------------

Column = tuple[str, Callable[[CommitPoint], str], bool]
"""Heading, cell, and whether a narrow screen keeps it."""


def _table(
    points: Sequence[CommitPoint], setup: CommitSetup | None, found: Sequence[SpeculationGain]
) -> Table:
    drafting = setup is None or setup.speculating is not False
    known = {(gain.arm, gain.context_tokens): gain for gain in found}
    columns = [*_times(), ("commit\ntokens", _commit, True)] if drafting else _times()
    columns.append(("tok/s", lambda p: decimal(p.tok_s), True))
    if known:
        columns.append(("break-\neven", lambda p: _break_even(known.get((p.arm, p.context_tokens))), True))
        columns.append(("gain", lambda p: _gained(known.get((p.arm, p.context_tokens))), True))
    return _drawn(points, columns, "Step time by context", _caption(points, bool(known)))


def _plain_table(points: Sequence[CommitPoint]) -> Table:
    columns = [*_times(), ("tok/s", lambda p: decimal(p.tok_s), True)]
    return _drawn(points, columns, "Without speculation", _caption(points, base=False))


def _times() -> list[Column]:
    return [
        ("context\ntokens", lambda p: context(p.context_tokens, p.prompt_tokens), True),
        ("step\nms", lambda p: decimal(p.step_ms), True),
        ("95 %\ninterval", _interval, True),
        ("steps\ntimed", lambda p: str(p.timed_steps), True),
        ("prefill\ntok/s", lambda p: decimal(p.prefill_tok_s), False),
        ("first token\nms", lambda p: decimal(p.first_token_ms), False),
    ]


def _drawn(points: Sequence[CommitPoint], columns: Sequence[Column], title: str, caption: str) -> Table:
    return Table(
        tuple(name for name, _, _ in columns),
        tuple(tuple(cell(point) for _, cell, _ in columns) for point in points),
        title,
        caption,
        spare=tuple(number for number in range(len(columns) - 1, -1, -1) if not columns[number][2]),
    )


def _caption(points: Sequence[CommitPoint], base: bool) -> str:
    bursts = [point.step_ms is not None and point.step_ms_low is None for point in points]
    told = ["Step: median of the steps timed, the first two of each request left out."]
    if any(bursts):
        told = [
            "Step: mean, since steps came in bursts."
            if all(bursts)
            else f"{told[0][:-1]}; the mean where they came in bursts."
        ]
    cached = [
        p
        for p in points
        if p.prefill_tokens is not None and p.prompt_tokens and p.prefill_tokens < p.prompt_tokens / 2
    ]
    if cached:
        told.append(
            f"First token: {cached[0].prefill_tokens} of {cached[0].prompt_tokens} tokens had to be computed"
            f"{' and the like' if len(cached) > 1 else ''}."
        )
    if base:
        told.append(
            "Break-even: the commit at which speculation begins to pay. Gain: speed against no speculation."
        )
    told.append(f"{DASH}: unknown.")
    return " ".join(told)


def _interval(point: CommitPoint) -> str:
    low, high = point.step_ms_from, point.step_ms_to
    return DASH if low is None or high is None else f"{decimal(low)}–{decimal(high)}"


def _commit(point: CommitPoint) -> str:
    if point.commit_mean is None:
        return DASH
    return f"{'≥' if point.saturated else ''}{point.commit_mean:.2f}"


def _break_even(gain: SpeculationGain | None) -> str:
    return DASH if gain is None else f"{gain.break_even:.2f}"


def _gained(gain: SpeculationGain | None) -> str:
    if gain is None or gain.gain is None:
        return DASH
    return f"{decimal(gain.gain)}×"


def _pays(found: Sequence[SpeculationGain]) -> Iterator[Paragraph]:
    """From where on speculation loses, on this text, which is its best case."""
    if not found:
        return
    start = loses_from(found)
    if start is not None:
        at = next(gain for gain in found if gain.context_tokens == start)
        yield Paragraph(
            f"From {context(start)} on speculation costs more than it gives: it takes {at.break_even:.2f} tokens a step and "
            f"{decimal(at.commit_mean)} are committed there, of a text that any drafter foresees.",
            "bad",
        )
    elif all(gain.gain_low is not None and gain.gain_low > 1 for gain in found):
        least = min(found, key=lambda gain: gain.gain or 0.0)
        yield Paragraph(
            f"Speculation pays at every length measured, least at {context(least.context_tokens)} ({_gained(least)}), on a "
            "text that any drafter foresees: other text commits less.",
            "good",
        )


# --- plot --------------------------------------------------------------------------------------------------


def _plot(
    points: Sequence[CommitPoint], plain: Sequence[CommitPoint], facts: Sequence[Fact]
) -> Iterator[Plot]:
    """Step time over context, both in equal ratios, where there are two lengths or more to draw."""
    places = sorted({point.context_tokens for point in points if point.step_ms})
    if len(places) < 2:
        return
    lines = [_series("measured", points, places)]
    if plain:
        lines.append(_series("without speculation", plain, places))
    read = {p.context_tokens: p.timed_context for p in points}
    lines += _step_time_law.series(facts, [read.get(place) or float(place) for place in places])
    yield Plot(
        "Step time over context, ms",
        tuple(sizes.short(place) for place in places),
        tuple(lines),
        "context, tokens",
        interval="95 % interval",
        logarithmic=True,
        at=tuple(map(float, places)),
    )


def _series(name: str, points: Sequence[CommitPoint], places: Sequence[int]) -> Series:
    known = {p.context_tokens: Spread(p.step_ms, p.step_ms_from, p.step_ms_to) for p in points if p.step_ms}
    return Series(name, tuple(known.get(place) for place in places))
