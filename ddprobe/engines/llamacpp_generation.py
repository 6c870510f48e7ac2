"""How llama.cpp generates: `/completion` with token ids, streamed as one event per token with the counters so far.

    data: {"tokens":[279],"stop":false,"timings":{"cache_n":15,"prompt_n":1,"predicted_n":2,"predicted_ms":3.858,"draft_n":5,…}}
    data: {"stop":true,"stop_type":"limit","timings":{…,"predicted_n":32,"draft_n":41,"draft_n_accepted":22}}

What it says of speculation: the stream (`llamacpp_steps`), the totals in the last event's timings (without the number of
steps, and absent when nothing was drafted), and the counters in `/metrics` (server-wide, absent without `--metrics`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

from ddprobe.engines.base import Answers, document, items, mapping, text, whole_number
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
from ddprobe.engines.llamacpp_accounts import server_wide, streamed, totals
from ddprobe.engines.llamacpp_serving import counters_of, lifetime, serving_of
from ddprobe.engines.llamacpp_steps import Mark, mark_of, steps_cut, steps_of
from ddprobe.errors import Unanswered
from ddprobe.facts import Claim, ServerArgs
from ddprobe.model import HttpRequest, HttpResult
from ddprobe.parsing import bounded_json

_TOKENIZE_TIMEOUT = 60.0
_NATIVE = "/completion"
_RENDER = "/apply-template"
_FINISH = {"limit": "length", "eos": "stop", "word": "stop"}
# Without these the last event repeats the whole prompt.
_LAST_EVENT = (
    "stop", "stop_type", "truncated", "content", "tokens", "tokens_predicted", "tokens_evaluated", "model", "timings",
    "generation_settings/temperature", "generation_settings/speculative.types",
)  # fmt: skip


class LlamaCppGeneration(Generation):
    """llama-server, builds b10434 to b11434."""

    ways: ClassVar = (_NATIVE, "/v1/completions")
    paths: ClassVar = ("/props", "/slots", "/v1/models", "/metrics")
    counters_path = "/metrics"

    def serving(self, answers: Answers, arguments: Sequence[ServerArgs]) -> Serving:
        return serving_of(answers, arguments)

    def counters(self, result: HttpResult) -> Counters | None:
        return counters_of(result.text) if result.whole else None

    def claims(self, answers: Answers) -> tuple[Claim, ...]:
        metrics = answers.get(self.counters_path)
        return lifetime(counters_of(metrics.text)) if metrics is not None and metrics.whole else ()

    def tokenize(self, key: str, base: str, text: str, model: str = "") -> HttpRequest:
        body = {"content": text, "add_special": False, "parse_special": False}
        return post(key, base, self.tokenize_path, body, _TOKENIZE_TIMEOUT, stream=False)

    def token_ids(self, result: HttpResult) -> Ids:
        whole(result)
        told = mapping(document({self.tokenize_path: result}, self.tokenize_path))
        ids = _ids(told.get("tokens"))
        if ids is None:
            raise Unanswered(result.key, said_error(told) or "the answer holds no token ids")
        return ids

    def render(
        self, key: str, base: str, message: str, *, model: str = "", thinking: bool | None = None
    ) -> Rendering:
        answer = yield post(key, base, _RENDER, chat(message, thinking), _TOKENIZE_TIMEOUT, stream=False)
        whole(answer)
        told = mapping(document({_RENDER: answer}, _RENDER))
        prompt = told.get("prompt")
        if not isinstance(prompt, str) or not prompt:
            raise Unanswered(answer.key, said_error(told) or "the answer holds no prompt")
        # A chat's BOS is not in the prompt: where the model wants one, tokenising puts it there.
        body = {"content": prompt, "add_special": True, "parse_special": True}
        return self.token_ids(
            (yield post(f"{key}-ids", base, self.tokenize_path, body, _TOKENIZE_TIMEOUT, stream=False))
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
        body: dict[str, Any] = {
            "prompt": list(prompt.ids) if prompt.ids else prompt.text,
            "n_predict" if way == _NATIVE else "max_tokens": max_tokens,
            # The default is 0.8; and penalties that the server was started with would keep it from copying.
            "temperature": 0,
            "samplers": ["temperature"],
            "seed": 0,
            "ignore_eos": True,
            "cache_prompt": True,
            "stream": True,
            "timings_per_token": True,
        }
        if way == _NATIVE:
            body |= {"return_tokens": True, "response_fields": list(_LAST_EVENT)}
        else:
            body |= {"stream_options": {"include_usage": True}, **({"model": model} if model else {})}
        return post(key, base, way, body, timeout, stream=True)

    def read(
        self, result: HttpResult, serving: Serving, before: Counters | None, after: Counters | None
    ) -> Generated:
        whole(result)
        told = tuple(events(result)) or (Event(unstreamed(result), None, -1),)
        if error := next(filter(None, (said_error(event.data) for event in told)), "") or _late_error(result):
            return Generated(error=error)
        heard = _Heard(told)
        if not heard.finish:
            raise Unanswered(
                result.key,
                f"the answer ends early: {heard.output_tokens or 0} tokens had come, and no last event",
            )
        steps = steps_of(heard.marks, serving.draft_tokens, heard.start) if heard.streamed else ()
        notes: tuple[str, ...] = ()
        if steps is None:
            notes = ("the stream does not show each decode step",)
        elif heard.truncated:
            notes = ("the server's context was full before the output was whole",)
        steps = steps or ()
        cut = steps_cut(steps, serving.draft_tokens) if heard.finish == "length" else min(1, len(steps))
        counted, said = server_wide(before, after, heard.output_tokens)
        return Generated(
            prompt_tokens=heard.prompt_tokens,
            cached_tokens=heard.cached_tokens,
            output_tokens=heard.output_tokens,
            ids=heard.ids,
            text=heard.content,
            finish=heard.finish,
            first_token_at=heard.first_token_at,
            steps=steps,
            last_step_cut=cut > 0 if steps else None,
            cut_steps=cut if steps else None,
            accounts=(*streamed(steps), *totals(heard.timings), *counted),
            notes=(*notes, *said),
        )


class _Heard:
    """A whole answer: the events of either way, or the one object of an answer that was not streamed."""

    def __init__(self, told: tuple[Event, ...]) -> None:
        self.told = told
        self.marks: tuple[Mark, ...] = tuple(filter(None, map(mark_of, told)))
        self.choices = [items(event.data.get("choices")) for event in told]
        self.timings = mapping(_last(told, "timings"))
        self.usage = mapping(_last(told, "usage"))
        self.truncated = _last(told, "truncated") is True

    @property
    def streamed(self) -> bool:
        return len(self.told) > 1

    @property
    def finish(self) -> str:
        """`length`, `stop`; empty when the last event did not come."""
        if _last(self.told, "stop") is True:
            kind = text(_last(self.told, "stop_type"))
            return _FINISH.get(kind, kind or "stop")
        reasons = (text(choice.get("finish_reason")) for choices in self.choices for choice in choices)
        return next(filter(None, reasons), "")

    @property
    def output_tokens(self) -> int | None:
        return _first(self.timings.get("predicted_n"), self.usage.get("completion_tokens"))

    @property
    def cached_tokens(self) -> int | None:
        details = mapping(self.usage.get("prompt_tokens_details"))
        return _first(self.timings.get("cache_n"), details.get("cached_tokens"))

    @property
    def prompt_tokens(self) -> int | None:
        told = _first(_last(self.told, "tokens_evaluated"), self.usage.get("prompt_tokens"))
        computed = whole_number(self.timings.get("prompt_n"))
        if told is None and computed is not None and self.cached_tokens is not None:
            return computed + self.cached_tokens
        return told

    @property
    def ids(self) -> Ids | None:
        """Every token out; None when some came without an event."""
        found = [_ids(event.data.get("tokens", [])) for event in self.told]
        ids = tuple(itertools.chain.from_iterable(part or () for part in found))
        return ids if ids and len(ids) == self.output_tokens else None

    @property
    def content(self) -> str:
        native = "".join(text(event.data.get("content")) for event in self.told)
        return native or "".join(text(choice.get("text")) for choices in self.choices for choice in choices)

    @property
    def first_token_at(self) -> float | None:
        return self.told[0].at if self.streamed else None

    @property
    def start(self) -> float | None:
        """When the decode clock started; where arrival is not known, the server's time for the prompt stands for it."""
        if self.first_token_at is not None and self.marks:
            return self.first_token_at - self.marks[0].clock / 1000
        spent = self.timings.get("prompt_ms")
        return spent / 1000 if isinstance(spent, int | float) else None


def _late_error(result: HttpResult) -> str:
    """An error in the midst of a stream: older builds write it as a line `error: {…}`, without `data:`."""
    for line in result.body.splitlines():
        if line.startswith(b"error:"):
            return said_error({"error": _object(line[6:]) or line[6:].decode("utf-8", "replace").strip()})
    return ""


def _object(body: bytes) -> dict[str, Any]:
    try:
        return mapping(bounded_json.loads(body.decode("utf-8", "replace")))
    except ValueError:
        return {}


def _last(told: Sequence[Event], field: str) -> Any:
    """The field in the last event that has it."""
    return next((event.data[field] for event in reversed(told) if field in event.data), None)


def _first(*values: Any) -> int | None:
    """The first that is an integer."""
    return next((whole for value in values if (whole := whole_number(value)) is not None), None)


def _ids(value: Any) -> Ids | None:
    """Token ids in a list, bare or as `{"id": 281, "piece": …}`; None when it is none."""
    if not isinstance(value, list):
        return None
    bare = [whole_number(entry.get("id") if isinstance(entry, dict) else entry) for entry in value]
    return None if None in bare else tuple(entry for entry in bare if entry is not None)
