"""How vLLM generates: `/v1/completions` with token ids, streamed as one event per engine step.

    data: {"choices":[{"token_ids":[279,282,284],"finish_reason":null,…}],"usage":{"prompt_tokens":16,"completion_tokens":4}}
    data: {"choices":[],"usage":{…},"metrics":{"speculative_decoding":{"num_spec_steps":6,"acceptance_histogram":[0,0,6],…}}}

Three sources speak of the speculation: a block in the last event (only with `--per-request-spec-decode-metrics`), the
counters in `/metrics` (server-wide, of the steps that had a draft) and the sizes of the stream's pieces. The first two
count the last step as it was verified though the output was cut; the stream shows it as cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ddprobe.engines import vllm_accounts as accounts
from ddprobe.engines import vllm_answers as answers
from ddprobe.engines.base import Answers, document, mapping
from ddprobe.engines.generation import (
    Counters,
    Event,
    Generated,
    Generation,
    Ids,
    Prompt,
    Rendering,
    Serving,
    chat,
    events,
    post,
    said_error,
    unstreamed,
    whole,
)
from ddprobe.engines.vllm_serving import counters_of, lifetime, serving_of
from ddprobe.errors import Unanswered
from ddprobe.facts import Claim, ServerArgs
from ddprobe.model import Cite, HttpRequest, HttpResult

_TOKENIZE_TIMEOUT = 60.0


class VLLMGeneration(Generation):
    """vLLM's OpenAI-compatible server, release 0.32."""

    ways: ClassVar = ("/v1/completions",)
    paths: ClassVar = ("/version", "/v1/models", "/metrics")
    counters_path = "/metrics"

    def serving(self, answers: Answers, arguments: Sequence[ServerArgs]) -> Serving:
        return serving_of(answers, arguments)

    def counters(self, result: HttpResult) -> Counters | None:
        return counters_of(result.text) if result.whole else None

    def claims(self, answers: Answers) -> tuple[Claim, ...]:
        metrics = answers.get("/metrics")
        return lifetime(metrics.text, Cite(metrics.key)) if metrics is not None and metrics.whole else ()

    def tokenize(self, key: str, base: str, text: str, model: str = "") -> HttpRequest:
        body = {**_named(model), "prompt": text, "add_special_tokens": False}
        return post(key, base, self.tokenize_path, body, _TOKENIZE_TIMEOUT, stream=False)

    def token_ids(self, result: HttpResult) -> Ids:
        whole(result)
        told = mapping(document({self.tokenize_path: result}, self.tokenize_path))
        ids = answers.whole_numbers(told.get("tokens"))
        if ids is None or told.get("count", len(ids)) != len(ids):
            raise Unanswered(result.key, said_error(told) or "the answer does not hold the ids it counts")
        return ids

    def render(
        self, key: str, base: str, message: str, *, model: str = "", thinking: bool | None = None
    ) -> Rendering:
        body = {**_named(model), **chat(message, thinking)}
        return self.token_ids(
            (yield post(key, base, self.tokenize_path, body, _TOKENIZE_TIMEOUT, stream=False))
        )

    def generate(
        self,
        key: str,
        base: str,
        prompt: Prompt,
        max_tokens: int,
        *,
        way: str,
        model: str = "",
        timeout: float,
    ) -> HttpRequest:
        body = {
            **_named(model),
            "prompt": list(prompt.ids) if prompt.ids else prompt.text,
            "max_tokens": max_tokens,
            # The model's generation_config.json may set other defaults for both.
            "temperature": 0,
            "repetition_penalty": 1.0,
            # Not min_tokens: it changes the target's logits, and not the drafter's.
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            "return_token_ids": True,
        }
        return post(key, base, way, body, timeout, stream=True)

    def read(
        self, result: HttpResult, serving: Serving, before: Counters | None, after: Counters | None
    ) -> Generated:
        told = tuple(events(result)) or (Event(unstreamed(result), None, -1),)
        for event in told:
            if error := said_error(event.data):
                return Generated(error=error)
        heard = answers.hear(told)
        if not heard.finish:
            raise Unanswered(
                result.key, f"the answer ends early: {heard.shown} tokens had come, and no finish reason"
            )
        steps, odd = answers.steps_of(heard, serving)
        overfull = any(step.tokens > answers.ceiling(serving, step.tokens) for step, _ in steps)
        alone, moved = accounts.alone(before, after, heard.output_tokens)
        if not alone:
            before = after = None
        block = accounts.from_block(heard.block)
        counted = accounts.from_counters(before, after)
        best = block or counted
        unseen = accounts.unseen(steps, best, before, after)
        streamed = None if overfull or unseen else accounts.from_stream(steps, serving, best)
        return Generated(
            prompt_tokens=heard.prompt_tokens,
            cached_tokens=accounts.cached(heard, before, after),
            output_tokens=heard.output_tokens,
            ids=heard.ids,
            text=heard.text,
            finish=heard.finish,
            first_token_at=heard.pieces[0].at if heard.pieces else None,
            steps=answers.with_drafts(tuple(step for step, _ in steps), heard.block),
            last_step_cut=None if overfull else accounts.cut(steps, best, serving, heard.output_tokens),
            merged=max(answers.merged(steps, serving), unseen),
            accounts=tuple(account for account in (block, counted, streamed) if account is not None),
            notes=tuple(note for note in (moved, odd) if note),
        )


def _named(model: str) -> dict[str, str]:
    return {"model": model} if model else {}
