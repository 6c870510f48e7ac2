"""The hosts file, key by key; `hosts.example.yaml` shows every one. Read into an `Inventory`, mistakes all at once.

default: gpu1
defaults: {user: bench}
groups: {blackwell: "gpu[1-2]"}
hosts:
  gpu1: {address: 10.0.0.5}
  gpu2:
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from ddprobe import yamlfile
from ddprobe.errors import InventoryError, UsageError
from ddprobe.inventory import Inventory, node_set
from ddprobe.model import Container, Host
from ddprobe.yamlfile import Document, Problem

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_URL = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:\d{1,5})?/?\Z")
_SECRET_KEYS = re.compile(r"(?i)(\w*_)?(api_?key|token|pass(word|phrase|wd)?|secret)\Z")


def _variable(value: str) -> str:
    if not _VARIABLE.match(value):
        raise ValueError("give the name of an environment variable, never the key itself")
    return value


def server_url(value: str) -> str:
    """The address of a server as its host sees it. Raises `ValueError`."""
    if "@" in value:
        raise ValueError("no user or password in a URL: name the variable that holds the key in api_key_env")
    if not _URL.match(value):
        raise ValueError("a URL here is scheme, address and port as the host sees it: http://127.0.0.1:30000")
    return value.rstrip("/")


def _plain(value: str) -> str:
    if value.startswith("-") or re.search(r"[\s\0]", value) or not value:
        raise ValueError("is empty, begins with '-' or holds a space")
    return value


def _home(value: str) -> str:
    return str(Path(value).expanduser())


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Plain = Annotated[str, AfterValidator(_plain)]
Seconds = Annotated[float, Field(gt=0, le=3600)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ContainerKeys(_Strict):
    """`container:` of a host."""

    runtime: Literal["docker", "podman", "kubectl"]
    name: Plain


class Defaults(_Strict):
    """What may stand under `defaults` and under a host. Absent means "as ssh_config says", or discovered."""

    user: Plain | None = None
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    identity_file: Annotated[str, AfterValidator(_home)] | None = None
    known_hosts: Annotated[str, AfterValidator(_home)] | None = None
    jump: Plain | None = None
    host_key: Literal["strict", "accept-new"] | None = None
    connect_timeout: Seconds | None = None
    command_timeout: Seconds | None = None
    transport: Literal["ssh", "openssh", "local"] | None = None
    container: ContainerKeys | None = None
    engine: Literal["sglang", "vllm", "llamacpp"] | None = None
    url: Annotated[str, AfterValidator(server_url)] | None = None
    api_key_env: Annotated[str, AfterValidator(_variable)] | None = None
    package: str | None = None
    python: str | None = None
    drafter: str | None = None
    target: str | None = None
    log: str | None = None
    gpu_bandwidth: Annotated[float, Field(ge=1, le=1_000_000, allow_inf_nan=False)] | None = None
    tags: list[str] | None = None


class HostKeys(Defaults):
    """What may stand under `hosts.<name>`."""

    address: Plain | None = None


class HostsFile(_Strict):
    """The whole file."""

    default: str | None = None
    defaults: Defaults | None = None
    groups: dict[str, Annotated[list[str], BeforeValidator(_listed)]] | None = None
    hosts: dict[str, HostKeys | None] | None = None


def load(path: Path) -> Inventory:
    """The file as an inventory. Raises `InventoryError` with every mistake in it, each with file:line:column."""
    try:
        document = yamlfile.read(path)
    except OSError as error:
        raise InventoryError(f"{path}: {error.strerror}") from None
    return understand(document)


def understand(document: Document) -> Inventory:
    """The document as an inventory; see `load`."""
    warnings = _drop_secrets(document)
    file, problems = yamlfile.validate(document, HostsFile)
    problems += document.problems + _cross_check(document)
    if problems or file is None:
        lines = [str(problem) for problem in sorted(set(problems))]
        raise InventoryError("\n".join(lines), "hosts.example.yaml shows every key")
    defaults = file.defaults or Defaults()
    return Inventory(
        path=document.file,
        hosts=tuple(_host(name, keys or HostKeys(), defaults) for name, keys in (file.hosts or {}).items()),
        default=file.default or "",
        groups=tuple((name, ",".join(members)) for name, members in (file.groups or {}).items()),
        warnings=tuple(str(warning) for warning in warnings),
    )


def _host(name: str, keys: HostKeys, defaults: Defaults) -> Host:
    given: dict[str, Any] = {
        key: value
        for source in (defaults, keys)
        for key, value in source
        if value is not None and key not in ("container", "tags")
    }
    if (container := keys.container or defaults.container) is not None:
        given["container"] = Container(runtime=container.runtime, name=container.name)
    if (tags := keys.tags if keys.tags is not None else defaults.tags) is not None:
        given["tags"] = tuple(tags)
    return Host(name=name, **given)


def _drop_secrets(document: Document) -> list[Problem]:
    """Take keys that hold secrets out of the data, and say where to put them instead. Their values go nowhere."""
    data = document.data if isinstance(document.data, dict) else {}
    hosts = data.get("hosts")
    blocks: list[tuple[tuple[str, ...], Any]] = [((), data), (("defaults",), data.get("defaults"))]
    blocks += [(("hosts", name), keys) for name, keys in hosts.items()] if isinstance(hosts, dict) else []
    warnings = []
    for where, block in blocks:
        for key in [k for k in block if _SECRET_KEYS.match(k)] if isinstance(block, dict) else []:
            del block[key]
            message = (
                f"{key}: a secret does not belong in this file and is ignored; "
                "put it in an environment variable and name that one: api_key_env: SGLANG_API_KEY"
            )
            warnings.append(document.problem((*where, key), message, at_key=True))
    return warnings


def _cross_check(document: Document) -> list[Problem]:
    """Mistakes between the keys. Looks at the raw data, so that they are found beside mistakes of form."""
    data = document.data if isinstance(document.data, dict) else {}
    hosts = data["hosts"] if isinstance(data.get("hosts"), dict) else {}
    groups = data["groups"] if isinstance(data.get("groups"), dict) else {}
    problems = []
    for kind, names in (("hosts", hosts), ("groups", groups)):
        for name in names:
            if not _NAME.match(name):
                text = f"{name!r} cannot be a name: letters, digits, '.', '_' and '-' only, and no '-' first"
                problems.append(document.problem((kind, name), text, at_key=True))
    default = data.get("default")
    if isinstance(default, str) and default not in hosts:
        text = f"default: there is no host {default!r} in this file{yamlfile.nearest(default, hosts)}"
        problems.append(document.problem(("default",), text))
    sets = {name: _listed(members) for name, members in groups.items()}
    for name, members in sets.items():
        if not isinstance(members, list) or not all(isinstance(m, str) for m in members):
            continue
        if (loop := _loop(name, sets)) is not None:
            text = f"the group contains itself: {' > '.join('@' + step for step in loop)}"
            problems.append(document.problem(("groups", name), text, at_key=True))
        for index, member in enumerate(members):
            where = ("groups", name, index)
            unknown = [g for g in re.findall(r"@([\w.-]+)", member) if g not in groups]
            problems += [
                document.problem(where, f"there is no group @{group}{yamlfile.nearest(group, groups)}")
                for group in unknown
            ]
            try:
                node_set(re.sub(r"@[\w.-]+", "group", member), {})
            except UsageError as error:
                problems.append(document.problem(where, error.message))
    return problems


def _loop(start: str, sets: dict[str, Any]) -> list[str] | None:
    """The way from a group back to itself, if there is one."""
    ways = [[start]]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        members = sets.get(way[-1])
        for group in re.findall(
            r"@([\w.-]+)", " ".join(str(m) for m in members) if isinstance(members, list) else ""
        ):
            if group == start:
                return [*way, group]
            if group not in seen:
                seen.add(group)
                ways.append([*way, group])
    return None
