"""What a person and a script see of a commit probe: table, plots, plan, verdicts, points."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import re
from pathlib import Path

import jsonschema
import pytest

from ddprobe import render, reportschema
from ddprobe.blocks import Block, Plot, Series, Spread, Table
from ddprobe.model import VERDICTS, Cite, Fact, Finding, Hypothesis, Outcome, Report, Verdict
from ddprobe.probes.draft import _commit_view
from ddprobe.render import jsonview, markdown, plotting, terminal
from ddprobe.render.drawing import console_for, draw_block
from ddprobe.render.progress import progress
from ddprobe.verdicts import words
from tests import commit_facts as given
from tests import reports

ACTS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def blocks(*facts: Fact) -> list[Block]:
    return list(_commit_view.blocks(facts))


def drawn(*facts: Fact, width: int = 100) -> str:
    out = io.StringIO()
    terminal.draw(_commit_view.blocks(facts), width=width, colour=False, file=out)
    return out.getvalue()


def points_table(*facts: Fact) -> Table:
    [table] = [b for b in blocks(*facts) if isinstance(b, Table) and b.title.startswith("Commit length")]
    return table


def shown(report: Report, verbose: bool = False, quiet: bool = False) -> str:
    out = io.StringIO()
    terminal.show(report, folder=None, verbose=verbose, quiet=quiet, width=100, colour=False, file=out)
    return out.getvalue()


@pytest.fixture
def no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "blocks", lambda _: ())


# --- the table ---------------------------------------------------------------------------------------------


def test_the_points_stand_by_arm_and_context_with_units_and_samples() -> None:
    text = drawn(given.SETUP, *reversed(given.POINTS[:4]), width=120)
    lines = text.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("context"))
    assert lines[head].split() == ["context", "commit", "accept", "step", "p10–p90", "prompt"]
    assert lines[head + 1].split() == "tokens arm steps tokens share rate ms ms tok/s cached copied".split()
    assert [line.split() for line in lines[head + 3 : head + 5]] == [
        "1k repeat 68 7.50 ±0.25 93 % 93 % 12.0 11.4–15.0 625 98 % 100 %".split(),
        "16k repeat 68 1.10 ±0.10 1 % 1 % 130 124–162 8.46 100 % 100 %".split(),
    ]
    assert lines[head + 7].startswith("4 requests a point. ±: 95 % interval, its wider side.")
    assert "Counts from meta_info histogram + stream." in text


def test_the_head_names_server_speculation_and_ceiling() -> None:
    text = drawn(given.SETUP)
    for part in (
        "SGLang 0.5.23 at http://127.0.0.1:30000, sglang pid 4711",
        "/models/Kimi-K2.6",
        "DFLASH (a neural drafter)",
        "8 tokens per step: 7 drafted and the bonus token",
        "2048 tokens: the drafter's sliding_window",
        "at least 64 verify steps a point over 4 prompts",
        "seed 42",
        "Nothing was measured.",
    ):
        assert part in text


@pytest.mark.parametrize("width", [80, 120])
def test_every_line_fits_the_screen(width: int) -> None:
    for line in drawn(given.SETUP, *given.POINTS, *given.CHECKS, given.CLAIM, width=width).splitlines():
        assert len(line) <= width, line


def test_a_narrow_screen_leaves_out_what_matters_least_and_says_so() -> None:
    assert "p10–p90" in drawn(*given.POINTS, width=120)
    narrow = drawn(*given.POINTS, width=80)
    assert "Left out for want of width: p10–p90 ms, copied." in narrow
    assert "  64k  prose            68  1.10 ±0.10" in narrow
    assert "p10–p90" in markdown.text(given.report(*given.POINTS))


def test_what_is_unknown_is_a_dash_with_its_reason_and_never_a_number() -> None:
    blank = dataclasses.replace(
        given.POINTS[2], steps=0, failed=4, commit_mean=None, commit_low=None, commit_high=None,
        share_of_ceiling=None, accept_rate=None, step_ms=None, step_ms_low=None, tok_s=None, cached_tokens=None,
        drafted_steps=None, copied=None, per_position=None,
    )  # fmt: skip
    request = given.request(context=65536, error="HTTP 503: overloaded")
    assert points_table(blank).rows == (("64k", "repeat", "0", *"–" * 6),)
    text = drawn(request, request, blank)
    assert "repeat at 64k: 4 of 4 requests gave no measurement: HTTP 503: overloaded" in text
    assert "–: unknown." in text
    silent = dataclasses.replace(blank, failed=0)
    assert "repeat at 64k: the commit length is unknown: no source says it" in drawn(silent)
    setup = dataclasses.replace(
        given.SETUP, method="", speculating=None, ceiling=None, draft_tokens=None, kv_tokens=None
    )
    text = drawn(setup)
    assert re.search(r"speculation +unknown: the server does not say", text)
    assert re.search(r"ceiling of the commit +unknown", text)
    assert re.search(r"KV cache +unknown", text)


def test_a_saturated_point_only_proves_at_least() -> None:
    full = dataclasses.replace(
        given.POINTS[0], saturated=True, commit_mean=8.0, commit_low=8.0, commit_high=8.0
    )
    assert points_table(full).rows[0][3] == "≥8.00 ±0.00"
    assert "≥: every step reached the ceiling." in points_table(full).caption


def test_a_text_sent_as_it_is_shows_its_own_length() -> None:
    own = dataclasses.replace(given.POINTS[0], arm="verbatim", context_tokens=0, prompt_tokens=7)
    assert points_table(own).rows[0][:2] == ("7", "verbatim")
    assert not [b for b in blocks(own, *given.POINTS[:2]) if isinstance(b, Plot) and "0" in b.places]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"copied": 0.6}, "the target copied only 60 % of the text, so the commit is not comparable"),
        ({"loops": 2}, "2 of 4 outputs went in a circle (8 tokens, 14 times): such text is easy to draft"),
        (
            {"drafted_steps": 50, "drafted_commit_mean": 3.25},
            "18 of 68 steps had no draft; the others commit 3.25",
        ),
        ({"drafted_steps": 0, "drafted_commit_mean": None}, "nothing was drafted in 68 steps"),
        ({"timed_steps": 5}, "the step time is from 5 of 68 steps"),
        ({}, "3 pieces of the stream held more than one step, so step times say less"),
    ],
)
def test_what_qualifies_a_point_is_said(changes: dict[str, object], sentence: str) -> None:
    request = given.request(loop="8 tokens, 14 times", merged_chunks=3)
    changed = dataclasses.replace(given.POINTS[0], **changes)  # type: ignore[arg-type]
    assert f"repeat at 1k: {sentence}\n" in drawn(request, changed, width=200)


def test_contradicting_sources_are_told_once_and_bounded() -> None:
    """What differs in its numbers only is one thing, with the number of requests that say the like."""
    alike = [given.request(disagreements=(f"{n}.5 is not {n + 1}", "a is not b")) for n in range(9)]
    alone = given.request(disagreements=("c is not d",))
    text = drawn(*alike, alone, given.POINTS[0], width=200)
    assert text.count("a is not b") == 1
    assert "repeat at 1k: 0.5 is not 1 (and the like in 8 of the other 9 requests)\n" in text
    assert "repeat at 1k: c is not d\n" in text
    kinds = [given.request(disagreements=tuple(f"{letter} is not z" for letter in "abcdefgh"))]
    assert "2 more kinds of it are in the report." in drawn(*kinds, given.POINTS[0])


def test_the_same_failure_of_every_request_is_told_once() -> None:
    failed = [given.request(error=f"HTTP 503 after {n}.0 s") for n in range(40)]
    text = drawn(given.SETUP, *failed, width=200)
    assert text.count("HTTP 503") == 1
    assert "HTTP 503 after 0.0 s (and the like in 39 of the other 39 requests)" in text


def test_controls_claims_and_what_was_left_out_are_in_words() -> None:
    setup = dataclasses.replace(given.SETUP, left_out=(given.LEFT_OUT,))
    text = drawn(setup, *given.POINTS, *given.CHECKS, given.CLAIM, width=200)
    assert (
        "✓ prompt sent cold, and again from the cache: repeat at 1k commits 7.50 cold and 7.44 cached" in text
    )
    assert "✗ first point once more at the end: 7.50 at first, 3.10 at the end (68 steps each)" in text
    assert "? same prompt twice: the server gives no token ids" in text
    assert "accept length  3.123  lifetime  /server_info avg_spec_accept_length" in text
    assert "Over how many steps, it does not say." in text
    assert given.LEFT_OUT in text


def test_what_the_server_states_before_and_after_is_one_row() -> None:
    before = dataclasses.replace(given.CLAIM, origin="/metrics g, before the probe", value=2.5)
    after = dataclasses.replace(before, origin="/metrics g, after the probe", value=3.0)
    gone = dataclasses.replace(before, origin="/metrics h, before the probe", samples=40)
    [table] = [b for b in blocks(before, after, gone) if isinstance(b, Table)]
    assert table.columns == ("what", "before", "after", "over", "steps", "says who")
    assert table.rows == (
        ("accept length", "2.5", "3", "lifetime", "unknown / unknown", "/metrics g"),
        ("accept length", "2.5", "–", "lifetime", "40", "/metrics h"),
    )


def test_a_plan_shows_every_point_and_the_whole_cost() -> None:
    setup = dataclasses.replace(given.SETUP, planned_only=True, points=given.PLANNED)
    text = " ".join(drawn(setup).split())
    assert "64k repeat 4 262144 64560 548" in text
    assert "In all 8 requests, 65632 tokens to prefill as far as the prefix cache works, at most 1096" in text
    assert "how long that takes is unknown" in text
    assert "Nothing of it was sent." in text
    timed = " ".join(drawn(dataclasses.replace(setup, seconds=200.0, cold=True)).split())
    assert "at most about 3 min at the speed the server last had" in timed
    assert "prefix cache works" not in timed
    assert "Nothing would be sent." in drawn(dataclasses.replace(setup, points=()))


def test_with_a_baseline_the_break_even_stands_beside_the_commit() -> None:
    table = points_table(dataclasses.replace(given.SETUP, baseline=((1024, 8.0),)), *given.POINTS[:2])
    assert table.columns[-2:] == ("break-\neven", "gain")
    # 12 ms a step against 8 ms a token: 1.5 tokens a step are even, and 7.5 are five times as fast.
    assert [row[-2:] for row in table.rows] == [("1.50", "5.00×"), ("–", "–")]


def test_what_holds_of_several_points_is_said_once() -> None:
    idle = [dataclasses.replace(p, drafted_steps=0, steps=68) for p in given.POINTS[:3]]
    text = drawn(*idle, width=200)
    assert text.count("nothing was drafted in 68 steps") == 1
    assert "repeat at 1k, 16k and 64k: nothing was drafted in 68 steps\n" in text


def test_positions_of_the_shortest_and_the_longest_context() -> None:
    [table] = [
        b for b in blocks(*given.POINTS[:4]) if isinstance(b, Table) and b.title.startswith("Acceptance")
    ]
    assert table.columns == ("draft", "repeat\n1k\n68 steps", "repeat\n128k\n68 steps")
    assert table.rows[0] == ("1", "90 (90)", "90 (90)")
    assert table.rows[6] == ("7", "30", "30")
    assert "if these are 10 or more" in table.caption


@pytest.mark.parametrize(("reached", "shown_as"), [(10, "5 (50)"), (9, "4 (50)")])
def test_a_share_of_a_handful_of_steps_is_not_shown(reached: int, shown_as: str) -> None:
    """100 steps, the first draft right in that many: of so few, a share of them is not one."""
    point = dataclasses.replace(
        given.POINTS[0],
        steps=100,
        drafted_steps=100,
        per_position=(reached / 100, reached / 200),
        conditional=(reached / 100, 0.5),
    )
    [table] = [b for b in blocks(point) if isinstance(b, Table) and b.title.startswith("Acceptance")]
    assert table.rows[1][1] == (shown_as if reached >= 10 else shown_as.partition(" ")[0])


def test_steps_without_a_spread_are_not_called_a_median() -> None:
    burst = dataclasses.replace(given.POINTS[0], step_ms_low=None, step_ms_high=None)
    assert "the mean where no p10–p90 stands" in points_table(burst, given.POINTS[1]).caption
    alone = points_table(burst)
    assert "Step: mean, since the steps came in bursts." in alone.caption
    assert "p10–p90\nms" not in alone.columns
    assert "Step: median." in points_table(given.POINTS[0]).caption


def test_no_interval_is_named_where_none_is_drawn() -> None:
    """Points of others are bare means of an unknown number of steps."""
    bare = [
        dataclasses.replace(
            point,
            steps=0,
            commit_low=None,
            commit_high=None,
            step_ms_low=None,
            step_ms_high=None,
            timed_steps=0,
        )
        for point in given.POINTS
    ]
    table = points_table(*bare)
    assert table.rows[0][2] == "–"
    assert "Step: as stated." in table.caption
    assert "–: unknown." in table.caption
    text = drawn(*bare)
    assert "±" not in text
    assert "interval" not in text
    assert "p10" not in text
    assert "│ 95 % interval" in drawn(*given.POINTS)


def test_a_column_left_out_is_named_as_one_says_it() -> None:
    table = Table(
        ("what", "lowest–\nhighest", "break-\neven", "accept\nrate"), (("x" * 30,) * 4,), spare=(1, 2, 3)
    )
    out = io.StringIO()
    draw_block(console_for(False, 60, out), table)
    assert "Left out for want of width: lowest–highest, break-even, accept rate." in " ".join(
        out.getvalue().split()
    )


def test_without_drafts_there_is_no_plot_of_their_commit() -> None:
    setup = dataclasses.replace(given.SETUP, speculating=False)
    titles = [b.title for b in blocks(setup, *given.POINTS) if isinstance(b, Plot)]
    assert titles == ["Step time over context, ms"]


# --- plots -------------------------------------------------------------------------------------------------


def test_a_plot_has_a_place_for_each_context_and_a_line_at_the_ceiling() -> None:
    commit, step = (b for b in blocks(*given.POINTS) if isinstance(b, Plot))
    assert commit.places == ("1k", "16k", "64k", "128k")
    assert (commit.least, commit.ceiling, step.ceiling) == (1.0, 8, None)
    assert [series.name for series in commit.series] == ["repeat", "far-copy 512", "prose"]
    assert commit.series[1].values[2] is None
    assert commit.series[0].values[0] == Spread(7.5, 7.25, 7.75)
    assert not [b for b in blocks(given.POINTS[0], given.POINTS[4]) if isinstance(b, Plot)]


def plotted(plot: Plot, width: int = 60) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in plotting.lines(plot, width)]


def test_a_plot_drawn() -> None:
    series = (
        Series("up", (Spread(1.0), Spread(3.0, 2.0, 4.0))),
        Series("there", (Spread(2.0), None)),
    )
    plot = Plot("T", ("1k", "2k"), series, "context, tokens", 1.0, 5.0, "95 % interval")
    # 25 columns for two places of 12; the series stand at columns 5 and 7 of each, a row is a quarter.
    assert plotted(plot, 30) == [
        "  5 ┤╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌",
        "    │",
        "4.5 ┤",
        "    │",
        "  4 ┤                 │",
        "    │                 │",
        "3.5 ┤                 │",
        "    │                 │",
        "  3 ┤                 ●",
        "    │               · │",
        "2.5 ┤                 │",
        "    │             ·   │",
        "  2 ┤       ○   ·     │",
        "    │         ·",
        "1.5 ┤",
        "    │       ·",
        "  1 ┤     ●",
        "    └────────────────────────",
        "          1k          2k",
        "     context, tokens",
        "● up   ○ there",
        "╌ ceiling 5   │ 95 % interval",
    ]


@pytest.mark.parametrize(
    "values",
    [
        (math.nan, 1.0),
        (math.inf, 2.0),
        (-5.0, 1e300),
        (1e-300, 2e-300),
        (0.0, 0.0),
        (1e17, 1e17 + 16),
        (-1.7e308, 1.0),
    ],
)
def test_no_number_breaks_a_plot(values: tuple[float, float]) -> None:
    series = Series(reports.HOSTILE, tuple(Spread(v, v - 1, math.nan) for v in values))
    lines = plotted(Plot("T", ("a", "b"), (series,) * 12, reports.HOSTILE, ceiling=values[0]))
    assert 3 < len(lines) < 60
    assert not ACTS.search("\n".join(lines))
    assert "2 more series" in lines[-1]


def test_a_plot_of_many_places_says_what_it_leaves_out() -> None:
    places = tuple(str(number) for number in range(200))
    series = Series("s", tuple(Spread(float(number)) for number in range(200)))
    lines = plotted(Plot("T", places, (series,)), 80)
    assert max(map(len, lines)) <= 80
    assert re.search(r"\d+ more place", lines[-1])
    nothing = Plot("T", ("a",), (Series("s", (None,)),))
    assert plotted(nothing) == ["nothing was measured that could be drawn"]


def test_a_plot_is_fenced_in_markdown_and_plain_in_ascii() -> None:
    text = markdown.text(given.report(*given.POINTS))
    assert "**Commit length over context, tokens per step**\n\n```\n8 ┤╌╌╌" in text
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    terminal.draw(_commit_view.blocks(given.POINTS), width=120, file=out)
    out.flush()
    told = raw.getvalue().decode("ascii")
    assert "o repeat   x far-copy 512   * prose   - ceiling 8" in told


# --- verdicts ----------------------------------------------------------------------------------------------


def test_what_qualifies_the_points_stands_under_a_heading_of_its_own() -> None:
    idle = given.point("prose", 1024, 1.0, 12.0)
    text = drawn(dataclasses.replace(idle, drafted_steps=0))
    assert text.index("What these numbers are worth") < text.index("nothing was drafted in 68 steps")
    assert "What these numbers are worth" not in drawn(given.POINTS[0])


def test_a_source_that_repeats_its_histogram_is_said_once() -> None:
    said = "says 1203 accepted in 184 steps, the stream 0 in 184"
    odd = given.request(disagreements=(f"meta_info histogram {said}", f"meta_info {said}"))
    other = given.request(
        prompt=1, disagreements=("meta_info says 3 accepted in 2 steps, the stream 0 in 2",)
    )
    assert drawn(odd, given.POINTS[0]).count("the stream 0 in") == 1
    assert drawn(odd, other, given.POINTS[0]).count("the stream 0 in") == 2


@pytest.mark.usefixtures("no_steps")
def test_the_first_verdict_is_a_box_and_the_others_a_line() -> None:
    text = shown(given.report(verdicts=(given.VERDICT, given.KERNEL)))
    places = [
        text.index(part)
        for part in (
            "╭─ ✗ long_context_bug (sliding_window_kv) · high confidence ─",
            "│ The drafter breaks beyond a certain context length; the text is not to blame.",
            "│ • repeat commits 7.50 of 8",
            "│ Ruled out  text difficulty  (-v shows by what)",
            "│ Missing",
            "│ What to do next",
            "│ → ddprobe commit-probe --contexts 1900,2200",
            "╰─",
            "✗ attention_kernel_bottleneck, medium confidence: a step takes 12 ms at 1k",
            "  → --attention-backend flashinfer",
            "✗ fail",
        )
    ]
    assert places == sorted(places)
    assert text.count("╭") == 1
    told = shown(given.report(verdicts=(given.VERDICT, given.KERNEL)), verbose=True)
    assert told.count("╭") == 2
    assert "│ • text difficulty: the same text is easy at 1k" in told


@pytest.mark.usefixtures("no_steps")
def test_the_verdict_comes_last_on_a_terminal_and_first_in_a_ticket() -> None:
    report = dataclasses.replace(
        given.report(verdicts=(given.VERDICT,)), findings=(reports.finding(Outcome.WARN),)
    )
    text, page = shown(report), markdown.text(report)
    assert text.index("Findings") < text.index("╭─ ✗ long_context_bug") < text.index("✗ fail")
    assert page.index("## Verdict") < page.index("## Findings")


def test_every_verdict_has_a_meaning() -> None:
    assert set(words.MEANINGS) == set(VERDICTS)


def test_what_a_reason_says_is_not_missing_as_well() -> None:
    verdict = Verdict(
        name="inconclusive",
        reasons=("does not count: repeat at 1k: 18 steps, 64 are needed",),
        missing=("repeat at 1k: 18 steps, 64 are needed", "a far copy"),
    )
    assert dict(render.verdict_parts(verdict))["Missing"] == ("a far copy",)


@pytest.mark.parametrize(
    ("sentence", "host", "expected"),
    [
        ("ddprobe commit-probe --arms prose", "gpu1", "ddprobe commit-probe gpu1 --arms prose"),
        ("ddprobe commit-probe gpu1 --arms prose", "gpu1", "ddprobe commit-probe gpu1 --arms prose"),
        ("look: ddprobe commit-probe --cold", "gpu1", "look: ddprobe commit-probe gpu1 --cold"),
        ("ddprobe grep 'a b|c' shows it", "gpu1", "ddprobe grep 'a b|c' gpu1 shows it"),
        ("(`ddprobe server` shows it)", "me@gpu1", "(`ddprobe server me@gpu1` shows it)"),
        ("ddprobe inspect-config (taps)", "a b", "ddprobe inspect-config 'a b' (taps)"),
        ("switch speculation off", "gpu1", "switch speculation off"),
        ("ddprobe commit-probe", "", "ddprobe commit-probe"),
    ],
)
def test_a_command_to_do_next_names_its_host(sentence: str, host: str, expected: str) -> None:
    assert words.on_host(sentence, host) == expected


@pytest.mark.usefixtures("no_steps")
def test_each_host_has_its_own_first_verdict() -> None:
    report = given.report(verdicts=(given.VERDICT, given.DIFFICULT, given.KERNEL), hosts=("gpu1", "gpu2"))
    text = shown(report)
    assert "high confidence · gpu1 ─" in text
    assert "? inconclusive · gpu2 ─" in text
    assert "medium confidence  [gpu1]" in text
    page = markdown.text(report)
    assert "## Verdict on gpu1: long_context_bug (sliding_window_kv)\n\n**The drafter breaks" in page
    assert "not to blame.** (fail, high confidence)\n\n- repeat commits" in page
    assert "**What to do next**\n\n- ddprobe commit-probe --contexts 1900,2200 --arms repeat gpu1" in page
    assert page.index("## Verdict") < page.index("## Hosts")


@pytest.mark.usefixtures("no_steps")
def test_quiet_says_the_verdict_too() -> None:
    lines = shown(given.report(verdicts=(given.VERDICT, given.KERNEL)), quiet=True).splitlines()
    assert lines[0].startswith(
        "✗ gpu1  long_context_bug (sliding_window_kv), high confidence: repeat commits 7.50"
    )
    assert lines[0].endswith("; also attention_kernel_bottleneck")
    unsettled = Verdict(name="inconclusive", reasons=("it fell",), missing=("a far copy",))
    assert "? inconclusive: missing: a far copy" in shown(given.report(verdicts=(unsettled,)), quiet=True)
    assert lines[1].startswith("✗ fail")
    assert len(lines) == 2


@pytest.mark.parametrize("name", ["healthy", "text_difficulty"])
@pytest.mark.usefixtures("no_steps")
def test_quiet_says_one_line_where_no_verdict_needs_a_look(name: str) -> None:
    fine = Verdict(name=name, reasons=("repeat commits 7.9 of 8",), next=("keep this report",), host="gpu1")
    (line,) = shown(given.report(verdicts=(fine,)), quiet=True).splitlines()
    assert line.startswith({"healthy": "✓ pass", "text_difficulty": "· info"}[name])


@pytest.mark.parametrize("options", [{}, {"quiet": True}, {"verbose": True}])
@pytest.mark.usefixtures("no_steps")
def test_a_verdict_of_hostile_words_is_safe(options: dict[str, bool]) -> None:
    bad = reports.HOSTILE
    verdict = Verdict(
        name=bad, kind=bad, confidence=bad, reasons=(bad,), cites=(Cite(bad, bad),), ruled_out=(bad,),
        missing=(bad,), next=(bad,), host=bad,
    )  # fmt: skip
    report = given.report(verdicts=(verdict, verdict), hosts=("gpu1", bad))
    text = shown(report, **options)
    assert not ACTS.search(text)
    page = markdown.text(report)
    assert not ACTS.search(page)
    assert "<b>" not in re.sub("``.*?``", "", page)


def test_a_verdict_without_reasons_says_so() -> None:
    assert "It gives no reasons." in shown(given.report(verdicts=(Verdict(name="healthy"),)))


# --- hostile facts -----------------------------------------------------------------------------------------


def test_facts_of_hostile_text_are_safe_in_every_view() -> None:
    bad = reports.HOSTILE
    setup = dataclasses.replace(
        given.SETUP, engine=bad, base=bad, server=bad, version=bad, model=bad, method=bad, drafter=bad,
        left_out=(bad,),
    )  # fmt: skip
    points = tuple(dataclasses.replace(point, arm=bad, origin=bad) for point in given.POINTS[:4])
    checks = tuple(dataclasses.replace(check, name=bad, text=bad) for check in given.CHECKS)
    claim = dataclasses.replace(given.CLAIM, what=bad, origin=bad, window=bad)
    request = given.request(bad, 1024, error=bad, loop=bad, disagreements=(bad,))
    facts: tuple[Fact, ...] = (setup, request, *points, *checks, claim)
    for width in (20, 80, 120):
        assert not ACTS.search(drawn(*facts, width=width))
    report = given.report(*facts)
    page = markdown.text(report)
    assert not ACTS.search(page)
    assert "<b>" not in re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    jsonschema.validate(json.loads(jsonview.text(report)), reportschema.schema())


def test_numbers_that_are_none_are_shown_as_unknown() -> None:
    odd = dataclasses.replace(
        given.POINTS[0], commit_mean=math.nan, step_ms=math.inf, tok_s=math.nan, share_of_ceiling=math.inf,
        prompt_tokens=0,
    )  # fmt: skip
    assert points_table(odd).rows[0][4] == "–"
    assert drawn(odd, *given.POINTS[1:3])


# --- JSON --------------------------------------------------------------------------------------------------


def test_points_stand_at_the_top_of_the_json_with_just_their_fields() -> None:
    again = dataclasses.replace(given.POINTS[0], purpose="again")
    report = given.report(
        given.SETUP, *given.POINTS[:2], again, given.request(), verdicts=(given.VERDICT, given.DIFFICULT)
    )
    document = json.loads(jsonview.text(report))
    assert len(document["points"]) == 2
    assert document["points"][0] == {
        "host": "gpu1", "arm": "repeat", "context_tokens": 1024, "steps": 68, "commit_mean": 7.5, "commit_low": 7.25,
        "commit_high": 7.75, "ceiling": 8, "accept_rate": 6.5 / 7, "step_ms": 12.0, "tok_s": 625.0,
        "cached_tokens": 1008, "prompt_tokens": 1024, "source": "meta_info histogram + stream",
    }  # fmt: skip
    assert [(v["name"], v["outcome"]) for v in document["verdicts"]] == [
        ("long_context_bug", "fail"), ("inconclusive", "unknown"),
    ]  # fmt: skip
    assert document["outcome"] == "fail"
    jsonschema.validate(document, reportschema.schema())
    from ddprobe import reportjson

    assert reportjson.to_report(document) == report


def test_a_point_of_a_later_version_is_still_a_point() -> None:
    document = json.loads(jsonview.text(given.report(given.POINTS[0])))
    fact = document["steps"][0]["facts"][0]
    fact["steps"] = "many"
    del fact["origin"]
    from ddprobe import reportjson

    [point] = reportjson.from_report(reportjson.to_report(document))["points"]
    assert (point["steps"], point["source"]) == ("many", "")


# --- progress where nobody watches -------------------------------------------------------------------------


def test_a_log_has_a_line_for_each_new_thing_not_for_its_parts() -> None:
    out = io.StringIO()
    with progress(file=out, log=True) as tell:
        for number in (1, 2):
            tell("gpu1", f"commit: repeat at 64k, prompt {number} of 2, about 40 s left")
        tell("gpu2", "commit: \x1b[31mtokenize")
        tell("gpu1", "commit: prose at 1k, prompt 1 of 2")
        tell("gpu1", "")
    assert out.getvalue() == (
        "gpu1  commit: repeat at 64k\ngpu2  commit: ␛tokenize\ngpu1  commit: prose at 1k\n"
    )


def test_the_page_of_a_report_is_written_whole(tmp_path: Path) -> None:
    page = tmp_path / "report.md"
    page.write_text(markdown.text(given.report(given.SETUP, *given.POINTS, verdicts=(given.VERDICT,))))
    assert "| 64k | repeat | 68 | 1.05 ±0.05 |" in page.read_text()


def test_long_evidence_that_stands_above_is_told_by_its_first_sentence() -> None:
    """Once whole, as a finding; verbose, everywhere."""
    summary = f"the depth is 3 and the commit 1. {'This is why, at length. ' * 12}".strip()
    reason = f"RT01: {summary}"
    report = dataclasses.replace(
        reports.report(),
        findings=(Finding(id="RT01", outcome=Outcome.FAIL, subject="measurement", summary=summary),),
        verdicts=(Verdict(name="metric_inconsistency", reasons=(reason,)),),
        hypotheses=(
            Hypothesis(name="metric_wrong", text="the metric is wrong", status="supported", evidence=reason),
        ),
    )
    brief = shown(report)
    assert brief.count("This is why") == 12
    assert brief.count("the depth is 3 and the commit 1 …") == 2
    assert "…" not in shown(report, verbose=True)
