"""Which law fits the medians: a line, unless a curve or a jump is surely better; and what moved in time beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe import fitting, statistics
from ddprobe.facts import Estimate
from ddprobe.fitting import Fit
from ddprobe.steplaw.observed import Observed

SURE = 0.01
"""A richer law is taken where a simpler one leaves so much only once in so many samples."""
LEVEL = 1.05
"""Growth over the whole ladder up to which a law is flat whatever its slope."""
UNCLEAR = 1.25
"""Growth that a flat law must exclude."""
MOVED = 0.03
"""Share by which a repeated length must have moved for time to have a part in it."""
TELLING = 0.02
"""Share of the longest step by which a repeated one must have moved: less may be a constant, and changes no slope."""
CLOCKS = 0.05
"""Share by which a clock must differ from the highest."""
SCATTERED = 2.0
"""Times as much scatter as the medians' errors tell from which something else is at work."""
TRIED = 3
"""Moments of a shift at which the length under way is tried as one of neither side."""
ASIDE = 8.0
AROUND_KNEE = 2
"""Lengths that either side of a knee needs."""
FEW = 5
"""Lengths below which a line is not told from a curve."""


@dataclass(frozen=True, slots=True)
class Law:
    """One fitted shape."""

    form: str
    fit: Fit
    shifted: bool = False
    """The last coefficient is the shift."""
    jump: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Times moved, and nothing tells when."""

    factor: Estimate

    @property
    def remark(self) -> tuple[str, str]:
        return (
            "shift_unplaced",
            f"lengths measured again at the end took {self.factor.value:.2f} times as long, and nothing tells which of the "
            "others were measured before that: the law mixes both",
        )


def chosen(seen: Sequence[Observed]) -> tuple[Law | None, Sequence[Observed], Unplaced | None]:
    """The law, the observations it rests on, and a shift that has no place in time."""
    clocks = [one.clock for one in seen if one.clock is not None]
    if clocks and min(clocks) < 1 - CLOCKS:
        slower = [1 / (one.clock or 1.0) - 1 for one in seen]
        by_clock = best(seen, slower, 1.0)
        # A lower clock makes nothing faster, and one that slowed nothing is no part of the law.
        if by_clock is not None and by_clock.fit.coefficients[-1] * max(slower) >= MOVED:
            return by_clock, seen, None
    moved = _moved(seen)
    plain = best(seen)
    placed = all(one.order is not None for one in seen)
    if moved is None:
        # All that was measured again may have been measured after the shift at first, too.
        hidden = placed and plain is not None and plain.fit.errors_known and plain.fit.scale > SCATTERED
        found = _in_time(seen, 0.0) if hidden else None
        if plain is None or found is None or not _surely(plain, found[0]):
            return plain, seen, None
        return *found, None
    found = _in_time(seen, moved.value - 1) if placed else None
    if found is not None:
        return *found, None
    early = [one for one in seen if not one.again]
    return best(early), early, Unplaced(moved)


def _surely(plain: Law, law: Law) -> bool:
    """Whether a shift that no repetition shows explains what no law does without it."""
    shift = law.fit.coefficients[-1]
    return abs(shift) > MOVED and law.fit.scale < SCATTERED and law.fit.chi2 < SURE * plain.fit.chi2


def _moved(seen: Sequence[Observed]) -> Estimate | None:
    """Times as long as at first that repeated lengths took at the end; None where they took as long, or none was repeated."""
    first = {one.context: one for one in seen if not one.again}
    pairs = [(first[one.context], one) for one in seen if one.again and one.context in first]
    if not pairs:
        return None
    logs = [math.log(again.ms / one.ms) for one, again in pairs]
    middle = statistics.median(logs) or 0.0
    if abs(middle) < MOVED and max(map(abs, logs)) < 3 * MOVED:
        return None
    least = TELLING * max(one.ms for one in seen)
    told = [
        (log, pair) for log, pair in zip(logs, pairs, strict=True) if abs(pair[1].ms - pair[0].ms) >= least
    ]
    if not told:
        return None
    # A clock that fell on the way shows most in what was measured before it fell.
    log, (one, again) = max(told, key=lambda each: abs(each[0]))
    error = math.hypot(
        one.error / one.ms if one.error is not None else 0.0,
        again.error / again.ms if again.error is not None else 0.0,
    )
    if abs(log) < max(MOVED, 4 * error):
        return None
    known = one.error is not None
    return Estimate(
        math.exp(log),
        math.exp(log - statistics.Z95 * error) if known else None,
        math.exp(log + statistics.Z95 * error) if known else None,
    )


def _in_time(seen: Sequence[Observed], start: float) -> tuple[Law, Sequence[Observed]] | None:
    """The law with a shift at the moment that fits best. The length under way at that moment may be of neither side."""
    ordered = sorted(seen, key=lambda one: one.order or 0)
    # Where the moment is, a line or a curve shows; what is tried beside it is tried at the likeliest moments only.
    smooth = [
        (_score(law, len(ordered)), cut)
        for cut in range(1, len(ordered))
        if (law := _cut(ordered, cut, start, jumps=False))
    ]
    found: list[tuple[float, Law, Sequence[Observed]]] = []
    for _, cut in sorted(smooth)[:TRIED]:
        law = _cut(ordered, cut, start)
        if law is not None:
            found.append((_score(law, len(ordered)), law, ordered))
        fewer = [one for one in ordered if one is not ordered[cut]]
        law = _cut(fewer, cut, start)
        if law is not None:
            # A length that is left out costs what several coefficients do.
            found.append((_score(law, len(fewer)) + ASIDE, law, fewer))
    if not found:
        return None
    _, law, used = min(found, key=lambda each: each[0])
    return law, used


def _cut(ordered: Sequence[Observed], cut: int, start: float, *, jumps: bool = True) -> Law | None:
    """The law where all from that one on were measured after the shift."""
    if cut >= len(ordered) or len({one.context for one in ordered}) < 2:
        return None
    return best(ordered, [float(at >= cut) for at in range(len(ordered))], start, jumps=jumps)


def _score(law: Law, size: int) -> float:
    """Smaller is better: misfit and what it cost in coefficients."""
    misfit = law.fit.chi2 if law.fit.errors_known else size * math.log(max(law.fit.chi2, 1e-12) / size)
    return misfit + 2 * (len(law.fit.coefficients) + (law.jump is not None))


def best(
    seen: Sequence[Observed],
    moved: Sequence[float] | None = None,
    start: float = 0.0,
    *,
    jumps: bool = True,
) -> Law | None:
    """A line, unless a curve or (with `jumps`) a jump is surely better."""
    line = _law("linear", seen, moved, start)
    places = sorted({one.context for one in seen})
    if line is None or len(places) < 4:
        return line
    richer: list[tuple[float, Law]] = []
    curve = _law("quadratic", seen, moved, start)
    if curve is not None:
        richer.append((fitting.better(line.fit, curve.fit), curve))
    sides = range(AROUND_KNEE, len(places) - AROUND_KNEE + 1)
    found = [
        law
        for at in (sides if jumps else ())
        if (law := _law("knee", seen, moved, start, (places[at - 1], places[at]))) is not None
    ]
    if found and len(places) >= FEW:
        jump = min(found, key=lambda law: law.fit.chi2)
        # The best of several places: each had its chance.
        richer.append((min(1.0, len(found) * fitting.better(line.fit, jump.fit)), jump))
    sure = [(p, law) for p, law in richer if p < SURE]
    return min(sure, key=lambda each: _score(each[1], len(seen)))[1] if sure else line


def _law(
    form: str,
    seen: Sequence[Observed],
    moved: Sequence[float] | None,
    start: float,
    jump: tuple[float, float] | None = None,
) -> Law | None:
    xs = [one.context for one in seen]
    columns = [[1.0] * len(xs), xs]
    if form == "quadratic":
        columns.append([x * x for x in xs])
    if jump is not None:
        columns.append([float(x >= jump[1]) for x in xs])
    values = [one.ms for one in seen]
    errors = [one.error for one in seen if one.error is not None]
    known = errors if len(errors) == len(seen) else None
    if moved is None or not any(moved):
        found = fitting.least_squares(columns, values, known)
        return Law(form, found, jump=jump) if found is not None else None
    found = fitting.scaled_by(columns, values, known, moved, start)
    return Law(form, found, shifted=True, jump=jump) if found is not None else None


def square(seen: Sequence[Observed], law: Law) -> Fit | None:
    """The fit with a square term, whatever the law; None where four lengths are not there to tell."""
    if law.form == "quadratic":
        return law.fit
    if law.shifted or len({one.context for one in seen}) < 4:
        return None
    curve = _law("quadratic", seen, None, 0.0)
    return curve.fit if curve is not None else None


def level(law: Law, places: Sequence[float]) -> bool:
    """Whether a line is flat: it grows by next to nothing, or by nothing that the sample shows, and by little at the most."""
    a, b = law.fit.coefficients[:2]
    low, high = a + b * places[0], a + b * places[-1]
    if low <= 0 or high <= 0:
        return False
    if max(low, high) <= LEVEL * min(low, high):
        return True
    ends = law.fit.interval(1)
    if ends is None or not ends[0] <= 0 <= ends[1]:
        return False
    return (low + high) / 2 + max(map(abs, ends)) * (places[-1] - places[0]) / 2 <= UNCLEAR * low
