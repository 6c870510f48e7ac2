"""Scrapes of metrics in files of their own: when are two of one server, and what lies between them?"""

from __future__ import annotations

import pytest

from ddprobe import evidence
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import Acceptance


def scrape(drafts: int, accepted: int, *, created: str = "", requests: int = 7, name: str = "vllm") -> str:
    lines = [
        f'{name}:spec_decode_num_drafts_total{{engine="0"}} {drafts}.0',
        f'{name}:spec_decode_num_draft_tokens_total{{engine="0"}} {drafts * 5}.0',
        f'{name}:spec_decode_num_accepted_tokens_total{{engine="0"}} {accepted}.0',
        f'{name}:request_success_total{{finished_reason="stop"}} {requests}.0',
    ]
    if created:
        lines.append(f'{name}:spec_decode_num_drafts_created{{engine="0"}} {created}')
    return "\n".join(lines) + "\n"


def figures(*texts: str) -> list[tuple[float | None, int | None, str]]:
    """(commit, steps, window) of what they state."""
    readings = [evidence.recognise(of_bytes(f"m{n}", text.encode())) for n, text in enumerate(texts)]
    stated = [fact for fact in evidence.facts(readings) if isinstance(fact, Acceptance)]
    return [(fact.commit, fact.steps, fact.window) for fact in stated]


BETWEEN = [(1.0, 1000, "between two scrapes")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (scrape(1000, 2500), scrape(2000, 2500)),
        (scrape(1000, 2500, created="1.79e+09"), scrape(2000, 2500, created="1.79e+09")),
        ("process_start_time_seconds 1.7e9\n" + scrape(10, 25), "process_start_time_seconds 1.7e9\n" + scrape(1010, 25)),
    ],
    ids=["a count that stood still", "series made at one moment", "a process of one start"],
)  # fmt: skip
@pytest.mark.parametrize("turned", [False, True])
def test_two_scrapes_of_one_server(before: str, after: str, turned: bool) -> None:
    assert figures(*((after, before) if turned else (before, after))) == BETWEEN


def test_of_several_the_first_and_the_last_count() -> None:
    assert figures(scrape(1500, 2500), scrape(2000, 2500), scrape(1000, 2500)) == BETWEEN


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (scrape(1000, 2500), scrape(2000, 4000)),
        (scrape(1000, 2500, created="1.79e+09"), scrape(2000, 2500, created="1.80e+09")),
        (scrape(1000, 2500), scrape(2000, 2400)),
        (scrape(1000, 2500), scrape(2000, 2500, name="llamacpp")),
        (scrape(1000, 99), scrape(2000, 99)),
    ],
    ids=["nothing shows it", "another start", "a count that fell", "another engine", "a small count"],
)
def test_two_scrapes_that_may_be_of_two_servers(one: str, other: str) -> None:
    found = figures(one, other)
    assert len(found) == 2
    assert {window for _, _, window in found} == {"lifetime"}


def test_the_same_scrape_twice_is_one_server_s_lifetime() -> None:
    assert {window for _, _, window in figures(scrape(1000, 2500), scrape(1000, 2500))} == {"lifetime"}


@pytest.mark.parametrize(("accepted", "same"), [(100, True), (99, False)])
def test_how_large_a_count_that_stands_still_must_be(accepted: int, same: bool) -> None:
    found = figures(scrape(1000, accepted), scrape(2000, accepted))
    assert (len(found) == 1) is same


def test_two_servers_of_two_scrapes_each() -> None:
    first = (scrape(1000, 2500, created="1"), scrape(2000, 2500, created="1"))
    second = (scrape(100, 200, created="2"), scrape(300, 600, created="2"))
    assert sorted(figures(*first, *second), key=str) == sorted(
        [(1.0, 1000, "between two scrapes"), (3.0, 200, "between two scrapes")], key=str
    )


def test_a_series_that_came_up_between_is_no_other_server() -> None:
    later = scrape(2000, 2500) + 'vllm:prompt_tokens_total{engine="0"} 7.0\n'
    assert figures(scrape(1000, 2500), later) == BETWEEN


def test_a_series_that_is_gone_is_of_another_server() -> None:
    before = scrape(1000, 2500) + 'vllm:prompt_tokens_total{engine="1"} 7.0\n'
    assert len(figures(before, scrape(2000, 2500))) == 2


def test_counts_without_a_suffix_count() -> None:
    """Older clients add none."""
    before, after = (scrape(n, 2500).replace("_total{", "{") for n in (1000, 2000))
    assert figures(before, after) == BETWEEN
