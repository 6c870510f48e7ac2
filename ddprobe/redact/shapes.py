"""Secrets that give themselves away: keys by their prefix, tokens, private keys, passwords in URLs."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator

from ddprobe.redact.spans import MASK, Span, looks_random


def _shape(prefix: str, rest: str) -> tuple[bytes, re.Pattern[bytes], re.Pattern[bytes]]:
    """A literal beginning and what follows: how to find it, and how its cut beginning looks at the very end."""
    literal = re.escape(prefix)
    edge = (
        rf"(?:(?<![A-Za-z0-9_-]{literal})|(?<=\\[nrt]{literal})|(?<=[0-9]m{literal})"
        rf"|(?<=%[0-9A-Fa-f][0-9A-Fa-f]{literal})|(?<=\\u[0-9A-Fa-f]{{4}}{literal}))"
    )
    whole = re.compile((literal + edge + rest).encode())
    return prefix.encode(), whole, re.compile((literal + edge + r"[A-Za-z0-9_.-]{1,600}\Z").encode())


_SHAPES = (
    _shape("sk-", r"[A-Za-z0-9_-]{16,}"),
    _shape("hf_", r"[A-Za-z0-9]{16,}"),
    _shape("api_org_", r"[A-Za-z0-9]{16,}"),
    *(_shape(f"gh{kind}_", r"[A-Za-z0-9]{20,}") for kind in "pousr"),
    _shape("github_pat_", r"[A-Za-z0-9_]{20,}"),
    _shape("glpat-", r"[A-Za-z0-9_-]{16,}"),
    _shape("AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _shape("ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    *(_shape(f"xox{kind}-", r"[A-Za-z0-9-]{10,}") for kind in "abeoprs"),
    _shape("xapp-", r"[A-Za-z0-9-]{16,}"),
    _shape("npm_", r"[A-Za-z0-9]{30,}"),
    _shape("pypi-", r"[A-Za-z0-9_-]{40,}"),
    _shape("AIza", r"[A-Za-z0-9_-]{35}"),
    _shape("nvapi-", r"[A-Za-z0-9_-]{20,}"),
    _shape("gsk_", r"[A-Za-z0-9]{30,}"),
    _shape("dckr_pat_", r"[A-Za-z0-9_-]{20,}"),
    *(_shape(f"{kind}_live_", r"[A-Za-z0-9]{16,}") for kind in ("sk", "rk")),
    *(
        _shape(prefix, r"[A-Za-z0-9_-]{20,}")
        for prefix in ("glrt-", "pplx-", "xai-", "csk-", "tskey-", "ya29.", "hvs.")
    ),
    *(
        _shape(prefix, r"[A-Za-z0-9_]{24,}")
        for prefix in ("r8_", "lsv2_", "wandb_v1_", "glsa_", "tgp_v1_", "dop_v1_")
    ),
    _shape("SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _shape("ms-", r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    _shape("eyJ", r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
)
_BEARER = re.compile(rb"[Bb]earer(?:[ \t]{1,4}|%20|\+)([A-Za-z0-9._~+/=-]{6,})")
_GREPPED = rb"(?:[^\s:]{1,300}[:-]\d{1,9}[:-])?"
_PEM_LINE = rb"(?:(?:Proc-Type|DEK-Info|Version|Comment): ?[^\s\\]{1,200}|[A-Za-z0-9+/=]+(?=\s|\\[nrt]|-----END|[\"'\0]|\Z))"
_PEM = re.compile(
    rb"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)"
    rb"(?:[ \t]*(?:[\r\n]|\\[nr])+" + _GREPPED + rb"[ \t]*" + _PEM_LINE + rb"?|[ \t]+[A-Za-z0-9+/=]{24,})*"
    rb"(?:" + _GREPPED + rb"[ \t]*-----END [A-Z0-9 ]{0,40}-----|-{1,5}(?:END[A-Z ]{0,40})?-{0,4}\Z)?"
)


def by_shape(data: bytes, source: bool, cut: bool) -> Iterator[Span]:
    """Keys and certificates that give themselves away, in order."""
    spans: list[Span] = []
    for prefix, whole, begun in _SHAPES:
        if prefix not in data:
            continue
        found = [match.span() for match in whole.finditer(data) if looks_random(match.group())]
        if cut and (tail := begun.search(data, max(0, len(data) - 700))):
            found.append(tail.span())
        spans += [Span(start, end, MASK, (data[start:end],)) for start, end in found]
    if b"earer" in data:
        spans += [
            Span(*match.span(1), MASK, (match.group(1),) if looks_random(match.group(1)) else ())
            for match in _BEARER.finditer(data)
            if not (source or match.group(1).isalpha())
            or looks_random(match.group(1))
            or (cut and match.end() == len(data))
        ]
    if b"PRIVATE KEY" in data:
        spans += [
            Span(*match.span())
            for match in _PEM.finditer(data)
            if match.end() - match.end(1) > 8 or match.end() == len(data)
        ]
    return iter(sorted(spans, key=lambda span: (span.start, -span.end)))


_USERINFO = re.compile(rb"://[^\s/@:\"'<>\0\\]{0,128}:([^\s/\"'<>\0\\]{1,4096})@")
_USERINFO_CUT = re.compile(rb"://[^\s/@:\"'<>\0\\]{0,128}:(?!\d{0,5}\Z)([^\s/@\"'<>\0\\]{1,4096})\Z")
_SIGNED = re.compile(
    rb"[?&](?:token|sig|signature|x-amz-[a-z-]{4,24}|code|key)=([A-Za-z0-9%._~+/=-]{12,})", re.IGNORECASE
)


def in_urls(data: bytes, source: bool, cut: bool) -> Iterator[Span]:
    """Passwords and signatures in URLs."""
    spans: list[Span] = []
    if b"://" in data:
        spans = [
            Span(*match.span(1), MASK, (match.group(1), urllib.parse.unquote_to_bytes(match.group(1))))
            for match in _USERINFO.finditer(data)
            if not match.group(1).startswith(MASK) and (looks_random(match.group(1)) or not source)
        ]
        if cut and (begun := _USERINFO_CUT.search(data, max(0, len(data) - 5000))):
            spans.append(Span(*begun.span(1)))
        spans += [
            Span(*match.span(1), MASK, (match.group(1),))
            for match in _SIGNED.finditer(data)
            if looks_random(match.group(1))
        ]
    return iter(sorted(spans, key=lambda span: span.start))
