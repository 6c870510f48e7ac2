"""The real SGLang, asked over a session with this machine: what it says of itself and of each request's speculation."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ddprobe import evidence, lints
from ddprobe.engines.generation import Generated, Prompt, Serving, post
from ddprobe.engines.sglang_generation import COMPLETIONS, NATIVE, SGLangGeneration
from ddprobe.errors import Unanswered
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import Acceptance, CommitRequest
from ddprobe.model import Host, HttpRequest, HttpResult, Outcome
from ddprobe.probes.draft._requests import request_fact
from ddprobe.sessions.base import Session
from tests.real.conftest import OpenSession
from tests.real.servers.sglang_cpu import EASY, HARD, SglangCpu, StartSglang

pytestmark = [pytest.mark.sglang_cpu, pytest.mark.timeout(420)]

GENERATION = SGLangGeneration()
KEY = "sk-of-the-real-server"


class Asking:
    """A session with a server, and what the server says of itself."""

    def __init__(self, session: Session, server: SglangCpu) -> None:
        self.session = session
        self.base = server.base
        self.answers = self.look()
        self.serving: Serving = GENERATION.serving(self.answers, ())

    def ask(self, request: HttpRequest) -> HttpResult:
        (answer,) = self.session.ask((request,))
        assert isinstance(answer, HttpResult)
        return answer

    def look(self) -> Mapping[str, HttpResult]:
        return {
            path: self.ask(HttpRequest(key=path, method="GET", path=path, base=self.base, timeout=30))
            for path in GENERATION.paths
        }

    def ids(self, text: str) -> tuple[int, ...]:
        return GENERATION.token_ids(self.ask(GENERATION.tokenize("ids", self.base, text, self.serving.model)))

    def generates(self, prompt: Prompt, tokens: int, way: str = NATIVE) -> Generated:
        request = GENERATION.generate(
            "one", self.base, prompt, tokens, way=way, model=self.serving.model, timeout=60
        )
        return GENERATION.read(self.ask(request), self.serving, None, None)


def asking(session: OpenSession, server: SglangCpu, api_key_env: str | None = None) -> Asking:
    return Asking(session(Host(name="here", transport="local", api_key_env=api_key_env)), server)


def commits(read: Generated) -> set[float | None]:
    """What the sources say; the stream is silent where steps came together, as on a busy machine they may."""
    assert [account.origin.split()[-1] for account in read.accounts[:1]] == ["histogram"]
    assert len(read.accounts) == 3 if not read.merged else 2 <= len(read.accounts) <= 3
    return {account.commit for account in read.accounts}


def record(read: Generated, server: Asking) -> CommitRequest:
    return request_fact(
        read, key="one", purpose="point", arm="verbatim", context_tokens=0, prompt=0, max_tokens=0,
        ceiling=(server.serving.draft_tokens or 0) + 1, speculating=server.serving.speculating,
    )  # fmt: skip


@pytest.mark.parametrize("way", [NATIVE, COMPLETIONS])
def test_dflash_commits_four_tokens_a_step_of_the_easy_text_and_every_source_says_so(
    sglang_cpu: StartSglang, session: OpenSession, way: str
) -> None:
    server = asking(session, sglang_cpu("dflash"))
    assert (server.serving.speculating, server.serving.method, server.serving.draft_tokens) == (
        True,
        "DFLASH",
        3,
    )
    assert (server.serving.drafter, server.serving.tree) == ("model", False)
    assert (server.serving.context_limit, server.serving.kv_tokens, server.serving.running) == (506, 8192, 0)
    easy = server.ids(EASY)
    assert easy == (39, 68, 75, 75, 78)
    read = server.generates(Prompt(ids=easy), 1 + 4 * 64, way)
    assert (read.prompt_tokens, read.output_tokens, read.finish) == (5, 257, "length")
    assert read.ids is not None
    assert len(read.ids) == 257
    assert commits(read) == {4.0}
    assert {account.steps for account in read.accounts} == {64}
    assert read.last_step_cut is False
    assert sum(step.tokens for step in read.steps) == 256
    assert read.merged or [step.tokens for step in read.steps] == [4] * 64
    times = [step.at for step in read.steps if step.at is not None]
    assert len(times) == len(read.steps)
    assert times == sorted(times)
    fact = record(read, server)
    assert fact.disagreements == ()
    assert (fact.num_spec_steps, fact.num_accepted_draft_tokens, fact.undrafted_steps) == (64, 192, 0)
    assert fact.mean_acceptance_length == 4.0


def test_dflash_commits_one_token_a_step_of_the_hard_text(
    sglang_cpu: StartSglang, session: OpenSession
) -> None:
    server = asking(session, sglang_cpu("dflash"))
    read = server.generates(Prompt(text=HARD), 65)
    assert (read.prompt_tokens, read.output_tokens) == (19, 65)
    assert commits(read) == {1.0}
    assert record(read, server).disagreements == ()
    assert read.accounts[0].histogram == (64,)
    assert read.accounts[1].reported_commit == pytest.approx(65 / 64)


def test_a_last_step_that_is_cut_counts_in_full_but_in_the_stream(
    sglang_cpu: StartSglang, session: OpenSession
) -> None:
    server = asking(session, sglang_cpu("dflash"))
    read = server.generates(Prompt(ids=server.ids(EASY)), 20)
    assert read.last_step_cut is True
    assert [(a.accepted, a.last_step_whole) for a in read.accounts[:2]] == [(15, True), (15, True)]
    assert read.merged or [step.tokens for step in read.steps] == [4, 4, 4, 4, 3]
    assert read.merged or (read.accounts[2].accepted, read.accounts[2].last_step_whole) == (14, False)
    fact = record(read, server)
    assert fact.disagreements == ()
    assert fact.mean_acceptance_length == 4.0


def test_one_token_comes_from_the_prefill_and_says_nothing_of_speculation(
    sglang_cpu: StartSglang, session: OpenSession
) -> None:
    server = asking(session, sglang_cpu("dflash"))
    read = server.generates(Prompt(text=EASY), 1)
    assert (read.output_tokens, read.steps, read.accounts, read.notes) == (1, (), (), ())


def test_the_same_prompt_again_is_served_from_the_cache_and_reads_the_same(
    sglang_cpu: StartSglang, session: OpenSession
) -> None:
    server = asking(session, sglang_cpu("dflash"))
    prompt = Prompt(ids=server.ids("As it was said before. " * 8 + EASY))
    first, second = server.generates(prompt, 65), server.generates(prompt, 65)
    assert second.cached_tokens == len(prompt.ids) - 1
    assert (first.ids, commits(first)) == (second.ids, commits(second))


def test_its_own_statements_are_read_from_three_places(sglang_cpu: StartSglang, session: OpenSession) -> None:
    server = asking(session, sglang_cpu("dflash"))
    server.generates(Prompt(text=EASY), 257)
    claims = GENERATION.claims(server.look())
    assert {(claim.what, claim.window) for claim in claims} == {
        ("accept length", "lifetime"),
        ("accept length", "last log window"),
        ("accept rate", "last log window"),
    }
    assert {claim.origin.split()[0] for claim in claims} == {"/server_info", "/v1/loads", "/metrics"}
    assert all(1 <= claim.value <= 4 for claim in claims if claim.what == "accept length")
    lifetime = [claim.value for claim in claims if claim.window == "lifetime"]
    assert lifetime[0] == pytest.approx(lifetime[1])


def test_a_prompt_beyond_the_context_is_refused_in_the_servers_words(
    sglang_cpu: StartSglang, session: OpenSession
) -> None:
    server = asking(session, sglang_cpu("dflash"))
    said = "The input (900 tokens) is longer than the model's context length (512 tokens)."
    assert server.generates(Prompt(text="x" * 900), 5).error == said
    body = {"text": "x" * 900, "sampling_params": {"max_new_tokens": 5}}
    with pytest.raises(Unanswered, match=r"HTTP 400: The input .900 tokens. is longer than"):
        GENERATION.read(
            server.ask(post("one", server.base, NATIVE, body, 30, stream=False)), server.serving, None, None
        )


def test_ngram_drafts_by_lookup_and_the_key_from_the_environment_is_sent(
    sglang_cpu: StartSglang, session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = sglang_cpu("ngram", "--api-key", KEY)
    monkeypatch.setenv("SGLANG_TEST_KEY", KEY)
    server = asking(session, running, api_key_env="SGLANG_TEST_KEY")
    assert (server.serving.method, server.serving.drafter, server.serving.draft_tokens) == (
        "NGRAM",
        "lookup",
        7,
    )
    assert server.serving.tree is True
    read = server.generates(Prompt(ids=server.ids(EASY)), 129)
    histogram, meta = read.accounts[:2]
    assert (histogram.steps, histogram.accepted) == (meta.steps, meta.accepted)
    assert histogram.histogram is not None
    assert len(histogram.histogram) <= 8
    assert sum(step.tokens for step in read.steps) == 128
    assert (histogram.commit or 0) > 4
    assert record(read, server).disagreements == ()
    assert KEY.encode() not in b"".join(answer.body for answer in server.answers.values())


def test_without_its_key_it_answers_401(sglang_cpu: StartSglang, session: OpenSession) -> None:
    server = asking(session, sglang_cpu("ngram", "--api-key", KEY))
    assert server.serving.speculating is None
    with pytest.raises(Unanswered, match="HTTP 401: Unauthorized"):
        server.generates(Prompt(text=EASY), 5)


def test_a_server_that_does_not_speculate_says_so_and_gives_no_account(
    sglang_cpu: StartSglang, session: OpenSession
) -> None:
    server = asking(session, sglang_cpu("plain"))
    assert (server.serving.speculating, server.serving.method, server.serving.draft_tokens) == (
        False,
        "",
        None,
    )
    read = server.generates(Prompt(text=EASY), 33)
    assert (read.accounts, read.last_step_cut, read.output_tokens) == ((), False, 33)
    assert [(step.tokens, step.drafted) for step in read.steps] == [(1, 0)] * 32
    assert GENERATION.claims(server.look()) == ()


def test_at_the_end_of_a_run_all_its_sources_give_one_pair(
    sglang_cpu: StartSglang, session: OpenSession
) -> None:
    """Four tokens a step of the easy text, one of the hard: 32 tokens in 8 steps and 32 in 32, 24 of 120 drafts right.

    Pooled that is 1.6 per step; the mean of both requests would be 2.5. A line a step, and no warm-up, so that nothing
    is counted by one source alone.
    """
    running = sglang_cpu("dflash", "--decode-log-interval", "1", "--skip-server-warmup")
    server = asking(session, running)
    documents = []
    for text in (EASY, HARD):
        asked = GENERATION.generate(
            text, server.base, Prompt(text=text), 33, way=NATIVE, model=server.serving.model, timeout=60
        )
        told = [line for line in server.ask(asked).body.split(b"\n") if b"spec_verify_ct" in line]
        documents.append(told[-1].removeprefix(b"data: "))
    answers = server.look()
    documents += [answers["/server_info"].body, answers["/metrics"].body, running.log.read_bytes()]
    facts = evidence.facts(
        evidence.recognise(of_bytes(str(number), data)) for number, data in enumerate(documents)
    )
    requests = [fact for fact in facts if isinstance(fact, CommitRequest)]
    assert sum(request.num_spec_steps or 0 for request in requests) == 40
    assert sum(request.num_accepted_draft_tokens or 0 for request in requests) == 24
    stated = {fact.origin: fact for fact in facts if isinstance(fact, Acceptance)}
    assert set(stated) == {"decode log", "/server_info avg_spec_accept_length", "/metrics"}
    for figure in stated.values():
        assert figure.commit == pytest.approx(1.6, rel=0.02), figure.origin
        assert figure.rate == pytest.approx(24 / 120, rel=0.02), figure.origin
    (found,) = (finding for finding in lints.judge(facts) if finding.id == "MC14")
    assert found.outcome is Outcome.PASS
    assert "4 sources agree" in found.summary
