"""What others measured and what it leaves open, at the limits and beside them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ddprobe.facts import LogEvent
from ddprobe.model import Fact
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import figures
from ddprobe.verdicts.collected.figures import Line
from tests.collected_facts import (
    DEAD,
    TARGET,
    TEXT,
    drafter,
    figure,
    of,
)
from tests.test_collected import SPECULATES, args, bins, fail, judged, log, names, point, repeat

# --- what is left open ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "confidence"),
    [
        pytest.param((), "low", id="nothing"),
        pytest.param((figure(2.4, 64),), "high", id="alive over 64 steps of unknown text"),
        pytest.param((figure(2.4, 63),), "medium", id="over fewer"),
        pytest.param((figure(2.4, None),), "medium", id="over nobody knows how many"),
        pytest.param((figure(2.4, 63), figure(2.4, None)), "medium", id="over 63 and nobody knows how many"),
        pytest.param((figure(2.4, 64), figure(2.4, None)), "high", id="over 64 and nobody knows how many"),
        pytest.param((figure(1.5, 640),), "medium", id="hardly alive"),
        pytest.param((figure(1.2, 640), figure(1.51, 10)), "high", id="alive in one window"),
        pytest.param((figure(2.4, 32), point("prose", 1024, 2.0, steps=32)), "high", id="64 steps in two sources"),
        pytest.param((point("prose", 1024, 1.51, steps=64),), "high", id="a text alone"),
        pytest.param((point("prose", 1024, 1.5, steps=640),), "medium", id="a hard text alone"),
        pytest.param((point("repeat", 1024, 7.9),), "low", id="repeated text, which may still decide"),
    ],
)  # fmt: skip
def test_how_sure_it_is_that_nothing_is_settled(facts: tuple[Fact, ...], confidence: str) -> None:
    (found,) = judged(*facts)
    assert (found.name, found.confidence) == ("inconclusive", confidence)


def test_an_error_may_be_the_cause_of_what_is_left_open() -> None:
    (found,) = judged(figure(2.4, 640), findings=(fail("DC35"),))
    assert (found.confidence, found.next[0]) == ("low", "mend DC35")
    assert "DC35: wrong" in found.reasons


@pytest.mark.parametrize(
    ("facts", "kind", "missing"),
    [
        pytest.param(
            of(None, 3.0, 3.0), "", "how many tokens a step drafts at most: without it no mean is high or low", id="no block"
        ),
        pytest.param(
            of(9, 1.0, contexts=(16384,)), "", "repeated text at 2048 tokens or fewer", id="dead at a great length only"
        ),
        pytest.param(
            of(21, 4.0, contexts=(16384,)), "weak_drafter",
            "an error in the drafter's configuration, or a server where it works", id="3 of 20 drafts at a great length",
        ),
        pytest.param(
            of(9, 3.0, 3.0), "weak_drafter", "an error in the drafter's configuration, or a server where it works",
            id="alive, and weak at every length",
        ),
        pytest.param(of(9, 9.0), "", "repeated text at a second, greater length", id="one length"),
        pytest.param(
            (point("prose", 1024, 3.0),), "", "repeated text (arm repeat): it tells a broken drafter from hard text", id="prose"
        ),
    ],
)  # fmt: skip
def test_what_would_decide(facts: tuple[Fact, ...], kind: str, missing: str) -> None:
    (found,) = judged(*facts)
    assert (found.name, found.kind, found.missing[0]) == ("inconclusive", kind, missing)


def test_a_dip_leaves_nothing_to_ask_of_repeated_text() -> None:
    (found,) = judged(*of(9, 9.0, 1.0, 9.0))
    assert not any("repeated text" in text for text in found.missing)


def test_what_is_absent_is_named_and_what_is_there_is_not() -> None:
    bare = {text.split(":")[0] for text in judged(figure(2.4))[0].missing}
    assert bare >= {
        "the same text at two lengths",
        "the drafter's config.json",
        "the server's arguments",
        "step times",
        "the context length of each number",
    }
    served = (drafter(), TARGET, SPECULATES)
    told = {
        text.split(":")[0]
        for text in judged(*of(9, 9.0, 1.0, 9.0), point("repeat", 0, 9.0, 20), *served)[0].missing
    }
    assert told == set()
    lengths = {text.split(":")[0] for text in judged(log(*bins(3.0, 3.0)))[0].missing}
    assert "the context length of each number" not in lengths
    assert "step times" not in lengths
    short = {text.split(":")[0] for text in judged(point("prose", 1024, 3.0))[0].missing}
    assert "the context length of each number" not in short
    assert "step times" in short


@pytest.mark.parametrize(
    ("algorithm", "asks"),
    [
        ("EAGLE3", {"the drafter's config.json", "whether the target is the one that the drafter was trained on, or a fine-tune of it"}),
        ("NEXTN", {"the target's config.json", "whether the checkpoint is a fine-tune that left its next-token layers as they were"}),
        ("NGRAM", set()),
    ],
)  # fmt: skip
def test_what_is_asked_of_the_models_depends_on_what_drafts(algorithm: str, asks: set[str]) -> None:
    path = {"speculative_draft_model_path": "/models/draft"} if algorithm == "EAGLE3" else {}
    served = args(model_path="/m", speculative_algorithm=algorithm, **path)
    missing = judged(figure(2.4), served)[0].missing
    assert {text for text in missing if "config.json" in text or "whether" in text} == asks


@pytest.mark.parametrize(
    ("shares", "alive"), [((0.3, 0.1), True), ((0.29, 0.1), False), ((), False), (None, False)]
)
def test_a_first_draft_that_is_often_right_is_alive(shares: tuple[float, ...] | None, alive: bool) -> None:
    (found,) = judged(figure(1.4, per_position=shares))
    assert bool(found.ruled_out) is alive


def test_a_figure_is_told_with_its_sample() -> None:
    (found,) = judged(figure(2.4, 65, window="the whole log"), figure(2.5, None))
    assert found.reasons == (
        "/metrics states 2.40 tokens per step (the whole log, 65 steps)",
        "/metrics states 2.50 tokens per step (no window, nobody says of how many steps)",
    )


def test_output_in_a_circle_is_told_as_such() -> None:
    (found,) = judged(point("report B", 0, 7.8, loops=1), point("report C", 0, None, loops=1))
    assert found.reasons == (
        "report B commits 7.80, and its output goes in a circle: that is no figure of a drafter",
    )


# --- which points count ---------------------------------------------------------------------------------


def case(*facts: Fact) -> Case:
    return Case(tuple(facts))


@pytest.mark.parametrize(
    ("tokens", "other", "cold"),
    [
        (102, {}, True),
        (103, {}, False),
        (150, {"prompt_tokens": 1500}, True),
        (151, {"prompt_tokens": 1500}, False),
    ],
)
def test_a_tenth_of_a_prompt_from_the_cache_is_cold(tokens: int, other: dict[str, Any], cold: bool) -> None:
    assert figures.cached(point("repeat", 1024, 7.9, cached_tokens=tokens, **other)) is not cold


def test_a_point_from_the_cache_counts_where_there_is_no_cold_one() -> None:
    cached = [
        dataclasses.replace(fact, cached_tokens=1000, commit_mean=1.0) for fact in repeat(7.9, 7.9, 7.9)
    ]
    assert names(*cached[:1]) == [DEAD]
    assert names(*repeat(7.9, 7.9, 7.9), *cached[:1]) == ["healthy"]
    elsewhere = dataclasses.replace(cached[0], context_tokens=512, cached_tokens=500)
    assert names(*repeat(7.9, 7.9, 7.9), elsewhere) == [DEAD]


@pytest.mark.parametrize(("copied", "found"), [(0.95, [DEAD]), (0.94, ["inconclusive"]), (None, [DEAD])])
def test_text_that_was_not_copied_was_not_the_easy_one(copied: float | None, found: list[str]) -> None:
    assert names(point("repeat", 1024, 1.0, copied=copied)) == found


def test_prose_need_not_be_copied() -> None:
    facts = (
        *repeat(7.9, 7.9, 7.9),
        point("prose", 1024, 1.9, copied=0.1),
        point("prose", 65536, 1.9, copied=0.1),
    )
    assert names(*facts) == [TEXT]


@pytest.mark.parametrize("other", [{"drafted_steps": 0}, {"purpose": "cached"}, {"purpose": "again"}])
def test_points_that_say_nothing_of_the_drafter_are_left_out(other: dict[str, Any]) -> None:
    assert names(*repeat(7.9, 7.9, 7.9), point("repeat", 512, 1.0, **other)) == ["healthy"]


def test_of_two_points_at_one_length_the_weaker_counts() -> None:
    strong, weak = point("repeat", 1024, 7.9), point("repeat", 1024, 7.5)
    fewer = dataclasses.replace(weak, steps=80)
    for pair in ((strong, weak, fewer), (fewer, weak, strong)):
        (line,) = figures.lines(case(*pair))
        assert line.points == (fewer,)


def test_repeated_text_at_the_most_lengths_is_the_easy_one() -> None:
    wide = [point("repeat-wide", context, 1.0) for context in (1024, 2048)]
    assert names(*repeat(7.9, 7.9, 7.9), *wide) == ["healthy"]
    assert names(*repeat(7.9, 7.9, contexts=(1024, 65536)), *wide) == ["healthy"]
    assert figures.easy(case(*wide)) is not None


def test_the_worst_of_equals_is_the_longest() -> None:
    line = Line("repeat", tuple(point("repeat", context, 3.0) for context in (1024, 2048)), 8)
    assert line.worst.context_tokens == 2048


@pytest.mark.parametrize(
    ("facts", "most"),
    [
        ((point("repeat", 1024, 2.0, ceiling=4), point("repeat", 2048, 2.0, ceiling=6)), 6),
        ((args("vllm", num_speculative_tokens=7),), 8),
        ((args("vllm", num_speculative_tokens=7), point("repeat", 1024, 2.0, ceiling=4)), 4),
        ((SPECULATES,), 8),
        ((args("vllm", speculative_num_draft_tokens=8),), None),
        ((args("vllm", speculative_algorithm="DFLASH"), drafter(block_size=16)), None),
        ((args("sglang", speculative_algorithm="EAGLE"), log(*bins(2.0), draft_tokens=3)), 4),
        ((log(*bins(2.0), draft_tokens=3), log(*bins(2.0), draft_tokens=5)), 6),
        ((figure(2.0, draft_tokens=4),), 5),
        ((), None),
    ],
)
def test_the_most_that_a_step_can_commit(facts: tuple[Fact, ...], most: int | None) -> None:
    assert figures.ceiling(case(*facts)) == most


def test_the_server_that_speculates_is_the_one_meant() -> None:
    off = dataclasses.replace(args("vllm", model="m"), server="a")
    on = dataclasses.replace(args("vllm", speculative_algorithm="MTP"), server="b")
    served = figures.server(case(off, on))
    assert served is not None
    assert served.name == "b"
    first = figures.server(case(off, dataclasses.replace(off, server="c")))
    assert first is not None
    assert first.name == "a"


def test_how_a_number_is_told() -> None:
    assert figures.number(point("repeat", 1024, 7.9, steps=3), None) == "7.90 of 8 (3 steps)"
    unsized = point("repeat", 1024, 7.9, steps=0, ceiling=None)
    assert figures.number(unsized, None) == "7.90 (nobody says of how many steps)"
    assert figures.number(unsized, 4) == "7.90 of 4 (nobody says of how many steps)"


@pytest.mark.parametrize(
    ("id", "facts", "raises"),
    [
        ("DC02", (), True),
        ("SA00", (), True),
        ("DC35", (), False),
        ("DC02", (figure(2.4),), False),
        ("DC02", (point("prose", 1024, 3.0),), False),
        ("DC02", (LogEvent(kind="ready", text="up", line=1),), False),
    ],
    ids=["raises", "no drafter", "does not raise", "it committed", "it was measured", "it came up"],
)
def test_a_server_that_will_not_start_is_not_to_be_probed(
    id: str, facts: tuple[Fact, ...], raises: bool
) -> None:
    (found,) = judged(SPECULATES, *facts, findings=(fail(id),))
    assert found.name == "inconclusive"
    assert (f"by {id} this server raises at its start" in found.reasons[0]) is raises
    assert found.next[-1].startswith("then start it") is raises
    assert any("commit-probe" in text for text in found.next) is not raises
