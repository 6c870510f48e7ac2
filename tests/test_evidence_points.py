"""Points, request records and summaries as JSON: what counts, and what does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ddprobe import evidence, lints, verdicts
from ddprobe.evidence import points, pooled
from ddprobe.evidence.document import Found, of_bytes
from ddprobe.facts import Acceptance, Claim, CommitCheck, CommitPoint, CommitRequest, PlainSpeed, ServerArgs
from ddprobe.model import Cite, Outcome


def read(data: Any, key: str = "d") -> Found | None:
    text = data if isinstance(data, str) else json.dumps(data)
    return points.recognise(of_bytes(key, text.encode()), text[:65536])


def found(data: Any) -> Found:
    told = read(data)
    assert told is not None
    return told


def measured(*rows: dict[str, Any], most: int | None = 8, **beside: Any) -> list[CommitPoint]:
    told = found({"schema": "case-points/1", "max_commit_len": most, "points": list(rows), **beside})
    return [fact for fact in told.facts if isinstance(fact, CommitPoint)]


ROW = {
    "text": "hard_prose",
    "ctx_tokens": 4096,
    "verify_steps": 216,
    "completion_tokens": 420,
    "commit_len": 1.94,
}


def test_a_point() -> None:
    (point,) = measured({**ROW, "step_ms": 99.5, "tok_s": 19.5, "cached_tokens": 0})
    assert (point.arm, point.context_tokens, point.steps, point.commit_mean) == ("prose", 4096, 216, 1.94)
    assert (point.ceiling, point.step_ms, point.tok_s, point.cached_tokens) == (8, 99.5, 19.5, 0)
    assert point.share_of_ceiling == pytest.approx(0.94 / 7)
    assert point.source == (Cite("d", "$.points[0]"),)


@pytest.mark.parametrize(
    "name", ["running", "running_requests", "concurrency", "max_concurrency", "batch_size"]
)
def test_more_requests_at_once_are_a_series_of_their_own(name: str) -> None:
    one, many = measured({**ROW, name: 1}, {**ROW, name: 32})
    assert (one.arm, many.arm) == ("prose", "prose 32-at-once")


ROWS = [{"context": 1024, "accept_len": 6.1}, {"context": 32768, "accept_len": 1.05}]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (json.dumps(ROWS), "$[1]"),
        (json.dumps({"model": "m", "results": ROWS}), "$.results[1]"),
        ("\n".join(map(json.dumps, ROWS)), "$[1]"),
        (repr(ROWS), "$[1]"),
        (repr({"results": ROWS}) + "\n", "$.results[1]"),
    ],
    ids=["list", "under a name", "lines", "as Python prints it", "a dict as Python prints it"],
)
def test_points_wherever_they_stand(text: str, place: str) -> None:
    document = of_bytes("d", text.encode())
    found = points.recognise(document, document.sample())
    assert found is not None
    told = [fact for fact in found.facts if isinstance(fact, CommitPoint)]
    assert [(point.context_tokens, point.commit_mean) for point in told] == [(1024, 6.1), (32768, 1.05)]
    assert told[1].source == (Cite("d", place),)


@pytest.mark.parametrize(
    "data",
    [
        [{"context": 1024, "loss": 2.1}],
        [{"accept_len": 6.1}],
        [{"context": 1024, "accept_len": 6.1}, {"note": "x"}],
        {"results": [{"context": "long", "accept_len": 6.1}]},
        [],
    ],
)
def test_a_list_that_is_none_of_points(data: Any) -> None:
    document = of_bytes("d", json.dumps(data).encode())
    found = points.recognise(document, document.sample())
    assert found is None or not any(isinstance(fact, CommitPoint) for fact in found.facts)


@pytest.mark.parametrize(
    "commit", ["commit_len", "accept_len", "accept_length", "mean_acceptance_length", "commit_mean"]
)
@pytest.mark.parametrize("context", ["ctx_tokens", "context_tokens", "context", "context_length", "ctx"])
@pytest.mark.parametrize("steps", ["verify_steps", "steps"])
@pytest.mark.parametrize(("kind", "named"), [("text", "repeated"), ("arm", "repeat"), ("arm", "far-copy")])
def test_a_point_by_the_names_that_people_give(
    commit: str, context: str, steps: str, kind: str, named: str
) -> None:
    (point,) = measured({kind: named, context: 4096, steps: 216, commit: 1.94})
    assert point.arm == {"repeated": "repeat"}.get(named, named)
    assert (point.context_tokens, point.steps, point.commit_mean) == (4096, 216, 1.94)


def test_a_missing_count_is_missing() -> None:
    (point,) = measured({"text": "gsm8k_zh", "commit_len": 3.3})
    assert (point.arm, point.steps, point.drafted_steps, point.context_tokens) == ("gsm8k_zh", 0, None, 0)
    assert (point.commit_low, point.step_ms, point.tok_s) == (None, None, None)


def test_commit_follows_from_what_is_there() -> None:
    by_tokens, by_rate, by_counts = measured(
        {"text": "a", "completion_tokens": 257, "verify_steps": 128},
        {"text": "b", "accept_rate": 0.5, "drafts_per_step": 3.0},
        {"text": "c", "verify_steps": 31, "accepted": 50, "drafted": 93},
    )
    assert (by_tokens.commit_mean, by_rate.commit_mean) == (2.0, 2.5)
    assert by_counts.commit_mean == pytest.approx(81 / 31)


def test_times_per_token_are_brought_to_steps() -> None:
    (point,) = measured({**ROW, "tpot_ms": 50.0})
    assert point.step_ms == pytest.approx(97.0)
    assert point.tok_s == 20.0


def test_nothing_drafted_is_one_token_a_step_and_no_drafted_step() -> None:
    (point,) = measured(
        {"text": "x", "completion_tokens": 81, "verify_steps": None, "drafted": 0, "accepted": 0, "tok_s": 37}
    )
    assert (point.commit_mean, point.drafted_steps, point.steps, point.drafted_commit_mean) == (
        1.0,
        0,
        80,
        None,
    )


def test_every_figure_of_a_point_is_told_apart() -> None:
    told = found({"points": [{**ROW, "accept_rate": 0.319, "drafts_per_step": 2.94}], "max_commit_len": 8})
    figures = {f.origin: f.commit for f in told.facts if isinstance(f, Acceptance)}
    assert figures == {
        "commit_len": 1.94,
        "completion_tokens / verify_steps": pytest.approx(419 / 216),
        "accept_rate": pytest.approx(1.93786),
    }


def test_one_figure_alone_is_no_second_source() -> None:
    told = found({"points": [{"text": "gsm8k", "commit_len": 6.4}], "max_commit_len": 16})
    assert not [f for f in told.facts if isinstance(f, Acceptance)]


def test_what_tells_series_apart() -> None:
    arms = [
        point.arm
        for point in measured(
            {"text": "gsm8k", "enable_thinking": True, "commit_len": 4.75},
            {"text": "gsm8k", "enable_thinking": False, "commit_len": 10.0},
            {"text": "long document", "arm": "A", "commit_len": 2.7},
            {"text": "repeated", "temperature": 0.7, "commit_len": 2.7},
            {"text": "hard_prose", "ctx_tokens": 512, "commit_len": 1.06, "label": "all float16"},
            {"text": "hard_prose", "ctx_tokens": 512, "commit_len": 5.19, "label": "draft bfloat16"},
            most=16,
        )
    ]
    assert arms == [
        "gsm8k thinking",
        "gsm8k no-thinking",
        "long-document A",
        "repeat t=0.7",
        "prose",
        "prose #2",
    ]


def test_notes_labels_titles_and_provenance_do_not_count() -> None:
    plain = measured(ROW)
    noted = measured(
        {**ROW, "label": "broken", "provenance": "synthetic", "note": "the cache is lost"},
        title="dead",
        note="bug",
    )
    assert plain == noted


def test_a_circle_in_the_output() -> None:
    fine, loop = measured(
        {
            **ROW,
            "output_sample": "The report sets out three reasons for the delay, and the second one turns on spring.",
        },
        {**ROW, "ctx_tokens": 9, "output_sample": "token-" * 60},
    )
    assert (fine.loops, loop.loops) == (0, 1)


def test_cold_and_cached() -> None:
    cold = {
        "text": "repeated",
        "ctx_tokens": 8192,
        "verify_steps": 31,
        "commit_len": 2.61,
        "cached_tokens": 0,
    }
    cached = {
        "text": "repeated",
        "ctx_tokens": 8192,
        "completion_tokens": 81,
        "cached_tokens": 8128,
        "drafted": 0,
        "tok_s": 37,
    }
    told = found({"points": [cold, cached], "max_commit_len": 4})
    (check,) = (f for f in told.facts if isinstance(f, CommitCheck))
    assert (check.name, check.agrees, check.first, check.second) == ("cold-cached", False, 2.61, 1.0)
    assert "where nothing was drafted" in check.text
    purposes = [f.purpose for f in told.facts if isinstance(f, CommitRequest)]
    assert purposes == ["cold", "cached"]
    assert [f.purpose for f in told.facts if isinstance(f, CommitPoint)] == ["point", "cached"]


def test_cold_and_cached_that_agree() -> None:
    row = {"text": "repeated", "ctx_tokens": 8192, "verify_steps": 31, "commit_len": 2.61, "cached_tokens": 0}
    told = found({"points": [row, {**row, "commit_len": 2.3, "cached_tokens": 8128}], "max_commit_len": 4})
    (check,) = (f for f in told.facts if isinstance(f, CommitCheck))
    assert check.agrees is True


def test_a_ladder_served_from_cache_has_no_cold_twin() -> None:
    rows = [{**ROW, "ctx_tokens": context, "cached_tokens": context - 16} for context in (1024, 4096)]
    assert [point.purpose for point in measured(*rows)] == ["point", "point"]


# --- requests ----------------------------------------------------------------------------------------------


def records(data: Any) -> list[CommitRequest]:
    return [fact for fact in found(data).facts if isinstance(fact, CommitRequest)]


def test_plain_counts() -> None:
    first, second = records(
        {
            "num_speculative_tokens": 5,
            "requests": [
                {"completion_tokens": 6, "verify_steps": 2, "tokens_dropped_after_stop": 3},
                {"completion_tokens": 900, "verify_steps": 450, "tokens_dropped_after_stop": 0},
            ],
        }
    )
    assert (first.output_tokens, first.num_spec_steps, first.num_accepted_draft_tokens) == (6, 2, None)
    assert first.notes == ("3 accepted tokens dropped after the stop",)
    assert (second.prompt, second.notes, second.source[0].at) == (1, (), "$.requests[1]")


def test_aiperf_lines_with_a_sparse_histogram() -> None:
    line = {
        "num_spec_steps": 17,
        "num_accepted_draft_tokens": 48,
        "num_draft_tokens": 85,
        "acceptance_histogram": {"0": 1, "3": 16},
        "mean_acceptance_length": 3.8235,
    }
    first, second = records(json.dumps(line) + "\n" + json.dumps(line) + "\n")
    assert first.acceptance_histogram == (1, 0, 0, 16)
    assert first.mean_acceptance_length == pytest.approx(1 + 48 / 17)
    assert second.prompt == 1


def test_no_step_is_no_mean() -> None:
    (only,) = records({"num_spec_steps": 0, "mean_acceptance_length": 1.0, "num_accepted_draft_tokens": 0})
    assert only.mean_acceptance_length is None
    assert only.accounts[0].reported_commit is None


def test_an_answer_that_tells_of_its_request_twice() -> None:
    info = {
        "completion_tokens": 16,
        "spec_verify_ct": 15,
        "spec_num_correct_drafts": 0,
        "spec_num_proposed_drafts": 45,
    }
    answer = {"choices": [{"meta_info": info}], "sglext": {"spec_tokens_details": {"spec_verify_ct": 15}}}
    (only,) = records(answer)
    assert only.output_tokens == 16


@pytest.mark.parametrize(
    "histogram", [[], {}, [1, -1], ["a"], {"x": 1}, {"-1": 2}, {"99999999": 1}, [1.5], {"1": 1e400}, [True]]
)
def test_a_broken_histogram_is_none(histogram: Any) -> None:
    (only,) = records({"num_spec_steps": 3, "acceptance_histogram": histogram})
    assert only.acceptance_histogram is None


# --- summaries ---------------------------------------------------------------------------------------------


def test_summaries_are_claims_of_one_run() -> None:
    told = found(
        {
            "server_mean_acceptance_length": 2.38,
            "bench": {"accept_rate": 0.3},
            "avg_accepted_depth": 3.0,
            "gpus": 8,
        }
    )
    assert [(f.what, f.value, f.run) for f in told.facts if isinstance(f, Claim)] == [
        ("accept length", 2.38, "d"),
        ("accept rate", 0.3, "d"),
        ("accepted depth", 3.0, "d"),
    ]


def test_plain_speed_by_context() -> None:
    told = found({"spec_off_tok_s": {"131072": 31.0, "a": 2.0, "1024": -1}, "note": "separate"})
    assert [(f.context_tokens, f.tok_s) for f in told.facts if isinstance(f, PlainSpeed)] == [(131072, 31.0)]


def test_a_list_of_figures() -> None:
    told = found({"accept_length_bs1": [2.88, 3.08]})
    assert [f.value for f in told.facts if isinstance(f, Claim)] == [2.88, 3.08]


@pytest.mark.parametrize(
    "data",
    [
        "",
        "no json",
        "{",
        "[" * 100000,
        "{}",
        "[]",
        "null",
        '{"points": [{"x": 1}]}',
        '{"points": 3}',
        '{"points": [3, null, []]}',
        '{"architectures": ["DFlashDraftModel"], "hidden_size": 4096, "block_size": 16}',
        '{"schema": "ddprobe-report/1", "points": [{"commit_len": 3}]}',
        '{"speculative_accept_threshold_single": 1.0}',
        '{"accept_length": "many", "accept_rate": null}',
    ],
)
def test_other_documents_are_none_of_it(data: str) -> None:
    assert read(data) is None


@pytest.mark.parametrize("value", ["1e999", "-5", '"3"', "[]", "{}", "true", "null", "1" + "0" * 400])
def test_odd_values_do_no_harm(value: str) -> None:
    for name in (
        "ctx_tokens",
        "verify_steps",
        "commit_len",
        "completion_tokens",
        "cached_tokens",
        "text",
        "per_position",
    ):
        fields = {"text": '"repeated"', "step_ms": "12.0", name: value}
        row = "{" + ", ".join(f'"{field}": {cell}' for field, cell in fields.items()) + "}"
        (point,) = (f for f in found('{"points": [' + row + "]}").facts if isinstance(f, CommitPoint))
        assert point.step_ms == 12.0


# --- a mean that cannot be ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("commit", "ceiling_reached", "repeats_right"),
    [
        pytest.param(7.5, Outcome.PASS, Outcome.PASS, id="below"),
        pytest.param(8.0, Outcome.WARN, Outcome.PASS, id="at it"),
        pytest.param(8.4, Outcome.WARN, Outcome.PASS, id="the prefill's token counted along"),
        pytest.param(8.9, Outcome.UNKNOWN, Outcome.UNKNOWN, id="above it"),
        pytest.param(31.0, Outcome.UNKNOWN, Outcome.UNKNOWN, id="far above it"),
    ],
)
def test_a_mean_above_its_ceiling_proves_nothing(
    commit: float, ceiling_reached: Outcome, repeats_right: Outcome
) -> None:
    """It is impossible (RT11 says so), and neither "at least" the ceiling nor a right draft."""
    rows = [{"text": "repeated", "ctx_tokens": 1024, "commit_len": commit, "verify_steps": 200}]
    held = json.dumps({"schema": "case-points/1", "max_commit_len": 8, "points": rows})
    told = {
        f.id: f.outcome
        for f in lints.judge(evidence.facts([evidence.recognise(of_bytes("p", held.encode()))]))
    }
    assert (told["RT09"], told["RT02"]) == (ceiling_reached, repeats_right)
    assert (told.get("RT11") is Outcome.FAIL) == (commit > 8.0 * 1.1)


@pytest.mark.parametrize(
    ("engine", "given"),
    [
        ("sglang", {"tp_size": 8}),
        ("sglang", {"--tp": 8}),
        ("sglang", {"tensor-parallel-size": 8}),
        ("SGLang", {"tp": 8}),
        ("vllm", {"tensor_parallel_size": 8}),
        ("vllm", {"--tensor-parallel-size": 8}),
        ("vllm", {"tp": 8}),
        ("", {"tp_size": 8}),
    ],
)
def test_arguments_beside_points_are_named_as_their_engine_names_them(
    engine: str, given: dict[str, Any]
) -> None:
    point = {"context_tokens": 1024, "commit_mean": 2.0, "steps": 64}
    whole = {"schema": "case-points/1", "engine": engine, "server_args": given, "points": [point]}
    (args,) = [fact for fact in found(whole).facts if isinstance(fact, ServerArgs)]
    assert args.get("tp_size") == 8


def test_a_drafter_beside_points_is_found_in_its_engines_own_words() -> None:
    point = {"context_tokens": 1024, "commit_mean": 2.0, "steps": 64}
    given = {"speculative_config": {"method": "eagle3", "num_speculative_tokens": 3}}
    whole = {"schema": "case-points/1", "engine": "vllm", "server_args": given, "points": [point]}
    (args,) = [fact for fact in found(whole).facts if isinstance(fact, ServerArgs)]
    assert (args.get("speculative_algorithm"), args.get("num_speculative_tokens")) == ("eagle3", 3)


REPORTED = [
    {"host": "gpu1", "arm": "repeat", "context_tokens": 1024, "steps": 76, "commit_mean": 14.5, "commit_low": 13.4, "ceiling": 16},
    {"host": "gpu1", "arm": "far-copy far", "context_tokens": 65536, "steps": 64, "commit_mean": 1.0, "commit_low": 1.0, "ceiling": 16},
]  # fmt: skip


@pytest.mark.parametrize(
    "document",
    [
        json.dumps({"schema": "something/1", "points": REPORTED}),
        json.dumps(REPORTED),
        "\n".join(json.dumps(row) for row in REPORTED),
    ],
    ids=["document", "list", "lines"],
)
def test_the_points_of_a_report_are_points(document: str) -> None:
    told = [fact for fact in found(document).facts if isinstance(fact, CommitPoint)]
    assert [(p.arm, p.context_tokens, p.steps, p.commit_mean, p.ceiling) for p in told] == [
        ("repeat", 1024, 76, 14.5, 16),
        ("far-copy far", 65536, 64, 1.0, 16),
    ]


SGLANG_REQUEST = {
    "completion_tokens": 128,
    "spec_verify_ct": 127,
    "spec_num_correct_drafts": 0,
    "spec_num_proposed_drafts": 889,
    "prompt_tokens": 1024,
}
LLAMA_REQUEST = {"prompt_n": 100, "predicted_n": 200, "draft_n": 300, "draft_n_accepted": 120}


def counted(data: Any) -> tuple[Acceptance, ...]:
    told = read(data)
    asked = [fact for fact in told.facts if isinstance(fact, CommitRequest)] if told is not None else []
    return pooled.together(asked)


def test_request_records_say_together_what_a_step_commits() -> None:
    (dead,) = counted({"text": "x", "meta_info": SGLANG_REQUEST})
    assert (dead.commit, dead.rate, dead.steps, dead.draft_tokens) == (1.0, 0.0, 127, 7)
    assert dead.window == "1 request"
    # A llama-server names no steps: the prompt gave a token, and each step one more than it accepted.
    (llama,) = counted({"content": "x", "timings": LLAMA_REQUEST})
    assert (llama.steps, llama.rate) == (79, 0.4)
    assert llama.commit == pytest.approx(199 / 79)
    alive = {
        **SGLANG_REQUEST,
        "spec_verify_ct": 32,
        "spec_num_correct_drafts": 96,
        "spec_num_proposed_drafts": 224,
    }
    (both,) = counted([{"meta_info": SGLANG_REQUEST}, {"meta_info": alive}])
    assert both.steps == 159
    assert both.commit == pytest.approx(1 + 96 / 159)
    assert both.window == "2 requests"


def test_a_request_without_a_single_right_draft_is_a_dead_drafter() -> None:
    (first, *_) = verdicts.judge_collected(found({"meta_info": SGLANG_REQUEST}).facts, (), None)
    assert first.name == "drafter_dead"
    alive = {**SGLANG_REQUEST, "spec_verify_ct": 32, "spec_num_correct_drafts": 96}
    (first, *_) = verdicts.judge_collected(found({"meta_info": alive}).facts, (), None)
    assert first.name == "inconclusive"
    assert "4.00 tokens per step (1 request, 32 steps)" in " ".join(first.reasons)


@pytest.mark.parametrize(
    "record",
    [
        {"prompt_n": 100, "predicted_n": 200},  # nothing drafted
        {
            "prompt_n": 100,
            "predicted_n": 20,
            "draft_n": 300,
            "draft_n_accepted": 120,
        },  # more accepted than came out
        {"completion_tokens": 1, "spec_verify_ct": 0, "spec_num_correct_drafts": 0},
    ],
)
def test_request_records_without_steps_say_nothing_together(record: dict[str, Any]) -> None:
    assert counted({"timings": record}) == ()


@pytest.mark.parametrize(
    ("name", "stated", "value"),
    [
        ("acceptance_rate", 0.452, 0.452),
        ("acceptance_rate", 45.2, 0.452),
        ("acceptance_rate", 100, 1.0),
        ("acceptance_rate_percent", 5.2, 0.052),
        ("accept_rate", 3.2, 3.2),  # a length under the name of a rate, it may be
        ("acceptance_rate", 16, 16.0),
        ("acceptance_rate", 101, 101.0),
    ],
)
def test_a_rate_in_percent_is_a_share(name: str, stated: float, value: float) -> None:
    (claim,) = [fact for fact in found({name: stated}).facts if isinstance(fact, Claim)]
    assert claim.what == "accept rate"
    assert claim.value == pytest.approx(value)
