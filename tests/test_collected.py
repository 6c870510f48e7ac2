"""Verdicts over bare points, logs and counters of others, each for and against, on numbers chosen around the limits."""

from __future__ import annotations

from typing import Any

import pytest

from ddprobe import verdicts
from ddprobe.evidence import decode_logs
from ddprobe.evidence.claims import STATEMENT
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import (
    Acceptance,
    Claim,
    CommitCheck,
    CommitPoint,
    CommitRequest,
    DecodeBin,
    DecodeSeries,
    ModelConfig,
    PlainSpeed,
    ServerArgs,
    ServerProcess,
)
from ddprobe.model import Fact, Finding, Outcome, Verdict
from ddprobe.parsing.accept_rates import CORRECT, WITH_BONUS


def point(arm: str, context: int, commit: float | None, ms: float | None = None, **other: Any) -> CommitPoint:
    """100 steps of a drafter with 7 drafts a step."""
    known: dict[str, Any] = {
        "steps": 100,
        "drafted_steps": 100,
        "cached_tokens": 0,
        "ceiling": 8,
        "requests": 1,
        "commit_mean": commit,
        "step_ms": ms,
        "tok_s": commit / ms * 1000 if commit and ms else None,
    }
    return CommitPoint(arm=arm, context_tokens=context, **{**known, **other})


def repeat(*commits: float, contexts: tuple[int, ...] = (1024, 16384, 65536)) -> tuple[CommitPoint, ...]:
    return tuple(point("repeat", context, c) for context, c in zip(contexts, commits, strict=True))


def args(engine: str = "sglang", **values: Any) -> ServerArgs:
    return ServerArgs(engine=engine, origin="log", values=tuple(values.items()), resolved=True)


SPECULATES = args(speculative_algorithm="DFLASH", speculative_num_draft_tokens=8)


def fail(id: str, summary: str = "wrong") -> Finding:
    return Finding(id=id, outcome=Outcome.FAIL, subject="drafter", summary=summary, advice=f"mend {id}")


def judged(
    *facts: Fact, findings: tuple[Finding, ...] = (), bandwidth: float | None = None
) -> tuple[Verdict, ...]:
    return verdicts.judge_collected(facts, findings, bandwidth)


def names(*facts: Fact, **other: Any) -> list[str]:
    return [verdict.name for verdict in judged(*facts, **other)]


def test_nothing_is_inconclusive() -> None:
    (verdict,) = judged()
    assert (verdict.name, verdict.kind, verdict.confidence) == ("inconclusive", "no_measurement", "low")
    assert "the drafter's config.json" in verdict.missing


def test_points_of_others_are_no_commit_probe() -> None:
    assert verdicts.judge((*repeat(7.9, 7.9, 7.9),), ()) == ()


# --- drafter_dead -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("commit", "found"), [(2.04, "drafter_dead"), (2.06, "inconclusive"), (4.49, "inconclusive")]
)
def test_repeated_text_below_15_percent_of_the_drafts_is_dead(commit: float, found: str) -> None:
    """1 + 0.15 × 7 = 2.05."""
    assert names(*repeat(commit, commit, commit)) == [found]


def test_a_dead_drafter_says_so_with_its_sample_and_what_is_missing() -> None:
    (verdict,) = judged(*repeat(1.02, 1.02, 1.02), point("prose", 1024, 1.01))
    assert (
        verdict.reasons[0]
        == "repeat commits 1.02 of 8 (100 steps) at 1k: next to nothing on the easiest text there is"
    )
    assert verdict.confidence == "high"
    assert any("the cause" in text for text in verdict.missing)


@pytest.mark.parametrize(("context", "found"), [(4096, "drafter_dead"), (4097, "inconclusive")])
def test_only_a_short_context_shows_the_drafter_itself(context: int, found: str) -> None:
    assert names(point("repeat", context, 1.0)) == [found]


def test_an_error_in_the_wiring_makes_weak_miswired() -> None:
    facts = repeat(3.0, 3.0, 3.0)
    assert names(*facts) == ["inconclusive"]
    (verdict,) = judged(*facts, findings=(fail("DC01"),))
    assert (verdict.name, verdict.kind, verdict.confidence) == ("drafter_dead", "miswired", "medium")
    assert verdict.next[0] == "mend DC01"


@pytest.mark.parametrize("id", ["DC35", "DC40", "SA07"])
def test_an_error_elsewhere_does_not(id: str) -> None:
    assert "drafter_dead" not in names(*repeat(3.0, 3.0, 3.0), findings=(fail(id),))


def test_repeated_text_that_is_worse_than_every_other_was_no_easy_text() -> None:
    assert names(*repeat(1.1, 1.1, 1.1), point("prose", 1024, 4.0)) == ["inconclusive"]


def test_a_working_configuration_beside_it_lowers_the_confidence() -> None:
    (verdict,) = judged(*repeat(1.1, 1.1, 1.1), point("prose", 512, 1.06), point("prose #2", 512, 5.2))
    assert (verdict.name, verdict.confidence) == ("drafter_dead", "medium")


def test_a_missing_sample_lowers_the_confidence_and_forbids_nothing() -> None:
    (verdict,) = judged(point("repeat", 1024, 1.0, steps=0, drafted_steps=None))
    assert (verdict.name, verdict.confidence) == ("drafter_dead", "medium")
    assert "how many verify steps each mean is of" in verdict.missing


def bins(
    *commits: float, tok_s: tuple[float, ...] = (), lines: int = 4, running: int = 1, **other: Any
) -> tuple[DecodeBin, ...]:
    return tuple(
        DecodeBin(
            low=1024 * 4**n,
            high=2048 * 4**n,
            running=running,
            lines=lines,
            commit_mean=commit,
            commit_low=commit,
            commit_high=commit,
            rate_mean=0.5,
            tok_s=tok_s[n] if tok_s else 50.0,
            graph_share=1.0,
            **other,
        )
        for n, commit in enumerate(commits)
    )


def log(*found: DecodeBin, **other: Any) -> DecodeSeries:
    lines = sum(bin.lines for bin in found)
    return DecodeSeries(**{"engine": "sglang", "lines": lines, "bins": found, "draft_tokens": 7, **other})


@pytest.mark.parametrize(
    ("commit", "found"), [(1.0, "drafter_dead"), (1.05, "drafter_dead"), (1.06, "inconclusive")]
)
def test_a_log_in_which_nothing_is_right(commit: float, found: str) -> None:
    assert names(log(*bins(commit, commit))) == [found]


def test_a_log_whose_drafts_are_accepted_and_not_committed_is_no_dead_drafter() -> None:
    """The founding pair: a length of 1.00 beside a depth of 3.00."""
    length = Claim(
        what="commit length", value=1.0, origin="decode log avg_commit_len", window="the whole log"
    )
    depth = Claim(
        what="accepted depth", value=3.0, origin="decode log avg_accepted_depth", window="the whole log"
    )
    found = names(log(*bins(1.0, 1.0), draft_tokens=7), length, depth)
    assert "drafter_dead" not in found
    assert found[0] == "metric_inconsistency"


def test_one_log_line_is_too_little() -> None:
    assert names(log(*bins(1.0, lines=1))) == ["inconclusive"]


def test_a_weak_log_needs_an_error_that_explains_it() -> None:
    weak = log(*bins(1.3, 1.2))
    assert names(weak) == ["inconclusive"]
    (verdict,) = judged(weak, findings=(fail("DC01"),))
    assert (verdict.name, verdict.confidence) == ("drafter_dead", "low")
    assert names(log(*bins(2.2, 2.1)), findings=(fail("DC01"),)) == ["inconclusive"]


def test_hard_text_alone_is_no_dead_drafter() -> None:
    assert names(point("prose", 1024, 1.0), log(*bins(1.0, 1.0))) == ["inconclusive"]


# --- length -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("commit", "found"), [(4.44, "long_context_bug"), (4.46, "long_context_decay")])
def test_half_of_what_was_right_lost_is_a_collapse(commit: float, found: str) -> None:
    """1 + 0.5 × 6.9 = 4.45."""
    assert names(*repeat(7.9, 7.9, commit)) == [found]


def test_the_edge_is_named_with_the_limit_in_it() -> None:
    drafter = ModelConfig(role="drafter", path="config.json", max_position_embeddings=40960)
    (verdict,) = judged(*repeat(7.9, 7.9, 1.0), drafter, SPECULATES)
    assert (verdict.name, verdict.kind, verdict.confidence) == ("long_context_bug", "rope_position", "high")
    assert (
        "it is lost between 16k and 64k; within it lies the drafter's max_position_embeddings (40960 tokens)"
        in verdict.reasons
    )


def test_a_limit_outside_the_edge_is_not_named() -> None:
    drafter = ModelConfig(role="drafter", path="config.json", max_position_embeddings=131072)
    (verdict,) = judged(*repeat(7.9, 7.9, 1.0), drafter, SPECULATES)
    assert (verdict.kind, verdict.confidence) == ("", "medium")


def test_an_error_on_windows_gives_the_kind() -> None:
    (verdict,) = judged(*repeat(7.9, 7.9, 1.0), findings=(fail("DC20"),))
    assert verdict.kind == "window_ignored"


def test_a_length_beyond_which_all_is_well_is_no_limit() -> None:
    assert names(*repeat(7.9, 1.0, 7.9)) == ["inconclusive"]


@pytest.mark.parametrize(("commit", "found"), [(7.22, "healthy"), (7.20, "long_context_decay")])
def test_repeated_text_within_a_tenth_is_level(commit: float, found: str) -> None:
    """1 + 0.9 × 6.9 = 7.21."""
    assert names(*repeat(7.9, 7.9, commit)) == [found]


def test_prose_that_fades_while_repeated_text_holds() -> None:
    prose = (point("prose", 1024, 3.0), point("prose", 16384, 2.6), point("prose", 65536, 2.0))
    (verdict,) = judged(*repeat(7.9, 7.8, 7.8), *prose)
    assert (verdict.name, verdict.confidence) == ("long_context_decay", "medium")
    assert names(*prose) == ["inconclusive"]


def test_a_log_that_falls_is_no_verdict_without_held_text() -> None:
    assert names(log(*bins(4.0, 2.5, 1.4))) == ["inconclusive"]
    assert names(log(*bins(4.0, 4.0, 1.0))) == ["inconclusive"]


def test_a_log_that_falls_to_nothing_beyond_a_limit_that_a_lint_names() -> None:
    (verdict,) = judged(log(*bins(4.0, 4.0, 1.0)), findings=(fail("DC35"),))
    assert (verdict.name, verdict.confidence) == ("long_context_bug", "medium")
    assert names(log(*bins(4.0, 2.5, 1.4)), findings=(fail("DC35"),)) == ["inconclusive"]


# --- text -------------------------------------------------------------------------------------------------


def test_hard_at_every_length_is_the_text() -> None:
    prose = (point("prose", 1024, 1.9), point("prose", 65536, 1.9))
    (verdict,) = judged(*repeat(7.9, 7.9, 7.8), *prose)
    assert (verdict.name, verdict.confidence) == ("text_difficulty", "high")
    assert verdict.ruled_out[0].startswith("a dead drafter: repeat commits 7.90 of 8")


def test_a_question_makes_an_easier_text_the_answer() -> None:
    facts = (*repeat(7.9, 7.9, 7.8), point("gsm8k", 0, 3.0, steps=0, drafted_steps=None))
    assert names(*facts) == ["healthy"]
    asked = Claim(what="accept rate", value=0.25, origin=STATEMENT)
    assert names(*facts, asked) == ["text_difficulty"]
    assert names(*repeat(7.9, 7.9, 7.8), point("gsm8k", 0, 4.1), asked) == ["healthy"]


def test_random_tokens_are_no_control() -> None:
    random = (point("random", 1024, 1.0), point("random", 65536, 1.0))
    assert names(*repeat(7.9, 7.9, 7.8), *random) == ["healthy"]


def test_a_loop_beats_what_was_written() -> None:
    loop, sound = point("report B", 0, 7.8, loops=1), point("report A", 0, 2.7)
    (verdict,) = judged(loop, sound)
    assert (verdict.name, verdict.kind) == ("text_difficulty", "degenerate_output")
    (alone,) = judged(loop)
    assert (alone.name, alone.kind) == ("inconclusive", "degenerate_output")
    assert names(loop, point("report A", 0, 1.0)) == ["inconclusive"]


# --- time -------------------------------------------------------------------------------------------------


def timed(*times: float, commit: float = 7.9) -> tuple[CommitPoint, ...]:
    contexts = (1024, 16384, 65536, 131072)
    return tuple(point("repeat", context, commit, ms) for context, ms in zip(contexts, times, strict=False))


@pytest.mark.parametrize(("longest", "found"), [(40.0, "attention_kernel_bottleneck"), (39.9, "healthy")])
def test_twice_the_step_time_is_attention(longest: float, found: str) -> None:
    assert names(*timed(20, 22, 30, longest)) == [found]


def test_attention_and_a_collapse_are_both_told_the_larger_loss_first() -> None:
    points = [
        point("repeat", c, commit, ms)
        for c, commit, ms in ((1024, 7.9, 20), (16384, 7.0, 60), (65536, 1.5, 200))
    ]
    assert names(*points) == ["attention_kernel_bottleneck", "long_context_bug"]
    points = [
        point("repeat", c, commit, ms)
        for c, commit, ms in ((1024, 7.9, 20), (16384, 7.0, 30), (65536, 1.5, 50))
    ]
    assert names(*points) == ["long_context_bug", "attention_kernel_bottleneck"]


def test_what_the_memory_explains_is_not_the_kernel() -> None:
    """36 layers × 8 heads × 128 × 2 × 2 bytes = 147456 per token: 0.17 µs at 864 GB/s, of which 0.85 is five times."""
    target = ModelConfig(
        role="target",
        path="config.json",
        num_hidden_layers=36,
        num_key_value_heads=8,
        head_dim=128,
        dtype="bfloat16",
    )
    assert names(*timed(20, 30, 75, 130), target) == ["healthy"]
    assert names(*timed(20, 35, 80, 132), target) == ["attention_kernel_bottleneck"]
    assert names(*timed(20, 22, 33, 48), target, bandwidth=8000.0) == ["attention_kernel_bottleneck"]


def test_a_step_time_that_goes_up_and_down_is_no_slope() -> None:
    assert "attention_kernel_bottleneck" not in names(*timed(20, 60, 25, 45))


def test_a_log_alone_shows_it_too() -> None:
    (verdict,) = judged(log(*bins(3.2, 3.15, 3.1, tok_s=(64.0, 30.0, 10.0))))
    assert (verdict.name, verdict.confidence) == ("attention_kernel_bottleneck", "medium")
    assert names(log(*bins(3.2, 3.1, tok_s=(64.0, 10.0)))) == ["inconclusive"]


def graphs(
    *shares: float, ms: tuple[float, float] = (20, 40), running: tuple[int, int] = (2, 4)
) -> DecodeSeries:
    found = tuple(
        DecodeBin(
            low=1024,
            high=2048,
            running=running[n],
            lines=8,
            commit_mean=4.0,
            commit_low=3.9,
            commit_high=4.1,
            rate_mean=0.4,
            tok_s=4.0 / ms[n] * 1000,
            graph_share=share,
        )
        for n, share in enumerate(shares)
    )
    return log(*found)


def test_steps_without_graphs_that_take_longer() -> None:
    assert names(graphs(1.0, 0.0)) == ["launch_or_cpu_bound"]
    assert names(graphs(1.0, 0.0, ms=(20, 30))) == ["launch_or_cpu_bound"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(graphs(1.0, 1.0), id="all from graphs"),
        pytest.param(graphs(0.0, 0.0), id="none from graphs"),
        pytest.param(graphs(1.0, 0.0, ms=(20, 29.9)), id="not much longer"),
        pytest.param(graphs(1.0, 0.0, running=(2, 5)), id="more requests at once"),
    ],
)
def test_no_graphs_to_compare(other: DecodeSeries) -> None:
    assert "launch_or_cpu_bound" not in names(other)


@pytest.mark.parametrize(("again", "found"), [(44.1, "gpu_state"), (43.9, "healthy"), (35.9, "gpu_state")])
def test_the_same_point_with_another_step_time(again: float, found: str) -> None:
    twice = (
        point("repeat", 1024, 7.9, 40),
        point("repeat", 16384, 7.9, 41),
        point("repeat #2", 1024, 7.9, again),
    )
    assert names(*twice) == [found]


def test_another_commit_is_not_the_machine() -> None:
    assert "gpu_state" not in names(point("repeat", 1024, 7.9, 40), point("repeat #2", 1024, 6.9, 60))


def test_slower_than_plain_decoding() -> None:
    points = timed(20, 60, commit=4.0)
    assert names(*points, PlainSpeed(context_tokens=16384, tok_s=100.0)) == [
        "attention_kernel_bottleneck",
        "spec_net_loss",
    ]
    assert "spec_net_loss" not in names(*points, PlainSpeed(context_tokens=16384, tok_s=70.0))
    assert "spec_net_loss" not in names(*points, PlainSpeed(context_tokens=8192, tok_s=100.0))


# --- off, cached, contradicting ---------------------------------------------------------------------------


def test_arguments_that_do_not_speculate() -> None:
    (verdict,) = judged(args("vllm", model="m"))
    assert (verdict.name, verdict.kind, verdict.confidence) == ("not_speculating", "off", "medium")
    process = ServerProcess(
        engine="vllm", pid=0, argv=(), environment=(("OPTION_SPECULATIVE_DRAFT_MODEL", "/d"),)
    )
    (verdict,) = judged(args("vllm", model="m", server="vllm pid 0"), process)
    assert verdict.confidence == "high"


def test_drafts_speak_louder_than_arguments() -> None:
    assert "not_speculating" not in names(args("vllm", model="m"), *repeat(7.9, 7.9, 7.9))
    assert "not_speculating" not in names(args("vllm", model="m"), log(*bins(1.0, 1.0)))


def test_rejected_drafts_are_drafts() -> None:
    """Drafted and never right is a dead drafter; drafted nothing is speculation that is off."""
    dead = [point("repeat", context, 1.0) for context in (1024, 16384)]
    assert names(*dead) == ["drafter_dead"]
    idle = [point("repeat", context, 1.0, drafted_steps=0) for context in (1024, 16384)]
    (verdict,) = judged(*idle)
    assert (verdict.name, verdict.kind) == ("not_speculating", "never_drafts")
    assert names(dead[0], idle[1]) == ["drafter_dead"]


def test_decode_lines_without_any_figure() -> None:
    assert names(DecodeSeries(engine="sglang", lines=40, off_lines=40), SPECULATES) == ["not_speculating"]
    assert names(DecodeSeries(engine="sglang", lines=40, off_lines=39), SPECULATES) == ["inconclusive"]


def test_counters_without_a_draft() -> None:
    nothing = Acceptance(steps=0, origin="/metrics", window="lifetime")
    assert names(nothing) == ["not_speculating"]
    assert names(nothing, *repeat(7.9, 7.9, 7.9)) == ["healthy"]


def test_a_llama_server_that_names_a_drafter_only_is_not_called_off() -> None:
    assert names(args("llamacpp", speculative_draft_model_path="d.gguf")) == ["inconclusive"]


def test_cold_and_cached_apart() -> None:
    def pair(second: float, agrees: bool) -> tuple[Fact, ...]:
        text = f"repeat at 8192 commits 2.61 cold and {second:.2f} from the cache"
        check = CommitCheck(
            name="cold-cached",
            agrees=agrees,
            text=text,
            arm="repeat",
            context_tokens=8192,
            first=2.61,
            second=second,
            steps=60,
        )
        asked = CommitRequest(
            key="a", purpose="cached", arm="repeat", context_tokens=8192, prompt=0, cached_tokens=8128
        )
        return point("repeat", 8192, 2.61, ceiling=4), check, asked

    assert names(*pair(1.0, False)) == ["cache_state_bug"]
    assert names(*pair(2.5, True)) == ["inconclusive"]


def test_rates_of_two_formulas() -> None:
    old, new = log(*bins(2.1, 2.2), rate_definition=WITH_BONUS), log(*bins(2.9, 2.8), rate_definition=CORRECT)
    (verdict,) = judged(old, new)
    assert (verdict.name, verdict.kind, verdict.confidence) == (
        "metric_inconsistency",
        "rate_formula",
        "high",
    )
    assert names(old) == names(new) == names(new, new) == ["inconclusive"]


def test_a_rate_that_hides_that_nothing_is_right() -> None:
    hiding = log(*bins(1.0, 1.0), rate_definition=WITH_BONUS)
    claim = Claim(what="accept rate", value=0.33, origin=STATEMENT)
    assert names(hiding) == ["drafter_dead"]
    assert set(names(hiding, claim)) == {"drafter_dead", "metric_inconsistency"}


@pytest.mark.parametrize(
    ("commit", "steps", "found"),
    [
        (2.76, 200, "metric_inconsistency"),
        (2.74, 200, "inconclusive"),
        (2.76, 300, "inconclusive"),
        (2.20, 200, "metric_inconsistency"),
        (2.22, 200, "inconclusive"),
    ],
)
def test_counters_against_returned_tokens(commit: float, steps: int, found: str) -> None:
    """500 tokens of 10 requests in 200 steps: 2.45 without the prefills' and 2.50 with, a tenth allowed."""
    asked = [
        CommitRequest(
            key="r", purpose="point", arm="", context_tokens=0, prompt=n, output_tokens=50, num_spec_steps=20
        )
        for n in range(10)
    ]
    assert names(*asked, Acceptance(commit=commit, steps=steps, origin="/metrics")) == [found]


def test_what_people_say_contradicts_nothing() -> None:
    said = (
        Claim(what="accept length", value=40.0, origin=STATEMENT),
        Claim(what="accept rate", value=1.5, origin=STATEMENT),
    )
    assert names(*said, *repeat(7.9, 7.9, 7.9)) == ["healthy"]
    assert names(Claim(what="accept rate", value=1.5, origin="a tool"), *repeat(7.9, 7.9, 7.9)) == [
        "metric_inconsistency"
    ]


def test_a_commit_and_a_depth_of_one_run() -> None:
    def pair(second: str) -> list[str]:
        return names(
            Claim(what="commit length", value=1.0, origin="avg_commit_len", run="a"),
            Claim(what="accepted depth", value=3.0, origin="avg_accepted_depth", run=second),
        )

    assert pair("a") == ["metric_inconsistency"]
    assert pair("b") == ["inconclusive"]


def test_checks_on_figures_decide_and_warnings_do_not() -> None:
    assert names(findings=(fail("MC05"),)) == ["metric_inconsistency"]
    warned = Finding(id="MC05", outcome=Outcome.WARN, subject="measurement", summary="odd")
    assert names(findings=(warned,)) == ["inconclusive"]


def test_output_that_differs() -> None:
    assert names(findings=(fail("RT05"),)) == ["verify_not_lossless"]


def test_lookup_is_never_healthy_nor_dead() -> None:
    looked_up = args(speculative_algorithm="NGRAM", speculative_num_draft_tokens=8)
    for commits in ((7.9, 7.9, 7.9), (1.0, 1.0, 1.0), (7.9, 7.9, 1.0)):
        (verdict,) = judged(*repeat(*commits), looked_up)
        assert (verdict.name, verdict.kind) == ("inconclusive", "lookup")


# --- healthy ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("commit", "found"), [(4.5, "healthy"), (4.4, "inconclusive")])
def test_half_of_the_drafts_right_is_alive(commit: float, found: str) -> None:
    assert names(*repeat(commit, commit, commit)) == [found]


def test_saturated_points_of_few_steps_count_as_working() -> None:
    full = [point("repeat", context, 8.0, steps=16, saturated=True) for context in (1024, 16384)]
    (verdict,) = judged(*full)
    assert (verdict.name, verdict.confidence) == ("healthy", "medium")
    assert any("a far copy" in text for text in verdict.missing)


def test_one_length_is_not_enough_for_healthy() -> None:
    (verdict,) = judged(point("repeat", 1024, 7.9))
    assert verdict.name == "inconclusive"
    assert "repeated text at a second, greater length" in verdict.missing


def test_text_that_the_target_did_not_copy_is_no_easy_text() -> None:
    assert names(*(point("repeat", context, 1.0, copied=0.5) for context in (1024, 16384))) == [
        "inconclusive"
    ]


def test_the_order_of_facts_changes_nothing() -> None:
    facts = (*repeat(7.9, 7.9, 1.0), point("prose", 1024, 3.0), SPECULATES, log(*bins(3.2, 3.1, 3.0)))
    assert [(v.name, v.kind, v.confidence) for v in judged(*facts)] == [
        (v.name, v.kind, v.confidence) for v in judged(*reversed(facts))
    ]


GRAPHED = "[2026-12-01 10:00:0{second} TP0] Decode batch, #running-req: 1, #token: {context}, token usage: 0.1, accept len: 4.80, accept rate: 0.54, cuda graph: {graph}, gen throughput (token/s): {speed:.2f}, #queue-req: 0"


def slopes(lines: list[tuple[int, bool, float]]) -> list[str]:
    """Verdicts on a log of one request, each line with its context, whether it ran from a graph, and its step's time."""
    text = "\n".join(
        GRAPHED.format(second=at % 10, context=context, graph=graph, speed=4.8 / ms * 1000)
        for at, (context, graph, ms) in enumerate(lines)
        for _ in range(10)
    )
    document = of_bytes("log", text.encode())
    found = decode_logs.recognise(document, document.sample())
    assert found is not None
    return [verdict.name for verdict in verdicts.judge_collected(found.facts, (), None)]


def test_a_length_that_loses_its_graph_is_no_slope_of_attention() -> None:
    lost = [(1500, True, 22.0), (9000, True, 22.0), (17000, False, 77.0), (34000, False, 78.0)]
    assert "attention_kernel_bottleneck" not in slopes(lost)
    assert "launch_or_cpu_bound" in slopes(lost)
    # All from graphs, or none, and growing as before: it is.
    for graph in (True, False):
        grows = [(1500, graph, 22.0), (9000, graph, 40.0), (17000, graph, 77.0), (34000, graph, 150.0)]
        assert slopes(grows)[0] == "attention_kernel_bottleneck"
    # And what grows within one of the two still is.
    both = [(1500, True, 22.0), (3000, True, 40.0), (9000, True, 80.0), (34000, False, 400.0)]
    assert "attention_kernel_bottleneck" in slopes(both)


def test_the_loss_is_told_from_where_it_begins() -> None:
    speeds = {1024: (88.1, 60.2), 32768: (42.0, 50.1), 65536: (30.0, 40.0), 131072: (12.2, 33.0)}
    facts = [
        fact
        for context, (with_it, without) in speeds.items()
        for fact in (
            point("prose", context, 2.9, tok_s=with_it),
            PlainSpeed(context_tokens=context, tok_s=without),
        )
    ]
    verdict = next(v for v in verdicts.judge_collected(tuple(facts), (), None) if v.name == "spec_net_loss")
    assert verdict.reasons[0].startswith("prose at 128k gives 12.2 tok/s with speculation, and 33 without")
    assert verdict.reasons[1] == "it loses from 32k on"
    assert verdict.next == ("switch speculation off from 32k on, or try a shorter draft",)
    # A length between at which it pays is where the loss begins anew.
    again = [f for f in facts if f not in (facts[4], facts[5])]
    again += [point("prose", 65536, 2.9, tok_s=60.0), PlainSpeed(context_tokens=65536, tok_s=40.0)]
    verdict = next(v for v in verdicts.judge_collected(tuple(again), (), None) if v.name == "spec_net_loss")
    assert len(verdict.reasons) == 1
    assert verdict.next == ("switch speculation off from 128k on, or try a shorter draft",)
