"""Which drafters and targets to look at: named by hand, in the inventory, or by the servers themselves."""

from __future__ import annotations

import posixpath
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe import engines
from ddprobe.facts import ServerArgs, ServerProcess
from ddprobe.model import Host
from ddprobe.probes.discovery import Discovery

ROLES = ("drafter", "target")
_NAMES = {"drafter": "speculative_draft_model_path", "target": "model_path"}
_REVISIONS = {"drafter": "speculative_draft_model_revision", "target": "revision"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A model to look at: whose, what it is called, and who called it so."""

    role: str
    reference: str
    origin: str
    revision: str = ""
    servers: tuple[str, ...] = ()
    """Names of the servers that use it; none when it was named by hand and no server does."""
    process: ServerProcess | None = None
    """The server in whose folder, container and environment the reference is to be read."""
    download_dir: str = ""

    @property
    def key(self) -> str:
        """Names its answers: readable, the same for the same files, and different for different ones."""
        name = self.reference.strip("/").replace("/", "--")
        plain = re.sub(r"[^\w.-]", "-", name)[-60:]
        if plain != name or "--" in self.reference:
            plain += f"-{zlib.crc32(name.encode('utf-8', 'replace')):08x}"
        pid = f"-{self.process.pid}" if self.process is not None else ""
        return f"model{pid}-{plain}"

    @property
    def root(self) -> str:
        return self.process.root if self.process is not None else ""

    def on_host(self, path: str) -> str:
        """A path of the server's, as the host sees it."""
        return self.root + posixpath.normpath(path)


def wanted(
    given: dict[str, str], host: Host, found: Discovery, arguments: Sequence[ServerArgs]
) -> tuple[Wanted, ...]:
    """Every drafter and target to look at. By hand counts before the inventory, and that before a server's words."""
    asked: list[Wanted] = []
    # A server of GGUF files reads no config.json, so what is named by hand is not for it.
    fitting = [server for server in found.servers if engines.TABLE[server.engine].package]
    only = next(
        iter(fitting if len(fitting) == 1 else found.servers[:1] if len(found.servers) == 1 else ()), None
    )
    for role in ROLES:
        named = {"drafter": host.drafter, "target": host.target}[role]
        mine, origin = (
            (given[role], f"--{role}") if given[role] else (named or "", f"{role} in the inventory")
        )
        mine_used = False
        for server in found.servers:
            reference, flag, revision = _of_server(role, server, arguments)
            if mine and (server is only or mine == reference):
                asked.append(
                    _want(role, mine, origin, server, revision if mine == reference else "", arguments)
                )
                mine_used = True
            elif reference:
                asked.append(_want(role, reference, f"{flag} of {server.name}", server, revision, arguments))
        for args in () if mine or found.servers else arguments:
            reference, flag, revision = _named(role, args)
            if reference:
                asked.append(
                    Wanted(role, reference, f"{flag} of the server at the inventory's url", revision)
                )
        if mine and not mine_used:
            asked.append(Wanted(role, mine, origin))
    return _once(asked)


def _of_server(role: str, server: ServerProcess, arguments: Sequence[ServerArgs]) -> tuple[str, str, str]:
    """A model's reference, the flag that names it, and its revision."""
    mine = [args for args in arguments if args.server == server.name]
    if role == "drafter" and not any(_speculates(args) for args in mine):
        return "", "", ""
    return next((named for args in mine if (named := _named(role, args))[0]), ("", "", ""))


def _named(role: str, args: ServerArgs) -> tuple[str, str, str]:
    """A model's reference, where the arguments name it, and its revision."""
    value, revision = args.get(_NAMES[role]), args.get(_REVISIONS[role])
    if not isinstance(value, str) or not value or (role == "drafter" and not _speculates(args)):
        return "", "", ""
    flag = (
        f"{_NAMES[role]} in {args.origin}" if args.resolved else engines.TABLE[args.engine].flag(_NAMES[role])
    )
    return value, flag, revision if isinstance(revision, str) else ""


def _speculates(args: ServerArgs) -> bool:
    return args.engine != "sglang" or bool(args.get("speculative_algorithm"))


def _want(
    role: str,
    reference: str,
    origin: str,
    server: ServerProcess,
    revision: str,
    arguments: Sequence[ServerArgs],
) -> Wanted:
    folders = [args.get("download_dir") for args in arguments if args.server == server.name]
    folder = next((each for each in folders if isinstance(each, str) and each.startswith("/")), "")
    return Wanted(role, reference, origin, revision, (server.name,), server, folder)


def _once(asked: list[Wanted]) -> tuple[Wanted, ...]:
    """The same model of two servers that see the same files is looked at once."""
    found: dict[tuple[str, ...], Wanted] = {}
    for want in asked:
        process = want.process
        surroundings = (
            (process.root, process.cwd, process.user, repr(process.environment)) if process else ("",)
        )
        same = (want.role, want.reference, want.revision, want.download_dir, *surroundings)
        if same in found:
            first = found[same]
            found[same] = Wanted(
                want.role, want.reference, first.origin, want.revision, first.servers + want.servers,
                first.process, want.download_dir,
            )  # fmt: skip
        else:
            found[same] = want
    return tuple(found.values())
