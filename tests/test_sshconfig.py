"""The way to a host, as `ssh` itself would take it: expectations written by hand from ssh_config(5)."""

from __future__ import annotations

import getpass
import os
import pwd
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ddprobe.errors import Unreachable, UsageError
from ddprobe.model import Host
from ddprobe.sessions import sshconfig
from ddprobe.sessions.sshconfig import Hop, Route, resolve

ME = getpass.getuser()
HOME = Path(pwd.getpwuid(os.getuid()).pw_dir)


@dataclass(frozen=True)
class Case:
    """An ssh_config, a host of the inventory, and the servers on the way as user@address:port."""

    config: str
    way: str
    host: dict[str, Any] = field(default_factory=dict)
    only_ssh: bool = False
    """What Paramiko's reader cannot do."""


CASES = {
    "nothing known": Case("", f"{ME}@gpu1:22"),
    "alias": Case("Host gpu1\n HostName 10.0.0.1\n User alice\n Port 2200\n", "alice@10.0.0.1:2200"),
    "the first value counts": Case(
        "Host gpu*\n User first\nHost gpu1\n User second\n Port 23\nHost *\n Port 24\n", "first@gpu1:23"
    ),
    "equals signs and quotes": Case('Host gpu1\n HostName="10.0.0.1"\n User = bob\n', "bob@10.0.0.1:22"),
    "negated pattern": Case("Host * !gpu1\n User no\nHost gpu1\n User yes\n", "yes@gpu1:22"),
    "%h in HostName": Case("Host gpu1\n HostName %h.cluster.example\n", f"{ME}@gpu1.cluster.example:22"),
    "Match host": Case(
        "Host gpu1\n HostName 10.0.0.1\nMatch host 10.0.0.1\n User matched\n", "matched@10.0.0.1:22"
    ),
    "Match originalhost": Case(
        "Match originalhost gpu1\n HostName 10.0.0.9\n", f"{ME}@10.0.0.9:22"
    ),
    "Match exec": Case("Match exec true\n User ran\nMatch exec false\n Port 1\n", "ran@gpu1:22", only_ssh=True),
    "inventory above ssh_config": Case(
        "Host 10.0.0.5\n User alice\n Port 2200\n",
        "bob@10.0.0.5:2201",
        {"address": "10.0.0.5", "user": "bob", "port": 2201},
    ),
    "an alias as address": Case("Host a\n HostName 10.0.0.7\n", f"{ME}@10.0.0.7:22", {"address": "a"}),
    "user in the destination": Case(
        "Host gpu1\n User alice\n HostName 10.0.0.1\n", "carol@10.0.0.1:22", {"name": "carol@gpu1"}
    ),
    "an ssh URL": Case("Host gpu1\n Port 1\n", "dan@gpu1:44", {"name": "ssh://dan@gpu1:44"}),
    "IPv6": Case("", f"{ME}@fe80::1:22", {"address": "fe80::1"}),
    "ProxyJump": Case(
        "Host gpu1\n ProxyJump bastion\nHost bastion\n HostName 192.0.2.1\n User hop\n Port 2222\n",
        f"hop@192.0.2.1:2222 {ME}@gpu1:22",
    ),
    "ProxyJump over two, with user and port": Case(
        "Host gpu1\n ProxyJump a@one:2201,two\nHost two\n User b\n", f"a@one:2201 b@two:22 {ME}@gpu1:22"
    ),
    "ProxyJump through an IPv6 bastion": Case(
        "Host gpu1\n ProxyJump a@[2001:db8::1]:2201\n", f"a@2001:db8::1:2201 {ME}@gpu1:22"
    ),
    "ProxyJump to an IPv4 address with port": Case(
        "Host gpu1\n ProxyJump 192.0.2.1:2201\n", f"{ME}@192.0.2.1:2201 {ME}@gpu1:22"
    ),
    "a bastion behind a bastion": Case(
        "Host gpu1\n ProxyJump inner\nHost inner\n ProxyJump outer\n",
        f"{ME}@outer:22 {ME}@inner:22 {ME}@gpu1:22",
    ),
    "the second hop's own jump does not count": Case(
        "Host gpu1\n ProxyJump one,two\nHost two\n ProxyJump elsewhere\n",
        f"{ME}@one:22 {ME}@two:22 {ME}@gpu1:22",
    ),
    "ProxyJump none": Case(
        "Host gpu1\n ProxyJump none\nHost *\n ProxyJump bastion\n ProxyCommand nc %h %p\n", f"{ME}@gpu1:22"
    ),
    "jump of the inventory above ProxyJump": Case(
        "Host gpu1\n ProxyJump bastion\n", f"x@other:2200 {ME}@gpu1:22", {"jump": "x@other:2200"}
    ),
    "jump none of the inventory": Case("Host gpu1\n ProxyJump bastion\n", f"{ME}@gpu1:22", {"jump": "none"}),
    "Include": Case("Include INCLUDED\n", "included@10.9.9.9:22", only_ssh=True),
}  # fmt: skip


def _way(route: Route) -> str:
    return " ".join(f"{hop.user}@{hop.address}:{hop.port}" for hop in route.hops)


def _config(tmp_path: Path, text: str) -> Path:
    included = tmp_path / "included"
    included.write_text("Host gpu1\n HostName 10.9.9.9\n User included\n")
    path = tmp_path / "config"
    path.write_text(text.replace("INCLUDED", str(included)))
    return path


@pytest.fixture
def no_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sshconfig, "ssh_program", lambda: None)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_way_by_ssh(case: Case, tmp_path: Path) -> None:
    config = _config(tmp_path, case.config)
    route = resolve(Host(**{"name": "gpu1", **case.host}), config)
    assert _way(route) == case.way


@pytest.mark.usefixtures("no_ssh")
@pytest.mark.parametrize(
    "case", [c for c in CASES.values() if not c.only_ssh], ids=[n for n, c in CASES.items() if not c.only_ssh]
)
def test_the_way_without_ssh(case: Case, tmp_path: Path) -> None:
    route = resolve(Host(**{"name": "gpu1", **case.host}), _config(tmp_path, case.config))
    assert _way(route) == case.way


@pytest.mark.parametrize("config", [case.config for case in CASES.values()], ids=CASES.keys())
def test_the_same_as_the_ssh_program_says(config: str, tmp_path: Path) -> None:
    path = _config(tmp_path, config)
    said = subprocess.run(
        ["ssh", "-F", path, "-G", "gpu1"], capture_output=True, text=True, check=True
    ).stdout
    words = dict(line.split(" ", 1) for line in said.splitlines() if " " in line)
    last = resolve(Host(name="gpu1"), path).last
    assert (last.address, last.user, str(last.port)) == (words["hostname"], words["user"], words["port"])


FULL = """
Host gpu1
  HostName 10.0.0.1
  User alice
  IdentityFile ~/.ssh/id_%h_%r
  IdentityFile "/keys/with blank/%n.key"
  IdentitiesOnly yes
  IdentityAgent /run/user/%i/agent
  UserKnownHostsFile ~/.ssh/known_%n /other/known
  GlobalKnownHostsFile /etc/known
  HostKeyAlias gpu-one
  HashKnownHosts yes
  ConnectTimeout 7
  ProxyCommand nc -x "a b" %h %p | cat 100%%
"""


def _hop(config: str, tmp_path: Path, **host: Any) -> Hop:
    return resolve(Host(**{"name": "gpu1", **host}), _config(tmp_path, config)).last


def test_everything_an_entry_can_say(tmp_path: Path) -> None:
    assert _hop(FULL, tmp_path) == Hop(
        name="gpu1",
        address="10.0.0.1",
        user="alice",
        port=22,
        identity_files=(HOME / ".ssh/id_10.0.0.1_alice", Path("/keys/with blank/gpu1.key")),
        identities_only=True,
        identity_agent=f"/run/user/{os.getuid()}/agent",
        known_hosts_files=(HOME / ".ssh/known_gpu1", Path("/other/known")),
        global_known_hosts_files=(Path("/etc/known"),),
        host_key_alias="gpu-one",
        hash_known_hosts=True,
        proxy_command='nc -x "a b" 10.0.0.1 22 | cat 100%',
        connect_timeout=7.0,
    )


@pytest.mark.usefixtures("no_ssh")
def test_everything_paramikos_reader_can_tell(tmp_path: Path) -> None:
    simpler = FULL.replace("100%%", "")
    hop = _hop(simpler, tmp_path)
    assert hop.identity_files == (HOME / ".ssh/id_10.0.0.1_alice", Path("/keys/with blank/gpu1.key"))
    assert hop.known_hosts_files == (HOME / ".ssh/known_gpu1", Path("/other/known"))
    assert (hop.identities_only, hop.host_key_alias, hop.hash_known_hosts) == (True, "gpu-one", True)
    assert hop.proxy_command == 'nc -x "a b" 10.0.0.1 22 | cat'
    assert hop.connect_timeout == 7.0


@pytest.mark.parametrize("with_ssh", [True, False])
def test_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_ssh: bool) -> None:
    if not with_ssh:
        monkeypatch.setattr(sshconfig, "ssh_program", lambda: None)
    hop = _hop("", tmp_path)
    assert HOME / ".ssh/id_ed25519" in hop.identity_files
    assert hop.known_hosts_files[0] == HOME / ".ssh/known_hosts"
    assert hop.global_known_hosts_files[0] == Path("/etc/ssh/ssh_known_hosts")
    assert (hop.identity_agent, hop.identities_only, hop.connect_timeout) == (None, False, 10.0)
    assert (hop.proxy_command, hop.host_key_alias, hop.certificate_files) == ("", "", ())


@pytest.mark.parametrize("with_ssh", [True, False])
def test_the_inventorys_key_comes_first_and_is_taken_literally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_ssh: bool
) -> None:
    if not with_ssh:
        monkeypatch.setattr(sshconfig, "ssh_program", lambda: None)
    hop = _hop("Host gpu1\n IdentityFile /second\n", tmp_path, identity_file="/keys/my 50%r key")
    assert hop.identity_files == (Path("/keys/my 50%r key"), Path("/second"))


@pytest.mark.parametrize(
    ("value", "agent"),
    [
        ("none", "none"),
        ("SSH_AUTH_SOCK", None),
        ("$OTHER_AGENT", "/run/other"),
        ("~/agent", str(HOME / "agent")),
    ],
)
def test_agents(value: str, agent: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_AGENT", "/run/other")
    assert _hop(f"Host *\n IdentityAgent {value}\n", tmp_path).identity_agent == agent


def test_no_known_hosts_file(tmp_path: Path) -> None:
    assert _hop("Host *\n UserKnownHostsFile none\n", tmp_path).known_hosts_files == ()


def test_connect_timeout_of_the_inventory_counts_more(tmp_path: Path) -> None:
    assert _hop("Host *\n ConnectTimeout 7\n", tmp_path, connect_timeout=3.0).connect_timeout == 3.0


NOTES = {
    "strict": ("StrictHostKeyChecking no", "`StrictHostKeyChecking no`, ddprobe stays strict"),
    "accept-new": ("StrictHostKeyChecking accept-new", "set `host_key: accept-new`"),
    "token": ("PKCS11Provider /usr/lib/token.so", "a PKCS#11 token cannot be used: set `transport: openssh`"),
    "certificate": ("CertificateFile /far/away-cert.pub", "/far/away-cert.pub lies beside no identity file"),
    "gssapi": (
        "PreferredAuthentications gssapi-with-mic",
        "`PreferredAuthentications gssapi-with-mic` cannot",
    ),
    "proxy": ("ProxyCommand corporate %h", "the ProxyCommand `corporate gpu1`; if it fails, set `transport:"),
    "revoked": ("RevokedHostKeys /etc/krl", "`RevokedHostKeys` is not looked at"),
}


@pytest.mark.parametrize(("line", "said"), NOTES.values(), ids=NOTES.keys())
def test_what_cannot_be_honoured_is_said(line: str, said: str, tmp_path: Path) -> None:
    (note,) = resolve(Host(name="gpu1"), _config(tmp_path, f"Host *\n {line}\n")).notes
    assert note.startswith("gpu1: ")
    assert said in note


def test_nothing_to_say_about_a_plain_entry(tmp_path: Path) -> None:
    config = "Host *\n IdentityFile /k\n CertificateFile /k-cert.pub\n GSSAPIAuthentication yes\n"
    assert resolve(Host(name="gpu1"), _config(tmp_path, config)).notes == ()


def test_openssh_honours_all_of_it_but_the_host_key(tmp_path: Path) -> None:
    config = "Host *\n StrictHostKeyChecking no\n ProxyCommand x\n PKCS11Provider /t\n CertificateFile /c\n"
    notes = resolve(Host(name="gpu1", transport="openssh"), _config(tmp_path, config)).notes
    assert len(notes) == 1
    assert "StrictHostKeyChecking" in notes[0]


def test_a_hardware_key_is_named(tmp_path: Path) -> None:
    key = tmp_path / "id_mine"
    key.write_text("private")
    key.with_name("id_mine.pub").write_text("sk-ssh-ed25519@openssh.com AAAA me\n")
    (note,) = resolve(Host(name="gpu1", identity_file=str(key)), _config(tmp_path, "")).notes
    assert "is a hardware key" in note


@pytest.mark.usefixtures("no_ssh")
def test_what_paramikos_reader_passes_over_is_said(tmp_path: Path) -> None:
    config = "Include ~/.ssh/more\nMatch tagged gpu\n User x\nMatch host gpu1 user y\n Port 1\n"
    notes = resolve(Host(name="gpu1"), _config(tmp_path, config)).notes
    assert "there is no ssh program here, and the files that ssh_config includes are not read" in notes
    assert any("`Match tagged gpu` is taken to match every host" in note for note in notes)
    assert len(notes) == 2


@pytest.mark.parametrize("name", ["-oProxyCommand=touch /tmp/x", "-v", "a b", ""])
@pytest.mark.parametrize("with_ssh", [True, False])
def test_a_destination_that_is_none(name: str, with_ssh: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not with_ssh:
        monkeypatch.setattr(sshconfig, "ssh_program", lambda: None)
    with pytest.raises(UsageError, match="SSH destination"):
        resolve(Host(name=name))
    with pytest.raises((UsageError, Unreachable)):
        resolve(Host(name="gpu1", jump=name or "a,,-v"))


def test_jump_hosts_in_a_circle(tmp_path: Path) -> None:
    config = "Host a\n ProxyJump b\nHost b\n ProxyJump a\n"
    with pytest.raises(Unreachable, match="in a circle"):
        resolve(Host(name="a"), _config(tmp_path, config))


@pytest.mark.parametrize("with_ssh", [True, False])
def test_a_broken_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_ssh: bool) -> None:
    if not with_ssh:
        monkeypatch.setattr(sshconfig, "ssh_program", lambda: None)
    with pytest.raises(Unreachable, match="gpu1"):
        resolve(Host(name="gpu1"), _config(tmp_path, "Host gpu1\n Nonsense\n"))
