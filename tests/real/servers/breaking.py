"""A proxy before a real inference server that breaks chosen answers in a chosen way."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

GENERATE = ("/completion", "/generate", "/v1/completions")
_PIECE = 65536


@dataclass
class Exchange:
    """One request on its way: what was asked, and both ends."""

    path: str
    number: int
    """Which request to generate this is, from 1; 0 for any other."""
    head: bytes
    body: bytes
    client: socket.socket
    port: int
    over: threading.Event

    def say(self, data: bytes) -> None:
        """Send the client these bytes."""
        self.client.sendall(data)

    def status(self, status: str, body: bytes, kind: str = "application/json") -> None:
        """A whole answer that the server never gave."""
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.say(head.encode() + body)

    def stream(self, *pieces: bytes, end: bool = True) -> None:
        """A streamed answer of status 200."""
        self.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in pieces:
            self.say(b"%x\r\n%s\r\n" % (len(piece), piece))
        if end:
            self.say(b"0\r\n\r\n")

    def answer(self) -> Iterator[bytes]:
        """The real server's answer in pieces, head and all, as they come."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as upstream:
            upstream.sendall(self.head + self.body)
            while piece := upstream.recv(_PIECE):
                yield piece

    def real(self) -> bytes:
        """The body of the real server's answer, without its framing."""
        head, _, rest = b"".join(self.answer()).partition(b"\r\n\r\n")
        return unchunked(rest) if b"chunked" in head.lower() else rest

    def relay(self) -> None:
        """Pass the real answer on as it comes; stop asking when the client has gone."""
        with contextlib.suppress(OSError):
            for piece in self.answer():
                self.say(piece)


Break = Callable[[Exchange], None]


@dataclass
class Breaking:
    """The running proxy. `faults` says, by number of the request to generate, what becomes of it; `gets` by path."""

    port: int = 0
    faults: dict[int, Break] = field(default_factory=dict)
    every: Break | None = None
    """What becomes of all requests to generate that `faults` does not name."""
    gets: dict[str, Break] = field(default_factory=dict)
    asked: list[tuple[str, bytes]] = field(default_factory=list)
    upstream: int = 0

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def begin(self, upstream: int) -> None:
        """Forget everything, and stand before that port."""
        self.faults, self.every, self.gets, self.upstream = {}, None, {}, upstream
        self.asked.clear()

    @property
    def generated(self) -> int:
        return sum(path in GENERATE for path, _ in self.asked)


@contextlib.contextmanager
def breaking() -> Iterator[Breaking]:
    """Run a proxy until the context ends."""
    proxy, over, lock = Breaking(), threading.Event(), threading.Lock()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                self._handle()

        def _handle(self) -> None:
            lines = [self.rfile.readline()]
            while (line := self.rfile.readline()) not in (b"\r\n", b""):
                lines.append(line)
            if not lines[0].strip():
                return
            sizes = [
                int(line.partition(b":")[2]) for line in lines if line.lower().startswith(b"content-length:")
            ]
            body = self.rfile.read(sizes[0]) if sizes else b""
            path = lines[0].split()[1].decode()
            with lock:
                proxy.asked.append((path, body))
                number = proxy.generated if path in GENERATE else 0
            head = b"".join(line for line in lines if not line.lower().startswith(b"connection:"))
            exchange = Exchange(
                path, number, head + b"Connection: close\r\n\r\n", body, self.connection, proxy.upstream, over
            )
            broken = proxy.faults.get(number, proxy.every) if number else proxy.gets.get(path)
            (broken or Exchange.relay)(exchange)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Clients hang up whenever they like."""

    with Server(("127.0.0.1", 0), Handler) as server:
        proxy.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield proxy
        finally:
            over.set()
            server.shutdown()
            thread.join()


def unchunked(data: bytes) -> bytes:
    """The body in a chunked one."""
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        many = int(size, 16)
        body, data = body + data[:many], data[many + 2 :]
        if not many:
            break
    return body


def events_of(body: bytes) -> list[bytes]:
    """The events of a stream, each with the blank line after it."""
    return [event + b"\n\n" for event in body.split(b"\n\n") if event]


def changed(body: bytes, change: Callable[[dict[str, object]], object]) -> bytes:
    """The JSON of every event after a change made in place, or replaced by what the change returns."""
    told = []
    for event in events_of(body):
        data = event.removeprefix(b"data: ").strip()
        if data == b"[DONE]":
            told.append(event)
            continue
        value = json.loads(data)
        made = change(value)
        told.append(b"data: " + json.dumps(value if made is None else made).encode() + b"\n\n")
    return b"".join(told)
