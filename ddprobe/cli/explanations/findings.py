"""The page of a finding that a probe, or ddprobe itself, gives."""

from __future__ import annotations

import functools
import re
from typing import Any

from ddprobe import probes
from ddprobe.blocks import Block, Heading, Pairs, Paragraph
from ddprobe.model import EXPECTED

_OWN = {
    EXPECTED: (
        "whether the host is what the playbook's `expect` says; EXPECT01 is the first entry there. A miss counts as its "
        "`otherwise` says (fail or warn), and what cannot be told is unknown; `ddprobe playbook show NAME` lists them"
    ),
    "unanswered": "something that was asked got no whole answer; it makes its step incomplete",
    "report.incomplete": "the report's folder does not hold all that was seen",
    "analyse.changed": "an old report, judged again, comes out otherwise than it did",
    "report.damaged": "a file of an old report is missing, or is not what was written; what rests on it is unknown",
}
"""Those of no probe."""


_NUMBERED = re.compile(rf"{EXPECTED}\d{{1,6}}\Z", re.IGNORECASE)


def named(word: str) -> str:
    """The id whose page the word means; empty where there is none. The expectations of a playbook share one."""
    if _NUMBERED.match(word):
        return EXPECTED
    return {id.lower(): id for id in known()}.get(word.lower(), "")


@functools.cache
def known() -> dict[str, tuple[str, str]]:
    """Id → what it means, and the probe that gives it; empty: ddprobe itself."""
    of_probes = {
        id: (text, kind.name())
        for kind in map(probes.load, probes.names())
        for id, text in kind.findings.items()
    }
    return of_probes | {id: (text, "") for id, text in _OWN.items()}


def page(id: str) -> dict[str, Any]:
    """What it says."""
    text, probe = known()[id]
    return {"kind": "finding", "id": id, "text": text, "probe": probe}


def blocks(page: dict[str, Any]) -> tuple[Block, ...]:
    """As a person reads it."""
    if not page["probe"]:
        return Heading(page["id"]), Paragraph(f"Finding of ddprobe itself: {page['text']}.")
    return (
        Heading(page["id"]),
        Paragraph(f"Finding of the probe {page['probe']}: {page['text']}."),
        Pairs((("its manual page", f"ddprobe probes {page['probe']}"),)),
    )
