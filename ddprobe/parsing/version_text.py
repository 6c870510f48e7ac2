"""Reads which release of an engine is installed, where a line says that and nothing else.

sglang==0.5.23                     pip freeze, requirements
vllm                     0.11.0    pip list
Name: sglang / Version: 0.5.23     pip show, two lines
SGLang version: 0.5.23             issue forms, python -m sglang.check_env ("sglang: 0.5.23")
vLLM Version        : 0.11.0       vllm collect-env
sglang.__version__ = '0.5.23'      a shell

A sentence that names a release names others, too: it says nothing of what is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ddprobe.parsing.version import release

_RELEASE = r"v?(?P<version>\d{1,4}\.\d{1,4}(?:\.\d{1,4})?(?:\.?(?:post|rc|dev)\d{1,4})?(?:\+[\w.-]{1,40})?)"
_PIN = re.compile(
    rf"\s*(?P<engine>sglang|vllm)(?:\[[\w,-]+\])?\s*===?\s*{_RELEASE}\s*(?:[;#\\].*)?", re.IGNORECASE
)
_ROW = re.compile(
    r"[\s|*>-]*(?P<engine>sglang|vllm)(?:\.__version__)?(?:\s+version)?[\s|*`'\":=]+"
    rf"{_RELEASE}[\s|`'\",*]*(?:\s(?:/\S+|pypi\S*|\([^()]*\)))?\s*",
    re.IGNORECASE,
)
_NAME = re.compile(r"\s*Name:\s*(?P<engine>sglang|vllm)\s*")
_VERSION = re.compile(rf"\s*Version:\s*{_RELEASE}\s*")


@dataclass(frozen=True, slots=True)
class Installed:
    """A release, and the line that says so."""

    engine: str
    version: str
    line: int


def read(lines: Iterable[str]) -> Iterator[Installed]:
    """What the lines say is installed; each release of an engine once."""
    told: set[tuple[str, str]] = set()
    shown = ""
    for number, line in enumerate(lines, 1):
        if len(line) > 200:
            continue
        if name := _NAME.fullmatch(line):
            shown = name["engine"]
            continue
        if shown and (stated := _VERSION.fullmatch(line)):
            engine, version, shown = shown, stated["version"], ""
        elif found := _PIN.fullmatch(line) or _ROW.fullmatch(line):
            engine, version = found["engine"].lower(), found["version"]
        else:
            continue
        if release(version) is not None and (engine, version) not in told:
            told.add((engine, version))
            yield Installed(engine, version, number)
