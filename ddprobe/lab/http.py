"""The simulated inference server: answers HTTP/1.1 on a channel as the made-up host's server would."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

MAX_HEAD = 64 * 1024
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    501: "Not Implemented",
}


class Stream(Protocol):
    """A channel or a socket."""

    def recv(self, size: int, /) -> bytes: ...

    def sendall(self, data: bytes, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Response:
    body: bytes = b""
    status: int = 200
    type: str = "application/json"


def json_response(value: Any, status: int = 200) -> Response:
    """As SGLang prints JSON: no blanks, text beyond ASCII as it is."""
    return Response(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(), status)


@dataclass(frozen=True, slots=True)
class Server:
    """Answers by path. Only GET: what the read-only policy lets through needs no more."""

    answers: Mapping[str, Response]

    def respond(self, method: str, path: str) -> Response:
        response = self.answers.get(path)
        if response is None:
            return json_response({"detail": "Not Found"}, 404)
        if method not in ("GET", "HEAD"):
            return json_response({"detail": "Method Not Allowed"}, 405)
        return response


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    last: bool
    """The client wants the connection closed after the answer."""


def serve(stream: Stream, server: Server) -> None:
    """Answer requests on this connection until the other side closes it or asks to."""
    held = bytearray()
    while True:
        try:
            request = _read(stream, held)
        except ValueError:
            stream.sendall(
                _encode(Response(b"Invalid HTTP request received.", 400, "text/plain"), closing=True)
            )
            return
        if request is None:
            return
        response = server.respond(request.method, request.path)
        stream.sendall(_encode(response, closing=request.last, bodiless=request.method == "HEAD"))
        if request.last:
            return


def _read(stream: Stream, held: bytearray) -> _Request | None:
    """The next request, its body read and dropped; None at the end. Raises `ValueError` for what is no request."""
    while (end := held.find(b"\r\n\r\n")) < 0:
        if len(held) > MAX_HEAD:
            raise ValueError("the head does not end")
        if not _more(stream, held):
            return None
    first, *lines = held[:end].decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    method, target, version = first.split(" ")
    if "transfer-encoding" in headers:
        raise ValueError("a chunked body is not understood here")
    whole = end + 4 + int(headers.get("content-length", "0"))
    while len(held) < whole:
        if not _more(stream, held):
            return None
    del held[:whole]
    closing = headers.get("connection", "").lower() == "close" or version == "HTTP/1.0"
    return _Request(method, target.partition("?")[0], closing)


def _more(stream: Stream, held: bytearray) -> bool:
    data = stream.recv(65536)
    held += data
    return bool(data)


def _encode(response: Response, *, closing: bool, bodiless: bool = False) -> bytes:
    head = (
        f"HTTP/1.1 {response.status} {_REASONS[response.status]}\r\n"
        f"server: uvicorn\r\nx-ddprobe-lab: simulated\r\ncontent-length: {len(response.body)}\r\n"
        f"content-type: {response.type}\r\nconnection: {'close' if closing else 'keep-alive'}\r\n\r\n"
    )
    return head.encode() + (b"" if bodiless else response.body)
