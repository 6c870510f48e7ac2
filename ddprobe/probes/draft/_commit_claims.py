"""What a server says of its own commits, to be held against what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ddprobe.facts import Claim
from ddprobe.model import Cite, HttpResult
from ddprobe.probes.draft._commit_target import Target


def claims(target: Target, answers: Sequence[HttpResult], when: str) -> list[Claim]:
    """What the server says of its own commits in these answers."""
    found = target.generation.claims({answer.question.path: answer for answer in answers})
    by_path = {answer.question.path: answer.key for answer in answers}
    return [
        replace(
            claim,
            origin=f"{claim.origin}, {when}",
            source=tuple(Cite(by_path.get(c.artefact, c.artefact), c.at) for c in claim.source),
        )
        for claim in found
    ]
