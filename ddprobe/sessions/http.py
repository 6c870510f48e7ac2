"""HTTP as the host itself would send it, over a stream that the session opens: no local port, no redirects, no proxies."""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpcore

from ddprobe import __version__
from ddprobe.model import Chunk, Command, CommandResult, Host, HttpRequest, HttpResult
from ddprobe.sessions import curl
from ddprobe.sessions.address import is_loopback, seen_from_host
from ddprobe.sessions.stream import Dial, ForwardingRefused, Stream, TlsStream, lost

if TYPE_CHECKING:
    import paramiko

CONNECT_SECONDS = 5.0
_SLICE = 0.2  # how long a read may keep a cancelled question waiting


class Web:
    """Asks one host's inference servers, and remembers when only `curl` on the host can."""

    def __init__(
        self,
        host: Host,
        cancelled: threading.Event,
        dial: Dial,
        run: Callable[[Command], CommandResult] | None = None,
        via: str = "channel",
    ) -> None:
        """`run` carries a command to the host, from any thread; without it there is no falling back to curl."""
        self.host = host
        self.cancelled = cancelled
        self.notes: list[str] = []
        self._dial = dial
        self._run = run
        self._via = via
        self._refused = threading.Event()
        self._noting = threading.Lock()

    def ask(self, request: HttpRequest) -> HttpResult:
        """The answer; every trouble is told in it. Safe from several threads at once."""
        seconds, headers = self._seconds(request), self._headers(request)
        if self._run is None or not self._refused.is_set():
            try:
                return fetch(request, headers, self._dial, seconds, self.cancelled, self._via)
            except ForwardingRefused as error:
                if self._run is None:
                    return HttpResult(
                        question=request, started=time.time(), failure=str(error), via=self._via
                    )
                self._refused.set()
                self._note(f"{error}: HTTP requests were made by curl on the host")
        return curl.curl_result(request, self._run(curl.curl_command(request, headers, seconds)))

    def _seconds(self, request: HttpRequest) -> float:
        """How long the request may take."""
        return request.timeout or self.host.command_timeout

    def _headers(self, request: HttpRequest) -> tuple[tuple[str, str], ...]:
        """The request's own, and the key: it stays in the laptop's environment, only its name is in the inventory."""
        name = self.host.api_key_env
        if not name:
            return request.headers
        key = os.environ.get(name, "").strip()
        if not key or not key.isascii() or not key.isprintable():
            self._note(f"api_key_env names {name}, which holds no usable key here: asked without one")
            return request.headers
        return (*request.headers, ("Authorization", f"Bearer {key}"))

    def _note(self, text: str) -> None:
        with self._noting:
            if text not in self.notes:
                self.notes.append(text)


def through(transport: paramiko.Transport) -> Dial:
    """Streams as direct-tcpip channels of an SSH connection."""
    import paramiko

    def dial(address: str, port: int, seconds: float) -> Stream:
        try:
            return _ChannelStream(
                transport.open_channel("direct-tcpip", (address, port), ("127.0.0.1", 0), timeout=seconds)
            )
        except paramiko.ChannelException as error:
            if error.code == 1:
                raise ForwardingRefused("the SSH server refuses forwarding (AllowTcpForwarding)") from None
            if error.code == 2:
                raise ConnectionRefusedError("connection refused on the host") from None
            raise OSError(f"the SSH server opens no channel: {error.text}") from None
        except (paramiko.SSHException, EOFError) as error:
            raise OSError(f"no channel came about: {error or 'the connection is gone'}") from None

    return dial


class _ChannelStream:
    """A Paramiko channel. On a connection that has just been lost its calls end in anything but an `OSError`."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        self._lost = lost()

    def settimeout(self, seconds: float | None, /) -> None:
        self._channel.settimeout(seconds)

    def recv(self, nbytes: int, /) -> bytes:
        try:
            return self._channel.recv(nbytes)
        except self._lost:
            raise OSError("the SSH connection is gone") from None

    def send(self, data: bytes, /) -> int:
        try:
            return self._channel.send(data)
        except self._lost:
            raise OSError("the SSH connection is gone") from None

    def close(self) -> None:
        self._channel.close()


# --- one request -------------------------------------------------------------------------------------------


def fetch(
    request: HttpRequest,
    headers: Iterable[tuple[str, str]],
    dial: Dial,
    seconds: float,
    cancelled: threading.Event,
    via: str,
) -> HttpResult:
    """Send one request over a stream of its own and read until the end, the cap, the deadline or `cancelled`.

    Only `ForwardingRefused` is raised.
    """
    scheme, address, port = seen_from_host(request.base)
    clock = _Clock(seconds, cancelled)
    backend = _Backend(dial, clock)
    answer: dict[str, Any] = {}
    body = bytearray()
    chunks: list[Chunk] = []
    started = time.time()
    ending: dict[str, Any] = {}
    try:
        with httpcore.ConnectionPool(
            ssl_context=_tls(address) if scheme == "https" else None, network_backend=backend, retries=0
        ) as pool:
            url = httpcore.URL(scheme=scheme, host=address, port=port, target=request.path)
            with pool.stream(
                request.method, url, headers=_headers(request, headers), content=request.body or None
            ) as response:
                answer["status"] = response.status
                answer["headers"] = tuple(
                    (name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers
                )
                for piece in response.iter_stream():
                    kept = piece[: request.cap - len(body)]
                    if kept:
                        chunks.append(Chunk(time.monotonic() - backend.sent_at, len(kept)))
                        body += kept
                    if len(kept) < len(piece):
                        ending["truncated"] = True
                        break
    except _TimedOut:
        ending["timed_out"] = True
    except _Interrupted:
        ending["failure"] = "interrupted"
    except ConnectionRefusedError:
        ending["failure"] = f"nothing answers at {request.base} (connection refused)"
    except ssl.SSLError as error:
        ending["failure"] = f"TLS with {request.base} failed: {error.reason or error}"
    except httpcore.ProtocolError as error:
        # Its words may quote the bytes as Python writes them.
        said = str(error).partition(": bytearray")[0]
        ending["failure"] = f"{request.base} closed the connection or does not speak HTTP: {said}"
    except OSError as error:
        ending["failure"] = f"no answer from {request.base}: {error.strerror or error}"
    return HttpResult(
        question=request, body=bytes(body), chunks=tuple(chunks), started=started,
        seconds=time.monotonic() - clock.started, via=via, **answer, **ending,
    )  # fmt: skip


def _headers(request: HttpRequest, more: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    headers = [
        ("Host", urlsplit(request.base).netloc),
        ("User-Agent", f"ddprobe/{__version__}"),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
    ]
    if request.body:
        headers.append(("Content-Length", str(len(request.body))))
    return [*headers, *more]


def _tls(address: str) -> ssl.SSLContext:
    """Certificates are verified, except on the host's own loopback: there SSH has already proved who answers."""
    context = ssl.create_default_context()
    if is_loopback(address):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class _TimedOut(Exception):
    pass


class _Interrupted(Exception):
    pass


class _Clock:
    """The deadline of the whole request, and the wish to stop earlier."""

    def __init__(self, seconds: float, cancelled: threading.Event) -> None:
        self.started = time.monotonic()
        self.deadline = self.started + seconds
        self.cancelled = cancelled

    def left(self, most: float) -> float:
        """How long the next wait may last."""
        if self.cancelled.is_set():
            raise _Interrupted
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise _TimedOut
        return min(most, left)


class _Backend(httpcore.NetworkBackend):
    """httpcore's way to the network: the session's `dial`."""

    def __init__(self, dial: Dial, clock: _Clock) -> None:
        self.dial = dial
        self.clock = clock
        self.sent_at = clock.started

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.NetworkStream:
        return _Wire(self.dial(host, port, self.clock.left(CONNECT_SECONDS)), self)


class _Wire(httpcore.NetworkStream):
    """httpcore's stream over ours; each wait is short, so that the deadline and `cancelled` are seen."""

    def __init__(self, stream: Stream, backend: _Backend) -> None:
        self.stream = stream
        self.backend = backend

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while True:
            self.stream.settimeout(self.backend.clock.left(_SLICE))
            try:
                return self.stream.recv(max_bytes)
            except TimeoutError:
                continue

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        while buffer:
            self.stream.settimeout(self.backend.clock.left(_SLICE))
            try:
                buffer = buffer[self.stream.send(buffer) :]
            except TimeoutError:
                continue
            except OSError as error:
                # httpcore then still reads the answer: a server may say no before the body is through.
                raise httpcore.WriteError(str(error)) from error
        self.backend.sent_at = time.monotonic()

    def close(self) -> None:
        self.stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        secured = TlsStream(self.stream, ssl_context, server_hostname)
        while True:
            secured.settimeout(self.backend.clock.left(_SLICE))
            try:
                secured.handshake()
                return _Wire(secured, self.backend)
            except TimeoutError:
                continue
            except BaseException:
                self.close()
                raise
