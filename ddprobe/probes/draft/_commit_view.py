"""What a person sees of a commit probe: the plan, or the points measured with their plots, and what qualifies them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ddprobe.blocks import Block, Heading, Paragraph, Plot, Series, Spread, Table
from ddprobe.facts import Claim, CommitPoint, CommitRequest, CommitSetup
from ddprobe.model import Fact
from ddprobe.parsing import sizes
from ddprobe.probes.draft import _commit_head
from ddprobe.probes.draft import _commit_notes as notes
from ddprobe.probes.draft._commit_notes import DASH, context, decimal, percent

MOST_POSITIONS = 16
LEAST_GIVEN = 10
"""Steps below which a share of them says too little to be shown."""
_MOMENTS = ("before", "after")


def blocks(facts: Sequence[Fact]) -> Iterator[Block]:
    """Of one server: what it is, then the plan or the measurement."""
    setup = next((fact for fact in facts if isinstance(fact, CommitSetup)), None)
    requests = [fact for fact in facts if isinstance(fact, CommitRequest)]
    measured = [fact for fact in facts if isinstance(fact, CommitPoint) and fact.purpose == "point"]
    rank = {arm: number for number, arm in enumerate(dict.fromkeys(point.arm for point in measured))}
    points = sorted(measured, key=lambda point: (rank[point.arm], point.context_tokens))
    if setup is not None:
        yield from _commit_head.blocks(setup)
    if points:
        yield _table(points, setup)
        yield from _plots(points, drafting=setup is None or setup.speculating is not False)
        yield from notes.of_points(points, requests)
        yield from _positions(points)
    elif setup is not None and not setup.planned_only:
        yield Paragraph("Nothing was measured.", "warn")
        yield from notes.of_requests(requests)
    yield from notes.checks(facts)
    yield from _claims([fact for fact in facts if isinstance(fact, Claim)])
    if setup is not None and setup.left_out:
        yield Heading("Left out")
        yield from (Paragraph(reason, "warn") for reason in setup.left_out)


# --- points ------------------------------------------------------------------------------------------------


def _table(points: Sequence[CommitPoint], setup: CommitSetup | None) -> Table:
    base = dict(setup.baseline) if setup is not None else {}
    columns: list[tuple[str, Callable[[CommitPoint], str], bool]] = [
        ("context\ntokens", lambda p: context(p.context_tokens, p.prompt_tokens), True),
        ("arm", lambda p: p.arm, True),
        ("steps", _steps, True),
        ("commit\ntokens", _commit, True),
        ("share", lambda p: percent(p.share_of_ceiling), False),
        ("accept\nrate", lambda p: percent(p.accept_rate), True),
        ("step\nms", lambda p: decimal(p.step_ms), True),
    ]
    if any(point.step_ms_low is not None for point in points):
        columns.append(("p10–p90\nms", lambda p: _range(p.step_ms_low, p.step_ms_high), False))
    columns += [
        ("tok/s", lambda p: decimal(p.tok_s), True),
        ("prompt\ncached", _cached, True),
    ]
    if any(point.copied is not None for point in points):
        columns.append(("copied", lambda p: "" if p.copied is None else percent(p.copied), False))
    if base:
        columns.append(("break-\neven", lambda p: _break_even(p, base), False))
        columns.append(("gain", lambda p: _gain(p, base), True))
    shown = tuple(tuple(cell(point) for _, cell, _ in columns) for point in points)
    return Table(
        tuple(name for name, _, _ in columns),
        shown,
        "Commit length: tokens committed per verify step",
        _caption(points, bool(base)),
        spare=tuple(number for number in range(len(columns) - 1, -1, -1) if not columns[number][2]),
    )


def _caption(points: Sequence[CommitPoint], base: bool) -> str:
    requests = sorted({point.requests for point in points})
    many = " to ".join(dict.fromkeys((str(requests[0]), str(requests[-1]))))
    origins = list(dict.fromkeys(point.origin for point in points if point.origin))
    told = [
        f"{many} request{'' if requests[-1] == 1 else 's'} a point.",
        *(("±: 95 % interval, its wider side.",) if any("±" in _commit(p) for p in points) else ()),
        "Share: of the ceiling, (commit − 1) / (ceiling − 1).",
    ]
    timed = [point for point in points if point.step_ms is not None]
    if timed:
        told.append(_step_definition(timed))
    if any(point.saturated for point in points):
        told.append("≥: every step reached the ceiling.")
    if base:
        told.append(
            "Break-even: the commit at which speculation begins to pay. Gain: speed against no speculation."
        )
    if any(
        DASH in (_steps(p), _commit(p), percent(p.accept_rate), decimal(p.step_ms), _cached(p))
        for p in points
    ):
        told.append(f"{DASH}: unknown.")
    if origins:
        told.append(f"Counts from {'; '.join(origins)}.")
    return " ".join(told)


def _step_definition(timed: Sequence[CommitPoint]) -> str:
    if not any(point.timed_steps for point in timed):
        return "Step: as stated."
    bursts = [point.step_ms_low is None for point in timed]
    if all(bursts):
        return "Step: mean, since the steps came in bursts."
    return (
        "Step: median; the mean where no p10–p90 stands, since these steps came in bursts."
        if any(bursts)
        else "Step: median."
    )


def _steps(point: CommitPoint) -> str:
    """0 beside a mean means that nobody says how many."""
    return DASH if not point.steps and point.commit_mean is not None else str(point.steps)


def _commit(point: CommitPoint) -> str:
    if point.commit_mean is None:
        return DASH
    sides = [abs(end - point.commit_mean) for end in (point.commit_low, point.commit_high) if end is not None]
    sign = "≥" if point.saturated else ""
    return f"{sign}{point.commit_mean:.2f}" + (f" ±{max(sides):.2f}" if len(sides) == 2 else "")


def _range(low: float | None, high: float | None) -> str:
    return DASH if low is None or high is None else f"{decimal(low)}–{decimal(high)}"


def _cached(point: CommitPoint) -> str:
    if point.cached_tokens is None:
        return DASH
    return (
        percent(point.cached_tokens / point.prompt_tokens)
        if point.prompt_tokens
        else str(point.cached_tokens)
    )


def _break_even(point: CommitPoint, base: dict[int, float]) -> str:
    plain = base.get(point.context_tokens)
    return DASH if not plain or point.step_ms is None else f"{point.step_ms / plain:.2f}"


def _gain(point: CommitPoint, base: dict[int, float]) -> str:
    plain = base.get(point.context_tokens)
    if not plain or not point.step_ms or point.commit_mean is None:
        return DASH
    return f"{decimal(point.commit_mean * plain / point.step_ms)}×"


# --- plots -------------------------------------------------------------------------------------------------


def _plots(points: Sequence[CommitPoint], drafting: bool) -> Iterator[Plot]:
    """Commit length, which without drafts would be a line at 1, and step time."""
    if drafting:
        yield from _commit_plot(points)
    yield from _plot(
        points,
        "Step time over context, ms",
        lambda p: None if p.step_ms is None else Spread(p.step_ms, p.step_ms_low, p.step_ms_high),
        interval="p10–p90",
    )


def _commit_plot(points: Sequence[CommitPoint]) -> Iterator[Plot]:
    ceilings = {point.ceiling for point in points}
    ceiling = ceilings.pop() if len(ceilings) == 1 else None
    yield from _plot(
        points,
        "Commit length over context, tokens per step",
        lambda p: None if p.commit_mean is None else Spread(p.commit_mean, p.commit_low, p.commit_high),
        least=1.0,
        ceiling=ceiling,
        interval="95 % interval",
    )


def _plot(
    points: Sequence[CommitPoint],
    title: str,
    value: Callable[[CommitPoint], Spread | None],
    *,
    least: float = 0.0,
    ceiling: float | None = None,
    interval: str = "",
) -> Iterator[Plot]:
    """The plot, where there are two contexts or more to draw."""
    drawn = [(point, spread) for point in points if (spread := value(point)) and point.context_tokens]
    places = sorted({point.context_tokens for point, _ in drawn})
    if len(places) < 2:
        return
    known = {(point.arm, point.context_tokens): spread for point, spread in drawn}
    yield Plot(
        title,
        tuple(sizes.short(place) for place in places),
        tuple(
            Series(arm, tuple(known.get((arm, place)) for place in places))
            for arm in dict.fromkeys(point.arm for point, _ in drawn)
        ),
        "context, tokens",
        least,
        ceiling,
        interval,
    )


# --- positions ---------------------------------------------------------------------------------------------


def _positions(points: Sequence[CommitPoint]) -> Iterator[Table]:
    """Acceptance by position in the draft, at the shortest and the longest context of each arm."""
    known = [point for point in points if point.per_position]
    chosen: list[CommitPoint] = []
    for arm in dict.fromkeys(point.arm for point in known):
        ladder = [point for point in known if point.arm == arm]
        chosen += [ladder[0], ladder[-1]] if len(ladder) > 1 else ladder
    if not chosen:
        return
    longest = max(len(point.per_position or ()) for point in chosen)
    rows = tuple(
        (str(number + 1), *(_position(point, number) for point in chosen))
        for number in range(min(longest, MOST_POSITIONS))
    )
    more = (
        f" {longest - MOST_POSITIONS} further positions are in the report."
        if longest > MOST_POSITIONS
        else ""
    )
    columns = tuple(
        f"{p.arm}\n{context(p.context_tokens, p.prompt_tokens)}\n{_drafted(p) or DASH} steps" for p in chosen
    )
    yield Table(
        ("draft", *columns),
        rows,
        "Acceptance by position in the draft, %",
        "Share of the steps in which at least so many drafts were right; in brackets, of those in which the drafts "
        f"before were, if these are {LEAST_GIVEN} or more.{more}",
        spare=tuple(range(len(columns), 2, -1)),
    )


def _drafted(point: CommitPoint) -> int:
    return point.drafted_steps if point.drafted_steps is not None else point.steps


def _position(point: CommitPoint, number: int) -> str:
    shares = point.per_position or ()
    if number >= len(shares):
        return ""
    given = point.conditional[number] if point.conditional and number < len(point.conditional) else None
    reached = _drafted(point) * (shares[number - 1] if number else 1.0)
    if not reached >= LEAST_GIVEN - 0.5:
        given = None
    return f"{100 * shares[number]:.0f}" + (f" ({100 * given:.0f})" if given is not None else "")


# --- what others say ---------------------------------------------------------------------------------------


def _claims(claims: Sequence[Claim]) -> Iterator[Table]:
    """A row for each number stated, as it stood before and after the probe."""
    rows: dict[tuple[str, str, str], dict[str, Claim]] = {}
    for claim in claims:
        who, moment = _moment(claim.origin)
        rows.setdefault((claim.what, claim.window or "unknown", who), {})[moment] = claim
    if not rows:
        return
    moments = [m for m in (*_MOMENTS, "") if any(m in row for row in rows.values())]
    steps = any(claim.samples is not None for claim in claims)
    yield Table(
        (
            "what",
            *(m or "value" for m in moments),
            "over",
            *(("steps",) if steps else ()),
            "says who",
        ),
        tuple(
            (
                what,
                *(f"{row[m].value:.4g}" if m in row else DASH for m in moments),
                window,
                *((_samples(row),) if steps else ()),
                who,
            )
            for (what, window, who), row in rows.items()
        ),
        "What is stated, and by whom",
        ("Before and after the probe. " if set(moments) & set(_MOMENTS) else "")
        + ("" if steps else "Over how many steps, it does not say."),
    )


def _samples(row: dict[str, Claim]) -> str:
    return " / ".join("unknown" if one.samples is None else str(one.samples) for one in row.values())


def _moment(origin: str) -> tuple[str, str]:
    """Who says it, and whether before or after the probe."""
    for moment in _MOMENTS:
        if origin.endswith(f", {moment} the probe"):
            return origin.removesuffix(f", {moment} the probe"), moment
    return origin, ""
