"""Secrets seen once: which are worth remembering, and every way in which one may be written."""

from __future__ import annotations

import base64
import dataclasses
import html
import json
import re
import shlex
import urllib.parse

from ddprobe.redact.spans import MASK, MIN_LEARNED, NO_VALUE, looks_random


def beginning(secret: bytes, data: bytes) -> int:
    """How many bytes at the end of the data are the beginning of the secret (six at least, or none)."""
    longest = min(len(secret) - 1, len(data))
    return next((n for n in range(longest, MIN_LEARNED - 1, -1) if data.endswith(secret[:n])), 0)


# Values that stand for no secret, or words that evidence is made of: masking them everywhere would blind us.
_TRIVIAL = frozenset(
    "redacted kept default disabled enabled unknown required optional string number boolean object random "
    "secret password passwd authorization bearer apikey api-key api_key token tokens changeme server client "
    "localhost sglang sgl-kernel vllm llama llamacpp llama.cpp llama-server python python3 deepseek kimi qwen qwen3 "
    "model models config drafter target triton flashinfer pytorch cuda nvidia docker container running "
    "speculative dflash eagle eagle3 ngram standalone bfloat16 float16 float32 sliding_attention "
    "full_attention localhost127 dummy-key no-key-required placeholder".split()
)


def is_learnable(value: bytes) -> bool:
    if not MIN_LEARNED <= len(value) <= 4096 or value.lower() in NO_VALUE:
        return False
    text = value.decode("utf-8", "replace")
    number = text.replace(".", "").replace("-", "").replace(":", "").replace("_", "")
    return (
        text.lower() not in _TRIVIAL
        and not (number.isdigit() and len(number) < 16)
        and len(set(text)) > 2
        and MASK not in value
        and not _is_path(text)
    )


def _is_path(text: str) -> bool:
    """Whether it names a file, rather than being base64 that begins with a slash."""
    first = text[1:].partition("/")[0]
    return text.startswith(("./", "~/")) or (
        text.startswith("/") and not (len(first) >= 16 and looks_random(first.encode("utf-8", "replace")))
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """One way a secret may be written, and how to find it."""

    written: bytes
    pattern: re.Pattern[bytes]


def forms(value: bytes) -> tuple[Form, ...]:
    """Every way in which this secret may be written."""
    text = value.decode("utf-8", "surrogateescape")
    written = {value, repr(value)[2:-1].encode()}
    quoted = urllib.parse.quote(value, safe="").encode()
    written |= {
        urllib.parse.quote(quoted, safe="").encode(),
        html.escape(text).encode("utf-8", "surrogateescape"),
    }
    written |= {quoted, urllib.parse.quote_plus(value).encode(), urllib.parse.quote(value).encode()}
    written.add(re.sub(rb"%[0-9A-F]{2}", lambda found: found.group().lower(), quoted))
    if "'" in text or "\\" in text:
        written |= {form[1:-1].encode("utf-8", "surrogateescape") for form in (repr(text), shlex.quote(text))}
    written.add(json.dumps(text)[1:-1].replace("/", "\\/").encode())
    escaped = text
    for _ in range(2):
        for ascii_only in (True, False):
            written.add(json.dumps(escaped, ensure_ascii=ascii_only)[1:-1].encode("utf-8", "surrogateescape"))
        escaped = json.dumps(escaped, ensure_ascii=False)[1:-1]
    if len(value) >= 8:
        written |= {value.hex().encode(), value.hex().upper().encode()}
    for shift, skipped in ((0, 0), (1, 2), (2, 3)):
        # Within a longer text (user:password) its base64 depends on where it starts, modulo three bytes.
        code = base64.b64encode(b"\0" * shift + value)
        spill = (shift + len(value)) % 3
        code = code[skipped : len(code) - ((5 - spill) if spill else 0)] if spill else code[skipped:]
        if len(code) >= 8:
            written |= {code, code.replace(b"+", b"-").replace(b"/", b"_")}
    # A short or wordy secret is masked as a whole word only: the key "sk-test" must spare "task-testing".
    loose = len(value) >= 12 and looks_random(value)
    return tuple(
        Form(form, re.compile(re.escape(form) if loose or form != value else _as_word(form)))
        for form in sorted(written, key=len, reverse=True)
    )


def _as_word(form: bytes) -> bytes:
    literal = re.escape(form)
    return (
        literal + rb"(?:(?<![A-Za-z0-9_-]%s)|(?<=\\[nrt]%s)|(?<=[0-9]m%s)|(?<=%%[0-9A-Fa-f][0-9A-Fa-f]%s)"
        rb"|(?<=\\u[0-9A-Fa-f]{4}%s))(?![A-Za-z0-9])" % ((literal,) * 5)
    )
