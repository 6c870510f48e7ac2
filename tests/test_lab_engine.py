"""The lab's engine: commit lengths that come out of drafting and verifying, and an HTTP side that counts them rightly."""

from __future__ import annotations

import ast
import io
import json
import random
import threading
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import ddprobe.lab
from ddprobe import lab
from ddprobe.engines.generation import Prompt
from ddprobe.engines.sglang_generation import SGLangGeneration
from ddprobe.lab import hosts, http, install
from ddprobe.lab.engine import meta_info, wiring
from ddprobe.lab.engine.context import GRAM, PrefixCache
from ddprobe.lab.engine.decoding import Books, Law, Model, Run, verify
from ddprobe.lab.engine.drafter import Drafter, Mechanism, Proposal, Window
from ddprobe.lab.engine.engine import Engine
from ddprobe.lab.engine.ledger import Ledger
from ddprobe.lab.engine.server import SimulatedServer
from ddprobe.lab.engine.target import Continuation, Language, Target
from ddprobe.lab.engine.tokenizer import Tokenizer
from ddprobe.lab.http import Response
from ddprobe.lab.serving import Serving as HostServing
from ddprobe.model import HttpRequest, HttpResult
from ddprobe.redact import Redactor
from ddprobe.sessions import open_session
from tests.cputime import cpu_seconds
from tests.lab_session import LabSession

BASE = "http://127.0.0.1:30000"
ORDINARY = 150_000
LANGUAGE = Language(1, ORDINARY)
LAW = Law(step=0.01, per_token=1e-6)
SENTENCE = Tokenizer(ORDINARY).encode("The cat sat on the mat. ")


def model(books: Books | None = None, *, speculates: bool = True, **mechanism: Any) -> Model:
    how = Mechanism(**{"draft_tokens": 7, "window": 2048, **mechanism})
    return Model(
        target=Target(LANGUAGE),
        drafter=Drafter(how, LANGUAGE, 5) if speculates else None,
        law=LAW,
        books=books or Books(),
        cache=PrefixCache(400_000),
    )


def generated(model: Model, prompt: list[int], count: int = 257) -> Run:
    run = model.start(prompt, count)
    list(model.steps(run))
    return run


def commit(run: Run) -> float:
    """Mean of the whole steps."""
    whole = run.steps[:-1]
    return sum(step.committed for step in whole) / len(whole)


def repeated(length: int) -> list[int]:
    return [9, 8, 7, *(SENTENCE * (length // len(SENTENCE) + 1))][:length]


def unrelated(length: int, seed: int = 3) -> list[int]:
    return random.Random(seed).choices(range(256, ORDINARY), k=length)


def copied_from(distance: int, length: int) -> list[int]:
    """A passage, `distance` tokens of something else, and the passage's beginning again."""
    passage = unrelated(300, 4)
    return [*unrelated(length - distance - 340, 5), *passage, *unrelated(distance, 6), *passage[:40]]


class TestTokenizer:
    def test_text_comes_back(self) -> None:
        tokenizer = Tokenizer(ORDINARY)
        text = "The cat sat on the mat. 12345 été 猫\n\tdef f(x):\n    return x  # déjà\n"
        assert tokenizer.decode(tokenizer.encode(text)) == text

    def test_words_take_the_blank_before_them(self) -> None:
        assert len(Tokenizer(ORDINARY).encode("The cat sat on the mat")) == 6

    def test_ids_are_ordinary_and_the_same_everywhere(self) -> None:
        text = "The cat sat on the mat. " * 50
        ids = Tokenizer(1000).encode(text)
        assert max(ids) < 1000
        assert ids == Tokenizer(1000).encode(text)

    def test_a_long_text_takes_no_time(self) -> None:
        text = "The cat sat on the mat. " * 25_000
        assert cpu_seconds(lambda: Tokenizer(ORDINARY).encode(text)) < 2
        assert len(Tokenizer(ORDINARY).encode(text)) > 150_000


class TestPrefixCache:
    def test_what_is_shared_is_cached(self) -> None:
        cache = PrefixCache(10_000)
        first = unrelated(1000)
        assert cache.open(first).cached == 0
        assert cache.open([*first[:600], *unrelated(50, 9)]).cached == 600
        assert cache.open([*first, 1, 2]).cached == 1000
        assert cache.open([*first[:600], *unrelated(50, 9), 5]).cached == 650

    def test_one_token_is_always_computed(self) -> None:
        cache = PrefixCache(10_000)
        cache.open(unrelated(100))
        assert cache.open(unrelated(100)).cached == 99

    def test_an_answer_is_cached_without_its_last_token(self) -> None:
        one = model()
        run = generated(one, unrelated(100), 20)
        assert generated(one, [*run.context.ids, 1, 2], 2).cached_tokens == 119

    def test_the_oldest_is_given_up(self) -> None:
        cache = PrefixCache(250)
        for seed in (1, 2, 3):
            cache.open(unrelated(100, seed))
        assert cache.held == 200
        assert cache.open(unrelated(100, 1)).cached == 0

    def test_places_are_found_across_segments(self) -> None:
        whole = [*unrelated(50), *unrelated(200, 8), *unrelated(50)]
        cache = PrefixCache(10_000)
        for end in (20, 55, 130, 300):
            context = cache.open(whole[:end])
        plain = PrefixCache(10_000).open(whole)
        assert context.earlier() == plain.earlier() == 50
        for place in range(260, 300):
            ahead = whole[place - GRAM : place]
            assert context.earlier(ahead) == plain.earlier(ahead)
        assert context.earlier(whole[40 - GRAM : 40]) == 290


class TestTarget:
    def test_it_copies_what_it_saw(self) -> None:
        passage = unrelated(300, 4)
        run = generated(model(speculates=False), copied_from(3000, 5000), 200)
        assert run.output == passage[40:240]

    def test_otherwise_it_speaks_its_language(self) -> None:
        run = generated(model(speculates=False), unrelated(500), 100)
        assert set(run.output) <= set(LANGUAGE.words)
        assert len(set(run.output)) > 90

    def test_the_same_prompt_gets_the_same_answer(self) -> None:
        one = model()
        first = generated(one, unrelated(500))
        assert generated(one, unrelated(500)).output == first.output


@pytest.mark.parametrize(
    "mechanism",
    [
        {}, {"tree_budget": 16}, {"trained": False}, {"reach": 600}, {"full_layer": False}, {"cached_states": False},
        {"window": 256, "window_handling": Window.IGNORED}, {"window": 256, "window_handling": Window.OVERWRITTEN},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize(
    "prompt", [repeated(1000), copied_from(500, 1000), unrelated(1000)], ids=["r", "c", "u"]
)
def test_output_is_the_same_as_without_speculation(mechanism: dict[str, Any], prompt: list[int]) -> None:
    plain = generated(model(speculates=False), prompt)
    assert generated(model(**mechanism), prompt).output == plain.output
    assert generated(model(Books(commits_accepted=False), **mechanism), prompt).output == plain.output


class TestDrafting:
    def test_easy_text_is_drafted_well_at_any_length(self) -> None:
        for length in (1024, 16_384, 65_536):
            assert commit(generated(model(), repeated(length))) > 6.5

    def test_shuffling_the_table_lowers_the_commit(self) -> None:
        one = model(hints=0.0)
        before = commit(generated(one, unrelated(1000)))
        assert one.drafter is not None
        one.drafter.shuffle()
        assert before > 1.7
        assert commit(generated(one, unrelated(1000, 8))) < 1.05

    def test_what_is_learnt_less_is_committed_less(self) -> None:
        means = [
            commit(generated(model(learnt=share, hints=0.0), unrelated(1000))) for share in (0.8, 0.5, 0.1)
        ]
        assert means == sorted(means, reverse=True)
        assert means[2] < 1.3

    def test_without_trained_weights_nothing_is_right(self) -> None:
        assert commit(generated(model(trained=False), repeated(2000))) == 1.0

    def test_beyond_the_reach_of_its_positions(self) -> None:
        one = model(reach=8192)
        assert commit(generated(one, repeated(7000))) > 6.5
        assert commit(generated(one, repeated(9000))) < 1.8

    def test_a_lost_full_layer_costs_the_far_copy_only(self) -> None:
        lame = model(full_layer=False)
        assert commit(generated(lame, copied_from(1000, 8000), 200)) > 6
        assert commit(generated(lame, copied_from(4000, 8000), 200)) < 1.8
        assert commit(generated(model(), copied_from(4000, 8000), 200)) > 5

    def test_an_ignored_window_costs_more_the_longer_the_context(self) -> None:
        lame = model(window_handling=Window.IGNORED)
        means = [commit(generated(lame, repeated(length))) for length in (2000, 4000, 16_000, 64_000)]
        assert means == sorted(means, reverse=True)
        assert means[0] > 6.5
        assert means[3] < 1.5

    def test_an_overwritten_window_costs_the_near_copy(self) -> None:
        lame = model(window_handling=Window.OVERWRITTEN)
        assert commit(generated(lame, repeated(1500))) > 6.5
        assert commit(generated(lame, repeated(4000))) < 1.8

    def test_a_cached_prefix_that_the_drafter_lost(self) -> None:
        lame = model(cached_states=False)
        assert commit(generated(lame, repeated(4000))) > 6
        assert commit(generated(lame, repeated(4000))) < 1.5
        sound = model()
        assert abs(commit(generated(sound, repeated(4000))) - commit(generated(sound, repeated(4000)))) < 1e-9

    def test_a_tree_gets_further_than_its_chain(self) -> None:
        chain, tree = model(), model(tree_budget=16)
        assert commit(generated(tree, unrelated(1000), 600)) > commit(generated(chain, unrelated(1000), 600))

    def test_a_tree_has_its_budget_and_holds_the_chain(self) -> None:
        context = PrefixCache(10_000).open(unrelated(500))
        truth = Continuation(Target(LANGUAGE), context)
        chain = Drafter(Mechanism(draft_tokens=7), LANGUAGE, 5).propose(context, truth)
        tree = Drafter(Mechanism(draft_tokens=7, tree_budget=16), LANGUAGE, 5).propose(context, truth)
        assert (len(chain.tokens), len(tree.tokens)) == (7, 16)
        node = -1
        for token in chain.tokens:
            found = tree.child(node, token)
            assert found is not None
            node = found

    def test_the_longest_matching_path_is_accepted(self) -> None:
        context = PrefixCache(10_000).open(unrelated(100))
        truth = Continuation(Target(LANGUAGE), context)
        a, b, c = truth[0], truth[1], truth[2]
        assert verify(Proposal.of([a, 0, c], [-1, 0, 1]), truth) == 1
        assert verify(Proposal.of([0, a, b, 0, c], [-1, -1, 1, 0, 2]), truth) == 3
        assert verify(Proposal.of([0, b, c], [-1, 0, 1]), truth) == 0


def test_128k_take_less_than_five_seconds_and_again_next_to_nothing() -> None:
    one = model()
    prompt = unrelated(131_072)
    cached = []
    assert cpu_seconds(lambda: cached.append(generated(one, prompt).cached_tokens)) < 5
    assert cpu_seconds(lambda: cached.append(generated(one, [*prompt, 1, 2, 3]).cached_tokens)) < 1
    assert cached == [0, 131_072]


# --- what a scenario may say -------------------------------------------------------------------------------

ROOT = Path(ddprobe.lab.__file__).parent
RESULTS = (
    "commit_mean", "commit_len", "accept_length", "accept_len", "accept_rate", "throughput", "verify_calls",
    "histogram", "healthy\"", "text_difficulty", "long_context_bug", "drafter_dead", "metric_inconsistency", "verdict",
)  # fmt: skip


def test_scenarios_hold_mechanisms_and_no_results() -> None:
    assert {field.name for field in fields(wiring.Parts)} == {
        "law", "learnt", "hints", "trained", "cached_states", "commits_accepted", "counts_root", "seed", "heat",
    }  # fmt: skip
    assert {field.name for field in fields(HostServing)} == {
        "hostname", "gpu", "gpus", "bandwidth", "target", "target_config", "target_files", "special_tokens", "drafter",
        "drafter_config", "drafter_files", "given", "environment", "token_capacity", "weight_gb", "kv_cache_gb",
        "parts", "pace", "served", "version",
    }  # fmt: skip
    for name in ("hosts.py", "engine/wiring.py", "models.py"):
        text = (ROOT / name).read_text()
        assert [word for word in RESULTS if word in text] == []


def test_every_scenario_differs_from_the_healthy_one_in_one_thing() -> None:
    tree = ast.parse((ROOT / "hosts.py").read_text())
    built = {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    assert built == {one.name.replace("-", "_") for one in lab.scenarios()}


# --- over HTTP ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def healthy() -> LabSession:
    return LabSession(hosts.healthy())


def asked(session: LabSession, path: str, body: Any = None, *, stream: bool = False) -> HttpResult:
    request = HttpRequest(
        key="h", method="GET" if body is None else "POST", path=path, base=BASE, stream=stream,
        body=b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode(),
    )  # fmt: skip
    (result,) = session._carry((request,))
    assert isinstance(result, HttpResult)
    return result


def native(prompt: list[int], tokens: int, *, stream: bool = False) -> dict[str, Any]:
    sampling = {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True}
    return {"input_ids": prompt, "sampling_params": sampling, "stream": stream}


def chunks(result: HttpResult) -> list[dict[str, Any]]:
    lines = result.body.decode().split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]


class TestGenerate:
    def test_stream_and_histogram_tell_the_same(self, healthy: LabSession) -> None:
        result = asked(healthy, "/generate", native(unrelated(700), 200, stream=True), stream=True)
        told = chunks(result)
        counts = [one["meta_info"]["completion_tokens"] for one in told]
        assert counts == [len(one["output_ids"]) for one in told]
        assert (counts[0], counts[-1]) == (1, 200)
        meta = told[-1]["meta_info"]
        bins = meta["spec_correct_drafts_histogram"]
        deltas = [after - before for before, after in pairwise(counts)]
        assert sum(bins) == meta["spec_verify_ct"] == len(deltas)
        assert sum(k * count for k, count in enumerate(bins)) == meta["spec_num_correct_drafts"]
        from_stream = [0] * len(bins)
        for delta in deltas[:-1]:
            from_stream[delta - 1] += 1
        assert sum(abs(a - b) for a, b in zip(from_stream, bins, strict=True)) == 1
        assert meta["spec_accept_rate"] == meta["spec_num_correct_drafts"] / (15 * len(deltas))
        assert "spec_verify_ct" not in told[-2]["meta_info"]
        assert all(one["lab"] for one in told)

    def test_pieces_come_step_by_step(self, healthy: LabSession) -> None:
        result = asked(healthy, "/generate", native(unrelated(900, 2), 60, stream=True), stream=True)
        times = [chunk.at for chunk in result.chunks]
        assert sum(chunk.size for chunk in result.chunks) == len(result.body)
        # 10 ms and 55 ns per token, on a clock that runs five times as fast, a per cent more or less.
        gaps = [after - before for before, after in pairwise(times[:-1])]
        assert all(0.00199 < gap < 0.00204 for gap in gaps)

    def test_cached_tokens_and_the_whole_answer(self, healthy: LabSession) -> None:
        prompt = unrelated(800, 11)
        first = json.loads(asked(healthy, "/generate", native(prompt, 30)).text)
        again = json.loads(asked(healthy, "/generate", native(prompt, 30)).text)
        assert first["output_ids"] == again["output_ids"]
        assert (first["meta_info"]["cached_tokens"], again["meta_info"]["cached_tokens"]) == (0, 799)
        assert first["meta_info"]["finish_reason"] == {"type": "length", "length": 30}
        assert first["lab"] is True

    def test_it_says_how_fast_its_clock_runs(self, healthy: LabSession) -> None:
        """So that no step time of the lab is taken for a GPU's: 200 ms stand for a second of the hardware."""
        info = json.loads(asked(healthy, "/server_info").text)
        assert (info["lab"], info["lab_seconds_per_second"]) == (True, 0.2)
        assert healthy.machine.gpu_bandwidth == 3350 / 0.2

    def test_one_token_needs_no_verification(self, healthy: LabSession) -> None:
        meta = json.loads(asked(healthy, "/generate", native([300, 301], 1)).text)["meta_info"]
        assert meta["completion_tokens"] == 1
        assert not [name for name in meta if name.startswith("spec_")]

    def test_tokenize_and_text(self, healthy: LabSession) -> None:
        told = json.loads(
            asked(
                healthy, "/tokenize", {"prompt": "The cat sat on the mat", "add_special_tokens": False}
            ).text
        )
        assert (told["count"], len(told["tokens"]), told["lab"]) == (6, 6, True)
        body = {"text": "The cat sat on the mat", "sampling_params": {"max_new_tokens": 4}}
        assert json.loads(asked(healthy, "/generate", body).text)["meta_info"]["prompt_tokens"] == 6

    @pytest.mark.parametrize(
        ("path", "body", "status", "said"),
        [
            ("/generate", native([300] * 163_840, 8), 400, "The input (163840 tokens) is longer than"),
            ("/generate", native([300] * 163_800, 64), 400, "You requested a total of 163864 tokens"),
            ("/generate", b"{", 400, "JSON decode error"),
            ("/generate", {"sampling_params": {}}, 400, "Either text, input_ids or input_embeds"),
            ("/v1/completions", {"prompt": [300] * 163_840}, 400, '"object":"error"'),
            ("/nope", {}, 404, "Not Found"),
            ("/server_info", {}, 405, "Method Not Allowed"),
            ("/flush_cache", None, 404, "Not Found"),
            ("/generate", None, 405, "Method Not Allowed"),
        ],
    )
    def test_what_it_refuses(self, healthy: LabSession, path: str, body: Any, status: int, said: str) -> None:
        result = asked(healthy, path, body)
        assert result.status == status
        assert said in result.body.decode()
        assert json.loads(result.body)["lab"] is True

    def test_a_stream_refuses_in_a_200(self, healthy: LabSession) -> None:
        result = asked(healthy, "/generate", native([300] * 163_840, 8, stream=True), stream=True)
        assert result.status == 200
        assert chunks(result)[0]["error"]["code"] == 400

    def test_an_id_beyond_the_vocabulary_ends_the_server(self) -> None:
        session = LabSession(hosts.healthy())
        assert "closed the connection" in asked(session, "/generate", native([151_936], 4)).failure
        assert "refused" in asked(session, "/server_info").failure

    def test_completions(self, healthy: LabSession) -> None:
        body = {
            "prompt": "The cat sat on the mat", "max_tokens": 40, "stream": True, "return_spec_tokens_details": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        }  # fmt: skip
        told = chunks(asked(healthy, "/v1/completions", body, stream=True))
        assert told[-1]["usage"]["completion_tokens"] == 40
        assert told[-2]["sglext"]["spec_tokens_details"]["spec_verify_ct"] == len(told) - 3
        assert told[0]["usage"]["completion_tokens"] == 1
        whole = json.loads(
            asked(healthy, "/v1/completions", {"prompt": "The cat sat on the mat", "max_tokens": 40}).text
        )
        assert whole["choices"][0]["text"] == "".join(
            one["choices"][0]["text"] for one in told if one["choices"]
        )


def served(version: str) -> SimulatedServer:
    """A bare server of a version."""
    engine = Engine(
        model=model(), tokenizer=Tokenizer(ORDINARY), ledger=Ledger(draft_tokens=7, capacity=400_000),
        version=meta_info.version_of(version), vocabulary=ORDINARY, context_length=10_000, write_log=lambda _at, _line: None,
    )  # fmt: skip
    return SimulatedServer(engine, {"/ready": Response})


class TestVersions:
    @pytest.mark.parametrize(
        ("version", "names"),
        [
            ("0.5.4", set()),
            ("0.5.6", {"spec_accept_token_num", "spec_draft_token_num"}),
            ("0.5.11", {"spec_accepted_drafts", "spec_proposed_drafts"}),
            (
                "0.5.13",
                {"spec_accepted_drafts", "spec_proposed_drafts", "spec_num_correct_drafts", "spec_num_proposed_drafts"},
            ),
            (
                "0.5.20",
                {
                    "spec_accepted_drafts", "spec_proposed_drafts", "spec_num_correct_drafts",
                    "spec_num_proposed_drafts", "spec_accept_histogram", "spec_correct_drafts_histogram",
                },
            ),
            ("0.5.23", {"spec_num_correct_drafts", "spec_num_proposed_drafts", "spec_correct_drafts_histogram"}),
        ],
    )  # fmt: skip
    def test_fields(self, version: str, names: set[str]) -> None:
        response = served(version).respond(
            "POST", "/generate", json.dumps(native(repeated(400), 60)).encode()
        )
        assert response.pieces is not None
        (piece,) = response.pieces
        spoken = {name for name in json.loads(piece.data)["meta_info"] if name.startswith("spec_")}
        assert spoken == names | {"spec_verify_ct", "spec_accept_rate", "spec_accept_length"}

    def test_the_first_worker_counts_the_last_step_as_cut(self) -> None:
        run = generated(model(), repeated(400), 60)
        cut = run.steps[-1].committed - len(run.steps[-1].tokens)
        assert cut > 0
        old, new = (sum(meta_info.counted(run, (0, 5, patch))) for patch in (13, 14))
        assert old == new - cut
        # Committed tokens, counted as they were written, are all but the first.
        assert old + len(run.steps) == 59


class TestWholeServer:
    def test_averages_move_at_ticks_of_forty_steps(self) -> None:
        one = hosts.healthy()
        session = LabSession(one)
        state = json.loads(asked(session, "/server_info").text)["internal_states"][0]
        asked(session, "/generate", native(unrelated(300), 2))
        assert json.loads(asked(session, "/server_info").text)["internal_states"][0] == state
        ledger = Ledger(draft_tokens=7, capacity=1000)
        run = generated(model(), unrelated(300), 150)
        seen = [bool(ledger.stepped(step, 300)) for step in run.steps[:41]]
        assert seen == [False] * 39 + [True, False]
        assert ledger.lifetime == sum(step.committed for step in run.steps[:40]) / 40

    def test_counters_and_log_follow(self) -> None:
        session = LabSession(hosts.healthy())

        def counter(name: str) -> float:
            text = asked(session, "/metrics").text
            return next(
                float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"sglang:{name}{{")
            )

        before = counter("generation_tokens_total"), counter("spec_verify_calls_total")
        meta = json.loads(asked(session, "/generate", native(repeated(500), 100)).text)["meta_info"]
        after = counter("generation_tokens_total"), counter("spec_verify_calls_total")
        assert (after[0] - before[0], after[1] - before[1]) == (100, meta["spec_verify_ct"])
        assert b"#new-token: 500, #cached-token: 0" in session.machine.tree.read(install.LOG)

    def test_running_requests_are_seen_while_they_run(self) -> None:
        session = LabSession(hosts.healthy())
        server = session.machine.servers[30000]

        def running() -> int:
            load = json.loads(server.respond("GET", "/v1/loads").body)["loads"][0]
            return int(load["num_running_reqs"])

        pieces = server.respond(
            "POST", "/generate", json.dumps(native([300] * 20, 20, stream=True)).encode()
        ).pieces
        assert pieces is not None
        next(pieces)
        assert running() == 1
        list(pieces)
        assert running() == 0


def test_over_the_road_pieces_come_when_their_time_has_come() -> None:
    with lab.running("slow-attention") as host:
        session = open_session(host, Redactor(), threading.Event())
        try:
            body = json.dumps(native(repeated(131_072), 60, stream=True)).encode()
            (result,) = session.ask(
                [
                    HttpRequest(
                        key="g",
                        method="POST",
                        path="/generate",
                        base=BASE,
                        body=body,
                        stream=True,
                        timeout=30,
                    )
                ]
            )
        finally:
            session.close()
    assert isinstance(result, HttpResult)
    assert ("x-ddprobe-lab", "simulated") in result.headers
    told = chunks(result)
    assert told[-1]["meta_info"]["completion_tokens"] == 60
    # 12.7 ms a step: (8.5 ms + 7.7 us a token) on a clock that runs eighty times as fast. The first may come late.
    times = [chunk.at for chunk in result.chunks]
    assert len(times) >= len(told)
    assert (times[-1] - times[0]) / (len(told) - 1) >= 0.008


def test_a_client_that_goes_away_ends_its_request() -> None:
    class Gone(io.BytesIO):
        said = 0

        def recv(self, size: int, /) -> bytes:
            return self.read(size)

        def sendall(self, data: bytes, /) -> None:
            self.said += 1
            if self.said == 4:
                raise OSError("gone")

    server = hosts.healthy().servers[30000]
    body = json.dumps(native([300] * 20, 100, stream=True)).encode()
    wire = Gone(b"POST /generate HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    with pytest.raises(OSError, match="gone"):
        http.serve(wire, server)
    assert json.loads(server.respond("GET", "/v1/loads").body)["loads"][0]["num_running_reqs"] == 0


# --- scenarios, as a probe would see them ------------------------------------------------------------------


def measured(name: str, prompt: list[int], tokens: int = 161) -> tuple[list[int], dict[str, Any]]:
    """Tokens of each step but the last, from the stream, and what the server says of them."""
    session = LabSession(next(one for one in lab.scenarios() if one.name == name).build())
    told = chunks(asked(session, "/generate", native(prompt, tokens, stream=True), stream=True))
    counts = [one["meta_info"]["completion_tokens"] for one in told]
    return [after - before for before, after in pairwise(counts)][:-1], told[-1]["meta_info"]


def mean(values: list[int]) -> float:
    return sum(values) / len(values)


class TestScenarios:
    @pytest.mark.parametrize(
        "name", ["healthy", "hard-text", "rope-cliff", "window-not-applied", "dead-drafter", "slow-attention"]
    )
    def test_honest_ones_report_what_they_stream(self, name: str) -> None:
        deltas, meta = measured(name, repeated(4000))
        bins = meta["spec_correct_drafts_histogram"]
        total = sum((k + 1) * count for k, count in enumerate(bins))
        # All steps but the last are in both; the last counts whole in the histogram.
        assert 1 <= total - sum(deltas) <= len(bins)
        assert sum(bins) == len(deltas) + 1

    def test_founding_story_drops_what_it_accepts(self) -> None:
        for prompt in (repeated(4000), unrelated(4000)):
            deltas, meta = measured("founding-story", prompt)
            assert set(deltas) == {1}
            assert meta["spec_num_correct_drafts"] / meta["spec_verify_ct"] > 2

    def test_metric_lies_counts_a_token_too_many_in_each_step(self) -> None:
        deltas, meta = measured("metric-lies", unrelated(1000))
        honest, told = measured("healthy", unrelated(1000))
        assert deltas == honest
        assert meta["spec_num_correct_drafts"] == told["spec_num_correct_drafts"] + meta["spec_verify_ct"]

    def test_simulated_acceptance_is_in_the_environment_and_in_the_output(self) -> None:
        deltas, meta = measured("simulated-acceptance", unrelated(1000))
        assert len(set(deltas)) == 1
        assert len(meta["spec_correct_drafts_histogram"]) - 1 == deltas[0] - 1
        session = LabSession(hosts.simulated_acceptance())
        output = json.loads(asked(session, "/generate", native(unrelated(1000), 20)).text)["output_ids"]
        assert set(output[1:]) == {100}
        environ = session.machine.tree.read(f"/proc/{install.MAIN_PID}/environ")
        assert b"SGLANG_SIMULATE_ACC_LEN=6\0" in environ

    def test_not_speculating_says_nothing_of_speculation(self) -> None:
        deltas, meta = measured("not-speculating", repeated(1000))
        assert set(deltas) == {1}
        assert not [name for name in meta if name.startswith("spec_")]
        info = json.loads(asked(LabSession(hosts.not_speculating()), "/server_info").text)
        assert info["speculative_algorithm"] is None
        assert "avg_spec_accept_length" not in info["internal_states"][0]

    def test_where_each_fault_shows(self) -> None:
        assert mean(measured("hard-text", repeated(20_000))[0]) > 10
        assert mean(measured("hard-text", unrelated(20_000))[0]) < 1.4
        assert mean(measured("rope-cliff", repeated(30_000))[0]) > 10
        assert mean(measured("rope-cliff", repeated(40_000))[0]) < 1.8
        assert mean(measured("window-not-applied", repeated(1500))[0]) > 10
        assert mean(measured("window-not-applied", repeated(40_000))[0]) < 2
        assert mean(measured("dead-drafter", repeated(1500))[0]) == 1.0
        assert mean(measured("healthy", repeated(60_000))[0]) > 10

    def test_slow_attention_is_slow_at_length_only(self) -> None:
        session = LabSession(hosts.slow_attention())

        def step(length: int) -> float:
            result = asked(session, "/generate", native(repeated(length), 30, stream=True), stream=True)
            return result.chunks[3].at - result.chunks[2].at

        assert step(128_000) / step(1_000) > 40


class TestAnEngineReadsIt:
    """SGLang's dialect, as the probe uses it."""

    @pytest.mark.parametrize("way", SGLangGeneration.ways)
    def test_generate_and_read(self, healthy: LabSession, way: str) -> None:
        dialect = SGLangGeneration()
        answers = {path: asked(healthy, path) for path in dialect.paths}
        serving = dialect.serving(answers, ())
        assert (serving.speculating, serving.draft_tokens, serving.method) == (True, 15, "DFLASH")
        request = dialect.generate("g", BASE, Prompt(ids=tuple(repeated(900))), 161, way=way, timeout=60)
        (result,) = healthy.ask([request])
        assert isinstance(result, HttpResult)
        read = dialect.read(result, serving, None, None)
        assert (read.output_tokens, read.prompt_tokens, read.error) == (161, 900, "")
        accepted = {account.accepted for account in read.accounts if account.last_step_whole}
        assert len(accepted) == 1

    def test_tokenize(self, healthy: LabSession) -> None:
        dialect = SGLangGeneration()
        (result,) = healthy.ask([dialect.tokenize("t", BASE, "The cat sat on the mat")])
        assert isinstance(result, HttpResult)
        assert len(dialect.token_ids(result)) == 6
