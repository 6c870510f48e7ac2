"""The simulated engine's HTTP: what SGLang answers to requests that make it compute.

Answers of GET requests come from `lab.sglang`. Every JSON object says that it is the lab's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ddprobe.lab.engine.decoding import Run
from ddprobe.lab.engine.engine import Engine, Timed
from ddprobe.lab.engine.tokenizer import Tokenizer
from ddprobe.lab.engine.words import DONE, NativeWords, OpenAIWords, Words, event
from ddprobe.lab.http import Piece, Response, json_response

_POSTS = ("/generate", "/v1/completions", "/tokenize", "/v1/tokenize")
_EVENTS = "text/event-stream; charset=utf-8"


class _Refusal(Exception):
    """A request that is answered with an error."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class _Asked:
    prompt: list[int]
    max_tokens: int
    stream: bool
    body: Mapping[str, Any]


@dataclass(slots=True)
class SimulatedServer:
    """Answers by method, path and body."""

    engine: Engine
    gets: Mapping[str, Callable[[], Response]]

    @property
    def alive(self) -> bool:
        return self.engine.alive

    def respond(self, method: str, path: str, body: bytes = b"") -> Response:
        if path in self.gets and method in ("GET", "HEAD"):
            return self.gets[path]()
        if path not in _POSTS:
            wrong = path in self.gets
            return json_response(
                {"detail": "Method Not Allowed" if wrong else "Not Found", "lab": True}, 405 if wrong else 404
            )
        if method != "POST":
            return json_response({"detail": "Method Not Allowed", "lab": True}, 405)
        native = path == "/generate"
        try:
            given = _object(body)
            if path.endswith("/tokenize"):
                return self._tokenize(given)
            return self._generate(
                _native(given, self.engine) if native else _openai(given, self.engine), native
            )
        except _Refusal as error:
            return _refused(error, native)

    def _tokenize(self, given: Mapping[str, Any]) -> Response:
        text, messages = given.get("prompt"), given.get("messages")
        if (text is None) == (messages is None):
            raise _Refusal("1 validation error: Exactly one of 'prompt' or 'messages' must be provided.")
        if messages is not None:
            ids = _chat(messages, given.get("chat_template_kwargs"), self.engine.tokenizer)
        elif isinstance(text, str):
            ids = self.engine.tokenizer.encode(text)
        else:
            raise _Refusal("prompt: a string is expected")
        return json_response(
            {"tokens": ids, "count": len(ids), "max_model_len": self.engine.context_length, "lab": True}
        )

    def _generate(self, asked: _Asked, native: bool) -> Response:
        engine = self.engine
        if not engine.knows(asked.prompt):
            engine.alive = False
            engine.write_log(0.0, "IndexError: index out of range in self")
            engine.write_log(
                0.0, "SIGQUIT received. signum=None, frame=None. It usually means one child failed."
            )
            return Response(hangs_up=True)
        try:
            self._check_length(asked)
        except _Refusal as error:
            if asked.stream and native:
                said = {
                    "message": str(error),
                    "type": "invalid_request_error",
                    "code": 400,
                    "retryable": False,
                }
                return Response(
                    type=_EVENTS, pieces=iter([Piece(0.0, event({"error": said, "lab": True}) + DONE)])
                )
            raise
        run, times, request = engine.answer(asked.prompt, asked.max_tokens)
        say = NativeWords(engine, run, request) if native else OpenAIWords(engine, run, request, asked.body)
        pieces = self._pieces(say, times) if asked.stream else self._whole(say, run, times)
        return Response(type=_EVENTS if asked.stream else "application/json", pieces=pieces)

    def _check_length(self, asked: _Asked) -> None:
        limit, length = self.engine.context_length, len(asked.prompt)
        if length >= limit:
            raise _Refusal(
                f"The input ({length} tokens) is longer than the model's context length ({limit} tokens)."
            )
        if length + asked.max_tokens > limit:
            raise _Refusal(
                f"Requested token count exceeds the model's maximum context length of {limit} tokens. You requested a "
                f"total of {length + asked.max_tokens} tokens: {length} tokens from the input messages and "
                f"{asked.max_tokens} tokens for the completion. Please reduce the number of tokens in the input messages "
                "or the completion to fit within the limit."
            )

    def _pieces(self, say: Words, times: tuple[Timed, ...]) -> Iterator[Piece]:
        self.engine.entered(1)
        try:
            for place, timed in enumerate(times):
                yield Piece(timed.seconds, say.part(timed.tokens, ended=place == len(times) - 1))
            yield Piece(times[-1].seconds if times else 0.0, say.end())
        finally:
            self.engine.entered(-1)

    def _whole(self, say: Words, run: Run, times: tuple[Timed, ...]) -> Iterator[Piece]:
        self.engine.entered(1)
        try:
            yield Piece(times[-1].seconds if times else run.prefill_seconds, say.whole())
        finally:
            self.engine.entered(-1)


# --- requests ----------------------------------------------------------------------------------------------


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body)
    except ValueError as error:
        raise _Refusal(
            f"1 validation error:\n  {{'type': 'json_invalid', 'msg': 'JSON decode error: {error}'}}"
        ) from None
    if not isinstance(given, dict):
        raise _Refusal("1 validation error: a JSON object is expected")
    return given


def _chat(messages: Any, switches: Any, tokenizer: Tokenizer) -> list[int]:
    """A chat in the made-up model's template: every turn between two special tokens, then the answer's beginning."""
    opened, closed = tokenizer.ordinary + 1, tokenizer.ordinary + 2
    ids: list[int] = []
    for message in messages if isinstance(messages, list) else ():
        if not (isinstance(message, dict) and isinstance(message.get("content"), str)):
            raise _Refusal("messages: each has a role and a text")
        ids += [opened, *tokenizer.encode(f"{message.get('role')}\n{message['content']}"), closed]
        ids += tokenizer.encode("\n")
    if not ids:
        raise _Refusal("Messages cannot be empty.")
    thinks = not (isinstance(switches, dict) and switches.get("enable_thinking") is False)
    return [
        *ids,
        opened,
        *tokenizer.encode("assistant\n" if thinks else "assistant\n<think>\n\n</think>\n\n"),
    ]


def _native(given: dict[str, Any], engine: Engine) -> _Asked:
    sampling = given.get("sampling_params") or {}
    return _Asked(
        _prompt(given.get("input_ids"), given.get("text"), engine),
        _length(sampling.get("max_new_tokens", 128)),
        given.get("stream") is True,
        given,
    )


def _openai(given: dict[str, Any], engine: Engine) -> _Asked:
    prompt = given.get("prompt")
    ids, text = (prompt, None) if isinstance(prompt, list) else (None, prompt)
    return _Asked(
        _prompt(ids, text, engine), _length(given.get("max_tokens", 16)), given.get("stream") is True, given
    )


def _prompt(ids: Any, text: Any, engine: Engine) -> list[int]:
    if isinstance(ids, list) and set(map(type, ids)) == {int}:
        return ids
    if isinstance(text, str) and text:
        return engine.tokenizer.encode(text)
    raise _Refusal("Either text, input_ids or input_embeds should be provided.")


def _length(given: Any) -> int:
    if type(given) is not int or given < 0:
        raise _Refusal(f"max_new_tokens must be at least 0, got {given}.")
    return given


def _refused(error: _Refusal, native: bool) -> Response:
    message = str(error)
    if native and not message.startswith("1 validation error"):
        return json_response({"error": {"message": message}, "lab": True}, error.status)
    kind = "Bad Request" if message.startswith("1 validation error") else "BadRequestError"
    said = {
        "object": "error",
        "message": message,
        "type": kind,
        "param": None,
        "code": error.status,
        "lab": True,
    }
    return json_response(said, error.status)
