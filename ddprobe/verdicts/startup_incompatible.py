"""Did the server die at its start, over what it was told to speculate with?"""

from __future__ import annotations

import math
import re

from ddprobe.facts import LogEvent
from ddprobe.model import Finding, Outcome, Verdict
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import figures
from ddprobe.verdicts.ruling import Ruling

RAISES = (
    "DC02", "DC05", "DC06", "DC07", "DC08", "DC09", "DC12", "DC22", "DC23", "DC25", "DC30", "DC40", "DC41", "DC42", "DC43", "SA05",
    "SA00", "SA06", "SA10", "SA12",
)  # fmt: skip
"""Lints whose faults make a server raise while it starts."""
_SPECULATIVE = re.compile(
    r"draft|specul|eagle|dflash|dspark|nextn|mtp|medusa|verify|num_context_features|ngram|Target model's context_length",
    re.IGNORECASE,
)
_KINDS = (
    ("out_of_memory", re.compile(r"out ?of ?memory|OutOfMemoryError|Not enough memory", re.IGNORECASE)),
    (
        "context_length",
        re.compile(r"derived context_length|max_model_len|maximum (?:model )?context", re.IGNORECASE),
    ),
    ("quantization", re.compile(r"quant|awq|gptq|fp8|nvfp4|config file for", re.IGNORECASE)),
    (
        "attention_backend",
        re.compile(
            r"attention|flashinfer|backend|non-?causal|head_?(?:dim|size)|page_size|topk|BatchPrefill",
            re.IGNORECASE,
        ),
    ),
    ("vocabulary", re.compile(r"vocab|lm_head|embed_tokens|d2t|token id", re.IGNORECASE)),
    ("shape", re.compile(r"shape|size mismatch|hidden|dim|dtype|divisible", re.IGNORECASE)),
    (
        "arguments",
        re.compile(r"argument|only support|not support|unsupported|must be|require", re.IGNORECASE),
    ),
)
"""What an exception's text says the trouble is with; the first that matches."""


def judge(case: Case) -> Ruling | None:
    """A log ends in an exception before the server was up, and nothing shows that it ever served."""
    if case.points or case.requests or case.logs:
        return None
    runs = list(dict.fromkeys(event.run for event in case.events))
    ends = [end for run in runs if (end := _end(case, run)) is not None]
    if not ends or len(ends) < sum(_tells_an_end(case, run) for run in runs):
        # Another run came up: what differs between them is the question, not this one alone.
        return None
    crash, died = ends[-1]
    speculates = _speculates(case)
    about = bool(_SPECULATIVE.search(crash.text))
    faults = case.found(Outcome.FAIL, *RAISES)
    if speculates is False and not about and not faults:
        return None
    sure = died and (speculates is True or about)
    return Ruling(
        Verdict(
            name="startup_incompatible",
            kind=_kind(crash.text),
            confidence="high" if sure else "medium" if died or speculates or about else "low",
            reasons=_reasons(crash, died, speculates, faults),
            cites=(*crash.source, *(cite for finding in faults for cite in finding.cites)),
            ruled_out=("a drafter that is bad at this text: nothing was drafted, the server never came up",),
            missing=_missing(case, speculates),
            next=_next(crash, faults),
        ),
        explains=math.inf,
    )


def _end(case: Case, run: str) -> tuple[LogEvent, bool] | None:
    """The exception that a run died of at its start, and whether the log says that it died; None when it came up."""
    events = [event for event in case.events if event.run == run]
    crashes = [
        e for e in events if e.kind in ("crash", "out_of_memory", "draft_failed") and _phase(e) != "serving"
    ]
    died = [e for e in events if e.kind == "died" and _phase(e) != "serving"]
    own = [event for event in crashes if "secondary" not in dict(event.values)]
    first = next(iter(own or crashes or died), None)
    if first is None:
        return None
    came_up = any(_last(event) > first.line for event in events if event.kind == "ready")
    # A log that only shows a traceback, and neither a start nor an end, may be of anything.
    if came_up or not (died or any(_phase(event) == "start" for event in crashes)):
        return None
    return first, bool(died)


def _tells_an_end(case: Case, run: str) -> bool:
    """Whether this run's log says how the start went, well or not."""
    kinds = {event.kind for event in case.events if event.run == run}
    return bool(kinds & {"ready", "crash", "died", "draft_failed"})


def _phase(event: LogEvent) -> str:
    return dict(event.values).get("phase", "")


def _last(event: LogEvent) -> int:
    last = dict(event.values).get("last", "")
    return int(last) if last.isdigit() else event.line


def _speculates(case: Case) -> bool | None:
    """Whether the server was told to speculate; None where no arguments are known."""
    if not case.arguments:
        return None
    algorithm = case.argument("speculative_algorithm")
    return bool(algorithm) or bool(case.argument("speculative_draft_model_path"))


def _kind(text: str) -> str:
    return next((kind for kind, pattern in _KINDS if pattern.search(text)), "other")


def _reasons(
    crash: LogEvent, died: bool, speculates: bool | None, faults: tuple[Finding, ...]
) -> tuple[str, ...]:
    ended = (
        "the server died before it was up" if died else "the log ends in an exception before the server is up"
    )
    told = {
        True: "it was started with speculation",
        False: "its arguments name no speculation, the exception does",
        None: "",
    }[speculates]
    return tuple(
        filter(
            None,
            (
                f"{ended}: {crash.text[:300]} (line {crash.line})",
                told,
                *(f"{finding.id}: {finding.summary}" for finding in faults[:4]),
            ),
        )
    )


def _missing(case: Case, speculates: bool | None) -> tuple[str, ...]:
    told = [] if speculates is not None else ["the server's arguments: was it told to speculate?"]
    if not any(arguments.version for arguments in case.arguments):
        told.append("the engine's version: what it accepts differs between releases")
    return (*told, *figures.unknown_models(case)[:1])


def _next(crash: LogEvent, faults: tuple[Finding, ...]) -> tuple[str, ...]:
    advice = tuple(dict.fromkeys(finding.advice for finding in faults if finding.advice))
    kind = _kind(crash.text)
    general = {
        "out_of_memory": "lower --mem-fraction-static (vLLM: --gpu-memory-utilization), the context length or the batch",
        "context_length": "serve with a --context-length that drafter and target both have, or take a drafter for longer text",
        "quantization": "name the drafter's own quantisation (SGLang: --speculative-draft-model-quantization unquant)",
        "attention_backend": "try another attention backend for the drafter, or a chain in place of a tree",
    }.get(kind)
    tail = "start once without the speculation flags: if that works, drafter and target do not go together"
    return tuple(filter(None, (*advice[:3], general if not advice else None, tail)))
