"""Prometheus text of SGLang, vLLM and llama.cpp: what the counters say of speculation.

A document that holds two scrapes, one after the other, is read as their difference; one scrape is the server's lifetime.
Scrapes in documents of their own: `evidence.scrapes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ddprobe.engines.sglang_claims import claims as sglang_claims
from ddprobe.evidence.document import Document, Found
from ddprobe.facts import Acceptance, Claim
from ddprobe.model import Cite, Fact, HttpRequest, HttpResult
from ddprobe.parsing import acceptance, prometheus
from ddprobe.parsing.acceptance import Canonical

_OURS = re.compile(r"^(sglang|vllm|llamacpp):[a-z_]+[ {]", re.MULTILINE)
ENGINES = {"sglang": "SGLang", "vllm": "vLLM", "llamacpp": "llama.cpp"}
METRICS = "metrics of "
LIFETIME, BETWEEN = "lifetime", "between two scrapes"
NO_SERIES = "no spec_decode series: vLLM exports them only when speculation is on"
NO_DRAFT_TOKENS = "spec_num_draft_tokens 0: SGLang sets it only when speculation is on"
NOTHING_DRAFTED = "no draft was made"
GENERATED = {
    "sglang": "sglang:generation_tokens_total",
    "vllm": "vllm:generation_tokens_total",
    "llamacpp": "llamacpp:tokens_predicted_total",
}
_MOST_POSITIONS = 256


@dataclass(slots=True)
class Scrape:
    """One reading of all counters: sums over label sets, and accepted tokens by position."""

    totals: dict[str, float] = field(default_factory=dict)
    positions: dict[int, float] = field(default_factory=dict)

    def get(self, name: str) -> float | None:
        """A counter by its name, with or without the suffix that newer clients add."""
        return self.totals.get(f"{name}_total", self.totals.get(name))


def recognise(document: Document, sample: str) -> Found | None:
    """The counters of one server; None when the document holds none of an engine's."""
    found = _OURS.search(sample)
    if found is None:
        return None
    whole = document.whole()
    if whole is None:
        return None
    engine = found.group(1)
    scrapes = list(_scrapes(whole))
    if not scrapes:
        return None
    window, scrape = _difference(scrapes)
    exported = f"{engine}:spec_decode_num_" in whole
    facts = (*_figures(document.key, engine, scrape, window, exported), *_gauges(document.key, engine, whole))
    said = "" if len(scrapes) == 1 else f", {len(scrapes)} scrapes"
    return Found(f"{METRICS}{ENGINES[engine]}{said}", facts)


def _scrapes(text: str) -> Iterator[Scrape]:
    """Readings in order: one ends where a series comes again."""
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    scrape = Scrape()
    for sample in prometheus.samples(text):
        series = (sample.name, sample.labels)
        if series in seen:
            yield scrape
            scrape, seen = Scrape(), set()
        seen.add(series)
        scrape.totals[sample.name] = scrape.totals.get(sample.name, 0.0) + sample.value
        position = sample.label("position")
        by_position = sample.name.removesuffix("_total").endswith("num_accepted_tokens_per_pos")
        if by_position and position.isascii() and position.isdigit() and len(position) < 4:
            place = int(position)
            scrape.positions[place] = scrape.positions.get(place, 0.0) + sample.value
    if seen:
        yield scrape


def _difference(scrapes: list[Scrape]) -> tuple[str, Scrape]:
    """Last minus first; the last as it is where a counter fell, that is where the server started anew."""
    first, last = scrapes[0], scrapes[-1]
    if first is last:
        return LIFETIME, last
    counters = [name for name in last.totals if name.endswith("_total") or "num_" in name]
    if any(last.totals[name] < first.totals.get(name, 0.0) for name in counters if counts(name)):
        return LIFETIME, last
    moved = {
        name: value - first.totals.get(name, 0.0) if counts(name) else value
        for name, value in last.totals.items()
    }
    positions = {place: value - first.positions.get(place, 0.0) for place, value in last.positions.items()}
    return BETWEEN, Scrape(moved, positions)


def counts(name: str) -> bool:
    """Whether the series only grows, by its name."""
    return name.endswith("_total") or ":spec_decode_num_" in name


def _figures(key: str, engine: str, scrape: Scrape, window: str, exported: bool = False) -> Iterator[Fact]:
    generated = scrape.totals.get(GENERATED[engine])
    if engine == "sglang":
        yield from _sglang(key, scrape, window, generated)
        return
    prefix = f"{engine}:spec_decode_num_"
    steps, drafted, accepted = (
        scrape.get(prefix + name) for name in ("drafts", "draft_tokens", "accepted_tokens")
    )
    if steps is None or accepted is None:
        # A series whose value is no number was exported all the same.
        if engine == "vllm" and generated and not exported:
            yield _nothing(key, window, NO_SERIES)
        return
    if not steps:
        if generated:
            yield _nothing(key, window, NOTHING_DRAFTED)
        return
    figure = acceptance.from_counts(
        round(steps), round(accepted), None if drafted is None else round(drafted)
    )
    place = f"{prefix}*"
    yield Acceptance(
        commit=figure.commit,
        rate=figure.rate,
        draft_tokens=figure.draft_tokens,
        definition=figure.definition,
        window=window,
        steps=figure.steps,
        origin="/metrics",
        per_position=_per_position(scrape, steps),
        run=key,
        source=(Cite(key, place),),
    )
    if figure.commit is not None:
        yield Claim(
            what="accept length",
            value=figure.commit,
            origin="/metrics spec_decode counters",
            samples=figure.steps,
            window=window,
            run=key,
            source=(Cite(key, place),),
        )


def _per_position(scrape: Scrape, steps: float) -> tuple[float, ...] | None:
    """Share of steps in which at least the first j drafts were right; None unless every position is there."""
    places = sorted(scrape.positions)
    if not places or places != list(range(len(places))) or len(places) > _MOST_POSITIONS:
        return None
    return tuple(scrape.positions[place] / steps for place in places)


def _sglang(key: str, scrape: Scrape, window: str, generated: float | None) -> Iterator[Fact]:
    """SGLang counts verify steps and output tokens, at the end of a request, and no accepted drafts."""
    steps = scrape.totals.get("sglang:spec_verify_calls_total")
    width = scrape.totals.get("sglang:spec_num_draft_tokens")
    if not steps:
        if width == 0 and generated:
            yield _nothing(key, window, NO_DRAFT_TOKENS)
        return
    # One token of each request comes from its prefill: without their number, no commit follows.
    prefills = scrape.totals.get("sglang:num_requests_total")
    drafts = round(width) - 1 if width and width > 1 else None
    figure = Canonical(definition=acceptance.OF_TOKENS, steps=round(steps))
    if generated is not None and prefills is not None:
        figure = acceptance.from_tokens(round(generated), round(steps), drafts, round(prefills))
    yield Acceptance(
        commit=figure.commit,
        rate=figure.rate,
        draft_tokens=drafts,
        definition=figure.definition,
        window=window,
        steps=figure.steps,
        origin="/metrics",
        run=key,
        source=(Cite(key, "sglang:spec_verify_calls_total"),),
    )


def _nothing(key: str, window: str, definition: str) -> Acceptance:
    """Tokens came out, and no step had a draft."""
    return Acceptance(
        definition=definition, window=window, steps=0, origin="/metrics", run=key, source=(Cite(key),)
    )


def _gauges(key: str, engine: str, whole: str) -> tuple[Claim, ...]:
    """SGLang's gauges: of the last log window, whoever it served."""
    if engine != "sglang":
        return ()
    asked = HttpRequest(key=key, method="GET", path="/metrics", base="")
    return sglang_claims({"/metrics": HttpResult(question=asked, status=200, body=whole.encode())})
