"""What a commit probe would send: contexts, room, limits, prompts and their cost."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ddprobe.arms.base import Ids, Script
from ddprobe.engines.generation import Serving
from ddprobe.errors import UsageError
from ddprobe.facts import Limit, ModelConfig, PlannedPoint, Rope, ServerArgs
from ddprobe.probes.draft import _commit_plan as plan


def room(**given: int | None) -> plan.Room:
    return plan.Room(
        **{"context_limit": 4096, "kv_tokens": None, "max_context": None, "output": 137, "draft": 7, **given}  # type: ignore[arg-type]
    )


class Counting(Script):
    """A text that counts, and ends in its variant."""

    label = "counting"
    copies = False

    def pieces(self) -> Mapping[str, str]:
        return {}

    def shortest(self, tokens: Mapping[str, Ids]) -> int:
        return 1

    def build(self, tokens: Mapping[str, Ids], length: int, variant: int) -> Ids:
        return (*range(length - 4), *([9000 + variant] * 4))


# --- what fits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "context", "says"),
    [
        ({}, 1024, ""),
        ({}, 3944, ""),  # 3944 + 137 + 7 + 8 = 4096
        ({}, 8192, "the server's limit is 4096 tokens per request"),
        ({"max_context": 2048}, 4000, "--max-context is 2048 tokens"),
        (
            {"kv_tokens": 1000},
            1024,
            "the server's KV cache has room for 1000 tokens, and 1176 would be needed",
        ),
        ({"context_limit": None}, 10**6, ""),
        (
            {"context_limit": 160},
            128,
            "the server's limit of 160 tokens leaves no room for 137 tokens of output",
        ),
    ],
)
def test_what_may_not_be_sent_and_why(given: dict[str, int | None], context: int, says: str) -> None:
    assert room(**given).refusal(context) == says


def test_a_context_as_long_as_the_limit_is_sent_shorter() -> None:
    assert room().length(4096) == 4096 - 137 - 7 - 8
    assert room().length(1024) == 1024


def test_the_largest_that_fits() -> None:
    assert room().largest() == 3944
    assert room(kv_tokens=2000).largest() == 2000 - 152
    assert room(max_context=512).largest() == 512
    assert room(context_limit=None).largest() is None


# --- contexts ----------------------------------------------------------------------------------------------


def test_none_named_are_the_founding_four() -> None:
    assert plan.contexts("", (), room()) == (1024, 16384, 65536, 131072)


def test_named_ones_in_order_each_once() -> None:
    assert plan.contexts("16k, 1k,1024,1.5k", (), room()) == (1024, 1536, 16384)


def test_auto_is_1k_both_sides_of_each_limit_and_the_largest() -> None:
    limits = (Limit(2048, "window", "sliding_window_kv"), Limit(40960, "beyond the server", "rope_position"))
    # 2048 · 0.93 = 1904.64, 2048 · 1.07 = 2191.36; the second limit lies beyond what fits.
    assert plan.contexts("auto", limits, room()) == (1024, 1905, 2191, 3944)


def test_auto_beside_named_ones() -> None:
    assert plan.contexts("auto,512", (), room()) == (512, 1024, 3944)


@pytest.mark.parametrize("asked", ["1k,many", "-5", "1kk"])
def test_what_is_no_size(asked: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        plan.contexts(asked, (), room())


# --- how much output ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "prompts", "each"),
    [(64, 4, 16), (65, 4, 17), (256, 4, 64), (8, 4, 16), (64, 1, 64), (64, 8, 16)],
)
def test_every_request_has_enough_steps(steps: int, prompts: int, each: int) -> None:
    assert plan.steps_per_prompt(steps, prompts) == each


def test_output_reaches_the_steps_when_every_draft_is_right() -> None:
    assert plan.output_tokens(16, 8) == 1 + 8 * 17
    assert plan.output_tokens(16, None) == 1 + 8 * 17
    assert plan.output_tokens(64, 1) == 1 + 65


def test_output_is_shorter_once_the_text_proved_hard() -> None:
    # 1.2 · 1.5 + 2 = 3.8 tokens for each of 17 steps.
    assert plan.output_tokens(16, 8, 1.2) == 1 + 65
    assert plan.output_tokens(16, 8, 7.9) == plan.output_tokens(16, 8)


# --- limits ------------------------------------------------------------------------------------------------


def test_limits_come_from_drafter_target_and_server() -> None:
    drafter = ModelConfig(
        role="drafter",
        path="/d/config.json",
        sliding_window=2048,
        max_position_embeddings=262144,
        rope=Rope(kind="yarn", factor=64.0, original_max_position=4096),
    )
    target = ModelConfig(role="target", path="/t/config.json", rope=Rope(original_max_position=8192))
    serving = Serving(draft_context_limit=2000, limits=((512, "--chunked-prefill-size"),))
    given = ServerArgs(engine="sglang", origin="x", values=(("speculative_draft_window_size", 1024),))
    found = [(limit.tokens, limit.kind) for limit in plan.limits(drafter, target, serving, (given,))]
    assert found == [
        (512, "chunk_boundary"),
        (1024, "sliding_window_kv"),
        (2000, "draft_length_limit"),
        (2048, "sliding_window_kv"),
        (4096, "rope_position"),
        (8192, "rope_position"),
        (262144, "rope_position"),
    ]


def test_a_window_that_is_switched_off_is_no_limit() -> None:
    drafter = ModelConfig(role="drafter", path="/d", sliding_window=2048, use_sliding_window=False)
    assert plan.limits(drafter, None, Serving(), ()) == ()


# --- order and cost ----------------------------------------------------------------------------------------


def test_the_shortest_of_the_first_text_comes_first_and_the_rest_is_shuffled() -> None:
    script = Counting()
    ladder = [plan.Place(script, context, context) for context in (1024, 2048, 4096, 8192, 16384)]
    orders = {
        tuple(place.context for place in plan.order([script], {"counting": ladder}, seed))
        for seed in range(20)
    }
    assert {order[0] for order in orders} == {1024}
    assert len(orders) > 10
    assert all(sorted(order) == [1024, 2048, 4096, 8192, 16384] for order in orders)


def test_a_nonce_is_its_runs_and_arms_own() -> None:
    pool = range(100, 300)
    names = {plan.nonce(pool, seed, arm) for seed in (1, 2) for arm in ("repeat", "prose")}
    assert len(names) == 4
    assert all(len(name) == 24 and set(name) <= set(pool) for name in names)
    assert plan.nonce(pool, 1, "prose") == plan.nonce(list(pool), 1, "prose")


@pytest.mark.parametrize(
    ("sent", "prompt", "common"),
    [
        ([], (1, 2, 3), 0),
        ([(1, 2, 3)], (1, 2, 3), 3),
        ([(1, 2)], (1, 2, 3), 2),
        ([(9,), (1, 2, 4)], (1, 2, 3), 2),
        ([(2, 2, 3)], (1, 2, 3), 0),
        ([tuple(range(1000))], (*range(777), 5, *range(300)), 777),
    ],
)
def test_how_much_of_a_prompt_was_sent_before(sent: list[Ids], prompt: Ids, common: int) -> None:
    assert plan.shared(sent, prompt) == common


def test_a_nested_ladder_costs_one_longest_prompt_and_the_tails() -> None:
    script = Counting()
    sent: list[Ids] = []
    costs: list[PlannedPoint] = []
    for context in (1000, 4000, 2000):
        place = plan.Place(script, context, context)
        prompts = [script.build({}, context, variant) for variant in range(4)]
        costs.append(plan.planned(place, prompts, sent, 100, cold=False))
        sent += prompts
    # The first prompt whole, then what is new; each further prompt of a point is its tail of four tokens.
    assert [point.prefill_tokens for point in costs] == [1000 + 3 * 4, 3004 + 3 * 4, 4 + 3 * 4]
    assert [point.prompt_tokens for point in costs] == [4000, 16000, 8000]
    assert [point.output_tokens for point in costs] == [400, 400, 400]


def test_cold_every_prompt_costs_all_of_itself() -> None:
    script = Counting()
    prompts = [script.build({}, 1000, variant) for variant in range(4)]
    place = plan.Place(script, 1000, 1000)
    assert plan.planned(place, prompts, prompts, 10, cold=True).prefill_tokens == 4000
