"""Host keys against real servers, over both transports: unknown, changed, new, hashed."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest

from ddprobe.errors import HostKeyChanged, HostKeyUnknown
from ddprobe.model import Command, Connection, Host
from ddprobe.redact import Redactor
from ddprobe.sessions import open_session
from tests.real import sshd as real
from tests.real.conftest import StartServer

pytestmark = pytest.mark.parametrize("transport", ["ssh", "openssh"])


def _connect(host: Host) -> Connection:
    session = open_session(host, Redactor(), threading.Event())
    try:
        (result,) = session.ask([Command(key="q", argv=("echo", "in"))])
        assert result.text == "in\n"
        return session.connection
    finally:
        session.close()


def _fingerprint(server: real.Server, name: str = "host_key.pub") -> str:
    argv = ["ssh-keygen", "-lf", str(server.folder / name)]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()[1]


def _offered(server: real.Server, kind: str = "ssh-ed25519") -> str:
    return f"{kind} {_fingerprint(server)}"


@pytest.fixture
def known_hosts(laptop: real.Laptop) -> Path:
    return laptop.known_hosts


def _lines_of(server: real.Server) -> list[str]:
    text = server.known_hosts.read_text()
    return [line for line in text.splitlines() if line.startswith(f"[127.0.0.1]:{server.port} ")]


def _public(key: Path) -> str:
    """The public half, as known_hosts holds it."""
    return " ".join(key.with_name(f"{key.name}.pub").read_text().split()[:2])


def _other_key(server: real.Server, kind: str = "ed25519") -> str:
    path = server.folder / f"other_{kind}"
    real.make_key(path, kind=kind)
    return _public(path)


def test_known(sshd: StartServer, transport: str) -> None:
    started = sshd()
    connection = _connect(started.host(transport=transport))
    assert connection.host_key == _offered(started)
    assert connection.notes == ()


def test_unknown_is_refused_with_its_fingerprint(sshd: StartServer, transport: str) -> None:
    started = sshd(in_known_hosts=False)
    with pytest.raises(HostKeyUnknown) as raised:
        _connect(started.host(transport=transport))
    assert _fingerprint(started) in raised.value.message
    assert "\n" not in raised.value.message
    assert "host_key: accept-new" in raised.value.advice
    assert _lines_of(started) == []
    assert "Accepted" not in started.log()


@pytest.mark.parametrize("rule", ["strict", "accept-new"])
def test_changed_is_refused_always(sshd: StartServer, transport: str, rule: str, known_hosts: Path) -> None:
    started = sshd(in_known_hosts=False)
    with known_hosts.open("a") as file:
        file.write(f"[127.0.0.1]:{started.port} {_other_key(started)}\n")
    line = len(known_hosts.read_text().splitlines())
    before = known_hosts.read_bytes()
    with pytest.raises(HostKeyChanged) as raised:
        _connect(started.host(transport=transport, host_key=rule))
    assert f"{known_hosts}:{line}" in raised.value.message
    assert _fingerprint(started) in raised.value.message
    assert "ssh-keygen -R" in raised.value.advice
    assert known_hosts.read_bytes() == before
    assert "Accepted" not in started.log()


def test_a_new_one_is_kept_and_another_then_refused(
    sshd: StartServer, transport: str, known_hosts: Path
) -> None:
    started = sshd(in_known_hosts=False)
    host = started.host(transport=transport, host_key="accept-new")
    first = _connect(host)
    assert first.host_key == _offered(started)
    (note,) = first.notes
    assert "was never seen before and was accepted" in note
    public = _public(started.folder / "host_key")
    assert _lines_of(started) == [f"[127.0.0.1]:{started.port} {public}"]
    assert _connect(host).notes == ()
    assert _connect(started.host(transport=transport)).notes == ()
    known_hosts.write_text(known_hosts.read_text().replace(public, _other_key(started)))
    with pytest.raises(HostKeyChanged):
        _connect(host)


def test_hashed_names(sshd: StartServer, transport: str, known_hosts: Path) -> None:
    started = sshd()
    subprocess.run(["ssh-keygen", "-H", "-f", known_hosts], check=True, capture_output=True)
    known_hosts.with_name("known_hosts.old").unlink()
    assert _lines_of(started) == []
    assert _connect(started.host(transport=transport)).host_key == _offered(started)


def test_the_type_of_key_that_is_known_is_asked_for(
    sshd: StartServer, transport: str, known_hosts: Path, tmp_path: Path
) -> None:
    """The server has two keys and only its ECDSA one is known: no reason to complain of the other."""
    real.make_key(tmp_path / "ecdsa", kind="ecdsa")
    public = _public(tmp_path / "ecdsa")
    started = sshd(in_known_hosts=False, settings=[f"HostKey {tmp_path / 'ecdsa'}"])
    with known_hosts.open("a") as file:
        file.write(f"[127.0.0.1]:{started.port} {public}\n")
    assert _connect(started.host(transport=transport)).host_key.startswith("ecdsa-sha2-nistp256 SHA256:")


def test_revoked(sshd: StartServer, transport: str, known_hosts: Path) -> None:
    started = sshd()
    public = _public(started.folder / "host_key")
    before = known_hosts.read_text()
    known_hosts.write_text(f"@revoked * {public}\n{before}")
    try:
        with pytest.raises(HostKeyChanged, match="revoked"):
            _connect(started.host(transport=transport, host_key="accept-new"))
    finally:
        known_hosts.write_text(before)
    assert "Accepted" not in started.log()


def test_lines_that_others_stumble_over(sshd: StartServer, transport: str, known_hosts: Path) -> None:
    started = sshd()
    before = known_hosts.read_text()
    known_hosts.write_text(f"@cert-authority *.example.org ssh-rsa AAAA\nbroken\n# words\n\n{before}")
    try:
        assert _connect(started.host(transport=transport)).host_key == _offered(started)
    finally:
        known_hosts.write_text(before)
