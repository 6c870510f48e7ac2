"""HTTP by `curl` on the host, for hosts whose SSH server refuses forwarding.

Everything about the request travels on curl's stdin as its configuration, so that no key is in an argv there. curl
reads no rc file, follows no redirect, uses no proxy and writes no file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ddprobe import __version__
from ddprobe.model import Command, CommandResult, HttpRequest, HttpResult
from ddprobe.sessions.address import is_loopback, seen_from_host

ARGV = ("curl", "-q", "-sS", "--config", "-")
MAX_LINE = 96_000
"""What every curl takes as a line of its configuration."""
PIECE = 90_000
_HEAD_ROOM = 64 * 1024

_FAILURES = {
    6: "the host cannot resolve the name in {base}",
    7: "nothing answers at {base} (connection refused)",
    18: "{base} closed the connection early",
    35: "TLS with {base} failed",
    52: "{base} closed the connection without an answer",
    56: "{base} reset the connection",
    60: "TLS with {base} failed: its certificate is not trusted there",
    126: "the SSH server refuses forwarding, and curl cannot be run on the host",
    127: "the SSH server refuses forwarding, and the host has no curl to ask in its place",
}


def curl_command(request: HttpRequest, headers: Iterable[tuple[str, str]], seconds: float) -> Command:
    """The command that sends an HTTP request which the policy has passed."""
    return Command(
        key=request.key,
        argv=ARGV,
        stdin=configuration(request, headers, seconds),
        # curl's own deadline comes first: it knows how to say so.
        timeout=seconds + 2,
        cap=request.cap + _HEAD_ROOM,
    )


def configuration(request: HttpRequest, headers: Iterable[tuple[str, str]], seconds: float) -> bytes:
    """curl's configuration for one request."""
    scheme, address, port = seen_from_host(request.base)
    shown = f"[{address}]" if ":" in address else address
    lines = [
        f"url = {_quoted(f'{scheme}://{shown}:{port}{request.path}')}",
        f"request = {_quoted(request.method)}",
        f"user-agent = {_quoted(f'ddprobe/{__version__}')}",
        f"max-time = {seconds:.3f}",
        'noproxy = "*"',
        'proto = "=http,https"',
        'header = "Accept-Encoding: identity"',
        'header = "Expect:"',
        *(f"header = {_quoted(f'{name}: {value}')}" for name, value in headers),
        "globoff",
        "include",
    ]
    if request.stream:
        lines.append("no-buffer")
    if scheme == "https" and is_loopback(address):
        lines.append("insecure")
    data = "\n".join(lines).encode()
    if request.body:
        data += b"".join(_body(_escaped(request.body)))
    return data + b"\n"


def _body(escaped: bytes) -> Iterator[bytes]:
    """The lines that give curl the body: one where it fits, else pieces that `json` puts together again.

    `data-raw` sends the bytes as they are. Several `data` would be joined by `&`; several `json` (curl 7.82) are not.
    """
    if len(escaped) <= MAX_LINE:
        yield b'\ndata-raw = "' + escaped + b'"'
        return
    start = 0
    while start < len(escaped):
        end = min(start + PIECE, len(escaped))
        # Not inside an escape, and no piece may begin with @: curl would read a file of that name.
        while end < len(escaped) and (
            escaped[end : end + 1] == b"@" or _odd_backslashes(escaped, start, end)
        ):
            end -= 1
        yield b'\njson = "' + escaped[start:end] + b'"'
        start = end


def _odd_backslashes(escaped: bytes, start: int, end: int) -> bool:
    """Whether the cut would part a backslash from what it escapes."""
    piece = escaped[start:end]
    return (len(piece) - len(piece.rstrip(b"\\"))) % 2 == 1


def _quoted(text: str) -> str:
    return '"' + _escaped(text.encode()).decode() + '"'


def _escaped(data: bytes) -> bytes:
    for raw, written in ((b"\\", rb"\\"), (b'"', rb"\""), (b"\n", rb"\n"), (b"\r", rb"\r"), (b"\t", rb"\t")):
        data = data.replace(raw, written)
    return data


def curl_result(request: HttpRequest, result: CommandResult) -> HttpResult:
    """curl's output as the answer to the request: whole exactly when curl says so. When each chunk came is not known."""
    status, headers, body = _split(result.stdout)
    timed_out = result.timed_out or result.exit_code == 28
    truncated = result.truncated or len(body) > request.cap
    failure = result.failure
    if not failure and not timed_out and not truncated:
        failure = _failure(request, result, status)
    return HttpResult(
        question=request, status=status, headers=headers, body=body[: request.cap], started=result.started,
        seconds=result.seconds, truncated=truncated, timed_out=timed_out, failure=failure, via="curl",
    )  # fmt: skip


def _failure(request: HttpRequest, result: CommandResult, status: int | None) -> str:
    """In words, what curl's exit code says; empty when all is well."""
    code = result.exit_code
    if code == 0:
        return "" if status is not None else f"what {request.base} answered is not HTTP"
    if request.body and len(result.question.stdin) > MAX_LINE and code in (2, 26):
        return f"the SSH server refuses forwarding, and the host's curl (older than 7.82) takes no body of {len(request.body)} bytes"
    said = result.stderr.decode("utf-8", "replace").strip().splitlines()
    sentence = _FAILURES.get(code or 0, f"curl on the host failed ({code})").format(base=request.base)
    return f"{sentence}: {said[-1][:300]}" if said and code not in (126, 127) else sentence


def _split(data: bytes) -> tuple[int | None, tuple[tuple[str, str], ...], bytes]:
    """Status, headers and body of the last head; those before it are `100 Continue`."""
    while data.startswith(b"HTTP/"):
        head, _, rest = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        word = first.partition(" ")[2][:3]
        status = int(word) if word.isdigit() else None
        if status is not None and status < 200 and rest.startswith(b"HTTP/"):
            data = rest
            continue
        pairs = (line.partition(":") for line in lines)
        return status, tuple((name.strip(), value.strip()) for name, _, value in pairs), rest
    return None, (), data
