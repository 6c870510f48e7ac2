"""Tells from its content whether a config.json is a drafter's, a model's, or something else's.

A drafter says so by what only a drafter has (`dflash_config`, `draft_vocab_size`, taps of a target) or by its class;
its name and folder are not asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ddprobe.parsing.model_config import SECTIONS

_OF_A_DRAFTER = (
    "dflash_config", "dspark_config", "dspark_block_size", "eagle_config", "speculators_config",
    "speculators_model_type", "draft_vocab_size", "target_layer_ids", "dspark_target_layer_ids", "target_hidden_size",
    "num_target_layers", "aux_hidden_state_layer_ids", "eagle_aux_hidden_state_layer_ids", "medusa_num_heads",
)  # fmt: skip
_DRAFTER_CLASS = re.compile(
    r"DFlash|DSpark|Eagle|Medusa|DraftModel|Speculator|NextN\Z|MTP(Model)?\Z|AssistantModel\Z", re.IGNORECASE
)
_DRAFTER_TYPES = frozenset({"eagle", "eagle3", "medusa", "mlp_speculator", "dflash", "dspark", "speculator"})
_SIZES = ("num_hidden_layers", "n_layer", "hidden_size", "n_embd")


def role_of(config: Mapping[str, Any]) -> str:
    """`drafter`, `target`, or empty: it describes no language model."""
    inner = [
        section for name in (*SECTIONS, "transformer_layer_config") if (section := _section(config, name))
    ]
    thinker = _section(config, "thinker_config")
    inner += [thinker, _section(thinker, "text_config")]
    sized = any(section.get(name) is not None for section in (config, *inner) for name in _SIZES)
    names = config.get("architectures")
    classes = " ".join(map(str, names)) if isinstance(names, list) else str(names or "")
    if not sized:
        return ""
    marked = any(config.get(name) is not None for name in _OF_A_DRAFTER)
    by_class = any(_DRAFTER_CLASS.search(word) for word in classes.split())
    if marked or by_class or str(config.get("model_type", "")).lower() in _DRAFTER_TYPES:
        return "drafter"
    return "target" if classes or config.get("model_type") else ""


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = config.get(name)
    return value if isinstance(value, Mapping) else {}
