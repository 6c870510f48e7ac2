"""A drafter that is lost with length by what others measured, at the limits and beside them."""

from __future__ import annotations

import dataclasses

import pytest

from ddprobe.facts import CommitPoint, DecodeBin, DecodeSeries, ModelConfig
from ddprobe.facts.models import Rope
from ddprobe.model import Fact
from tests.collected_facts import (
    BUG,
    DEAD,
    DECAY,
    drafter,
    figure,
    of,
    reasons,
    ruling,
    verdict,
)
from tests.test_collected import SPECULATES, args, bins, fail, log, names, point, repeat

# --- a collapse -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "found"), [(5.0, BUG), (4.9, "inconclusive")])
def test_a_drafter_that_was_half_alive_can_collapse(first: float, found: str) -> None:
    assert names(*of(9, first, 1.0)) == [found]


@pytest.mark.parametrize(("first", "found"), [(1.51, BUG), (1.5, DEAD)])
def test_without_a_block_size_more_than_dead_is_alive(first: float, found: str) -> None:
    assert names(*of(None, first, 1.0)) == [found]


@pytest.mark.parametrize(("commit", "found"), [(4.99, BUG), (5.0, DECAY)])
def test_half_of_the_drafts_kept_is_a_slope(commit: float, found: str) -> None:
    assert names(*of(9, 9.0, commit)) == [found]


def test_the_edge_lies_before_the_first_length_at_which_half_is_lost() -> None:
    five = (1024, 4096, 16384, 32768, 65536)
    told = reasons(BUG, *of(9, 9.0, 8.0, 5.0, 4.9, 1.0, contexts=five))
    assert "it is lost between 16k and 32k" in told
    assert "repeat commits 9.00 of 9 (100 steps) at 1k, 5.00 of 9 (100 steps) at 16k, 4.90 of 9" in told


@pytest.mark.parametrize(("last", "found"), [(10.0, "inconclusive"), (9.9, BUG)])
def test_a_length_beyond_it_with_nine_tenths_is_no_limit(last: float, found: str) -> None:
    """1 + 0.9 × 10 = 10."""
    assert names(*of(11, 11.0, 1.0, last)) == [found]


@pytest.mark.parametrize(
    ("limit", "within"),
    [(9800, True), (9799, False), (20400, True), (20401, False), (15000, True)],
)
def test_a_limit_may_lie_two_percent_outside_the_edge(limit: int, within: bool) -> None:
    facts = of(9, 9.0, 9.0, 1.0, contexts=(1000, 10000, 20000))
    found = verdict(BUG, *facts, drafter(max_position_embeddings=limit), SPECULATES)
    assert ("within it lies" in "\n".join(found.reasons)) is within
    assert found.kind == ("rope_position" if within else "")
    assert found.confidence == ("high" if within else "medium")


def test_a_cause_without_a_length_is_one_to_try_out() -> None:
    """An error on the rotation explains a fall, and nothing places it: the edge is wide, and no limit lies in it."""
    found = verdict(BUG, *repeat(7.9, 7.9, 1.0), findings=(fail("DC39"),))
    assert (found.kind, found.confidence) == ("rope_position", "medium")
    narrow = of(9, 9.0, 9.0, 1.0, contexts=(1000, 10000, 12500))
    assert verdict(BUG, *narrow).confidence == "high"
    assert verdict(BUG, *of(9, 9.0, 9.0, 1.0, contexts=(1000, 10000, 12501))).confidence == "medium"


def test_few_steps_make_a_collapse_less_sure() -> None:
    facts = of(9, 9.0, 9.0, 1.0, contexts=(1000, 10000, 12500))
    sizes = {16: "high", 15: "medium", 0: "medium"}
    for steps, confidence in sizes.items():
        points = [dataclasses.replace(fact, steps=steps, drafted_steps=None) for fact in facts]
        assert verdict(BUG, *points).confidence == confidence


def test_what_a_collapse_lacks() -> None:
    wide = verdict(BUG, *of(9, 9.0, 9.0, 1.0, contexts=(1000, 10000, 12501))).missing
    assert [text.split(":")[0] for text in wide] == [
        "the edge itself",
        "the drafter's config.json and the server's arguments",
    ]
    narrow = verdict(
        BUG, *of(9, 9.0, 9.0, 1.0, contexts=(1000, 10000, 12500)), findings=(fail("DC35"),)
    ).missing
    assert narrow == ()
    limit = drafter(max_position_embeddings=11000)
    assert verdict(BUG, *of(9, 9.0, 9.0, 1.0, contexts=(1000, 10000, 12500)), limit, SPECULATES).missing == ()


def test_two_limits_of_different_kinds_name_none() -> None:
    facts = of(9, 9.0, 9.0, 1.0, contexts=(1000, 10000, 20000))
    both = drafter(max_position_embeddings=15000, sliding_window=12000)
    assert verdict(BUG, *facts, both, SPECULATES).kind == ""
    same = drafter(max_position_embeddings=15000, rope=Rope(original_max_position=12000))
    found = verdict(BUG, *facts, same, SPECULATES)
    assert found.kind == "rope_position"
    assert "ddprobe commit-probe --contexts 11160,12840 --arms repeat" in found.next


@pytest.mark.parametrize(
    ("id", "kind"), [("DC34", "rope_position"), ("DC20", "window_ignored"), ("DC01", "")]
)
def test_errors_give_the_kind_where_no_limit_does(id: str, kind: str) -> None:
    assert verdict(BUG, *repeat(7.9, 7.9, 1.0), findings=(fail(id),)).kind == kind


def test_both_sides_of_a_limit_are_measured_next() -> None:
    facts = of(9, 9.0, 9.0, 1.0, contexts=(1000, 10000, 20000))
    limit = verdict(BUG, *facts, drafter(max_position_embeddings=15000), SPECULATES).next
    assert "ddprobe commit-probe --contexts 13950,16050 --arms repeat" in limit
    assert "ddprobe commit-probe --contexts 10000,15000,20000 --arms repeat" in verdict(BUG, *facts).next


def test_what_a_collapse_costs() -> None:
    assert ruling(BUG, *repeat(8.0, 2.0, 2.5)).explains == 4.0


# --- limits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ((drafter(sliding_window=11000),), "the drafter's sliding_window"),
        ((drafter(sliding_window=11000, use_sliding_window=True),), "the drafter's sliding_window"),
        ((drafter(sliding_window=11000, use_sliding_window=False),), ""),
        (
            (drafter(rope=Rope(original_max_position=11000)),),
            "the drafter's original_max_position_embeddings",
        ),
        ((drafter(context_length=11000),), "the drafter's own length"),
        (
            (ModelConfig(role="target", path="t", max_position_embeddings=11000),),
            "max_position_embeddings of the checkpoint",
        ),
        ((drafter(), ModelConfig(role="target", path="t", max_position_embeddings=11000)), ""),
        ((args("llamacpp", draft_context_length=11000),), "the server's draft_context_length"),
        (
            (args(speculative_algorithm="DFLASH", speculative_draft_window_size=11000),),
            "--speculative-draft-window-size",
        ),
    ],
)
def test_lengths_at_which_something_changes(facts: tuple[Fact, ...], name: str) -> None:
    told = reasons(BUG, *of(9, 9.0, 9.0, 1.0, contexts=(1000, 10000, 12500)), *facts)
    assert (f"within it lies {name} (11000 tokens)" in told) if name else ("within it lies" not in told)


# --- a slope --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("last", "found"), [(10.0, "inconclusive"), (9.9, DECAY)])
def test_a_dip_that_is_made_good_is_no_slope(last: float, found: str) -> None:
    assert names(*of(11, 11.0, 8.0, last)) == [found]


@pytest.mark.parametrize(("last", "kind", "confidence"), [(5.0, "", "medium"), (4.99, "steep", "low")])
def test_less_than_half_of_prose_is_steep(last: float, kind: str, confidence: str) -> None:
    prose = [
        point("prose", context, commit, ceiling=12)
        for context, commit in ((1024, 10.0), (16384, 8.0), (65536, last))
    ]
    # In blocks of 12 repeated text is far above, and a fading text is none that is hard.
    found = verdict(DECAY, *of(8, 7.9, 7.9, 7.9), *prose)
    assert (found.kind, found.confidence) == (kind, confidence)
    assert ruling(DECAY, *of(8, 7.9, 7.9, 7.9), *prose).explains == 10.0 / last


def test_two_lengths_are_a_weak_sign_of_a_slope() -> None:
    prose = (point("prose", 1024, 3.0), point("prose", 65536, 2.0))
    assert verdict(DECAY, *repeat(7.9, 7.9, 7.9), *prose).confidence == "low"


@pytest.mark.parametrize(
    ("first", "last", "found"),
    [(10.0, 8.5, False), (10.0, 8.4, True), (2.0, 1.7, False), (2.0, 1.69, True), (1.2, 1.01, True)],
)
def test_prose_that_keeps_85_percent_has_not_faded(first: float, last: float, found: bool) -> None:
    prose = (point("prose", 1024, first, ceiling=12), point("prose", 65536, last, ceiling=12))
    assert (DECAY in names(*of(12, 12.0, 12.0), *prose)) is found


def test_of_several_texts_that_fade_the_one_that_lost_most_is_told() -> None:
    def fading(arm: str, last: float) -> tuple[CommitPoint, ...]:
        return point(arm, 1024, 4.0), point(arm, 65536, last)

    facts = (*repeat(7.9, 7.9, 7.9), *fading("chat", 3.0), *fading("code", 2.5), *fading("prose", 3.2))
    assert ruling(DECAY, *facts).explains == 1.6
    assert "code commits 4.00 of 8" in reasons(DECAY, *facts)


def test_prose_is_a_slope_only_between_lengths_and_beside_repeated_text_that_works() -> None:
    prose = (point("prose", 1024, 3.0), point("prose", 65536, 2.0))
    assert DECAY in names(*repeat(7.9, 7.9, 7.9), *prose)
    assert DECAY not in names(*repeat(4.4, 4.4, 4.4), *prose)
    assert DECAY not in names(*repeat(7.9, 7.9, 7.9), prose[0])
    assert DECAY not in names(*repeat(7.9, 7.9, 7.9), point("prose", 0, 3.0), prose[1])
    assert DECAY not in names(point("repeat", 1024, 7.9), *prose)


@pytest.mark.parametrize(
    ("contexts", "size", "named"),
    [
        ((1024, 8190, 8194), 8192, True),
        ((1024, 16380, 16390), 8192, True),
        ((1024, 7000, 8750), 8192, True),
        ((1024, 7000, 8751), 8192, False),
        ((1024, 8190, 8191), 8192, False),
        ((1024, 8192, 8200), 8192, False),
        ((1024, 8190, 8194), -1, False),
        ((1024, 8190, 8194), 1, False),
    ],
    ids=["within a narrow edge", "a later one", "just narrow", "in a wide edge", "behind it", "at its near side", "no chunks", "many ends"],
)  # fmt: skip
def test_the_end_of_a_prefill_chunk_in_the_edge(contexts: tuple[int, ...], size: int, named: bool) -> None:
    served = args(speculative_algorithm="DFLASH", chunked_prefill_size=size)
    found = verdict(BUG, *of(9, 9.0, 9.0, 2.0, contexts=contexts), served)
    assert (found.kind == "chunk_boundary") is named


# --- a fall in a log ------------------------------------------------------------------------------------

POSITION = (fail("DC35"),)


@pytest.mark.parametrize(
    ("commits", "found"),
    [
        ((1.5, 1.05), True),
        ((1.49, 1.0), False),
        ((4.0, 1.06), False),
        ((1.0, 4.0), False),
        ((4.0, 1.3, 1.0), False),
        ((4.0, 1.0, 4.0), False),
        ((4.0, 1.0, 4.0, 1.0), False),
        ((4.0, 3.0, 1.0, 1.0), True),
    ],
)
def test_a_log_commits_well_up_to_a_length_and_nothing_from_one_on(
    commits: tuple[float, ...], found: bool
) -> None:
    assert (BUG in names(log(*bins(*commits)), findings=POSITION)) is found
    assert BUG not in names(log(*bins(*commits)), findings=(fail("DC01"),))


@pytest.mark.parametrize(("lines", "found"), [(7, False), (8, True)])
def test_many_lines_in_which_nothing_is_right_need_no_error_beside_them(lines: int, found: bool) -> None:
    facts = log(*bins(4.0, 3.0, 1.0, 1.0, lines=lines))
    assert (BUG in names(facts)) is found
    assert BUG not in names(log(*bins(4.0, 3.0, 1.1, 1.1, lines=lines)))
    if found:
        told = ruling(BUG, facts).verdict
        assert (told.kind, told.confidence) == ("", "low")
        assert (
            told.missing[1] == "the drafter's config.json and the server's arguments: which limit lies there?"
        )


def ranged(*told: tuple[int, float], lines: int = 4) -> DecodeSeries:
    """Ranges of one context each."""
    return log(
        *(
            DecodeBin(
                1 << (tokens.bit_length() - 1), 1 << tokens.bit_length(), 1, lines, commit, commit, commit, 0.5, 50.0,
                graph_share=1.0, tokens=float(tokens),
            )
            for tokens, commit in told
        )
    )  # fmt: skip


SHORT_DRAFTER = drafter(max_position_embeddings=2048)


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (((1500, 1.5), (2500, 1.25), (9000, 1.1)), True),
        (((1500, 1.49), (2500, 1.25)), False),
        (((1500, 3.0), (2500, 1.26)), False),
        (((1500, 3.0), (2048, 3.0), (2500, 1.1)), True),
        (((1500, 3.0), (2047, 1.2), (2500, 1.1)), False),
        (((1500, 3.0), (2500, 1.1), (9000, 3.0)), False),
        (((2500, 1.1),), False),
        (((1500, 3.0),), False),
    ],
    ids=["just", "hardly alive below", "too much beyond", "at the limit", "below the limit already", "well again", "beyond alone", "below alone"],
)  # fmt: skip
def test_a_log_that_falls_at_a_limit_that_an_error_names(
    told: tuple[tuple[int, float], ...], found: bool
) -> None:
    facts = (ranged(*told), SHORT_DRAFTER, SPECULATES)
    assert (BUG in names(*facts, findings=POSITION)) is found
    # Without the error nobody knows of a limit, and 1.1 is what hard text gives.
    assert BUG not in names(*facts)


@pytest.mark.parametrize(("lines", "found"), [(4, True), (3, False)])
def test_lines_on_either_side_of_the_limit(lines: int, found: bool) -> None:
    facts = (ranged((1500, 3.0), (2500, 1.2), lines=lines), SHORT_DRAFTER, SPECULATES)
    assert (BUG in names(*facts, findings=POSITION)) is found


def test_the_limit_is_told_with_what_stands_on_either_side() -> None:
    facts = (ranged((1000, 3.2), (1500, 3.0), (2500, 1.2), (9000, 1.1)), SHORT_DRAFTER, SPECULATES)
    found = ruling(BUG, *facts, findings=POSITION)
    assert (found.verdict.kind, found.verdict.confidence) == ("rope_position", "medium")
    assert found.explains == 3.0 / 1.2
    assert found.verdict.reasons[0] == (
        "the log commits 3.00 and more up to the drafter's max_position_embeddings (2048 tokens), and 1.20 at most beyond it "
        "(8 lines)"
    )


def test_a_fall_in_a_log_is_told_with_its_ends() -> None:
    found = ruling(BUG, log(*bins(4.0, 3.0, 1.0, 1.0)), findings=POSITION)
    assert found.explains == 3.0
    assert found.verdict.reasons[0] == (
        "the log commits 3.00 at about 6k tokens, and nothing from about 24k on (8 lines)"
    )
    assert found.verdict.next[1] == "ddprobe commit-probe --contexts 1k,6k,24k --arms repeat"


@pytest.mark.parametrize(
    ("good", "lost", "steps", "found"),
    [
        (1.5, 1.05, 64, True),
        (1.49, 1.0, 64, False),
        (3.0, 1.06, 64, False),
        (3.0, 1.0, 63, False),
        (3.0, 1.0, None, False),
    ],
)
def test_windows_of_one_log_in_which_nothing_is_right(
    good: float, lost: float, steps: int | None, found: bool
) -> None:
    windows = (figure(good, 10, run="a"), figure(lost, steps, run="a"))
    assert (BUG in names(*windows, findings=POSITION)) is found
    assert BUG not in names(*windows)
    assert BUG not in names(windows[0], dataclasses.replace(windows[1], run="b"), findings=POSITION)


def test_windows_are_told_with_the_limit_that_the_error_is_on() -> None:
    windows = (figure(3.0, 10, run="a", window="10:00"), figure(1.0, 640, run="a", window="11:00"))
    found = ruling(
        BUG,
        *windows,
        drafter(max_position_embeddings=40000, sliding_window=2048),
        SPECULATES,
        findings=POSITION,
    )
    assert found.explains == 3.0
    assert found.verdict.reasons[0].startswith(
        "one log states 3.00 tokens per step (10:00) and 1.00 in 640 steps (11:00)"
    )
    assert "ddprobe commit-probe --contexts 37200,42800 --arms repeat" in found.verdict.next
    two = drafter(max_position_embeddings=40000, rope=Rope(original_max_position=30000))
    lower = verdict(BUG, *windows, two, SPECULATES, findings=POSITION)
    assert "ddprobe commit-probe --contexts 27900,32100 --arms repeat" in lower.next
    unknown = verdict(BUG, *windows, findings=POSITION)
    assert "ddprobe commit-probe --contexts 1k,128k --arms repeat" in unknown.next
    with_short_window = verdict(BUG, *windows, drafter(sliding_window=2048), SPECULATES, findings=POSITION)
    assert "ddprobe commit-probe --contexts 1k,128k --arms repeat" in with_short_window.next
