"""SGLang generates: `/generate` with token ids, streamed, one chunk per verify step; else `/v1/completions`.

What it says of itself is in `/server_info`; what it says of a request's speculation comes with the request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ddprobe.engines import sglang_answers
from ddprobe.engines.base import (
    Answers,
    document,
    items,
    mapping,
    number,
    text,
    total,
    whole_number,
)
from ddprobe.engines.generation import (
    Counters,
    Generated,
    Generation,
    Ids,
    Prompt,
    Rendering,
    Serving,
    chat,
    post,
    said_error,
)
from ddprobe.engines.sglang_claims import claims
from ddprobe.errors import Unanswered
from ddprobe.facts import Claim, ServerArgs
from ddprobe.model import HttpRequest, HttpResult
from ddprobe.parsing import prometheus

NATIVE = "/generate"
COMPLETIONS = "/v1/completions"
_TOKENIZE_TIMEOUT = 60.0

_BY_STEPS = frozenset({"EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "FROZEN_KV_MTP"})
"""Methods that draft `speculative_num_steps` deep, in a chain or a tree."""
_BY_BLOCK = frozenset({"DFLASH", "DSPARK", "NGRAM", "UNO"})
"""Methods whose verify width is 1 + K: `speculative_num_draft_tokens`."""


class SGLangGeneration(Generation):
    """SGLang's way, releases 0.5.4 to 0.5.23."""

    ways = (NATIVE, COMPLETIONS)
    paths = ("/server_info", "/model_info", "/v1/models", "/v1/loads", "/metrics")

    def serving(self, answers: Answers, arguments: Sequence[ServerArgs]) -> Serving:
        info = mapping(document(answers, "/server_info", "/get_server_info"))
        model = mapping(document(answers, "/model_info", "/get_model_info"))
        served = items(mapping(document(answers, "/v1/models")).get("data"))
        told = mapping(document(answers, "/v1/loads"))
        loads = items(told.get("loads"))
        counted = _metrics(answers)
        args = _arguments(info, arguments)
        room = _least(info, loads)
        usage = max((used for load in loads if (used := number(load.get("token_usage"))) is not None), default=None)  # fmt: skip
        radix_off = args.get("disable_radix_cache")
        method = _method(args)
        return Serving(
            speculating=None if method is None else bool(method),
            method=method or "",
            drafter=_drafter(method or "", args),
            draft_tokens=_draft_tokens(method or "", args),
            tree=bool(method) and _is_tree(method or "", args),
            # Prompts must stay below max_req_input_len; with their output they may go 4 tokens beyond it, not more.
            context_limit=whole_number(info.get("max_req_input_len"))
            or whole_number(served[0].get("max_model_len") if served else None)
            or whole_number(args.get("context_length")),
            kv_tokens=room,
            kv_used=round(usage * room)
            if usage is not None and room is not None and 0 <= usage <= 1
            else None,
            running=_first(total(loads, "num_running_reqs"), counted.get("sglang:num_running_reqs")),
            waiting=_first(total(loads, "num_waiting_reqs"), counted.get("sglang:num_queue_reqs")),
            model=text(served[0].get("id") if served else None) or text(model.get("served_model_name")),
            version=text(info.get("version")) or text(told.get("version")) or _version(arguments),
            prefix_cache=None if radix_off is None else not radix_off,
            stream_interval=whole_number(args.get("stream_interval")),
            decode_ms=_decode_ms(items(info.get("internal_states"))),
            limits=tuple(_limits(args)),
        )

    def tokenize(self, key: str, base: str, text: str, model: str = "") -> HttpRequest:
        body = {"prompt": text, "add_special_tokens": False} | ({"model": model} if model else {})
        return post(key, base, self.tokenize_path, body, _TOKENIZE_TIMEOUT, stream=False)

    def token_ids(self, result: HttpResult) -> Ids:
        found = sglang_answers.json_object(result)
        ids = sglang_answers.token_ids(found.get("tokens"))
        if ids is None:
            raise Unanswered(result.key, said_error(found) or "the answer holds no token ids")
        return ids

    def render(
        self, key: str, base: str, message: str, *, model: str = "", thinking: bool | None = None
    ) -> Rendering:
        # Without `add_generation_prompt`, which only later releases know, it renders as for a chat completion.
        body = chat(message, thinking) | ({"model": model} if model else {})
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
        body = _completion(prompt, max_tokens, model) if way == COMPLETIONS else _native(prompt, max_tokens)
        return post(key, base, way, body, timeout, stream=True)

    def read(
        self, result: HttpResult, serving: Serving, before: Counters | None, after: Counters | None
    ) -> Generated:
        return sglang_answers.read(result, serving)

    def claims(self, answers: Answers) -> tuple[Claim, ...]:
        return claims(answers)


def _native(prompt: Prompt, max_tokens: int) -> dict[str, Any]:
    said: dict[str, Any] = {"input_ids": list(prompt.ids)} if prompt.ids else {"text": prompt.text}
    sampling = {"temperature": 0, "max_new_tokens": max_tokens, "ignore_eos": True}
    return {**said, "sampling_params": sampling, "stream": True}


def _completion(prompt: Prompt, max_tokens: int, model: str) -> dict[str, Any]:
    """Fields that a release does not know, it ignores."""
    return {
        "model": model or "default",
        "prompt": list(prompt.ids) if prompt.ids else prompt.text,
        "max_tokens": max_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "return_spec_tokens_details": True,
        "return_token_ids": True,
    }


# --- what it says of itself --------------------------------------------------------------------------------


def _arguments(info: dict[str, Any], arguments: Sequence[ServerArgs]) -> dict[str, Any]:
    """Its arguments: what it resolved counts before what was typed."""
    known: dict[str, Any] = {}
    for given in sorted(arguments, key=lambda given: given.resolved):
        known.update(given.values)
    return known | info


def _method(args: dict[str, Any]) -> str | None:
    """The algorithm's name; empty when the server says that it has none, None when it does not say."""
    if "speculative_algorithm" not in args:
        return None
    name = text(args["speculative_algorithm"]).upper()
    return "" if name == "NONE" else name


def _drafter(method: str, args: dict[str, Any]) -> str:
    if any(word in method for word in ("NGRAM", "LOOKUP", "SUFFIX")):
        return "lookup"
    known = method in _BY_STEPS | _BY_BLOCK
    return "model" if known or (method and args.get("speculative_draft_model_path")) else ""


def _draft_tokens(method: str, args: dict[str, Any]) -> int | None:
    """K: the most drafts that one step can accept. A tree is wider than that."""
    if args.get("speculative_adaptive"):
        return None
    steps = whole_number(args.get("speculative_num_steps"))
    width = whole_number(args.get("speculative_num_draft_tokens"))
    block = whole_number(args.get("speculative_dflash_block_size"))
    gamma = whole_number(args.get("speculative_dspark_block_size"))
    if method in _BY_STEPS or (method == "UNO" and _branches(args)):
        return steps if steps or width is None or _branches(args) else width - 1
    budget = _tree_budget(args)
    if budget is not None and width is not None and width > budget:
        # The verify width is that of the tree; how deep it goes, the block says.
        return block - 1 if block else None
    if method == "DSPARK" and width is None:
        return gamma
    if method in _BY_BLOCK or "DDTREE" in method:
        width = width or block
        return width - 1 if width else None
    return width - 1 if width and method and not _branches(args) else None


def _is_tree(method: str, args: dict[str, Any]) -> bool:
    return _branches(args) or "TREE" in method or _tree_budget(args) is not None


def _branches(args: dict[str, Any]) -> bool:
    """True for more than one candidate per node (for NGRAM the server puts its breadth there)."""
    return (whole_number(args.get("speculative_eagle_topk")) or 1) > 1


def _tree_budget(args: dict[str, Any]) -> int | None:
    """The nodes of a DDTree, which no release has and forks name as they like."""
    named = (
        whole_number(value) for name, value in args.items() if "ddtree" in name.lower() and "budget" in name.lower()
    )  # fmt: skip
    return next((budget for budget in named if budget), None)


def _least(info: dict[str, Any], loads: list[dict[str, Any]]) -> int | None:
    """A request lives on one rank: the smallest cache is the room there is."""
    said = [whole_number(info.get("max_total_num_tokens"))]
    said += [whole_number(load.get("max_total_num_tokens")) for load in loads]
    return min((tokens for tokens in said if tokens), default=None)


def _metrics(answers: Answers) -> dict[str, float]:
    answer = answers.get("/metrics")
    return prometheus.totals(answer.text) if answer is not None and answer.whole else {}


def _first(known: int | None, otherwise: float | None) -> int | None:
    return known if known is not None or otherwise is None else round(otherwise)


def _version(arguments: Sequence[ServerArgs]) -> str:
    return next((given.version for given in arguments if given.version), "")


def _decode_ms(ranks: list[dict[str, Any]]) -> float | None:
    throughput = number(ranks[0].get("last_gen_throughput")) if ranks else None
    return 1000 / throughput if throughput else None


def _limits(args: dict[str, Any]) -> Iterator[tuple[int, str]]:
    named = {
        "chunked_prefill_size": "chunked prefill",
        "speculative_draft_window_size": "draft window",
        "speculative_dflash_draft_window_size": "draft window",
    }
    for name, words in named.items():
        tokens = whole_number(args.get(name))
        if tokens is not None and tokens > 0:
            yield tokens, f"{words} (--{name.replace('_', '-')})"
