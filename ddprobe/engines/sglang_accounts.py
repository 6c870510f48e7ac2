"""What SGLang says of the speculation in one request, under the names of every release from 0.5.4 to 0.5.23.

    0.5.4 - 0.5.5    spec_accept_rate (over num_steps), spec_accept_length, spec_verify_ct
    0.5.6 - 0.5.10   + spec_accept_token_num, spec_draft_token_num; 0.5.9 + spec_accept_histogram
    0.5.11           spec_accepted_drafts, spec_proposed_drafts
    0.5.12 -         spec_num_correct_drafts, spec_num_proposed_drafts, spec_correct_drafts_histogram

Fields are absent, or zero in the oldest releases and in `spec_tokens_details`, when nothing was verified.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ddprobe.engines.base import number, whole_number
from ddprobe.engines.generation import Serving, StreamedStep
from ddprobe.facts import Account
from ddprobe.parsing.version import before

_ACCEPTED = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
_DRAFTED = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
_HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")


@dataclass(frozen=True, slots=True)
class Spoken:
    """The fields under one name each; None where the answer has none."""

    steps: int | None = None
    accepted: int | None = None
    drafted: int | None = None
    histogram: tuple[int, ...] | None = None
    length: float | None = None
    rate: float | None = None


def spoken(fields: dict[str, Any]) -> Spoken:
    """What these fields say; nothing at all when they tell of no verify step."""
    steps = whole_number(fields.get("spec_verify_ct"))
    if not steps or steps < 0:
        return Spoken()
    return Spoken(
        steps=steps,
        accepted=_first(fields, _ACCEPTED),
        drafted=_first(fields, _DRAFTED),
        histogram=_bins(fields),
        length=number(fields.get("spec_accept_length")) or None,
        # 0.0 beside a length of 0.0 is no rate but a field that was never filled.
        rate=number(fields.get("spec_accept_rate")) if number(fields.get("spec_accept_length")) else None,
    )


def accounts(said: Spoken, serving: Serving, output: int | None, origin: str) -> Iterator[Account]:
    """One account per source within the answer, the best first."""
    if said.steps is None:
        return
    accepted = said.accepted if said.accepted is not None else _from_rate(said, serving)
    if said.histogram is not None:
        counted = sum(said.histogram)
        right = sum(index * steps for index, steps in enumerate(said.histogram))
        yield Account(
            origin=f"{origin} histogram",
            steps=counted,
            accepted=right,
            drafted=said.drafted,
            histogram=said.histogram,
            last_step_whole=_whole(right, counted, serving, output),
        )
    yield Account(
        origin=origin,
        steps=said.steps,
        accepted=accepted,
        drafted=said.drafted,
        reported_commit=said.length,
        reported_rate=said.rate,
        last_step_whole=_whole(accepted, said.steps, serving, output),
    )


def stream_account(steps: Sequence[StreamedStep], cut: bool | None) -> Account:
    """What the stream itself shows: tokens per step, the last as it was cut."""
    accepted = [step.tokens - 1 for step in steps]
    bins = tuple(accepted.count(index) for index in range(max(accepted) + 1))
    return Account(
        origin="stream",
        steps=len(steps),
        accepted=sum(accepted),
        histogram=bins,
        last_step_whole=None if cut is None else not cut,
    )


def last_is_cut(
    shown: Sequence[tuple[int, float | None]], said: Spoken, serving: Serving, output: int | None
) -> bool | None:
    """Whether the last step may have committed more than came out of it; None without steps."""
    if not shown:
        return None
    if serving.speculating is False and said.steps is None:
        return False
    if serving.draft_tokens is not None and shown[-1][0] == serving.draft_tokens + 1:
        return False
    if said.steps and said.accepted is not None and output is not None:
        committed = said.accepted + said.steps
        if committed > output - 1:
            return True
        if _whole(said.accepted, said.steps, serving, output):
            return False
    return True


def _whole(accepted: int | None, steps: int, serving: Serving, output: int | None) -> bool | None:
    """Whether the last step counts in full: in all workers but the first one of DFLASH (before 0.5.14)."""
    if accepted is not None and output is not None and accepted + steps > output - 1:
        return True
    if not serving.method:
        return None
    if serving.method != "DFLASH":
        return True
    older = before(serving.version, "0.5.14")
    return None if older is None else not older


def _from_rate(said: Spoken, serving: Serving) -> int | None:
    """The oldest releases tell a rate and no count: accepted / (steps × drafts per step)."""
    if said.rate is None or not said.steps or serving.drafter != "model" or not serving.draft_tokens:
        return None
    reckoned = said.rate * said.steps * serving.draft_tokens
    return round(reckoned) if abs(reckoned - round(reckoned)) < 1e-6 else None


def _first(fields: dict[str, Any], names: Sequence[str]) -> int | None:
    return next((found for name in names if (found := whole_number(fields.get(name))) is not None), None)


def _bins(fields: dict[str, Any]) -> tuple[int, ...] | None:
    """The histogram; None where it is missing or empty (the first worker of DFLASH never fills it)."""
    for name in _HISTOGRAM:
        bins = fields.get(name)
        if isinstance(bins, list) and bins and all(type(steps) is int and steps >= 0 for steps in bins):
            return tuple(bins) if any(bins) else None
    return None
