"""Every verdict for and against, on small sets of facts whose right verdict follows from the numbers alone."""

from __future__ import annotations

import dataclasses
import itertools
import random
from dataclasses import replace
from typing import Any

import pytest

from ddprobe import verdicts
from ddprobe.facts import (
    Account,
    Claim,
    CommitCheck,
    CommitPoint,
    CommitRequest,
    CommitSetup,
    Limit,
    ModelConfig,
    PlannedPoint,
    ServerArgs,
    ServerProcess,
)
from ddprobe.model import Cite, Fact, Finding, Outcome, Verdict
from ddprobe.verdicts import thresholds, words

SHORT, MIDDLE, LONG = 1024, 16384, 131072
SERVER = "sglang pid 47"


# --- builders ---------------------------------------------------------------------------------------------


def point(arm: str, context: int, commit: float | None, half: float = 0.1, **other: Any) -> CommitPoint:
    """100 steps of a drafter with 7 drafts a step, in 4 requests that did what they should."""
    copying = arm.startswith(("repeat", "far-copy"))
    known: dict[str, Any] = {
        "arm": arm,
        "context_tokens": context,
        "requests": 4,
        "prompt_tokens": context,
        "steps": 100,
        "drafted_steps": 100,
        "commit_mean": commit,
        "commit_low": None if commit is None else max(1.0, commit - half),
        "commit_high": None if commit is None else min(8.0, commit + half),
        "ceiling": 8,
        "copied": 1.0 if copying else None,
        "source": (Cite(f"{arm}-{context}"),),
    }
    return CommitPoint(**{**known, **other})


def ladder(
    arm: str, *commits: float, contexts: tuple[int, ...] = (SHORT, MIDDLE, LONG), **other: Any
) -> tuple[CommitPoint, ...]:
    return tuple(point(arm, context, c, **other) for context, c in zip(contexts, commits, strict=True))


def setup(points: tuple[CommitPoint, ...], **other: Any) -> CommitSetup:
    known: dict[str, Any] = {
        "engine": "sglang",
        "base": "http://127.0.0.1:30000",
        "server": SERVER,
        "speculating": True,
        "method": "DFLASH",
        "drafter": "model",
        "draft_tokens": 7,
        "ceiling": 8,
        "window": 2048,
        "points": tuple(
            PlannedPoint(p.arm, p.context_tokens, 4, 4 * p.context_tokens, p.context_tokens, 2000)
            for p in points
        ),
    }
    return CommitSetup(**{**known, **other})


def check(
    name: str, agrees: bool | None = True, first: float = 7.9, second: float = 7.9, **other: Any
) -> CommitCheck:
    text = f"{name}: {first} against {second} (64 steps each)"
    return CommitCheck(
        name=name,
        agrees=agrees,
        text=text,
        first=first,
        second=second,
        steps=64,
        source=(Cite(name),),
        **other,
    )


CONTROLS = (check("first-again"), check("cold-cached"), check("same-prompt"), check("prompt-length"))
EASY = ladder("repeat", 7.9, 7.9, 7.8)
NEAR = ladder("far-copy near", 7.2, 7.1, 7.2)
FAR = ladder("far-copy far", 7.1, 7.0, 6.9)
FINE = ladder("prose", 2.9, 2.8, 2.8)
HARD = ladder("prose", 1.6, 1.6, 1.6)


def facts(
    *points: CommitPoint, extra: tuple[Fact, ...] = (), controls: tuple[Fact, ...] = CONTROLS, **of_setup: Any
) -> tuple[Fact, ...]:
    return (setup(points, **of_setup), *points, *controls, *extra)


def judged(
    known: tuple[Fact, ...], *findings: Finding, bandwidth: float | None = None
) -> tuple[Verdict, ...]:
    return verdicts.judge(known, findings, bandwidth)


def names(known: tuple[Fact, ...], *findings: Finding, bandwidth: float | None = None) -> list[str]:
    return [verdict.name for verdict in judged(known, *findings, bandwidth=bandwidth)]


def only(known: tuple[Fact, ...], *findings: Finding, bandwidth: float | None = None) -> Verdict:
    """The one verdict there is."""
    (verdict,) = judged(known, *findings, bandwidth=bandwidth)
    return verdict


def lint(
    id: str, outcome: Outcome = Outcome.FAIL, subject: str = "drafter", advice: str = "change it"
) -> Finding:
    return Finding(id=id, outcome=outcome, subject=subject, summary=f"{id} says so", advice=advice)


# --- nothing to judge -------------------------------------------------------------------------------------


def test_no_commit_evidence_has_no_verdict() -> None:
    assert judged(()) == ()
    assert judged((ModelConfig(role="target", path="/m"),), lint("DC20")) == ()


def test_a_plan_alone_has_no_verdict() -> None:
    assert judged((setup(EASY, planned_only=True),)) == ()


def test_requests_that_all_failed_are_inconclusive() -> None:
    failed = CommitRequest(
        key="p", purpose="point", arm="repeat", context_tokens=SHORT, prompt=0, error="HTTP 503: gone"
    )
    verdict = only((setup(EASY), failed))
    assert (verdict.name, verdict.kind) == ("inconclusive", "no_measurement")
    assert "HTTP 503: gone" in verdict.reasons


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("healthy", Outcome.PASS), ("text_difficulty", Outcome.INFO), ("long_context_decay", Outcome.WARN),
        ("gpu_state", Outcome.WARN), ("not_speculating", Outcome.WARN), ("spec_net_loss", Outcome.WARN),
        ("inconclusive", Outcome.UNKNOWN), ("long_context_bug", Outcome.FAIL), ("drafter_dead", Outcome.FAIL),
        ("metric_inconsistency", Outcome.FAIL), ("simulated_acceptance", Outcome.FAIL), ("cache_state_bug", Outcome.FAIL),
        ("attention_kernel_bottleneck", Outcome.FAIL), ("a name of tomorrow", Outcome.FAIL),
    ],
)  # fmt: skip
def test_outcomes(name: str, outcome: Outcome) -> None:
    assert Verdict(name=name).outcome is outcome


# --- healthy ----------------------------------------------------------------------------------------------


def test_healthy_needs_easy_far_and_ordinary_text() -> None:
    verdict = only(facts(*EASY, *NEAR, *FAR, *FINE))
    assert (verdict.name, verdict.confidence) == ("healthy", "high")
    assert verdict.reasons[0] == (
        "repeat commits 7.90 of 8 (95 % 7.8–8.0, 100 steps, 4 requests) at 1k and "
        "7.80 of 8 (95 % 7.7–7.9, 100 steps, 4 requests) at 128k"
    )
    assert verdict.missing == ()
    assert any(text.startswith("lost distant KV") for text in verdict.ruled_out)


def test_healthy_without_prose_is_less_sure() -> None:
    verdict = only(facts(*EASY, *NEAR, *FAR))
    assert (verdict.name, verdict.confidence) == ("healthy", "medium")
    assert "arm prose" in verdict.missing[0]


def test_healthy_by_prose_without_far_copies_is_less_sure() -> None:
    assert only(facts(*EASY, *FINE)).confidence == "medium"


def test_healthy_without_controls_is_less_sure() -> None:
    verdict = only(facts(*EASY, *NEAR, *FAR, *FINE, controls=()))
    assert (verdict.name, verdict.confidence, len(verdict.missing)) == ("healthy", "medium", 2)


def test_a_drafter_at_two_thirds_of_the_ceiling_works() -> None:
    points = ladder("repeat", 4.0, 4.0, ceiling=6, contexts=(SHORT, LONG)) + ladder(
        "prose", 2.4, 2.4, ceiling=6, contexts=(SHORT, LONG)
    )
    verdict = only(facts(*points, ceiling=6, draft_tokens=5))
    assert (verdict.name, verdict.confidence) == ("healthy", "medium")
    assert any("below 85%" in reason for reason in verdict.reasons)


@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_a_planned_length_that_was_not_measured_is_not_healthy(left_out: int) -> None:
    known = facts(*EASY, *NEAR, *FAR, *FINE)
    assert names(tuple(fact for fact in known if fact is not EASY[left_out])) == ["inconclusive"]


def test_easy_text_alone_proves_nothing_about_long_contexts() -> None:
    verdict = only(facts(*ladder("repeat", 7.9, 7.9, 7.9, saturated=True)))
    assert verdict.name == "inconclusive"
    assert "never leaves a drafter's window" in " ".join(verdict.reasons)
    assert "at least that" in verdict.reasons[0]
    assert verdict.next == ("ddprobe commit-probe --contexts 1k,16k,128k --arms far-copy,prose",)


def test_an_unknown_ceiling_is_never_healthy() -> None:
    points = tuple(replace(p, ceiling=None) for p in (*EASY, *NEAR, *FAR, *FINE))
    assert names(facts(*points, ceiling=None)) == ["inconclusive"]


def test_samples_that_do_not_tell_ask_for_more_steps() -> None:
    points = (*ladder("repeat", 7.9, 7.9, 5.0, half=3.0), *NEAR, *FAR, *FINE)
    verdict = only(facts(*points))
    assert verdict.name == "inconclusive"
    assert "repeat at 128k may hold or not: its interval meets that of the shortest length" in verdict.reasons
    assert not any(text.startswith("a limit on positions") for text in verdict.ruled_out)
    assert verdict.next == ("ddprobe commit-probe --contexts 1k,16k,128k --arms repeat --steps 400",)


# --- text difficulty --------------------------------------------------------------------------------------


def test_text_difficulty() -> None:
    verdict = only(facts(*EASY, *NEAR, *FAR, *HARD))
    assert (verdict.name, verdict.confidence) == ("text_difficulty", "high")
    assert verdict.reasons[0].startswith(
        "prose commits 1.60 of 8 (95 % 1.5–1.7, 100 steps, 4 requests) at 1k and 1.60"
    )


def test_text_difficulty_with_the_public_figures_of_a_prose_ladder() -> None:
    prose = ladder("prose", 1.94, 2.08, 1.92, half=0.15)
    assert names(facts(*EASY, *NEAR, *FAR, *prose)) == ["text_difficulty"]


@pytest.mark.parametrize(
    "points",
    [
        pytest.param((*EASY, *HARD), id="nothing far back was measured"),
        pytest.param(
            (*EASY, *NEAR, *FAR, *ladder("prose", 1.6, 1.6, 1.6, loops=1)), id="prose goes in circles"
        ),
        pytest.param(
            (*EASY, *NEAR, *FAR, *ladder("prose", 1.6, 1.6, 1.6, steps=20)), id="prose has few steps"
        ),
        pytest.param((*EASY, *NEAR, *FAR, *ladder("prose", 1.6, contexts=(SHORT,))), id="one length"),
        pytest.param((*EASY, *NEAR, *FAR, *ladder("prose", 2.9, 1.9, 1.6)), id="harder at the longer one"),
        pytest.param(
            (*ladder("repeat", 7.9, 7.9, 7.9, copied=0.5), *NEAR, *FAR, *HARD), id="easy text not copied"
        ),
        pytest.param((*ladder("repeat", 7.9, 7.9, 1.0), *NEAR, *FAR, *HARD), id="easy text falls"),
        pytest.param(
            (*ladder("repeat", 1.0, 1.0, 1.0), *ladder("prose", 1.0, 1.0, 1.0)), id="easy text is dead"
        ),
    ],
)
def test_no_text_difficulty(points: tuple[CommitPoint, ...]) -> None:
    assert "text_difficulty" not in names(facts(*points))


# --- drafter dead -----------------------------------------------------------------------------------------


def test_drafter_dead() -> None:
    dead = ladder("repeat", 1.0, 1.0, 1.0, half=0.05, per_position=(0.0,) * 7)
    verdict = only(facts(*dead, *ladder("prose", 1.0, 1.0, 1.0, half=0.05)), lint("DC01"))
    assert (verdict.name, verdict.kind, verdict.confidence) == ("drafter_dead", "first_position", "high")
    assert any("below 3.0%" in reason for reason in verdict.reasons)
    assert "DC01: DC01 says so" in verdict.reasons
    assert verdict.next[0] == "change it"


def test_only_the_first_slot_alive_is_dead() -> None:
    verdict = only(facts(point("repeat", SHORT, 1.34, 0.08, per_position=(0.34, 0.0, 0.0))))
    assert (verdict.name, verdict.kind) == ("drafter_dead", "after_first")


@pytest.mark.parametrize(
    "points",
    [
        pytest.param((point("repeat", SHORT, 1.0, copied=None),), id="not known whether it was copied"),
        pytest.param((point("repeat", SHORT, 1.0, copied=0.9),), id="not copied"),
        pytest.param((point("repeat", SHORT, 1.0, steps=63),), id="63 steps"),
        pytest.param((point("repeat", LONG, 1.0),), id="only at 128k"),
        pytest.param((point("repeat", SHORT, 1.0), point("code", SHORT, 3.0)), id="code is drafted"),
        pytest.param(
            (point("repeat", SHORT, 1.0, drafted_steps=0), point("prose", SHORT, 3.0)), id="not drafted"
        ),
        pytest.param((point("prose", SHORT, 1.0),), id="only prose"),
    ],
)
def test_not_dead(points: tuple[CommitPoint, ...]) -> None:
    assert names(facts(*points)) == ["inconclusive"]


def test_with_one_draft_a_step_half_of_them_right_is_not_dead() -> None:
    points = (point("repeat", SHORT, 1.5, ceiling=2),)
    assert "drafter_dead" not in names(facts(*points, ceiling=2, draft_tokens=1))


@pytest.mark.parametrize(
    ("curve", "findings", "expected", "confidence"),
    [
        ((0.7, 0.68, 0.72), (lint("DC04"),), "drafter_dead", "medium"),
        ((0.7, 0.68, 0.72), (lint("DC32", Outcome.WARN),), "drafter_dead", "low"),
        ((0.7, 0.68, 0.72), (), "inconclusive", "low"),
        ((1.0, 1.0, 0.1), (lint("DC04"),), "inconclusive", "low"),
        (None, (lint("DC04"),), "inconclusive", "low"),
    ],
)
def test_half_wired_needs_a_flat_curve_and_a_lint(
    curve: tuple[float, ...] | None, findings: tuple[Finding, ...], expected: str, confidence: str
) -> None:
    verdict = only(facts(point("repeat", SHORT, 3.0, conditional=curve)), *findings)
    assert (verdict.name, verdict.confidence) == (expected, confidence)
    assert verdict.kind == ("miswired" if expected == "drafter_dead" else "weak_drafter")


# --- not speculating --------------------------------------------------------------------------------------


def plain(arm: str = "repeat", drafted: int | None = 0, **other: Any) -> tuple[CommitPoint, ...]:
    return ladder(arm, 1.0, 1.0, 1.0, half=0.0, drafted_steps=drafted, ceiling=None, **other)


def test_not_speculating() -> None:
    verdict = only(facts(*plain(), speculating=False, drafter="", method="", ceiling=None, draft_tokens=None))
    assert (verdict.name, verdict.kind, verdict.confidence) == ("not_speculating", "off", "high")
    assert "--speculative-algorithm" in verdict.next[0]


def test_not_speculating_where_no_source_speaks_of_drafts() -> None:
    assert names(facts(*plain(drafted=None), speculating=False, drafter="")) == ["not_speculating"]


def test_a_drafter_that_never_drafts() -> None:
    verdict = only(facts(*plain()))
    assert (verdict.name, verdict.kind, verdict.confidence) == ("not_speculating", "never_drafts", "medium")
    assert "although the server says" in verdict.reasons[0]


@pytest.mark.parametrize(
    "of_setup",
    [
        pytest.param({"speculating": None, "drafter": ""}, id="nobody says"),
        pytest.param({"speculating": True, "drafter": "model"}, id="it says that it does"),
    ],
)
def test_one_token_a_step_is_not_the_same_as_no_draft(of_setup: dict[str, Any]) -> None:
    assert "not_speculating" not in names(facts(*plain(drafted=None), **of_setup))


def test_drafts_speak_louder_than_the_server() -> None:
    assert "not_speculating" not in names(facts(*EASY, speculating=False))


# --- looking text up --------------------------------------------------------------------------------------


def test_no_verdict_on_a_drafter_that_looks_text_up() -> None:
    verdict = only(facts(*EASY, *NEAR, *FAR, *FINE, drafter="lookup", method="NGRAM"))
    assert (verdict.name, verdict.kind) == ("inconclusive", "lookup")
    assert "NGRAM looks repeated text up" in verdict.reasons[0]
    assert names(facts(*ladder("repeat", 7.9, 1.0, 1.0), drafter="lookup")) == ["inconclusive"]


def test_looking_up_that_found_nothing_is_not_switched_off() -> None:
    verdict = only(facts(*plain(), drafter="lookup", method="ngram-simple"))
    assert (verdict.name, verdict.kind) == ("inconclusive", "nothing_to_look_up")
    assert "repeat-long" in verdict.next[0]


def test_a_memory_of_earlier_requests_is_not_a_long_context_bug() -> None:
    """ngram-map-k: the first request is drafted, later ones on similar text are not, whatever their length."""
    points = ladder("repeat", 5.73, 1.09, 1.09, ceiling=6)
    controls = (check("first-again", False, 5.73, 1.09), check("cold-cached", False, 5.73, 1.09))
    known = facts(*points, controls=controls, drafter="lookup", method="ngram-map-k", ceiling=6)
    verdict = only(known)
    assert (verdict.name, verdict.kind) == ("inconclusive", "state_effect")
    assert "first-again: 5.73 against 1.09" in verdict.reasons[0]


def test_a_drifting_neural_drafter_is_a_state_effect_too() -> None:
    again = point("repeat", SHORT, 1.0, purpose="again")
    known = facts(*ladder("repeat", 7.9, 1.0, 1.0), controls=(check("first-again", False, 7.9, 1.0), again))
    assert only(known).kind == "state_effect"


# --- long context -----------------------------------------------------------------------------------------

ORIGINAL = Limit(4096, "the drafter's original_max_position_embeddings", "rope_position")
WINDOW = Limit(2048, "the drafter's sliding_window", "sliding_window_kv")
CHUNK = Limit(8192, "chunked_prefill_size", "chunk_boundary")
OWN = Limit(2048, "the drafter's max_model_len", "draft_length_limit")


def test_long_context_bug_names_the_limit_in_its_edge() -> None:
    falls = ladder("repeat", 7.9, 1.2, 1.1) + ladder("prose", 2.9, 1.1, 1.0)
    verdict = only(facts(*falls, limits=(ORIGINAL, CHUNK), window=None))
    assert (verdict.name, verdict.kind, verdict.confidence) == ("long_context_bug", "rope_position", "high")
    assert (
        "between 1k and 16k; within it lies the drafter's original_max_position_embeddings (4096 tokens)"
        in " ".join(verdict.reasons)
    )
    assert any("anywhere between 1k and 16k" in text for text in verdict.missing)
    assert any("3809" in text and "4383" in text for text in verdict.next)


def test_long_context_bug_at_a_drafters_own_length() -> None:
    """vLLM with max_model_len 2048 in the speculative config: 6.0, then all drafts rejected."""
    points = ladder("repeat", 6.0, 6.0, 1.0, 1.0, contexts=(256, 1900, 2100, 4096), ceiling=6, half=0.05)
    verdict = only(facts(*points, limits=(OWN,), ceiling=6, window=None))
    assert (verdict.name, verdict.kind, verdict.confidence) == (
        "long_context_bug",
        "draft_length_limit",
        "high",
    )
    assert (
        "the edge lies between 1900 and 2100; within it lies the drafter's max_model_len (2048 tokens)"
        in verdict.reasons
    )


def test_a_request_that_writes_across_the_limit_counts_as_beyond_it() -> None:
    points = ladder("repeat", 6.0, 6.0, 2.25, contexts=(256, 1900, 2000), ceiling=6, half=0.05)
    request = CommitRequest(
        key="r",
        purpose="point",
        arm="repeat",
        context_tokens=2000,
        prompt=0,
        prompt_tokens=2000,
        output_tokens=64,
    )
    verdict = only(facts(*points, extra=(request,), limits=(OWN,), ceiling=6, window=None))
    assert (verdict.name, verdict.kind) == ("long_context_bug", "draft_length_limit")
    assert any("a prompt of 2000 and its output" in reason for reason in verdict.reasons)


def test_drafting_that_stops_at_a_length_needs_no_named_limit() -> None:
    points = (
        *ladder("repeat", 7.9, 7.9, contexts=(SHORT, MIDDLE)),
        point("repeat", LONG, 1.0, 0.0, drafted_steps=0),
    )
    verdict = only(facts(*points))
    assert (verdict.name, verdict.kind) == ("long_context_bug", "draft_length_limit")
    assert "nothing is drafted any more" in " ".join(verdict.reasons)


@pytest.mark.parametrize(
    ("commits", "limits", "findings", "kind"),
    [
        ((7.9, 1.2, 1.1), (WINDOW,), (), "sliding_window_kv"),
        ((7.9, 1.2, 1.1), (WINDOW,), (lint("DC21"),), "window_ignored"),
        ((7.9, 4.5, 1.5), (), (lint("DC21"),), "window_ignored"),
        ((7.9, 1.2, 1.1), (WINDOW, ORIGINAL), (), ""),
        ((7.9, 1.2, 1.1), (WINDOW, ORIGINAL), (lint("DC38", Outcome.WARN),), ""),
        ((7.9, 1.2, 1.1), (WINDOW, ORIGINAL), (lint("DC34"),), "rope_position"),
        ((7.9, 1.2, 1.1), (), (), ""),
        ((7.9, 1.2, 1.1), (), (lint("DC35"),), "rope_position"),
    ],
)
def test_kinds(
    commits: tuple[float, ...], limits: tuple[Limit, ...], findings: tuple[Finding, ...], kind: str
) -> None:
    verdict = only(facts(*ladder("repeat", *commits), limits=limits), *findings)
    assert (verdict.name, verdict.kind) == ("long_context_bug", kind)


def test_a_dip_is_a_bug_only_at_a_chunk_boundary() -> None:
    points = ladder("repeat", 7.9, 2.0, 7.9)
    assert only(facts(*points, limits=(CHUNK,))).kind == "chunk_boundary"
    verdict = only(facts(*points, limits=(ORIGINAL,)))
    assert verdict.name == "inconclusive"
    assert "all is well again" in " ".join(verdict.reasons)


@pytest.mark.parametrize(
    "points",
    [
        pytest.param(ladder("repeat", 7.9, 6.0, 5.0, half=3.0), id="intervals meet"),
        pytest.param(ladder("repeat", 7.9, 7.9, 6.2), id="78 % is left"),
        pytest.param((EASY[0], point("repeat", LONG, 1.0, steps=40)), id="40 steps"),
        pytest.param((EASY[0], point("repeat", LONG, 1.0, copied=0.3)), id="the target copies no longer"),
        pytest.param((EASY[0], replace(point("repeat", LONG, 1.0), commit_high=None)), id="no interval"),
        pytest.param((*EASY, *ladder("prose", 2.9, 1.5, 1.0)), id="only prose falls"),
    ],
)
def test_no_long_context_bug(points: tuple[CommitPoint, ...]) -> None:
    assert "long_context_bug" not in names(facts(*points))


FULL_LAST = ModelConfig(
    role="drafter", path="/d", server=SERVER, layer_types=("sliding_attention",) * 5 + ("full_attention",)
)
LOST = ladder("far-copy far", 7.1, 2.0, 1.9)


def test_far_text_that_is_lost_at_one_length_only_is_no_lost_kv() -> None:
    """Whoever cannot see 16k back does not see 128k back."""
    dip = ladder("far-copy far", 7.1, 3.0, 6.9)
    verdict = only(facts(*EASY, *NEAR, *dip, *FINE))
    assert verdict.name == "inconclusive"
    assert "at a greater length both are alike again" in " ".join(verdict.reasons)
    lost = ladder("far-copy far", 7.1, 3.0, 2.9)
    assert only(facts(*EASY, *NEAR, *lost, *FINE)).kind == "far_kv"


def test_far_kv() -> None:
    verdict = only(facts(*EASY, *NEAR, *LOST, extra=(FULL_LAST,), limits=(WINDOW,)))
    assert (verdict.name, verdict.kind, verdict.confidence) == ("long_context_bug", "far_kv", "high")
    assert any("far-copy near commits 7.20" in reason for reason in verdict.reasons)
    assert any(text.startswith("a limit on positions") for text in verdict.ruled_out)


def test_far_text_is_lost_by_design_where_every_layer_slides() -> None:
    sliding = replace(FULL_LAST, layer_types=("sliding_attention",) * 6)
    verdict = only(facts(*EASY, *NEAR, *LOST, extra=(sliding,)))
    assert (verdict.name, verdict.kind) == ("long_context_decay", "window_by_design")
    assert "all 6 layers of the drafter slide" in " ".join(verdict.reasons)


def test_far_text_is_lost_by_a_launch_argument() -> None:
    verdict = only(facts(*EASY, *NEAR, *LOST, extra=(FULL_LAST,)), lint("SA04", Outcome.WARN))
    assert (verdict.name, verdict.kind) == ("long_context_decay", "window_by_design")


def test_a_far_text_that_is_weak_within_the_window_too_is_another_text() -> None:
    verdict = only(facts(*EASY, *NEAR, *ladder("far-copy far", 2.0, 2.0, 1.9), *FINE))
    assert verdict.name == "inconclusive"
    assert "distance is not why" in " ".join(verdict.reasons)


def test_a_config_of_another_server_says_nothing() -> None:
    sliding = replace(FULL_LAST, server="sglang pid 48", layer_types=("sliding_attention",) * 6)
    assert only(facts(*EASY, *NEAR, *LOST, extra=(sliding,))).kind == "far_kv"


# --- decay ------------------------------------------------------------------------------------------------


def test_long_context_decay() -> None:
    verdict = only(facts(*EASY, *NEAR, *FAR, *ladder("prose", 3.4, 2.8, 2.2)))
    assert (verdict.name, verdict.kind, verdict.confidence) == ("long_context_decay", "", "medium")
    assert "65% of the commit is left" in verdict.reasons[0]


def test_decay_in_one_step_or_over_two_lengths_is_less_sure() -> None:
    assert only(facts(*EASY, *NEAR, *FAR, *ladder("prose", 3.4, 3.4, 2.2))).confidence == "low"
    ends = [(ladder_[0], ladder_[-1]) for ladder_ in (EASY, NEAR, FAR, ladder("prose", 3.4, 2.8, 2.2))]
    assert only(facts(*itertools.chain(*ends))).confidence == "low"


def test_a_steep_decay_is_its_own_kind() -> None:
    verdict = only(facts(*EASY, *NEAR, *FAR, *ladder("prose", 3.4, 2.3, 1.2)))
    assert (verdict.name, verdict.kind, verdict.confidence) == ("long_context_decay", "steep", "low")


def test_easy_text_that_fades_gently() -> None:
    verdict = only(facts(*ladder("repeat", 7.9, 7.1, 6.3)))
    assert verdict.name == "long_context_decay"


@pytest.mark.parametrize(
    "prose",
    [
        pytest.param(ladder("prose", 3.0, 2.9, 2.7), id="90 % is left"),
        pytest.param(ladder("prose", 3.0, 2.6, 2.4, half=0.4), id="intervals meet"),
    ],
)
def test_no_decay(prose: tuple[CommitPoint, ...]) -> None:
    assert names(facts(*EASY, *NEAR, *FAR, *prose)) == ["healthy"]


# --- cache ------------------------------------------------------------------------------------------------

CACHED = CommitRequest(
    key="c",
    purpose="cached",
    arm="repeat",
    context_tokens=SHORT,
    prompt=0,
    prompt_tokens=SHORT,
    cached_tokens=1000,
)


def test_cache_state_bug() -> None:
    """Points measured from the cache are then no evidence of anything else."""
    points = ladder("repeat", 1.0, 1.0, 1.0, cached_tokens=1000)
    controls = (check("first-again"), check("cold-cached", False, 4.6, 1.0))
    verdict = only(facts(*points, controls=controls, extra=(CACHED,)))
    assert (verdict.name, verdict.kind, verdict.confidence) == ("cache_state_bug", "draft_kv_lost", "high")
    assert verdict.reasons[0] == "cold-cached: 4.6 against 1.0 (64 steps each)"


def test_what_was_measured_cold_still_counts() -> None:
    points = ladder("repeat", 7.9, 1.0, 1.0, cached_tokens=0)
    controls = (check("first-again"), check("cold-cached", False, 7.9, 1.0))
    assert set(names(facts(*points, controls=controls, extra=(CACHED,)))) == {
        "cache_state_bug",
        "long_context_bug",
    }


def test_a_cached_request_that_does_better_is_replayed() -> None:
    controls = (check("cold-cached", False, 2.0, 7.9),)
    assert judged(facts(*EASY, controls=controls, extra=(CACHED,)))[0].kind == "draft_replayed"


def test_no_cache_state_bug_without_a_cache() -> None:
    controls = (check("first-again"), check("cold-cached", False, 7.9, 1.0))
    uncached = replace(CACHED, cached_tokens=0)
    assert "cache_state_bug" not in names(facts(*EASY, controls=controls, extra=(uncached,)))
    assert "cache_state_bug" not in names(facts(*EASY, controls=(check("cold-cached", None),)))


# --- sources ----------------------------------------------------------------------------------------------


def request(
    number: int, streamed: int, accepted: int, *, disagreements: tuple[str, ...] = (), **other: Any
) -> CommitRequest:
    """32 steps, of which the stream shows `streamed` accepted tokens in all, and meta_info has `accepted`."""
    accounts = (
        Account(origin="meta_info", steps=32, accepted=accepted),
        Account(origin="stream", steps=32, accepted=streamed),
    )
    known: dict[str, Any] = {
        "key": f"r{number}",
        "purpose": "point",
        "arm": "repeat",
        "context_tokens": SHORT,
        "prompt": number,
        "num_spec_steps": 32,
        "num_accepted_draft_tokens": accepted,
        "accounts": accounts,
        "disagreements": disagreements,
        "source": (Cite(f"r{number}"),),
    }
    return CommitRequest(**{**known, **other})


WORDS = ("meta_info says 96 accepted in 32 steps, the stream 0",)
NOT_COMMITTED = tuple(request(n, 0, 96, disagreements=WORDS) for n in range(4))


def test_tokens_that_are_accepted_and_never_come_out() -> None:
    """The founding story: one token a step beside an accepted depth of three. Hard text does not explain that."""
    points = ladder("repeat", 1.0, 1.0, 1.0) + ladder("prose", 1.0, 1.0, 1.0)
    verdict = only(facts(*points, extra=NOT_COMMITTED))
    assert (verdict.name, verdict.kind, verdict.confidence) == ("metric_inconsistency", "commit_path", "high")
    assert (
        "the stream shows 1.00 tokens per step where meta_info says 4.00 (128 steps, 4 requests)"
        in verdict.reasons
    )
    assert verdict.ruled_out[0].startswith("hard text")


def test_the_claims_of_the_founding_story_contradict_each_other() -> None:
    claims = (
        Claim(what="commit length", value=1.0, origin="avg_commit_len", window="last log window"),
        Claim(what="accepted depth", value=3.0, origin="avg_accepted_depth", window="last log window"),
    )
    shown = request(
        0, 0, 0, accounts=(), num_spec_steps=None, num_accepted_draft_tokens=None, step_commits=(1,) * 100
    )
    points = ladder("repeat", 1.0, 1.0, 1.0)
    verdict = only(facts(*points, extra=(*claims, shown)))
    assert (verdict.name, verdict.kind, verdict.confidence) == (
        "metric_inconsistency",
        "commit_path",
        "medium",
    )
    assert "so 4.00 is expected" in verdict.reasons[0]
    shown = replace(shown, step_commits=(4,) * 100)
    assert judged(facts(*EASY, extra=(*claims, shown)))[0].kind == "worker_reporting"


def test_a_figure_that_is_only_counted_wrongly() -> None:
    wrong = tuple(
        request(n, 220, 100, disagreements=("meta_info says 100, the stream 220",)) for n in range(4)
    )
    verdict = only(facts(*EASY, *NEAR, *FAR, *FINE, extra=wrong))
    assert (verdict.name, verdict.kind) == ("metric_inconsistency", "metric")


def test_one_odd_request_among_many_is_no_verdict() -> None:
    odd = (
        request(0, 220, 219, disagreements=("219 against 220",)),
        *(request(n, 220, 220) for n in range(1, 8)),
    )
    assert names(facts(*EASY, *NEAR, *FAR, *FINE, extra=odd)) == ["healthy"]


def test_a_lint_that_fails_and_a_check_that_does() -> None:
    assert names(facts(*EASY, *FINE), lint("RT01")) == ["metric_inconsistency"]
    assert names(facts(*EASY, *FINE), lint("RT01", Outcome.WARN)) == ["healthy"]
    assert names(facts(*EASY, *FINE, extra=(check("sources", False),))) == ["metric_inconsistency"]


@pytest.mark.parametrize(
    ("claim", "wrong"),
    [
        (Claim(what="accept length", value=7.88, origin="/metrics", window="during the probe"), False),
        (Claim(what="accept length", value=4.0, origin="/metrics", window="during the probe"), True),
        (Claim(what="accept length", value=4.0, origin="/server_info", window="lifetime"), False),
        (Claim(what="accept length", value=9.5, origin="log", window="lifetime"), True),
        (Claim(what="accept length", value=8.125, origin="meta_info", window="lifetime"), False),
        (Claim(what="accept length", value=0.6, origin="log", window="lifetime"), True),
        (Claim(what="accept length", value=0.0, origin="gauge", window="last log window"), False),
        (Claim(what="accept rate", value=1.4, origin="log", window="lifetime"), True),
        (Claim(what="accept rate", value=0.98, origin="log", window="lifetime"), False),
    ],
)
def test_claims_beside_what_was_measured(claim: Claim, wrong: bool) -> None:
    measured = tuple(request(n, 220, 220) for n in range(4))
    found = judged(facts(*EASY, *NEAR, *FAR, *FINE, extra=(*measured, claim)))
    assert [verdict.name for verdict in found] == (["metric_inconsistency"] if wrong else ["healthy"])
    assert found[0].kind == ("worker_reporting" if wrong else "")


# --- simulated acceptance ---------------------------------------------------------------------------------


def server(**environment: str) -> ServerProcess:
    return ServerProcess(engine="sglang", pid=47, argv=("python",), environment=tuple(environment.items()))


def test_simulated_acceptance_by_its_switch() -> None:
    known = facts(*EASY, *NEAR, *FAR, *HARD)
    verdict = only((*known, server(SGLANG_SIMULATE_ACC_LEN="4")))
    assert (verdict.name, verdict.kind, verdict.confidence) == ("simulated_acceptance", "switch", "high")
    assert names(known, lint("EN01")) == ["simulated_acceptance"]
    synthetic = ServerArgs(
        engine="llamacpp", origin="command line", values=(("spec_synth_len", 3.5),), server=SERVER
    )
    assert names((*known, synthetic)) == ["simulated_acceptance"]


def test_no_simulation_on_this_server() -> None:
    known = facts(*EASY, *NEAR, *FAR, *HARD)
    assert names((*known, server(SGLANG_SIMULATE_ACC_LEN="0"))) == ["text_difficulty"]
    other = replace(server(SGLANG_SIMULATE_ACC_LEN="4"), pid=48)
    assert names((*known, server(), other), lint("EN01", subject="environment of sglang pid 48")) == [
        "text_difficulty"
    ]


SAME = (0, 0, 50, 50)


def test_simulated_acceptance_by_its_histogram() -> None:
    points = [point(arm, SHORT, 3.5, histogram=SAME) for arm in ("repeat", "prose", "random")]
    loops = tuple(
        CommitRequest(
            key="p", purpose="point", arm=arm, context_tokens=SHORT, prompt=0, loop="1 token, 300 times"
        )
        for arm in ("prose", "random")
    )
    assert only(facts(*points)).confidence == "medium"
    verdict = only(facts(*points, extra=loops))
    assert (verdict.name, verdict.kind, verdict.confidence) == ("simulated_acceptance", "histogram", "high")
    assert "2 right in 50 and 3 right in 50 of 100 steps" in verdict.reasons[0]


@pytest.mark.parametrize(
    "histograms",
    [
        pytest.param({"repeat": (100,), "prose": (100,)}, id="nothing right: dead"),
        pytest.param(
            {"repeat": (0,) * 7 + (100,), "prose": (0,) * 7 + (100,)},
            id="everything right: the target itself",
        ),
        pytest.param({"repeat": SAME, "prose": (30, 40, 20, 10)}, id="prose differs"),
        pytest.param({"repeat": SAME, "prose": (0, 0, 90, 10)}, id="other shares"),
        pytest.param({"repeat": SAME, "far-copy near": SAME}, id="only text to be copied"),
        pytest.param({"repeat": (0, 0, 20, 20), "prose": (0, 0, 20, 20)}, id="40 steps"),
    ],
)
def test_not_simulated(histograms: dict[str, tuple[int, ...]]) -> None:
    points = [point(arm, SHORT, 3.5, histogram=histogram) for arm, histogram in histograms.items()]
    assert "simulated_acceptance" not in names(facts(*points))


# --- time -------------------------------------------------------------------------------------------------


def timed(points: tuple[CommitPoint, ...], *times: float) -> tuple[CommitPoint, ...]:
    return tuple(
        replace(p, step_ms=ms, step_ms_low=0.98 * ms, step_ms_high=1.02 * ms, timed_steps=90)
        for p, ms in zip(points, times, strict=True)
    )


KIMI = ModelConfig(
    role="target",
    path="/t",
    server=SERVER,
    num_hidden_layers=61,
    kv_lora_rank=512,
    qk_rope_head_dim=64,
    dtype="bfloat16",
)


def test_attention_kernel_bottleneck() -> None:
    """61 layers × 576 × 2 bytes at 1792 GB/s are 0.0392 µs a token; 7.75 µs are 198 times that."""
    slow = timed(EASY, 20.0, 20 + 7.75e-3 * (MIDDLE - SHORT), 20 + 7.75e-3 * (LONG - SHORT))
    known = facts(*slow, *NEAR, *FAR, *FINE, extra=(KIMI,))
    verdict = only(known, bandwidth=1792.0)
    assert (verdict.name, verdict.confidence) == ("attention_kernel_bottleneck", "medium")
    assert "7.75 µs per token of context" in verdict.reasons[1]
    assert (
        "reading 70272 bytes of KV per token takes 0.0392 µs (1792 GB/s, the host's gpu_bandwidth): 198 times as much"
        in verdict.reasons[1]
    )
    verdict = only(known, lint("SA01"))
    assert verdict.kind == "serial_prefix"
    assert "864 GB/s, the slowest card" in verdict.reasons[1]


@pytest.mark.parametrize(
    ("times", "extra", "of_setup"),
    [
        pytest.param((20.0, 20.6, 25.1), (KIMI,), {}, id="as fast as memory"),
        pytest.param((20.0, 140.0, 1030.0), (), {}, id="no configuration of the target"),
        pytest.param((20.0, 140.0, 1030.0), (replace(KIMI, server="sglang pid 48"),), {}, id="another server's"),
        pytest.param((20.0, 140.0, 1030.0), (replace(KIMI, num_hidden_layers=None),), {}, id="no layers known"),
        pytest.param((20.0, 140.0, 1030.0), (KIMI,), {"version": "0.5.23+cpu"}, id="no GPU"),
        pytest.param((1.0, 1.05, 1.1), (replace(KIMI, num_hidden_layers=1, kv_lora_rank=1, qk_rope_head_dim=0),), {}, id="too little"),
    ],
)  # fmt: skip
def test_no_attention_kernel_bottleneck(
    times: tuple[float, ...], extra: tuple[Fact, ...], of_setup: dict[str, Any]
) -> None:
    known = facts(*timed(EASY, *times), *NEAR, *FAR, *FINE, extra=extra, **of_setup)
    assert names(known, bandwidth=1792.0) == ["healthy"]


@pytest.mark.parametrize(
    ("times", "extra", "bandwidth", "confidence", "told", "wanted"),
    [
        pytest.param((20.0, 140.0, 1030.0), (), 1792.0, "medium", "51.5 times as long", "the target's config.json", id="no configuration"),
        pytest.param((20.0, 21.0, 30.0), (KIMI,), None, "high", "accounts for up to 100% of that growth (864 GB/s, the slowest", "`gpu_bandwidth`", id="no bandwidth"),
        pytest.param((20.0, 21.2, 30.0), (KIMI,), 1792.0, "high", "accounts for 51% of that growth (1792 GB/s, the host's gpu_bandwidth)", "", id="as memory allows"),
        pytest.param((20.0, 20.5, 24.0), (), None, "high", "", "", id="no growth worth a word"),
    ],
)  # fmt: skip
def test_healthy_says_what_it_does_not_say_of_the_step_time(
    times: tuple[float, ...],
    extra: tuple[Fact, ...],
    bandwidth: float | None,
    confidence: str,
    told: str,
    wanted: str,
) -> None:
    """70272 bytes a token at 1792 GB/s are 0.0392 µs: 5.1 ms of the 10 ms from 1k to 128k."""
    verdict = only(facts(*timed(EASY, *times), *NEAR, *FAR, *FINE, extra=extra), bandwidth=bandwidth)
    assert (verdict.name, verdict.confidence) == ("healthy", confidence)
    slower = [reason for reason in verdict.reasons if "times as long" in reason or "of that growth" in reason]
    assert bool(slower) == bool(told)
    assert any(told in reason for reason in verdict.reasons)
    assert any(wanted in text for text in verdict.missing) if wanted else verdict.missing == ()
    assert any("--contexts 1k,3328" in todo for todo in verdict.next) == bool(wanted)


@pytest.mark.parametrize(
    ("times", "found"),
    [((20.0, 140.0, 1030.0), "attention_kernel_bottleneck"), ((20.0, 22.5, 25.4), "healthy")],
)
def test_steps_that_came_in_bursts_have_a_pace_and_no_spread(times: tuple[float, ...], found: str) -> None:
    """A pace grows as well as a median; by a quarter it may have grown by chance."""
    first, *rest = timed(EASY, *times)
    paced = replace(first, step_ms_low=None, step_ms_high=None)
    tiny = replace(KIMI, num_hidden_layers=1)
    assert names(facts(paced, *rest, *NEAR, *FAR, *FINE, extra=(tiny,)), bandwidth=1792.0) == [found]


def test_two_lengths_make_no_slope() -> None:
    two = timed((EASY[0], EASY[2]), 20.0, 1030.0)
    verdict = only(facts(*two, *NEAR, *FAR, *FINE, extra=(KIMI,)), bandwidth=1792.0)
    assert (verdict.name, verdict.confidence) == ("healthy", "low")
    assert any("accounts for 1% of that growth" in reason for reason in verdict.reasons)
    assert "step times at 3 lengths or more: 2 give no slope" in verdict.missing


def test_what_the_plan_counts_beside_the_points_is_no_text() -> None:
    points = (*EASY, *NEAR, *FAR, *FINE)
    controls = PlannedPoint("controls", SHORT, 4, 4096, 2048, 500)
    known = tuple(
        replace(fact, points=(*fact.points, controls)) if isinstance(fact, CommitSetup) else fact
        for fact in facts(*points)
    )
    assert judged(known) == judged(facts(*points))
    short = tuple(
        replace(fact, points=(*fact.points, controls)) if isinstance(fact, CommitSetup) else fact
        for fact in facts(*EASY)
    )
    assert judged(short) == judged(facts(*EASY))


def test_grouped_heads_are_spread_over_ranks_and_windows_do_not_grow() -> None:
    """4 of 8 layers are full; 8 heads on 4 ranks, 128 wide, keys and values, one byte: 4 × 2 × 128 × 2 = 2048."""
    grouped = ModelConfig(
        role="target",
        path="/t",
        server=SERVER,
        num_hidden_layers=8,
        num_key_value_heads=8,
        num_attention_heads=64,
        head_dim=128,
        layer_types=("full_attention", "sliding_attention") * 4,
    )
    args = ServerArgs(
        engine="sglang", origin="/server_info", resolved=True, server=SERVER, values=(("tp_size", 4), ("kv_cache_dtype", "fp8_e4m3"))
    )  # fmt: skip
    slow = timed(EASY, 20.0, 140.0, 1030.0)
    assert "reading 2048 bytes" in only(facts(*slow, extra=(grouped, args))).reasons[1]


def test_gpu_state() -> None:
    points = timed(EASY, 63.0, 64.0, 65.0)
    (again,) = timed((point("repeat", SHORT, 7.9, purpose="again"),), 94.0)
    verdict = only(facts(*points, *NEAR, *FAR, *FINE, extra=(again,)))
    assert (verdict.name, verdict.kind) == ("gpu_state", "slower")
    assert "+49%" in verdict.reasons[0]


@pytest.mark.parametrize(
    ("ms", "high", "steps"),
    [
        pytest.param(68.0, 70.0, 90, id="8 %"),
        pytest.param(94.0, 110.0, 8, id="8 timed steps"),
        pytest.param(94.0, None, 90, id="no spread known"),
    ],
)
def test_no_gpu_state(ms: float, high: float | None, steps: int) -> None:
    points = timed(EASY, 63.0, 64.0, 65.0)
    again = point(
        "repeat",
        SHORT,
        7.9,
        purpose="again",
        step_ms=ms,
        step_ms_low=ms,
        step_ms_high=high,
        timed_steps=steps,
    )
    assert names(facts(*points, *NEAR, *FAR, *FINE, extra=(again,))) == ["healthy"]


def test_spec_net_loss_beyond_a_length() -> None:
    """Prose commits 2.8; a step may take 2.8 times a plain token: 28 ms at 1k (takes 20), 42 at 128k (takes 100)."""
    prose = timed(FINE, 20.0, 30.0, 100.0)
    known = facts(*EASY, *NEAR, *FAR, *prose, baseline=((SHORT, 10.0), (LONG, 15.0)))
    verdict = only(known)
    assert (verdict.name, verdict.kind, verdict.confidence) == ("spec_net_loss", "beyond_a_length", "high")
    assert "speculation makes it 2.38 times slower at 128k" in verdict.reasons
    assert "so a step must commit 6.67 to pay" in verdict.reasons[0]


@pytest.mark.parametrize(
    "baseline",
    [
        pytest.param((), id="no baseline"),
        pytest.param(((SHORT, 10.0), (LONG, 40.0)), id="it pays"),
        pytest.param(((512, 5.0), (700, 5.0)), id="other lengths"),
    ],
)
def test_no_spec_net_loss(baseline: tuple[tuple[int, float], ...]) -> None:
    prose = timed(FINE, 20.0, 30.0, 100.0)
    assert names(facts(*EASY, *NEAR, *FAR, *prose, baseline=baseline)) == ["healthy"]


# --- ranking ----------------------------------------------------------------------------------------------


def test_the_founding_story_has_two_losses_and_hard_text_is_neither() -> None:
    """Accepted depth × 4 that voids every commit, and step time × 51."""
    slow = timed(ladder("repeat", 1.0, 1.0, 1.0), 20.0, 140.0, 1030.0)
    known = facts(*slow, extra=(KIMI, *NOT_COMMITTED))
    first, second = judged(known)
    assert (first.name, first.kind) == ("metric_inconsistency", "commit_path")
    assert second.name == "attention_kernel_bottleneck"
    (text,) = [reason for reason in first.reasons if reason.startswith("text difficulty alone")]
    assert "repeat commits 1.00 of 8" in text
    assert "(3.00 a step here)" in text
    # Without the target's configuration there is no such verdict, and the growth is told all the same.
    (alone,) = judged(facts(*slow, extra=NOT_COMMITTED))
    assert any("51.5 times as long (repeat, 3 lengths)" in reason for reason in alone.reasons)


def test_the_first_verdict_explains_most_of_the_lost_speed() -> None:
    """Prose commits a fifth of repeated text, and a step takes 51 times as long; then three times."""
    for times, found in (
        ((20.0, 140.0, 1030.0), ["attention_kernel_bottleneck", "text_difficulty"]),
        ((20.0, 24.0, 60.0), ["text_difficulty", "attention_kernel_bottleneck"]),
    ):
        assert (
            names(facts(*timed(EASY, *times), *NEAR, *FAR, *HARD, extra=(KIMI,)), bandwidth=3350.0) == found
        )


def test_hard_text_before_a_little_growth() -> None:
    slow = timed(EASY, 100.0, 110.0, 145.0)
    tiny = replace(KIMI, num_hidden_layers=1)
    assert names(facts(*slow, *NEAR, *FAR, *HARD, extra=(tiny,))) == [
        "text_difficulty",
        "attention_kernel_bottleneck",
    ]


# --- properties -------------------------------------------------------------------------------------------

INCONCLUSIVE = {
    "repeat only": facts(*EASY),
    "no far copy": facts(*EASY, *HARD),
    "few steps": facts(*ladder("repeat", 7.9, 7.9, 7.9, steps=20), *NEAR, *FAR, *FINE),
    "not copied": facts(*ladder("repeat", 7.9, 1.0, 1.0, copied=0.2), *NEAR, *FAR, *HARD),
    "far copy not copied": facts(*EASY, *NEAR, *ladder("far-copy far", 7.0, 2.0, 1.0, copied=0.4), *HARD),
    "weak": facts(point("repeat", SHORT, 3.0), *HARD),
    "only long": facts(point("repeat", LONG, 1.0), point("prose", LONG, 1.0)),
    "wide intervals": facts(
        *ladder("repeat", 7.0, 4.0, 3.0, half=4.0), *ladder("prose", 1.6, 1.6, 1.6, half=2.0)
    ),
    "lookup": facts(*EASY, *NEAR, *FAR, *FINE, drafter="lookup"),
    "no ceiling": facts(*(replace(p, ceiling=None) for p in (*EASY, *NEAR, *FAR, *FINE)), ceiling=None),
}


@pytest.mark.parametrize("known", INCONCLUSIVE.values(), ids=INCONCLUSIVE.keys())
def test_taking_evidence_away_makes_nothing_conclusive(known: tuple[Fact, ...]) -> None:
    assert names(known) == ["inconclusive"]
    movable = [fact for fact in known if not isinstance(fact, CommitSetup)]
    draw = random.Random(1)
    subsets = [draw.sample(movable, size) for size in range(len(movable)) for _ in range(6)]
    subsets += [[fact for fact in movable if fact is not gone] for gone in movable]
    for kept in subsets:
        left = tuple(fact for fact in known if isinstance(fact, CommitSetup) or fact in kept)
        assert names(left) in (["inconclusive"], []), [getattr(fact, "arm", fact) for fact in kept]


WORLDS = {
    **INCONCLUSIVE,
    "healthy": facts(*EASY, *NEAR, *FAR, *FINE),
    "hard": facts(*EASY, *NEAR, *FAR, *HARD),
    "edge": facts(
        *ladder("repeat", 7.9, 1.2, 1.1),
        *ladder("repeat-wide", 7.5, 1.2, 1.1),
        *HARD,
        limits=(ORIGINAL, WINDOW),
    ),
    "far": facts(*EASY, *NEAR, *LOST, extra=(FULL_LAST,)),
    "story": facts(
        *timed(ladder("repeat", 1.0, 1.0, 1.0), 20.0, 140.0, 1030.0), extra=(KIMI, *NOT_COMMITTED)
    ),
    "cache": facts(*EASY, controls=(check("cold-cached", False, 4.6, 1.0),), extra=(CACHED,)),
}


@pytest.mark.parametrize("known", WORLDS.values(), ids=WORLDS.keys())
def test_the_order_of_facts_does_not_matter(known: tuple[Fact, ...]) -> None:
    right = judged(known)
    draw = random.Random(2)
    for _ in range(8):
        shuffled = tuple(draw.sample(known, len(known)))
        found = judged(shuffled)
        assert [replace(v, cites=()) for v in found] == [replace(v, cites=()) for v in right]
        assert [set(v.cites) for v in found] == [set(v.cites) for v in right]


@pytest.mark.parametrize("known", WORLDS.values(), ids=WORLDS.keys())
def test_every_verdict_speaks(known: tuple[Fact, ...]) -> None:
    """Each has reasons and a next thing to do, says where it can be checked, and leaves no placeholder."""
    for verdict in judged(known):
        told = (*verdict.reasons, *verdict.ruled_out, *verdict.missing, *verdict.next)
        assert verdict.reasons
        assert verdict.next
        assert verdict.cites
        assert verdict.confidence in ("low", "medium", "high")
        assert all(text and "None" not in text and "  " not in text for text in told)
        assert len(set(verdict.reasons)) == len(verdict.reasons)


@pytest.mark.parametrize("id", ["DC01", "DC21", "DC34", "SA01", "SA04", "RT01", "RT04", "EN02"])
def test_a_warning_alone_decides_nothing(id: str) -> None:
    for known in (facts(*EASY), facts(*EASY, *NEAR, *FAR, *FINE)):
        assert names(known, lint(id, Outcome.WARN)) == names(known)


def test_dead_limits() -> None:
    """1.5 for blocks of 5 and more; 15 % of the drafts below that."""
    found = [thresholds.dead_below(most) for most in (2, 3, 8, 16, None)]
    assert found == pytest.approx([1.15, 1.3, 1.5, 1.5, 1.5])


# --- sentences ---------------------------------------------------------------------------------------------


def test_healthy_says_what_speculation_gains_where_a_baseline_is_known() -> None:
    """Prose: at 1k 2.9 / 20 ms against 1 / 10 ms is 1.45 times as fast, at 128k 2.8 / 100 against 1 / 50 is 1.4 times."""
    prose = timed(FINE, 20.0, 30.0, 100.0)
    verdict = only(facts(*EASY, *NEAR, *FAR, *prose, baseline=((SHORT, 10.0), (LONG, 50.0))))
    assert verdict.name == "healthy"
    said = [reason for reason in verdict.reasons if reason.startswith("against the baseline")]
    assert len(said) == 1
    assert "1.45 times as fast at 1k and 1.40 times as fast at 128k" in said[0]


@pytest.mark.parametrize(
    ("names", "told"), [((), ""), (("a",), "a"), (("a", "b"), "a and b"), (("a", "b", "c"), "a, b and c")]
)
def test_a_list_in_words(names: tuple[str, ...], told: str) -> None:
    assert words.listed(names) == told


CHUNK = Limit(8192, "chunked prefill (--chunked-prefill-size)", "chunk_boundary")


def test_many_chunks_within_an_edge_explain_nothing() -> None:
    points = ladder("repeat", 7.9, 7.9, 1.0, contexts=(SHORT, MIDDLE, 65536))
    verdict = only(facts(*points, limits=(CHUNK,)))
    assert verdict.name == "long_context_bug"
    assert any("no configured limit lies within it" in reason for reason in verdict.reasons)


def test_the_one_chunk_within_an_edge_is_named_by_where_it_ends() -> None:
    points = ladder("repeat", 7.9, 7.9, 1.0, contexts=(SHORT, 17000, 24000))
    verdict = only(facts(*points, limits=(Limit(10000, "chunked prefill", "chunk_boundary"),)))
    assert any("a multiple of chunked prefill (20000 tokens)" in reason for reason in verdict.reasons)


def test_the_limit_that_a_lint_names_comes_first() -> None:
    near = (Limit(tokens, f"limit {tokens}", "sliding_window_kv") for tokens in (2048, 4096, 8192))
    limits = (*near, Limit(32768, "RoPE factor × original length", "rope_position"))
    points = ladder("repeat", 7.9, 1.0, contexts=(SHORT, 65536))
    told = dataclasses.replace(lint("DC34"), summary="RoPE reaches 32768 tokens")
    verdict = judged(facts(*points, limits=limits), told)[0]
    assert (verdict.name, verdict.kind) == ("long_context_bug", "rope_position")
    assert any("30474,35062" in step for step in verdict.next)
