"""Is the drafter broken at long context, or is the text hard?

Sends greedy prompts of known text and exact length to a live inference server and measures, per verify step, how many
tokens are committed and how long the step takes: by context length and by kind of text. Easy repeated text tells
whether drafter and verify work at all, a copy from far away whether the drafter reaches beyond its window, prose
whether the text is just hard. Controls tell the server's state from the context's doing: one prompt computed whole and
again from the prefix cache, contexts in shuffled order, the first point once more at the end.

This is the one probe that costs the host something. What it will send is planned and bounded first (`--plan` shows it);
a busy server is left alone, and nothing is sent beyond the server's own limits. Prompts share prefixes, so that with a
prefix cache the whole ladder costs about one longest prompt per text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ddprobe.blocks import Block
from ddprobe.model import Conversation, Evidence, Fact, Finding, Gap, Help, Host, Listed, Probe
from ddprobe.probes.draft import _commit_view, _cost, _outputs
from ddprobe.probes.draft._commit_run import Measurement
from ddprobe.probes.draft._replay import replay


@dataclass(frozen=True, kw_only=True)
class DraftCommit(Probe):
    """Measures commit length and step time by context and kind of text."""

    measures: ClassVar[bool] = True

    contexts: Annotated[
        str,
        Listed(),
        Help(
            "context lengths: 1k,16k or auto (around every configured limit); empty: 1k,16k,64k,128k as far as they fit"
        ),
    ] = ""
    arms: Annotated[str, Listed(), Help("kinds of text; empty: repeat,far-copy,prose")] = ""
    steps: Annotated[int, Help("verify steps per point, at least")] = 64
    prompts: Annotated[int, Help("prompts per point")] = 4
    text: Annotated[str, Help("your own text, byte for byte, in place of the shipped one")] = ""
    plan: Annotated[bool, Help("only say what would be sent")] = False
    while_busy: Annotated[bool, Help("send although the server serves others")] = False
    max_context: Annotated[str, Help("send nothing longer than this")] = ""
    cold: Annotated[bool, Help("keep the prefix cache out of it: every prompt is computed whole")] = False
    seed: Annotated[int, Help("of nonces, order and filler text")] = 0
    engine: Annotated[str, Help("sglang, vllm or llamacpp, where it cannot be told")] = ""
    url: Annotated[str, Help("where the server listens, as seen from the host")] = ""
    baseline: Annotated[
        str, Help("context:milliseconds per token without speculation, as in 1024:8.1,16384:9.4")
    ] = ""
    request_timeout: Annotated[float, Help("seconds that one request may take; 0: by its length")] = 0.0

    findings: ClassVar[dict[str, str]] = {}
    outputs: ClassVar[dict[str, str]] = _outputs.COMMIT

    @classmethod
    def mistakes(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        yield from _outputs.mistakes(given)

    @classmethod
    def cost(cls, given: Mapping[str, Any]) -> str:
        return _cost.commit(given)

    @classmethod
    def output(cls, facts: Sequence[Fact], findings: Sequence[Finding]) -> Mapping[str, Any]:
        return _outputs.commit(facts)

    def collect(self, host: Host) -> Conversation:
        yield from Measurement(self).converse(host)

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        measurement = Measurement(self)
        try:
            replay(measurement.converse(evidence.host), evidence)
        except Exception:
            # Whatever broke: what was measured before stands.
            yield from measurement.results()
            raise
        yield from measurement.results()

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        yield from _commit_view.blocks(facts)
