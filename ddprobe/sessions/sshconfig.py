"""How the person's own `ssh` would reach a host: `ssh -G` where there is one, Paramiko's reader elsewhere."""

from __future__ import annotations

import getpass
import hashlib
import os
import pwd
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ddprobe.errors import Unreachable, UsageError
from ddprobe.model import Host

OPENSSH_ADVICE = "set `transport: openssh`, which is the ssh program itself"
MAX_HOPS = 8
_CONFIG_FILES = ("~/.ssh/config", "/etc/ssh/ssh_config")
_DEFAULT_KEYS = ("~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519")
_DEFAULT_KNOWN = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
_DEFAULT_GLOBAL = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"
_MATCH_WORDS = {"all", "canonical", "final", "exec", "host", "originalhost", "user", "localuser"}

Options = Mapping[str, tuple[str, ...]]
"""ssh_config keyword in lower case → its values, as `ssh -G` prints them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One SSH server on the way, as ssh_config and the inventory describe it together."""

    name: str
    """As the person writes it: an alias, a destination."""
    address: str
    user: str
    port: int = 22
    identity_files: tuple[Path, ...] = ()
    """In the order of trying; they need not exist."""
    identities_only: bool = False
    identity_agent: str | None = None
    """The agent's socket; None is the one of the environment, `none` is no agent."""
    certificate_files: tuple[Path, ...] = ()
    known_hosts_files: tuple[Path, ...] = ()
    """The person's own. A new key under `accept-new` goes to the first."""
    global_known_hosts_files: tuple[Path, ...] = ()
    host_key_alias: str = ""
    hash_known_hosts: bool = False
    proxy_command: str = ""
    """A shell command line whose stdin and stdout are the road; tokens are expanded."""
    connect_timeout: float = 10.0
    typed: tuple[str, ...] = ()
    """What a person must type between `ssh` and the name to get to the same place."""

    @property
    def by_hand(self) -> str:
        """The command line that a person can try it with."""
        return shlex.join(("ssh", *self.typed, self.name))

    @property
    def looked_in(self) -> str:
        """The known_hosts files in words."""
        files = (*self.known_hosts_files, *self.global_known_hosts_files)
        return ", ".join(short(path) for path in files) or "any file (ssh_config names none)"


@dataclass(frozen=True, slots=True)
class Route:
    """The SSH servers from here to the host, the host last, and what of ssh_config could not be honoured."""

    hops: tuple[Hop, ...]
    notes: tuple[str, ...] = ()

    @property
    def last(self) -> Hop:
        return self.hops[-1]


@dataclass(frozen=True, slots=True)
class _Target:
    """A destination with what stands above ssh_config."""

    destination: str
    user: str | None = None
    port: int | None = None
    identity_file: str | None = None
    jump: str | None = None


def ssh_program() -> str | None:
    """Where this machine's `ssh` is, if it has one."""
    return shutil.which("ssh")


def resolve(host: Host, config_file: Path | None = None) -> Route:
    """The way to the host. `config_file` stands in for ssh_config's own places, as with `ssh -F`.

    Raises `UsageError` for a destination that ssh would take for an option, `Unreachable` where ssh_config is broken.
    """
    target = _Target(host.address or host.name, host.user, host.port, host.identity_file, host.jump)
    resolver = _Resolver(host, config_file)
    hops = resolver.hops(target, ())
    return Route(hops, tuple(dict.fromkeys(resolver.notes)))


def above_config(user: str | None, port: int | None, identity_file: str | None) -> list[str]:
    """ssh's options for what the inventory says above ssh_config."""
    options = ["-l", user] if user else []
    options += ["-p", str(port)] if port else []
    if identity_file:
        # As `-o`: with `-i` a file that does not exist is dropped in silence.
        quoted = identity_file.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
        options += ["-o", f'IdentityFile="{quoted}"']
    return options


class _Resolver:
    """One resolution: asks for each hop, collects the notes on the way."""

    def __init__(self, host: Host, config_file: Path | None) -> None:
        self.host = host
        self.config_file = config_file
        self.program = ssh_program()
        self.notes: list[str] = []

    def hops(self, target: _Target, seen: tuple[_Target, ...]) -> tuple[Hop, ...]:
        """The servers on the way to the target, itself last."""
        if target in seen or len(seen) >= MAX_HOPS:
            raise Unreachable(f"{self.host.name}: its jump hosts go in a circle (via {target.destination})")
        options = self._options(target)
        jumps = [] if _word(options, "proxyjump") == "none" else _word(options, "proxyjump").split(",")
        jumps = [jump for jump in jumps if jump]
        before: tuple[Hop, ...] = ()
        for number, jump in enumerate(jumps):
            step = _parse_jump(jump)
            if number > 0:
                # A later hop is reached through the one before it, whatever its own entry says.
                step = replace(step, jump="none")
            before = (*before, *self.hops(step, (*seen, target)))
        hop = self._hop(target, options)
        self.notes += [f"{hop.name}: {note}" for note in _unhonoured(hop, options, self.host)]
        return (*before, hop)

    def _options(self, target: _Target) -> Options:
        for word in (target.destination, target.user or "", target.jump or ""):
            if word.startswith("-") or re.search(r"[\s\0]", word):
                raise UsageError(f"{word!r} is not an SSH destination")
        if not target.destination:
            raise UsageError("an empty SSH destination")
        if self.program is not None:
            return _ask_ssh(self.program, target, self.config_file)
        options, notes = _read_config(target, self.config_file)
        self.notes += notes
        return options

    def _hop(self, target: _Target, options: Options) -> Hop:
        address = _word(options, "hostname").removeprefix("[").removesuffix("]")
        tokens = _tokens(target, options, address)
        timeout = _word(options, "connecttimeout")
        own = self.host.connect_timeout != Host.__dataclass_fields__["connect_timeout"].default
        agent = _word(options, "identityagent")
        jump = ("-J", target.jump) if target.jump else ()
        return Hop(
            name=target.destination,
            typed=(*above_config(target.user, target.port, target.identity_file), *jump),
            address=address,
            user=_word(options, "user"),
            port=int(_word(options, "port") or 22),
            identity_files=tuple(
                _path(value, tokens) for value in options.get("identityfile", ()) if value != "none"
            ),
            identities_only=_word(options, "identitiesonly") == "yes",
            identity_agent=_agent(agent, tokens),
            certificate_files=tuple(
                _path(value, tokens) for value in options.get("certificatefile", ()) if value != "none"
            ),
            known_hosts_files=(
                (Path(self.host.known_hosts).expanduser(),)
                if self.host.known_hosts
                else _paths(_word(options, "userknownhostsfile"), tokens)
            ),
            global_known_hosts_files=()
            if self.host.known_hosts
            else _paths(_word(options, "globalknownhostsfile"), tokens),
            host_key_alias=_word(options, "hostkeyalias"),
            hash_known_hosts=_word(options, "hashknownhosts") == "yes",
            proxy_command=_expand(_command(_word(options, "proxycommand")), tokens),
            connect_timeout=float(timeout) if timeout.isdigit() and not own else self.host.connect_timeout,
        )


# --- the two readers ---------------------------------------------------------------------------------------


def _ask_ssh(program: str, target: _Target, config_file: Path | None) -> Options:
    """What `ssh -G` answers. It connects to nothing; `Match exec` lines of the person's own config do run."""
    argv = [program, *(("-F", str(config_file)) if config_file else ()), "-G"]
    argv += above_config(target.user, target.port, target.identity_file)
    argv += ["-o", f"ProxyJump={target.jump}"] if target.jump else []
    argv += ["--", target.destination]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=15, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreachable(f"{target.destination}: `ssh -G` did not answer: {error}") from None
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise Unreachable(
            f"{target.destination}: ssh does not know the way: {said[:300]}",
            f"try `ssh -G {target.destination}`",
        )
    options: dict[str, tuple[str, ...]] = {}
    for line in done.stdout.decode("utf-8", "surrogateescape").splitlines():
        key, _, value = line.partition(" ")
        options[key.lower()] = (*options.get(key.lower(), ()), value)
    return options


def _read_config(target: _Target, config_file: Path | None) -> tuple[Options, list[str]]:
    """What Paramiko's own reader makes of the files, and what it cannot do."""
    import paramiko

    paths = [config_file] if config_file else [_under_home(name) for name in _CONFIG_FILES]
    text = "\n".join(path.read_text("utf-8", "replace") for path in paths if path.is_file())
    named = _parse_jump(target.destination)
    try:
        found = dict(paramiko.SSHConfig.from_text(text).lookup(named.destination))
    except (paramiko.SSHException, OSError, KeyError, ValueError) as error:
        raise Unreachable(f"{target.destination}: ssh_config cannot be read: {error}") from None
    options: dict[str, tuple[str, ...]] = {
        "user": (getpass.getuser(),),
        "identityfile": _DEFAULT_KEYS,
        "userknownhostsfile": (_DEFAULT_KNOWN,),
        "globalknownhostsfile": (_DEFAULT_GLOBAL,),
    }
    for key, value in found.items():
        if value is not None:
            options[key] = tuple(value) if isinstance(value, list) else (str(value),)
    above = {
        "user": target.user or named.user,
        "port": str(target.port or named.port or "") or None,
        "proxyjump": target.jump,
    }
    options |= {key: (value,) for key, value in above.items() if value}
    if target.identity_file:
        others = options["identityfile"] if "identityfile" in found else ()
        options["identityfile"] = (target.identity_file.replace("%", "%%"), *others)
    if target.jump or "proxyjump" in found:
        options.pop("proxycommand", None)
    return options, [f"there is no ssh program here, and {note}" for note in _unread(text)]


def _unread(text: str) -> Iterator[str]:
    """What stands in ssh_config that Paramiko's reader passes over, or takes for something else."""
    if re.search(r"(?im)^\s*include\b", text):
        yield "the files that ssh_config includes are not read"
    for line in re.findall(r"(?im)^\s*match\s+(.*)$", text):
        words = {word.lower().lstrip("!") for word in re.findall(r"(?:^|\s)(!?[A-Za-z]+)(?=\s|$)", line)}
        if not words & _MATCH_WORDS:
            yield f"ssh_config's `Match {line.strip()}` is taken to match every host"


# --- values ------------------------------------------------------------------------------------------------


def _word(options: Options, key: str) -> str:
    return options.get(key, ("",))[0]


def _parse_jump(text: str) -> _Target:
    """`[user@]host[:port]` or `ssh://…`, an address with colons in brackets when a port follows."""
    user, _, place = text.removeprefix("ssh://").removesuffix("/").rpartition("@")
    if place.count(":") > 1 and not place.startswith("["):
        return _Target(place, user or None)
    found = re.fullmatch(r"(?:\[([^\]]+)\]|([^:\[\]]*))(?::(\d{1,5}))?", place)
    if found is None:
        raise UsageError(f"{text!r} is not an SSH destination")
    return _Target(found[1] or found[2], user or None, int(found[3]) if found[3] else None)


def _tokens(target: _Target, options: Options, address: str) -> dict[str, str]:
    """ssh_config's percent tokens (ssh_config(5), TOKENS)."""
    local = socket.gethostname()
    user, port = _word(options, "user"), _word(options, "port") or "22"
    original = _parse_jump(target.destination).destination
    jump = _word(options, "proxyjump").removeprefix("none")
    return {
        "%": "%",
        "C": hashlib.sha1(f"{local}{address}{port}{user}{jump}".encode()).hexdigest(),
        "d": str(home()),
        "h": address,
        "i": str(os.getuid()),
        "j": jump,
        "k": _word(options, "hostkeyalias") or original,
        "L": local.partition(".")[0],
        "l": local,
        "n": original,
        "p": port,
        "r": user,
        "u": getpass.getuser(),
    }


def _expand(text: str, tokens: Mapping[str, str]) -> str:
    return re.sub(r"%(.)", lambda found: tokens.get(found[1], found[0]), text)


def _path(text: str, tokens: Mapping[str, str]) -> Path:
    text = re.sub(r"\$\{(\w+)\}", lambda found: os.environ.get(found[1], ""), text)
    return _under_home(_expand(text, tokens))


def home() -> Path:
    """The home folder as ssh takes it: the password database's, whatever $HOME says."""
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return Path.home()


def short(path: Path) -> str:
    """With ~ for the home folder, as a person writes it."""
    try:
        return f"~/{path.relative_to(home())}"
    except ValueError:
        return str(path)


def _under_home(text: str) -> Path:
    return home() / text[2:] if text.startswith("~/") else Path(text).expanduser()


def _paths(text: str, tokens: Mapping[str, str]) -> tuple[Path, ...]:
    """Several paths on one line. `ssh -G` drops their quotes: a new one begins where a blank is followed by / or ~."""
    found = (word.strip('"') for word in re.split(r"\s+(?=[\"/~]|\$\{|%)", text.strip()))
    return tuple(_path(word, tokens) for word in found if word and word != "none")


def _agent(value: str, tokens: Mapping[str, str]) -> str | None:
    if value in ("", "SSH_AUTH_SOCK"):
        return None
    if value == "none":
        return value
    if value.startswith("$") and not value.startswith("${"):
        return os.environ.get(value[1:]) or "none"
    return str(_path(value, tokens))


def _command(value: str) -> str:
    return "" if value == "none" else value


# --- what Paramiko cannot honour ---------------------------------------------------------------------------


def _unhonoured(hop: Hop, options: Options, host: Host) -> Iterator[str]:
    """What of this entry ddprobe does otherwise than ssh would, each with what to do about it."""
    asked = _word(options, "stricthostkeychecking")
    if asked in ("no", "off", "false", "accept-new") and host.host_key != "accept-new":
        asked = "no" if asked == "false" else asked
        yield (
            f"ssh_config says `StrictHostKeyChecking {asked}`, ddprobe stays strict: "
            "set `host_key: accept-new` to take a key never seen before"
        )
    if host.transport == "openssh":
        return
    for path in hop.identity_files:
        if _hardware_key(path):
            yield f"{path} is a hardware key, which cannot be used: {OPENSSH_ADVICE}"
    if _word(options, "pkcs11provider") not in ("", "none"):
        yield f"a PKCS#11 token cannot be used: {OPENSSH_ADVICE}"
    for path in hop.certificate_files:
        if path not in {key.with_name(f"{key.name}-cert.pub") for key in hop.identity_files}:
            yield f"the certificate {path} lies beside no identity file and cannot be used: {OPENSSH_ADVICE}"
    methods = _word(options, "preferredauthentications")
    if methods and not set(methods.split(",")) & {"publickey", "password", "keyboard-interactive"}:
        yield f"`PreferredAuthentications {methods}` cannot be used: {OPENSSH_ADVICE}"
    if hop.proxy_command:
        yield f"the road is the ProxyCommand `{hop.proxy_command[:200]}`; if it fails, {OPENSSH_ADVICE}"
    for key, keyword in (("revokedhostkeys", "RevokedHostKeys"), ("knownhostscommand", "KnownHostsCommand")):
        if _word(options, key) not in ("", "none"):
            yield f"`{keyword}` is not looked at: {OPENSSH_ADVICE}"


def _hardware_key(path: Path) -> bool:
    try:
        return path.is_file() and path.with_name(f"{path.name}.pub").read_bytes().startswith(b"sk-")
    except OSError:
        return False
