"""Reads the header of a safetensors file: tensor names and shapes, without the weights.

eight bytes, the header's length (little-endian) · {"fc.weight": {"dtype": "BF16", "shape": [7168, 43008], …}, …}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ddprobe.parsing import bounded_json

MAX_HEADER = 8 * 1024 * 1024
PREFIX = 8


class NotSafetensors(ValueError):
    """Why these bytes are no header, in a sentence without the file's name."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor's name, type and shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]


def header_size(head: bytes) -> int:
    """The header's length in bytes, from the first eight. Raises `NotSafetensors`."""
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        raise NotSafetensors("is a git-lfs pointer: the weights were never fetched (`git lfs pull`)")
    if len(head) < PREFIX:
        raise NotSafetensors(f"holds {len(head)} bytes: too short for a safetensors file")
    size = int.from_bytes(head[:PREFIX], "little")
    if not 2 <= size <= MAX_HEADER or head[PREFIX : PREFIX + 1] not in (b"", b"{"):
        raise NotSafetensors("is not a safetensors file: its first eight bytes are no header length")
    return size


def tensors(head: bytes) -> tuple[Tensor, ...]:
    """The tensors in a header that begins a file. Raises `NotSafetensors`, also when the header is cut."""
    size = header_size(head)
    if len(head) < PREFIX + size:
        raise NotSafetensors(f"was cut within its header ({len(head) - PREFIX} of {size} bytes)")
    try:
        value = bounded_json.loads(head[PREFIX : PREFIX + size].decode("utf-8", "replace"))
    except ValueError:
        raise NotSafetensors("is not a safetensors file: its header is not JSON") from None
    if not isinstance(value, dict):
        raise NotSafetensors("is not a safetensors file: its header is not an object")
    return tuple(_tensor(name, entry) for name, entry in value.items() if name != "__metadata__")


def _tensor(name: str, entry: Any) -> Tensor:
    entry = entry if isinstance(entry, dict) else {}
    shape = entry.get("shape")
    sizes = shape if isinstance(shape, list) and all(type(size) is int for size in shape) else []
    dtype = entry.get("dtype")
    return Tensor(name, dtype if isinstance(dtype, str) else "", tuple(sizes))
