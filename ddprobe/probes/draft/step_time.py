"""How does the time of a verify step grow with context, and is that what the GPUs' memory allows?

Sends one easy text at many exact lengths to a live inference server and times its steps as they stream in: their median
by length, beside it how fast the prompt was computed. The first two steps of each request do not count. Lengths come in
shuffled order, and a few of them once more at the end, so that a drift in time (a clock that fell) is told from the
context's doing. A law is fitted, and compared with the time that reading the KV cache takes.

Like the commit probe it costs the host something: what it will send is planned and bounded first (`--plan` shows it), a
busy server is left alone, and nothing is sent beyond the server's own limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ddprobe.blocks import Block
from ddprobe.model import Conversation, Evidence, Fact, Finding, Gap, Help, Host, Listed, Probe
from ddprobe.probes.draft import _cost, _outputs, _step_time_memory, _step_time_view
from ddprobe.probes.draft._replay import replay
from ddprobe.probes.draft._step_time_run import Timing


@dataclass(frozen=True, kw_only=True)
class DraftStepTime(Probe):
    """Measures step time by context, fits its law, and compares it with the memory's bandwidth."""

    measures: ClassVar[bool] = True

    contexts: Annotated[
        str,
        Listed(),
        Help(
            "context lengths: 1k,16k or auto; empty: 6 to 8, the same factor apart, from 1k to the largest that fits"
        ),
    ] = ""
    steps: Annotated[int, Help("verify steps timed per length, at least")] = 64
    text: Annotated[str, Help("your own text to repeat, in place of the shipped one")] = ""
    plan: Annotated[bool, Help("only say what would be sent")] = False
    while_busy: Annotated[bool, Help("send although the server serves others")] = False
    max_context: Annotated[str, Help("send nothing longer than this")] = ""
    seed: Annotated[int, Help("of nonces and order")] = 0
    engine: Annotated[str, Help("sglang, vllm or llamacpp, where it cannot be told")] = ""
    url: Annotated[str, Help("where the server listens, as seen from the host")] = ""
    plain_url: Annotated[
        str, Help("where the same model is served without speculation, to compare, as seen from the host")
    ] = ""
    baseline: Annotated[
        str, Help("context:milliseconds per token without speculation, as in 1024:8.1,16384:9.4")
    ] = ""
    request_timeout: Annotated[float, Help("seconds that one request may take; 0: by its length")] = 0.0

    findings: ClassVar[dict[str, str]] = {}
    outputs: ClassVar[dict[str, str]] = _outputs.STEP_TIME

    @classmethod
    def mistakes(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        yield from _outputs.mistakes(given)

    @classmethod
    def cost(cls, given: Mapping[str, Any]) -> str:
        return _cost.step_time(given)

    @classmethod
    def output(cls, facts: Sequence[Fact], findings: Sequence[Finding]) -> Mapping[str, Any]:
        return _outputs.step_time(facts)

    def collect(self, host: Host) -> Conversation:
        yield from Timing(self).converse(host)

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        timing = Timing(self)
        try:
            replay(timing.converse(evidence.host), evidence)
        except Exception:
            # Whatever broke: what was measured before stands.
            yield from timing.results()
            raise
        told = tuple(timing.results())
        yield from told
        windows = tuple(timing.windows(evidence))
        yield from windows
        laws = tuple(timing.laws(windows))
        yield from laws
        known = [each for each in (*told, *windows, *laws) if isinstance(each, Fact)]
        yield from _step_time_memory.beside(known, evidence.host)

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        yield from _step_time_view.blocks(facts)
