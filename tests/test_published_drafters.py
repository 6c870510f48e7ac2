"""Published drafters, as their cards and config.json files state them, are judged to be as published."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe import lints
from ddprobe.model import Finding, Outcome
from tests.test_lints import by_id, facts_of

KIMI: dict[str, Any] = {
    "hidden_size": 7168, "num_hidden_layers": 6, "num_target_layers": 61, "block_size": 8, "vocab_size": 163840,
    "dflash_config": {"mask_token_id": 163838, "target_layer_ids": [1, 12, 24, 35, 47, 58]},
}  # fmt: skip
QWEN3: dict[str, Any] = {
    "num_hidden_layers": 5, "num_target_layers": 36, "block_size": 16, "vocab_size": 151936,
    "dflash_config": {"mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]},
}  # fmt: skip
QWEN35: dict[str, Any] = {
    "num_hidden_layers": 5, "block_size": 16, "vocab_size": 248320,
    "dflash_config": {"mask_token_id": 248070, "target_layer_ids": [1, 8, 15, 22, 29]},
}  # fmt: skip
WITH_MASK: tuple[tuple[str, dict[str, Any]], ...] = (
    ("z-lab/Kimi-K2.5-DFlash", KIMI),
    ("z-lab/Kimi-K2.6-DFlash", KIMI),
    ("z-lab/Qwen3-4B-DFlash-b16", {**QWEN3, "hidden_size": 2560}),
    ("z-lab/Qwen3-8B-DFlash-b16", {**QWEN3, "hidden_size": 4096}),
    ("z-lab/Qwen3.5-9B-DFlash", QWEN35),
)
# Of the last two, the taps are public, and no mask token is.
TAPS = (
    *((name, config["dflash_config"]["target_layer_ids"]) for name, config in WITH_MASK),
    ("z-lab/Qwen3.8-27B-DFlash2", [5, 19, 33, 47, 61]),
    ("RadixArk/Muse-Spark-Open-DFlash2", [1, 16, 30, 44, 59]),
)


def judged(
    reference: str, drafter: dict[str, Any], path: str = "/models/drafter/config.json"
) -> dict[str, Finding]:
    target = {"num_hidden_layers": drafter.get("num_target_layers", 64)}
    if "vocab_size" in drafter:
        target["vocab_size"] = drafter["vocab_size"]
    beside = {"reference": reference, "path": path, "special_token_ids": None}
    return by_id(lints.judge(facts_of({"drafter": drafter, "target": target, "beside": beside})))


@pytest.mark.parametrize(("name", "taps"), TAPS)
def test_taps_as_published(name: str, taps: list[int]) -> None:
    found = judged(name, {"dflash_config": {"mask_token_id": 7, "target_layer_ids": taps}})["DC04"]
    assert found.outcome is Outcome.PASS
    assert name in found.summary


@pytest.mark.parametrize(("name", "config"), WITH_MASK)
def test_the_mask_token_is_the_one_on_the_card(name: str, config: dict[str, Any]) -> None:
    assert judged(name, config)["DC09"].outcome is Outcome.PASS
    mask = config["dflash_config"]["mask_token_id"]
    other = {**config, "dflash_config": {**config["dflash_config"], "mask_token_id": mask - 5}}
    found = judged(name, other)["DC09"]
    assert found.outcome is Outcome.FAIL
    assert f"not the published {mask} for {name}" in found.summary


@pytest.mark.parametrize(("name", "taps"), TAPS)
def test_a_folder_of_the_hubs_cache_tells_the_name(name: str, taps: list[int]) -> None:
    path = f"/root/.cache/huggingface/hub/models--{name.replace('/', '--')}/snapshots/0a1b/config.json"
    found = judged("/models/drafter", {"dflash_config": {"target_layer_ids": taps}}, path)["DC04"]
    assert (found.outcome, name in found.summary) == (Outcome.PASS, True)


@pytest.mark.parametrize(
    "reference",
    ["z-lab/Qwen3-8B-DFlash2", "z-lab/Kimi-K2.7-DFlash", "z-lab/Qwen3.8-27B-DFlash", "Qwen/Qwen3-8B"],
)
def test_of_another_drafter_nothing_is_claimed(reference: str) -> None:
    assert "no published ids are known" in judged(reference, QWEN3)["DC04"].summary


@pytest.mark.parametrize(
    ("served_as", "known"),
    [
        ("z-lab/Qwen3-8B-DFlash-b16", True),
        ("/cache/models--z-lab--Qwen3-8B-DFlash-b16/snapshots/0a", True),
        ("/models/draft", False),
        ("Qwen/Qwen3-8B", False),
    ],
)
def test_without_a_name_of_its_own_it_is_what_the_server_was_given(served_as: str, known: bool) -> None:
    beside = {"reference": "", "path": "a.json", "special_token_ids": None}
    arguments = {"speculative_draft_model_path": served_as}
    found = by_id(
        lints.judge(facts_of({"drafter": QWEN3, "target": {}, "beside": beside, "arguments": arguments}))
    )
    assert ("no published ids are known" not in found["DC04"].summary) is known
