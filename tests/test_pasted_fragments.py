"""What `analyse` concludes of little text: cut off, one line of it, figures that are none. A verdict rests on what is stated."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from ddprobe import evidence, lints, verdicts
from ddprobe.blocks import Table
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import Acceptance, CommitPoint, DecodeSeries, ServerArgs
from ddprobe.model import Fact, Outcome, Verdict
from ddprobe.parsing import acceptance, python_repr, shell_words
from ddprobe.render import evidencefiles
from ddprobe.verdicts.case import Case
from ddprobe.verdicts.collected import figures

OFF, DEAD, LIES, OPEN = "not_speculating", "drafter_dead", "metric_inconsistency", "inconclusive"


def whole(algorithm: str, drafts: str) -> str:
    return (
        "[2026-09-01 09:00:00] server_args=ServerArgs(model_path='/m', tp_size=8, context_length=None, "
        f"speculative_algorithm={algorithm}, speculative_num_draft_tokens={drafts}, port=30000)"
    )


SPECULATES, PLAIN = whole("'DFLASH'", "8"), whole("None", "None")
BEFORE = PLAIN.partition("speculative_algorithm")[0]
"""It ends before a word on speculation."""
COMMAND = "python -m sglang.launch_server --model-path /m --tp 8"
VLLM = "INFO [core.py:100] Initializing a V1 LLM engine (v0.32.0) with config: model='/m', tokenizer='/m'"
GIVEN = "(APIServer pid=1) INFO 09-01 non-default args: {'model_tag': '/m', 'tensor_parallel_size': 8"


def lines(count: int, told: str = "") -> str:
    """Decode lines of one request; `told`: what each states of acceptance."""
    return "\n".join(
        f"[2026-09-01 09:00:{n:02d}] Decode batch, #running-req: 1, #token: {1100 + n}, token usage: 0.01, {told}"
        "cuda graph: True, gen throughput (token/s): 100.00, #queue-req: 0"
        for n in range(count)
    )


def stated(length: str, rate: str = "0.00") -> str:
    return f"accept len: {length}, accept rate: {rate}, "


def points(*commits: Any, **other: Any) -> str:
    rows = [
        {"text": "repeated", "ctx_tokens": 1024 << n, "commit_len": commit, "verify_steps": 200, **other}
        for n, commit in enumerate(commits)
    ]
    return json.dumps({"max_commit_len": 8, "points": rows})


def facts_of(*texts: str) -> tuple[Fact, ...]:
    readings = [evidence.recognise(of_bytes(f"f{n}", text.encode())) for n, text in enumerate(texts)]
    assert not [trouble for reading in readings for trouble in reading.troubles]
    return evidence.facts(evidence.ordered(readings))


def judged(*texts: str) -> tuple[Verdict, ...]:
    facts = facts_of(*texts)
    return verdicts.judge_collected(facts, lints.judge(facts))


def only(*texts: str) -> Verdict:
    (verdict,) = judged(*texts)
    return verdict


def short(*texts: str) -> list[tuple[str, str]]:
    return [(verdict.name, verdict.confidence) for verdict in judged(*texts)]


# --- next to nothing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "hello", "a\nb\nc", "Decode batch", "accept len: 1.00", "{}", "[]", "null", "1e400", "nan"]
)
def test_next_to_nothing_is_inconclusive_in_sentences(text: str) -> None:
    verdict = only(text)
    assert verdict.name == OPEN
    assert verdict.reasons
    assert verdict.missing
    assert verdict.next


# --- cut off ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(BEFORE, id="the text ends"),
        pytest.param(f"{BEFORE}specul", id="within a name"),
        pytest.param(f"{BEFORE}speculative_algorithm=", id="before a value"),
        pytest.param(f"{BEFORE}speculative_algorithm='DFL", id="within a value"),
        pytest.param(f"{BEFORE}speculative_algorithm=No", id="within None"),
        pytest.param(f"{BEFORE}...)", id="dots"),
        pytest.param(f"{BEFORE}…", id="an ellipsis"),
        pytest.param(f"{BEFORE}port=30...)", id="dots behind a number"),
        pytest.param(f"{BEFORE}[truncated])", id="a word in brackets"),
        pytest.param(f"{BEFORE}<snip>)", id="a word in angles"),
        pytest.param(f"{BEFORE}port=1)", id="fields taken out"),
        pytest.param('{"model_path": "/m", "tp_size": 8, "port": 1}', id="of /server_info some fields"),
        pytest.param('{"model_path": "/m", "tp_size": 8, "port', id="/server_info cut"),
        pytest.param(VLLM, id="vLLM's configuration"),
        pytest.param(f"{GIVEN}, 'specul", id="vLLM's arguments"),
        pytest.param(f"{GIVEN}, ...}}", id="vLLM's arguments with dots"),
        pytest.param(f"{COMMAND} \\", id="a backslash"),
        pytest.param(f"{COMMAND} \\\n\nthen it hangs", id="a backslash and an empty line"),
        pytest.param(f"{COMMAND} …", id="a command with an ellipsis"),
        pytest.param(f"{COMMAND} --json-model-override-args '{{\"a\": 1", id="an open quote"),
    ],
)  # fmt: skip
def test_what_a_cut_text_does_not_say_is_not_known(text: str) -> None:
    verdict = only(text)
    assert verdict.name == OPEN
    # Nor is it known beside a line or two that state no acceptance.
    assert only(f"{text}\n\n{lines(3)}").name == OPEN
    args = [fact for fact in facts_of(text) if isinstance(fact, ServerArgs)]
    assert all(fact.cut for fact in args)
    if args:
        assert any("are cut off, or told in part" in reason for reason in verdict.reasons)
        assert "the rest of the server's arguments: they are not whole" in verdict.missing


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(PLAIN, id="whole"),
        pytest.param(PLAIN.partition(" speculative_num")[0], id="cut behind it"),
        pytest.param("server_args=ServerArgs(..., speculative_algorithm=None, port=3)", id="cut before it"),
        pytest.param(f"{VLLM}, speculative_config=None, dtype=torch.bfloat16", id="vLLM"),
        pytest.param('{"model_path": "/m", "tp_size": 8, "speculative_algorithm": null}', id="/server_info"),
    ],
)
def test_a_server_that_says_that_it_does_not_speculate_is_believed(text: str) -> None:
    assert short(text) == [(OFF, "medium")]
    assert short(f"{text}\n{lines(4)}" if text[0] != "{" else text, lines(4)) == [(OFF, "high")]


def test_a_cut_text_that_names_a_drafter_speculates() -> None:
    cut = SPECULATES.partition(" speculative_num")[0]
    assert short(f"{cut}\n{lines(20)}") == [(OFF, "medium")]
    assert "the server's arguments name speculation (DFLASH)" in only(cut).reasons[1]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A(a=1, b={'m': 'x', 'k': 2", {"a": 1, "b": {"m": "x"}}),
        ("A(a=1, b=C(m='x', k=2", {"a": 1, "b": {"m": "x"}}),
        ("A(a=1, b={'c': 1}, d={", {"a": 1, "b": {"c": 1}, "d": {}}),
        ("A(a=1, b=[1, 2", {"a": 1}),
        ("A(a=1, [cut])", {"a": 1}),
        ("A(a=1, b=8..., c=2)", {"a": 1, "c": 2}),
    ],
)
def test_of_a_value_within_another_what_stands_there_is_read(text: str, value: Any) -> None:
    assert python_repr.read(text) == python_repr.Read(value, False)


def test_dots_within_a_text_are_its_own() -> None:
    assert python_repr.read("A(a='/x...', b=[1, 2])") == python_repr.Read({"a": "/x...", "b": [1, 2]}, True)


def test_a_quote_that_nobody_closes() -> None:
    assert shell_words.unclosed("vllm serve /m --x '{")
    assert not shell_words.unclosed("vllm serve /m --x '{}'")


LOGGED = sorted((Path(__file__).parent / "cases").glob("*/*/server_args.log"))


@pytest.mark.parametrize("log", LOGGED, ids=lambda path: path.parent.name)
def test_no_case_is_of_more_faults_when_its_arguments_are_cut_off(log: Path) -> None:
    """At each field of them."""
    beside = [
        path
        for path in log.parent.iterdir()
        if path.is_file() and path.name != "expected.yaml" and path != log
    ]
    others = [path.read_text(encoding="utf-8") for path in sorted(beside)]
    text = log.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if "server_args=" in line)

    def faults(arguments: str) -> tuple[set[str], set[str]]:
        facts = facts_of(text.replace(line, arguments), *others)
        findings = lints.judge(facts)
        named = {verdict.name for verdict in verdicts.judge_collected(facts, findings)}
        return {finding.id for finding in findings if finding.outcome is Outcome.FAIL}, named & {
            OFF,
            DEAD,
            LIES,
        }

    failed, named = faults(line)
    cuts = [at.start() for at in re.finditer(", ", line)]
    assert cuts
    for cut in cuts:
        less, fewer = faults(line[:cut])
        assert less <= failed, line[:cut]
        assert fewer <= named, line[:cut]


# --- a fragment -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [COMMAND, "vllm serve /m --tensor-parallel-size 8", "llama-server -m /m.gguf -c 4096", f"{GIVEN}}}"],
)
def test_flags_that_a_command_line_does_not_hold_are_half_of_it(text: str) -> None:
    verdict = only(text)
    assert (verdict.name, verdict.confidence) == (OPEN, "low")
    assert any(reason.startswith("the command line names no speculation") for reason in verdict.reasons)


def test_a_command_line_without_a_drafter_and_a_log_without_a_draft_are_both_halves() -> None:
    assert short(COMMAND, lines(3)) == [(OPEN, "low")]
    assert short(COMMAND, lines(4)) == [(OFF, "high")]


@pytest.mark.parametrize("flag", ["--speculative-alg", "--spec", "--draft-of-the-future 3"])
def test_a_flag_on_drafts_that_is_not_understood_is_one_all_the_same(flag: str) -> None:
    assert short(f"{COMMAND} {flag}", lines(4)) == [(OFF, "low")]  # by the log alone


def test_lines_without_an_acceptance_say_something_from_four_on() -> None:
    assert short(lines(1)) == short(lines(3)) == [(OPEN, "low")]
    assert any("3 decode lines without an acceptance figure" in reason for reason in only(lines(3)).reasons)
    assert short(lines(4)) == [(OFF, "low")]
    assert not any("without an acceptance figure" in reason for reason in only(lines(4), points(7.9)).reasons)
    assert short(f"{PLAIN}\n{lines(3)}") == [(OFF, "medium")]
    assert short(f"{PLAIN}\n{lines(4)}") == [(OFF, "high")]
    assert short(f"{SPECULATES}\n{lines(4)}") == [(OFF, "medium")]


def test_a_scrape_without_a_series_of_drafts_may_be_part_of_one() -> None:
    assert short('vllm:generation_tokens_total{m="a"} 5000') == [(OFF, "low")]
    zero = 'vllm:spec_decode_num_drafts_total{m="a"} 0\nvllm:spec_decode_num_accepted_tokens_total{m="a"} 0\n'
    assert short(f'{zero}vllm:generation_tokens_total{{m="a"}} 5000') == [(OFF, "medium")]


# --- no numbers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "figure", ["nan", "NaN", "inf", "-inf", "-1.00", "1e400", "1e3", "0.00", "0.97", "1025.01"]
)
def test_a_length_that_is_no_number_or_cannot_be_is_unreadable(figure: str) -> None:
    for text in (
        lines(20, stated(figure)),
        f"{SPECULATES}\n{lines(20, stated(figure))}",
        f"{PLAIN}\n{lines(20, stated(figure))}",
    ):
        verdict = only(text)
        assert verdict.name == OPEN
        assert any(
            reason.startswith("20 of 20 decode lines state an acceptance that is no number")
            for reason in verdict.reasons
        )
        (log,) = [fact for fact in facts_of(text) if isinstance(fact, DecodeSeries)]
        assert (log.lines, log.unreadable_lines, log.off_lines) == (20, 20, 0)


@pytest.mark.parametrize("figure", ["0.98", "1.00", "1025.00"])
def test_lengths_that_can_be(figure: str) -> None:
    (log,) = [fact for fact in facts_of(lines(20, stated(figure))) if isinstance(fact, DecodeSeries)]
    assert log.unreadable_lines == 0


def test_unreadable_lines_stand_beside_those_that_can_be_read() -> None:
    text = "\n".join((lines(20, stated("3.00", "0.29")), lines(3, stated("nan")), lines(2)))
    (log,) = [fact for fact in facts_of(text) if isinstance(fact, DecodeSeries)]
    assert (log.lines, log.unreadable_lines, log.off_lines) == (25, 3, 2)
    assert short(text) == [(OPEN, "medium")]


def test_a_rate_above_its_length_fits_no_formula() -> None:
    """By len / K, the largest, a rate is at most the length."""
    assert short(lines(20, stated("1.00", "1.01"))) == [(OPEN, "low")]
    assert short(lines(20, stated("1.00", "1.00"))) == [(DEAD, "medium")]
    assert [
        fact
        for fact in facts_of(lines(20, stated("3.00", "1.50")))
        if isinstance(fact, Acceptance) and fact.commit == 3.0
    ]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1", "1e400"])
@pytest.mark.parametrize(
    "text",
    [
        'sglang:spec_accept_length{{m="a"}} {0}\nsglang:generation_tokens_total{{m="a"}} 1000',
        'vllm:spec_decode_num_drafts_total{{m="a"}} {0}\nvllm:spec_decode_num_accepted_tokens_total{{m="a"}} {0}\n'
        'vllm:generation_tokens_total{{m="a"}} 5000',
        "avg_spec_accept_length={0}",
        "avg_commit_len={0}",
    ],
)
def test_metrics_that_are_no_numbers_are_no_verdict(text: str, value: str) -> None:
    assert [verdict.name for verdict in judged(text.format(value))] == [OPEN]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, -1.0, 0, 1e9])
def test_points_that_are_no_numbers_are_no_verdict(value: float) -> None:
    assert [verdict.name for verdict in judged(points(value, value))] == [OPEN]


# --- numbers that cannot be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(points(8.8, 8.8), "healthy", id="the prefill's token counted in"),
        pytest.param(points(8.81, 8.81), LIES, id="more than a step can commit"),
        pytest.param(points(0.5, 0.5), LIES, id="less than the bonus token"),
        pytest.param(points(None, accept_rate=1.7), LIES, id="a rate above 1"),
        pytest.param(points(None, accept_rate=-0.2), OPEN, id="a rate below 0"),
    ],
)
def test_an_impossible_figure_is_a_matter_of_figures(text: str, found: str) -> None:
    assert [verdict.name for verdict in judged(text)] == [found]
    facts = facts_of(text)
    failed = {finding.id for finding in lints.judge(facts) if finding.outcome is Outcome.FAIL}
    assert ("RT11" in failed) is (found != "healthy")


@pytest.mark.parametrize(("commit", "counts"), [(8.8, True), (8.81, False), (0.98, True), (0.97, False)])
def test_a_figure_beyond_what_a_step_can_commit_is_none_of_the_drafter(commit: float, counts: bool) -> None:
    point = CommitPoint(
        arm="repeat", context_tokens=1024, requests=1, steps=100, commit_mean=commit, ceiling=8
    )
    assert bool(figures.lines(Case((point,)))) is counts
    drafts = ServerArgs(engine="vllm", origin="log", values=(("num_speculative_tokens", 7),), resolved=True)
    figure = Acceptance(commit=commit, origin="/metrics")
    assert bool(figures.figures(Case((drafts, figure)))) is counts
    # Where it says itself how many are drafted, these count.
    assert figures.figures(Case((drafts, dataclasses.replace(figure, draft_tokens=8)))) == (
        (dataclasses.replace(figure, draft_tokens=8),) if commit > 0.97 else ()
    )


@pytest.mark.parametrize(
    ("mean", "known"),
    [(0.97, False), (0.98, True), (1025.0, True), (1025.01, False), (float("nan"), False), (-1.0, False)],
)
def test_what_a_step_can_commit(mean: float, known: bool) -> None:
    assert (acceptance.from_length(mean).commit == mean) is known
    assert (acceptance.length(mean) is not None) is known


@pytest.mark.parametrize(
    ("rate", "known"), [(-0.01, False), (0.0, True), (1.005, True), (1.01, False), (float("inf"), False)]
)
def test_what_a_share_of_the_drafts_can_be(rate: float, known: bool) -> None:
    assert (acceptance.from_rate(rate, 7).rate == rate) is known
    assert (acceptance.from_rate(rate, 7).commit is not None) is known


# --- few ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "found"), [(1, (OPEN, "medium")), (2, (DEAD, "low")), (7, (DEAD, "low")), (8, (DEAD, "medium"))]
)
def test_nothing_right_in_few_lines_is_said_with_low_confidence(count: int, found: tuple[str, str]) -> None:
    text = lines(count, stated("1.00"))
    assert short(text) == [found]
    if count == 7:
        assert only(text).missing[0] == "more of the log: 7 decode lines of 8 at least"
    if count == 8:
        assert not any("more of the log" in one for one in only(text).missing)


@pytest.mark.parametrize(
    ("steps", "confidence"), [(1, "low"), (7, "low"), (8, "medium"), (16, "high"), (200, "high")]
)
def test_nothing_right_in_few_steps_is_said_with_low_confidence(steps: int, confidence: str) -> None:
    verdict = only(points(1.0, verify_steps=steps))
    assert (verdict.name, verdict.confidence) == (DEAD, confidence)
    assert (f"64 verify steps a point: the smallest has {steps}" in verdict.missing) is (steps < 64)


# --- what is shown of points ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beside", "share"),
    [((SPECULATES,), "50 %"), ((), "–"), ((PLAIN,), "–")],
    ids=["arguments tell the ceiling", "nobody tells it", "nothing is drafted"],
)
def test_the_share_of_a_point_by_the_servers_arguments(beside: tuple[str, ...], share: str) -> None:
    """4.50 of blocks of 8 is half of what drafts can add."""
    facts = facts_of(*beside, "context,accept_len\n1k,4.5\n")
    (table,) = [
        block
        for block in evidencefiles._points(facts)
        if isinstance(block, Table) and "share" in str(block.columns)
    ]
    assert share in table.rows[0]
