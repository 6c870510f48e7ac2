"""The law of the step times in words: the fit with its intervals, what memory bandwidth allows, and what qualifies both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ddprobe.blocks import Block, Heading, Pairs, Paragraph, Series, Spread
from ddprobe.facts import Achieved, Estimate, Roofline, StepFit
from ddprobe.model import Fact
from ddprobe.probes.draft._commit_notes import context

_FORMS = {
    "flat": "flat: the context does not matter",
    "linear": "linear: T = a + b · context",
    "quadratic": "curved: T = a + b · context + c · context²",
    "knee": "a line with a jump: two regimes",
}
_WHOSE = {"step-time": "", "plain": ", without speculation"}


def blocks(facts: Sequence[Fact]) -> Iterator[Block]:
    """Of each ladder its law; then the roofline, and how far below it the server is."""
    fits = [fact for fact in facts if isinstance(fact, StepFit)]
    lines = [fact for fact in facts if isinstance(fact, Roofline)]
    reached = [fact for fact in facts if isinstance(fact, Achieved)]
    for fit in fits:
        yield Pairs(tuple(_law(fit)), f"Law of the step time{_WHOSE.get(fit.purpose, '')}")
        yield from (Paragraph(f"{text[:1].upper()}{text[1:]}.", "warn") for _, text in fit.remarks)
    for line in lines:
        yield Pairs(tuple(_roofline(line, reached)), "What memory bandwidth allows at the least, on each GPU")
        if line.assumptions:
            yield Heading("Taken for granted")
            yield from (Paragraph(sentence, "dim") for sentence in line.assumptions)


def _law(fit: StepFit) -> Iterator[tuple[str, str]]:
    yield "form", _FORMS.get(fit.form, fit.form)
    yield "a", f"{_told(fit.a)} ms"
    if fit.form != "flat":
        yield "b", f"{_told(fit.b, 1000)} ms per 1000 tokens"
    if fit.c is not None:
        yield "c", f"{_told(fit.c, 1e6)} ms per 1000 tokens squared"
    if fit.knee is not None and fit.knee_after is not None and fit.knee_before is not None:
        where = f"between {context(round(fit.knee_after))} and {context(round(fit.knee_before))}"
        yield "jump", f"{_told(fit.knee)} ms {where}"
    if fit.shift is not None:
        yield "later in the run", f"{_told(fit.shift)} times as long"
    if fit.exponents:
        slopes = ", ".join(f"{each:.2f}" for each in fit.exponents)
        yield "log-log slope from length to length", f"{slopes} (0 flat, 1 proportional)"
    steps = f"{fit.steps} steps" if fit.steps else "an unknown number of steps"
    yield "sample", f"{fit.points} medians of {steps} at {len(fit.contexts)} lengths; brackets: 95 % interval"


def _roofline(line: Roofline, reached: Sequence[Achieved]) -> Iterator[tuple[str, str]]:
    card = f", {line.gpu}" if line.gpu else ""
    yield "bandwidth", f"{line.bandwidth:g} GB/s{card} ({line.bandwidth_source or 'source unknown'})"
    yield (
        "KV cache",
        f"{line.kv_bytes_per_token:.0f} bytes per token: {_three(line.ms_per_token * 1000)} ms per 1000 tokens",
    )
    if line.weights_ms is not None and line.weight_bytes is not None:
        tokens = "token" if line.verify_width == 1 else "tokens"
        width = f" at {line.verify_width} {tokens} a step" if line.verify_width else ""
        yield "weights", f"{_three(line.weight_bytes / 1e9)} GB: {_three(line.weights_ms)} ms a step{width}"
    for each in reached:
        if each.base not in ("", line.base):
            continue
        yield (
            "achieved",
            f"{_three(each.gb_s)} GB/s of KV cache at {context(round(each.context))}, "
            f"{100 * each.share:.2g} % of the bandwidth",
        )
        if each.slope_ratio is not None:
            yield "slope", f"{_told(each.slope_ratio)} times that of reading the KV cache"
        if each.fixed_ratio is not None:
            yield "constant part", f"{_told(each.fixed_ratio)} times the reading of the weights"


def series(facts: Sequence[Fact], at: Sequence[float]) -> Iterator[Series]:
    """The law and the roofline at these lengths, in tokens that a step reads. What is not above 0 is left out."""
    fit = next((f for f in facts if isinstance(f, StepFit) and f.purpose == "step-time"), None)
    if fit is not None and len(fit.contexts) > 2:
        yield _line("law", [fit.at(each) for each in at])
    line = next((fact for fact in facts if isinstance(fact, Roofline)), None)
    if line is not None:
        yield _line("memory bandwidth", [line.at(each) for each in at])


def _line(name: str, values: Sequence[float]) -> Series:
    return Series(name, tuple(Spread(value) if value > 0 else None for value in values))


def _told(estimate: Estimate, times: float = 1.0) -> str:
    """`8.03 [7.9, 8.2]`."""
    value = _three(estimate.value * times)
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} [{_three(estimate.low * times)}, {_three(estimate.high * times)}]"


def _three(value: float) -> str:
    """Three digits, and no power of ten for what is large: `7.76`, `6280`."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"
