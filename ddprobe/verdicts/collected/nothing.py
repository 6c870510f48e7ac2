"""Files of which none is evidence: said plainly, with what would be, in place of a verdict on nothing."""

from __future__ import annotations

from collections.abc import Sequence

from ddprobe.facts import EvidenceFile
from ddprobe.model import Verdict
from ddprobe.verdicts import words

KIND = "nothing_recognised"
MOST = 5
"""Files that are named, and sentences on files of a kind."""
KINDS = (
    "config.json of a drafter or target, a dump of GGUF metadata, model.safetensors.index.json",
    "a server's arguments: SGLang's server_args line or /server_info, vLLM's non-default args, a command line, variables of "
    "its environment",
    "how a container is started: a Compose file, a Kubernetes manifest, a Dockerfile, docker inspect",
    "a log of SGLang, vLLM or llama.cpp: of the start, or of decoding",
    "/metrics of any of the three, answers to requests with meta_info or timings, nvidia-smi output",
    "what a benchmark printed of speculation in the end, or saved",
    "measured points, also as a table, records of a commit probe, a ddprobe report",
    "the engine's version: a list of packages such as pip freeze, an image's tag",
    "prose that states figures: `accept rate 0.33 on the old build`",
)
"""What is recognised, whatever it is called."""


def verdict(files: Sequence[EvidenceFile]) -> Verdict:
    """That nothing was recognised in these, and how to go on."""
    return Verdict(
        name="inconclusive",
        kind=KIND,
        confidence="low",
        reasons=tuple(_reasons(files)) or ("nothing was given",),
        cites=words.cites(*files),
        missing=tuple(f"one of these: {kind}" if number == 0 else kind for number, kind in enumerate(KINDS)),
        next=(
            "name the files themselves: ddprobe analyse server.log config.json",
            "or look at the server: ddprobe inspect-config, ddprobe logs, ddprobe commit-probe",
        ),
    )


def _reasons(files: Sequence[EvidenceFile]) -> list[str]:
    """What became of each of them, those alike in one sentence."""
    unread = [file for file in files if file.trouble and not file.sha256]
    empty = [file for file in files if file not in unread and not file.size]
    # One that is not kept is the same as another.
    known = [file for file in files if file.recognised and file.kept and file not in empty]
    strange = [file for file in files if file not in (*unread, *empty, *known)]
    told = []
    if strange:
        held = "holds nothing" if len(strange) == 1 else "hold nothing"
        told.append(f"{_named(strange)} {held} that is recognised as evidence")
    if empty:
        told.append(f"{_named(empty)} {'is' if len(empty) == 1 else 'are'} empty")
    alike: dict[str, list[EvidenceFile]] = {}
    for file in (*known, *unread):
        alike.setdefault("; ".join(file.recognised) or file.trouble, []).append(file)
    told += [f"{_named(same)}: {what}" for what, same in list(alike.items())[:MOST]]
    return told


def beside(files: Sequence[EvidenceFile]) -> tuple[str, ...]:
    """Of files that were understood and measure nothing, what each is."""
    alike: dict[str, list[EvidenceFile]] = {}
    for file in files:
        if file.recognised and file.kept and file.size:
            alike.setdefault("; ".join(file.recognised), []).append(file)
    return tuple(f"{_named(same)}: {what}" for what, same in list(alike.items())[:MOST])


def _named(files: Sequence[EvidenceFile]) -> str:
    """`a.txt`, `a.txt and b.txt`, or `214 files (a.txt, b.txt, … )`."""
    names = [file.name for file in files]
    if len(names) <= MOST:
        return words.listed(names)
    return f"{len(names)} files ({', '.join(names[:MOST])}, …)"
