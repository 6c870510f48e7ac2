"""How a finished run is said: SGLang's native answer and OpenAI's, whole or piece by piece."""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ddprobe.lab.engine import meta_info
from ddprobe.lab.engine.decoding import Run
from ddprobe.lab.engine.engine import Engine

DONE = b"data: [DONE]\n\n"


def event(value: Mapping[str, Any]) -> bytes:
    return b"data: " + _json(value) + b"\n\n"


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


@dataclass(slots=True)
class Words(abc.ABC):
    """How a run is said."""

    engine: Engine
    run: Run
    request: str

    @abc.abstractmethod
    def part(self, tokens: int, *, ended: bool) -> bytes:
        """A piece of the stream, once so many tokens are out."""

    def end(self) -> bytes:
        return DONE

    @abc.abstractmethod
    def whole(self) -> bytes:
        """The answer that is not streamed."""

    def spoken(self) -> dict[str, Any]:
        return meta_info.speculation(self.run, self.engine.ledger.draft_tokens, self.engine.version)


@dataclass(slots=True)
class NativeWords(Words):
    """`/generate`: each piece holds all tokens so far."""

    def part(self, tokens: int, *, ended: bool) -> bytes:
        return event(self._said(tokens, ended))

    def whole(self) -> bytes:
        return _json(self._said(len(self.run.output), True))

    def _said(self, tokens: int, ended: bool) -> dict[str, Any]:
        ids = self.run.output[:tokens]
        meta = meta_info.running(self.run, self.request, tokens, ended)
        if ended:
            meta |= self.spoken()
        return {"text": self.engine.tokenizer.decode(ids), "output_ids": ids, "meta_info": meta, "lab": True}


@dataclass(slots=True)
class OpenAIWords(Words):
    """`/v1/completions`: each piece holds the new text only."""

    body: Mapping[str, Any]
    _told: int = 0

    def part(self, tokens: int, *, ended: bool) -> bytes:
        fresh = self.run.output[self._told : tokens]
        self._told = tokens
        options = self.body.get("stream_options") or {}
        usage = self._usage(tokens) if options.get("continuous_usage_stats") else None
        return event(self._card(self._choice(fresh, ended)) | {"usage": usage})

    def end(self) -> bytes:
        said = b""
        if details := self._details():
            said += event(self._card() | {"usage": None} | details)
        if (self.body.get("stream_options") or {}).get("include_usage"):
            said += event(self._card() | {"usage": self._usage(len(self.run.output))})
        return said + DONE

    def whole(self) -> bytes:
        output = self.run.output
        return _json(
            self._card(self._choice(output, True)) | {"usage": self._usage(len(output))} | self._details()
        )

    def _card(self, *choices: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": self.request,
            "object": "text_completion",
            "created": 1777540000,
            "model": self.body.get("model", "default"),
            "choices": list(choices),
            "lab": True,
        }

    def _choice(self, ids: list[int], ended: bool) -> dict[str, Any]:
        text = self.engine.tokenizer.decode(ids)
        finish = "length" if ended else None
        return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish, "matched_stop": None}

    def _usage(self, tokens: int) -> dict[str, Any]:
        prompt = self.run.prompt_tokens
        return {
            "prompt_tokens": prompt, "total_tokens": prompt + tokens, "completion_tokens": tokens, "reasoning_tokens": 0,
        }  # fmt: skip

    def _details(self) -> dict[str, Any]:
        if not self.body.get("return_spec_tokens_details") or self.engine.version < (0, 5, 19):
            return {}
        return {"sglext": {"spec_tokens_details": {**_ALL_ZERO, **self.spoken()}}}


_ALL_ZERO: Mapping[str, Any] = {
    "spec_accept_rate": 0.0,
    "spec_accept_length": 0.0,
    "spec_cap_length": 0.0,
    "spec_block_accept_length": 0.0,
    "spec_num_correct_drafts": 0,
    "spec_num_proposed_drafts": 0,
    "spec_verify_ct": 0,
    "spec_correct_drafts_histogram": [],
    "spec_cap_lens_histogram": [],
}
