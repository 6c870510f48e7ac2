"""Where on the host a model's folder is, from what a person, the inventory or a server calls it.

A reference is an absolute folder, one relative to the server's own, or a hub id, which lies in the cache that the
server's environment names: `models--org--name/snapshots/<commit>`, the commit from `refs/<revision>`.
"""

from __future__ import annotations

import difflib
import posixpath
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from ddprobe.errors import Unanswered
from ddprobe.model import Command, Evidence
from ddprobe.probes.draft._wanted import Wanted

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?\Z")
_VARIABLE = re.compile(r"[^\[\0]+\Z")
"""A value that redaction kept."""


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


Caches = tuple[tuple[str, str], ...]
"""Folders of the hub cache, in the order in which they count, each with where it is known from."""


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
        asked.append(listing(beside))
    if _is_hub_id(want.reference):
        for number, (folder, _) in enumerate(_caches(want, evidence)):
            model = f"{folder}/{_model_folder(want.reference)}"
            ref = f"{model}/refs/{want.revision or 'main'}"
            asked += [
                Command(key=f"{want.key}-ref-{number}", argv=("cat", ref), exits=(0, 1), cap=4096),
                listing(f"{model}/snapshots"),
                listing(folder),
            ]
    return tuple(asked)


def newest(want: Wanted, evidence: Evidence) -> tuple[Command, ...]:
    """When each of several snapshots was written, where no ref says which is meant."""
    asked = []
    for number, (folder, _) in enumerate(_caches(want, evidence)):
        snapshots = names(evidence, _snapshots(want, folder))
        if len(snapshots) > 1 and _commit(want, evidence, folder, number) not in snapshots:
            paths = tuple(f"{_snapshots(want, folder)}/{name}" for name in snapshots[:64])
            argv = ("stat", "-c", "%Y %n", *paths)
            asked.append(Command(key=f"{want.key}-times-{number}", argv=argv, exits=(0, 1)))
    return tuple(asked)


def _commit(want: Wanted, evidence: Evidence, folder: str, number: int) -> str:
    """The commit that the revision means, as far as the cache says so."""
    if want.revision and want.revision in names(evidence, _snapshots(want, folder)):
        return want.revision
    key = f"{want.key}-ref-{number}"
    return evidence.command(key).stdout.decode("utf-8", "replace").strip() if evidence.has(key) else ""


def folder_key(folder: str) -> str:
    """Names the listing of a folder, whoever asks for it."""
    tail = re.sub(r"[^\w.-]", "-", folder.strip("/"))[-60:].lstrip("-.")
    return f"folder-{tail}-{zlib.crc32(folder.encode('utf-8', 'replace')):08x}"


def listing(folder: str) -> Command:
    return Command(key=folder_key(folder), argv=("ls", "-1", "-A", folder), exits=(0, 1, 2))


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


def _snapshots(want: Wanted, folder: str) -> str:
    return f"{folder}/{_model_folder(want.reference)}/snapshots"


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
        value = _expanded(seen.get(name, ""), want, evidence)
        if value:
            folders.append(
                (value.rstrip("/") + below, f"{name} of {want.process.name if want.process else ''}")
            )
            break
    else:
        home, whose = _home(want, evidence)
        if home:
            folders.append((f"{home.rstrip('/')}/.cache/huggingface/hub", f"home of {whose}"))
    return tuple(dict.fromkeys((want.on_host(folder), why) for folder, why in folders))


def _expanded(value: str, want: Wanted, evidence: Evidence) -> str:
    """A folder that a variable names, as huggingface_hub reads it; empty where the variable says nothing."""
    if not _VARIABLE.match(value):
        return ""
    if value == "~" or value.startswith("~/"):
        home, _ = _home(want, evidence)
        return posixpath.normpath(home + value[1:]) if home else ""
    cwd = want.process.cwd if want.process is not None else ""
    path = posixpath.join(cwd, value)
    return path if path.startswith("/") else ""


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
    there = names(evidence, beside) if beside else ()
    if there and ("config.json" in there or not _is_hub_id(want.reference)):
        cwd = want.process.cwd if want.process else ""
        return Place(beside, f"relative to {cwd}", key=folder_key(beside))
    if not _is_hub_id(want.reference):
        where = f"{beside} does not exist" if beside else "no server's folder is known that it is relative to"
        raise Unanswered(want.role, f"{want.reference} is neither an absolute path nor a hub id, and {where}")
    return _in_cache(want, evidence, _caches(want, evidence))


def _in_cache(want: Wanted, evidence: Evidence, caches: Caches) -> Place:
    if not caches:
        raise Unanswered(
            want.role,
            f"{want.reference} is a hub id, and where its user's Hugging Face cache is could not be found",
        )
    told = []
    for number, (folder, why) in enumerate(caches):
        snapshots = names(evidence, _snapshots(want, folder))
        if not snapshots:
            told.append(_not_there(want, evidence, folder, why))
            continue
        commit, name = _commit(want, evidence, folder, number), want.revision or "main"
        key, how = f"{want.key}-ref-{number}", f"refs/{name} in {folder} ({why})"
        if commit not in snapshots:
            key = folder_key(_snapshots(want, folder))
            if len(snapshots) == 1:
                commit, how = snapshots[0], f"the only snapshot in {folder} ({why}); refs/{name} is not there"
            else:
                commit = _latest(evidence, f"{want.key}-times-{number}") or snapshots[0]
                how = (
                    f"the newest of {len(snapshots)} snapshots in {folder} ({why}); refs/{name} is not there"
                )
        return Place(f"{_snapshots(want, folder)}/{commit}", how, commit, key)
    if want.process is not None and not want.process.cwd:
        told.append(f"whether it is a folder beside the one that {want.process.name} runs in cannot be seen")
    raise Unanswered(want.role, "; ".join(told))


def _latest(evidence: Evidence, key: str) -> str:
    """The folder written last, from `stat`."""
    if not evidence.has(key):
        return ""
    rows = [line.partition(" ") for line in evidence.text(key).split("\n")]
    timed = [(int(seconds), posixpath.basename(path)) for seconds, _, path in rows if seconds.isdecimal()]
    return max(timed)[1] if timed else ""


def _not_there(want: Wanted, evidence: Evidence, folder: str, why: str) -> str:
    """What the cache holds in its place."""
    result = evidence.command(folder_key(folder))
    if result.trouble or result.exit_code != 0:
        said = (
            result.trouble or result.stderr.decode("utf-8", "replace").strip()[-160:] or "it does not exist"
        )
        return f"{want.reference} was looked for in {folder} ({why}), which cannot be listed: {said}"
    models = [
        name.removeprefix("models--").replace("--", "/")
        for name in names(evidence, folder)
        if name.startswith("models--")
    ]
    near = difflib.get_close_matches(want.reference, models, n=4, cutoff=0.3)
    rest = [name for name in models if name not in near]
    shown = ", ".join([*near, *rest][:6]) + (f" and {len(models) - 6} more" if len(models) > 6 else "")
    return f"{want.reference} is not in {folder} ({why}), which holds {shown or 'no model'}"


def names(evidence: Evidence, folder: str) -> tuple[str, ...]:
    """The entries of a folder that was listed; none when it does not exist."""
    key = folder_key(folder)
    if not evidence.has(key):
        return ()
    result = evidence.command(key)
    if result.exit_code != 0 or result.trouble:
        return ()
    return tuple(name for name in result.text.split("\n") if name and "/" not in name)
