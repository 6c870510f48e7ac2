"""HTTP over a real SSH server, each way it can go: a channel, `ssh -W`, a plain socket, and curl on the host."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddprobe.model import Host, HttpRequest, HttpResult
from ddprobe.redact import Redactor
from ddprobe.sessions import framing, open_session
from ddprobe.sessions.base import Session
from tests.real import sshd as real
from tests.real.conftest import OpenSession, StartServer
from tests.real.httpserver import BIG, EVENTS, GAP, KEY, HttpServer, http_server

KEY_NAME = "DDPROBE_TEST_KEY"
ROADS = ("ssh", "openssh", "local", "curl")


@pytest.fixture(scope="module")
def web() -> Iterator[HttpServer]:
    with http_server() as running:
        yield running


@pytest.fixture(scope="module")
def no_forwarding(laptop: real.Laptop) -> Iterator[real.Server]:
    with real.server(laptop, allow_tcp_forwarding=False) as running:
        yield running


@pytest.fixture(scope="module")
def sessions(server: real.Server, no_forwarding: real.Server) -> Iterator[dict[str, Session]]:
    """One open session a road, with an API key in the environment."""
    hosts = {
        "ssh": server.host(api_key_env=KEY_NAME),
        "openssh": server.host(api_key_env=KEY_NAME, transport="openssh"),
        "local": Host(name="here", api_key_env=KEY_NAME, transport="local"),
        "curl": no_forwarding.host(api_key_env=KEY_NAME),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_NAME, KEY)
        opened: dict[str, Session] = {}
        try:
            for road, host in hosts.items():
                opened[road] = open_session(host, Redactor(), threading.Event())
            yield opened
        finally:
            for session in opened.values():
                session.close()


@pytest.fixture(params=ROADS)
def road(request: pytest.FixtureRequest, sessions: dict[str, Session]) -> Session:
    return sessions[request.param]


def _ask(session: Session, web: HttpServer, path: str, **changes: object) -> HttpResult:
    known = {"key": "q", "method": "GET", "path": path, "base": web.base, "timeout": 10.0}
    (result,) = session.ask([HttpRequest(**(known | changes))])  # type: ignore[arg-type]
    assert isinstance(result, HttpResult)
    return result


def test_an_answer_and_how_it_was_asked(road: Session, web: HttpServer) -> None:
    web.requests.clear()
    result = _ask(road, web, "/server_info", headers=(("Accept", "application/json"),))
    assert result.text == '{"version": "0.5.23", "avg": 1.5}'
    assert result.status == 200
    assert ("content-length", "33") in {(name.lower(), value) for name, value in result.headers}
    assert 0 < result.seconds < 10
    ((method, path, headers, body),) = web.requests
    assert (method, path, body) == ("GET", "/server_info", b"")
    assert headers["host"] == f"127.0.0.1:{web.port}"
    assert headers["accept"] == "application/json"
    assert headers["user-agent"].startswith("ddprobe/")
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("name", "via"), [("ssh", "channel"), ("openssh", "channel"), ("local", "direct"), ("curl", "curl")]
)
def test_the_report_says_which_way(
    name: str, via: str, sessions: dict[str, Session], web: HttpServer
) -> None:
    assert _ask(sessions[name], web, "/server_info").via == via
    said = [note for note in sessions[name].connection.notes if "curl" in note]
    assert bool(said) is (via == "curl")
    if said:
        assert said == [
            "the SSH server refuses forwarding (AllowTcpForwarding): HTTP requests were made by curl on the host"
        ]


def test_the_ssh_program_falls_back_to_curl_as_well(
    no_forwarding: real.Server, session: OpenSession, web: HttpServer
) -> None:
    opened = session(no_forwarding.host(transport="openssh"))
    for result in (_ask(opened, web, "/server_info"), _ask(opened, web, "/slots")):
        assert (result.via, result.trouble) == ("curl", "")
    assert len([note for note in opened.connection.notes if "curl" in note]) == 1


def test_every_byte_comes_back(road: Session, web: HttpServer) -> None:
    assert _ask(road, web, "/slots").body == BIG


def test_the_cap(road: Session, web: HttpServer) -> None:
    result = _ask(road, web, "/slots", cap=100_000)
    assert result.body == BIG[:100_000]
    assert result.truncated
    assert result.trouble == "cut at 100000 bytes"
    exact = _ask(road, web, "/slots", cap=len(BIG))
    assert exact.whole


@pytest.mark.parametrize("name", ["ssh", "openssh", "local"])
def test_a_stream_keeps_the_time_of_each_event(
    name: str, sessions: dict[str, Session], web: HttpServer
) -> None:
    result = _ask(sessions[name], web, "/metrics", stream=True)
    assert result.text == "".join(f"data: {number}\n\n" for number in range(EVENTS))
    assert [chunk.size for chunk in result.chunks] == [9] * EVENTS
    gaps = [after.at - before.at for before, after in zip(result.chunks, result.chunks[1:], strict=False)]
    assert all(GAP * 0.5 < gap < GAP + 0.5 for gap in gaps), gaps


def test_curl_tells_no_times_but_the_whole_stream(sessions: dict[str, Session], web: HttpServer) -> None:
    result = _ask(sessions["curl"], web, "/metrics", stream=True)
    assert result.text == "".join(f"data: {number}\n\n" for number in range(EVENTS))
    assert result.chunks == ()


def test_a_body_that_ends_with_the_connection(road: Session, web: HttpServer) -> None:
    assert _ask(road, web, "/version").text == "0.5.23"


def test_an_early_end_is_no_answer_but_what_came_is_kept(road: Session, web: HttpServer) -> None:
    result = _ask(road, web, "/load")
    assert result.status == 200
    assert result.body == b"0123456789"
    assert "closed the connection" in result.failure
    assert not result.whole


def test_no_answer_at_all(road: Session, web: HttpServer) -> None:
    result = _ask(road, web, "/ping")
    assert result.status is None
    assert "closed the connection" in result.failure


def test_something_else_than_http(road: Session, web: HttpServer) -> None:
    result = _ask(road, web, "/ready")
    assert result.status is None
    assert result.failure


def test_the_deadline(road: Session, web: HttpServer) -> None:
    began = time.monotonic()
    result = _ask(road, web, "/health", timeout=1.0)
    assert result.timed_out
    assert result.body == b"wait"
    assert 0.9 < time.monotonic() - began < 6
    assert _ask(road, web, "/server_info").whole


def test_a_redirect_is_not_followed(road: Session, web: HttpServer) -> None:
    web.requests.clear()
    result = _ask(road, web, "/props")
    assert (result.status, result.body) == (302, b"moved")
    assert "HTTP 302" in result.trouble
    assert len(web.requests) == 1


def test_the_key_is_on_no_command_line_and_in_no_answer(road: Session, web: HttpServer) -> None:
    seen: list[bytes] = []
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.05):
            seen.extend(_everything_visible())

    looking = threading.Thread(target=look)
    looking.start()
    result = _ask(road, web, "/health", timeout=0.5)
    done.set()
    looking.join()
    assert result.body == b"wait"
    assert KEY not in repr(result)
    assert seen
    assert not any(KEY.encode() in line for line in seen)


def _everything_visible() -> list[bytes]:
    """What any user of the host could see of its processes."""
    lines = []
    for path in real.of_processes("cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_bytes())
    return lines


def test_without_a_key(
    server: real.Server, session: OpenSession, web: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_NAME, raising=False)
    opened = session(server.host(api_key_env=KEY_NAME))
    result = _ask(opened, web, "/v1/models")
    assert result.trouble == 'HTTP 401: {"error": "Unauthorized"}'
    assert any(KEY_NAME in note for note in opened.connection.notes)
    assert _ask(opened, web, "/v1/models", statuses=(200, 401)).whole


def test_nobody_listens(road: Session) -> None:
    base = f"http://127.0.0.1:{real.free_port()}"
    (result,) = road.ask([HttpRequest(key="q", method="GET", path="/health", base=base, timeout=10)])
    assert isinstance(result, HttpResult)
    assert result.failure.startswith(f"nothing answers at {base} (connection refused)")


@pytest.mark.parametrize("address", ["0.0.0.0", "localhost"])
def test_addresses_that_mean_the_host_itself(address: str, road: Session, web: HttpServer) -> None:
    result = _ask(road, web, "/server_info", base=f"http://{address}:{web.port}")
    assert result.whole


def test_many_at_once_keep_their_order(road: Session, web: HttpServer) -> None:
    paths = ["/server_info", "/version", "/slots", "/metrics"] * 3
    questions = [
        HttpRequest(key=f"q{n}", method="GET", path=path, base=web.base, timeout=20)
        for n, path in enumerate(paths)
    ]
    results = road.ask(questions)
    assert [result.question for result in results] == questions
    assert all(result.whole for result in results)


def test_the_policy_comes_before_the_road(road: Session, web: HttpServer) -> None:
    web.requests.clear()
    assert "refused before it was sent" in _ask(road, web, "/flush_cache").failure
    assert web.requests == []


def test_proxies_of_the_environment_are_not_used(
    road: Session, web: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert _ask(road, web, "/server_info").whole


@pytest.mark.parametrize("name", ROADS)
def test_interrupted(
    name: str, server: real.Server, no_forwarding: real.Server, session: OpenSession, web: HttpServer
) -> None:
    cancelled = threading.Event()
    host = {
        "ssh": server.host(),
        "openssh": server.host(transport="openssh"),
        "local": Host(name="here", transport="local"),
        "curl": no_forwarding.host(),
    }[name]
    opened = session(host, cancelled)
    timer = threading.Timer(0.5, cancelled.set)
    timer.start()
    began = time.monotonic()
    result = _ask(opened, web, "/health", timeout=20)
    timer.join()
    assert result.failure == "interrupted"
    assert time.monotonic() - began < 2.5


def test_no_forwarding_and_no_curl(
    sshd: StartServer,
    session: OpenSession,
    web: HttpServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A host with every program but curl."""
    for program in Path("/usr/bin").iterdir():
        if program.name != "curl":
            (tmp_path / program.name).symlink_to(program)
    monkeypatch.setattr(framing, "PATH_PREFIX", str(tmp_path))
    started = sshd(allow_tcp_forwarding=False, settings=[f"SetEnv PATH={tmp_path}"])
    result = _ask(session(started.host()), web, "/server_info")
    assert result.failure == "the SSH server refuses forwarding, and the host has no curl to ask in its place"
    assert result.via == "curl"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    made = (folder / "cert.pem", folder / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "2", "-subj", "/CN=gpu1", "-out", made[0], "-keyout", made[1]],
        check=True, capture_output=True,
    )  # fmt: skip
    return made


def test_tls_on_the_hosts_own_loopback(road: Session, certificate: tuple[Path, Path]) -> None:
    with http_server(certificate) as web:
        assert _ask(road, web, "/slots").body == BIG
        assert _ask(road, web, "/metrics").whole


def test_tls_that_is_none(road: Session, web: HttpServer) -> None:
    result = _ask(road, web, "/server_info", base=f"https://127.0.0.1:{web.port}")
    assert result.failure.startswith(f"TLS with https://127.0.0.1:{web.port} failed")
