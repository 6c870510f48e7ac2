"""What lines of the installed attention backends say of the kernel that a verify step takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe.parsing.grep_output import GrepLine

BACKEND = "srt/layers/attention/triton_backend.py"
KERNELS = ("kernels/ops/attention/extend_attention.py", "srt/layers/attention/triton_ops/extend_attention.py")
SPLIT = "kernels/ops/attention/verify_splitkv.py"
DEFAULTS = ("srt/arg_groups/model_override_base.py", "srt/server_args.py")
FILES = (BACKEND, *KERNELS, SPLIT, *DEFAULTS)
"""Of releases from 0.5.11 to 0.5.23; each has some of them."""
PATTERN = (
    r"self\.use_verify_splitkv = |self\.extend_attention_fwd\(|grid = \(batch_size, head_num|prefix KV serially"
    r"|# MLA architecture"
)
BEHIND = 16
"""Lines behind a hit: a condition, or the list of defaults, is no longer."""
_GFX = re.compile(r"is_gfx\w*_supported\(\)")
_RETURN = re.compile(r"return \"(\w+)\"")


@dataclass(frozen=True, slots=True)
class Path:
    """What was made of the lines."""

    split_kv: bool | None
    told: str
    places: tuple[str, ...]
    """`srt/layers/attention/triton_backend.py:238`"""


def understood(lines: Sequence[tuple[str, GrepLine]], version: str) -> Path | None:
    """The verify step's way through the triton backend; None where its file has no such call.

    `lines`: path within the package and the line, hits and context, in order.
    """
    called = _first(lines, BACKEND, "self.extend_attention_fwd(")
    if called is None:
        return None
    condition = _first(lines, BACKEND, "self.use_verify_splitkv = ")
    told: list[str] = []
    places = [f"{BACKEND}:{called.number}"]
    split: bool | None = False
    if condition is not None:
        body = _following(lines, BACKEND, condition, ")")
        amd_only = any(_GFX.search(text) for text in body)
        chain = any("topk == 1" in text for text in body)
        split = False if amd_only else None
        places.insert(0, f"{BACKEND}:{condition.number}")
        told.append(
            f"split-KV verify is for AMD gfx95 only{', and for a chain (topk 1)' if chain else ''} ({places[0]})"
            if amd_only
            else f"split-KV verify exists, under conditions of this version ({places[0]})"
        )
    else:
        told.append("this version has no split-KV verify")
    told.append(f"verify calls extend_attention_fwd, the prefill kernel ({BACKEND}:{called.number})")
    grid = next(
        (hit for path in KERNELS if (hit := _first(lines, path, "grid = (batch_size, head_num"))), None
    )
    if grid is not None:
        path = next(path for path in KERNELS if _first(lines, path, "grid = (batch_size, head_num") is grid)
        places.append(f"{path}:{grid.number}")
        told.append(f"whose thread blocks are {grid.text.strip().removeprefix('grid = ')} ({places[-1]})")
    default = _default(lines)
    if default is not None:
        places.append(default[0])
        told.append(
            f"for MLA triton is what it falls back to where no platform above it matches ({default[0]})"
        )
    return Path(split, f"{f'sglang {version}'.strip()}: " + "; ".join(told), tuple(places))


def _default(lines: Sequence[tuple[str, GrepLine]]) -> tuple[str, str] | None:
    """Where the last choice for MLA stands, if it is triton."""
    for path in DEFAULTS:
        head = _first(lines, path, "# MLA architecture")
        if head is None:
            continue
        behind = [
            line for name, line in lines if name == path and head.number < line.number <= head.number + 16
        ]
        found = [(line.number, match[1]) for line in behind if (match := _RETURN.search(line.text))]
        if found and found[-1][1] == "triton":
            return f"{path}:{found[-1][0]}", "triton"
    return None


def _first(lines: Sequence[tuple[str, GrepLine]], path: str, text: str) -> GrepLine | None:
    return next((line for name, line in lines if name == path and text in line.text), None)


def _following(lines: Sequence[tuple[str, GrepLine]], path: str, start: GrepLine, end: str) -> list[str]:
    """The lines from there to one that is that end alone."""
    found = []
    for name, line in lines:
        if name == path and line.number >= start.number:
            found.append(line.text)
            if line.text.strip() == end:
                break
    return found
