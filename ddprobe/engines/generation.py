"""How an inference server is asked to generate, and how its answer is read: the same words for every engine.

Everything here is pure: requests are values, answers are bytes that came. A number that an engine does not say is
None, never 0 or 1.0. Which request is sent when, the probe decides.
"""

from __future__ import annotations

import abc
import itertools
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ddprobe.engines.base import Answers
from ddprobe.errors import Unanswered
from ddprobe.facts import Account, Claim, ServerArgs
from ddprobe.model import HttpRequest, HttpResult
from ddprobe.parsing import bounded_json

Ids = tuple[int, ...]
Rendering = Generator[HttpRequest, HttpResult, Ids]
"""The requests that render a chat, one after another, and the ids that came of it."""
THINKING = ("enable_thinking", "thinking")
"""What chat templates call the switch. One that has neither takes no notice of them."""
NO_JSON = "the stream holds what is no JSON"


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What a server says, before anything is sent, of its speculation and its room. None or empty: it does not say."""

    speculating: bool | None = None
    method: str = ""
    """As the engine calls it: `DFLASH`, `NGRAM`, `draft-simple`, `draft_model`."""
    drafter: str = ""
    """`model` (a neural drafter), `lookup` (n-gram, prompt lookup), or empty."""
    draft_tokens: int | None = None
    """K: tokens drafted per verify step, at most."""
    tree: bool = False
    context_limit: int | None = None
    """Prompt and output together, per request, tokens."""
    kv_tokens: int | None = None
    """Tokens that the KV cache holds in all."""
    kv_used: int | None = None
    running: int | None = None
    waiting: int | None = None
    vocabulary: int | None = None
    model: str = ""
    """The name that requests must give."""
    version: str = ""
    prefix_cache: bool | None = None
    stream_interval: int | None = None
    """Steps per piece of a stream; None means one."""
    draft_context_limit: int | None = None
    """The drafter's own length limit, where it has one of its own by configuration."""
    decode_ms: float | None = None
    """Milliseconds per output token that the server last saw, for an estimate only."""
    limits: tuple[tuple[int, str], ...] = ()
    """(tokens, name) of engine arguments at which behaviour changes with length: chunked prefill, draft window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What is sent: token ids, or a text byte for byte (arm `verbatim`)."""

    ids: Ids = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event: its JSON, and when the piece that completed it came, seconds after the request was sent."""

    data: dict[str, Any]
    at: float | None
    piece: int
    """Number of that piece of the body: events with the same number came together."""


@dataclass(frozen=True, slots=True)
class StreamedStep:
    """Tokens that came out together."""

    tokens: int
    at: float | None
    drafted: int | None = None
    """Tokens that were drafted for it: 0 for a step without a draft, None where that is not said."""
    accepted: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Server-wide totals since the server started. Differences of two of them are a request's, if it was alone."""

    drafts: float | None = None
    """Verify steps that had a draft."""
    drafted: float | None = None
    accepted: float | None = None
    per_position: tuple[float, ...] = ()
    """Accepted tokens by position in the draft."""
    generated: float | None = None
    """Output tokens."""
    steps: float | None = None
    """All decode steps, drafts or not, where the server counts them (prompt batches may be among them)."""
    running: float | None = None
    cached: float | None = None
    """Prompt tokens that the prefix cache served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """One answer, read. `error` set: the server said so inside an answer of status 200, and nothing else counts."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    """The first one, from the prefill, included."""
    ids: Ids | None = None
    text: str = ""
    finish: str = ""
    """`length`, `stop`, `abort`, …"""
    first_token_at: float | None = None
    steps: tuple[StreamedStep, ...] = ()
    """Decode steps in order as the stream shows them, the prefill's token not among them, the last (cut) one included;
    empty when the stream does not show them."""
    last_step_cut: bool | None = None
    """Whether the last of `steps` may have been cut by the end of the output; None: not known."""
    cut_steps: int | None = None
    """How many of `steps`, at their end, the end of the output may have shortened, where that is more than the last one
    (llama.cpp trims each draft to what is left); None: as `last_step_cut` says."""
    merged: int = 0
    """Pieces of the stream that held more than one step."""
    accounts: tuple[Account, ...] = ()
    """What each source says of the speculation, the best first. Empty: no source says anything."""
    notes: tuple[str, ...] = ()
    error: str = ""


class Generation(abc.ABC):
    """One engine's way to generate."""

    ways: ClassVar[tuple[str, ...]]
    """Ways to ask, the best first: `/generate`, then `/v1/completions` where the first is not routed (404, 405)."""
    paths: ClassVar[tuple[str, ...]]
    """GETs that `serving` reads, answers by path."""
    counters_path: ClassVar[str] = ""
    """GET of server-wide counters, asked around every request; empty where requests speak for themselves."""
    tokenize_path: ClassVar[str] = "/tokenize"

    @abc.abstractmethod
    def serving(self, answers: Answers, arguments: Sequence[ServerArgs]) -> Serving:
        """What the server says of itself. `arguments`: its command line, and what it resolved, where known."""

    @abc.abstractmethod
    def tokenize(self, key: str, base: str, text: str, model: str = "") -> HttpRequest:
        """Ask for the ids of a text, without BOS or other special tokens."""

    @abc.abstractmethod
    def token_ids(self, result: HttpResult) -> Ids:
        """The ids. Raises `Unanswered` when the answer holds none."""

    @abc.abstractmethod
    def render(
        self, key: str, base: str, message: str, *, model: str = "", thinking: bool | None = None
    ) -> Rendering:
        """Ask for the ids of one user message as the server's own chat template puts it, up to where the answer begins.

        Special tokens are as in a chat. `thinking` is told to the template unless it is None. Raises `Unanswered`.
        """

    @abc.abstractmethod
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
        """Greedy, end-of-text ignored, no stop word, streamed step by step, prefix cache as the server has it."""

    @abc.abstractmethod
    def read(
        self, result: HttpResult, serving: Serving, before: Counters | None, after: Counters | None
    ) -> Generated:
        """The answer, whichever way it was asked. Raises `Unanswered` when there is no whole one (`result.text` does)."""

    def counters(self, result: HttpResult) -> Counters | None:
        """Server-wide counters from the answer of `counters_path`; None when it has none."""
        return None

    def claims(self, answers: Answers) -> tuple[Claim, ...]:
        """What the server itself states of its speculation, server-wide, in the answers of `paths`."""
        return ()


# --- what the dialects share -------------------------------------------------------------------------------


def chat(message: str, thinking: bool | None) -> dict[str, Any]:
    """The fields that every engine takes for a chat of one message."""
    said: dict[str, Any] = {"messages": [{"role": "user", "content": message}]}
    if thinking is not None:
        said["chat_template_kwargs"] = dict.fromkeys(THINKING, thinking)
    return said


def post(
    key: str, base: str, path: str, body: Mapping[str, Any], timeout: float, *, stream: bool
) -> HttpRequest:
    """A JSON request."""
    return HttpRequest(
        key=key,
        method="POST",
        path=path,
        base=base,
        headers=(("Content-Type", "application/json"),),
        body=json.dumps(body, separators=(",", ":")).encode(),
        timeout=timeout,
        stream=stream,
        cap=64 * 1024 * 1024 if stream else 16 * 1024 * 1024,
    )


def whole(result: HttpResult) -> str:
    """The body of a whole answer. Raises `Unanswered`; a refusal is told in the server's own words, without their JSON."""
    if result.status not in result.question.statuses and not (result.failure or result.timed_out):
        said = said_error(_object(result.body.decode("utf-8", "replace")))
        if said and not said.startswith(NO_JSON):
            raise Unanswered(result.key, f"HTTP {result.status}: {' '.join(said.split())[:300]}")
    return result.text


def events(result: HttpResult) -> Iterator[Event]:
    """The server-sent events of a whole answer, each with its time; `[DONE]` and comments left out.

    Times are None when pieces are not known (curl) or their sizes do not add up to the body (something was masked).
    An event that is not a JSON object is given as `{"malformed": text}`. Raises `Unanswered` unless the answer is whole.
    """
    whole(result)
    ends = list(itertools.accumulate(chunk.size for chunk in result.chunks))
    timed = bool(ends) and ends[-1] == len(result.body)
    place = position = 0
    for block in _blocks(result.body):
        position += len(block)
        while timed and ends[place] < position:
            place += 1
        lines = (line[5:].removeprefix(b" ") for line in block.splitlines() if line.startswith(b"data:"))
        data = b"\n".join(lines).decode("utf-8", "replace")
        if data and data.strip() != "[DONE]":
            piece = place if timed else -1
            yield Event(_object(data), result.chunks[place].at if timed else None, piece)


def _blocks(body: bytes) -> Iterator[bytes]:
    """The body cut after each blank line; the blocks joined are the body again."""
    held: list[bytes] = []
    for line in body.splitlines(keepends=True):
        held.append(line)
        if not line.strip(b"\r\n"):
            yield b"".join(held)
            held = []
    if held:
        yield b"".join(held)


def _object(data: str) -> dict[str, Any]:
    try:
        parsed = bounded_json.loads(data)
    except ValueError:
        parsed = None
    return parsed if isinstance(parsed, dict) else {"malformed": data[:300]}


def unstreamed(result: HttpResult) -> dict[str, Any]:
    """The one JSON object of a whole answer that holds no event: not streamed, whatever was asked for.

    Raises `Unanswered` when it is none: something before the server may have answered in its place.
    """
    told = whole(result).strip()
    if not told:
        raise Unanswered(result.key, "the answer is empty")
    data = _object(told)
    if list(data) == ["malformed"]:
        raise Unanswered(result.key, f"the answer is no JSON object: {' '.join(told[:200].split())}")
    return data


def said_error(data: Mapping[str, Any]) -> str:
    """The error that an answer of status 200 speaks of, on one line; empty when it speaks of none.

    Servers write it as `{"error": {"message": …}}`, `{"error": "…"}`, `{"object": "error", "message": …}` or `{"detail": …}`.
    """
    return " ".join(_said(data)[:500].split())


def _said(data: Mapping[str, Any]) -> str:
    error = data.get("error")
    if isinstance(error, Mapping):
        return str(error.get("message") or error)
    if error:
        return str(error)
    if data.get("object") == "error":
        return str(data.get("message") or "an error without words")
    if "detail" in data and len(data) == 1:
        return str(data["detail"])
    if "malformed" in data and len(data) == 1:
        return f"{NO_JSON}: {str(data['malformed'])[:200]}"
    return ""


def delta(before: float | None, after: float | None) -> int | None:
    """How far a counter moved; None when either is unknown or it went backwards (the server was restarted)."""
    if before is None or after is None or after < before:
        return None
    return round(after - before)
