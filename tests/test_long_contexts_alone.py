"""Logs that hold long contexts only, edges beside a limit, and the ceiling of a tree: nothing is concluded that was not seen."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe.facts import DecodeBin, DecodeSeries
from ddprobe.model import Fact
from ddprobe.verdicts import hypotheses
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import figures
from tests.collected_facts import BUG, DEAD, drafter, figure, of, verdict
from tests.test_collected import SPECULATES, args, fail, judged, log, names

POSITION = (fail("DC35"),)
LIMITED = (drafter(max_position_embeddings=40960), SPECULATES)


def ranged(*told: tuple[int, float], lines: int = 12) -> DecodeSeries:
    return log(
        *(
            DecodeBin(
                1 << (tokens.bit_length() - 1), 1 << tokens.bit_length(), 1, lines, commit, commit, commit, 0.5, 50.0,
                graph_share=1.0, tokens=float(tokens),
            )
            for tokens, commit in told
        )
    )  # fmt: skip


@pytest.mark.parametrize(("tokens", "found"), [(16383, True), (16384, False), (82000, False)])
def test_a_log_of_long_contexts_alone_names_no_dead_drafter(tokens: int, found: bool) -> None:
    assert (DEAD in names(ranged((tokens, 1.01)))) is found


def test_what_is_said_of_it_instead() -> None:
    open_ = verdict("inconclusive", ranged((82000, 1.01)))
    assert open_.reasons[0] == (
        "nothing in the log is right, and all of it is of 64k tokens and more: dead, or broken by the length alone"
    )
    assert open_.missing[0] == "log lines, or repeated text, of prompts at 2048 tokens or fewer"


def test_a_short_line_among_them_is_enough() -> None:
    assert DEAD in names(ranged((1500, 1.01), (82000, 1.01)))


@pytest.mark.parametrize(
    ("series", "found"),
    [
        (ranged((82000, 1.01)), True),
        (ranged((82000, 1.06)), False),
        (ranged((82000, 1.01), lines=3), False),
        (ranged((34000, 1.01)), False),
    ],
    ids=["beyond it", "something is right", "few lines", "below it"],
)
def test_all_of_a_log_beyond_a_limit_that_an_error_names(series: DecodeSeries, found: bool) -> None:
    given = names(series, *LIMITED, findings=POSITION)
    assert (BUG in given) is found
    if found:
        told = verdict(BUG, series, *LIMITED, findings=POSITION)
        assert (told.kind, told.confidence) == ("rope_position", "low")
        assert told.missing == (
            "lines of prompts below that length: a dead drafter would look the same beyond it",
        )
        assert "--contexts 1k," in told.next[-1]


@pytest.mark.parametrize(("first", "named"), [(42000, True), (40960, True), (40200, True), (38020, False)])
def test_a_limit_beyond_the_edge_explains_nothing(first: int, named: bool) -> None:
    """The fall lies at 38020 tokens, and the drafter's positions reach to 40960."""
    series = ranged((17000, 3.1), (first, 1.0))
    assert (BUG in names(series, *LIMITED, findings=POSITION)) is named
    many = ranged((17000, 3.1), (first, 1.0), lines=16)
    told = verdict(BUG, many, *LIMITED, findings=POSITION)
    assert told.kind == ("rope_position" if named else "")


def test_what_is_known_is_not_asked_for() -> None:
    series = ranged((17000, 3.1), (38020, 1.0), lines=16)
    known = args(speculative_algorithm="DFLASH", speculative_num_draft_tokens=8)
    assert verdict(BUG, series).missing[1] == (
        "the drafter's config.json and the server's arguments: which limit lies there?"
    )
    assert verdict(BUG, series, known).missing[1] == "the drafter's config.json: which limit lies there?"
    assert len(verdict(BUG, series, known, drafter()).missing) == 1


def ledger(*facts: Fact) -> tuple[str, str]:
    line = next(
        h for h in hypotheses.ledger(Case(facts, ()), judged(*facts)) if h.name == "drafter_long_context"
    )
    return line.status, line.evidence


def test_a_dead_drafter_refutes_the_length_only_where_a_length_is_known() -> None:
    status, why = ledger(ranged((1500, 1.0)))
    assert (status, why.startswith("it is so from 1k tokens on: ")) == (hypotheses.REFUTED, True)
    status, why = ledger(figure(1.0))
    assert (status, why.startswith("no context is told: ")) == (hypotheses.UNTESTED, True)
    status, why = ledger(*of(9, 1.0, 1.0))
    assert (status, why.startswith("it is so at the shortest length: ")) == (hypotheses.REFUTED, True)


@pytest.mark.parametrize(
    ("given", "most"),
    [
        ({"speculative_algorithm": "EAGLE3", "speculative_num_steps": 5, "speculative_eagle_topk": 8, "speculative_num_draft_tokens": 32}, 6),
        ({"speculative_algorithm": "EAGLE", "speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}, 4),
        ({"speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": 16}, 16),
    ],
)  # fmt: skip
def test_the_ceiling_of_a_tree_is_its_depth(given: dict[str, Any], most: int) -> None:
    assert figures.ceiling(Case((args(**given),), ())) == most
