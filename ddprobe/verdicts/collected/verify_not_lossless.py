"""Does speculation change what the model writes?"""

from __future__ import annotations

from ddprobe.model import Outcome, Verdict
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ruling import Ruling

LINTS = ("RT05",)


def judge(case: Case) -> Ruling | None:
    """Greedy output with and without speculation was compared, and differs."""
    found = case.found(Outcome.FAIL, *LINTS)
    if not found:
        return None
    return Ruling(
        Verdict(
            name="verify_not_lossless",
            confidence="medium",
            reasons=tuple(f"{finding.id}: {finding.summary}" for finding in found),
            cites=tuple(cite for finding in found for cite in finding.cites),
            missing=("the same comparison at batch size one, with deterministic kernels",),
            next=("try another attention backend for verify, and a chain in place of a tree; compare again",),
        ),
        explains=1.0,
    )
