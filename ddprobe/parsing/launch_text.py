"""Reads what a server's log says of its own arguments.

[2026-09-01 09:00:00] server_args=ServerArgs(model_path='/m', speculative_algorithm='DFLASH', …)   SGLang to 0.5.19
[2026-11-30 15:47:10] server_args={'model_path': '/m', 'speculative_algorithm': 'DFLASH', …}       SGLang since
(APIServer pid=1) INFO … non-default args: {'model_tag': '/m', 'speculative_config': {…}}          vLLM, as given
… Initializing a V1 LLM engine (v0.32.0) with config: model='/m', speculative_config=None, …       vLLM, resolved
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ddprobe.parsing import python_repr

NEEDLES = ("server_args=", "non-default args", "LLM engine (", "LLM engine with", "API server version")
"""One of these stands in every line that is read."""
_SGLANG = re.compile(r"server_args=(?=ServerArgs\(|\{)")
_VLLM = re.compile(r"non-default args: (?=\{)")
_ENGINE = re.compile(r"Initializing an? (?:V\d )?LLM engine (?:\(v(?P<version>[\w.+]+)\) )?with config: ")
_VERSION = re.compile(r"vLLM API server version (?P<version>[\w.+]+)")
# vLLM's engine configuration → the flag of that name.
_FLAGS = {"max_seq_len": "max_model_len"}
_SPECULATIVE = {"num_spec_tokens": "num_speculative_tokens"}


@dataclass(frozen=True, slots=True)
class Said:
    """Arguments as one line says them, under the engine's own names."""

    engine: str
    origin: str
    resolved: bool = False
    values: dict[str, Any] = field(default_factory=dict)
    version: str = ""
    whole: bool = True


def of_line(line: str) -> Said | None:
    """What a log line says of the arguments; None when it says nothing of them."""
    if not any(needle in line for needle in NEEDLES):
        return None
    if found := _SGLANG.search(line):
        read = python_repr.read(line, found.end())
        return _said("sglang", "log (server_args)", True, read) if isinstance(read.value, dict) else None
    if found := _VLLM.search(line):
        read = python_repr.read(line, found.end())
        if not isinstance(read.value, dict):
            return None
        values = dict(read.value)
        tag = values.pop("model_tag", None)
        if tag is not None:
            values.setdefault("model", tag)
        return _said("vllm", "log (non-default args)", False, python_repr.Read(values, read.whole))
    if found := _ENGINE.search(line):
        read = python_repr.fields(line, found.end())
        return _said("vllm", "log (engine config)", True, _of_engine(read), found["version"] or "")
    if found := _VERSION.search(line):
        return Said("vllm", "", version=found["version"])
    return None


def _said(engine: str, origin: str, resolved: bool, read: python_repr.Read, version: str = "") -> Said | None:
    if not read.value:
        return None
    return Said(engine, origin, resolved, read.value, version, read.whole)


def _of_engine(read: python_repr.Read) -> python_repr.Read:
    values = {_FLAGS.get(name, name): value for name, value in read.value.items()}
    speculative = values.get("speculative_config")
    if isinstance(speculative, dict):
        values["speculative_config"] = {_SPECULATIVE.get(k, k): v for k, v in speculative.items()}
    return python_repr.Read(values, read.whole)
