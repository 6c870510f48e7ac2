"""HTTP by curl: what goes to it on stdin, and what its output and exit code mean."""

from __future__ import annotations

import subprocess

import pytest

from ddprobe import __version__, readonly
from ddprobe.errors import Refused
from ddprobe.model import CommandResult, HttpRequest, HttpResult
from ddprobe.sessions.address import is_loopback, seen_from_host
from ddprobe.sessions.curl import curl_command, curl_result
from tests.real.httpserver import KEY, http_server

BASE = "http://127.0.0.1:30000"


def _request(**changes: object) -> HttpRequest:
    known = {"key": "q", "method": "GET", "path": "/health", "base": BASE}
    return HttpRequest(**(known | changes))  # type: ignore[arg-type]


def _answer(request: HttpRequest, **fields: object) -> HttpResult:
    known = {"question": curl_command(request, (), 5), "exit_code": 0}
    return curl_result(request, CommandResult(**(known | fields)))  # type: ignore[arg-type]


def test_all_of_the_request_is_on_stdin() -> None:
    request = _request(headers=(("Accept", 'a "b"\\c'),), stream=True, timeout=7.0, cap=1000)
    command = curl_command(request, (*request.headers, ("Authorization", f"Bearer {KEY}")), 7.0)
    assert command.argv == ("curl", "-q", "-sS", "--config", "-")
    assert command.stdin.decode().splitlines()[:3] == [
        'url = "http://127.0.0.1:30000/health"',
        'request = "GET"',
        f'user-agent = "ddprobe/{__version__}"',
    ]
    lines = set(command.stdin.decode().splitlines())
    assert {'noproxy = "*"', "max-time = 7.000", "include", "globoff", "no-buffer"} <= lines
    assert 'header = "Accept: a \\"b\\"\\\\c"' in lines
    assert f'header = "Authorization: Bearer {KEY}"' in lines
    assert not any(line.startswith(("location", "insecure", "output")) for line in lines)
    assert command.cap > 1000
    assert command.timeout == 9.0


BODIES = {
    "json": b'{"text": "caf\xc3\xa9 \\n \\" \\\\ \\u0000", "n": 1}',
    "an @ does not read a file": b"@/etc/hostname",
    "controls": b'a\nb\r\nc\td"e\\f\x01\x7f\x0b\x0c end ',
    "not UTF-8": bytes(range(1, 256)),
    "long": b'{"prompt": "' + b"the cat sat on the mat " * 3500 + b'"}',
    "a prompt of 128k ids": b'{"input_ids":[' + b"151669," * 131071 + b"7]}",
    "backslashes where it is cut": b'{"text":"' + b"\\" * 150_000 + b'"}',
    "an @ where it is cut": b'{"text":"' + b"@" * 89_991 + b'","more":"' + b"x@" * 50_000 + b'"}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_arrives_byte_for_byte(body: bytes) -> None:
    with http_server() as web:
        request = _request(method="POST", path="/echo", base=web.base, body=body)
        command = curl_command(request, (("Content-Type", "application/json"),), 10)
        done = subprocess.run(
            [str(word) for word in command.argv], input=command.stdin, capture_output=True, check=True
        )
        result = curl_result(request, CommandResult(question=command, exit_code=0, stdout=done.stdout))
        assert result.body == body
        ((method, _, headers, received),) = web.requests
    assert (method, received) == ("POST", body)
    assert headers["content-type"] == "application/json"
    assert "expect" not in headers


def test_a_nul_cannot_travel_and_the_policy_says_so() -> None:
    with pytest.raises(Refused, match="NUL byte"):
        readonly.check(_request(body=b"a\0b"))


@pytest.mark.parametrize("base", ["http://127.0.0.1:99999", "http://127.0.0.1:0", "http://[::::]:80"])
def test_a_base_that_leads_nowhere_is_refused(base: str) -> None:
    with pytest.raises(Refused, match="is not scheme://address:port"):
        readonly.check(_request(base=base))


def test_a_body_that_curl_does_not_take() -> None:
    result = _answer(_request(body=b"x" * 200_000), exit_code=26, stderr=b"curl: option --config: error\n")
    assert result.failure == (
        "the SSH server refuses forwarding, and the host's curl (older than 7.82) takes no body of 200000 bytes"
    )


def test_head_and_body() -> None:
    stdout = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: 1\r\nB:  two: 2 \r\n\r\nbody\r\n\r\nmore"
    result = _answer(_request(), stdout=stdout, seconds=0.5)
    assert result.whole
    assert (result.status, result.headers) == (200, (("A", "1"), ("B", "two: 2")))
    assert result.body == b"body\r\n\r\nmore"
    assert (result.via, result.chunks, result.seconds) == ("curl", (), 0.5)


@pytest.mark.parametrize(
    ("code", "stderr", "failure"),
    [
        (
            7,
            b"curl: (7) Failed to connect",
            f"nothing answers at {BASE} (connection refused): curl: (7) Failed to",
        ),
        (
            127,
            b"sh: 1: curl: not found",
            "the SSH server refuses forwarding, and the host has no curl to ask",
        ),
        (126, b"denied", "the SSH server refuses forwarding, and curl cannot be run on the host"),
        (52, b"", f"{BASE} closed the connection without an answer"),
        (56, b"curl: (56) Recv failure", f"{BASE} reset the connection: curl: (56) Recv failure"),
        (99, b"", "curl on the host failed (99)"),
        (None, b"", "curl on the host failed (None)"),
    ],
)
def test_what_curl_says_of_a_failure(code: int | None, stderr: bytes, failure: str) -> None:
    result = _answer(_request(), exit_code=code, stderr=stderr)
    assert result.failure.startswith(failure)
    assert not result.whole


def test_curls_own_deadline_and_ours() -> None:
    head = b"HTTP/1.1 200 OK\r\n\r\npart"
    for fields in ({"exit_code": 28}, {"timed_out": True, "exit_code": 143}):
        result = _answer(_request(), stdout=head, **fields)
        assert (result.timed_out, result.failure, result.body) == (True, "", b"part")


def test_the_cap_is_the_bodys() -> None:
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    assert _answer(_request(cap=4), stdout=head + b"1234").whole
    over = _answer(_request(cap=4), stdout=head + b"12345")
    assert (over.truncated, over.body) == (True, b"1234")
    cut = _answer(_request(cap=4), stdout=head + b"123456", truncated=True, exit_code=23)
    assert (cut.truncated, cut.failure) == (True, "")


def test_the_road_failed() -> None:
    assert _answer(_request(), exit_code=None, failure="the road failed").failure == "the road failed"


def test_no_http() -> None:
    assert _answer(_request(), stdout=b"nonsense").failure == f"what {BASE} answered is not HTTP"


@pytest.mark.parametrize(
    ("base", "seen"),
    [
        ("http://127.0.0.1:30000", ("http", "127.0.0.1", 30000)),
        ("http://0.0.0.0:30000", ("http", "127.0.0.1", 30000)),
        ("http://[::]:30000", ("http", "::1", 30000)),
        ("http://[::1]:8000", ("http", "::1", 8000)),
        ("https://gpu1", ("https", "gpu1", 443)),
        ("http://10.0.0.1", ("http", "10.0.0.1", 80)),
    ],
)
def test_where_a_base_points(base: str, seen: tuple[str, str, int]) -> None:
    assert seen_from_host(base) == seen


def test_loopback() -> None:
    assert [is_loopback(a) for a in ("127.0.0.9", "::1", "localhost")] == [True] * 3
    assert [is_loopback(a) for a in ("10.0.0.1", "gpu1", "0.0.0.0")] == [False] * 3


def test_brackets_in_the_url() -> None:
    assert b'url = "http://[::1]:8000/health"' in curl_command(_request(base="http://[::]:8000"), (), 1).stdin
