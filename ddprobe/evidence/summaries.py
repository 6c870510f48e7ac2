"""Numbers under a name that says what they are: `mean_acceptance_length`, `spec_off_tok_s`; and a server's own word."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ddprobe.engines.base import items, mapping, number, whole_number
from ddprobe.engines.sglang_claims import claims as sglang_claims
from ddprobe.facts import Acceptance, Claim, PlainSpeed
from ddprobe.model import Cite, Fact, HttpRequest, HttpResult
from ddprobe.parsing import acceptance

MOST_CLAIMS = 64
_LENGTH = re.compile(r"accept(ed|ance)?_?len(gth)?|commit_len(gth)?")
_RATE = re.compile(r"accept(ed|ance)?_?(rate|ratio)")
_DEPTH = re.compile(r"accept(ed|ance)?_depth")
_PERCENT = re.compile(r"percent|pct|%")
LONGEST_BLOCK = 16
"""Tokens that a step of the drafters known may commit: what is called a rate and lies above is in percent, and no length."""
_PLAIN = re.compile(r"(spec_off|no_spec|nospec|without_spec|plain|baseline)\w*(tok_s|tokens_per_s|tps)")


def summary(key: str, data: Any) -> Iterator[Fact]:
    """Numbers under a name that says what they are."""
    made = 0
    for place, name, value in _leaves(data, "$", "", 0):
        fact = _speed(key, place, name, value) or _claim(key, place, name, value)
        if fact is not None:
            yield fact
            made += 1
        if made >= MOST_CLAIMS:
            return


def _leaves(value: Any, place: str, name: str, depth: int) -> Iterator[tuple[str, str, float]]:
    """(place, name, number) of every number; an item of a list has the list's name."""
    if depth > 6:
        return
    if isinstance(value, dict):
        for inner, held in value.items():
            known = f"{name}.{inner}" if _PLAIN.search(name) else str(inner)
            yield from _leaves(held, f"{place}.{inner}"[:200], known, depth + 1)
    elif isinstance(value, list):
        for index, held in enumerate(value[:1000]):
            yield from _leaves(held, f"{place}[{index}]", name, depth + 1)
    elif (found := number(value)) is not None:
        yield place, name, found


def _speed(key: str, place: str, name: str, value: float) -> PlainSpeed | None:
    field, _, context = name.rpartition(".")
    if not _PLAIN.search(field or name) or value <= 0:
        return None
    if field and (not context.isascii() or not context.isdigit() or len(context) > 9):
        return None
    tokens = int(context) if field else 0
    return PlainSpeed(context_tokens=tokens, tok_s=value, source=(Cite(key, place),))


def _claim(key: str, place: str, name: str, value: float) -> Claim | None:
    lower = name.lower()
    if "threshold" in lower or "simulat" in lower:
        return None
    what = (
        "accepted depth"
        if _DEPTH.search(lower)
        else "accept length"
        if _LENGTH.search(lower)
        else "accept rate"
        if _RATE.search(lower)
        else ""
    )
    # /server_info's own are read by the engine's words below, a saved benchmark's as such.
    if not what or lower.startswith(("avg_spec_", "spec_decode_")):
        return None
    if what == "accept rate" and 1 < value <= 100 and (value > LONGEST_BLOCK or _PERCENT.search(lower)):
        value /= 100
    return Claim(what=what, value=value, origin=name[:80], run=key, source=(Cite(key, place),))


# --- what a server says of itself --------------------------------------------------------------------------


def server(key: str, data: Any) -> Iterator[Fact]:
    """SGLang's /server_info and /v1/loads, wherever they stand in the document."""
    for told in (mapping(data), mapping(mapping(data).get("json"))):
        path = (
            "/server_info" if items(told.get("internal_states")) else "/v1/loads" if "loads" in told else ""
        )
        if not path:
            continue
        asked = HttpRequest(key=key, method="GET", path=path, base="")
        answer = HttpResult(question=asked, status=200, body=json.dumps(told).encode())
        drafts = whole_number(told.get("speculative_num_draft_tokens"))
        for claim in sglang_claims({path: answer}):
            yield claim
            if claim.what == "accept length":
                figure = acceptance.from_length(claim.value, drafts - 1 if drafts and drafts > 1 else None)
                yield Acceptance(
                    commit=figure.commit,
                    rate=figure.rate,
                    draft_tokens=figure.draft_tokens,
                    definition="(correct drafts + steps) / steps",
                    window=claim.window,
                    origin=claim.origin,
                    run=key,
                    source=claim.source,
                )
        return
