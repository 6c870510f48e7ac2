"""Verdicts on arguments, counters and logs of others, on their limits and beside them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ddprobe.evidence.claims import STATEMENT
from ddprobe.facts import (
    Acceptance,
    Claim,
    CommitRequest,
    DecodeBin,
    DecodeSeries,
    LogEvent,
    ModelConfig,
    ServerProcess,
)
from ddprobe.model import Fact, Outcome
from ddprobe.parsing.accept_rates import ABOVE_ONE, CORRECT, WITH_BONUS
from tests.collected_facts import ruling, verdict
from tests.test_collected import SPECULATES, args, bins, fail, judged, log, names, point, repeat

OFF, LIES = "not_speculating", "metric_inconsistency"
NO_ARGUMENT = args("vllm", model="m")


# --- what silences what -----------------------------------------------------------------------------------


def test_made_up_acceptance_says_nothing_of_the_drafter() -> None:
    forged = (fail("EN01"),)
    assert names(*repeat(1.0, 1.0, 1.0), findings=forged) == ["simulated_acceptance"]
    assert names(*repeat(7.9, 7.9, 1.0), findings=forged) == ["simulated_acceptance"]


def test_tokens_that_are_lost_say_nothing_of_the_drafter() -> None:
    """An accepted depth of 3 beside a length of 1, and one token a step comes out of each of 64."""
    length = Claim(what="commit length", value=1.0, origin="avg_commit_len")
    depth = Claim(what="accepted depth", value=3.0, origin="avg_accepted_depth")
    asked = CommitRequest(
        key="a", purpose="point", arm="repeat", context_tokens=1024, prompt=0, step_commits=(1,) * 64
    )
    assert names(*repeat(1.0, 1.0, 1.0), length, depth, asked) == [LIES]
    assert set(names(*repeat(1.0, 1.0, 1.0), length)) == {"drafter_dead"}


def test_a_server_that_drafts_nothing_has_no_drafter_to_judge() -> None:
    idle = [dataclasses.replace(fact, drafted_steps=0) for fact in repeat(1.0, 1.0, 1.0)]
    assert names(*idle) == [OFF]
    nothing = (Acceptance(commit=1.0, steps=0, origin="/metrics"), Acceptance(steps=0, origin="log"))
    assert names(*nothing, *idle) == [OFF]


def test_a_server_that_never_came_up_is_all_there_is_to_say() -> None:
    died = (
        LogEvent(
            kind="crash",
            text="ValueError: draft model config has no quant",
            line=9,
            values=(("phase", "start"),),
        ),
        LogEvent(kind="died", text="Received sigquit", line=10),
    )
    assert names(*died, NO_ARGUMENT, findings=(fail("DC43"),)) == ["startup_incompatible", OFF]


# --- off --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draft", "off"),
    [
        pytest.param(point("repeat", 1024, 1.0, drafted_steps=1), False, id="one step with a draft"),
        pytest.param(point("repeat", 1024, 1.02, drafted_steps=None), True, id="1.02 may be rounding"),
        pytest.param(point("repeat", 1024, 1.03, drafted_steps=None), False, id="more than one token a step"),
        pytest.param(point("repeat", 1024, None, drafted_steps=None), True, id="no commit"),
        pytest.param(Acceptance(commit=1.0, steps=None, origin="log"), False, id="a stated commit"),
        pytest.param(Acceptance(commit=1.0, steps=1, origin="log"), False, id="of one step"),
        pytest.param(Acceptance(commit=1.0, steps=0, origin="log"), True, id="of no step"),
        pytest.param(Acceptance(rate=0.5, origin="log"), False, id="a stated rate"),
        pytest.param(Acceptance(steps=5, origin="log"), True, id="steps alone"),
        pytest.param(log(*bins(1.0, 1.0)), False, id="decode lines with a commit"),
    ],
)
def test_a_draft_anywhere_is_speculation(draft: Fact, off: bool) -> None:
    assert (OFF in names(NO_ARGUMENT, draft)) is off


def test_arguments_alone_are_half_of_it() -> None:
    found = ruling(OFF, NO_ARGUMENT)
    assert (found.verdict.confidence, found.verdict.ruled_out, found.explains) == ("medium", (), 1.0)
    assert found.verdict.missing == ("counters or log lines of the drafts: are there any?",)
    assert OFF not in names(SPECULATES)
    assert OFF not in names(args("sglang", model_path="m", speculative_algorithm="EAGLE"))


def test_counters_that_agree_with_the_arguments_make_it_sure() -> None:
    nothing = Acceptance(steps=0, origin="/metrics", draft_tokens=4)
    found = ruling(OFF, NO_ARGUMENT, nothing)
    assert (found.verdict.kind, found.verdict.confidence, found.verdict.missing) == ("off", "high", ())
    assert found.explains == 5.0
    assert "/metrics counts no draft" in found.verdict.reasons
    alone = ruling(OFF, SPECULATES, nothing)
    assert (alone.verdict.kind, alone.verdict.confidence) == ("never_drafts", "medium")
    assert alone.explains == 8.0


def test_a_drafter_that_is_given_and_not_used_makes_it_sure() -> None:
    found = ruling(OFF, findings=(fail("EN04"),))
    assert (found.verdict.kind, found.verdict.confidence, found.explains) == ("off", "high", 1.0)
    assert found.verdict.next[0] == "mend EN04"
    assert ruling(OFF, *(args("vllm", num_speculative_tokens=4),), findings=(fail("ST05"),)).explains == 5.0


@pytest.mark.parametrize(
    "other",
    [
        Acceptance(steps=1, origin="b"),
        Acceptance(steps=None, origin="b"),
    ],
)
def test_one_source_that_counts_no_draft_among_others_is_not_idle(other: Fact) -> None:
    nothing = Acceptance(steps=0, origin="a")
    assert OFF in names(nothing)
    assert OFF not in names(nothing, other)


@pytest.mark.parametrize(
    ("facts", "idle"),
    [
        pytest.param((DecodeSeries(engine="sglang", lines=4, off_lines=4),), True, id="no line has a figure"),
        pytest.param((DecodeSeries(engine="sglang", lines=4, off_lines=3),), False, id="one line has one"),
        pytest.param((DecodeSeries(engine="sglang", lines=0, off_lines=0),), False, id="no line at all"),
        pytest.param(
            (DecodeSeries(engine="sglang", lines=4, off_lines=4), DecodeSeries(engine="sglang", lines=4, off_lines=3)),
            False, id="another log has one",
        ),
        pytest.param((point("prose", 1024, 1.0, drafted_steps=0),), True, id="points without drafts"),
        pytest.param(
            (point("prose", 1024, 1.0, drafted_steps=0), point("prose", 2048, 1.0, drafted_steps=None)),
            False, id="a point that does not say",
        ),
        pytest.param((point("prose", 1024, 1.0, drafted_steps=0, purpose="again"),), False, id="no point proper"),
        pytest.param((point("prose", 1024, 1.0, drafted_steps=0, purpose="cold"),), True, id="a cold one"),
    ],
)  # fmt: skip
def test_what_would_show_drafts_and_shows_none(facts: tuple[Fact, ...], idle: bool) -> None:
    assert (OFF in names(*facts)) is idle


def test_how_much_shows_none() -> None:
    logs = [DecodeSeries(engine="sglang", lines=lines, off_lines=lines) for lines in (4, 6)]
    assert "none of 10 decode lines has an acceptance figure" in verdict(OFF, *logs).reasons


@pytest.mark.parametrize(
    ("environment", "meant"),
    [
        ((("OPTION_SPECULATIVE_DRAFT_MODEL", "/d"),), True),
        ((("MY_DRAFT", "/d"),), True),
        ((("SGLANG_SPECULATIVE", "1"),), True),
        ((("MY_DRAFT", ""),), False),
        ((("MODEL", "/d"),), False),
    ],
)
def test_a_drafter_that_is_named_where_it_is_not_read(
    environment: tuple[tuple[str, str], ...], meant: bool
) -> None:
    process = ServerProcess(engine="vllm", pid=0, argv=(), environment=environment)
    found = verdict(OFF, NO_ARGUMENT, process)
    assert (found.confidence == "high") is meant
    assert any("a drafter is meant all the same" in reason for reason in found.reasons) is meant


@pytest.mark.parametrize(
    ("kind", "told"), [("draft_unused", True), ("speculation_off", True), ("ready", False)]
)
def test_lines_that_say_that_a_drafter_is_not_used(kind: str, told: bool) -> None:
    found = verdict(OFF, NO_ARGUMENT, LogEvent(kind=kind, text="speculative decoding is off"))
    assert (f"{kind}: speculative decoding is off" in found.reasons) is told


def test_a_drafter_that_lies_beside_a_server_unused() -> None:
    told = "a drafter's configuration lies beside it, unused"
    drafter = ModelConfig(role="drafter", path="config.json")
    assert told in verdict(OFF, NO_ARGUMENT, drafter).reasons
    assert told not in verdict(OFF, SPECULATES, drafter, Acceptance(steps=0, origin="a")).reasons
    assert told not in verdict(OFF, NO_ARGUMENT).reasons


# --- counters ---------------------------------------------------------------------------------------------


def asked(count: int = 10, **other: Any) -> list[CommitRequest]:
    """Requests of 50 tokens in 20 steps each."""
    known: dict[str, Any] = {"output_tokens": 50, "num_spec_steps": 20, **other}
    return [
        CommitRequest(key="r", purpose="point", arm="", context_tokens=0, prompt=n, **known)
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("steps", "compared"), [(210, True), (190, True), (211, False), (189, False), (None, False)]
)
def test_steps_within_a_twentieth_are_of_one_run(steps: int | None, compared: bool) -> None:
    assert (LIES in names(*asked(), Acceptance(commit=4.0, steps=steps, origin="/metrics"))) is compared


def test_requests_that_do_not_tell_are_left_out() -> None:
    counter = Acceptance(commit=4.0, steps=200, origin="/metrics")
    silent = [*asked(output_tokens=None), *asked(num_spec_steps=None), *asked(num_spec_steps=0)]
    assert LIES in names(*asked(), *silent, counter)
    assert LIES not in names(*silent, counter)


def test_an_empty_answer_counts() -> None:
    """500 tokens of 10 requests in 200 steps, and 2 requests of 5 steps that gave none: 500 / 210."""
    empty = asked(2, output_tokens=0, num_spec_steps=5)
    found = verdict(LIES, *asked(), *empty, Acceptance(commit=4.0, steps=210, origin="/metrics"))
    assert "the 12 requests of these steps returned 2.38 per step" in found.reasons[0]


def test_too_many_and_too_few_are_told_apart() -> None:
    more = verdict(LIES, *asked(), Acceptance(commit=4.0, steps=200, origin="/metrics"))
    assert more.reasons[1].startswith(
        "tokens that are accepted behind the end of an answer are counted there"
    )
    fewer = verdict(LIES, *asked(), Acceptance(commit=1.5, steps=200, origin="/metrics"))
    assert fewer.reasons[1] == "fewer are counted than came"


def test_ten_percent_either_way_are_allowed() -> None:
    """512 tokens of 16 requests in 256 steps: 1.9375 and 2.0; a tenth below and above: 1.74375 and 2.2."""
    requests = asked(16, output_tokens=32, num_spec_steps=16)
    for commit, found in ((2.2, False), (2.21, True), (1.9375 * 0.9, False), (1.743, True)):
        assert (LIES in names(*requests, Acceptance(commit=commit, steps=256, origin="/metrics"))) is found


def test_two_checks_that_contradict_are_surer_than_one() -> None:
    facts = (*asked(), Acceptance(commit=4.0, steps=200, origin="/metrics"))
    assert verdict(LIES, *facts).confidence == "medium"
    # The same comparison once more is no second one.
    assert verdict(LIES, *facts, findings=(fail("MC04"),)).confidence == "medium"
    found = verdict(LIES, *facts, findings=(fail("MC05"),))
    assert (found.confidence, found.reasons[-1]) == ("high", "MC05: wrong")


def test_one_failed_check_and_two() -> None:
    assert verdict(LIES, findings=(fail("MC05"),)).confidence == "medium"
    found = verdict(LIES, findings=(fail("MC05"), fail("MC06")))
    assert (found.confidence, found.reasons) == ("high", ("MC05: wrong", "MC06: wrong"))


def test_a_failed_check_elsewhere_is_no_matter_of_figures() -> None:
    assert names(findings=(fail("SA09"),)) == ["inconclusive"]
    passed = dataclasses.replace(fail("MC05"), outcome=Outcome.PASS)
    assert names(findings=(passed,)) == ["inconclusive"]


# --- formulas ---------------------------------------------------------------------------------------------

RATE = Claim(what="accept rate", value=0.33, origin=STATEMENT)


def test_a_rate_that_counts_the_bonus_token_is_told_as_the_log_prints_it() -> None:
    """A length of 1.00 over K + 1 = 3 prints 0.33; over K = 2 it prints 0.50."""
    with_bonus = log(*bins(1.0, 1.0), draft_tokens=2, rate_definition=WITH_BONUS)
    told = "accept length 1.00 beside a rate of 0.33 is next to nothing right: the bonus token alone makes that rate"
    assert told in verdict(LIES, with_bonus, RATE).reasons
    above_one = dataclasses.replace(with_bonus, rate_definition=ABOVE_ONE)
    assert told.replace("0.33", "0.50") in verdict(LIES, above_one, RATE).reasons
    unknown = dataclasses.replace(with_bonus, draft_tokens=None)
    assert told.replace(" beside a rate of 0.33", "") in verdict(LIES, unknown, RATE).reasons


def test_only_a_rate_that_somebody_states_can_mislead() -> None:
    hiding = log(*bins(1.0, 1.0), rate_definition=WITH_BONUS)
    length = dataclasses.replace(RATE, what="accept length", value=1.0)
    assert LIES in names(hiding, RATE)
    assert LIES not in names(hiding, length)
    # 1.00 is no secret where the rate says 0.
    assert LIES not in names(log(*bins(1.0, 1.0), rate_definition=CORRECT), RATE)
    assert LIES not in names(log(*bins(2.0, 2.0), rate_definition=WITH_BONUS), RATE)


def test_two_formulas_are_surer_than_one_that_hides() -> None:
    hiding = log(*bins(1.0, 1.0), draft_tokens=2, rate_definition=WITH_BONUS)
    other = log(*bins(2.9, 2.8), draft_tokens=3, rate_definition=CORRECT)
    both = verdict(LIES, hiding, other)
    assert (both.confidence, both.reasons[0]) == ("high", "one name, accept rate, and different formulas")
    assert "8 lines with accept length 2.90 at most: rate = (len - 1) / K with K = 3" in both.reasons
    one = verdict(LIES, hiding, RATE)
    assert (one.confidence, one.reasons[0]) == ("medium", "an accept rate that counts the bonus token")


def test_a_log_without_a_formula_or_without_lengths_is_compared_with_none() -> None:
    known = log(*bins(2.9, 2.8), rate_definition=CORRECT)
    assert LIES not in names(known, log(*bins(2.9, 2.8)))
    silent = tuple(dataclasses.replace(bin, commit_mean=None, commit_high=None) for bin in bins(1.0, 1.0))
    assert LIES not in names(known, log(*silent, rate_definition=WITH_BONUS), RATE)


def test_the_best_line_of_a_log_is_its_mean_where_lines_are_not_told_apart() -> None:
    whole: tuple[DecodeBin, ...] = tuple(
        dataclasses.replace(bin, commit_low=None, commit_high=None) for bin in bins(2.9, 2.8)
    )
    other = log(*bins(2.1, 2.0), rate_definition=WITH_BONUS)
    assert (
        "8 lines with accept length 2.90 at most: rate = (len - 1) / K with K = 7"
        in verdict(LIES, log(*whole, rate_definition=CORRECT), other).reasons
    )


# --- lookup, other output ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["NGRAM", "SUFFIX", "PROMPT_LOOKUP"])
def test_what_looks_text_up_is_no_drafter_to_judge(name: str) -> None:
    looked_up = args(speculative_algorithm=name, speculative_num_draft_tokens=8)
    assert [(v.name, v.kind) for v in judged(*repeat(1.0, 1.0, 1.0), looked_up)] == [
        ("inconclusive", "lookup")
    ]


def test_output_that_differs_is_told_with_what_is_missing() -> None:
    found = ruling("verify_not_lossless", findings=(fail("RT05"),))
    assert (found.explains, found.verdict.confidence) == (1.0, "medium")
    passed = dataclasses.replace(fail("RT05"), outcome=Outcome.PASS)
    assert names(findings=(passed,)) == ["inconclusive"]
