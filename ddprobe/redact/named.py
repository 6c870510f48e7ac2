"""Secrets found by the name before them: JSON, Python, shell, argv, headers, URLs, environment dumps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddprobe.redact import names
from ddprobe.redact.spans import MASK, NO_VALUE, NOT_KEPT, Span, looks_random, secrets_in

# The last word of a name that may be a secret's, with what may follow a name. Run on a lower-case copy.
_CANDIDATE = re.compile(
    rb"(?:key(?:_[ab])?|passwo?r?d|passphrase|pass|pwd|secret|(?<=[a-z0-9_-])token|authorization|cookie|credential"
    rb"|bearer|(?<=-)hft)s?(?:_?\d{1,3})?(?=[\\\"'`\s:=,\0\x1b]|%3[ad])"
)
_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_NAME_MAX = 96

# What stands before a name without being part of it: the end of a colour (`ESC[32m`), a byte URL-encoded (`%3F`),
# the letter of an escape (`\n`, `\u0026`).
_NOT_NAME = {
    b"[": re.compile(rb"\d{1,3}m"),
    b";": re.compile(rb"\d{1,3}m"),
    b"%": re.compile(rb"[0-9A-Fa-f]{2}"),
    b"\\": re.compile(rb"u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[nrt]"),
}

# A log in colour: `ESC[36mapi_key ESC[0m= ESC[35m…`, also escaped in JSON or Python.
_COLOUR = rb"(?:(?:\x1b|\\{1,15}(?:u001[bB]|x1[bB]|033|e))\[[0-9;]{0,16}m){0,4}"
_NAME_QUOTE = re.compile(rb"(\\{0,15})([\"'`])")
_ASSIGNS = re.compile(
    _COLOUR + rb"[ \t]{0,16}(?:=>|:=|:(?![:=])|=(?!=)|%3[AaDd])" + _COLOUR + rb"[ \t]{0,16}" + _COLOUR
)
_ASSIGNS_QUOTED = re.compile(
    _COLOUR + rb"\]?\s{0,64}" + _COLOUR + rb"(?:=>|:(?![:=])|=(?!=))" + _COLOUR + rb"\s{0,64}" + _COLOUR
)
_NEXT_IN_LIST = re.compile(rb"\s{0,64},\s{0,64}(?=[bBrRuU]?\\{0,15}[\"'])")
_VALUE_FIELD = re.compile(
    rb"\s{0,64},\s{0,64}\\{0,15}[\"']value\\{0,15}[\"']\s{0,64}:\s{0,64}", re.IGNORECASE
)
_SPACES = re.compile(rb"[ \t]{1,16}|\0")
_OPEN_QUOTE = re.compile(rb"(?:[bBrRuUfF]{0,2})(\\{0,15})([\"'`])")
_OPENED_BEFORE = re.compile(rb"(\\{0,15})([\"'`])\Z")
_LINE_START = re.compile(
    rb"(?:([\r\n\0])|\\[nr])[ \t>*<#-]*(?:export |declare -x |set |(setenv |env ))?\Z", re.IGNORECASE
)

_BARE = rb"[^\s\0\"'`\\\x1b]|[\"'`](?=\w)|\\(?![nrt\"'`]|u001[bB]|x1[bB])"
_COMMA = rb",(?![ \t]{0,4}[\w.-]{1,40}=)"
_WORD = re.compile(rb"(?:" + _BARE + rb")+")
_PARAMETER = re.compile(rb"[^\s\0\"'`\\&#<>]+")
_PARAMETER_ENCODED = re.compile(rb"(?:(?!%26)[^\s\0\"'`\\&#<>])+")
_WHOLE_LINE = re.compile(rb"(?:[^,\r\n\0\x1b]|" + _COMMA + rb")+")
_REST_OF_LINE = re.compile(rb"(?:" + _BARE.replace(rb"[^\s", rb"[^,\r\n") + rb"|" + _COMMA + rb")+")
_PHRASE_WORD = _BARE.replace(rb"[^\s", rb"[^\s,;") + rb"|[,;](?=[\w/+*.~@!?^#$%|-])(?![\w.-]{1,40}[:=])"
_PHRASE = re.compile(
    rb"(?:" + _PHRASE_WORD + rb")+(?:[ \t]{1,4}(?![\w.-]{1,40}[:=])(?:" + _PHRASE_WORD + rb")+)*"
)
_COLOURED = re.compile(rb"(?:[^\x1b\\\r\n\0]|\\(?!u001[bB]|x1[bB]|[nr]))+(?=\x1b|\\(?:u001[bB]|x1[bB])|\Z)")
_ARGUMENT = re.compile(rb"[^\0]+")
_GOES_ON = re.compile(rb"[^\s,;:)\]}>\"'`\\\0\x1b]")
_NEXT_OPTION = re.compile(rb"[ \t]{1,16}--?[A-Za-z]")
_COMMAND = re.compile(rb"[ \t]{1,16}(?!-)[^\r\n\0]*? --")
_LITERAL = re.compile(rb"[^\s,;:\[\]{}()\"'`\\\0]+")
_REFERENCE = re.compile(rb"[A-Za-z_]\w*(?:\.\w+)+\Z")
_TRAILING = b",;)]}>"
# What programs say of a file whose name looks like a secret's: `cat: /etc/passwd: Permission denied`.
_OF_A_FILE = re.compile(
    rb"[\"'`]?: (?:No such file|Permission denied|Is a directory|Not a directory|Operation not permitted|Input/output"
    rb"|Too many levels|Too many open files|File name too long|Stale file handle|Transport endpoint|binary file matches)"
)


def by_name(data: bytes, source: bool, _cut: bool) -> Iterator[Span]:
    """Values that follow a secret's name, in JSON, Python, shell, argv, headers, URLs and environment dumps."""
    low = data.lower()
    at = 0
    while match := _CANDIDATE.search(low, at):
        at = match.end()
        head = data[max(0, match.start() - _NAME_MAX) : match.start()]
        start = match.start() - (len(head) - len(head.rstrip(_NAME_BYTES)))
        name = data[start:at].decode("ascii", "replace")
        if (other := _NOT_NAME.get(data[start - 1 : start])) and (found := other.match(data, start, at)):
            bare = data[found.end() : at].decode("ascii", "replace")
            start, name = (found.end(), bare) if names.is_secret(bare) else (start, name)
        if not names.is_secret(name) or (data[start - 1 : start] == b"/" and _OF_A_FILE.match(data, at)):
            continue
        span = _value(data, start, at, name, source)
        if span is not None:
            yield span
            at = max(at, span.end)


def _value(data: bytes, start: int, end: int, name: str, source: bool) -> Span | None:
    """The value of the name at [start, end), or None where none follows."""
    option = name.startswith("-")
    quoted = _NAME_QUOTE.match(data, end)
    before = data[start - 40 : start] if start > 40 else b"\n" + data[:start]
    if quoted:
        after = quoted.end()
        if found := _ASSIGNS_QUOTED.match(data, after) or _VALUE_FIELD.match(data, after):
            return _assigned(data, found.end(), source, quoted.group())
        if (option or name.lower() in names.HEADERS) and (found := _NEXT_IN_LIST.match(data, after)):
            return _assigned(data, found.end(), source, b"")
        return None
    if found := _ASSIGNS.match(data, end):
        at = found.end()
        if _OPEN_QUOTE.match(data, at):
            return _assigned(data, at, source, b"")
        if source:
            return None
        return _unquoted(data, at, before, name, found.group().strip())
    if not source and name.isupper() and (line := _LINE_START.search(before)) and line.group(2):
        if found := _SPACES.match(data, end):  # ENV HF_TOKEN value, in a Dockerfile
            return _unquoted(data, found.end(), before, name, b" ")
        return None
    if option and not source and (found := _SPACES.match(data, end)):
        if found.group() == b"\0":
            return _arguments(data, found.end())
        if data[found.end() : found.end() + 1] == b"-":
            return None
        if _OPEN_QUOTE.match(data, found.end()):
            return _assigned(data, found.end(), source, b"")
        return _span(data, found.end(), _match_end(_WORD, data, found.end()), sure=False)
    return None


def _assigned(data: bytes, at: int, source: bool, name_quote: bytes) -> Span | None:
    """A quoted value, a list of them, or (after a quoted name) a bare literal."""
    if data.startswith(MASK, at):
        return None
    if data[at : at + 1] in (b"[", b"{", b"("):
        return None if source else _bracketed(data, at, b"\0" if name_quote else b"\0\r\n")
    opened = _OPEN_QUOTE.match(data, at)
    if opened is None:
        if not name_quote or source:
            return None
        stop = _match_end(_LITERAL, data, at)
        return _span(data, at, stop, mask=name_quote + MASK + name_quote, sure=True)
    first = opened.end()
    stop, after = _closing(data, first, len(opened.group(1)), opened.group(2))
    if source and not looks_random(data[first:stop]):
        return None
    if not source and (joined := _joined(data, after)) != after:
        return _span(data, opened.start(), joined, sure=True)
    return _span(data, first, stop, sure=True)


def _joined(data: bytes, at: int) -> int:
    """The shell joins what touches: 'it'"'"'s'. A quote before punctuation ends an outer string instead."""
    while more := _JOINED.match(data, at):
        quote = _OPEN_QUOTE.match(data, more.start())
        at = (
            _closing(data, quote.end(), len(quote.group(1)), quote.group(2))[1]
            if quote
            else _match_end(_WORD, data, at)
        )
    return at


_JOINED = re.compile(rb"\\{0,15}[\"'](?=\\{0,15}[\"'\w])(?!\\{0,15}[\"']\s{0,8}[,:}\])])|\w")


def _bracketed(data: bytes, at: int, ends: bytes) -> Span | None:
    """A list or mapping whose parts are all secret. A byte of `ends` ends it even when it is not closed."""
    depth, place, quote, values = 0, at, b'"', []
    while place < len(data):
        found = _IN_BRACKETS.search(data, place)
        if found is None:
            place = len(data)
            break
        place = found.end()
        if found.group() in (b"[", b"{", b"("):
            depth += 1
        elif found.group() in (b"]", b"}", b")"):
            depth -= 1
            if depth == 0:
                break
        elif found.group() in ends:
            place = found.start()
            break
        elif found.group().isspace():
            continue
        else:
            quote = found.group()
            stop, place = _closing(data, found.end(), len(found.group(1)), found.group(2))
            values.append(data[found.end() : stop])
    inside = data[at + 1 : place].strip(b" \t\r\n]})([{,")
    if not values and inside.lower() in NO_VALUE:
        return None
    if values and all(value.lower() in NO_VALUE for value in values):
        return None
    mask = b"[" + quote + MASK + quote + b"]" if values else MASK
    learn = tuple(form for value in values for form in secrets_in(value))
    return Span(at, place, mask, learn)


_IN_BRACKETS = re.compile(rb"[\[\](){}\0\r\n]|(?<!\\)(\\{0,15})([\"'`])")


def _unquoted(data: bytes, at: int, before: bytes, name: str, sign: bytes) -> Span | None:
    """A value without quotes after `=` or `:`; how far it goes depends on what stands around it."""
    if before.endswith((b"?", b"&")) or sign.startswith(b"%"):
        form = _PARAMETER_ENCODED if sign.startswith(b"%") else _PARAMETER
        return _span(data, at, _match_end(form, data, at), sure=False)
    option = name.startswith("-")
    if sign.endswith(b"m") and (coloured := _COLOURED.match(data, at)):
        return _span(data, at, coloured.end(), sure=False)
    header = name.lower() in names.HEADERS
    if opened := _OPENED_BEFORE.search(before):
        # "PASSWORD=two words", "--api-key=two words", -H "Authorization: Bearer …": to the quote that closes.
        stop, after = _closing(data, at, len(opened.group(1)), opened.group(2))
        if not header and (end := _before_command(data, at, stop, option)) < stop:
            return _span(data, at, end, sure=True)
        if (joined := _joined(data, after)) > after > stop:
            return _span(data, at, joined, mask=MASK + opened.group(), sure=True)
        return _span(data, at, stop, sure=True)
    if data[at : at + 1] in (b"[", b"{", b"("):
        listed = _bracketed(data, at, b"\0\r\n")
        if listed is None or not _GOES_ON.match(data, listed.end):
            return listed
    elif (first := _LITERAL.match(data, at)) and (
        first.group().lower() in NO_VALUE or _is_reference(first.group())
    ):
        return None
    line = _LINE_START.search(before)
    if line and option and line.group(1) == b"\0":
        return _span(data, at, _match_end(_ARGUMENT, data, at), sure=True)
    if line and not option:
        stop = _match_end(_WHOLE_LINE if line.group(1) else _REST_OF_LINE, data, at)
        end = stop if header else _before_command(data, at, stop, option)
        return _span(data, at, end, sure=sign == b"=" or header)
    if sign == b":" or header:
        if name.lower().endswith("cookie"):
            return _span(data, at, _match_end(_REST_OF_LINE, data, at), sure=header)
        return _span(data, at, _match_end(_PHRASE, data, at), sure=header)
    return _span(data, at, _match_end(_WORD, data, at), sure=False)


def _is_reference(word: bytes) -> bool:
    """Whether it names a secret rather than being one: `password=args.password`, in a traceback."""
    return bool(_REFERENCE.match(word)) and names.is_secret(word.decode("ascii"))


def _before_command(data: bytes, at: int, stop: int, option: bool) -> int:
    """`HF_TOKEN=x python -m server --port 1`: the value ends where a command, or the next option, begins."""
    word = _match_end(_WORD, data, at)
    follows = _NEXT_OPTION if option else _COMMAND
    return word if word < stop and follows.match(data, word, min(stop, at + 4096)) else stop


def _arguments(data: bytes, at: int) -> Span | None:
    """The words of a NUL-separated argv up to the next option: vLLM takes several keys after one `--api-key`."""
    words: list[bytes] = []
    end = at
    while end < len(data) and (not words or data[end : end + 1] != b"-"):
        stop = data.find(b"\0", end)
        stop = len(data) if stop < 0 else stop
        if not words and (data[end:stop].startswith(b"--") or data[end:stop].lower() in NO_VALUE):
            return None
        words.append(data[end:stop])
        end = stop + 1
    if not words:
        return None
    masked = b"\0".join(MASK if word else word for word in words)
    return Span(
        at, min(end - 1, len(data)), masked, tuple(form for word in words for form in secrets_in(word))
    )


def _span(data: bytes, start: int, end: int, *, mask: bytes = MASK, sure: bool) -> Span | None:
    value = data[start:end]
    kept = value.rstrip(_TRAILING) if not sure else value
    if kept.lower().strip(b"'\"* ") in NO_VALUE or value.startswith((MASK, NOT_KEPT)):
        return None
    learn = secrets_in(kept)
    if not sure:
        learn = tuple(form for form in learn if looks_random(form))
    return Span(start, start + len(kept), mask, learn)


def _match_end(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = pattern.match(data, at)
    return found.end() if found else at


def _closing(data: bytes, start: int, slashes: int, quote: bytes) -> tuple[int, int]:
    """Where the string opened by `slashes` backslashes and a quote ends, and where it goes on after it.

    JSON within JSON within … doubles backslashes: a quote closes when it carries as many as the opening one. An
    unterminated string ends with its line: neither JSON nor Python lets one go on.
    """
    unit = slashes + 1
    for found in _STOPS[quote].finditer(data, start):
        at = found.start()
        if found.group() != quote:
            return at, at
        run = at
        while run > start and data[run - 1] == 0x5C:
            run -= 1
        count = at - run
        if quote == b"'":
            if count <= slashes:
                return at - count, at + 1
        elif (count + 1) % unit:
            return run, run  # the outer string ends here
        elif (count + 1) // unit % 2:
            return at - slashes, at + 1
    return len(data), len(data)


_STOPS = {quote: re.compile(b"[" + quote + rb"\r\n\0]") for quote in (b'"', b"'", b"`")}
