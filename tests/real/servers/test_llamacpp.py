"""llama.cpp's way to generate, on a real llama-server whose accepted lengths are known exactly."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from ddprobe.engines import TABLE
from ddprobe.engines.generation import Counters, Generated, Ids, Prompt, Serving
from ddprobe.engines.llamacpp_generation import LlamaCppGeneration
from ddprobe.errors import Unanswered
from ddprobe.facts import Account, ServerArgs
from ddprobe.model import Host, HttpRequest, HttpResult
from ddprobe.sessions.base import Session
from tests.real.conftest import OpenSession
from tests.real.servers.llamacpp import BAD_DRAFTER, NGRAM_MAP_K, NGRAM_SIMPLE, LlamaServer, StartLlama

LLAMA = LlamaCppGeneration()
CONTEXTS = (256, 1024, 4096, 16384)


@dataclass
class Asker:
    """Asks one server as a probe would, over a session."""

    server: LlamaServer
    session: Session

    def get(self, *paths: str) -> dict[str, HttpResult]:
        questions = [
            HttpRequest(key=path, method="GET", path=path, base=self.server.base, timeout=10)
            for path in paths
        ]
        return {path: self.post(question) for path, question in zip(paths, questions, strict=True)}

    def post(self, request: HttpRequest) -> HttpResult:
        (answer,) = self.session.ask([request])
        assert isinstance(answer, HttpResult)
        return answer

    def serving(self) -> Serving:
        values = TABLE["llamacpp"].given(self.server.argv)
        given = ServerArgs(engine="llamacpp", origin="command line", values=tuple(values.items()))
        return LLAMA.serving(self.get(*LLAMA.paths), (given,))

    def counters(self) -> Counters | None:
        return LLAMA.counters(self.get("/metrics")["/metrics"])

    def ids(self, text: str) -> Ids:
        return LLAMA.token_ids(self.post(LLAMA.tokenize("t", self.server.base, text)))

    def generates(self, prompt: Prompt, tokens: int, way: str = "/completion") -> Generated:
        before = self.counters()
        request = LLAMA.generate("g", self.server.base, prompt, tokens, way=way, model="tiny", timeout=60)
        answer = self.post(request)
        return LLAMA.read(answer, self.serving(), before, self.counters())


Ask = Callable[[LlamaServer], Asker]


@pytest.fixture
def ask(session: OpenSession) -> Ask:
    return lambda server: Asker(server, session(Host(name="here", transport="local")))


def commits(generated: Generated) -> list[int]:
    """Tokens of each step, those aside that the end of the output shortened."""
    return [step.tokens for step in generated.steps[: len(generated.steps) - (generated.cut_steps or 0)]]


def account(generated: Generated, origin: str) -> Account:
    return next(account for account in generated.accounts if account.origin == origin)


def in_one_voice(generated: Generated) -> None:
    """The stream, step by step, and the server-wide counters say the same, and so do the totals."""
    stream, counted, totals = (account(generated, origin) for origin in ("stream", "/metrics", "timings"))
    assert (stream.steps, stream.histogram) == (counted.steps, counted.histogram)
    for other in (counted, totals):
        assert (stream.accepted, stream.drafted) == (other.accepted, other.drafted)
    assert generated.notes == ()


def test_the_bad_drafter_commits_four_at_every_length(llama_server: StartLlama, ask: Ask) -> None:
    asker = ask(llama_server(*BAD_DRAFTER))
    server, serving = asker.server, asker.serving()
    assert (serving.speculating, serving.method, serving.drafter, serving.draft_tokens) == (
        True, "draft-simple", "model", 5,
    )  # fmt: skip
    assert (serving.context_limit, serving.kv_tokens, serving.vocabulary) == (32768, 32768, 1024)
    assert (serving.running, serving.waiting, serving.model) == (0, 0, "tiny")
    for context in CONTEXTS:
        got = asker.generates(Prompt(ids=server.tiled(context)), 270)
        assert (got.prompt_tokens, got.output_tokens, got.finish) == (context, 270, "length")
        # The prefill's token, a first step that misses, and 67 steps of 4, of which the last has its draft trimmed to 3.
        assert commits(got) == [1, *[4] * 66]
        assert abs(sum(commits(got)) / len(commits(got)) - 4.0) <= 0.1
        in_one_voice(got)
        # It goes on with the phrase.
        assert got.ids == (server.ids * 34)[:270]
    assert asker.serving().decode_ms is not None


@pytest.mark.parametrize("way", LLAMA.ways)
def test_the_last_draft_is_trimmed(way: str, llama_server: StartLlama, ask: Ask) -> None:
    """64 tokens: 1, then 1 + 15 x 4, and 2 that are left."""
    asker = ask(llama_server(*BAD_DRAFTER, ctx=4096))
    got = asker.generates(Prompt(ids=asker.server.tiled(256)), 64, way)
    assert (got.prompt_tokens, got.output_tokens, got.finish) == (256, 64, "length")
    assert [step.tokens for step in got.steps] == [1, *[4] * 15, 2]
    assert [step.drafted for step in got.steps] == [5] * 16 + [1]
    assert (got.last_step_cut, got.cut_steps) == (True, 1)
    assert account(got, "stream").histogram == (1, 1, 0, 15)
    in_one_voice(got)
    assert got.text == asker.server.phrase * 8


def test_step_times(llama_server: StartLlama, ask: Ask) -> None:
    asker = ask(llama_server(*BAD_DRAFTER, ctx=4096))
    got = asker.generates(Prompt(ids=asker.server.tiled(256)), 64)
    times = [step.at for step in got.steps if step.at is not None]
    assert got.first_token_at is not None
    assert len(times) == 17
    assert got.first_token_at < times[0]
    assert times == sorted(set(times))


def test_ngram_simple(llama_server: StartLlama, ask: Ask) -> None:
    """The text is its own draft: all 5 are right, and 3 of 130 tokens are left for the last step."""
    asker = ask(llama_server(*NGRAM_SIMPLE, ctx=8192))
    serving = asker.serving()
    assert (serving.speculating, serving.method, serving.drafter, serving.draft_tokens) == (
        True, "ngram-simple", "lookup", 5,
    )  # fmt: skip
    for context in (256, 4096):
        got = asker.generates(Prompt(ids=asker.server.tiled(context)), 130)
        assert [step.tokens for step in got.steps] == [*[6] * 21, 3]
        assert got.cut_steps == 1
        in_one_voice(got)


def test_no_draft_is_found_in_random_words(llama_server: StartLlama, ask: Ask) -> None:
    asker = ask(llama_server(*NGRAM_SIMPLE, ctx=4096))
    words = " ".join(random.Random(5).sample(asker.server.words, 120))
    got = asker.generates(Prompt(text=" " + words), 64)
    assert [(step.tokens, step.drafted) for step in got.steps] == [(1, 0)] * 63
    for origin in ("timings", "/metrics"):
        said = account(got, origin)
        assert (said.steps, said.accepted, said.drafted, said.commit) == (0, 0, 0, None)


def test_without_speculation(llama_server: StartLlama, ask: Ask) -> None:
    asker = ask(llama_server(ctx=4096, metrics=False))
    serving = asker.serving()
    assert (serving.speculating, serving.method, serving.draft_tokens) == (False, "", None)
    assert asker.counters() is None
    got = asker.generates(Prompt(ids=asker.server.tiled(256)), 64)
    assert [step.tokens for step in got.steps] == [1] * 63
    assert (got.last_step_cut, got.ids) == (False, asker.server.ids * 8)
    assert [(said.origin, said.steps, said.commit) for said in got.accounts] == [("timings", 0, None)]


def test_a_state_that_is_no_matter_of_length(llama_server: StartLlama, ask: Ask) -> None:
    """ngram-map-k speculates on the first prompt; a similar one after it gets one draft or none, whatever its length.

    The server's counters then say 6.0, or nothing. All steps together say what was gained.
    """
    asker = ask(llama_server(*NGRAM_MAP_K, ctx=4096))
    made_up = iter(random.Random(3).sample(asker.server.words, 20))

    def generates(context: int) -> Generated:
        nonce = asker.ids(" " + " ".join(next(made_up) for _ in range(4)))
        return asker.generates(Prompt(ids=nonce + asker.server.tiled(context)), 64)

    first = generates(64)
    assert [step.drafted for step in first.steps] == [*[5] * 10, 2]
    in_one_voice(first)
    for context in (128, 1024, 128):
        got = generates(context)
        drafted = [step.drafted for step in got.steps if step.drafted]
        assert drafted in ([], [5])
        assert len(got.steps) == 63 - sum(drafted)
        assert 63 / len(got.steps) <= 1.09
        assert account(got, "/metrics").commit in (None, 6.0)


def test_two_slots_share_the_room(llama_server: StartLlama, ask: Ask) -> None:
    asker = ask(llama_server(*BAD_DRAFTER, ctx=2048, np=2))
    assert (asker.serving().context_limit, asker.serving().kv_tokens) == (1024, 2048)
    with pytest.raises(Unanswered, match=r"HTTP 400: request \(1040 tokens\) exceeds the available context"):
        asker.generates(Prompt(ids=asker.server.tiled(1040)), 8)


def test_ids_outside_the_vocabulary_are_refused(llama_server: StartLlama, ask: Ask) -> None:
    asker = ask(llama_server(ctx=2048))
    with pytest.raises(Unanswered, match="HTTP 400: Prompt contains invalid tokens"):
        asker.generates(Prompt(ids=(281, 1024)), 8)
    assert asker.ids(asker.server.phrase) == asker.server.ids


def test_an_api_key(llama_server: StartLlama, ask: Ask) -> None:
    asker = ask(llama_server("--api-key", "made-up-key", ctx=2048))
    with pytest.raises(Unanswered, match="HTTP 401: Invalid API Key"):
        asker.generates(Prompt(ids=asker.server.ids), 8)
