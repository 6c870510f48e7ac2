"""From what a person types to hosts: the hosts file, ssh_config names, groups and node sets.

A HOST is a name from the hosts file, a group of it (`@blackwell`), a node set (`gpu[01-16]`), or anything else that
`ssh` would take: an alias, `user@host`, `host:port`, `ssh://user@host:port`. What is heavy (YAML, pydantic,
ClusterShell) is imported only when it is needed.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ddprobe import plainfile
from ddprobe.errors import InventoryError, UsageError
from ddprobe.model import Host

FILE_NAME = "hosts.yaml"
MAX_HOSTS = 512

_NODE_SET = re.compile(r"\[[0-9,/ -]*(\]|\Z)|[,!&^]")
_DESTINATION = re.compile(
    r"(?:(?P<user>[^@/\s]+)@)?(?:\[(?P<v6>[0-9A-Fa-f:.]+(?:%\w+)?)\]|(?P<name>[^@:/\[\]\s]+))(?::(?P<port>\d+))?\Z"
)
_BARE_V6 = re.compile(r"(?:(?P<user>[^@/\s]+)@)?(?P<v6>[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(?:%\w+)?)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The hosts file, understood."""

    path: str
    hosts: tuple[Host, ...] = ()
    default: str = ""
    groups: tuple[tuple[str, str], ...] = ()
    """Name and node set, each in the order of the file."""
    warnings: tuple[str, ...] = ()
    """What is ignored in the file, with file:line:column."""

    def host(self, name: str) -> Host | None:
        return next((host for host in self.hosts if host.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts)


def places(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Where a hosts file is looked for when `--hosts` names none, in order."""
    import platformdirs

    named = environ.get("DDPROBE_HOSTS", "")
    user = platformdirs.user_config_path("ddprobe") / FILE_NAME
    return (*((plainfile.named(named),) if named else ()), Path(FILE_NAME), user)


def find(named: str | None = None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The hosts file: the one named, $DDPROBE_HOSTS, ./hosts.yaml, or the one in the user's config folder."""
    if named is not None:
        path = plainfile.named(named)
        if why := plainfile.trouble(path):
            raise InventoryError(f"--hosts {named}: {why}")
        return path
    variable = environ.get("DDPROBE_HOSTS", "")
    if variable and (why := plainfile.trouble(plainfile.named(variable))):
        raise InventoryError(f"$DDPROBE_HOSTS names {variable}: {why}")
    return next((path for path in places(environ) if path.is_file()), None)


def select(words: Sequence[str], inventory: Inventory | None) -> tuple[Host, ...]:
    """The hosts that these words name, each once, in order; without words the default or only host.

    Raises `UsageError` when that is nobody, or when a word cannot be a host.
    """
    if not words:
        return (_default(inventory),)
    hosts: dict[str, Host] = {}
    for word in words:
        for name in expand(word, inventory):
            host = (inventory and inventory.host(name)) or destination(name)
            hosts.setdefault(host.name, host)
    if not hosts:
        raise UsageError(f"{' '.join(words)} names no host")
    return tuple(hosts.values())


def _default(inventory: Inventory | None) -> Host:
    if inventory is None:
        looked = ", ".join(["$DDPROBE_HOSTS", f"./{FILE_NAME}", str(places({})[-1])])
        raise UsageError(
            "no HOST is given and there is no hosts file",
            f"name a host as you would for ssh, or write a hosts file (looked for: --hosts, {looked})",
        )
    if inventory.default and (host := inventory.host(inventory.default)):
        return host
    if len(inventory.hosts) == 1:
        return inventory.hosts[0]
    if not inventory.hosts:
        raise UsageError(f"no HOST is given and {inventory.path} has no hosts")
    raise UsageError(
        f"no HOST is given, and {inventory.path} has several and no `default`",
        f"name one or more of: {', '.join(inventory.names)}"
        + "".join(f", @{group}" for group, _ in inventory.groups),
    )


def expand(word: str, inventory: Inventory | None) -> tuple[str, ...]:
    """The host names that a word stands for: itself, or the members of a node set or group."""
    if word.startswith("-"):
        raise UsageError(f"{word!r} cannot be a host", "a host's name does not begin with '-'")
    if inventory is not None and inventory.host(word):
        return (word,)
    if not word.startswith("@") and not _NODE_SET.search(word):
        return (word,)
    groups = dict(inventory.groups) if inventory else {}
    user, at, nodes = ("", "", word) if word.startswith("@") else _split_user(word)
    if re.search(r"@(?![\w.-])", nodes):
        raise UsageError(f"{word!r} names no group", "a group is @name")
    for group in re.findall(r"@([\w.-]+)", nodes):
        if group not in groups:
            raise UsageError(
                f"there is no group @{group}",
                f"groups in {inventory.path}: {', '.join('@' + g for g in groups) or 'none'}"
                if inventory
                else "groups stand in a hosts file, and there is none",
            )
    return tuple(f"{user}{at}{name}" for name in node_set(nodes, groups))


def _split_user(word: str) -> tuple[str, str, str]:
    """`root@gpu[1-4]` as user, @ and nodes; `gpu1,@others` has no user."""
    match = re.match(r"([^@,\[\]]+)(@)(.+)\Z", word)
    return (match[1], match[2], match[3]) if match else ("", "", word)


def node_set(text: str, groups: Mapping[str, str]) -> tuple[str, ...]:
    """The names of a node set, its groups resolved. Raises `UsageError` for what is none."""
    from ClusterShell.NodeSet import NodeSet, NodeSetException
    from ClusterShell.NodeUtils import GroupResolver, GroupResolverError, GroupSource

    resolver = GroupResolver(GroupSource("hosts file", dict(groups)))
    for low, high in re.findall(r"(\d+)-(\d+)", text):
        if len(low) > 9 or len(high) > 9 or int(high) - int(low) >= MAX_HOSTS:
            raise UsageError(f"{text!r} names more than {MAX_HOSTS} hosts")
    try:
        names = NodeSet(text, resolver=resolver)
        if len(names) > MAX_HOSTS:
            raise UsageError(f"{text!r} names more than {MAX_HOSTS} hosts")
        return tuple(str(name) for name in names)
    except (NodeSetException, GroupResolverError) as error:
        raise UsageError(
            f"{text!r} is not a node set: {error}", "node sets look like gpu[01-16], gpu1,gpu3 or @group"
        ) from None


def fold(names: Sequence[str]) -> str:
    """Names as one short word where they allow it: `gpu[01-03]`."""
    if len(names) < 2 or not all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names):
        return ",".join(names)
    from ClusterShell.NodeSet import NodeSet

    return str(NodeSet.fromlist(list(names)))


def destination(word: str) -> Host:
    """A HOST that no hosts file has, as `ssh` would take it. Raises `UsageError` for what cannot be one."""
    bare = word.removeprefix("ssh://").rstrip("/") if word.startswith("ssh://") else word
    match = _DESTINATION.match(bare) or _BARE_V6.match(bare)
    found = match.groupdict() if match else {}
    address = found.get("v6") or found.get("name") or ""
    user = found.get("user")
    if not address or address.startswith("-") or (user or "").startswith("-"):
        raise UsageError(
            f"{word!r} cannot be a host",
            "a host is a name in the hosts file, an ssh alias, user@host, host:port or ssh://user@host:port",
        )
    host = Host(name=bare)
    if bare != address:
        host = dataclasses.replace(host, address=address, user=user)
    if (port := found.get("port")) is not None:
        if not 0 < int(port) < 65536:
            raise UsageError(f"{word!r}: {port} is not a port", "ports go from 1 to 65535")
        host = dataclasses.replace(host, port=int(port))
    return host
