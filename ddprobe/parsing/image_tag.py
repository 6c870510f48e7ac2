"""Reads an engine's version from the name of a container image, where the tag is a release.

lmsysorg/sglang:v0.5.23-cu129-amd64        sglang 0.5.23
docker.io/vllm/vllm-openai:v0.11.0         vllm 0.11.0
lmsysorg/sglang:latest, myteam/llm:1.4.2   of no known engine, or no release: none
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_IMAGE = re.compile(
    r"(?:[\w.:-]+/)?(?P<name>lmsysorg/sglang|vllm/vllm-openai)"
    r":v?(?P<version>\d{1,4}(?:\.\d{1,4}){1,3}(?:\.?(?:post|rc)\d{1,3})?)(?:-[\w.-]+)?(?:@sha256:\w+)?\Z"
)
_ENGINES = {"lmsysorg/sglang": "sglang", "vllm/vllm-openai": "vllm"}


def version(words: Iterable[str], engine: str) -> str:
    """The release in the tag of the engine's own image among the words; empty when there is none."""
    for word in words:
        found = _IMAGE.match(word)
        if found and _ENGINES[found["name"]] == engine:
            return found["version"]
    return ""
