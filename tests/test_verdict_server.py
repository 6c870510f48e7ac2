"""Verdicts on the server and its numbers at their limits: metrics, forged acceptance, the cache, and no drafts at all."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from ddprobe.facts import (
    Account,
    Claim,
    CommitCheck,
    CommitPoint,
    CommitRequest,
    ModelConfig,
    ServerArgs,
    ServerProcess,
)
from ddprobe.model import Cite, Fact, Finding, Outcome, Verdict
from ddprobe.verdicts import (
    cache_state_bug,
    metric_inconsistency,
    not_speculating,
    simulated_acceptance,
    words,
)
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.ruling import Ruling, weakest
from tests.test_verdicts import EASY, LONG, SERVER, SHORT, check, ladder, lint, point, setup


def request(key: str, *accounts: tuple[str, int | None, int | None], **other: Any) -> CommitRequest:
    """Accounts are (origin, steps, accepted)."""
    known: dict[str, Any] = {"purpose": "point", "arm": "repeat", "context_tokens": SHORT, "prompt": 0}
    told = tuple(
        Account(origin=origin, steps=steps, accepted=accepted) for origin, steps, accepted in accounts
    )
    return CommitRequest(key=key, accounts=told, **{**known, **other})


def metric(*known: Fact, findings: tuple[Finding, ...] = ()) -> Ruling | None:
    return metric_inconsistency.judge(Case(known, findings))


def wrong(*known: Fact, findings: tuple[Finding, ...] = ()) -> Verdict:
    ruling = metric(*known, findings=findings)
    assert ruling is not None
    return ruling.verdict


# --- which requests are enough ----------------------------------------------------------------------------

ODD = {"disagreements": ("219 against 220",)}


@pytest.mark.parametrize(
    ("odd", "sound", "failed", "enough"),
    [
        pytest.param(0, 0, 0, False, id="no request"),
        pytest.param(0, 5, 0, False, id="all agree"),
        pytest.param(1, 0, 0, True, id="the only one"),
        pytest.param(1, 1, 0, False, id="one of two"),
        pytest.param(2, 0, 0, True, id="both"),
        pytest.param(2, 8, 0, True, id="two of ten"),
        pytest.param(1, 0, 3, True, id="the only one that was measured"),
    ],
)
def test_two_requests_that_disagree_are_enough_or_the_only_one(
    odd: int, sound: int, failed: int, enough: bool
) -> None:
    requests = [request(f"o{n}", **ODD) for n in range(odd)]
    requests += [request(f"s{n}") for n in range(sound)]
    requests += [request(f"f{n}", error="HTTP 500") for n in range(failed)]
    assert (metric(*requests) is not None) is enough


@pytest.mark.parametrize(
    ("known", "findings", "kind"),
    [
        pytest.param((request("a", **ODD),), (), "metric", id="requests"),
        pytest.param((check("sources", False),), (), "metric", id="the check of the sources"),
        pytest.param((), (lint("RT01"),), "metric", id="a lint"),
        pytest.param((Claim(what="accept rate", value=1.5, origin="log"),), (), "worker_reporting", id="a figure"),
        pytest.param((Claim(what="accept rate", value=1.5, origin="log"),), (lint("RT01"),), "worker_reporting", id="a figure, and a lint that says so"),
        pytest.param((request("a", **ODD), Claim(what="accept rate", value=1.5, origin="log")), (), "metric", id="requests and a figure"),
        pytest.param((check("sources", None),), (), None, id="a check that could not tell"),
        pytest.param((check("sources"),), (), None, id="a check that agrees"),
    ],
)  # fmt: skip
def test_who_contradicts_whom(
    known: tuple[Fact, ...], findings: tuple[Finding, ...], kind: str | None
) -> None:
    ruling = metric(*known, findings=findings)
    assert (ruling.verdict.kind if ruling else None) == kind
    if ruling is not None:
        assert (ruling.explains, ruling.voids) == (1.0, False)
        assert ruling.verdict.ruled_out == ()


def test_each_that_contradicts_is_told() -> None:
    verdict = wrong(check("sources", False), findings=(lint("RT01"),))
    assert "sources: 7.9 against 7.9 (64 steps each)" in verdict.reasons
    assert "RT01: RT01 says so" in verdict.reasons
    told = wrong(request("a", **ODD), check("sources"), findings=(lint("RT01"),))
    assert told.reasons[0].startswith("sources contradict each other in 1 request: 219 against 220")
    assert len(told.reasons) == 1


def test_disagreements_of_one_kind_are_told_once() -> None:
    """Numbers aside they are the same sentence; two more kinds are told beside the first."""
    first = request("a", disagreements=("a: 1.5 against 2", "c: 7 steps", "d: 8 steps"))
    second = request("b", disagreements=("a: 3 against 4", "b: 5 steps", "b: 6 steps"))
    assert wrong(first, second).reasons == (
        "sources contradict each other in 2 requests: a: 1.5 against 2",
        "b: 5 steps",
        "c: 7 steps",
    )


@pytest.mark.parametrize(
    ("steps", "confidence"),
    [((64, None), "high"), ((63, None), "medium"), ((32, 32), "high"), ((0, 64), "high")],
)
def test_64_steps_that_disagree_make_it_sure(steps: tuple[int | None, int | None], confidence: str) -> None:
    pair = tuple(request(key, num_spec_steps=n, **ODD) for key, n in zip("ab", steps, strict=True))
    assert wrong(*pair).confidence == confidence


def test_a_stream_tells_a_wrong_figure_from_lost_tokens() -> None:
    wanting = ("a stream that shows each step: it tells a wrong figure from tokens that are lost",)
    assert wrong(request("a", ("meta_info", 10, 30), **ODD)).missing == wanting
    assert wrong(request("a", ("stream", 10, 30), ("meta_info", 10, 20), **ODD)).missing == ()


# --- pooled -----------------------------------------------------------------------------------------------


def test_requests_are_pooled_that_have_both_accounts() -> None:
    """30 accepted in 20 steps as streamed, 10 in 20 by the first other source; the rest has but one account."""
    pooled = metric_inconsistency._pooled(
        [
            request("a", ("stream", 10, 30), ("usage", 10, 10), ("meta_info", 10, 20)),
            request("b", ("meta_info", 10, 0), ("stream", 10, 0)),
            request("c", ("stream", 10, 10)),
            request("d", ("meta_info", 10, 10)),
            request("e", ("stream", None, 10), ("meta_info", 10, 10)),
            request("f", ("stream", 10, 10), ("meta_info", 10, None)),
        ]
    )
    assert pooled is not None
    assert (pooled.streamed, pooled.told) == (2.5, 1.5)
    assert (pooled.steps, pooled.requests, pooled.origin) == (20, 2, "meta_info")
    assert metric_inconsistency._pooled([request("c", ("stream", 10, 10)), request("d")]) is None


# --- figures ----------------------------------------------------------------------------------------------


def claim(what: str, value: float, **other: Any) -> Claim:
    return Claim(**{"what": what, "value": value, "origin": "log", "window": "lifetime", **other})


@pytest.mark.parametrize(
    ("samples", "window", "told"),
    [
        (40, "lifetime", "log states accept rate 1.50 (lifetime, 40 steps)"), (None, "lifetime", "log states accept rate 1.50 (lifetime)"),
        (40, "", "log states accept rate 1.50 (40 steps)"), (None, "", "log states accept rate 1.50:"),
    ],
)  # fmt: skip
def test_a_figure_is_told_with_its_window_and_sample(samples: int | None, window: str, told: str) -> None:
    assert wrong(claim("accept rate", 1.5, samples=samples, window=window)).reasons[0].startswith(told)


@pytest.mark.parametrize(
    ("ceiling", "steps", "value", "agrees"),
    [
        pytest.param(None, 100, 4.41, True, id="within a tenth and its rounding"),
        pytest.param(None, 100, 4.43, False, id="beyond"),
        pytest.param(None, 100, 3.59, True, id="below, within"),
        pytest.param(None, 100, 3.57, False, id="below, beyond"),
        pytest.param(8, 100, 4.48, True, id="the last step may hold seven drafts more: 0.07 a step"),
        pytest.param(8, 100, 4.5, False, id="and no more"),
        pytest.param(8, 1000, 4.42, True, id="that is less over many steps"),
        pytest.param(8, 1000, 4.44, False, id="so less is allowed"),
    ],
)
def test_a_figure_over_the_probes_own_requests(
    ceiling: int | None, steps: int, value: float, agrees: bool
) -> None:
    counted = request("a", num_spec_steps=steps, num_accepted_draft_tokens=3 * steps)
    empty = request("b", num_spec_steps=50)
    other = request("c", num_accepted_draft_tokens=50)
    known: tuple[Fact, ...] = () if ceiling is None else (setup((), ceiling=ceiling),)
    case = Case((*known, counted, empty, other))
    told = metric_inconsistency._beside_measured(
        case, claim("accept length", value, window="during the probe")
    )
    assert (told == "") is agrees
    assert told == "" or f"its own requests say 4.00 ({steps} steps, 1 request)" in told


def test_a_figure_is_not_held_against_a_run_that_failed_in_part() -> None:
    counted = request("a", num_spec_steps=100, num_accepted_draft_tokens=300)
    said = claim("accept length", 2.0, window="during the probe")
    assert metric_inconsistency._beside_measured(Case((counted,)), said) != ""
    assert metric_inconsistency._beside_measured(Case((counted, request("b", error="HTTP 500"))), said) == ""
    nothing = request("a", num_spec_steps=100, num_accepted_draft_tokens=0)
    assert "say 1.00" in metric_inconsistency._beside_measured(Case((nothing,)), said)


@pytest.mark.parametrize(
    ("depth", "length", "deep"),
    [(3.0, 3.6, False), (3.0, 3.59, True), (1.0, 1.8, False), (1.0, 1.79, True), (0.99, 1.0, False), (9.0, 9.0, False)],
)  # fmt: skip
def test_a_depth_is_contradicted_by_a_length_a_tenth_below_it(
    depth: float, length: float, deep: bool
) -> None:
    """One token a step as it came out; a length within a tenth of depth and one is rounding."""
    case = Case(
        (claim("accepted depth", depth), claim("commit length", length), request("a", step_commits=(1,) * 64))
    )
    assert metric_inconsistency._deep(case, None) is deep


def test_a_depth_that_is_lost_explains_its_share_of_speed() -> None:
    """Depth three is four tokens a step; 1.25 came out."""
    shown = request("a", step_commits=(1, 1, 1, 2) * 16)
    claims = (claim("accepted depth", 3.0), claim("accepted depth", 2.0), claim("commit length", 1.25))
    ruling = metric(shown, *claims)
    assert ruling is not None
    assert (ruling.verdict.kind, ruling.voids) == ("commit_path", True)
    assert ruling.explains == pytest.approx(4 / 1.25)
    pooled = metric(request("a", ("stream", 100, 0), ("usage", 100, 50)), *claims)
    assert pooled is not None
    assert pooled.explains == pytest.approx(4.0)
    lost = metric(request("a", ("stream", 100, 25), ("usage", 100, 150), **ODD))
    assert lost is not None
    assert lost.explains == pytest.approx(2.5 / 1.25)


@pytest.mark.parametrize("tree", [True, False])
def test_a_draft_tree_is_left_out_once(tree: bool) -> None:
    lost = request("a", ("stream", 100, 0), ("usage", 100, 300), **ODD)
    verdict = wrong(setup((), tree=tree), lost)
    assert any("without the draft tree" in text for text in verdict.next) is tree
    assert not any("without the draft tree" in text for text in wrong(lost).next)


# --- forged acceptance ------------------------------------------------------------------------------------


def forged(
    *histograms: tuple[int, ...], ceiling: int = 8, arms: tuple[str, ...] = ("repeat", "prose", "code")
) -> bool:
    points = tuple(
        point(arm, SHORT, 3.0, histogram=shares) for arm, shares in zip(arms, histograms, strict=False)
    )
    return simulated_acceptance.judge(Case((setup(points, ceiling=ceiling), *points))) is not None


@pytest.mark.parametrize(
    ("histograms", "found"),
    [
        pytest.param(((0, 0, 32, 32),) * 2, True, id="64 steps in two bins"),
        pytest.param(((0, 0, 32, 31),) * 2, False, id="63 steps"),
        pytest.param(((0, 0, 100),) * 2, True, id="one bin"),
        pytest.param(((0, 50, 50),) * 2, True, id="from one right on"),
        pytest.param(((50, 50),) * 2, False, id="nothing right in some"),
        pytest.param(((0, 0, 0, 0, 0, 50, 50, 0),) * 2, True, id="up to all but one"),
        pytest.param(((0, 0, 0, 0, 0, 0, 50, 50),) * 2, False, id="everything right in some"),
        pytest.param(((0, 0, 40, 40, 20),) * 2, False, id="three bins"),
        pytest.param(((0, 0, 50, 0, 50),) * 2, False, id="two that are no neighbours"),
        pytest.param(((0, 0, 10, 90), (0, 0, 0, 100)), True, id="a tenth apart"),
        pytest.param(((0, 0, 11, 89), (0, 0, 0, 100)), False, id="more"),
        pytest.param(((0, 0, 50, 50), (0, 0, 0, 50, 50)), False, id="three bins between them"),
        pytest.param(((0, 0, 50, 50),), False, id="easy text alone"),
        pytest.param(((0, 0, 50, 50), (0, 0, 50, 50), ()), True, id="a third without a histogram"),
    ],
)
def test_the_same_few_lengths_on_every_text_are_forged(
    histograms: tuple[tuple[int, ...], ...], found: bool
) -> None:
    assert forged(*histograms) is found


def test_two_texts_that_have_nothing_in_common_are_needed() -> None:
    same = (0, 0, 50, 50)
    assert forged(same, same, arms=("far-copy near", "chat"))
    assert not forged(same, same, arms=("repeat", "repeat-wide"))
    assert not forged(same, same, arms=("prose", "code"))
    assert not forged(same, same, arms=("repeat", "verbatim"))
    points = tuple(point(arm, SHORT, 3.0, histogram=same, ceiling=None) for arm in ("repeat", "prose"))
    assert simulated_acceptance.judge(Case((setup(points, ceiling=None), *points))) is None


def loops(*told: tuple[str, str, str]) -> tuple[CommitRequest, ...]:
    """(arm, loop, error)."""
    return tuple(
        request(f"{n}", arm=arm, loop=loop, error=error) for n, (arm, loop, error) in enumerate(told)
    )


ONE = "1 token, 300 times"


@pytest.mark.parametrize(
    ("requests", "constant"),
    [
        pytest.param(loops(("prose", ONE, "")), True, id="one token over and over"),
        pytest.param(
            loops(("prose", ONE, ""), ("repeat", "", "")), True, id="repeated text may do as it likes"
        ),
        pytest.param(loops(("repeat", ONE, "")), False, id="that of repeated text alone"),
        pytest.param(loops(("prose", ONE, ""), ("code", "", "")), False, id="another text goes on"),
        pytest.param(loops(("prose", ONE, ""), ("code", "", "HTTP 500")), True, id="another one failed"),
        pytest.param(loops(("prose", "8 tokens, 14 times", "")), False, id="a longer circle"),
        pytest.param((), False, id="no request"),
    ],
)
def test_one_token_over_and_over_makes_it_sure(requests: tuple[CommitRequest, ...], constant: bool) -> None:
    points = tuple(point(arm, SHORT, 3.5, histogram=(0, 0, 50, 50)) for arm in ("repeat", "prose"))
    ruling = simulated_acceptance.judge(Case((setup(points), *points, *requests)))
    assert ruling is not None
    assert ruling.verdict.confidence == ("high" if constant else "medium")
    assert any("one token over and over" in reason for reason in ruling.verdict.reasons) is constant
    assert (ruling.explains, ruling.voids) == (math.inf, True)


def test_a_switch_is_told_once() -> None:
    process = ServerProcess(
        engine="sglang", pid=47, argv=("python",), environment=(("SGLANG_SIMULATE_ACC_LEN", "4"),)
    )
    points = (replace(point("repeat", SHORT, None), steps=0), point("prose", SHORT, 4.0))
    seen = simulated_acceptance.judge(Case((setup(points), *points, process)))
    assert seen is not None
    assert seen.verdict.reasons[0] == "SGLANG_SIMULATE_ACC_LEN is 4: every accept length is forged"
    assert seen.verdict.reasons[1].startswith("prose commits 4.00 of 8")
    linted = simulated_acceptance.judge(Case((setup(points), *points, process), (lint("EN01"),)))
    assert linted is not None
    assert linted.verdict.reasons[0] == "EN01 says so"
    assert not any("every accept length is forged" in reason for reason in linted.verdict.reasons)
    assert (linted.verdict.kind, linted.verdict.confidence, linted.verdict.missing) == ("switch", "high", ())


# --- the cache --------------------------------------------------------------------------------------------


def cache(made: CommitCheck, *known: Fact, findings: tuple[Finding, ...] = ()) -> Verdict | None:
    ruling = cache_state_bug.judge(Case((made, *known), findings))
    return None if ruling is None else ruling.verdict


LOST = check("cold-cached", False, 7.9, 1.0, arm="repeat", context_tokens=SHORT)


def served(tokens: int | None, purpose: str = "cached") -> CommitRequest:
    return request("c", purpose=purpose, cached_tokens=tokens, source=(Cite(f"{purpose} request"),))


@pytest.mark.parametrize(
    ("made", "requests", "confidence"),
    [
        pytest.param(LOST, (served(1000),), "high", id="lost, and served by the cache"),
        pytest.param(replace(LOST, steps=32), (served(1000),), "high", id="over 32 steps"),
        pytest.param(replace(LOST, steps=31), (served(1000),), "medium", id="over 31"),
        pytest.param(LOST, (), "medium", id="nobody says what the cache served"),
        pytest.param(LOST, (served(None),), "medium", id="the request does not say"),
        pytest.param(replace(LOST, first=1.0, second=7.9), (served(1000),), "medium", id="gained"),
        pytest.param(LOST, (served(0),), None, id="the cache served nothing"),
        pytest.param(LOST, (served(0), served(1000)), "high", id="it served one of two"),
        pytest.param(
            LOST, (served(0, "point"),), "medium", id="what it served of other requests does not count"
        ),
        pytest.param(replace(LOST, agrees=None), (served(1000),), None, id="not to be told"),
    ],
)
def test_the_cache_changes_what_is_accepted(
    made: CommitCheck, requests: tuple[CommitRequest, ...], confidence: str | None
) -> None:
    verdict = cache(made, *requests)
    assert (verdict.confidence if verdict else None) == confidence
    if verdict:
        known = any(r.purpose == "cached" and r.cached_tokens is not None for r in requests)
        assert (verdict.missing == ()) is known


def test_the_cache_is_cited_by_its_two_requests() -> None:
    requests = (served(1000), served(0, "cold"), served(0, "point"))
    verdict = cache(LOST, *requests)
    assert verdict is not None
    assert verdict.cites == (Cite("cold-cached"), Cite("cached request"), Cite("cold request"))
    assert "the second one took 1000 tokens of its prompt from the cache" in verdict.reasons


@pytest.mark.parametrize(
    ("fresh", "told"),
    [
        (point("repeat #2", SHORT, 7.7), True), (point("repeat #2", LONG, 7.7), False), (point("prose", SHORT, 7.7), False),
        (point("repeat", SHORT, 7.7), False),
    ],
)  # fmt: skip
def test_a_fresh_prompt_of_the_same_kind_shows_what_is_usual(fresh: CommitPoint, told: bool) -> None:
    verdict = cache(LOST, fresh, served(1000))
    assert verdict is not None
    assert any("a fresh prompt of the same kind commits 7.70" in reason for reason in verdict.reasons) is told


def test_the_advice_to_do_what_was_done_is_left_out() -> None:
    lints = (
        lint("SA11", advice="measure cold and cached"),
        lint("SA12", Outcome.WARN, advice="switch it off"),
        lint("SA12", advice=""),
    )
    verdict = cache(LOST, served(1000), findings=lints)
    assert verdict is not None
    assert verdict.next[0] == "switch it off"
    assert verdict.next[1].startswith("ddprobe commit-probe --cold")
    assert {"SA11: SA11 says so", "SA12: SA12 says so"} <= set(verdict.reasons)  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "ratio"), [(7.9, 1.0, 7.9), (7.9, 0.0, 7.9), (0.0, 3.0, 3.0), (3.0, 3.0, 1.0), (None, 3.0, 1.0)]
)  # fmt: skip
def test_a_step_gives_one_token_at_least(first: float | None, second: float | None, ratio: float) -> None:
    ruling = cache_state_bug.judge(Case((replace(LOST, first=first, second=second),)))
    assert ruling is not None
    assert ruling.explains == pytest.approx(ratio)


# --- no drafts --------------------------------------------------------------------------------------------


def idle(*points: CommitPoint, **of_setup: Any) -> Ruling | None:
    return not_speculating.judge(Case((setup(points, **of_setup), *points)))


def plain(commit: float | None = 1.0, drafted: int | None = 0, **other: Any) -> CommitPoint:
    return point("repeat", SHORT, commit, 0.0, drafted_steps=drafted, **other)


@pytest.mark.parametrize(
    ("points", "of_setup", "kind"),
    [
        pytest.param((plain(),), {}, "never_drafts", id="it says that it speculates"),
        pytest.param((plain(steps=64),), {}, "never_drafts", id="64 steps"),
        pytest.param((plain(steps=63),), {}, None, id="63 steps"),
        pytest.param(
            (plain(steps=63),), {"speculating": False}, "off", id="63 steps, and it says that it does not"
        ),
        pytest.param((plain(),), {"speculating": None}, "never_drafts", id="nobody says"),
        pytest.param((plain(),), {"drafter": "lookup"}, None, id="a lookup found nothing"),
        pytest.param(
            (plain(),), {"drafter": "lookup", "speculating": False}, "off", id="a lookup that is switched off"
        ),
        pytest.param((plain(drafted=None),), {"speculating": False}, "off", id="no source speaks of drafts"),
        pytest.param((plain(1.01, None),), {"speculating": False}, None, id="and more than one token a step"),
        pytest.param(
            (plain(None, None, steps=0),), {"speculating": False}, "off", id="and no commit is known"
        ),
        pytest.param((plain(drafted=None),), {}, None, id="it says that it does, and nobody counts"),
        pytest.param((plain(), plain(drafted=1)), {"speculating": False}, None, id="one point was drafted"),
        pytest.param((plain(failed=4),), {}, None, id="all failed"),
        pytest.param((plain(failed=3),), {}, "never_drafts", id="all but one"),
        pytest.param((), {"speculating": False}, None, id="nothing measured"),
    ],
)
def test_nothing_is_drafted(
    points: tuple[CommitPoint, ...], of_setup: dict[str, Any], kind: str | None
) -> None:
    ruling = idle(*points, **of_setup)
    assert (ruling.verdict.kind if ruling else None) == kind
    if ruling is not None:
        off = kind == "off"
        assert ruling.verdict.confidence == ("high" if off else "medium")
        assert (ruling.verdict.missing == ()) is off


@pytest.mark.parametrize(("ceiling", "explains"), [(8, 8.0), (None, 1.0)])
def test_what_speculation_could_gain_at_most(ceiling: int | None, explains: float) -> None:
    ruling = idle(plain(), ceiling=ceiling)
    assert ruling is not None
    assert ruling.explains == explains


def test_what_was_not_drafted_is_counted() -> None:
    ruling = idle(plain(failed=1), replace(plain(steps=50), context_tokens=2 * SHORT))
    assert ruling is not None
    assert ruling.verdict.reasons == (
        "although the server says that it speculates",
        "no token was drafted in 150 decode steps of 7 requests",
    )
    nobody = idle(plain(), speculating=None)
    assert nobody is not None
    assert nobody.verdict.reasons[0] == "the server does not say whether it speculates"


# --- facts of one server ----------------------------------------------------------------------------------

OTHER = "sglang pid 48"


@pytest.mark.parametrize(
    ("mine", "config", "found"),
    [
        pytest.param(SERVER, SERVER, True, id="its own"),
        pytest.param(SERVER, OTHER, False, id="another's"),
        pytest.param(SERVER, "", True, id="named by hand"),
        pytest.param("", OTHER, True, id="the server has no name"),
        pytest.param("", "", True, id="neither has one"),
    ],
)
def test_a_configuration_is_of_this_server_or_of_none(mine: str, config: str, found: bool) -> None:
    known = ModelConfig(role="drafter", path="/d", server=config)
    case = Case((setup((), server=mine), known))
    assert (case.config("drafter") is known) is found
    assert case.config("target") is None


def test_its_own_configuration_comes_before_one_named_by_hand() -> None:
    by_hand, own = (ModelConfig(role="drafter", path="/d", server=name) for name in ("", SERVER))
    assert Case((setup(()), by_hand, own)).config("drafter") is own
    assert Case((setup((), server=""), by_hand, own)).config("drafter") is by_hand


def arguments(value: Any, server: str = SERVER, resolved: bool = False) -> ServerArgs:
    return ServerArgs(
        engine="sglang", origin="x", values=(("tp_size", value),), server=server, resolved=resolved
    )


@pytest.mark.parametrize(
    ("known", "mine", "value"),
    [
        pytest.param((arguments(4),), SERVER, 4, id="its own"),
        pytest.param((arguments(4, OTHER),), SERVER, None, id="another's"),
        pytest.param((arguments(4, ""),), SERVER, 4, id="of no server"),
        pytest.param((arguments(4, OTHER),), "", 4, id="the server has no name"),
        pytest.param((arguments(4), arguments(8, resolved=True)), SERVER, 8, id="as it resolved it, before what was given"),
        pytest.param((arguments(4), arguments(None, resolved=True)), SERVER, 4, id="as given, where it resolved none"),
        pytest.param((), SERVER, None, id="none"),
    ],
)  # fmt: skip
def test_an_argument_is_of_this_server(known: tuple[Fact, ...], mine: str, value: int | None) -> None:
    assert Case((setup((), server=mine), *known)).argument("tp_size") == value


@pytest.mark.parametrize(
    ("mine", "subject", "found"),
    [
        (SERVER, f"environment of {SERVER}", True), (SERVER, f"environment of {OTHER}", False), (SERVER, "drafter", True),
        ("", f"environment of {OTHER}", True),
    ],
)  # fmt: skip
def test_a_finding_on_another_server_does_not_count(mine: str, subject: str, found: bool) -> None:
    processes = tuple(ServerProcess(engine="sglang", pid=pid, argv=("python",)) for pid in (47, 48))
    case = Case((setup((), server=mine), *processes), (lint("EN01", subject=subject),))
    assert bool(case.found(Outcome.FAIL, "EN01")) is found
    assert case.found(Outcome.WARN, "EN01") == case.found(Outcome.FAIL, "EN02") == ()


def test_points_stand_by_arm_in_the_order_of_measuring_then_by_length() -> None:
    prose, again = ladder("prose", 3.0, 3.0, 3.0), replace(EASY[0], purpose="again")
    case = Case((prose[2], *reversed(EASY), prose[0], again))
    assert case.points == (prose[0], prose[2], *EASY)
    assert (case.again, case.first) == (again, EASY[0])
    assert Case((again,)).first is Case(EASY).first is None


# --- words ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0, "0"), (0.00009, "0"), (0.0001, "0.0001"), (0.00011, "0.00011"), (7.756, "7.76"), (999.4, "999"), (999.5, "1000"),
        (1030.0, "1030"), (-2.84, "-2.84"), (-1030.4, "-1030"),
    ],
)  # fmt: skip
def test_three_digits_and_no_power_of_ten(value: float, told: str) -> None:
    assert words.short(value) == told


@pytest.mark.parametrize(("number", "told"), [(0, "0 steps"), (1, "1 step"), (2, "2 steps")])
def test_one_of_a_thing_has_no_plural(number: int, told: str) -> None:
    assert words.count(number, "step") == told


def test_a_step_time_is_told_with_its_spread_where_that_is_known() -> None:
    bare = point("repeat", SHORT, 7.9, step_ms=20.0, timed_steps=63)
    assert words.steps_of(bare) == "20 ms (63 timed steps) at 1k"
    spread = replace(bare, step_ms_low=19.0, step_ms_high=21.0)
    assert words.steps_of(spread) == "20 ms (10–90 % 19–21, 63 timed steps) at 1k"
    for half in (replace(spread, step_ms_low=None), replace(spread, step_ms_high=None)):
        assert words.steps_of(half) == words.steps_of(bare)
    assert words.steps_of(replace(bare, step_ms=None)).startswith("unknown (")


def test_a_commit_is_told_with_its_interval_and_its_sample() -> None:
    whole = point("repeat", SHORT, 7.9, requests=4, failed=1)
    assert words.number(whole) == "7.90 of 8 (95 % 7.8–8.0, 100 steps, 3 requests)"
    assert words.number(replace(whole, ceiling=None), 16).startswith("7.90 of 16 (")
    assert words.number(replace(whole, ceiling=None)).startswith("7.90 (")
    assert "no interval, " in words.number(replace(whole, commit_low=None))
    assert "no interval, " in words.number(replace(whole, commit_high=None))
    assert words.number(replace(whole, commit_mean=None)) == "no measurement (1 failed request)"
    several = [replace(whole, context_tokens=length) for length in (SHORT, 2048, 0)]
    assert words.commits(several).count(" and ") == 1
    assert words.commits(several).endswith("as sent")
    assert words.commits(several[:1]).count("commits") == 1


def test_sixteen_places_are_cited_at_most_and_each_once() -> None:
    points = [point("repeat", length, 7.9) for length in range(1, 30)]
    assert len(words.cites(*points)) == 16
    assert words.cites(points[0], None, points[0]) == points[0].source


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("metric_inconsistency", "commit_path", "Tokens are accepted and never come out"),
        ("metric_inconsistency", "", "The numbers contradict each other"), ("healthy", "x", "Speculation works"),
    ],
)  # fmt: skip
def test_a_kind_has_its_own_meaning_where_it_has_one(name: str, kind: str, told: str) -> None:
    assert words.meaning(name, kind).startswith(told)
    assert words.meaning("a name of tomorrow", kind) == ""


@pytest.mark.parametrize(
    ("sentence", "host", "told"),
    [
        ("run ddprobe commit-probe --arms repeat", "gpu1", "run ddprobe commit-probe gpu1 --arms repeat"),
        ("run ddprobe server (now)", "gpu1", "run ddprobe server gpu1 (now)"),
        ("run ddprobe server gpu1", "gpu1", "run ddprobe server gpu1"), ("run ddprobe server", "", "run ddprobe server"),
        ("ddprobe grep 'a|b' shows it", "a b", "ddprobe grep 'a|b' 'a b' shows it"),
    ],
)  # fmt: skip
def test_a_command_is_told_for_its_host(sentence: str, host: str, told: str) -> None:
    assert words.on_host(sentence, host) == told


def test_a_command_measures_lengths_in_their_order() -> None:
    case = Case((*reversed(EASY), point("verbatim", 0, 7.9)))
    assert words.command(case, ["repeat"]) == "ddprobe commit-probe --contexts 1k,16k,128k --arms repeat"
    assert (
        words.command(case, ["a", "b"], [2048, 512, 512])
        == "ddprobe commit-probe --contexts 512,2k --arms a,b"
    )
    assert words.command(Case(()), ["repeat"]) == "ddprobe commit-probe --arms repeat"


def test_the_least_confidence_counts() -> None:
    assert weakest("high", "medium") == "medium"
    assert weakest("low", "high", "medium") == "low"
    assert weakest("high") == "high"
