"""Host keys: which lines of known_hosts speak of a host (sshd(8), SSH_KNOWN_HOSTS), and what follows from them."""

from __future__ import annotations

import base64
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

import paramiko
import pytest

from ddprobe.errors import HostKeyChanged, HostKeyUnknown
from ddprobe.sessions.hostkeys import Checker, fingerprint, lookup
from ddprobe.sessions.sshconfig import Hop

ED = "ssh-ed25519"
RSA = "ssh-rsa"
ECDSA = "ecdsa-sha2-nistp256"
# A real key's public half, and its fingerprint as `ssh-keygen -lf` printed it.
REAL = "AAAAC3NzaC1lZDI1NTE5AAAAIJ7UNEuzgrJ3tqiZx1qji6bEgpZzyqZabPr4Fj6ZtIYr"
REAL_FINGERPRINT = "SHA256:rlyYuYetiwrh5EAtckby83zBEbQSjL50thNk2wfzQ4E"


def _line(names: str, blob: bytes = b"key-a", type_: str = ED) -> str:
    return f"{names} {type_} {base64.b64encode(blob).decode()}"


def _file(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "known_hosts"
    path.write_text("\n".join(lines) + "\n")
    return path


def _hop(*files: Path, **fields: Any) -> Hop:
    known: dict[str, Any] = {"name": "gpu1", "address": "10.0.0.1", "user": "me", "known_hosts_files": files}
    return Hop(**(known | fields))


# --- reading -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "name", "speaks"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.11", False),
        ("gpu1,10.0.0.1", "10.0.0.1", True),
        ("GPU1", "gpu1", True),
        ("gpu1", "GPU1", True),
        ("*.example.org", "gpu1.example.org", True),
        ("gpu?", "gpu1", True),
        ("gpu?", "gpu11", False),
        ("*.example.org,!gpu2.example.org", "gpu2.example.org", False),
        ("*.example.org,!gpu2.example.org", "gpu3.example.org", True),
        ("[10.0.0.1]:2222", "[10.0.0.1]:2222", True),
        ("[10.0.0.1]:2222", "10.0.0.1", False),
        ("[10.0.0.*]:2222", "[10.0.0.7]:2222", True),
        ("[1]", "1", False),
    ],
)
def test_host_fields(names: str, name: str, speaks: bool, tmp_path: Path) -> None:
    assert bool(lookup([_file(tmp_path, _line(names))], name)) is speaks


def test_lines_that_are_broken_are_passed_over(tmp_path: Path) -> None:
    path = _file(
        tmp_path,
        "# a comment",
        "",
        "gpu1",
        "gpu1 ssh-ed25519",
        "gpu1 ssh-ed25519 not*base64",
        "|1|bad|hash|more ssh-ed25519 AAAA",
        "|1|*|* ssh-ed25519 AAAA",
        "@unknown",
        "   " + _line("gpu1") + " a comment with words",
    )
    path.write_bytes(path.read_bytes() + b"\xff\xfe\x00 garbage\n")
    (key,) = lookup([path], "gpu1")
    assert (key.type, key.blob, key.place) == (ED, b"key-a", f"{path}:9")


def test_markers_and_missing_files(tmp_path: Path) -> None:
    path = _file(tmp_path, f"@cert-authority {_line('*.org')}", f"@revoked {_line('*', b'bad')}")
    keys = lookup([tmp_path / "missing", tmp_path, path], "a.org")
    assert [(key.marker, key.blob) for key in keys] == [("@cert-authority", b"key-a"), ("@revoked", b"bad")]


def test_names_hashed_by_ssh_keygen(tmp_path: Path) -> None:
    path = _file(tmp_path, f"gpu1 {ED} {REAL}", f"[10.0.0.1]:2222 {ED} {REAL}")
    subprocess.run(["ssh-keygen", "-H", "-f", path], check=True, capture_output=True)
    assert "gpu1" not in path.read_text()
    assert [key.place for key in lookup([path], "gpu1")] == [f"{path}:1"]
    assert [key.place for key in lookup([path], "[10.0.0.1]:2222")] == [f"{path}:2"]
    assert lookup([path], "gpu2") == ()


def test_the_fingerprint_is_sshs() -> None:
    assert fingerprint(base64.b64decode(REAL)) == REAL_FINGERPRINT


# --- judging -----------------------------------------------------------------------------------------------


def test_a_known_key_is_trusted(tmp_path: Path) -> None:
    checker = Checker(_hop(_file(tmp_path, _line("10.0.0.1"))))
    checker.check(ED, b"key-a")
    assert checker.fingerprint == f"{ED} {fingerprint(b'key-a')}"
    assert checker.notes == []


@pytest.mark.parametrize(
    ("names", "fields"),
    [
        ("[10.0.0.1]:2222", {"port": 2222}),
        ("10.0.0.1", {"port": 2222}),  # known for the address at large: ssh takes it too
        ("farm", {"host_key_alias": "farm", "port": 2222}),
        ("2001:db8::1", {"address": "2001:DB8::1"}),
    ],
)
def test_the_name_looked_up(names: str, fields: dict[str, Any], tmp_path: Path) -> None:
    Checker(_hop(_file(tmp_path, _line(names)), **fields)).check(ED, b"key-a")


def test_several_keys_of_one_type(tmp_path: Path) -> None:
    path = _file(tmp_path, _line("10.0.0.1", b"old"), _line("10.0.0.1", b"new"))
    Checker(_hop(path)).check(ED, b"new")
    Checker(_hop(path)).check(ED, b"old")


def test_the_global_file_counts(tmp_path: Path) -> None:
    Checker(_hop(global_known_hosts_files=(_file(tmp_path, _line("10.0.0.1")),))).check(ED, b"key-a")


def test_an_unknown_key_is_refused(tmp_path: Path) -> None:
    path = _file(tmp_path, _line("10.0.0.2"))
    with pytest.raises(HostKeyUnknown) as raised:
        Checker(_hop(path, port=2222)).check(ED, b"key-a")
    message = raised.value.message
    assert message == f"gpu1: its host key {ED} {fingerprint(b'key-a')} ([10.0.0.1]:2222) is not in {path}"
    assert "`ssh gpu1`" in raised.value.advice
    assert "`host_key: accept-new`" in raised.value.advice
    assert path.read_text() == _line("10.0.0.2") + "\n"


@pytest.mark.parametrize("accept_new", [False, True])
@pytest.mark.parametrize("offered", [ED, ECDSA])
def test_a_changed_key_is_refused_always(tmp_path: Path, accept_new: bool, offered: str) -> None:
    path = _file(tmp_path, "# first line", _line("10.0.0.1"))
    before = path.read_bytes()
    with pytest.raises(HostKeyChanged) as raised:
        Checker(_hop(path), accept_new).check(offered, b"other")
    message = raised.value.message
    assert f"{offered} {fingerprint(b'other')} is offered" in message
    assert f"{ED} {fingerprint(b'key-a')} is known from {path}:2" in message
    assert "ssh-keygen -R '10.0.0.1'" in raised.value.advice
    assert path.read_bytes() == before


@pytest.mark.parametrize("accept_new", [False, True])
@pytest.mark.parametrize("also_known", [False, True])
def test_a_revoked_key_is_refused_always(tmp_path: Path, accept_new: bool, also_known: bool) -> None:
    lines = [f"@revoked {_line('*')}", *([_line("10.0.0.1")] if also_known else [])]
    with pytest.raises(HostKeyChanged, match=r"marked as revoked at .*:1"):
        Checker(_hop(_file(tmp_path, *lines)), accept_new).check(ED, b"key-a")


def test_a_certified_host_needs_the_ssh_program(tmp_path: Path) -> None:
    path = _file(tmp_path, f"@cert-authority {_line('*', b'ca')}")
    with pytest.raises(HostKeyUnknown) as raised:
        Checker(_hop(path)).check(ED, b"key-a")
    assert "`transport: openssh`" in raised.value.advice


def test_a_key_of_a_type_that_cannot_be_checked_is_no_change(tmp_path: Path) -> None:
    path = _file(tmp_path, _line("10.0.0.1", b"x", "ssh-dss"))
    with pytest.raises(HostKeyUnknown):
        Checker(_hop(path)).check(ED, b"key-a")


# --- accept-new --------------------------------------------------------------------------------------------


def test_a_new_key_is_kept_and_then_known(tmp_path: Path) -> None:
    path = tmp_path / "dot-ssh" / "known_hosts"
    checker = Checker(_hop(path, port=2222), accept_new=True)
    checker.check(ED, b"key-a")
    assert path.read_text() == _line("[10.0.0.1]:2222") + "\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert "was never seen before and was accepted; it is now in" in checker.notes[0]
    Checker(_hop(path, port=2222)).check(ED, b"key-a")
    with pytest.raises(HostKeyChanged):
        Checker(_hop(path, port=2222), accept_new=True).check(ED, b"key-b")


def test_a_last_line_without_newline_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    path.write_text(_line("other"))
    Checker(_hop(path), accept_new=True).check(ED, b"key-b")
    assert path.read_text() == f"{_line('other')}\n{_line('10.0.0.1', b'key-b')}\n"


def test_names_are_hashed_where_ssh_would(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    Checker(_hop(path, hash_known_hosts=True), accept_new=True).check(ED, base64.b64decode(REAL))
    assert path.read_text().startswith("|1|")
    argv = ["ssh-keygen", "-F", "10.0.0.1", "-f", str(path)]
    assert REAL in subprocess.run(argv, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("files", [(), (Path("/proc/nowhere/known_hosts"),)])
def test_a_new_key_that_cannot_be_kept_is_said(files: tuple[Path, ...]) -> None:
    checker = Checker(_hop(*files), accept_new=True)
    checker.check(ED, b"key-a")
    assert "was accepted; " in checker.notes[0]
    assert "no file to keep it in" in checker.notes[0] or "could not be kept" in checker.notes[0]


# --- the negotiation ---------------------------------------------------------------------------------------


def _preferred(checker: Checker) -> tuple[str, ...]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        transport = checker.transport(ours, disabled_algorithms=None)
        try:
            return tuple(transport.get_security_options().key_types)
        finally:
            transport.close()


def test_known_types_are_asked_for_first(tmp_path: Path) -> None:
    plain = _preferred(Checker(_hop()))
    path = _file(tmp_path, _line("10.0.0.1", b"r", RSA), _line("10.0.0.1", b"e", ECDSA), _line("x", b"d"))
    preferred = _preferred(Checker(_hop(path)))
    assert preferred[:3] == ("rsa-sha2-512", "rsa-sha2-256", ECDSA)
    assert sorted(preferred) == sorted(plain)


def test_the_client_asks_about_every_key(tmp_path: Path) -> None:
    key = paramiko.ECDSAKey.generate(bits=256)
    path = _file(tmp_path, f"10.0.0.1 {key.get_name()} {key.get_base64()}")
    with paramiko.SSHClient() as client:
        checker = Checker(_hop(path))
        assert checker.prepare(client) == {"transport_factory": checker.transport}
        checker.missing_host_key(client, "10.0.0.1", key)
        with pytest.raises(HostKeyChanged):
            checker.missing_host_key(client, "10.0.0.1", paramiko.ECDSAKey.generate(bits=256))
