"""Mistakes of a playbook at their very place, how many steps it may have, and conditions at their limits."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe import yamlfile
from ddprobe.model import Outcome
from ddprobe.playbook import Condition, Expectation
from ddprobe.playbookfile import checking
from ddprobe.playbookfile.conditions import Held, expected, holds
from ddprobe.playbookfile.values import Scope, StepResult

STEPS = "steps: [{id: server, probe: engine.server}]\n"


def mistakes(text: str) -> list[tuple[int, int, str]]:
    """Line, column and words of what does not fit together."""
    document = yamlfile.parse(text.encode(), "book.yaml")
    assert document.problems == []
    return [(one.line, one.column, one.message) for one in checking.problems(document)]


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        # At the value.
        ("name: Book One\n" + STEPS, 1, 7, "name: 'Book One' cannot be one"),
        ("about:   ' '\n" + STEPS, 1, 10, "about: say which question"),
        ("about:   It is so.\n" + STEPS, 1, 10, "about: open with the question"),
        ("steps:   []\n", 1, 10, "steps: there is none"),
        ("hypotheses: [positions, positons]\n" + STEPS, 1, 25, "there is no hypothesis 'positons'"),
        ("hypotheses: [positions, positions]\n" + STEPS, 1, 25, "the hypothesis 'positions' stands here a second time"),
        ("steps: [{id: a b, probe: engine.server}]\n", 1, 14, "id: 'a b' cannot be an id"),
        ("steps:\n - {id: a, probe: engine.server}\n - {id: a, probe: engine.server}\n", 3, 9, "id: there are two steps 'a'; the first is number 1"),
        ("steps: [{id: a, probe: engine.servr}]\n", 1, 24, "probe: there is no probe 'engine.servr'"),
        ("steps: [{id: a, probe: engine.server, needs: [b]}]\n", 1, 47, "needs: there is no step 'b'"),
        ("steps: [{id: a, probe: engine.server, timeout: soon}]\n", 1, 48, "timeout"),
        ("steps: [{id: a, probe: engine.server, when: {step: b, status: done}}]\n", 1, 52, "step: there is no step 'b'"),
        ("steps: [{id: a, probe: engine.server, when: [{step: b, status: done}]}]\n", 1, 53, "step: there is no step 'b'"),
        ("vars: {n: {type: number, default: x, help: h}}\nsteps: [{id: a, probe: source.grep, with: {pattern: '${vars.n}'}}]\n", 1, 35, "default"),
        # At the key.
        ("vars: {1n: {type: number, default: 1, help: h}}\nsteps: [{id: a, probe: source.grep, with: {pattern: x, limit: '${vars.1n}'}}]\n", 1, 8, "'1n' cannot be a var's name"),
        ("vars: {n:   {type: number, default: 1, help: h}}\n" + STEPS, 1, 8, "the var 'n' is used nowhere"),
        ("steps: [{id: a, probe: source.grep, with: {pattern: x, limt:   3}}]\n", 1, 56, "source.grep has no setting 'limt'"),
    ],
)  # fmt: skip
def test_a_mistake_stands_where_it_was_made(text: str, line: int, column: int, words: str) -> None:
    found = mistakes(text)
    assert (line, column) in [(at, place) for at, place, said in found if said.startswith(words)], found


PATTERN = "steps: [{id: a, probe: source.grep, with: {pattern: '${vars.p}'}}]\n"


@pytest.mark.parametrize(
    ("var", "told"),
    [
        ("{type: text, default: 'a(', help: h}", True),
        ("{type: text, default: 'a', help: h}", False),
        ("{type: text, help: h}", False),
    ],
)
def test_a_default_is_held_against_the_probe_that_takes_it(var: str, told: bool) -> None:
    found = mistakes(f"vars: {{p: {var}}}\n{PATTERN}")
    assert any("in the pattern 'a('" in said for _, _, said in found) is told
    assert (found == []) is not told


@pytest.mark.parametrize(
    ("default", "told"), [("", False), ("default: [prose], ", False), ("default: [text], ", True)]
)
def test_a_value_that_nobody_gave_yet_is_not_held_against_the_probe(default: str, told: bool) -> None:
    """Whoever runs it gives the arms; any list may be a right one until then."""
    var = f"vars: {{p: {{type: list, {default}help: h}}}}\n"
    found = mistakes(var + "steps: [{id: a, probe: draft.commit, with: {arms: '${vars.p}'}}]\n")
    assert bool(found) is told


def test_of_which_step_is_no_question_of_a_condition_that_must_have_one() -> None:
    """The form asks for it already."""
    for when in ("{status: done}", "[{status: done}]"):
        found = mistakes(f"steps: [{{id: a, probe: engine.server, when: {when}}}]\n")
        assert not any("of which step" in said for _, _, said in found)
    asked = mistakes(STEPS + "expect: [{about: so, status: done}]\n")
    assert any("of which step" in said for _, _, said in asked)


@pytest.mark.parametrize(("count", "told"), [(63, False), (64, False), (65, True)])
def test_a_playbook_has_64_steps_at_the_most(count: int, told: bool) -> None:
    steps = "".join(f" - {{id: s{at}, probe: engine.server}}\n" for at in range(count))
    found = mistakes(f"name: book\nabout: Is it so?\nsteps:\n{steps}")
    assert [said for _, _, said in found] == ([f"steps: {count} are more than 64"] if told else [])
    if told:
        assert found[0][:2] == (4, 2)


@pytest.mark.parametrize(("length", "fits"), [(1, True), (39, True), (40, True), (41, False)])
def test_an_id_has_40_letters_at_the_most(length: int, fits: bool) -> None:
    found = mistakes(f"steps: [{{id: {'a' * length}, probe: engine.server}}]\n")
    assert (found == []) is fits


# --- conditions ----------------------------------------------------------------------------------------------


def result(**output: Any) -> Scope:
    step = StepResult(id="s", status="done", outcome=Outcome.PASS, output=output)
    return Scope(steps={"s": step}, verdicts=("healthy",))


def test_what_holds_is_true_and_nothing_else() -> None:
    assert bool(Held(True, "")) is True
    assert bool(Held(False, "")) is False
    assert bool(Held(None, "")) is False


@pytest.mark.parametrize(
    ("least", "most", "value", "held"),
    [
        (2, None, 1.999, False),
        (2, None, 2, True),
        (2, None, 2.001, True),
        (None, 2, 1.999, True),
        (None, 2, 2, True),
        (None, 2, 2.001, False),
        (2, 2, 2, True),
        (0, None, 0, True),
        (0, None, -1, False),
        (None, 0, 0, True),
        (None, 0, 1, False),
        (2, None, (2, 3), True),
        (2, None, (3, 1), False),
        (None, 2, (1, 2), True),
        (None, 2, (1, 3), False),
        (1, None, True, None),
        (1, None, (1, True), None),
        (1, None, (1, "2"), None),
    ],
)
def test_a_value_at_its_limits(least: Any, most: Any, value: Any, held: bool | None) -> None:
    found = holds(Condition(step="s", field="n", least=least, most=most), result(n=value))
    assert found.holds is held


@pytest.mark.parametrize(
    ("value", "equals", "held"),
    [
        (0, 0, True),
        (0, False, False),
        (False, False, True),
        (1, 1.0, True),
        ("1", 1, False),
        ((1, 1), 1, True),
        ((1, 2), 1, False),
        ((2, 1), 1, False),
    ],
)
def test_a_value_that_is_to_equal_another(value: Any, equals: Any, held: bool) -> None:
    assert holds(Condition(step="s", field="n", equals=equals), result(n=value)).holds is held


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (1, "s.n is 0"),
        (7, "s.n is 0, 1, 2, 3, 4, 5, 6"),
        (8, "s.n is 0, 1, 2, 3, 4, 5, 6, 7"),
        (9, "s.n is 0, 1, 2, 3, 4, 5, 6, 7 and 1 more"),
        (10, "s.n is 0, 1, 2, 3, 4, 5, 6, 7 and 2 more"),
    ],
)
def test_eight_values_are_shown(count: int, shown: str) -> None:
    found = holds(Condition(step="s", field="n", least=0), result(n=tuple(range(count))))
    assert found.reason == f"{shown} (at least 0)"


@pytest.mark.parametrize(
    ("condition", "measured"),
    [
        (Condition(step="s", field="n", least=1), (("n", 2),)),
        (Condition(step="s", field="l", least=1), ()),
        (Condition(step="s", field="absent", least=1), ()),
        (Condition(step="s", statuses=("done",)), ()),
        (Condition(step="gone", field="n", least=1), ()),
        (Condition(step="", verdicts=("healthy",)), ()),
    ],
)
def test_one_plain_value_is_told_as_measured(condition: Condition, measured: tuple[Any, ...]) -> None:
    found = expected(
        Expectation(words="so", condition=condition, otherwise=Outcome.FAIL, number=1), result(n=2, l=(1, 2))
    )
    assert found.measured == measured
