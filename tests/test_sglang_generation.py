"""How SGLang is asked to generate, and what is made of the answers of every release from 0.5.4 on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ddprobe.engines.generation import Generated, Prompt, Serving
from ddprobe.engines.sglang_generation import COMPLETIONS, NATIVE, SGLangGeneration
from ddprobe.errors import Unanswered
from ddprobe.facts import Account, ServerArgs
from ddprobe.model import Chunk, HttpRequest, HttpResult
from ddprobe.probes.draft._requests import request_fact
from ddprobe.readonly import check

FOLDER = Path(__file__).parent / "data"
BASE = "http://127.0.0.1:30000"
SGLANG = SGLangGeneration()
DFLASH = Serving(speculating=True, method="DFLASH", drafter="model", draft_tokens=3, version="0.5.23")
NGRAM = Serving(
    speculating=True, method="NGRAM", drafter="lookup", draft_tokens=7, tree=True, version="0.5.20"
)
EAGLE = Serving(speculating=True, method="EAGLE", drafter="model", draft_tokens=3, version="0.5.5")
PLAIN = Serving(speculating=False, version="0.5.23")


def answer(
    body: str, path: str = NATIVE, status: int = 200, chunks: tuple[Chunk, ...] = (), **more: Any
) -> HttpResult:
    question = HttpRequest(key="one", method="POST", path=path, base=BASE)
    return HttpResult(question=question, status=status, body=body.encode(), chunks=chunks, **more)


def recorded(name: str) -> str:
    return (FOLDER / "sglang-answers" / name).read_text(encoding="utf-8")


def got(name: str) -> HttpResult:
    """The answer of a GET."""
    path = "/" + name.removesuffix(".json").replace("v1_", "v1/")
    text = (FOLDER / "sglang-0.5.23" / name).read_text(encoding="utf-8")
    return HttpResult(
        question=HttpRequest(key=path, method="GET", path=path, base=BASE), status=200, body=text.encode()
    )


def told(path: str, value: Any) -> HttpResult:
    body = value if isinstance(value, str) else json.dumps(value)
    return HttpResult(
        question=HttpRequest(key=path, method="GET", path=path, base=BASE), status=200, body=body.encode()
    )


def stream(objects: Iterable[dict[str, Any]], *, together: int = 1, path: str = NATIVE) -> HttpResult:
    """Server-sent events, `together` of them a piece, a piece every 10 ms."""
    written = [f"data: {json.dumps(one)}\n\n" for one in objects] + ["data: [DONE]\n\n"]
    pieces = ["".join(written[at : at + together]) for at in range(0, len(written), together)]
    chunks = tuple(Chunk(0.01 * (at + 1), len(piece.encode())) for at, piece in enumerate(pieces))
    return answer("".join(pieces), path, chunks=chunks)


def native(totals: Iterable[int], final: dict[str, Any] | None = None, *, whole: bool = True) -> list[Any]:
    """Chunks of `/generate` after which so many tokens have come out; they hold all so far, or only the new ones."""
    made, before = [], 0
    totals = list(totals)
    for place, total in enumerate(totals):
        last = place == len(totals) - 1
        ids = list(range(100, 100 + total))
        meta = {
            "finish_reason": {"type": "length", "length": total} if last else None,
            "prompt_tokens": 5, "completion_tokens": total, "cached_tokens": 4,
        }  # fmt: skip
        made.append(
            {
                "text": "e" * (total if whole else total - before),
                "output_ids": ids if whole else ids[before:],
                "meta_info": meta | (final or {} if last else {}),
            }
        )
        before = total
    return made


def read(result: HttpResult, serving: Serving = DFLASH) -> Generated:
    return SGLANG.read(result, serving, None, None)


def lengths(generated: Generated) -> list[int]:
    return [step.tokens for step in generated.steps]


# --- asking ------------------------------------------------------------------------------------------------


def test_ids_and_texts_are_asked_for_greedily_without_an_end_streamed() -> None:
    ids = SGLANG.generate("one", BASE, Prompt(ids=(39, 68)), 65, way=NATIVE, timeout=30)
    assert (str(ids), ids.stream, ids.timeout) == (f"POST {BASE}/generate", True, 30)
    assert json.loads(ids.body) == {
        "input_ids": [39, 68],
        "sampling_params": {"temperature": 0, "max_new_tokens": 65, "ignore_eos": True},
        "stream": True,
    }
    words = SGLANG.generate("one", BASE, Prompt(text="Hello"), 65, way=NATIVE, timeout=30)
    assert json.loads(words.body)["text"] == "Hello"
    other = SGLANG.generate("one", BASE, Prompt(ids=(39, 68)), 65, way=COMPLETIONS, model="tiny", timeout=30)
    body = json.loads(other.body)
    assert (body["model"], body["prompt"], body["max_tokens"]) == ("tiny", [39, 68], 65)
    assert body["return_spec_tokens_details"] is True
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    for request in (ids, words, other, SGLANG.tokenize("ids", BASE, "Hello", "tiny")):
        check(request)


def test_a_text_is_tokenised_without_special_tokens() -> None:
    request = SGLANG.tokenize("ids", BASE, "Hello")
    assert json.loads(request.body) == {"prompt": "Hello", "add_special_tokens": False}
    body = '{"tokens":[39,68,75,75,78],"count":5,"max_model_len":512}'
    assert SGLANG.token_ids(answer(body, "/tokenize")) == (39, 68, 75, 75, 78)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('{"count":5}', "the answer holds no token ids"),
        ('{"tokens":[1,-2]}', "the answer holds no token ids"),
        ('{"tokens":[[1],[2]]}', "the answer holds no token ids"),
        ('{"error":{"message":"no tokenizer"}}', "no tokenizer"),
        ("<html>", "the answer is no JSON"),
    ],
)
def test_no_ids_is_no_answer(body: str, why: str) -> None:
    with pytest.raises(Unanswered, match=why):
        SGLANG.token_ids(answer(body, "/tokenize"))


# --- what it says of itself --------------------------------------------------------------------------------


def test_a_recorded_server_with_dflash() -> None:
    names = ("server_info.json", "model_info.json", "v1_models.json", "v1_loads.json")
    answers = {result.key: result for result in map(got, names)}
    serving = SGLANG.serving(answers, ())
    assert serving == Serving(
        speculating=True, method="DFLASH", drafter="model", draft_tokens=3, tree=False, context_limit=506,
        kv_tokens=8192, kv_used=0, running=0, waiting=0, model="tiny-qwen3", version="0.5.23", prefix_cache=True,
        stream_interval=1, decode_ms=serving.decode_ms, limits=((4096, "chunked prefill (--chunked-prefill-size)"),),
    )  # fmt: skip
    assert serving.decode_ms is not None


def info(**args: Any) -> Serving:
    return SGLANG.serving({"/server_info": told("/server_info", args)}, ())


@pytest.mark.parametrize(
    ("args", "method", "drafter", "drafted", "tree"),
    [
        ({"speculative_algorithm": "EAGLE3", "speculative_num_steps": 5, "speculative_eagle_topk": 1,
          "speculative_num_draft_tokens": 6}, "EAGLE3", "model", 5, False),
        ({"speculative_algorithm": "EAGLE", "speculative_num_steps": 5, "speculative_eagle_topk": 4,
          "speculative_num_draft_tokens": 16}, "EAGLE", "model", 5, True),
        ({"speculative_algorithm": "STANDALONE", "speculative_num_steps": 3}, "STANDALONE", "model", 3, False),
        ({"speculative_algorithm": "EAGLE", "speculative_num_steps": 3, "speculative_adaptive": True},
         "EAGLE", "model", None, False),
        # A block drafter reports num_steps 1 and topk 1, which say nothing of its depth.
        ({"speculative_algorithm": "DFLASH", "speculative_num_steps": 1, "speculative_eagle_topk": 1,
          "speculative_num_draft_tokens": 16}, "DFLASH", "model", 15, False),
        ({"speculative_algorithm": "dflash", "speculative_dflash_block_size": 8}, "DFLASH", "model", 7, False),
        ({"speculative_algorithm": "DSPARK", "speculative_num_draft_tokens": 9}, "DSPARK", "model", 8, False),
        ({"speculative_algorithm": "DSPARK", "speculative_dspark_block_size": 8}, "DSPARK", "model", 8, False),
        # NGRAM has its breadth in topk, and num_steps 0.
        ({"speculative_algorithm": "NGRAM", "speculative_num_steps": 0, "speculative_eagle_topk": 10,
          "speculative_num_draft_tokens": 12}, "NGRAM", "lookup", 11, True),
        ({"speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": 8, "speculative_ddtree_budget": 16},
         "DFLASH", "model", 7, True),
        ({"speculative_algorithm": "DDTREE", "speculative_num_draft_tokens": 17, "speculative_ddtree_budget": 16,
          "speculative_dflash_block_size": 8}, "DDTREE", "", 7, True),
        ({"speculative_algorithm": "DDTREE", "speculative_num_draft_tokens": 17, "speculative_ddtree_budget": 16},
         "DDTREE", "", None, True),
        ({"speculative_algorithm": "MINE", "speculative_draft_model_path": "m", "speculative_num_draft_tokens": 4},
         "MINE", "model", 3, False),
    ],
)  # fmt: skip
def test_how_many_tokens_a_step_drafts_depends_on_the_method(
    args: dict[str, Any], method: str, drafter: str, drafted: int | None, tree: bool
) -> None:
    said = info(**args)
    assert said.speculating is True
    assert (said.method, said.drafter, said.draft_tokens, said.tree) == (method, drafter, drafted, tree)


def test_no_algorithm_is_no_speculation_and_no_answer_is_unknown() -> None:
    assert info(speculative_algorithm=None).speculating is False
    nothing = SGLANG.serving({}, ())
    assert nothing == Serving()


def test_older_paths_and_the_command_line_stand_in() -> None:
    older = told("/get_server_info", {"version": "0.5.5", "speculative_algorithm": "EAGLE", "speculative_num_steps": 3})  # fmt: skip
    metrics = told("/metrics", 'sglang:num_running_reqs{tp_rank="0"} 2.0\nsglang:num_queue_reqs 1.0\n')
    serving = SGLANG.serving({"/server_info": older, "/metrics": metrics}, ())
    assert (serving.version, serving.draft_tokens, serving.running, serving.waiting) == ("0.5.5", 3, 2, 1)
    typed = ServerArgs(
        engine="sglang", origin="command line", version="0.5.12",
        values=(("speculative_algorithm", "DFLASH"), ("speculative_dflash_draft_window_size", 4096)),
    )  # fmt: skip
    serving = SGLANG.serving({}, (typed,))
    assert (serving.speculating, serving.method, serving.draft_tokens) == (True, "DFLASH", None)
    assert serving.limits == ((4096, "draft window (--speculative-dflash-draft-window-size)"),)
    assert serving.version == "0.5.12"


def test_a_request_has_the_room_of_the_smallest_rank() -> None:
    loads = [
        {"max_total_num_tokens": 9000, "token_usage": 0.5, "num_running_reqs": 1, "num_waiting_reqs": 0},
        {"max_total_num_tokens": 8000, "token_usage": 0.25, "num_running_reqs": 2, "num_waiting_reqs": 3},
    ]
    serving = SGLANG.serving({"/v1/loads": told("/v1/loads", {"version": "0.5.20", "loads": loads})}, ())
    assert (serving.kv_tokens, serving.kv_used) == (8000, 4000)
    assert (serving.running, serving.waiting) == (3, 3)


# --- recorded answers --------------------------------------------------------------------------------------


def test_a_recorded_stream_of_dflash() -> None:
    one = read(answer(recorded("0.5.23-dflash-generate.sse")))
    assert (one.prompt_tokens, one.cached_tokens, one.output_tokens, one.finish) == (5, 4, 32, "length")
    assert one.ids == (204, *(68,) * 31)
    assert one.text == "\x10" + "e" * 31
    # 1 + 8 × 4 = 33 tokens were committed, 32 wanted.
    assert lengths(one) == [4, 4, 4, 4, 4, 4, 4, 3]
    assert (one.last_step_cut, one.merged, one.notes) == (True, 0, ())
    assert one.accounts == (
        Account(origin="meta_info histogram", steps=8, accepted=24, drafted=24, histogram=(0, 0, 0, 8), last_step_whole=True),
        Account(origin="meta_info", steps=8, accepted=24, drafted=24, reported_commit=4.0, reported_rate=1.0, last_step_whole=True),
        Account(origin="stream", steps=8, accepted=23, histogram=(0, 0, 1, 7), last_step_whole=False),
    )  # fmt: skip


def test_a_recorded_stream_of_a_draft_model() -> None:
    serving = Serving(
        speculating=True, method="STANDALONE", drafter="model", draft_tokens=3, version="0.5.23"
    )
    one = read(answer(recorded("0.5.23-standalone-generate.sse")), serving)
    assert lengths(one) == [2, 4, 4, 4, 4, 4, 4, 4, 1]
    # One token of the last step's two was wanted; the histogram has both.
    assert one.last_step_cut is True
    assert one.accounts[0].histogram == (0, 2, 0, 7)
    assert [account.accepted for account in one.accounts] == [23, 23, 22]
    # What was drafted for each, the stream does not say.
    assert {(step.drafted, step.accepted) for step in one.steps} == {(None, None)}


def test_recorded_fields_under_two_names_are_one_account() -> None:
    one = read(answer(recorded("0.5.20-ngram-generate.sse")), NGRAM)
    assert lengths(one) == [8, 8, 8, 7]
    assert [account.origin for account in one.accounts] == ["meta_info histogram", "meta_info", "stream"]
    assert one.accounts[0].histogram == (0, 0, 0, 0, 0, 0, 0, 4)
    assert (one.accounts[1].steps, one.accounts[1].accepted, one.accounts[1].drafted) == (4, 28, 28)


def test_recorded_completions_tell_the_speculation_but_not_the_steps() -> None:
    one = read(answer(recorded("0.5.23-dflash-completions.sse"), COMPLETIONS))
    assert (one.prompt_tokens, one.output_tokens, one.finish, one.cached_tokens) == (5, 16, "length", None)
    assert one.text == "\x10" + "e" * 15
    assert (one.ids, one.steps, one.last_step_cut) == (None, (), None)
    assert [account.origin for account in one.accounts] == [
        "spec_tokens_details histogram",
        "spec_tokens_details",
    ]
    assert (one.accounts[0].steps, one.accounts[0].accepted) == (4, 12)


def test_an_answer_that_was_not_streamed() -> None:
    one = read(answer(recorded("0.5.23-dflash-generate.json")))
    assert (one.output_tokens, one.steps) == (32, ())
    assert one.ids is not None
    assert len(one.ids) == 32
    assert [account.commit for account in one.accounts] == [4.0, 4.0]


@pytest.mark.parametrize(
    ("name", "path", "serving", "steps", "accepted"),
    [
        # As each says itself: the last step, cut, is counted whole there.
        ("0.5.23-dflash-generate.sse", NATIVE, DFLASH, 8, 24),
        ("0.5.23-standalone-generate.sse", NATIVE, DFLASH, 9, 23),
        ("0.5.20-ngram-generate.sse", NATIVE, NGRAM, 4, 28),
        ("0.5.23-dflash-completions.sse", COMPLETIONS, DFLASH, 4, 12),
    ],
)
def test_the_sources_of_every_recorded_answer_agree(
    name: str, path: str, serving: Serving, steps: int, accepted: int
) -> None:
    one = read(answer(recorded(name), path), serving)
    fact = request_fact(
        one, key="one", purpose="point", arm="repeat", context_tokens=5, prompt=0, max_tokens=32,
        ceiling=(serving.draft_tokens or 0) + 1, speculating=True,
    )  # fmt: skip
    assert fact.disagreements == ()
    assert (fact.num_spec_steps, fact.num_accepted_draft_tokens) == (steps, accepted)
    assert fact.undrafted_steps == 0


# --- every release's fields --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "fields", "histogram"),
    [
        ("0.5.8", {"spec_accept_token_num": 5, "spec_draft_token_num": 9}, None),
        ("0.5.10", {"spec_accept_token_num": 5, "spec_draft_token_num": 9, "spec_accept_histogram": [0, 1, 2]}, (0, 1, 2)),
        ("0.5.11", {"spec_accepted_drafts": 5, "spec_proposed_drafts": 9, "spec_accept_histogram": [0, 1, 2]}, (0, 1, 2)),
        ("0.5.23", {"spec_num_correct_drafts": 5, "spec_num_proposed_drafts": 9, "spec_correct_drafts_histogram": [0, 1, 2]}, (0, 1, 2)),
        # What a fork adds does not hurt.
        ("0.5.20", {"spec_num_correct_drafts": 5, "spec_num_proposed_drafts": 9, "spec_tree": {"depth": 3}, "avg_commit_len": 1.0}, None),
    ],
)  # fmt: skip
def test_the_counts_have_had_three_names(
    version: str, fields: dict[str, Any], histogram: tuple[int, ...] | None
) -> None:
    serving = Serving(speculating=True, method="EAGLE", drafter="model", draft_tokens=3, version=version)
    final = {"spec_verify_ct": 3, "spec_accept_rate": 5 / 9, "spec_accept_length": 3.0, **fields}
    one = read(stream(native([1, 3, 6, 9], final)), serving)
    meta = next(account for account in one.accounts if account.origin == "meta_info")
    assert (meta.steps, meta.accepted, meta.drafted) == (3, 5, 9)
    assert (meta.reported_commit, meta.reported_rate) == (3.0, 5 / 9)
    assert meta.commit == pytest.approx(1 + 5 / 3)
    assert [account.histogram for account in one.accounts if "histogram" in account.origin] == (
        [histogram] if histogram else []
    )
    assert (lengths(one), one.last_step_cut) == ([2, 3, 3], False)


def test_the_oldest_releases_tell_a_rate_from_which_the_count_follows() -> None:
    final = {"spec_verify_ct": 4, "spec_accept_rate": 7 / 12, "spec_accept_length": 3.0}
    one = read(stream(native([1, 4, 6, 9, 12], final)), EAGLE)
    assert [(account.origin, account.steps, account.accepted) for account in one.accounts] == [
        ("meta_info", 4, 7),
        ("stream", 4, 7),
    ]
    # Over another number of drafts it would be no whole count: then it is none.
    odd = {**final, "spec_accept_rate": 0.3}
    assert read(stream(native([1, 4, 6, 9, 12], odd)), EAGLE).accounts[0].accepted is None


@pytest.mark.parametrize(
    "final",
    [
        {},
        {"spec_verify_ct": 0},
        {"spec_verify_ct": 0, "spec_accept_rate": 0.0, "spec_accept_length": 0.0, "spec_accept_token_num": 0},
    ],
)
def test_fields_that_are_absent_or_never_filled_are_no_zero(final: dict[str, Any]) -> None:
    one = read(stream(native([1, 2, 3], final)), EAGLE)
    assert [account.origin for account in one.accounts] == ["stream"]
    assert one.notes == ("the server speculates, but its answer says nothing of it",)
    single = read(stream(native([1], final)), EAGLE)
    assert (single.accounts, single.steps, single.notes) == ((), (), ())


def test_zeros_beside_a_count_of_steps_are_fields_never_filled() -> None:
    final = {"spec_verify_ct": 2, "spec_accept_rate": 0.0, "spec_accept_length": 0.0}
    meta = read(stream(native([1, 2, 3], final)), EAGLE).accounts[0]
    assert (meta.steps, meta.accepted, meta.reported_commit, meta.reported_rate) == (2, None, None, None)
    final["spec_accept_length"] = 1.5
    meta = read(stream(native([1, 2, 3], final)), EAGLE).accounts[0]
    assert (meta.accepted, meta.reported_rate) == (0, 0.0)


@pytest.mark.parametrize(
    ("method", "version", "correct", "whole", "cut"),
    [
        ("DFLASH", "0.5.12", 5, False, True),  # as it was cut: 5 + 3 = 9 - 1
        ("DFLASH", "0.5.14", 5, True, False),
        ("DFLASH", "0.5.14", 6, True, True),  # one more than came out
        ("DFLASH", "a1b2c3d", 5, None, True),
        ("DFLASH", "a1b2c3d", 6, True, True),
        ("EAGLE", "0.5.12", 5, True, False),
    ],
)
def test_whether_the_last_step_counts_in_full(
    method: str, version: str, correct: int, whole: bool | None, cut: bool
) -> None:
    serving = Serving(speculating=True, method=method, drafter="model", draft_tokens=3, version=version)
    final = {"spec_verify_ct": 3, "spec_num_correct_drafts": correct, "spec_num_proposed_drafts": 9}
    one = read(stream(native([1, 4, 7, 9], final)), serving)
    assert one.accounts[0].last_step_whole is whole
    assert one.last_step_cut is cut


def test_a_last_step_at_the_ceiling_cannot_have_been_cut() -> None:
    serving = Serving(speculating=True, method="DFLASH", draft_tokens=3, version="0.5.12")
    assert read(stream(native([1, 3, 7])), serving).last_step_cut is False


# --- the stream --------------------------------------------------------------------------------------------

FULL = {
    "spec_verify_ct": 3, "spec_num_correct_drafts": 7, "spec_num_proposed_drafts": 9,
    "spec_correct_drafts_histogram": [0, 1, 0, 2],
}  # fmt: skip


@pytest.mark.parametrize("whole", [True, False])
def test_chunks_may_hold_all_so_far_or_only_the_new(whole: bool) -> None:
    one = read(stream(native([1, 5, 7, 11], {**FULL, "spec_num_correct_drafts": 7}, whole=whole)))
    assert one.ids == tuple(range(100, 111))
    assert one.text == "e" * 11
    assert lengths(one) == [4, 2, 4]
    assert one.first_token_at == pytest.approx(0.01)
    assert [step.at for step in one.steps] == pytest.approx([0.02, 0.03, 0.04])


def test_events_that_came_in_one_piece_are_steps_without_times_of_their_own() -> None:
    one = read(stream(native([1, 5, 7, 11], FULL), together=2))
    assert lengths(one) == [4, 2, 4]
    assert one.merged == 2
    assert [step.at for step in one.steps] == pytest.approx([0.01, 0.02, 0.02])


def test_tokens_that_were_put_together_are_no_commit_length() -> None:
    one = read(stream(native([1, 7, 11], FULL)))
    assert (lengths(one), one.merged) == ([6, 4], 1)
    assert one.notes == ("the stream came in 2 pieces for 3 verify steps",)
    assert [account.origin for account in one.accounts] == ["meta_info histogram", "meta_info"]
    # The same where nothing says how many steps there were.
    one = read(stream(native([1, 7, 11])))
    assert (one.merged, one.accounts) == (1, ())
    assert "1 of 2 pieces of the stream hold more tokens than a step can commit" in one.notes


def test_steps_put_together_show_by_their_count_where_their_tokens_would_pass() -> None:
    final = {"spec_verify_ct": 4, "spec_num_correct_drafts": 1, "spec_num_proposed_drafts": 12}
    one = read(stream(native([1, 3, 4, 6], final)))
    assert (lengths(one), one.merged) == ([2, 1, 2], 1)
    assert [account.origin for account in one.accounts] == ["meta_info"]


def test_a_step_that_came_with_the_first_token_is_still_one() -> None:
    one = read(stream(native([5, 7, 11], FULL)))
    assert (lengths(one), one.merged) == ([4, 2, 4], 1)


def test_a_server_that_streams_every_few_tokens_shows_no_steps() -> None:
    serving = Serving(speculating=True, method="DFLASH", drafter="model", draft_tokens=3, stream_interval=8)
    one = read(stream(native([1, 11], FULL)), serving)
    assert one.steps == ()
    assert one.notes == ("the server streams every 8 tokens (--stream-interval): steps cannot be told apart",)
    assert one.accounts[0].commit == pytest.approx(1 + 7 / 3)


def test_without_speculation_every_token_is_a_step_of_its_own() -> None:
    one = read(stream(native([1, 2, 3, 5])), PLAIN)
    assert [(step.tokens, step.drafted, step.accepted) for step in one.steps] == [(1, 0, None)] * 4
    assert (one.accounts, one.last_step_cut, one.merged) == ((), False, 1)


def test_where_it_is_not_known_whether_it_speculates_the_stream_gives_no_account() -> None:
    one = read(stream(native([1, 2, 3])), Serving())
    assert (one.accounts, lengths(one)) == ((), [1, 1])
    assert {step.drafted for step in one.steps} == {None}


def test_an_answer_may_know_better_than_the_server_info() -> None:
    one = read(stream(native([1, 5, 7, 11], FULL)), PLAIN)
    assert [account.steps for account in one.accounts] == [3, 3, 3]
    assert one.notes == ("the server says that it does not speculate, but its answer tells of verify steps",)


def completion(totals: list[int], *, usage: bool, ids: bool) -> HttpResult:
    """Chunks of `/v1/completions`, with a running count or with ids, as newer releases give."""
    made: list[dict[str, Any]] = []
    for place, total in enumerate(totals):
        new = total - (totals[place - 1] if place else 0)
        last = place == len(totals) - 1
        choice: dict[str, Any] = {"index": 0, "text": "e" * new, "finish_reason": "length" if last else None}
        if ids:
            choice["token_ids"] = [68] * new
        counted = {"prompt_tokens": 5, "completion_tokens": total}
        made.append({"object": "text_completion", "choices": [choice], "usage": counted if usage else None})
    details = {**FULL, "spec_accept_length": 11 / 3, "spec_accept_rate": 7 / 9, "spec_cap_lens_histogram": []}
    made.append({"choices": [], "usage": None, "sglext": {"spec_tokens_details": details}})
    made.append({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": totals[-1], "prompt_tokens_details": {"cached_tokens": 4}}})  # fmt: skip
    return stream(made, path=COMPLETIONS)


@pytest.mark.parametrize(("usage", "ids"), [(True, False), (False, True), (True, True)])
def test_completions_show_the_steps_where_they_count_or_give_ids(usage: bool, ids: bool) -> None:
    one = read(completion([1, 5, 7, 11], usage=usage, ids=ids))
    assert lengths(one) == [4, 2, 4]
    assert (one.prompt_tokens, one.cached_tokens, one.output_tokens) == (5, 4, 11)
    assert one.ids == ((68,) * 11 if ids else None)
    assert [account.steps for account in one.accounts] == [3, 3, 3]
    assert (one.last_step_cut, one.text) == (False, "e" * 11)


def test_details_of_zeros_are_no_account() -> None:
    zeros = {"spec_verify_ct": 0, "spec_accept_rate": 0.0, "spec_accept_length": 0.0, "spec_num_correct_drafts": 0,
             "spec_num_proposed_drafts": 0, "spec_correct_drafts_histogram": []}  # fmt: skip
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "text": "ab", "finish_reason": "length"}]},
        {"choices": [], "sglext": {"spec_tokens_details": zeros}},
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
    ]
    assert read(stream(chunks, path=COMPLETIONS), PLAIN).accounts == ()


def test_a_request_taken_back_for_want_of_room_is_told() -> None:
    final = {**FULL, "num_retractions": 2}
    one = read(stream(native([1, 5, 7, 11], final)))
    assert one.notes == ("the server ran out of KV cache and took the request back 2 times: steps were lost",)


# --- no measurement ----------------------------------------------------------------------------------------


def test_a_recorded_error_inside_a_stream_of_status_200() -> None:
    one = read(answer(recorded("0.5.23-error-in-stream.sse")))
    assert one.error == "The input (900 tokens) is longer than the model's context length (512 tokens)."
    assert one.accounts == ()


def test_an_abort_is_an_error() -> None:
    chunks = native([1, 5])
    chunks[-1]["meta_info"]["finish_reason"] = {
        "type": "abort",
        "message": "Out of memory",
        "status_code": 503,
    }
    assert read(stream(chunks)).error == "the server aborted the request: Out of memory"
    plain: list[dict[str, Any]] = [{"choices": [{"index": 0, "text": "", "finish_reason": "abort"}]}]
    assert read(stream(plain, path=COMPLETIONS)).error == "the server aborted the request"


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (400, '{"error":{"message":"The input (900 tokens) is longer than …"}}', r"HTTP 400: The input \(900 tokens\)"),
        (400, '{"object":"error","message":"1 validation error:\\n  a","type":"Bad Request"}', "HTTP 400: 1 validation error: a"),
        (400, '{"error":"invalid type: string \\"many\\", expected i64"}', "HTTP 400: invalid type: string"),
        (500, "Internal Server Error", "HTTP 500: Internal Server Error"),
        (404, '{"detail":"Not Found"}', "HTTP 404: Not Found"),
        (405, '{"detail":"Method Not Allowed"}', "HTTP 405: Method Not Allowed"),
        (401, '{"error":"Unauthorized"}', "HTTP 401: Unauthorized"),
        (503, "", "HTTP 503"),
        (200, "", "the answer is empty"),
        (200, "<html>nonsense</html>", "the answer is no JSON"),
        (200, "[1, 2]", "the answer is no JSON object: "),
    ],
)  # fmt: skip
def test_a_refusal_is_told_in_the_servers_words(status: int, body: str, why: str) -> None:
    with pytest.raises(Unanswered, match=why):
        read(answer(body, status=status))


def test_nonsense_inside_a_stream_is_an_error() -> None:
    assert "no JSON" in read(answer('data: {"text": "e", "meta\n\n')).error


def test_half_a_stream_is_no_answer() -> None:
    whole = recorded("0.5.23-dflash-generate.sse")
    half = "\n\n".join(whole.split("\n\n")[:4]) + "\n\n"
    with pytest.raises(Unanswered, match="the stream broke off after 13 tokens, before its end"):
        read(answer(half))
    with pytest.raises(Unanswered, match="closed the connection"):
        read(answer(half, failure="the server closed the connection"))
    lines = recorded("0.5.23-dflash-completions.sse").split("\n\n")
    with pytest.raises(Unanswered, match="the stream broke off after 3 pieces, before its end"):
        read(answer("\n\n".join(lines[:3]) + "\n\n", COMPLETIONS))


# --- what it claims ----------------------------------------------------------------------------------------


def test_claims_name_their_window_and_their_place() -> None:
    metrics = told("/metrics", recorded("0.5.23-ngram-metrics.txt"))
    state = {"version": "0.5.23", "internal_states": [{"avg_spec_accept_length": 4.25}]}
    loads = {"loads": [{"speculative": {"accept_length": 4.0, "accept_rate": 0.5}}]}
    answers = {
        "/server_info": told("/server_info", state), "/v1/loads": told("/v1/loads", loads), "/metrics": metrics,
    }  # fmt: skip
    found = SGLANG.claims(answers)
    assert [(claim.what, claim.value, claim.origin, claim.window) for claim in found] == [
        ("accept length", 4.25, "/server_info avg_spec_accept_length", "lifetime"),
        ("accept length", 4.0, "/v1/loads speculative.accept_length", "lifetime"),
        ("accept rate", 0.5, "/v1/loads speculative.accept_rate", "last log window"),
        ("accept length", 5.0, "/metrics sglang:spec_accept_length", "last log window"),
        ("accept rate", 0.5714285714285714, "/metrics sglang:spec_accept_rate", "last log window"),
    ]
    assert [cite.at for cite in found[0].source] == ["$.internal_states[0].avg_spec_accept_length"]


def test_a_rate_means_another_thing_in_older_releases() -> None:
    gauges = "sglang:spec_accept_length 2.0\nsglang:spec_accept_rate 0.5\n"
    answers = {"/metrics": told("/metrics", gauges)}

    def whats(version: str) -> list[str]:
        known = {**answers, "/server_info": told("/server_info", {"version": version})}
        return [claim.what for claim in SGLANG.claims(known)]

    assert whats("0.5.11") == ["accept length", "accept rate"]
    assert whats("0.5.10") == ["accept length", "accept rate with bonus"]
    assert whats("unknown") == ["accept length"]


def test_what_a_fork_states_of_its_tree_is_a_claim_too() -> None:
    state = {"internal_states": [{"avg_commit_len": 1.0, "avg_accepted_depth": 3.0}]}
    found = SGLANG.claims({"/server_info": told("/server_info", state)})
    assert [(claim.what, claim.value) for claim in found] == [("commit length", 1.0), ("accepted depth", 3.0)]


def test_gauges_of_a_server_that_does_not_speculate_claim_nothing() -> None:
    gauges = "sglang:spec_accept_length 0.0\nsglang:spec_accept_rate 0.0\nsglang:spec_num_steps NaN\n"
    assert SGLANG.claims({"/metrics": told("/metrics", gauges)}) == ()
    assert SGLANG.claims({}) == ()
