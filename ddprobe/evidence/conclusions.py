"""What somebody concluded (a list of verdicts, expected or made) is recognised so that nothing of it is taken as evidence.

verdict: text_difficulty
must_not: [drafter_dead]
findings: …
"""

from __future__ import annotations

import re

from ddprobe.evidence.document import Found

_KEY = re.compile(
    r"""^\s{0,2}"?(verdicts?|also_accept|must_not|ruled_out|missing_evidence|hypotheses|confidence|root_cause|findings)"?\s*:""",
    re.MULTILINE,
)
LEAST = 3


def recognise(sample: str) -> Found | None:
    """A document whose own fields are verdicts and what speaks for them. A ddprobe report is none: it holds facts."""
    if '"ddprobe-report/' in sample or '"case-points/' in sample:
        return None
    named = set(_KEY.findall(sample))
    if len(named) < LEAST or not named & {"verdict", "verdicts"}:
        return None
    return Found("conclusions of somebody, which are no evidence", ())
