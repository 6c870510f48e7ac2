"""What may begin next on a host: independent steps side by side, a measurement alone."""

from __future__ import annotations

import pytest

from ddprobe.model import Host, Probe
from ddprobe.running.course import BESIDE, Done, NotNow, Stage, in_order, ready


def nothing(_host: Host, _over: object) -> Probe | NotNow:
    return NotNow("skipped", "")


def stage(id: str, *needs: str, measures: bool = False) -> Stage:
    return Stage(id=id, probe="host.reach", decide=nothing, needs=needs, measures=measures)


def ids(stages: tuple[Stage, ...]) -> str:
    return " ".join(one.id for one in stages)


PLAIN = (stage("a"), stage("b"), stage("c", "a"), stage("d", "b", "c"))
MEASURED = (stage("a"), stage("b"), stage("m", "a", measures=True), stage("n", measures=True), stage("c"))


@pytest.mark.parametrize(
    ("stages", "over", "running", "next"),
    [
        (PLAIN, "", "", "a b"),
        (PLAIN, "", "a b", ""),
        (PLAIN, "a", "b", "c"),
        (PLAIN, "a b", "c", ""),
        (PLAIN, "a b c", "", "d"),
        (PLAIN, "a b c d", "", ""),
        # A measurement waits for all before it, and all after it wait for it.
        (MEASURED, "", "", "a b"),
        (MEASURED, "a", "b", ""),
        (MEASURED, "a b", "", "m"),
        (MEASURED, "a b", "m", ""),
        (MEASURED, "a b m", "", "n"),
        (MEASURED, "a b m", "n", ""),
        (MEASURED, "a b m n", "", "c"),
        # What a step needs that is not in the run (`--only`) is not waited for.
        ((stage("a", "gone"),), "", "", "a"),
    ],
)
def test_what_begins_next(stages: tuple[Stage, ...], over: str, running: str, next: str) -> None:
    assert ids(ready(stages, over.split(), running.split())) == next


def test_no_more_at_once_than_one_connection_carries_well() -> None:
    many = tuple(stage(str(number)) for number in range(10))
    assert len(ready(many, (), ())) == BESIDE
    assert len(ready(many, (), ("0", "1", "2"))) == BESIDE - 3


@pytest.mark.parametrize(
    ("stages", "order"),
    [
        ((stage("a", "b"), stage("b"), stage("c")), "b a c"),
        ((stage("a"), stage("b"), stage("c", "a")), "a b c"),
        ((stage("a", "b"), stage("b", "a"), stage("c")), "c a b"),
    ],
)
def test_each_after_what_it_needs(stages: tuple[Stage, ...], order: str) -> None:
    assert ids(in_order(stages)) == order


@pytest.mark.parametrize(
    ("status", "word"),
    [("incomplete", "unknown"), ("not_run", "not run"), ("skipped", "skipped"), ("done", "pass")],
)
def test_how_a_step_ended_is_a_word(status: str, word: str) -> None:
    from ddprobe.model import StepRecord

    assert Done(StepRecord(id="a", probe="host.reach", host="h", status=status)).word == word
