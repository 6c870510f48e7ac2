"""HTTP/1.1 on a channel, as the made-up host's inference server speaks it: whole answers, and streams in their time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
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
class Piece:
    """A part of a body, and how many seconds after the answer begins it goes out."""

    at: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Response:
    body: bytes = b""
    status: int = 200
    type: str = "application/json"
    pieces: Iterator[Piece] | None = None
    """In place of `body`: a body that comes over time."""
    hangs_up: bool = False
    """No answer comes: the connection ends."""


class Answering(Protocol):
    """An inference server."""

    @property
    def alive(self) -> bool:
        """False when nothing listens any more."""

    def respond(self, method: str, path: str, body: bytes = b"") -> Response:
        """The answer to one request."""


def json_response(value: Any, status: int = 200) -> Response:
    """As SGLang prints JSON: no blanks, text beyond ASCII as it is."""
    return Response(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(), status)


@dataclass(frozen=True, slots=True)
class Server:
    """Set answers by path, to GET alone."""

    answers: Mapping[str, Response]
    alive: bool = True

    def respond(self, method: str, path: str, body: bytes = b"") -> Response:
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
    body: bytes
    last: bool
    """The client wants the connection closed after the answer."""


def serve(stream: Stream, server: Answering) -> None:
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
        response = server.respond(request.method, request.path, request.body)
        if response.hangs_up:
            return
        if response.pieces is not None:
            _send_pieces(stream, response, response.pieces, closing=request.last)
        else:
            stream.sendall(_encode(response, closing=request.last, bodiless=request.method == "HEAD"))
        if request.last:
            return


def _send_pieces(stream: Stream, response: Response, pieces: Iterator[Piece], *, closing: bool) -> None:
    """Each piece as a chunk, when its time has come."""
    began = time.monotonic()
    try:
        stream.sendall(_head(response, closing, "transfer-encoding: chunked"))
        for piece in pieces:
            time.sleep(max(0.0, began + piece.at - time.monotonic()))
            stream.sendall(b"%x\r\n%b\r\n" % (len(piece.data), piece.data))
        stream.sendall(b"0\r\n\r\n")
    finally:
        # A client that goes away ends the request.
        close = getattr(pieces, "close", None)
        if close is not None:
            close()


def _read(stream: Stream, held: bytearray) -> _Request | None:
    """The next request, its body with it; None at the end. Raises `ValueError` for what is no request."""
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
    body = bytes(held[end + 4 : whole])
    del held[:whole]
    closing = headers.get("connection", "").lower() == "close" or version == "HTTP/1.0"
    return _Request(method, target.partition("?")[0], body, closing)


def _more(stream: Stream, held: bytearray) -> bool:
    data = stream.recv(65536)
    held += data
    return bool(data)


def _encode(response: Response, *, closing: bool, bodiless: bool = False) -> bytes:
    head = _head(response, closing, f"content-length: {len(response.body)}")
    return head + (b"" if bodiless else response.body)


def _head(response: Response, closing: bool, framing: str) -> bytes:
    return (
        f"HTTP/1.1 {response.status} {_REASONS[response.status]}\r\n"
        f"server: uvicorn\r\nx-ddprobe-lab: simulated\r\n{framing}\r\n"
        f"content-type: {response.type}\r\nconnection: {'close' if closing else 'keep-alive'}\r\n\r\n"
    ).encode()
