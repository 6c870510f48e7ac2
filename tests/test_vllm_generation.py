"""How vLLM is asked to generate, and what is made of answers that a real one gave."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ddprobe.engines.generation import Counters, Generated, Prompt, Serving
from ddprobe.engines.vllm import VLLM
from ddprobe.engines.vllm_accounts import BLOCK
from ddprobe.engines.vllm_generation import VLLMGeneration
from ddprobe.errors import Unanswered
from ddprobe.facts import Account, CommitRequest, ServerArgs
from ddprobe.model import Chunk, HttpRequest, HttpResult
from ddprobe.probes.draft._requests import request_fact

FOLDER = Path(__file__).parent / "data" / "vllm"
BASE = "http://127.0.0.1:8000"
VLLM_GENERATION = VLLMGeneration()
DRAFT = Serving(speculating=True, method="draft_model", drafter="model", draft_tokens=5)
NGRAM = Serving(speculating=True, method="ngram", drafter="lookup", draft_tokens=5)
PLAIN = Serving(speculating=False)
COLLAPSE = (
    '{"method":"draft_model","model":"models/tiny-bigram","num_speculative_tokens":5,"max_model_len":2048}'
)


def answer(body: str, status: int = 200, path: str = "/v1/completions") -> HttpResult:
    return HttpResult(
        question=HttpRequest(key="r", method="POST", path=path, base=BASE), status=status, body=body.encode()
    )


def recorded(name: str, path: str = "/v1/completions") -> HttpResult:
    """The answer in a file that `curl -i` wrote."""
    raw = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").replace("\r\n", "\n")
    head, body = raw.split("\n\n", 1)
    return answer(body, int(head.split("HTTP/1.1 ")[1][:3]), path)


def streamed(*sizes: int, **last: Any) -> str:
    """A stream of pieces with so many tokens each; `last` joins the closing event."""
    lines: list[dict[str, Any]] = [
        {"choices": [{"text": "x", "token_ids": [7] * size, "finish_reason": None}]} for size in sizes[:-1]
    ]
    lines.append({"choices": [{"text": "x", "token_ids": [7] * sizes[-1], "finish_reason": "length"}]})
    usage = {"prompt_tokens": 16, "completion_tokens": sum(sizes)}
    lines.append({"choices": [], "usage": usage, **last})
    return "".join(f"data: {json.dumps(line)}\n\n" for line in lines) + "data: [DONE]\n\n"


def read(
    result: HttpResult,
    serving: Serving = DRAFT,
    before: Counters | None = None,
    after: Counters | None = None,
) -> Generated:
    return VLLM_GENERATION.read(result, serving, before, after)


def counters(generated: float, drafts: float, drafted: float, accepted: float, *at: float) -> Counters:
    return Counters(generated=generated, drafts=drafts, drafted=drafted, accepted=accepted, per_position=at)


def account(generated: Generated, origin: str) -> Account:
    (found,) = [one for one in generated.accounts if one.origin == origin]
    return found


def arguments(*words: str) -> ServerArgs:
    values = VLLM().given(("vllm", "serve", *words))
    return ServerArgs(engine="vllm", origin="command line", values=tuple(values.items()))


# --- what the server says of itself ------------------------------------------------------------------------


def test_serving_from_the_command_line_and_the_answers() -> None:
    answers = {
        f"/{name}": recorded(name.rpartition("/")[2], f"/{name}")
        for name in ("version", "v1/models", "metrics")
    }
    serving = VLLM_GENERATION.serving(
        answers,
        [
            arguments(
                "models/tiny-bigram", "--speculative-config", COLLAPSE, "--max-num-batched-tokens", "2048"
            )
        ],
    )
    # 0.0193013667 s per output token, summed over 11 requests.
    assert serving.decode_ms == pytest.approx(1.7547, abs=1e-4)
    assert replace(serving, decode_ms=None) == Serving(
        speculating=True,
        method="draft_model",
        drafter="model",
        draft_tokens=5,
        context_limit=32768,
        kv_tokens=1048576,
        kv_used=0,
        running=0,
        waiting=0,
        vocabulary=None,
        model="tiny",
        version="0.32.0",
        prefix_cache=False,
        draft_context_limit=2048,
        limits=((2048, "--max-num-batched-tokens"),),
    )


def test_without_arguments_the_counters_tell() -> None:
    serving = VLLM_GENERATION.serving({"/metrics": recorded("metrics", "/metrics")}, [])
    # Five positions have a counter.
    assert (serving.speculating, serving.draft_tokens, serving.method, serving.drafter) == (True, 5, "", "")


@pytest.mark.parametrize(
    ("metrics", "given", "expected"),
    [
        ("vllm:generation_tokens_total 3.0\n", [], False),
        ("vllm:generation_tokens_total 3.0\nvllm:spec_decode_num_drafts_created 1.7e+09\n", [], False),
        ("python_info 1.0\n", [], None),
        ("python_info 1.0\n", [arguments("m")], False),
        ("python_info 1.0\n", [replace(arguments("m"), elsewhere="/etc/vllm.yaml")], None),
        ("python_info 1.0\n", [arguments("m", "--spec-method", "ngram")], True),
        ("python_info 1.0\n", [arguments("m", "--speculative-config.method", "ngram")], True),
        ("python_info 1.0\n", [arguments("m", "--speculative-config", "{not json}")], True),
    ],
)
def test_speculating(metrics: str, given: list[ServerArgs], expected: bool | None) -> None:
    serving = VLLM_GENERATION.serving({"/metrics": answer(metrics, path="/metrics")}, given)
    assert serving.speculating is expected


def test_nothing_known_is_nothing_said() -> None:
    gone = HttpResult(
        question=HttpRequest(key="m", method="GET", path="/metrics", base=BASE), failure="refused"
    )
    assert VLLM_GENERATION.serving({"/metrics": gone}, []) == Serving()


@pytest.mark.parametrize(
    ("words", "method", "drafter"),
    [
        (("--spec-method", "suffix"), "suffix", "lookup"),
        (("--spec-model", "[ngram]"), "ngram", "lookup"),
        (("--spec-method", "mtp", "--spec-tokens", "1"), "mtp", "model"),
        (("--spec-model", "z-lab/drafter"), "", "model"),
        (("-sc", '{"method":"dflash","model":"d","num_speculative_tokens":7}'), "dflash", "model"),
    ],
)
def test_methods(words: tuple[str, ...], method: str, drafter: str) -> None:
    serving = VLLM_GENERATION.serving({}, [arguments("m", *words)])
    assert (serving.method, serving.drafter) == (method, drafter)


def test_a_tree_and_an_adapter() -> None:
    tree = '{"method":"eagle","model":"e","num_speculative_tokens":3,"speculative_token_tree":"[(0,), (1,), (0, 0)]"}'
    models = '{"data":[{"id":"lora","parent":"base"},{"id":"base","parent":null,"max_model_len":4096}]}'
    serving = VLLM_GENERATION.serving(
        {"/v1/models": answer(models)}, [arguments("m", "--speculative-config", tree)]
    )
    assert (serving.tree, serving.model, serving.context_limit) == (True, "base", 4096)


def test_counters_by_exact_name() -> None:
    found = VLLM_GENERATION.counters(recorded("metrics"))
    assert found == Counters(
        drafts=68,
        drafted=340,
        accepted=335,
        per_position=(67, 67, 67, 67, 67),
        generated=640,
        steps=330,
        running=0,
        cached=0,
    )


def test_counters_that_are_not_there() -> None:
    assert VLLM_GENERATION.counters(answer("process_open_fds 34.0\n")) is None
    assert VLLM_GENERATION.counters(answer("vllm:generation_tokens_total 640.0\n", status=503)) is None
    plain = VLLM_GENERATION.counters(answer("vllm:generation_tokens_total 640.0\n"))
    assert plain is not None
    assert (plain.generated, plain.drafts, plain.accepted, plain.cached) == (640, None, None, None)
    odd = VLLM_GENERATION.counters(answer("vllm:generation_tokens_total NaN\n"))
    assert odd is None


def test_what_the_counters_claim_for_all_time() -> None:
    claims = VLLM_GENERATION.claims({"/metrics": recorded("metrics")})
    assert [(c.what, c.samples, c.window) for c in claims] == [
        ("accept length", 68, "lifetime"),
        ("accept rate", 68, "lifetime"),
    ]
    # 335 accepted of 340 drafted in 68 steps.
    assert [c.value for c in claims] == pytest.approx([1 + 335 / 68, 335 / 340])
    assert VLLM_GENERATION.claims({"/metrics": answer("vllm:generation_tokens_total 1.0\n")}) == ()


# --- what is sent ------------------------------------------------------------------------------------------


def test_generate_is_greedy_whole_and_streamed() -> None:
    request = VLLM_GENERATION.generate(
        "k", BASE, Prompt(ids=(281, 279)), 321, way="/v1/completions", model="tiny", timeout=60.0
    )
    assert (request.method, request.path, request.stream, request.timeout) == (
        "POST",
        "/v1/completions",
        True,
        60.0,
    )
    assert json.loads(request.body) == {
        "model": "tiny",
        "prompt": [281, 279],
        "max_tokens": 321,
        "temperature": 0,
        "repetition_penalty": 1.0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "return_token_ids": True,
    }
    verbatim = VLLM_GENERATION.generate(
        "k", BASE, Prompt(text="Hi “x”\n"), 8, way="/v1/completions", timeout=1.0
    )
    sent = json.loads(verbatim.body)
    assert (sent["prompt"], "model" in sent) == ("Hi “x”\n", False)


def test_tokenize() -> None:
    request = VLLM_GENERATION.tokenize("t", BASE, " red", "tiny")
    assert (request.path, json.loads(request.body)) == (
        "/tokenize",
        {"model": "tiny", "prompt": " red", "add_special_tokens": False},
    )
    assert VLLM_GENERATION.token_ids(recorded("tokenize", "/tokenize")) == (281, 279, 282)


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ('{"count":4,"tokens":[1,2,3]}', 200, "does not hold the ids it counts"),
        ('{"count":1,"tokens":["a"]}', 200, "does not hold the ids it counts"),
        ("nonsense", 200, "does not hold the ids it counts"),
        ('{"error":{"message":"no model"}}', 200, "no model"),
        ('{"detail":"Not Found"}', 404, "HTTP 404"),
    ],
)
def test_no_tokens(body: str, status: int, why: str) -> None:
    with pytest.raises(Unanswered, match=why):
        VLLM_GENERATION.token_ids(answer(body, status, "/tokenize"))


# --- one answer --------------------------------------------------------------------------------------------


def test_a_recorded_stream() -> None:
    generated = read(recorded("completions_stream"), NGRAM)
    # 16 tokens in, 32 out: 1 from the prefill, five whole steps of 6, and 1 of the sixth step's 6.
    assert (generated.prompt_tokens, generated.output_tokens, generated.cached_tokens) == (16, 32, 0)
    assert [step.tokens for step in generated.steps] == [6, 6, 6, 6, 6, 1]
    assert all((step.drafted, step.accepted) == (5, 5) for step in generated.steps)
    assert (generated.finish, generated.last_step_cut, generated.merged) == ("length", True, 0)
    assert generated.ids is not None
    phrase = (281, 279, 282, 284, 285, 274, 286, 283)
    assert generated.ids == phrase * 4
    assert generated.text.startswith(" red blue green gold black white pink gray red")
    assert account(generated, BLOCK) == Account(
        origin=BLOCK,
        steps=6,
        accepted=30,
        drafted=30,
        histogram=(0, 0, 0, 0, 0, 6),
        reported_commit=6.0,
        reported_rate=1.0,
        last_step_whole=True,
    )
    # As cut: 25 accepted in five steps, none in the sixth.
    assert account(generated, "stream") == Account(
        origin="stream", steps=6, accepted=25, histogram=(1, 0, 0, 0, 0, 5), last_step_whole=False
    )
    assert (generated.error, generated.notes) == ("", ())


def test_a_stream_across_the_drafters_limit() -> None:
    before, after = counters(122, 20, 100, 100, *[20] * 5), counters(183, 40, 200, 140, *[28] * 5)
    before, after = replace(before, cached=128), replace(after, cached=384)
    generated = read(recorded("stream_crossing_2048"), DRAFT, before, after)
    # 2000 tokens in; up to 2048 every step commits 6, then every step 1: 1 + 8·6 + 12·1 = 61.
    assert [step.tokens for step in generated.steps] == [6] * 8 + [1] * 12
    assert (generated.last_step_cut, generated.cached_tokens, generated.output_tokens) == (False, 256, 61)
    counted = account(generated, "/metrics")
    assert (counted.steps, counted.accepted, counted.drafted) == (20, 40, 100)
    assert counted.histogram == (12, 0, 0, 0, 0, 8)
    assert counted.commit == 3.0
    assert account(generated, "stream").histogram == counted.histogram
    assert [one.origin for one in generated.accounts] == ["/metrics", "stream"]


def test_the_record_of_a_stream_across_the_limit() -> None:
    before, after = counters(122, 20, 100, 100, *[20] * 5), counters(183, 40, 200, 140, *[28] * 5)
    request = request_fact(
        read(recorded("stream_crossing_2048"), DRAFT, before, after),
        key="r",
        purpose="point",
        arm="repeat",
        context_tokens=2000,
        prompt=0,
        max_tokens=61,
        ceiling=6,
    )
    assert (request.num_spec_steps, request.undrafted_steps, request.mean_acceptance_length) == (20, 0, 3.0)
    assert request.step_commits == (6,) * 8 + (1,) * 12
    assert (request.origin, request.disagreements, request.merged_chunks) == ("/metrics", (), 0)


def test_times_and_pieces_that_came_together() -> None:
    body = streamed(1, 6, 6, 6, 2)
    blocks = body.split("\n\n")
    sizes = [len(block) + 2 for block in blocks[:-1]]
    # The third and fourth event came in one piece; so did what closes the stream.
    arrivals = [(0.5, sizes[0]), (0.6, sizes[1]), (0.8, sizes[2] + sizes[3]), (0.9, sum(sizes[4:]))]
    result = replace(answer(body), chunks=tuple(Chunk(at, size) for at, size in arrivals))
    generated = read(result)
    assert generated.first_token_at == 0.5
    assert [(step.tokens, step.at) for step in generated.steps] == [(6, 0.6), (6, 0.8), (6, 0.8), (2, 0.9)]
    assert (generated.merged, generated.last_step_cut) == (1, True)
    assert account(generated, "stream").histogram == (0, 1, 0, 0, 0, 3)


def test_pieces_that_were_held_back() -> None:
    body = streamed(1, 1, 1, 1, 1, 1)
    sizes = [len(block) + 2 for block in body.split("\n\n")[:-1]]
    # Nobody computes a step in 10 microseconds: three steps came at 0.8, two of them as pieces of their own.
    times = (0.5, 0.6, 0.8, 0.80001, 0.80002, 0.9, 0.9, 0.9)
    result = replace(answer(body), chunks=tuple(map(Chunk, times, sizes)))
    generated = read(result)
    assert [step.at for step in generated.steps] == [0.6, 0.8, 0.80001, 0.80002, 0.9]
    assert generated.merged == 1


def test_steps_merged_by_the_server() -> None:
    generated = read(answer(streamed(1, 6, 12, 6)))
    assert (generated.merged, generated.last_step_cut) == (1, None)
    # Twelve tokens are no step of K = 5: the stream cannot be counted.
    assert generated.accounts == ()


def test_the_prefills_token_may_come_with_the_first_step() -> None:
    generated = read(answer(streamed(7, 6, 6)))
    assert [step.tokens for step in generated.steps] == [6, 6, 6]
    assert generated.last_step_cut is False


def test_a_stream_interval_hides_the_steps() -> None:
    generated = read(answer(streamed(1, 12, 11)), replace(DRAFT, stream_interval=10))
    assert (generated.steps, generated.accounts, generated.last_step_cut) == ((), (), None)
    assert generated.notes == ("--stream-interval 10: the pieces of the stream are no steps",)
    assert generated.output_tokens == 24


def test_an_older_server_tells_sizes_by_usage_alone() -> None:
    sizes, body, total = (1, 6, 3), "", 0
    for size in sizes:
        total += size
        choice = {"text": "x", "finish_reason": "length" if total == 10 else None}
        usage = {"prompt_tokens": 16, "completion_tokens": total}
        body += f"data: {json.dumps({'choices': [choice], 'usage': usage})}\n\n"
    generated = read(answer(body))
    assert (generated.ids, [step.tokens for step in generated.steps]) == (None, [6, 3])


def test_a_stream_that_lost_a_piece() -> None:
    body = streamed(1, 6, 6).replace('"completion_tokens": 13', '"completion_tokens": 19')
    generated = read(answer(body))
    assert generated.steps == ()
    assert generated.notes == ("the stream shows 13 tokens, its usage counts 19",)


# --- steps without a draft, and nothing drafted ------------------------------------------------------------


def test_lookup_says_not_which_steps_had_a_draft() -> None:
    generated = read(answer(streamed(1, 1, 6, 1)), NGRAM)
    told = account(generated, "stream")
    assert (told.steps, told.accepted, told.histogram, told.commit) == (None, 5, None, None)


def test_undrafted_steps_are_not_among_the_counted() -> None:
    # Three steps, one of them drafted: 5 right.
    generated = read(
        answer(streamed(1, 1, 6, 1)), NGRAM, counters(0, 0, 0, 0, *[0] * 5), counters(9, 1, 5, 5, *[1] * 5)
    )
    counted = account(generated, "/metrics")
    assert (counted.steps, counted.accepted, counted.histogram) == (1, 5, (0, 0, 0, 0, 0, 1))
    assert len(generated.steps) == 3
    assert account(generated, "stream").steps is None
    assert generated.last_step_cut is False


def test_pieces_put_together_are_no_accepted_drafts() -> None:
    # Ten steps of one token in five pieces; nothing was drafted. The engine made eleven iterations, one the prefill's.
    before = replace(counters(0, 4, 20, 9, *[3] * 5), steps=100)
    after = replace(counters(11, 4, 20, 9, *[3] * 5), steps=111)
    generated = read(answer(streamed(1, 1, 3, 1, 4, 1)), NGRAM, before, after)
    assert (generated.merged, [one.origin for one in generated.accounts]) == (5, ["/metrics"])
    request = request_fact(
        generated,
        key="r",
        purpose="point",
        arm="prose",
        context_tokens=16,
        prompt=0,
        max_tokens=11,
        ceiling=6,
    )
    assert (request.num_spec_steps, request.undrafted_steps, request.disagreements) == (0, 10, ())
    # Where the engine made no more iterations than pieces came, they contradict each other.
    honest = read(answer(streamed(1, 1, 3, 1, 4, 1)), NGRAM, before, replace(after, steps=106))
    assert honest.merged == 0
    assert [one.origin for one in honest.accounts] == ["/metrics", "stream"]


def test_nothing_drafted_is_no_mean_of_one() -> None:
    block = {
        "mean_acceptance_length": 1.0,
        "draft_acceptance_rate": 0.0,
        "acceptance_histogram": [0, 0, 0, 0, 0, 0],
        "num_spec_steps": 0,
        "num_accepted_draft_tokens": 0,
        "num_draft_tokens": 0,
        "num_spec_tokens": 5,
        "per_step_accepted": None,
        "per_step_drafted": None,
    }
    generated = read(answer(streamed(1, 1, 1, metrics={"speculative_decoding": block})), NGRAM)
    told = account(generated, BLOCK)
    assert (told.steps, told.accepted, told.commit, told.reported_commit, told.reported_rate) == (
        0,
        0,
        None,
        None,
        None,
    )
    assert [(step.drafted, step.accepted) for step in generated.steps] == [(0, 0), (0, 0)]
    assert generated.last_step_cut is False


def test_no_counter_moved_is_nothing_drafted() -> None:
    same = counters(100, 68, 340, 335, *[67] * 5)
    generated = read(answer(streamed(1, 1, 1)), NGRAM, same, replace(same, generated=103))
    told = account(generated, "/metrics")
    assert (told.steps, told.accepted, told.drafted, told.commit) == (0, 0, 0, None)


def test_without_speculation_nobody_speaks_of_it() -> None:
    generated = read(answer(streamed(1, 1, 1, 1)), PLAIN, Counters(generated=5), Counters(generated=9))
    assert (generated.accounts, generated.notes, generated.last_step_cut) == ((), (), False)
    assert [step.tokens for step in generated.steps] == [1, 1, 1]
    assert read(answer(streamed(1, 2, 1)), PLAIN).merged == 1


def test_unknown_speculation_shows_in_the_stream() -> None:
    assert read(answer(streamed(1, 1, 1)), Serving()).accounts == ()
    told = account(read(answer(streamed(1, 4, 1)), Serving()), "stream")
    assert (told.steps, told.accepted) == (None, 3)


# --- counters that are not this request's ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "note"),
    [
        (
            counters(122, 22, 110, 110, *[22] * 5),
            "the server generated 122 tokens meanwhile, this request 13",
        ),
        (counters(7, 1, 5, 5, *[1] * 5), "the server was started again meanwhile"),
    ],
)
def test_foreign_requests_and_restarts(after: Counters, note: str) -> None:
    before = counters(0 if after.generated == 122 else 100, 0, 0, 0, *[0] * 5)
    generated = read(answer(streamed(1, 6, 6)), DRAFT, replace(before, cached=0), replace(after, cached=9))
    assert [one.origin for one in generated.accounts] == ["stream"]
    assert generated.cached_tokens is None
    (said,) = generated.notes
    assert note in said


def test_counters_asked_only_once_say_nothing() -> None:
    generated = read(answer(streamed(1, 6, 6)), DRAFT, counters(0, 0, 0, 0), None)
    assert ([one.origin for one in generated.accounts], generated.notes) == (["stream"], ())


# --- answers that are none ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("completions_badauth", "HTTP 401: Unauthorized"),
        ("err_wrong_model", "HTTP 404: .*The model `nope` does not exist"),
        ("err_too_long", "HTTP 400: .*maximum context length is 32768 tokens"),
        ("engine_crash", "HTTP 500: .*EngineCore encountered an issue"),
    ],
)
def test_refusals(name: str, why: str) -> None:
    with pytest.raises(Unanswered, match=why):
        read(recorded(name))


def test_half_a_stream() -> None:
    whole = streamed(1, 6, 6)
    with pytest.raises(Unanswered, match="ends early: 7 tokens had come, and no finish reason"):
        read(answer("\n\n".join(whole.split("\n\n")[:2]) + "\n\n"))
    with pytest.raises(Unanswered, match="the connection was closed"):
        read(replace(answer(whole), failure="the connection was closed"))


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            streamed(1, 6).split("\n\n")[0]
            + '\n\ndata: {"error":{"message":"EngineCore died","code":500}}\n\n',
            "EngineCore died",
        ),
        ('{"error":"Unauthorized"}', "Unauthorized"),
        ('data: {"choices":[{"tok\n\n', 'the stream holds what is no JSON: {"choices":[{"tok'),
    ],
)
def test_errors_inside_a_good_status(body: str, error: str) -> None:
    assert read(answer(body)) == Generated(error=error)


@pytest.mark.parametrize(
    "body",
    [
        '{"choices":[{"finish_reason":"length","token_ids":{"a":1},"text":3}],"usage":[1],"metrics":{"speculative_decoding":7}}',
        'data: {"choices":[{"finish_reason":"length","token_ids":[null]}],"usage":{"completion_tokens":"9"}}\n\n',
        'data: {"choices":"x"}\n\ndata: {"choices":[{"finish_reason":"stop"}]}\n\n',
    ],
)
def test_nonsense_is_unknown(body: str) -> None:
    generated = read(answer(body))
    assert (generated.output_tokens, generated.ids, generated.steps, generated.accounts) == (
        None,
        None,
        (),
        (),
    )


# --- recorded probes ---------------------------------------------------------------------------------------


def runs(name: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def measured(run: dict[str, Any], serving: Serving) -> tuple[Generated, CommitRequest]:
    """A recorded answer, which was not streamed, with how far the counters moved meanwhile."""
    moved = counters(run["out"], run["verify_steps"], run["drafted"], run["accepted"])
    generated = read(answer(json.dumps(run["response"])), serving, counters(0, 0, 0, 0), moved)
    request = request_fact(
        generated,
        key="r",
        purpose="point",
        arm="repeat",
        context_tokens=run["ctx"],
        prompt=0,
        max_tokens=64,
        ceiling=6,
    )
    assert request.disagreements == ()
    return generated, request


def test_the_collapse_at_the_drafters_limit() -> None:
    # 256, 1024 and 1900: 11 steps, all 5 drafts right: 1 + 55/11 = 6. 2000 crosses 2048 on the way: 7 steps with 5
    # right, then 21 with none: 1 + 35/28 = 2.25. Beyond it 63 steps, each of whose 5 drafts is wrong: 1.
    expected = [
        (256, 262, 11, 6.0, 1.0),
        (1024, 1029, 11, 6.0, 1.0),
        (1900, 1909, 11, 6.0, 1.0),
        (2000, 2004, 28, 2.25, 0.25),
        (2100, 2103, 63, 1.0, 0.0),
        (4096, 4100, 63, 1.0, 0.0),
        (8192, 8199, 63, 1.0, 0.0),
        (256, 260, 11, 6.0, 1.0),
    ]
    found = []
    for run in runs("probe-draft-maxlen2048"):
        generated, request = measured(run, DRAFT)
        assert generated.output_tokens == 64
        block, counted = generated.accounts
        assert (block.origin, counted.origin) == (BLOCK, "/metrics")
        assert (block.steps, block.accepted, block.drafted) == (
            counted.steps,
            counted.accepted,
            counted.drafted,
        )
        assert (block.reported_commit, block.reported_rate) == (
            request.mean_acceptance_length,
            request.draft_acceptance_rate,
        )
        found.append(
            (
                run["ctx"],
                generated.prompt_tokens,
                request.num_spec_steps,
                request.mean_acceptance_length,
                request.draft_acceptance_rate,
            )
        )
    assert found == expected


def test_steps_of_the_collapse_in_order() -> None:
    (crossing,) = [run for run in runs("probe-draft-maxlen2048") if run["ctx"] == 2000]
    generated, _ = measured(crossing, DRAFT)
    assert account(generated, BLOCK).histogram == (21, 0, 0, 0, 0, 7)


def test_counters_alone_see_only_steps_with_a_draft() -> None:
    (far,) = [run for run in runs("probe-random-init") if (run["kind"], run["ctx"]) == ("random", 8192)]
    generated, request = measured(far, NGRAM)
    # Two drafts, 8 right: 5.0 by the counters; but 63 tokens took 55 steps, 53 of them without a draft: 1.145.
    assert (request.num_spec_steps, request.mean_acceptance_length) == (2, 5.0)
    assert (generated.output_tokens, request.undrafted_steps) == (64, 53)


def test_an_answer_clipped_at_the_limit() -> None:
    generated = read(recorded("err_exact_edge"), NGRAM)
    # 64 were asked for; 32720 + 48 = 32768.
    assert (generated.prompt_tokens, generated.output_tokens, generated.finish) == (32720, 48, "length")
    assert account(generated, BLOCK).histogram == (3, 0, 0, 0, 0, 0)
