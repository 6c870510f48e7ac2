"""Whether this laptop's SSH set-up would carry ddprobe to its hosts: program, agent, keys, config, known hosts."""

from __future__ import annotations

import base64
import binascii
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ddprobe import plainfile
from ddprobe.cli.checks.check import Check
from ddprobe.errors import DdprobeError
from ddprobe.model import Host, Outcome
from ddprobe.render import count
from ddprobe.sessions.hostkeys import MAX_FILE

SYSTEM_KNOWN_HOSTS = Path("/etc/ssh/ssh_known_hosts")
_SECONDS = 10


def ssh_program() -> Check:
    path = shutil.which("ssh")
    if path is None:
        return Check(
            Outcome.WARN,
            "ssh",
            "there is no ssh program: Include, Match and the like in ssh_config are not understood, and the openssh "
            "transport (hardware keys, GSSAPI) does not work",
            "install OpenSSH's client",
        )
    done = _ask("ssh", "-V")
    if done is None or done.returncode:
        return Check(Outcome.WARN, "ssh", f"{path} does not run", "ssh -V shows why")
    return Check(Outcome.PASS, "ssh", f"{(done.stderr or done.stdout).strip()} at {path}")


def agent() -> Check:
    """Whether an agent answers, and which keys it holds: fingerprints only."""
    if not os.environ.get("SSH_AUTH_SOCK"):
        return Check(
            Outcome.INFO,
            "agent",
            "$SSH_AUTH_SOCK is not set: keys with a passphrase are asked for on a terminal, and fail in scripts",
        )
    done = _ask("ssh-add", "-l")
    if done is None:
        return Check(Outcome.INFO, "agent", "there is no ssh-add program to ask it with")
    if done.returncode == 0:
        prints = [" ".join(line.split()[1::2][:1] + line.split()[-1:]) for line in done.stdout.splitlines()]
        return Check(Outcome.PASS, "agent", f"{count(len(prints), 'key')}: {'; '.join(prints)}")
    if done.returncode == 1:
        return Check(Outcome.WARN, "agent", "answers, but holds no key", "ssh-add adds one")
    return Check(
        Outcome.WARN,
        "agent",
        f"$SSH_AUTH_SOCK is {os.environ['SSH_AUTH_SOCK']}, and nobody answers there",
        "start an agent, or unset the variable",
    )


def keys(folder: Path) -> Iterator[Check]:
    """Each private key of the usual names, and whether others can read it."""
    found = (
        sorted(p for p in folder.glob("id_*") if p.suffix != ".pub" and p.is_file())
        if folder.is_dir()
        else []
    )
    if not found:
        yield Check(
            Outcome.INFO,
            "keys",
            f"no id_* key in {folder}: only the agent's keys and those of `identity_file` are tried",
        )
    for path in found:
        yield key(path, "key")


def key(path: Path, subject: str) -> Check:
    """One private key file: readable by the person, and by nobody else."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        head = plainfile.read(path, MAX_FILE)[:4096]
    except OSError as error:
        return Check(Outcome.FAIL, subject, f"{path}: {error.strerror}", "login with this key will fail")
    if mode & 0o077:
        return Check(
            Outcome.FAIL,
            subject,
            f"{path} has mode {mode:04o}: ssh refuses a key that others can read",
            f"chmod 600 {path}",
        )
    kind = "with a passphrase" if _encrypted(head) else "without a passphrase"
    public = path.with_name(path.name + ".pub")
    if public.is_file() and public.read_bytes()[:3] == b"sk-":
        return Check(
            Outcome.WARN,
            subject,
            f"{path} is a hardware key: Paramiko cannot use it",
            "set `transport: openssh` for its hosts",
        )
    return Check(Outcome.PASS, subject, f"{path}, mode {mode:04o}, {kind}")


def _encrypted(head: bytes) -> bool:
    """Whether a private key wants a passphrase: PEM says so in a header, OpenSSH's own form names its cipher."""
    if b"OPENSSH PRIVATE KEY" not in head:
        return b"ENCRYPTED" in head
    body = b"".join(line for line in head.splitlines() if b"-----" not in line)
    with_cipher = base64.b64decode(body[: len(body) // 4 * 4][:64] or b"")
    return with_cipher[15:23] != b"\0\0\0\4none"


def ssh_config(path: Path) -> Check:
    """Whether ssh_config can be read, and what in it needs the ssh program."""
    if not path.exists():
        return Check(Outcome.PASS, "ssh_config", f"{path} does not exist; ssh's defaults hold")
    try:
        text = plainfile.read(path, MAX_FILE).decode("utf-8", "replace")
    except OSError as error:
        return Check(
            Outcome.FAIL, "ssh_config", f"{path}: {error.strerror}", "aliases and users in it are not known"
        )
    words = [
        line.split(None, 1)[0].lower()
        for line in text.splitlines()
        if line.strip() and line.strip()[0] != "#"
    ]
    hard = sorted({word for word in words if word in ("include", "match")})
    if shutil.which("ssh") is None:
        if hard:
            return Check(
                Outcome.WARN,
                "ssh_config",
                f"{path} uses {' and '.join(hard)}, which only the ssh program understands, and there is none",
                "install OpenSSH's client, or give address, user and jump in the hosts file",
            )
        return Check(Outcome.PASS, "ssh_config", f"{path} is read by Paramiko's reader")
    done = _ask("ssh", "-G", "-F", str(path), "ddprobe-doctor.invalid")
    if done is None or done.returncode:
        said = done.stderr.strip().splitlines() if done else []
        return Check(
            Outcome.FAIL, "ssh_config", said[0] if said else f"ssh cannot read {path}", "ssh would fail too"
        )
    note = f"; {' and '.join(hard)} in it need the ssh program, which is here" if hard else ""
    return Check(Outcome.PASS, "ssh_config", f"{path} is understood (ssh -G){note}")


def known_hosts(path: Path) -> Check:
    """Whether host keys are known, and whether each line of the file can be used."""
    if not path.exists() and SYSTEM_KNOWN_HOSTS.is_file():
        return Check(
            Outcome.INFO, "known_hosts", f"{path} does not exist; only {SYSTEM_KNOWN_HOSTS} is looked at"
        )
    if not path.exists():
        return Check(
            Outcome.WARN,
            "known_hosts",
            f"{path} does not exist: strict checking refuses every host",
            "connect once with ssh and compare the fingerprint, or set `host_key: accept-new`",
        )
    try:
        lines = plainfile.read(path, MAX_FILE).decode("utf-8", "replace").splitlines()
    except OSError as error:
        return Check(Outcome.FAIL, "known_hosts", f"{path}: {error.strerror}", "every host is refused")
    entries = [(n, line) for n, line in enumerate(lines, 1) if line.strip() and line.lstrip()[0] != "#"]
    broken = [number for number, line in entries if not _known_key(line)]
    if broken:
        shown = ", ".join(map(str, broken[:10]))
        return Check(
            Outcome.WARN,
            "known_hosts",
            f"{path}: no host key in line {shown}; such lines are passed over",
            "see sshd(8)",
        )
    return Check(Outcome.PASS, "known_hosts", f"{path}, {count(len(entries), 'key')}")


def _known_key(line: str) -> bool:
    fields = line.split()
    fields = fields[1:] if fields[0].startswith("@") else fields
    if len(fields) < 3:
        return False
    try:
        return len(base64.b64decode(fields[2], validate=True)) > 20
    except (binascii.Error, ValueError):
        return False


def host_prerequisites(host: Host) -> Iterator[Check]:
    """What this laptop lacks for one host of the hosts file. Nothing is sent to the host."""
    if host.api_key_env and not os.environ.get(host.api_key_env):
        yield Check(
            Outcome.WARN,
            host.name,
            f"${host.api_key_env} is not set: its server will refuse to answer",
            f"export {host.api_key_env}",
        )
    if host.transport == "local":
        return
    if host.identity_file:
        check = key(Path(host.identity_file), host.name)
        if check.outcome is not Outcome.PASS:
            yield check
    from ddprobe.sessions import hostkeys, sshconfig

    try:
        route = sshconfig.resolve(host)
    except DdprobeError as error:
        yield Check(Outcome.FAIL, host.name, error.message, error.advice)
        return
    yield from (Check(Outcome.WARN, host.name, note) for note in route.notes)
    first = route.hops[0]
    name = first.host_key_alias or (first.address if first.port == 22 else f"[{first.address}]:{first.port}")
    files = (*first.known_hosts_files, *first.global_known_hosts_files)
    if host.host_key == "strict" and not first.proxy_command and not hostkeys.lookup(files, name):
        yield Check(
            Outcome.WARN,
            host.name,
            f"no host key of {name} is known: strict checking will refuse it",
            "connect once with ssh and compare the fingerprint, or set `host_key: accept-new`",
        )


def _ask(*argv: str) -> subprocess.CompletedProcess[str] | None:
    """A local program's answer; None when it is not there or hangs."""
    try:
        return subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
