"""Hard text and healthy drafters by what others measured, at the limits and beside them."""

from __future__ import annotations

import dataclasses

import pytest

from ddprobe.evidence.claims import STATEMENT
from ddprobe.facts import Claim, CommitPoint
from ddprobe.model import Fact
from tests.collected_facts import (
    DECAY,
    TARGET,
    TEXT,
    drafter,
    of,
    reasons,
    ruling,
    verdict,
)
from tests.test_collected import SPECULATES, args, fail, names, point, repeat

# --- text -----------------------------------------------------------------------------------------------

ASKED = Claim(what="accept rate", value=0.25, origin=STATEMENT)


@pytest.mark.parametrize(("commit", "found"), [(3.99, True), (4.0, False)])
def test_hard_is_less_than_half_of_repeated_text(commit: float, found: bool) -> None:
    facts = (*repeat(8.0, 8.0, 8.0), point("gsm8k", 0, commit), ASKED)
    assert (TEXT in names(*facts)) is found


@pytest.mark.parametrize(("commits", "found"), [((2.2, 2.2), True), ((2.2, 2.21), False), ((2.2,), False)])
def test_text_that_is_hard_at_every_length_needs_no_question(commits: tuple[float, ...], found: bool) -> None:
    prose = [point("prose", 1024 * (n + 1), commit) for n, commit in enumerate(commits)]
    assert (TEXT in names(*repeat(7.9, 7.9, 7.9), *prose)) is found


@pytest.mark.parametrize(("last", "found"), [(1.7, TEXT), (1.69, DECAY)])
def test_text_that_fades_is_not_just_hard(last: float, found: str) -> None:
    assert names(*repeat(7.9, 7.9, 7.9), point("prose", 1024, 2.0), point("prose", 65536, last)) == [found]


def test_repeated_text_that_is_weak_is_no_measure_of_another() -> None:
    assert TEXT not in names(*of(9, 4.9, 4.9), point("gsm8k", 0, 1.2), ASKED)


def test_the_hardest_text_is_told_and_what_is_beside_it() -> None:
    facts = (
        *repeat(8.0, 8.0, 8.0),
        point("math", 0, 3.0),
        point("gsm8k", 0, 2.5),
        point("code", 0, 6.0),
        ASKED,
    )
    found = ruling(TEXT, *facts)
    assert found.explains == 8.0 / 2.5
    assert found.verdict.reasons[0] == "gsm8k commits 2.50 of 8 (100 steps)"
    assert found.verdict.reasons[2] == "code commits 6.00 of 8 (100 steps)"
    assert (found.verdict.kind, found.verdict.confidence) == ("", "medium")
    assert "does not depend on the length" not in "\n".join(found.verdict.reasons)
    held = (*repeat(8.0, 8.0, 8.0), point("prose", 1024, 1.9), point("prose", 65536, 1.9))
    assert "with the text held, the commit does not depend on the length" in reasons(TEXT, *held)


def modes(thinking: float, plain: float, *, word: str = "no-thinking", steps: int = 0) -> tuple[Fact, ...]:
    return (
        *repeat(8.0, 8.0, 8.0),
        point("gsm8k thinking", 0, thinking, steps=steps, drafted_steps=None),
        point(f"gsm8k {word}", 0, plain, steps=steps, drafted_steps=None),
        ASKED,
    )


@pytest.mark.parametrize(
    ("thinking", "plain", "decides"),
    [
        (2.5, 6.0, True),
        (6.0, 2.5, True),
        (2.99, 4.0, True),
        (3.0, 4.0, False),
        (2.5, 2.5, False),
    ],
)
def test_the_mode_of_the_template_decides_where_one_is_a_quarter_below_the_other(
    thinking: float, plain: float, decides: bool
) -> None:
    found = verdict(TEXT, *modes(thinking, plain))
    assert (found.kind, found.confidence) == (("template_mode", "high") if decides else ("", "medium"))
    assert any("chat_template_kwargs of each run" in text for text in found.missing) is decides


def test_the_mode_that_decides_is_told_first() -> None:
    found = verdict(TEXT, *modes(6.0, 2.5, word="plain"))
    assert found.reasons[0] == (
        "the mode of thinking decides: of one text on one server, gsm8k plain commits 2.50 and gsm8k thinking 6.00"
    )


def test_what_to_do_about_the_mode_is_said_only_where_it_decides() -> None:
    advice = "compare only runs of the same mode, and state it beside every figure"
    assert verdict(TEXT, *modes(2.5, 6.0)).next[0] == advice
    assert advice not in verdict(TEXT, *modes(3.0, 4.0)).next


def test_another_text_is_no_other_mode() -> None:
    facts = (
        *repeat(8.0, 8.0, 8.0),
        point("gsm8k thinking", 0, 2.5),
        point("math no-thinking", 0, 7.0),
        ASKED,
    )
    assert verdict(TEXT, *facts).kind == ""
    assert verdict(TEXT, *facts[:3], point("gsm8k", 0, 2.5), point("gsm8k zh", 0, 7.0), ASKED).kind == ""


def test_a_mode_decides_for_sure_only_beside_repeated_text_of_known_size() -> None:
    unsized = [
        dataclasses.replace(fact, steps=0) if isinstance(fact, CommitPoint) else fact
        for fact in modes(2.5, 6.0)
    ]
    assert verdict(TEXT, *unsized).confidence == "medium"


# --- output that goes in a circle -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loop", "sound", "found"), [(7.8, 1.51, True), (7.8, 1.5, False), (2.7, 2.7, False), (2.71, 2.7, True)]
)
def test_a_loop_is_told_of_where_it_beats_a_text_that_is_drafted(
    loop: float, sound: float, found: bool
) -> None:
    facts = (point("report B", 0, loop, loops=1), point("report A", 0, sound))
    assert (TEXT in names(*facts)) is found


def test_the_best_of_the_loops_and_the_best_of_the_sound_are_compared() -> None:
    facts = (
        point("report B", 0, 5.0, loops=1),
        point("report C", 0, 7.5, loops=3),
        point("report A", 0, 2.0),
        point("report D", 0, 2.5),
    )
    found = ruling(TEXT, *facts)
    assert found.explains == 3.0
    assert "report C commits 7.50" in found.verdict.reasons[0]
    assert "report D commits 2.50" in found.verdict.reasons[1]
    assert found.verdict.confidence == "high"
    unsized = [dataclasses.replace(fact, ceiling=None) for fact in facts]
    assert verdict(TEXT, *unsized).confidence == "medium"


def test_repeated_text_may_go_in_a_circle() -> None:
    looping = [dataclasses.replace(fact, loops=4) for fact in repeat(7.9, 7.9, 7.9)]
    assert names(*looping) == ["healthy"]
    assert names(*looping, point("repeat-long", 1024, 7.9, loops=2)) == ["healthy"]


# --- healthy --------------------------------------------------------------------------------------------


def test_healthy_is_sure_where_everything_that_configures_it_was_read() -> None:
    points = repeat(7.9, 7.9, 7.9)
    assert verdict("healthy", *points).confidence == "medium"
    assert verdict("healthy", *points, SPECULATES, drafter(), TARGET).confidence == "high"
    for known in ((SPECULATES, drafter()), (SPECULATES, TARGET), (drafter(), TARGET)):
        assert verdict("healthy", *points, *known).confidence == "medium"
    own = args(speculative_algorithm="NEXTN", speculative_num_draft_tokens=8)
    assert verdict("healthy", *points, own, TARGET).confidence == "high"


def test_an_error_or_few_steps_make_healthy_less_sure() -> None:
    known = (SPECULATES, drafter(), TARGET)
    assert verdict("healthy", *repeat(7.9, 7.9, 7.9), *known, findings=(fail("DC24"),)).confidence == "low"
    few = [dataclasses.replace(fact, steps=15) for fact in repeat(7.9, 7.9, 7.9)]
    assert verdict("healthy", *few, *known).confidence == "medium"
    enough = [dataclasses.replace(fact, steps=16) for fact in repeat(7.9, 7.9, 7.9)]
    assert verdict("healthy", *enough, *known).confidence == "high"


def test_what_healthy_lacks() -> None:
    bare = verdict("healthy", *repeat(7.9, 7.9, 7.9)).missing
    assert any("both config.json" in text for text in bare)
    assert any("ordinary text" in text for text in bare)
    known = (SPECULATES, drafter(), TARGET, point("prose", 1024, 4.0))
    full = verdict("healthy", *repeat(7.9, 7.9, 7.9), *known).missing
    assert [text.split(":")[0] for text in full] == ["a far copy (arm far-copy)"]
    enough = [dataclasses.replace(fact, steps=64) for fact in repeat(7.9, 7.9, 7.9)]
    assert verdict("healthy", *enough, *known).missing == full
    few = [
        dataclasses.replace(fact, steps=steps)
        for fact, steps in zip(repeat(7.9, 7.9, 7.9), (64, 63, 65), strict=True)
    ]
    assert verdict("healthy", *few).missing[0] == "64 verify steps a point: the smallest has 63"


@pytest.mark.parametrize(("commit", "found"), [(10.0, "healthy"), (9.9, DECAY)])
def test_nine_tenths_of_the_drafts_is_level(commit: float, found: str) -> None:
    assert names(*of(11, 11.0, commit)) == [found]
