"""A sampler beside a measurement: what to ask for it, and what its answers say of each measured point.

`nvidia-smi` in a loop, one bounded command; where DCGM's host engine runs, `dcgmi dmon` beside it, since "utilisation"
only says that some kernel ran. One look first, with a deadline of its own: it shows whether the driver answers at all
and which fields this version knows. Where there is no driver, or it hangs, nothing is begun and the measurement goes on.
The host's clock is looked at before and after.

    begun = yield from sampling.begin()
    …                                     # the measurement
    yield from sampling.end(begun)
    …
    yield from sampling.windows(evidence, requests)
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ddprobe.errors import Unanswered
from ddprobe.facts import CommitRequest, GpuWindow
from ddprobe.model import MIB, Asked, Begin, Cite, Command, CommandResult, End, Evidence, HttpResult
from ddprobe.parsing import dcgm_dmon, nvidia_smi
from ddprobe.probes.gpu import _samples
from ddprobe.probes.gpu._samples import Clock, Span

LOOK, SAMPLES, ACTIVITY, ENGINE, CLOCK = "gpu-look", "gpu-samples", "gpu-activity", "dcgm-engine", "gpu-clock"
EVERY_MS = 200
"""Between two samples: at ten milliseconds a step, a point is decoded in a second or two."""
ACTIVITY_EVERY_MS = 200
LONGEST = 2 * 3600.0
"""Seconds after which the sampler ends by itself."""
CAP = 32 * MIB
UNMEASURED = ("warm-up",)
_LOOKED_AT = ("mig.mode.current", "name")
"""Fields of the look alone: they do not change meanwhile."""


def begin(prefix: str = "") -> Generator[Asked, Any, tuple[str, ...]]:
    """Look, and start what the host has. Returns the keys of what was begun: none where no driver answers.

    `prefix` stands before every key, for a second measurement in one conversation.
    """
    fields: tuple[str, ...] = (*_samples.FIELDS, *_LOOKED_AT)
    for tried in range(1, nvidia_smi.TRIES + 1):
        answer = yield nvidia_smi.query(f"{prefix}{LOOK}-{tried}", "gpu", fields)
        fewer = nvidia_smi.accepted(fields, "\n".join(_said(answer)))
        if fewer == fields:
            break
        fields = fewer
    # Its code is no matter: with one card lost it tells of the others, and ends with an error.
    if not answer.whole or not nvidia_smi.rows(answer.text, fields):
        return ()
    yield _dates(f"{prefix}{CLOCK}-before")
    yield Begin(sampler(f"{prefix}{SAMPLES}", [field for field in fields if field not in _LOOKED_AT]))
    engine = yield Command(
        key=f"{prefix}{ENGINE}", argv=("dcgmi", "discovery", "-l"), exits=nvidia_smi.ANY_EXIT, alone=True
    )
    if not engine.whole or engine.exit_code != 0:
        return (f"{prefix}{SAMPLES}",)
    yield Begin(activity(f"{prefix}{ACTIVITY}"))
    return f"{prefix}{SAMPLES}", f"{prefix}{ACTIVITY}"


def end(begun: Sequence[str], prefix: str = "") -> Generator[Asked, Any, None]:
    """Stop what was begun, and look at the clock once more."""
    for key in begun:
        yield End(key)
    if begun:
        yield _dates(f"{prefix}{CLOCK}-after")


def sampler(key: str, fields: Sequence[str]) -> Command:
    """The loop. It writes until it is stopped."""
    argv = (
        "nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", "-lms", str(EVERY_MS),
    )  # fmt: skip
    return Command(key=key, argv=argv, timeout=LONGEST, cap=CAP)


def activity(key: str) -> Command:
    """The same of DCGM's counters."""
    fields = ",".join(map(str, dcgm_dmon.FIELDS.values()))
    argv = ("dcgmi", "dmon", "-e", fields, "-d", str(ACTIVITY_EVERY_MS))
    return Command(key=key, argv=argv, timeout=LONGEST, cap=CAP)


def _dates(key: str) -> tuple[Command, Command]:
    """The host's time, twice in one go: when the second is asked, the answer of the first is here."""
    return tuple(Command(key=f"{key}-{n}", argv=("date", "+%s.%N")) for n in (1, 2))  # type: ignore[return-value]


def _said(answer: CommandResult) -> tuple[str, str]:
    """Both streams: nvidia-smi complains on either."""
    return answer.stdout.decode("utf-8", "replace"), answer.stderr.decode("utf-8", "replace")


# --- afterwards ----------------------------------------------------------------------------------------------


def windows(evidence: Evidence, requests: Sequence[CommitRequest], prefix: str = "") -> Iterator[GpuWindow]:
    """What was seen of each card while each point was decoded: from a request's first token to its end.

    Nothing where no sampler ran, or where its samples cannot be placed on the laptop's clock.
    """
    if not evidence.has(f"{prefix}{SAMPLES}"):
        return
    ran = evidence.command(f"{prefix}{SAMPLES}")
    at = _clock(evidence, prefix)
    spans = tuple(_spans(evidence, requests))
    if at is None or not spans:
        return
    fields = _fields(ran)
    # One that was cut or timed out saw less, and what it saw stands: each sample is a line of its own.
    found = _samples.samples(ran.stdout.decode("utf-8", "replace"), fields)
    ended = ran.started + ran.seconds if ran.stopped else math.inf
    seen = _samples.windows(_samples.placed(found, ran.started, at, ended), at, spans)
    names = _names(evidence, prefix)
    cites = (Cite(ran.key), Cite(f"{prefix}{CLOCK}-before-1"))
    seen = tuple(replace(w, name=names.get(w.index, ""), source=cites) for w in seen)
    yield from _with_activity(seen, evidence, prefix, spans)


def _with_activity(
    seen: tuple[GpuWindow, ...], evidence: Evidence, prefix: str, spans: Sequence[Span]
) -> tuple[GpuWindow, ...]:
    if not evidence.has(f"{prefix}{ACTIVITY}"):
        return seen
    ran = evidence.command(f"{prefix}{ACTIVITY}")
    if not ran.stopped:
        return seen
    return _samples.with_activity(
        seen,
        ran.stdout.decode("utf-8", "replace"),
        (ran.started, ran.started + ran.seconds),
        ACTIVITY_EVERY_MS / 1000,
        spans,
    )


def _spans(evidence: Evidence, requests: Sequence[CommitRequest]) -> Iterator[Span]:
    for request in requests:
        if request.error or request.first_token_ms is None or request.purpose in UNMEASURED:
            continue
        try:
            answer = evidence.result(request.key)
        except Unanswered:
            continue
        if isinstance(answer, HttpResult):
            yield Span(
                base=answer.question.base,
                purpose=request.purpose,
                arm=request.arm,
                context_tokens=request.context_tokens,
                started=answer.started + request.first_token_ms / 1000,
                ended=answer.started + answer.seconds,
            )


def _clock(evidence: Evidence, prefix: str) -> Clock | None:
    looks = []
    for when in ("before", "after"):
        first, second = f"{prefix}{CLOCK}-{when}-1", f"{prefix}{CLOCK}-{when}-2"
        if evidence.has(first) and evidence.has(second) and evidence.command(first).whole:
            said = evidence.text(first).strip()
            looks.append((evidence.command(first).started, said, evidence.command(second).started))
    return _samples.clock(looks)


def _fields(result: CommandResult) -> tuple[str, ...]:
    """What the query asked for."""
    return tuple(str(result.question.argv[1]).partition("=")[2].split(","))


def _names(evidence: Evidence, prefix: str) -> dict[int, str]:
    """The cards' names, by the look that was answered. A name may hold a comma: it stands last."""
    for attempt in range(nvidia_smi.TRIES, 0, -1):
        key = f"{prefix}{LOOK}-{attempt}"
        if evidence.has(key) and evidence.command(key).whole:
            look = evidence.command(key)
            rows = nvidia_smi.rows(look.text, _fields(look))
            return {
                index: _named(row)
                for row in rows
                if (index := nvidia_smi.place(row.get("index"))) is not None
            }
    return {}


def _named(row: Mapping[str, str]) -> str:
    """Its name. A card cut up by MIG says so: what runs on a part of it has a part of its bandwidth."""
    name = nvidia_smi.words(row.get("name"))
    return f"{name} MIG" if name and nvidia_smi.switch(row.get("mig.mode.current")) else name
