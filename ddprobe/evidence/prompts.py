"""What users ask of a server, and what it answers them, as logs echo it: their words are no evidence, whatever they quote.

    Receive: obj=GenerateReqInput(rid='…', text='… accept len: 1.00 …', …)                      (SGLang)
    Received request cmpl-1: prompt: '… SpecDecoding metrics: …', params: SamplingParams(…)     (vLLM)
    srv  log_server_r: request:  {"prompt": "… draft acceptance = 0.1 …"}                       (llama.cpp)

A line is kept up to where such words begin.
"""

from __future__ import annotations

import re

from ddprobe.evidence.document import Document, of_bytes

_MARKS = {
    b"m": (b"prompt", b"messages"),
    b"I": (b"ReqInput",),
    b"_": (b"log_server_r",),
    b"G": (b"Generated response",),
    b'"': (b'"request.',),
}
"""One of these stands in every line that echoes a request, under a character of it that lines of decoding do not have:
one character is looked for many times faster than a word.
"""
_ECHO = re.compile(
    rb"""obj=\w*ReqInput\(
      | \b(?:Received\ request|Generated\ response|Request)\ [^\n]{0,200}?:\ (?:prompt|output):\ ?
      | \blog_server_r:\ +(?:request|response):\s+(?=[{\[])
      | \bprompt\ token\ +\d+:
      | \b(?:prompts?|prompt_text|messages)["']?\ ?[:=]\ ?[\[(]*\{?["']
    """,
    re.VERBOSE,
)
_EVENT = re.compile(rb'"event":\s*"request\.')
_ARGUMENTS = (b"server_args=", b"non-default args")
_JSON = re.compile(rb"\s*[{\[]")
_LOOKS = re.compile(rb"\s*\[(?:\d|rank|W\d|I\d|gpu)")


def cleaned(block: bytes) -> bytes:
    """Whole lines without the words of requests. Lines stay lines; one that is JSON of its own is no log's."""
    if not _marked(block):
        return block
    return b"\n".join(map(_line, block.split(b"\n")))


def _marked(data: bytes) -> bool:
    return any(sign in data and any(mark in data for mark in marks) for sign, marks in _MARKS.items())


def _line(line: bytes) -> bytes:
    if not _marked(line):
        return line
    json_alone = _JSON.match(line) and not _LOOKS.match(line)
    found = _EVENT.search(line) if json_alone else _ECHO.search(line)
    if found is None or any(-1 < line.find(word) < found.start() for word in _ARGUMENTS):
        return line
    return line[: found.end()]


def without(document: Document, text: str) -> Document:
    """A document whose text is held already, without them."""
    data = text.encode("utf-8", "replace")
    kept = cleaned(data)
    return document if kept == data else of_bytes(document.key, kept)
