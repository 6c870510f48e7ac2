"""Reads the names and shapes of a checkpoint's tensors, from an index, a header or a listing in text.

{"metadata": {…}, "weight_map": {"fc.weight": "model-00001-of-00002.safetensors", …}}
{"fc.weight": {"dtype": "BF16", "shape": [5120, 25600], "data_offsets": [0, 262144000]}, …}
fc.weight  BF16  [5120, 25600]
fc.weight torch.Size([5120, 25600]) torch.bfloat16
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MOST = 200_000
_LISTED = re.compile(
    r"^\W{0,4}(?P<name>[A-Za-z_][\w.\-]*\.(?:weight|bias|weight_scale|qweight|d2t|t2d))['\"]?:?,?\s.*?"
    r"[\[(]+(?P<shape>\d{1,9}(?:, ?\d{1,9}){0,4}),?[\])]"
)


@dataclass(frozen=True, slots=True)
class Listing:
    """Tensor names, and the shape of the one that joins the tapped layers, where it is told."""

    names: tuple[str, ...]
    fc_weight_shape: tuple[int, ...] | None = None
    whole: bool = True


def of_json(value: Any) -> Listing | None:
    """The tensors of an index or of a header; None when this is neither."""
    if not isinstance(value, Mapping):
        return None
    index = value.get("weight_map")
    if isinstance(index, Mapping) and index and all(isinstance(file, str) for file in index.values()):
        return _listing({str(name): None for name in index})
    tensors = {str(name): entry for name, entry in value.items() if name != "__metadata__"}
    if tensors and all(isinstance(entry, Mapping) and "shape" in entry for entry in tensors.values()):
        return _listing({name: entry["shape"] for name, entry in tensors.items()})
    return None


def of_lines(lines: Iterable[str]) -> Listing | None:
    """The tensors that a listing in text shows; None when there are fewer than two."""
    found: dict[str, Any] = {}
    for line in lines:
        if match := _LISTED.match(line):
            found[match["name"]] = [int(size) for size in match["shape"].split(",")]
        if len(found) > MOST:
            break
    return _listing(found) if len(found) > 1 else None


def _listing(shapes: Mapping[str, Any]) -> Listing:
    shape = next((s for name, s in shapes.items() if name.removeprefix("model.") in _JOINS), None)
    whole = isinstance(shape, list) and bool(shape) and all(type(size) is int for size in shape)
    return Listing(tuple(shapes)[:MOST], tuple(shape) if whole and shape else None, len(shapes) <= MOST)


_JOINS = ("fc.weight", "encoder.fc.weight")


def layers(names: Iterable[str]) -> int | None:
    """How many layers the names number: the highest number after `layers.`, and one; None without any."""
    numbers = [int(match[1]) for name in names if (match := re.search(r"\blayers\.(\d{1,5})\.", name))]
    return max(numbers) + 1 if numbers else None


def are_a_drafters(names: Iterable[str]) -> bool:
    """True for what only a drafter's checkpoint holds: a layer that joins taps, a map of its own vocabulary."""
    bare = {name.removeprefix("model.") for name in names}
    return bool(bare & {*_JOINS, "d2t", "t2d", "hidden_norm.weight"}) or any(
        name.startswith("midlayer.") for name in bare
    )
