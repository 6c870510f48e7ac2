"""Where on the host a model's folder is, from what a person, the inventory or a server calls it.

A reference is an absolute folder, one relative to the server's own, or a hub id, which lies in the cache that the
server's environment names: `models--org--name/snapshots/<commit>`, the commit from `refs/<revision>`.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ddprobe.errors import Unanswered
from ddprobe.facts import ServerArgs, ServerProcess
from ddprobe.model import Command, Evidence, Host
from ddprobe.probes.discovery import Discovery

ROLES = ("drafter", "target")
_NAMES = {"drafter": "speculative_draft_model_path", "target": "model_path"}
_REVISIONS = {"drafter": "speculative_draft_model_revision", "target": "revision"}
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?\Z")
_VARIABLE = re.compile(r"[^\[\0]+\Z")
"""A value that redaction kept."""


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
        """Names its answers: readable, and different for different models."""
        plain = re.sub(r"[^\w.-]+", "-", self.reference).strip("-")[-60:]
        pid = f"-{self.process.pid}" if self.process is not None else ""
        return f"{self.role}{pid}-{plain}"

    @property
    def root(self) -> str:
        return self.process.root if self.process is not None else ""

    def on_host(self, path: str) -> str:
        """A path of the server's, as the host sees it."""
        return self.root + posixpath.normpath(path)


@dataclass(frozen=True, slots=True)
class Place:
    """The folder a reference led to."""

    folder: str
    """As the host sees it."""
    how: str
    """In words."""
    revision: str = ""
    key: str = ""
    """The answer it was concluded from; empty when the reference was a folder."""
    file: str = "config.json"


@dataclass(frozen=True, slots=True)
class Caches:
    """Folders of the hub cache, in the order in which they count, each with where it is known from."""

    folders: tuple[tuple[str, str], ...] = ()
    missing: str = field(default="")


def wanted(
    given: dict[str, str], host: Host, found: Discovery, arguments: Sequence[ServerArgs]
) -> tuple[Wanted, ...]:
    """Every drafter and target to look at. By hand counts before the inventory, and that before a server's words."""
    asked: list[Wanted] = []
    for role in ROLES:
        named = {"drafter": host.drafter, "target": host.target}[role]
        mine, origin = (
            (given[role], f"--{role}") if given[role] else (named or "", f"{role} in the inventory")
        )
        mine_used = False
        for server in found.servers:
            reference, flag, revision = _of_server(role, server, arguments)
            alone = len(found.servers) == 1
            if mine and (alone or mine == reference):
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
    flag = f"{_NAMES[role]} in {args.origin}" if args.resolved else f"--{_NAMES[role].replace('_', '-')}"
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


# --- asking ------------------------------------------------------------------------------------------------


def users(wants: Sequence[Wanted]) -> tuple[Command, ...]:
    """Who we are and where people's homes are: asked when a hub id may have to be looked up."""
    roots = dict.fromkeys(want.root for want in wants if _is_hub_id(want.reference))
    asked = [
        Command(key=f"passwd{root.replace('/', '-')}", argv=("cat", f"{root}/etc/passwd"), exits=(0, 1))
        for root in roots
    ]
    return (Command(key="user", argv=("id", "-un")), *asked) if asked else ()


def lookups(want: Wanted, evidence: Evidence) -> tuple[Command, ...]:
    """What has to be seen before the folder is known; nothing for an absolute one."""
    if want.reference.startswith("/"):
        return ()
    asked = []
    beside = _beside(want)
    if beside:
        asked.append(_list(f"{want.key}-beside", beside))
    if _is_hub_id(want.reference):
        for number, (folder, _) in enumerate(_caches(want, evidence).folders):
            model = f"{folder}/{_model_folder(want.reference)}"
            ref = f"{model}/refs/{want.revision or 'main'}"
            asked += [
                Command(key=f"{want.key}-ref-{number}", argv=("cat", ref), exits=(0, 1), cap=4096),
                _list(f"{want.key}-snapshots-{number}", f"{model}/snapshots"),
                _list(f"{want.key}-cache-{number}", folder),
            ]
    return tuple(asked)


def newest(want: Wanted, evidence: Evidence) -> tuple[Command, ...]:
    """When each of several snapshots was written, where no ref says which is meant."""
    asked = []
    for number, (folder, _) in enumerate(_caches(want, evidence).folders):
        snapshots = _names(evidence, f"{want.key}-snapshots-{number}")
        if len(snapshots) > 1 and _commit(want, evidence, number) not in snapshots:
            model = f"{folder}/{_model_folder(want.reference)}/snapshots"
            paths = tuple(f"{model}/{name}" for name in snapshots[:64])
            argv = ("stat", "-c", "%Y %n", *paths)
            asked.append(Command(key=f"{want.key}-times-{number}", argv=argv, exits=(0, 1)))
    return tuple(asked)


def _commit(want: Wanted, evidence: Evidence, number: int) -> str:
    """The commit that the revision means, as far as the cache says so."""
    if want.revision and want.revision in _names(evidence, f"{want.key}-snapshots-{number}"):
        return want.revision
    key = f"{want.key}-ref-{number}"
    return evidence.command(key).stdout.decode("utf-8", "replace").strip() if evidence.has(key) else ""


def _list(key: str, folder: str) -> Command:
    return Command(key=key, argv=("ls", "-1", "-A", folder), exits=(0, 1, 2))


def _beside(want: Wanted) -> str:
    """The folder that a relative reference names, seen from the server's own."""
    process = want.process
    if want.reference.startswith(("/", "~")) or process is None or not process.cwd.startswith("/"):
        return ""
    return want.on_host(posixpath.join(process.cwd, want.reference))


def _is_hub_id(reference: str) -> bool:
    return bool(_HUB_ID.match(reference)) and ".." not in reference and not reference.endswith(".gguf")


def _model_folder(reference: str) -> str:
    return "models--" + reference.replace("/", "--")


def _caches(want: Wanted, evidence: Evidence) -> Caches:
    """As huggingface_hub finds its cache, from the server's environment or its user's home."""
    folders: list[tuple[str, str]] = []
    if want.download_dir:
        folders.append((want.download_dir, "--download-dir"))
    seen = dict(want.process.environment) if want.process is not None else {}
    for name, below in (
        ("HF_HUB_CACHE", ""),
        ("HUGGINGFACE_HUB_CACHE", ""),
        ("HF_HOME", "/hub"),
        ("XDG_CACHE_HOME", "/huggingface/hub"),
    ):
        value = seen.get(name, "")
        if value.startswith("/") and _VARIABLE.match(value):
            folders.append(
                (value.rstrip("/") + below, f"{name} of {want.process.name if want.process else ''}")
            )
            break
    else:
        home, whose = _home(want, evidence)
        if home:
            folders.append((f"{home.rstrip('/')}/.cache/huggingface/hub", f"home of {whose}"))
    mine = tuple((want.on_host(folder), why) for folder, why in folders)
    return Caches(tuple(dict.fromkeys(mine)))


def _home(want: Wanted, evidence: Evidence) -> tuple[str, str]:
    """The home of the server's user, or our own; and whose it is."""
    process = want.process
    if process is not None:
        own = dict(process.environment).get("HOME", "")
        if own.startswith("/") and _VARIABLE.match(own):
            return own, process.name
    try:
        user = process.user if process is not None and process.user else evidence.text("user").strip()
        lines = evidence.text(f"passwd{want.root.replace('/', '-')}").splitlines()
    except Unanswered:
        return "", ""
    for line in lines:
        parts = line.split(":")
        if len(parts) > 5 and user in (parts[0], parts[2]) and parts[5].startswith("/"):
            return parts[5], user
    return ("/root", "root") if user == "root" else ("", "")


# --- concluding --------------------------------------------------------------------------------------------


def place(want: Wanted, evidence: Evidence) -> Place:
    """The folder of a model. Raises `Unanswered` with a sentence that says what the host has instead."""
    if want.reference.endswith(".gguf"):
        raise Unanswered(want.role, f"{want.reference} is a GGUF file, which has no config.json to read")
    if want.reference.startswith("/"):
        path = want.on_host(want.reference)
        if path.endswith(".json"):
            return Place(posixpath.dirname(path), "an absolute path", file=posixpath.basename(path))
        return Place(path, "an absolute path")
    beside = _beside(want)
    names = _names(evidence, f"{want.key}-beside")
    if beside and names and ("config.json" in names or not _is_hub_id(want.reference)):
        cwd = want.process.cwd if want.process else ""
        return Place(beside, f"relative to {cwd}", key=f"{want.key}-beside")
    if not _is_hub_id(want.reference):
        where = f"{beside} does not exist" if beside else "no server's folder is known that it is relative to"
        raise Unanswered(want.role, f"{want.reference} is neither an absolute path nor a hub id, and {where}")
    return _in_cache(want, evidence, _caches(want, evidence))


def _in_cache(want: Wanted, evidence: Evidence, caches: Caches) -> Place:
    if not caches.folders:
        raise Unanswered(
            want.role,
            f"{want.reference} is a hub id, and where its user's Hugging Face cache is could not be found",
        )
    told = []
    for number, (folder, why) in enumerate(caches.folders):
        snapshots = _names(evidence, f"{want.key}-snapshots-{number}")
        if not snapshots:
            told.append(_not_there(want, evidence, folder, why, number))
            continue
        commit, name = _commit(want, evidence, number), want.revision or "main"
        key, how = f"{want.key}-ref-{number}", f"refs/{name} in {folder} ({why})"
        if commit not in snapshots:
            key = f"{want.key}-snapshots-{number}"
            if len(snapshots) == 1:
                commit, how = snapshots[0], f"the only snapshot in {folder} ({why}); refs/{name} is not there"
            else:
                commit = _latest(evidence, f"{want.key}-times-{number}") or snapshots[0]
                how = (
                    f"the newest of {len(snapshots)} snapshots in {folder} ({why}); refs/{name} is not there"
                )
        return Place(f"{folder}/{_model_folder(want.reference)}/snapshots/{commit}", how, commit, key)
    raise Unanswered(want.role, "; ".join(told))


def _latest(evidence: Evidence, key: str) -> str:
    """The folder written last, from `stat`."""
    if not evidence.has(key):
        return ""
    rows = [line.partition(" ") for line in evidence.text(key).split("\n")]
    timed = [(int(seconds), posixpath.basename(path)) for seconds, _, path in rows if seconds.isdecimal()]
    return max(timed)[1] if timed else ""


def _not_there(want: Wanted, evidence: Evidence, folder: str, why: str, number: int) -> str:
    """What the cache holds in its place."""
    result = evidence.command(f"{want.key}-cache-{number}")
    if result.trouble or result.exit_code != 0:
        said = (
            result.trouble or result.stderr.decode("utf-8", "replace").strip()[-160:] or "it does not exist"
        )
        return f"{want.reference} was looked for in {folder} ({why}), which cannot be listed: {said}"
    models = [
        name.removeprefix("models--").replace("--", "/")
        for name in _names(evidence, f"{want.key}-cache-{number}")
        if name.startswith("models--")
    ]
    near = difflib.get_close_matches(want.reference, models, n=4, cutoff=0.3)
    rest = [name for name in models if name not in near]
    shown = ", ".join([*near, *rest][:6]) + (f" and {len(models) - 6} more" if len(models) > 6 else "")
    return f"{want.reference} is not in {folder} ({why}), which holds {shown or 'no model'}"


def _names(evidence: Evidence, key: str) -> tuple[str, ...]:
    """The entries of a folder that was listed; none when it does not exist."""
    if not evidence.has(key) or evidence.command(key).exit_code != 0:
        return ()
    return tuple(name for name in evidence.text(key).split("\n") if name and "/" not in name)
