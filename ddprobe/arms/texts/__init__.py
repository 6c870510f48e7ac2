"""The texts that prompts are made of, shipped as files: a file's name without `.txt` is the text's name."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable


@functools.cache
def names() -> tuple[str, ...]:
    """Every shipped text, in order."""
    from importlib import resources

    files = (entry.name for entry in resources.files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".txt") for name in files if name.endswith(".txt")))


@functools.cache
def read(name: str) -> str:
    """A shipped text, as it stands in its file."""
    from importlib import resources

    return (resources.files(__name__) / f"{name}.txt").read_bytes().decode("utf-8")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def digest(name: str) -> str:
    """SHA-256 of a shipped text: what `sha256sum` says of its file."""
    return sha256(read(name))


def digests(wanted: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Name and SHA-256 of each of these shipped texts."""
    return tuple((name, digest(name)) for name in wanted)
