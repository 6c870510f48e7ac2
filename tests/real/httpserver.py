"""A small real HTTP server on 127.0.0.1 whose paths misbehave each in its own way."""

from __future__ import annotations

import abc
import contextlib
import http.server
import json
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

KEY = "sk-right-9f8e7d6c5b4a"
BIG = bytes(range(256)) * 4096
EVENTS = 5
GAP = 0.15
"""Seconds between two events of the stream."""


@dataclass(frozen=True)
class HttpServer:
    """A running server, and what it was asked."""

    port: int
    scheme: str = "http"
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def base(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"


@contextlib.contextmanager
def http_server(certificate: tuple[Path, Path] | None = None) -> Iterator[HttpServer]:
    """Serve until the context ends; over TLS with (certificate, key)."""
    over = threading.Event()
    made: list[HttpServer] = []

    class Handler(_Handler):
        def note(self, body: bytes) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            made[0].requests.append((self.command, self.path, headers, body))

        def wait(self) -> None:
            over.wait(30)

    server = _Server(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    made.append(HttpServer(server.server_address[1], "https" if certificate else "http"))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield made[0]
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients of these tests hang up whenever they like."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @abc.abstractmethod
    def note(self, body: bytes) -> None:
        """Keep what was asked."""

    @abc.abstractmethod
    def wait(self) -> None:
        """Stay silent until the server ends."""

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.note(body)
        self._whole(200, body)

    def do_GET(self) -> None:
        self.note(b"")
        getattr(self, "_get_" + self.path.strip("/").replace("/", "_"))()

    def _get_server_info(self) -> None:
        self._whole(200, json.dumps({"version": "0.5.23", "avg": 1.5}).encode())

    def _get_v1_models(self) -> None:
        if self.headers["Authorization"] == f"Bearer {KEY}":
            self._whole(200, b'{"data": []}')
        else:
            self._whole(401, b'{"error": "Unauthorized"}')

    def _get_props(self) -> None:
        self.send_response(302)
        self.send_header("Location", "/server_info")
        self._end(b"moved")

    def _get_metrics(self) -> None:
        """Server-sent events with pauses."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(EVENTS):
            if number:
                time.sleep(GAP)
            self._chunk(b"data: %d\n\n" % number)
        self._chunk(b"")

    def _get_slots(self) -> None:
        self._whole(200, BIG)

    def _get_load(self) -> None:
        """Announces 1000 bytes and hangs up after 10."""
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"0123456789")
        self.close_connection = True

    def _get_ping(self) -> None:
        """Hangs up without a word."""
        self.close_connection = True

    def _get_version(self) -> None:
        """The end of the connection is the end of the body, as in HTTP/1.0."""
        self.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n0.5.23")
        self.close_connection = True

    def _get_health(self) -> None:
        """Says a little, then nothing any more."""
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"wait")
        self.wfile.flush()
        self.wait()
        self.close_connection = True

    def _get_ready(self) -> None:
        """No HTTP."""
        self.wfile.write(b"\x15\x03\x01 this is not HTTP\r\n\r\n")
        self.close_connection = True

    def _whole(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self._end(body)

    def _end(self, body: bytes) -> None:
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()
