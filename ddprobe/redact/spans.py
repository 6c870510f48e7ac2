"""What a scan finds, and the words of redaction that every scan uses."""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import json
import re
import shlex

MASK = b"[redacted]"
NOT_KEPT = b"[not kept]"
MIN_LEARNED = 6

NO_VALUE = frozenset(
    [
        *b"none null true false nil undefined unset empty <redacted> <hidden>".split(),
        b"",
        b"not set",
        NOT_KEPT,
    ]
)
"""What stands in a secret's place where there is none: kept, because "no key is set" is evidence."""


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """A stretch of bytes to mask, what takes its place, and the values to be masked elsewhere too."""

    start: int
    end: int
    mask: bytes = MASK
    learn: tuple[bytes, ...] = ()


def looks_random(value: bytes) -> bool:
    """No spaces, and letters with digits or with letters of the other case: a key rather than a word."""
    if len(value) < MIN_LEARNED or b" " in value:
        return False
    digits = any(0x30 <= byte <= 0x39 for byte in value)
    lower, upper = value.lower(), value.upper()
    return (digits and lower != upper) or (len(value) >= 16 and value not in (lower, upper, value.title()))


_SCHEME = re.compile(rb"(?:bearer|basic|token|digest)[ \t]{1,4}(?=[^\s-])", re.IGNORECASE)
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)


def secrets_in(value: bytes) -> tuple[bytes, ...]:
    """The secrets that a masked value holds: as written, unescaped, without a scheme, decoded from Basic."""
    forms = [value]
    written = value
    for _ in range(3):
        if b"\\" not in written:
            break
        try:
            plain = json.loads(b'"' + written + b'"').encode("utf-8", "surrogatepass")
        except ValueError:
            plain = _ESCAPED.sub(rb"\1", written)
        forms.append(plain)
        written = plain
    if value[:1] in (b"'", b'"', b"\\") and len(value) < 4096:
        with contextlib.suppress(ValueError):
            forms += [word.encode() for word in shlex.split(written.decode("utf-8", "replace"))[:1]]
    if scheme := _SCHEME.match(value):
        bare = value[scheme.end() :].strip()
        forms.append(bare)
        if scheme.group().lower().startswith(b"basic"):
            with contextlib.suppress(binascii.Error):
                forms.append(base64.b64decode(bare, validate=True).partition(b":")[2])
    return tuple(forms)
