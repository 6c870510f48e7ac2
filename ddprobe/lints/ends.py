"""Does the log show how a server ended: an exception, memory that ran out, an error of the GPU?"""

from __future__ import annotations

from ddprobe.facts import LogEvent
from ddprobe.lints.lint import Judgement, fail, warn
from ddprobe.lints.started import Started, cites, clean, said, seen


@seen(
    "SE01",
    "the server did not die",
    source="a traceback, and what the engine writes when one of its processes ends",
)
def alive(started: Started) -> Judgement | None:
    crashes = started.found("crash")
    died = started.found("died")
    if not crashes and not died:
        return clean(started, "no process of the server died")
    first = cause(crashes) or died[0]
    phase = {"start": "at its start", "serving": "while it served"}.get(started.value(first, "phase"), "")
    when = f" {phase}" if phase else ""
    where = cites(tuple(dict.fromkeys((first, *died[:1]))))
    if not died and not phase:
        return warn(
            f"an exception, and neither how the server started nor how it ended: {first.text[:300]}",
            "look at the lines before and after it: whether the server died of it is not told here",
            where,
        )
    # An exception alone is the end of a process, or of what was kept of its log.
    told = "the server died" if died else "the log has an exception and no sign that the server went on,"
    return fail(
        f"{told}{when}: {first.text[:300]}",
        "read the lines before it; what was measured until then may still count",
        where,
    )


def cause(crashes: tuple[LogEvent, ...]) -> LogEvent | None:
    """The first exception that is not about another one; the first of all where each is."""
    own = [event for event in crashes if "secondary" not in dict(event.values)]
    return next(iter(own or crashes), None)


@seen("SE02", "memory was enough", source="torch.OutOfMemoryError, cudaMalloc, the kernel's OOM killer")
def memory(started: Started) -> Judgement | None:
    found = started.found("out_of_memory")
    if found:
        return fail(
            f"memory ran out ({said(found)})",
            "lower --mem-fraction-static (vLLM: --gpu-memory-utilization), the context length or the running requests",
            cites(found),
        )
    return clean(started, "no line speaks of memory that ran out")


@seen(
    "SE03",
    "the GPU reported no error",
    source="NVIDIA Xid errors in the kernel log; sglang#32855 (Xid 13 at 218k tokens with DSPARK)",
)
def xid(started: Started) -> Judgement | None:
    found = started.found("xid")
    if found:
        numbers = ", ".join(dict.fromkeys(started.value(event, "xid") for event in found))
        return fail(
            f"the GPU reported Xid {numbers} ({said(found)})",
            "look the number up in NVIDIA's list; send no longer prompts than those that went well",
            cites(found),
        )
    return clean(started, "no line speaks of an Xid error")
