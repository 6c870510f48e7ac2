"""Decode logs: what SGLang, vLLM, llama.cpp and DDTree forks log of their speculation, whole logs in one pass.

One log may hold several servers, one after the other: lines whose accept rates follow different formulas, or the same
with another K, are never thrown together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ddprobe.evidence import _decode_bins, _ranks, _spec_lines, _starts
from ddprobe.evidence.document import Document, Found
from ddprobe.facts import Acceptance, Claim, DecodeSeries
from ddprobe.model import Cite, Fact
from ddprobe.parsing import acceptance, acceptance_lines, decode_log, log_lines

ORIGIN = "decode log"
WHOLE = "the whole log"
LIFETIME_MEAN = "(correct drafts + steps) / steps"
MOST_STARTS = 16
"""Starts of one log that are told apart; those behind them count with the last, which then is of nobody knows which."""
_JSON = re.compile(r"\s*(?:\{|\[\s*[\[{\"\]])")
_START = datetime(1970, 1, 1)
_NO_YEAR = 2024
"""A leap year, for lines that name none: only differences are taken."""


@dataclass(slots=True)
class _Span:
    """The first and the last line that matters."""

    first: int = 0
    last: int = 0
    first_line: str = ""
    last_line: str = ""
    _last: tuple[str, int, int] = ("", 0, 0)

    def take(self, block: str, before: int, marks: Sequence[str]) -> None:
        """Looks where in a block the marks stand that were read there; `before` it are so many lines."""
        found = [at for mark in marks if (at := block.find(mark)) >= 0]
        if not found:
            return
        last = max(block.rfind(mark) for mark in marks)
        if not self.first:
            first = min(found)
            self.first = before + block.count("\n", 0, first) + 1
            self.first_line = _line_at(block, first)
        # Read later, where it turns out to be the last one.
        self._last = block, last, before

    def end(self) -> None:
        """No more blocks come."""
        block, last, before = self._last
        self.last = before + block.count("\n", 0, last) + 1
        self.last_line = _line_at(block, last)

    @property
    def seconds(self) -> float | None:
        start, end = _seconds(self.first_line), _seconds(self.last_line)
        if self.first == self.last:
            return None
        return end - start if start is not None and end is not None and end >= start else None


@dataclass(slots=True)
class _Section:
    """What was read of one start of a server, or of several with the same arguments."""

    tally: _decode_bins.Tally = field(default_factory=_decode_bins.Tally)
    vllm: _spec_lines.Vllm = field(default_factory=_spec_lines.Vllm)
    llama: _spec_lines.LlamaCpp = field(default_factory=_spec_lines.LlamaCpp)
    trees: _spec_lines.Trees = field(default_factory=_spec_lines.Trees)
    lifetime: _spec_lines.Lifetime = field(default_factory=_spec_lines.Lifetime)
    ranks: _ranks.Ranks = field(default_factory=_ranks.Ranks)
    span: _Span = field(default_factory=_Span)
    begin: int = 0
    """The line of the start; 0 where it is the first of the log."""
    sglang: int = 0

    def block(self, block: str, before: int) -> tuple[int, bool]:
        """Takes whole lines, `before` which stand so many: how many they are, and whether all are of decoding."""
        size = block.count("\n") + (not block.endswith("\n"))
        lines, prefills = self.tally.block(block)
        self.sglang += lines
        if lines:
            self.ranks.block(block)
        marks = [decode_log.MARK] if lines else []
        settled = lines + prefills == size
        if not settled:
            for reader in (self.vllm, self.llama, self.trees, self.lifetime):
                marks += reader.block(block)
        self.span.take(block, before, marks)
        return size, settled

    def facts(self, key: str, run: str) -> list[Fact]:
        """What it comes to; to be asked once, at the end."""
        self.span.end()
        self.llama.close(None)
        span = self.span
        at = f"line {span.first}" if span.first == span.last else f"lines {span.first}-{span.last}"
        shared = {"source": (Cite(key, at),), "run": run}
        facts: list[Fact] = []
        facts += _of_sglang(self.tally, span.seconds, self.ranks.told(), shared)
        facts += _of_vllm(self.vllm, span.seconds, shared)
        facts += _of_llamacpp(self.llama, span.seconds, shared)
        facts += _of_trees(self.trees, shared)
        facts += _of_lifetime(self.lifetime, facts, shared)
        return facts

    def says(self) -> bool:
        """Whether there is anything in it."""
        return bool(self.span.first)


def recognise(document: Document, sample: str, *, apart: bool = True) -> Found | None:
    """What a log says of decoding; None when it says nothing.

    `apart`: where the server was started anew with other arguments, another series of figures begins.
    """
    if _JSON.match(sample):
        return None
    sections, starts, before = [_Section()], _starts.Starts(), 0
    for raw in document.blocks():
        block = decode_log.uncoloured(raw)
        for anew, piece in starts.pieces(block) if apart else ((False, block),):
            if anew and sections[-1].says() and len(sections) < MOST_STARTS:
                sections.append(_Section(begin=before + 1))
            size, settled = sections[-1].block(piece, before)
            before += size
            if settled and piece is block:
                document.nothing_else(size)
    telling = [section for section in sections if section.says()]
    facts: list[Fact] = []
    for section in telling:
        run = f"{document.key}, start at line {section.begin}" if section.begin else document.key
        facts += section.facts(document.key, run)
    if not facts:
        return None
    kinds: dict[str, int] = {}
    for each in sections:
        total = each.vllm.windows.total.lines
        for name, lines in (
            ("SGLang decode log", each.sglang),
            ("vLLM SpecDecoding metrics", total),
            ("vLLM throughput log", each.vllm.generating if not total else 0),
            ("llama.cpp request timings", each.llama.windows.total.lines + each.llama.off_lines),
            (_spec_lines.TREES, each.trees.lines),
            ("SGLang lifetime mean", 0 if each.sglang else each.lifetime.lines),
        ):
            kinds[name] = kinds.get(name, 0) + lines
    what = " + ".join(f"{name}, {lines:,} line{'s' * (lines != 1)}" for name, lines in kinds.items() if lines)
    several = f", of {len(telling)} starts with other arguments" if len(telling) > 1 else ""
    return Found(what + several, tuple(facts))


def _of_sglang(
    tally: _decode_bins.Tally,
    seconds: float | None,
    ranks: tuple[tuple[str, int, float], ...],
    shared: dict[str, Any],
) -> Iterator[Fact]:
    servers = dict(tally.servers())
    off = servers.pop(_decode_bins.OFF, {})
    unreadable = servers.pop(_decode_bins.UNREADABLE, {})
    off_lines, unreadable_lines = (sum(sums.lines for sums in each.values()) for each in (off, unreadable))
    off = off | unreadable
    eras = list(servers.items())
    if not eras:
        if off:
            bins = _decode_bins.bins(off, None)
            yield DecodeSeries(
                engine="sglang",
                lines=off_lines + unreadable_lines,
                off_lines=off_lines,
                unreadable_lines=unreadable_lines,
                seconds=seconds,
                bins=bins,
                trend=_decode_bins.trend(bins),
                **shared,
            )
        return
    trusted = _rates_follow_formulas(tally, servers)
    most = max(eras, key=lambda era: sum(sums.lines for sums in era[1].values()))[0]
    for number, sums in eras:
        # Lines without acceptance stand with the server that most lines are of.
        beside = off if number == most else {}
        formula = tally.eras[number].formula if trusted else None
        commit, stated = _decode_bins.pooled(sums)
        bins = _decode_bins.bins(sums | beside, formula)
        run = shared["run"] if len(eras) == 1 else f"{shared['run']}, server {number + 1} of {len(eras)}"
        named = {**shared, "run": run}
        yield DecodeSeries(
            engine="sglang",
            lines=sum(each.lines for each in (sums | beside).values()),
            off_lines=off_lines if beside else 0,
            unreadable_lines=unreadable_lines if beside else 0,
            seconds=seconds if len(eras) == 1 else None,
            bins=bins,
            rate_definition=formula.name if formula else "",
            draft_tokens=formula.k if formula else None,
            trend=_decode_bins.trend(_decode_bins.bins(sums, formula)),
            ranks=ranks if len(eras) == 1 else (),
            **named,
        )
        yield Acceptance(
            commit=commit,
            rate=_decode_bins.correct_rate(commit, stated, formula),
            draft_tokens=formula.k if formula else None,
            definition="(correct + steps) / steps, the mean of its lines, each by its running requests",
            window=WHOLE,
            origin=ORIGIN,
            **named,
        )


def _rates_follow_formulas(
    tally: _decode_bins.Tally, servers: Mapping[int, Mapping[_decode_bins.Key, _decode_bins.Sums]]
) -> bool:
    """Whether more lines fit a formula than fit none: some of any two numbers fit one by chance."""
    fitting = odd = 0
    for number, sums in servers.items():
        lines = sum(each.lines for each in sums.values())
        known = tally.eras[number].fitting
        fitting += lines if known else 0
        odd += lines if known is not None and not known else 0
    return fitting > odd


def _of_vllm(vllm: _spec_lines.Vllm, seconds: float | None, shared: dict[str, Any]) -> Iterator[Fact]:
    total = vllm.windows.total
    if not total.lines and not vllm.generating:
        return
    yield DecodeSeries(
        engine="vllm",
        lines=max(vllm.generating, total.lines),
        off_lines=vllm.off_lines,
        seconds=seconds,
        draft_tokens=len(total.positions) or None,
        trend=_spread(vllm.windows, "log windows"),
        **shared,
    )
    yield from vllm.windows.acceptances("one log window", origin="SpecDecoding metrics line", **shared)


def _of_llamacpp(
    llama: _spec_lines.LlamaCpp, seconds: float | None, shared: dict[str, Any]
) -> Iterator[Fact]:
    total = llama.windows.total
    if not total.lines and not llama.off_lines:
        return
    bins = llama.series()
    origin = "draft acceptance line"
    yield DecodeSeries(
        engine="llamacpp",
        lines=total.lines + llama.off_lines,
        off_lines=llama.off_lines + llama.windows.undrafted,
        seconds=seconds,
        bins=bins,
        draft_tokens=len(total.positions) or None,
        trend=_decode_bins.trend(bins) or _spread(llama.windows, "requests"),
        **shared,
    )
    yield from llama.windows.acceptances("one request", origin=origin, **shared)
    if len(llama.bins) > 1:
        for (running, bits), part in sorted(llama.bins.items()):
            figure = part.acceptance(
                window=f"requests that ended at {1 << (bits - 1)} to {(1 << bits) - 1} tokens, {_running(running)}",
                origin=origin,
                **shared,
            )
            yield replace(figure, context_tokens=round(part.tokens / part.lines))


def _of_trees(trees: _spec_lines.Trees, shared: dict[str, Any]) -> Iterator[Fact]:
    if trees.steps:
        yield Acceptance(
            commit=trees.committed / trees.steps,
            definition="committed tokens / steps, as listed",
            window=WHOLE,
            steps=trees.steps,
            origin="commit_lens lines",
            **shared,
        )
    if trees.commits:
        stated = [("commit length", "avg_commit_len", trees.commit / trees.commits)]
        if trees.pairs:
            # Of the lines that state both: only these can be held against each other.
            stated = [
                ("commit length", "avg_commit_len", trees.pair_commit / trees.pairs),
                ("accepted depth", "avg_accepted_depth", trees.pair_depth / trees.pairs),
            ]
        for what, name, value in stated:
            yield Claim(what=what, value=round(value, 4), origin=f"{ORIGIN} {name}", window=WHOLE, **shared)


def _of_lifetime(
    lifetime: _spec_lines.Lifetime, facts: Sequence[Fact], shared: dict[str, Any]
) -> Iterator[Fact]:
    if lifetime.commit is None:
        return
    drafts = {fact.draft_tokens for fact in facts if isinstance(fact, DecodeSeries)}
    figure = acceptance.from_length(lifetime.commit, drafts.pop() if len(drafts) == 1 else None)
    yield Acceptance(
        commit=figure.commit,
        rate=figure.rate,
        draft_tokens=figure.draft_tokens,
        definition=LIFETIME_MEAN,
        window="lifetime",
        origin="avg_spec_accept_length line",
        **shared,
    )


def _spread(windows: _spec_lines.Windows, what: str) -> str:
    total = windows.total
    if total.lines < 2 or total.high - total.low <= _spec_lines.APART:
        return ""
    return f"commit between {total.low:.2f} and {total.high:.2f} in {total.lines} {what}; their contexts are not logged"


def _running(bits: int) -> str:
    low = 1 << (bits - 1)
    return "1 running" if low == 1 else f"{low} to {2 * low - 1} running"


def _line_at(block: str, at: int) -> str:
    end = block.find("\n", at)
    return block[max(block.rfind("\n", 0, at) + 1, at - 400) : end if end >= 0 else len(block)][:400]


def _seconds(line: str) -> float | None:
    since_start = acceptance_lines.llamacpp_seconds(line)
    if since_start is not None:
        return since_start
    when = log_lines.moment(log_lines.unwrapped(line), _NO_YEAR)
    return (when - _START).total_seconds() if when is not None else None
