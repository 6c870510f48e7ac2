"""The law of a step's time over context, and what memory bandwidth allows at the least."""

from __future__ import annotations

from dataclasses import dataclass

from ddprobe.model import Fact


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and the ends of its 95 % interval; None where the sample gives no interval."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFit(Fact):
    """T = a + b · context (+ c · context²) (+ `knee` beyond a length), fitted to the medians of step times.

    Contexts are those that the timed steps' attention read: prompt and output together.
    """

    arm: str
    base: str = ""
    """The server that was measured; empty where nobody says."""
    purpose: str = "step-time"
    """Of the points: see `CommitPoint`."""
    form: str
    """`flat` (no growth beyond the noise, or less than a twentieth in all), `linear`, `quadratic`, or `knee`: a line that
    jumps between two lengths."""
    a: Estimate
    """ms: what a step takes at no context. Of the lengths before the knee, and at the clock before it fell."""
    b: Estimate
    """ms per token of context."""
    c: Estimate | None = None
    """ms per token²; None where the law has no such term."""
    curvature: Estimate | None = None
    """ms per token²: the square term that the points would take, whatever the law; None for fewer than four lengths."""
    curvature_p: float | None = None
    """How likely so much curvature is on a straight line (Student's t)."""
    knee: Estimate | None = None
    """ms that every step beyond the knee takes more."""
    knee_after: float | None = None
    knee_before: float | None = None
    """Contexts in tokens between which the knee lies."""
    shift: Estimate | None = None
    """Times as long as at the beginning that a step took at the end, the context aside; None where nothing moved."""
    runs_p: float | None = None
    """How likely so few changes of sign are among residuals that know no order (exact runs test)."""
    r_squared: float | None = None
    points: int
    """Medians behind the fit, a length that was measured twice counted twice."""
    steps: int
    """Timed steps behind them; 0: nobody says how many."""
    contexts: tuple[float, ...]
    """Distinct, ascending."""
    step_ms: tuple[float, ...]
    """At each of the contexts, as measured first."""
    exponents: tuple[float, ...] = ()
    """Slope of log time over log context from each context to the next: 0 flat, 1 proportional, above 1 faster than that."""
    weighted: bool = False
    """The medians' own errors are known; else all points count alike."""
    remarks: tuple[tuple[str, str], ...] = ()
    """What a person should know of the fit, by kind: `two_points`, `few_contexts`, `negative_intercept`, `curved`, `knee`,
    `shift`, `shift_unplaced`, `patterned`, `unclear`."""

    def at(self, context: float) -> float:
        """ms of a step at this context by the law, before anything shifted."""
        square = self.c.value if self.c is not None else 0.0
        jump = 0.0
        if self.knee is not None and self.knee_before is not None and context >= self.knee_before:
            jump = self.knee.value
        return self.a.value + self.b.value * context + square * context * context + jump

    def remark(self, kind: str) -> str:
        """The remark of that kind; empty where there is none."""
        return dict(self.remarks).get(kind, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline(Fact):
    """The least time that reading the KV cache and the weights takes, on one GPU of the server's."""

    base: str = ""
    kv_bytes_per_token: float
    """Bytes that each GPU reads per step and token of context."""
    kv_bytes_fixed: float = 0.0
    """Bytes per step of layers that read a window only, once the context is longer than it."""
    window: int | None = None
    """Tokens of that window."""
    weight_bytes: float | None = None
    """Bytes of weights that each GPU reads per verify step; None where the configuration does not tell."""
    verify_width: int | None = None
    """Tokens that one verify step computes; 1 without speculation."""
    bandwidth: float
    """GB/s (10⁹ bytes) of one GPU's memory, at its peak."""
    bandwidth_source: str = ""
    known: bool = True
    """False: the GPU is not known, and the slowest of the table was taken, which makes the roofline as high as it can be."""
    gpu: str = ""
    ranks: int = 1
    """GPUs that the weights are spread over (tensor parallel)."""
    assumptions: tuple[str, ...] = ()

    @property
    def ms_per_token(self) -> float:
        return self.kv_bytes_per_token / self.bandwidth * 1e-6

    @property
    def weights_ms(self) -> float | None:
        """The least part of a step that does not depend on the context."""
        return None if self.weight_bytes is None else self.weight_bytes / self.bandwidth * 1e-6

    def kv_bytes(self, context: float) -> float:
        """Bytes of KV cache that a step reads at this context."""
        share = 1.0 if self.window is None else min(1.0, context / self.window)
        return self.kv_bytes_per_token * context + self.kv_bytes_fixed * share

    def at(self, context: float) -> float:
        """ms that a step takes at the least."""
        return self.kv_bytes(context) / self.bandwidth * 1e-6 + (self.weights_ms or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Achieved(Fact):
    """A measured law beside the roofline."""

    base: str = ""
    arm: str = ""
    context: float
    """The longest that was measured, in tokens."""
    step_ms: float
    kv_bytes: float
    """That a step reads there, per GPU."""
    gb_s: float
    """Bytes of KV over the whole step's time: what a GPU reads of it per second, in GB/s."""
    share: float
    """Of the bandwidth: 0.005 is half a percent."""
    slope_ratio: Estimate | None = None
    """Slope of the step time over that of reading the KV cache; None for a law that does not grow."""
    slope_gb_s: Estimate | None = None
    """Bytes of KV per token over the slope: the bandwidth that the growth alone speaks of."""
    fixed_ratio: Estimate | None = None
    """The constant part of a step over the time that reading the weights takes; None where either is not known."""
