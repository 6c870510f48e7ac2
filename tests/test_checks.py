"""What `doctor` says of a ssh."""

from __future__ import annotations

import json
import shutil
import subprocess
import types
from pathlib import Path

import pytest

from ddprobe.cli import app
from ddprobe.cli.checks import place, ssh
from ddprobe.cli.checks.check import Check
from ddprobe.model import Host, Outcome

KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".ssh").mkdir()
    monkeypatch.setattr(ssh, "SYSTEM_KNOWN_HOSTS", tmp_path / "no-such-file")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("SSH_AUTH_SOCK", "DDPROBE_HOSTS", "DDPROBE_REPORTS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def make_key(path: Path, passphrase: str = "", form: str = "RFC4716") -> Path:
    words = [
        "ssh-keygen",
        "-q",
        "-t",
        "ecdsa",
        "-N",
        passphrase,
        "-f",
        str(path),
        *(["-m", form] if form == "PEM" else []),
    ]
    subprocess.run(words, check=True)
    return path


def test_a_key_that_others_can_read_fails(home: Path) -> None:
    path = make_key(home / ".ssh" / "id_ecdsa")
    path.chmod(0o644)
    assert list(ssh.keys(home / ".ssh")) == [
        Check(
            Outcome.FAIL,
            "key",
            f"{path} has mode 0644: ssh refuses a key that others can read",
            f"chmod 600 {path}",
        )
    ]


@pytest.mark.parametrize("form", ["RFC4716", "PEM"])
@pytest.mark.parametrize(
    ("passphrase", "said"), [("", "without a passphrase"), ("secret", "with a passphrase")]
)
def test_a_key_says_whether_it_wants_a_passphrase(home: Path, form: str, passphrase: str, said: str) -> None:
    path = make_key(home / ".ssh" / "id_ecdsa", passphrase, form)
    assert ssh.key(path, "key") == Check(Outcome.PASS, "key", f"{path}, mode 0600, {said}")


def test_a_hardware_key_needs_openssh(home: Path) -> None:
    path = home / ".ssh" / "id_ed25519_sk"
    path.touch(0o600)
    path.with_name("id_ed25519_sk.pub").write_text("sk-ssh-ed25519@openssh.com AAAA")
    [check] = ssh.keys(home / ".ssh")
    assert (check.outcome, check.advice) == (Outcome.WARN, "set `transport: openssh` for its hosts")


def test_a_key_that_is_named_and_gone_fails(home: Path) -> None:
    check = ssh.key(home / "gone", "gpu1")
    assert (check.outcome, check.says) == (Outcome.FAIL, f"{home}/gone: No such file or directory")


def test_no_keys_is_no_mistake(home: Path) -> None:
    [check] = ssh.keys(home / ".ssh")
    assert check.outcome is Outcome.INFO


def test_known_hosts_lines_that_hold_no_key_are_counted(home: Path) -> None:
    path = home / ".ssh" / "known_hosts"
    assert ssh.known_hosts(path).outcome is Outcome.WARN
    path.write_text(f"# a comment\n\ngpu1 ssh-ed25519 {KEY}\n@cert-authority *.lab ssh-ed25519 {KEY} ca\n")
    assert ssh.known_hosts(path) == Check(Outcome.PASS, "known_hosts", f"{path}, 2 keys")
    path.write_text(f"gpu1 ssh-ed25519\ngpu1 ssh-ed25519 {KEY}\ngpu2 ssh-ed25519 not-base64\n@revoked\n")
    assert "no host key in line 1, 3, 4;" in ssh.known_hosts(path).says


def test_ssh_config_that_ssh_refuses_fails(home: Path) -> None:
    path = home / ".ssh" / "config"
    assert ssh.ssh_config(path).outcome is Outcome.PASS
    path.write_text("Host gpu1\n  HostNmae 10.0.0.5\n")
    check = ssh.ssh_config(path)
    assert check.outcome is Outcome.FAIL
    assert "hostnmae" in check.says
    path.write_text("Include other\nHost gpu1\n  HostName 10.0.0.5\n")
    assert ssh.ssh_config(path).says.endswith("include in it need the ssh program, which is here")


def test_without_an_ssh_program_include_and_match_are_a_warning(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    path = home / ".ssh" / "config"
    path.write_text("Match host gpu1\n  User me\ninclude other\n")
    check = ssh.ssh_config(path)
    assert (check.outcome, "include and match" in check.says) == (Outcome.WARN, True)
    assert ssh.ssh_program().outcome is Outcome.WARN


def test_an_agent_that_is_not_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ssh.agent().outcome is Outcome.INFO
    monkeypatch.setenv("SSH_AUTH_SOCK", str(home / "socket"))
    check = ssh.agent()
    assert (check.outcome, check.says) == (
        Outcome.WARN,
        f"$SSH_AUTH_SOCK is {home}/socket, and nobody answers there",
    )


def test_an_agent_is_asked_for_fingerprints_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/agent")
    said = "256 SHA256:abc me@laptop (ED25519)\n3072 SHA256:def (none) (RSA)\n"
    monkeypatch.setattr(ssh, "_ask", lambda *argv: subprocess.CompletedProcess(argv, 0, said, ""))
    assert ssh.agent() == Check(Outcome.PASS, "agent", "2 keys: SHA256:abc (ED25519); SHA256:def (RSA)")
    monkeypatch.setattr(ssh, "_ask", lambda *argv: subprocess.CompletedProcess(argv, 1, "", ""))
    assert ssh.agent().says == "answers, but holds no key"


def test_what_a_host_of_the_file_lacks_here(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    known = home / "known"
    host = Host(
        name="gpu1", address="gpu1.invalid", port=2222, user="me", identity_file=str(home / "gone"),
        api_key_env="NO_SUCH_KEY", known_hosts=str(known), jump="none",
    )  # fmt: skip
    said = [(check.outcome, check.says) for check in ssh.host_prerequisites(host)]
    assert said == [
        (Outcome.WARN, "$NO_SUCH_KEY is not set: its server will refuse to answer"),
        (Outcome.FAIL, f"{home}/gone: No such file or directory"),
        (Outcome.WARN, "no host key of [gpu1.invalid]:2222 is known: strict checking will refuse it"),
    ]
    known.write_text(f"[gpu1.invalid]:2222 ssh-ed25519 {KEY}\n")
    monkeypatch.setenv("NO_SUCH_KEY", "x")
    make_key(home / "gone")
    assert list(ssh.host_prerequisites(host)) == []


def test_reports_that_cannot_be_written_fail(home: Path) -> None:
    (home / "file").write_text("")
    assert place.reports_folder(home / "file" / "reports").outcome is Outcome.FAIL
    assert place.reports_folder(home / "new" / "reports").outcome in (Outcome.PASS, Outcome.WARN)
    assert not (home / "new").exists()
    assert place.reports_folder(home / "file").says.endswith(f"cannot be written: {home / 'file'} is a file")


def test_room_is_told_in_a_unit_that_can_be_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def room(total: int, free: int) -> None:
        usage = types.SimpleNamespace(total=total, free=free)
        monkeypatch.setattr("ddprobe.cli.checks.place.shutil.disk_usage", lambda _: usage)

    room(2**40, 3 * 2**29)
    assert place.reports_folder(home) == Check(Outcome.PASS, "reports", f"{home}, 1.5 GiB free")
    room(2**40, 150 * 2**20)
    assert place.reports_folder(home).says == f"{home}: 150 MiB free; a report may need more"
    room(0, 0)
    assert place.reports_folder(home).outcome is Outcome.FAIL


def test_one_is_not_said_as_several(home: Path) -> None:
    (home / "known").write_text(f"gpu1 ssh-ed25519 {KEY}\n")
    assert ssh.known_hosts(home / "known").says.endswith(", 1 key")
    (home / "hosts.yaml").write_text("hosts: {a: }\n")
    assert place.hosts(str(home / "hosts.yaml"))[1].says.endswith(", 1 host")


def test_the_command_fails_on_a_wrong_hosts_file(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ddprobe.sessions.sshconfig.home", lambda: home)
    Path("hosts.yaml").write_text("hosts: {a: {prot: 1}}\n")
    assert app.run(["doctor", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["outcome"] == "fail"
    [check] = [check for check in document["checks"] if check["subject"] == "hosts file"]
    assert check["says"].startswith("hosts.yaml:1:13: unknown key 'prot' (did you mean 'port'?)")
    assert app.run(["doctor", "--fail-on", "never"]) == 0
    assert "unknown key 'prot'" in capsys.readouterr().out
