"""Published drafters, as far as they are known in public: taps and mask token."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ddprobe.facts import ModelConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A published drafter. What is None is not known in public."""

    name: str
    pattern: str
    """What its hub id or folder contains, as an expression without regard to case."""
    target_layer_ids: tuple[int, ...] | None = None
    mask_token_id: int | None = None


# A name further up is the more specific one.
KNOWN = (
    Checkpoint(
        name="z-lab/Kimi-K2.5-DFlash",
        pattern=r"kimi-k2\.5.*dflash(?!2)",
        target_layer_ids=(1, 12, 24, 35, 47, 58),
        mask_token_id=163838,
    ),
    Checkpoint(
        name="z-lab/Kimi-K2.6-DFlash",
        pattern=r"kimi-k2\.6.*dflash(?!2)",
        target_layer_ids=(1, 12, 24, 35, 47, 58),
        mask_token_id=163838,
    ),
    Checkpoint(
        name="z-lab/Qwen3-4B-DFlash-b16",
        pattern=r"qwen3-4b.*dflash(?!2)",
        target_layer_ids=(1, 9, 17, 25, 33),
        mask_token_id=151669,
    ),
    Checkpoint(
        name="z-lab/Qwen3-8B-DFlash-b16",
        pattern=r"qwen3-8b.*dflash(?!2)",
        target_layer_ids=(1, 9, 17, 25, 33),
        mask_token_id=151669,
    ),
    Checkpoint(
        name="z-lab/Qwen3.5-9B-DFlash",
        pattern=r"qwen3\.5-9b.*dflash(?!2)",
        target_layer_ids=(1, 8, 15, 22, 29),
        mask_token_id=248070,
    ),
    Checkpoint(
        name="z-lab/Qwen3.8-27B-DFlash2",
        pattern=r"qwen3\.8-27b.*dflash2",
        target_layer_ids=(5, 19, 33, 47, 61),
    ),
    Checkpoint(
        name="RadixArk/Muse-Spark-Open-DFlash2",
        pattern=r"muse-spark-open.*dflash2",
        target_layer_ids=(1, 16, 30, 44, 59),
    ),
)


def known(config: ModelConfig, served_as: object = None) -> Checkpoint | None:
    """The published drafter that this one is by its name, or by the path under which the server was given it; or None."""
    for name in (config.reference or str(served_as or ""), config.path.replace("--", "/")):
        for each in KNOWN:
            if re.search(each.pattern, name, re.IGNORECASE):
                return each
    return None
