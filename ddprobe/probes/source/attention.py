"""Which kernel does a verify step's attention take in the installed SGLang, and does it split a long prefix?

One `grep` over the few files that decide it: the triton backend, its kernels, and the list of default backends. Other
engines are not read.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ddprobe.blocks import Block, Paragraph
from ddprobe.facts import VerifyPath
from ddprobe.model import MIB, Cite, Command, Conversation, Evidence, Fact, Finding, Gap, Host, Probe
from ddprobe.parsing import grep_output
from ddprobe.probes import installed
from ddprobe.probes.source import _verify_path

LINES = "attention"


@dataclass(frozen=True, kw_only=True)
class SourceAttention(Probe):
    """Reads which kernel verifies, from the installed engine's source."""

    findings: ClassVar[dict[str, str]] = {}
    outputs: ClassVar[dict[str, str]] = {
        "backend": "the attention backend that was read about",
        "kernel": "the kernel that a verify step runs on it",
        "split_kv": "whether it splits a long prefix among blocks",
    }

    @classmethod
    def output(cls, facts: Sequence[Fact], findings: Sequence[Finding]) -> Mapping[str, Any]:
        path = next((fact for fact in facts if isinstance(fact, VerifyPath)), None)
        if path is None:
            return {}
        return {"backend": path.backend, "kernel": path.kernel, "split_kv": path.split_kv}

    def collect(self, host: Host) -> Conversation:
        package = (yield from installed.find(host)).package
        if package is None or package.engine != "sglang":
            return
        files = tuple(posixpath.join(package.path, name) for name in _verify_path.FILES)
        argv = ("grep", "-E", "-n", "-H", "-I", "-s", "-A", str(_verify_path.BEHIND), "-m", "40")
        # Each release has some of the files: grep ends with 2 for those that it has not.
        yield Command(
            key=LINES, argv=(*argv, "-e", _verify_path.PATTERN, *files), cap=MIB // 2, exits=(0, 1, 2)
        )

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        source = installed.understood(evidence)
        package = source.the()
        yield from source.facts()
        if package.engine != "sglang":
            yield Gap(
                "the verify step's kernel",
                f"is read in SGLang's source only, and {package.engine} is installed",
            )
            return
        names = {posixpath.join(package.path, name): name for name in _verify_path.FILES}
        lines = [(names[line.path], line) for line in grep_output.parse(evidence.text(LINES), names.keys())]
        found = _verify_path.understood(lines, package.version)
        if found is None:
            yield Gap(
                "the verify step's kernel",
                f"{installed.title(package)} has no call of it where releases up to 0.5.23 have it",
                (Cite(LINES),),
            )
            return
        yield VerifyPath(
            version=package.version,
            backend="triton",
            kernel="extend_attention_fwd",
            split_kv=found.split_kv,
            told=found.told,
            source=tuple(Cite(LINES, place) for place in found.places),
        )

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        for fact in facts:
            if isinstance(fact, VerifyPath):
                yield Paragraph(f"On the {fact.backend} backend of {fact.told}.")
