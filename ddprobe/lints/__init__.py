"""Lints: one subject a file, one function each: facts in, findings out."""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.model import Fact, Finding


def judge(facts: Sequence[Fact]) -> list[Finding]:
    """What every lint finds in the facts of one step on one host, in the order of the lints' ids."""
    if not facts:
        return []
    from ddprobe.lints.table import SUBJECTS

    return [finding for subject in SUBJECTS for finding in subject(facts)]
