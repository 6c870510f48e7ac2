"""Against a real vLLM: a drafter that sees 2048 tokens collapses there, by every source; n-gram drafts by lookup."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from ddprobe.engines.generation import Counters, Generated, Prompt, Serving
from ddprobe.engines.vllm import VLLM
from ddprobe.engines.vllm_accounts import BLOCK
from ddprobe.engines.vllm_generation import VLLMGeneration
from ddprobe.facts import ServerArgs
from ddprobe.model import Host, HttpRequest, HttpResult
from ddprobe.probes.draft._requests import request_fact
from ddprobe.redact import Redactor
from ddprobe.sessions import open_session
from ddprobe.sessions.base import Session
from tests.real.servers import vllm
from tests.real.servers.vllm import VllmServer

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(400)]


@dataclass
class Asked:
    """A running server, and the road to it that the probe itself takes."""

    server: VllmServer
    session: Session
    count: int = 0
    speaks: VLLMGeneration = VLLMGeneration()  # noqa: RUF009 (it holds nothing)

    def ask(self, request: HttpRequest) -> HttpResult:
        (answer,) = self.session.ask([request])
        assert isinstance(answer, HttpResult)
        return answer

    def get(self, path: str) -> HttpResult:
        return self.ask(VLLM().requests(self.server.base, "", (path,))[0])

    @property
    def serving(self) -> Serving:
        values = VLLM().given(("vllm", "serve", "models/tiny-bigram", *self.server.flags))
        known = ServerArgs(engine="vllm", origin="command line", values=tuple(values.items()))
        return self.speaks.serving({path: self.get(path) for path in self.speaks.paths}, [known])

    def counters(self) -> Counters:
        found = self.speaks.counters(self.get(self.speaks.counters_path))
        assert found is not None
        return found

    def generate(self, prompt: Prompt, max_tokens: int) -> Generated:
        serving, before = self.serving, self.counters()
        self.count += 1
        answer = self.ask(
            self.speaks.generate(
                f"request-{self.count}", self.server.base, prompt, max_tokens,
                way=self.speaks.ways[0], model=serving.model, timeout=120,
            )
        )  # fmt: skip
        return self.speaks.read(answer, serving, before, self.counters())

    def generate_apart(self, prompt: Prompt, max_tokens: int) -> Generated:
        """The same, until no piece holds several steps, as some do on a busy machine."""
        for _ in range(8):
            generated = self.generate(prompt, max_tokens)
            if all(step.tokens <= 6 for step in generated.steps):
                break
        return generated


def asked(*flags: str) -> Iterator[Asked]:
    with vllm.serving(*flags) as server:
        session = open_session(Host(name="here", transport="local"), Redactor(), threading.Event())
        try:
            yield Asked(server, session)
        finally:
            session.close()


@pytest.fixture(scope="module")
def collapse() -> Iterator[Asked]:
    yield from asked(*vllm.COLLAPSE, "--per-request-spec-decode-metrics", "detailed")


@pytest.fixture(scope="module")
def ngram() -> Iterator[Asked]:
    yield from asked(*vllm.NGRAM)


def test_it_says_what_it_is(collapse: Asked) -> None:
    serving = collapse.serving
    assert (serving.version, serving.model, serving.context_limit) == ("0.32.0", "tiny", 32768)
    assert (serving.speculating, serving.method, serving.drafter) == (True, "draft_model", "model")
    assert (serving.draft_tokens, serving.draft_context_limit) == (5, 2048)
    assert (serving.running, serving.waiting, serving.kv_used, serving.prefix_cache) == (0, 0, 0, True)
    assert serving.kv_tokens is not None
    assert serving.kv_tokens >= 32768


def test_ids_of_a_text(collapse: Asked) -> None:
    request = collapse.speaks.tokenize("tokenize", collapse.server.base, collapse.server.phrase * 2, "tiny")
    assert collapse.speaks.token_ids(collapse.ask(request)) == collapse.server.ids * 2


# Drafts of the step at n tokens are right while n + 5 fits into 2048: eight steps of 6 from 2001 on.
@pytest.mark.parametrize(
    ("context", "sixes", "ones"), [(256, 64, 0), (1900, 24, 240), (2000, 8, 336), (2100, 0, 384), (8192, 0, 384), (264, 64, 0)]
)  # fmt: skip
def test_the_collapse_at_2k(collapse: Asked, context: int, sixes: int, ones: int) -> None:
    generated = collapse.generate_apart(Prompt(ids=collapse.server.tiled(context)), 1 + 6 * 64)
    steps = sixes + ones
    assert (generated.prompt_tokens, generated.output_tokens) == (context, 385)
    assert [step.tokens for step in generated.steps] == [6] * sixes + [1] * ones
    assert (generated.last_step_cut, generated.notes) == (False, ())
    assert [account.origin for account in generated.accounts] == [BLOCK, "/metrics", "stream"]
    for account in generated.accounts:
        assert (account.steps, account.accepted) == (steps, 5 * sixes)
        assert account.histogram == (ones, 0, 0, 0, 0, sixes)
    # The target copies, whatever the drafter does.
    assert generated.ids == collapse.server.tiled(392)[:385]


def test_the_prefix_cache_shows_in_the_counters(collapse: Asked) -> None:
    prompt = Prompt(ids=tuple(reversed(collapse.server.tiled(1024))))
    cold, cached = collapse.generate(prompt, 7), collapse.generate(prompt, 7)
    assert cold.cached_tokens == 0
    # Whole blocks of 128 tokens; the last one is computed again.
    assert cached.cached_tokens == 896
    assert cold.ids == cached.ids


def test_a_refusal_is_told(collapse: Asked) -> None:
    far = collapse.speaks.generate(
        "far", collapse.server.base, Prompt(ids=collapse.server.tiled(40000)), 8,
        way="/v1/completions", model="tiny", timeout=60,
    )  # fmt: skip
    assert "maximum context length is 32768" in collapse.ask(far).trouble


def test_lookup_on_easy_text_and_on_none(ngram: Asked) -> None:
    serving = ngram.serving
    assert (serving.method, serving.drafter, serving.draft_tokens) == ("ngram", "lookup", 5)
    easy = ngram.generate_apart(Prompt(ids=ngram.server.tiled(1024)), 97)
    assert [(a.origin, a.steps, a.accepted) for a in easy.accounts] == [
        ("/metrics", 16, 80),
        ("stream", 16, 80),
    ]
    # Off the phrase the model walks a circle of some nine hundred tokens: nothing to look up.
    request = ngram.speaks.tokenize(
        "tokenize", ngram.server.base, " " + " ".join(ngram.server.words[:40]), "tiny"
    )
    hard = request_fact(
        ngram.generate(Prompt(ids=ngram.speaks.token_ids(ngram.ask(request))), 97),
        key="hard", purpose="point", arm="random", context_tokens=48, prompt=0, max_tokens=97, ceiling=6,
    )  # fmt: skip
    assert hard.num_spec_steps is not None
    assert hard.undrafted_steps is not None
    assert hard.num_spec_steps <= 4
    # One token a step, but for what these few drafts won.
    assert hard.num_spec_steps + hard.undrafted_steps >= 96 - 4 * 5
    assert (hard.origin, hard.disagreements) == ("/metrics", ())
