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
