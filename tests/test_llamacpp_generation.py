"""llama.cpp's way to generate, on recorded answers of builds b10434 and b11434 and on small made-up ones.

The recorded streams are 32 tokens of the repeated phrase with a drafter of 5 that is wrong at the first token and at two
of eight words: 1 token from the prefill, a step of 1, seven of 4, and a last one of 2 whose draft was trimmed to 1.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ddprobe.engines import TABLE
from ddprobe.engines.generation import Counters, Generated, Prompt, Serving
from ddprobe.engines.llamacpp_generation import LlamaCppGeneration
from ddprobe.errors import Unanswered
from ddprobe.facts import Account, Claim, ServerArgs
from ddprobe.model import Chunk, HttpRequest, HttpResult

DATA = Path(__file__).parent / "data" / "llamacpp"
BASE = "http://127.0.0.1:8080"
LLAMA = LlamaCppGeneration()
SPECULATING = Serving(speculating=True, method="draft-simple", drafter="model", draft_tokens=5)
NOTHING = Account(origin="timings", steps=0, accepted=0, drafted=0, last_step_whole=False)

Row = tuple[int, float, int, int]
"""Tokens out, milliseconds of decoding, drafted so far, accepted so far."""


def answer(body: bytes | str, path: str = "/completion", status: int = 200, **more: Any) -> HttpResult:
    method = "GET" if path in LLAMA.paths else "POST"
    question = HttpRequest(key="asked", method=method, path=path, base=BASE, stream=method == "POST")
    return HttpResult(
        question=question, status=status, body=body.encode() if isinstance(body, str) else body, **more
    )


def recorded(name: str, path: str = "/completion") -> HttpResult:
    return answer((DATA / name).read_bytes(), path)


def timings(row: Row) -> dict[str, Any]:
    output, clock, drafted, accepted = row
    spoken = {"draft_n": drafted, "draft_n_accepted": accepted} if drafted else {}
    return {
        "cache_n": 3,
        "prompt_n": 7,
        "prompt_ms": 20.0,
        "predicted_n": output,
        "predicted_ms": clock,
        **spoken,
    }


def streamed(*rows: Row, stop_type: str = "limit", truncated: bool = False) -> HttpResult:
    """A stream with one event a row, and the last event with the totals of the last row."""
    events = [{"content": " x", "tokens": [7], "stop": False, "timings": timings(row)} for row in rows]
    last = {"stop": True, "stop_type": stop_type, "truncated": truncated, "timings": timings(rows[-1])}
    return answer("".join(f"data: {json.dumps(event)}\n\n" for event in [*events, last]))


def read(result: HttpResult, serving: Serving = SPECULATING, **counters: Counters) -> Generated:
    return LLAMA.read(result, serving, counters.get("before"), counters.get("after"))


def shown(generated: Generated) -> list[tuple[int, int | None, int | None]]:
    return [(step.tokens, step.drafted, step.accepted) for step in generated.steps]


# --- what is sent ------------------------------------------------------------------------------------------


def test_the_native_request() -> None:
    request = LLAMA.generate("p", BASE, Prompt(ids=(281, 279)), 64, way="/completion", timeout=30)
    body = json.loads(request.body)
    assert (str(request), request.stream, request.timeout) == (f"POST {BASE}/completion", True, 30)
    assert (body["prompt"], body["n_predict"], body["temperature"]) == ([281, 279], 64, 0)
    assert (body["ignore_eos"], body["cache_prompt"], body["timings_per_token"]) == (True, True, True)
    # Penalties that the server was started with are left out.
    assert body["samplers"] == ["temperature"]
    assert "prompt" not in body["response_fields"]


def test_the_second_way() -> None:
    request = LLAMA.generate(
        "p", BASE, Prompt(text="Hello"), 8, way="/v1/completions", model="tiny", timeout=30
    )
    body = json.loads(request.body)
    assert (body["prompt"], body["max_tokens"], body["model"], body["temperature"]) == ("Hello", 8, "tiny", 0)
    assert body["stream_options"] == {"include_usage": True}
    assert not {"n_predict", "response_fields"} & set(body)


def test_tokens() -> None:
    request = LLAMA.tokenize("t", BASE, " red")
    assert json.loads(request.body) == {"content": " red", "add_special": False, "parse_special": False}
    assert LLAMA.token_ids(answer('{"tokens":[281,279]}', "/tokenize")) == (281, 279)
    assert LLAMA.token_ids(recorded("b10434-tokenize.json", "/tokenize")) == (281, 279, 282)


@pytest.mark.parametrize(
    "body", ['{"tokens":[281,"x"]}', '{"tokens":[281,true]}', '{"tokens":7}', "{}", "[]", "no JSON"]
)
def test_what_holds_no_tokens(body: str) -> None:
    with pytest.raises(Unanswered, match="no token ids"):
        LLAMA.token_ids(answer(body, "/tokenize"))


# --- recorded streams --------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", ["b10434", "b11434"])
def test_a_recorded_stream(build: str) -> None:
    got = read(recorded(f"{build}-completion-stream.txt"))
    assert (got.prompt_tokens, got.cached_tokens, got.output_tokens, got.finish) == (16, 15, 32, "length")
    phrase = (281, 279, 282, 284, 285, 274, 286, 283)
    assert got.ids == phrase * 4
    assert got.text == " red blue green gold black white pink gray" * 4
    assert shown(got) == [(1, 5, 0), *[(4, 5, 3)] * 7, (2, 1, 1)]
    assert (got.last_step_cut, got.cut_steps, got.merged, got.notes, got.error) == (True, 1, 0, (), "")
    stream, totals = got.accounts
    assert stream == Account(
        origin="stream", steps=9, accepted=22, drafted=41, histogram=(1, 1, 0, 7), last_step_whole=False
    )
    assert totals == Account(origin="timings", accepted=22, drafted=41, last_step_whole=False)


def test_times_are_the_servers_own() -> None:
    """The first token came after 50 ms; the steps ended 3.858, 7.924, … ms later on the server's clock."""
    body = (DATA / "b10434-completion-stream.txt").read_bytes()
    first = body.index(b"\n\n") + 2
    pieces = (Chunk(0.050, first), Chunk(0.4, len(body) - first))
    got = read(answer(body, chunks=pieces))
    assert got.first_token_at == 0.050
    assert got.steps[0].at == pytest.approx(0.050 - 0.000001 + 0.003858)
    assert got.steps[1].at == pytest.approx(0.050 - 0.000001 + 0.007924)
    assert got.steps[-1].at == pytest.approx(0.050 - 0.000001 + 0.032518)


def test_times_without_arrival() -> None:
    """Over curl nobody knows when a piece came: the server's time for the prompt, 1.394 ms, stands for it."""
    got = read(recorded("b10434-completion-stream.txt"))
    assert got.first_token_at is None
    assert got.steps[0].at == pytest.approx(0.001394 + 0.003858)


def test_a_recorded_stream_without_timings_per_token() -> None:
    got = read(recorded("b10434-v1-completions-stream.txt", "/v1/completions"))
    assert (got.prompt_tokens, got.cached_tokens, got.output_tokens, got.finish) == (16, 15, 32, "length")
    assert got.text == " red blue green gold black white pink gray" * 4
    assert (got.ids, got.steps, got.last_step_cut, got.cut_steps) == (None, (), None, None)
    assert got.accounts == (Account(origin="timings", accepted=22, drafted=41, last_step_whole=False),)
    assert got.accounts[0].commit is None
    assert got.notes == ("the stream does not show each decode step",)


def test_a_recorded_answer_that_was_not_streamed() -> None:
    got = read(recorded("b10434-completion-no-speculation.json"), Serving(speculating=False))
    assert (got.prompt_tokens, got.cached_tokens, got.output_tokens, got.finish) == (3, 0, 16, "length")
    assert (got.steps, got.accounts) == ((), (NOTHING,))
    assert got.accounts[0].commit is None


# --- steps -------------------------------------------------------------------------------------------------


def test_steps_without_a_draft() -> None:
    """A step with 5 of 5, one without a draft, one with 2 of 5, two without: 1 + 6 + 1 + 3 + 2 = 13 tokens."""
    got = read(
        streamed(
            (1, 0.001, 0, 0),
            *[(n, 4.0, 5, 5) for n in range(2, 8)],
            (8, 5.0, 5, 5),
            *[(n, 9.0, 10, 7) for n in (9, 10, 11)],
            (12, 10.0, 10, 7),
            (13, 11.0, 10, 7),
        )
    )
    assert shown(got) == [(6, 5, 5), (1, 0, 0), (3, 5, 2), (1, 0, 0), (1, 0, 0)]
    # With one token left no draft is made.
    assert (got.last_step_cut, got.cut_steps) == (True, 1)
    assert got.accounts[0] == Account(
        origin="stream", steps=2, accepted=7, drafted=10, histogram=(0, 0, 1, 0, 0, 1), last_step_whole=False
    )


def test_nothing_drafted() -> None:
    got = read(streamed((1, 0.001, 0, 0), (2, 1.0, 0, 0), (3, 2.0, 0, 0)), Serving(speculating=False))
    assert shown(got) == [(1, 0, 0), (1, 0, 0)]
    assert (got.accounts, got.last_step_cut) == ((NOTHING,), False)


def test_only_the_prefill() -> None:
    got = read(streamed((1, 0.001, 0, 0)))
    assert (got.output_tokens, got.steps, got.last_step_cut) == (1, (), None)
    assert got.accounts == (NOTHING,)


def test_several_drafts_trimmed() -> None:
    """4 tokens with a draft of 5: with 3 left it drafts 2, none right; with 2 left 1, right."""
    got = read(streamed((1, 0.001, 0, 0), (2, 2.0, 2, 0), (3, 4.0, 3, 1), (4, 4.0, 3, 1)))
    assert shown(got) == [(1, 2, 0), (2, 1, 1)]
    assert (got.last_step_cut, got.cut_steps) == (True, 2)


def test_a_last_step_that_was_not_trimmed() -> None:
    """With 6 left the whole draft of 5 fits."""
    got = read(streamed((1, 0.001, 0, 0), *[(n, 2.0, 5, 5) for n in range(2, 8)]))
    assert shown(got) == [(6, 5, 5)]
    assert (got.last_step_cut, got.cut_steps) == (False, 0)


def test_tokens_without_events() -> None:
    """Tokens that end within a character have none: an undrafted one, and the second one of a step of three."""
    got = read(
        streamed(
            (1, 0.001, 0, 0), (3, 3.0, 0, 0), (4, 6.0, 5, 2), (6, 6.0, 5, 2), *[(n, 9.0, 10, 7) for n in range(7, 13)]
        )
    )  # fmt: skip
    assert shown(got) == [(1, 0, 0), (1, 0, 0), (3, 5, 2), (6, 5, 5)]
    assert got.steps[0].at is None
    assert got.ids is None


def test_a_step_with_a_draft_and_without_events() -> None:
    """10 drafted for two steps; the first one's only token did not show: it had nothing right."""
    got = read(streamed((1, 0.001, 0, 0), *[(n, 6.0, 10, 5) for n in range(3, 9)]))
    assert shown(got) == [(1, 5, 0), (6, 5, 5)]


@pytest.mark.parametrize(
    "rows",
    [
        # Two tokens did not show: one step or two, and which of them had the right ones?
        [(1, 0.001, 0, 0), *[(n, 6.0, 10, 5) for n in range(4, 9)]],
        # Fewer drafted than before.
        [(1, 0.001, 0, 0), (2, 2.0, 5, 0), (3, 3.0, 3, 0)],
        # More right than drafted.
        [(1, 0.001, 0, 0), (2, 2.0, 1, 3)],
        # Counters that move within a step.
        [(1, 0.001, 0, 0), (2, 2.0, 5, 1), (3, 2.0, 6, 1)],
    ],
)
def test_steps_that_cannot_be_told(rows: list[Row]) -> None:
    got = read(streamed(*rows))
    assert (got.steps, got.last_step_cut) == ((), None)
    assert [account.origin for account in got.accounts] == ["timings"]
    assert got.notes == ("the stream does not show each decode step",)


def test_stopped_within_a_step() -> None:
    """3 of 5 were right, but a stop word ended the output two tokens into the step."""
    got = read(streamed((1, 0.001, 0, 0), (2, 2.0, 5, 3), (3, 2.0, 5, 3), stop_type="word"))
    assert (shown(got), got.finish) == ([(2, 5, 3)], "stop")
    assert (got.last_step_cut, got.cut_steps) == (True, 1)


def test_a_full_context() -> None:
    got = read(streamed((1, 0.001, 0, 0), (2, 2.0, 0, 0), truncated=True))
    assert got.notes == ("the server's context was full before the output was whole",)


# --- counters ----------------------------------------------------------------------------------------------

BEFORE = Counters(drafts=195, drafted=919, accepted=606, per_position=(184, 173, 169, 40, 40), generated=816)


def moved(**by: Any) -> Counters:
    """32 tokens later, in 9 drafts: 1 with none right, 1 with one, 7 with three."""
    values = {"drafts": 204, "drafted": 960, "accepted": 628, "per_position": (192, 180, 176, 40, 40)}
    return Counters(**{**values, "generated": 848, **by})


def test_counters() -> None:
    got = LLAMA.counters(recorded("b10434-metrics.txt", "/metrics"))
    assert got is not None
    assert (got.drafts, got.drafted, got.accepted, got.generated) == (195, 919, 606, 816)
    assert got.per_position == (184, 173, 169, 40, 40)
    assert (got.steps, got.running, got.cached) == (238, 0, 154)
    assert LLAMA.counters(answer('{"error":{"code":501}}', "/metrics", 501)) is None


def test_counters_that_only_this_request_moved() -> None:
    got = read(recorded("b10434-completion-stream.txt"), before=BEFORE, after=moved())
    assert got.accounts[-1] == Account(
        origin="/metrics", steps=9, accepted=22, drafted=41, histogram=(1, 1, 0, 7), last_step_whole=False
    )
    assert got.notes == ()


def test_positions_that_appear_with_the_first_draft() -> None:
    got = read(
        recorded("b10434-completion-stream.txt"),
        before=Counters(drafts=0, drafted=0, accepted=0, generated=0),
        after=Counters(drafts=9, drafted=41, accepted=22, per_position=(8, 7, 7), generated=32),
    )
    assert got.accounts[-1].histogram == (1, 1, 0, 7)


@pytest.mark.parametrize(
    ("after", "words"),
    [(moved(generated=912), "moved by 96 tokens"), (moved(generated=40), "went backwards")],
)
def test_counters_that_others_moved(after: Counters, words: str) -> None:
    got = read(recorded("b10434-completion-stream.txt"), before=BEFORE, after=after)
    assert [account.origin for account in got.accounts] == ["stream", "timings"]
    (note,) = got.notes
    assert words in note


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BEFORE, None),
        (None, moved()),
        (BEFORE, moved(generated=None)),
        # Builds before the counters of speculation.
        (Counters(generated=816), Counters(generated=848)),
    ],
)
def test_counters_that_do_not_say(before: Counters | None, after: Counters | None) -> None:
    got = LLAMA.read(recorded("b10434-completion-stream.txt"), SPECULATING, before, after)
    assert [account.origin for account in got.accounts] == ["stream", "timings"]


def test_positions_that_do_not_add_up() -> None:
    after = moved(per_position=(192, 180, 175, 40, 40))
    got = read(recorded("b10434-completion-stream.txt"), before=BEFORE, after=after)
    assert got.accounts[-1].histogram is None


def test_what_the_server_states_of_its_lifetime() -> None:
    claims = LLAMA.claims({"/metrics": recorded("b10434-metrics.txt", "/metrics")})
    origin = "/metrics spec_decode counters"
    assert claims == (
        Claim(what="accept length", value=1 + 606 / 195, origin=origin, samples=195, window="lifetime"),
        Claim(what="accept rate", value=606 / 919, origin=origin, samples=195, window="lifetime"),
    )
    idle = answer("llamacpp:spec_decode_num_drafts_total 0\n", "/metrics")
    assert LLAMA.claims({"/metrics": idle}) == ()
    assert LLAMA.claims({}) == ()


# --- what goes wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (503, '{"error":{"message":"Loading model","type":"unavailable_error","code":503}}', "HTTP 503: Loading model"),
        (401, '{"error":{"message":"Invalid API Key","code":401}}', "HTTP 401: Invalid API Key"),
        (
            400,
            '{"error":{"code":400,"message":"request (33600 tokens) exceeds the available context size (32768 tokens), try'
            ' increasing it","n_prompt_tokens":33600,"n_ctx":32768}}',
            r"HTTP 400: request \(33600 tokens\) exceeds the available context size \(32768 tokens\)",
        ),
        (500, "<html>", "HTTP 500: <html>"),
        (500, "", "HTTP 500"),
    ],
)  # fmt: skip
def test_refused(status: int, body: str, words: str) -> None:
    with pytest.raises(Unanswered, match=words):
        read(answer(body, status=status))


@pytest.mark.parametrize(
    "line",
    [
        'data: {"error":{"code":500,"message":"failed to decode","type":"server_error"}}',
        'error: {"code":500,"message":"failed to decode","type":"server_error"}',
        "error: failed to decode",
    ],
)
def test_an_error_within_the_stream(line: str) -> None:
    start = streamed((1, 0.001, 0, 0)).body.partition(b"\n\n")[0].decode()
    got = read(answer(f"{start}\n\n{line}\n\n"))
    assert got.error == "failed to decode"
    assert (got.steps, got.accounts) == ((), ())


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (answer(streamed((1, 0.001, 0, 0), (2, 2.0, 5, 0)).body.rpartition(b"data:")[0]), "ends early"),
        (answer(""), "the answer is empty"),
        (answer("<html>gateway</html>"), "no JSON object: <html>gateway</html>"),
        (answer("", failure="connection reset"), "connection reset"),
        (answer(streamed((1, 0.001, 0, 0)).body, truncated=True), "cut at"),
        (answer("", timed_out=True, seconds=3.0), "timed out"),
    ],
)
def test_half_an_answer(result: HttpResult, words: str) -> None:
    with pytest.raises(Unanswered, match=words):
        read(result)


@pytest.mark.parametrize(
    "data",
    ['{"stop":true,"timings":7}', '{"stop":true}', '{"choices":7,"stop":true}', '{"tokens":{},"stop":true}'],
)
def test_nonsense_says_nothing(data: str) -> None:
    got = read(answer(f'data: {{"content":" x"}}\n\ndata: {data}\n\n'))
    assert (got.output_tokens, got.ids, got.steps, got.accounts) == (None, None, (), ())


# --- what the server says beforehand -----------------------------------------------------------------------


def told(build: str, **more: HttpResult) -> dict[str, HttpResult]:
    found = {"/props": "props", "/slots": "slots", "/v1/models": "models"}
    return {path: recorded(f"{build}-{name}.json", path) for path, name in found.items()} | {
        f"/{path}": result for path, result in more.items()
    }


def given(line: str) -> tuple[ServerArgs, ...]:
    values = TABLE["llamacpp"].given(("llama-server", *line.split()))
    return (ServerArgs(engine="llamacpp", origin="command line", values=tuple(values.items())),)


DRAFT = "-m t.gguf -md d.gguf --spec-type draft-simple --spec-draft-n-max 5 -c 32768 -np 1"


@pytest.mark.parametrize(("build", "version"), [("b10434", "b1-7e4c0a9"), ("b11434", "b11434-unknown")])
def test_serving(build: str, version: str) -> None:
    assert LLAMA.serving(told(build), given(DRAFT)) == Serving(
        speculating=True,
        method="draft-simple",
        drafter="model",
        draft_tokens=5,
        context_limit=32768,
        kv_tokens=32768,
        running=0,
        vocabulary=1024,
        model="tiny",
        version=version,
        prefix_cache=True,
    )


def test_serving_without_a_command_line() -> None:
    """b10434 names the type of the slot's last request; the length of the draft nobody says."""
    got = LLAMA.serving(told("b10434"), ())
    assert (got.speculating, got.method, got.drafter) == (True, "draft-simple", "model")
    assert (got.draft_tokens, got.kv_tokens) == (None, 32768)
    got = LLAMA.serving(told("b11434"), ())
    assert (got.speculating, got.method, got.drafter, got.draft_tokens) == (True, "", "", None)


def test_serving_that_does_not_speculate() -> None:
    """A draft model alone makes no speculation in these builds; the slots say so."""
    slots = answer('[{"id":0,"n_ctx":32768,"speculative":false,"is_processing":true}]', "/slots")
    got = LLAMA.serving(told("b11434", slots=slots), given("-m t.gguf -md d.gguf"))
    assert (got.speculating, got.method, got.drafter, got.draft_tokens) == (False, "", "", None)
    assert got.running == 1


def test_serving_without_slots() -> None:
    gone = answer('{"error":{"code":501}}', "/slots", 501)
    assert LLAMA.serving(told("b11434", slots=gone), given(DRAFT)).speculating is True
    assert LLAMA.serving(told("b11434", slots=gone), given("-m t.gguf")).speculating is None
    metrics = recorded("b10434-metrics.txt", "/metrics")
    got = LLAMA.serving(told("b11434", slots=gone, metrics=metrics), ())
    assert (got.running, got.waiting) == (0, 0)
    # 816 tokens in 2.55582 s.
    assert got.decode_ms == pytest.approx(3.13213, abs=1e-5)


def test_serving_of_which_nothing_is_known() -> None:
    assert LLAMA.serving({}, ()) == Serving(prefix_cache=True)


@pytest.mark.parametrize(
    ("line", "method", "drafter", "longest"),
    [
        ("--spec-type draft-simple", "draft-simple", "model", 3),
        ("--spec-type draft-dflash --spec-draft-n-max 7", "draft-dflash", "model", 7),
        ("--spec-type ngram-simple", "ngram-simple", "lookup", 48),
        ("--spec-type ngram-simple --spec-ngram-simple-size-m 5", "ngram-simple", "lookup", 5),
        ("--spec-type ngram-map-k --spec-ngram-map-k-size-m 6", "ngram-map-k", "lookup", 6),
        ("--spec-type ngram-map-k4v --spec-ngram-map-k4v-size-m 7", "ngram-map-k4v", "lookup", 7),
        ("--spec-type ngram-mod", "ngram-mod", "lookup", 64),
        ("--spec-type ngram-mod --spec-ngram-mod-n-max 50", "ngram-mod", "lookup", 50),
        ("--spec-type none,ngram-mod,draft-simple --spec-draft-n-max 5", "ngram-mod,draft-simple", "model", 64),
        ("--spec-type ngram-cache", "ngram-cache", "lookup", None),
        ("--spec-default", "ngram-mod", "lookup", 64),
    ],
)  # fmt: skip
def test_types(line: str, method: str, drafter: str, longest: int | None) -> None:
    got = LLAMA.serving({}, given(line))
    assert (got.speculating, got.method, got.drafter, got.draft_tokens) == (True, method, drafter, longest)


@pytest.mark.parametrize(
    ("line", "slots", "tokens"),
    [
        ("-c 4096 -np 2", 2, 4096),
        # From the model, 32768 for each of four slots, or for all of them.
        ("-np 4", 4, 131072),
        ("-np 4 -kvu", 4, 32768),
        ("-m t.gguf", 4, 32768),
        ("", 1, 32768),
        ("", 4, None),
    ],
)
def test_room_in_all(line: str, slots: int, tokens: int | None) -> None:
    props = json.loads((DATA / "b10434-props.json").read_text(encoding="utf-8"))
    answers = {"/props": answer(json.dumps({**props, "total_slots": slots}), "/props")}
    assert LLAMA.serving(answers, given(line) if line else ()).kv_tokens == tokens


def test_the_batch_is_a_limit() -> None:
    assert LLAMA.serving({}, given("-b 512")).limits == ((512, "--batch-size"),)
