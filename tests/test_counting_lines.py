"""The lines that compute what is accepted and committed, taken from what was read of the installed source."""

from __future__ import annotations

from ddprobe.facts import SourceHit, SourceRange
from ddprobe.model import Cite
from ddprobe.verdicts import counting
from ddprobe.verdicts.case import Case

WORKER = "srt/speculative/dflash_worker_v2.py"


def read(text: str, first: int = 1, status: str = "complete") -> SourceRange:
    return SourceRange(
        path=WORKER,
        first=first,
        last=first + text.count("\n"),
        total=900,
        status=status,
        text=text,
        source=(Cite("read/1-file"),),
    )


def numbers(*facts: SourceRange | SourceHit) -> list[tuple[int, bool]]:
    return [(line.number, line.committed) for line in counting.lines(Case(facts))]


def test_the_lines_that_compute_are_told_with_their_place() -> None:
    text = "    accept_len = match_prefix_length(drafts, target)\n    # commit_len = 1\n    commit_lens = accept_len + 1\n"
    found = counting.lines(Case((read(text, first=140),)))
    assert [line.told for line in found] == [
        f"{WORKER}:140 has `accept_len = match_prefix_length(drafts, target)`",
        f"{WORKER}:142 has `commit_lens = accept_len + 1`",
    ]
    assert [line.cite for line in found] == [Cite("read/1-file", "line 140"), Cite("read/1-file", "line 142")]


def test_what_only_hands_a_value_on_computes_nothing() -> None:
    assert numbers(read("commit_lens=commit_lens,\naccept_len = output.accept_len\n")) == []


def test_a_sum_that_begins_computes_nothing() -> None:
    text = "self.num_correct = self.sum_commit_len = 0\nself.accept_depths: list[int] = []\naccept_length = 0.5 * total\n"
    assert numbers(read(text)) == [(3, True)]


def test_reading_a_value_is_no_computing() -> None:
    assert (
        numbers(
            read(
                "keep = torch.arange(8)[None] < commit_lens[:, None]\nprint(accept_len)\nif accept_len == 3:\n"
            )
        )
        == []
    )


def test_an_annotation_without_a_value_computes_nothing() -> None:
    assert numbers(read("commit_lens: torch.Tensor\n")) == []


def test_of_many_a_depth_comes_before_a_length_and_both_before_sums() -> None:
    text = "sum_accepted_depth += depth\naccept_len = first(x)\naccept_len = second(x)\naccept_depths = deepest_match(tree)\n"
    assert numbers(read(text)) == [(2, False), (4, False)]


def test_hits_of_a_search_count_too_and_a_line_read_twice_once() -> None:
    hit = SourceHit(
        path=WORKER, line=7, text="    commit_lens = accept_len + 1", within="f", source=(Cite("grep"),)
    )
    assert numbers(read("commit_lens = accept_len + 1", first=7), hit) == [(7, True)]
    assert numbers(hit) == [(7, True)]


def test_what_could_not_be_read_holds_no_lines() -> None:
    assert numbers(read("commit_lens = accept_len + 1", status="denied")) == []
