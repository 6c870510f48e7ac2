"""What lies in a model's folder: which files to ask for, and the `ModelConfig` they make."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from ddprobe.errors import Unanswered
from ddprobe.facts import ModelConfig, ServerArgs
from ddprobe.model import MIB, Cite, Command, Evidence
from ddprobe.parsing import lenient_json, model_config, safetensors
from ddprobe.probes.draft._locate import Place, folder_key, listing, names
from ddprobe.probes.draft._wanted import Wanted

CONFIG_CAP = 16 * MIB
HEAD = 256 * 1024
"""Bytes of a weights file asked for at first; the header of a drafter fits in it."""
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"


def first(want: Wanted, place: Place) -> tuple[Command, ...]:
    """The files whose names are known beforehand."""
    folder = place.folder

    def read(name: str, file: str, cap: int) -> Command:
        return Command(key=f"{want.key}-{name}", argv=("cat", f"{folder}/{file}"), cap=cap, alone=cap > MIB)

    asked = [
        listing(folder),
        read("config", place.file, CONFIG_CAP),
    ]
    if want.role == "target":
        asked.append(read("tokenizer", "tokenizer_config.json", 8 * MIB))
    return tuple(asked)


def second(want: Wanted, place: Place, evidence: Evidence) -> tuple[Command, ...]:
    """The head of a drafter's weights, or the index that says which of several files to look into."""
    if want.role != "drafter":
        return ()
    files = names(evidence, place.folder)
    if SINGLE in files:
        return (_head(want, place, SINGLE, HEAD),)
    if INDEX in files:
        return (Command(key=f"{want.key}-index", argv=("cat", f"{place.folder}/{INDEX}"), cap=8 * MIB),)
    others = [name for name in files if name.endswith(".safetensors")]
    return (_head(want, place, others[0], HEAD),) if len(others) == 1 else ()


def third(want: Wanted, place: Place, evidence: Evidence) -> tuple[Command, ...]:
    """The shard that the index names for fc.weight, or a header that was longer than the first look."""
    if evidence.has(f"{want.key}-index"):
        file = _index(want, evidence).get("fc.weight", "")
        return (_head(want, place, file, HEAD),) if file and "/" not in file else ()
    key = f"{want.key}-header"
    if not evidence.has(key):
        return ()
    result = evidence.command(key)
    try:
        size = safetensors.header_size(result.stdout)
    except safetensors.NotSafetensors:
        return ()
    if result.trouble or safetensors.PREFIX + size <= HEAD:
        return ()
    again = _head(want, place, str(result.question.argv[-1]).rsplit("/", 1)[-1], safetensors.PREFIX + size)
    return (dataclasses.replace(again, key=f"{want.key}-header-whole"),)


def _head(want: Wanted, place: Place, file: str, size: int) -> Command:
    return Command(
        key=f"{want.key}-header",
        argv=("head", "-c", str(size), f"{place.folder}/{file}"),
        cap=size + 1,
        alone=True,
    )


# --- understanding -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Understood:
    """A model's configuration, and what could not be read beside it."""

    config: ModelConfig
    strict: bool
    unread: tuple[str, ...] = ()


def understand(
    want: Wanted, place: Place, evidence: Evidence, arguments: tuple[ServerArgs, ...]
) -> Understood:
    """The model's configuration. Raises `Unanswered` when config.json is missing, cut, or no JSON object."""
    key = f"{want.key}-config"
    path = f"{place.folder}/{place.file}"
    document = _document(key, path, evidence, want, place)
    overrides, notes = _overrides(arguments)
    read = model_config.read(document.value, overrides if want.servers else None)
    files = names(evidence, place.folder)
    unread: list[str] = []
    sources = [Cite(key, "$")]
    if files:
        sources.append(Cite(folder_key(place.folder), "files"))
    extra: dict[str, Any] = {"files": files[:400]}
    if want.role == "target":
        extra["special_token_ids"] = _special(want, evidence, sources, unread)
    else:
        extra |= _weights(want, evidence, sources, unread)
    config = ModelConfig.of(
        {**read.fields, "notes": (*document.notes, *read.fields["notes"], *notes)},
        read.rope,
        role=want.role,
        path=path,
        reference=want.reference,
        revision=place.revision,
        source=tuple(sources),
        **extra,
    )
    return Understood(config, document.strict, tuple(unread))


def each_server(config: ModelConfig, want: Wanted) -> Iterator[ModelConfig]:
    """The configuration, once for each server that uses it."""
    for name in want.servers or ("",):
        yield dataclasses.replace(config, server=name)


def _document(key: str, path: str, evidence: Evidence, want: Wanted, place: Place) -> lenient_json.Document:
    result = evidence.command(key)
    if result.trouble:
        files = names(evidence, place.folder)
        there = f" (there are {', '.join(files[:8])})" if files and place.file not in files else ""
        raise Unanswered(want.role, f"{path}: {result.trouble}{there}")
    try:
        document = lenient_json.read(result.stdout)
    except lenient_json.NotJson as error:
        raise Unanswered(want.role, f"{path} {error}") from None
    if not isinstance(document.value, dict):
        kind = {list: "a list", str: "a text", type(None): "null"}.get(type(document.value), "a single value")
        raise Unanswered(want.role, f"{path} holds {kind}, not an object: it is no model's config.json")
    return document


def _overrides(arguments: tuple[ServerArgs, ...]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """What `--json-model-override-args` lays over the file."""
    for args in arguments:
        value = args.get("json_model_override_args")
        if isinstance(value, str) and value.strip() not in ("", "{}"):
            try:
                value = lenient_json.read(value.encode("utf-8", "replace")).value
            except lenient_json.NotJson as error:
                return {}, (f"--json-model-override-args {error}",)
        if isinstance(value, dict) and value:
            return value, ()
    return {}, ()


def _special(
    want: Wanted, evidence: Evidence, sources: list[Cite], unread: list[str]
) -> tuple[int, ...] | None:
    key = f"{want.key}-tokenizer"
    try:
        document = lenient_json.read(evidence.text(key).encode("utf-8", "replace"))
    except (Unanswered, lenient_json.NotJson) as error:
        reason = error.reason if isinstance(error, Unanswered) else f"tokenizer_config.json {error}"
        unread.append(f"special token ids of the target: {reason}")
        return None
    sources.append(Cite(key, "$.added_tokens_decoder"))
    return model_config.special_ids(document.value) if isinstance(document.value, dict) else None


def _weights(want: Wanted, evidence: Evidence, sources: list[Cite], unread: list[str]) -> dict[str, Any]:
    """The shape of fc.weight and the names of all tensors."""
    found: dict[str, Any] = {}
    if evidence.has(f"{want.key}-index"):
        names = _index(want, evidence)
        sources.append(Cite(f"{want.key}-index", "index"))
        found["tensors"] = tuple(sorted(names))[:4096] or None
    whole = f"{want.key}-header-whole"
    key = whole if evidence.has(whole) else f"{want.key}-header"
    if not evidence.has(key):
        unread.append("tensor shapes of the drafter: no safetensors file is named in its folder")
        return found
    result = evidence.command(key)
    try:
        if result.trouble:
            raise safetensors.NotSafetensors(result.trouble)
        tensors = safetensors.tensors(result.stdout)
    except safetensors.NotSafetensors as error:
        unread.append(f"tensor shapes of the drafter: {result.question.argv[-1]} {error}")
        return found
    sources.append(Cite(key, "header"))
    shapes = {tensor.name.removeprefix("model.").removeprefix("encoder."): tensor.shape for tensor in tensors}
    found["fc_weight_shape"] = shapes.get("fc.weight")
    found.setdefault("tensors", tuple(sorted(tensor.name for tensor in tensors))[:4096])
    return found


def _index(want: Wanted, evidence: Evidence) -> dict[str, str]:
    """Tensor name → file, with fc.weight under its plain name."""
    try:
        value = lenient_json.read(evidence.command(f"{want.key}-index").stdout).value
    except lenient_json.NotJson:
        return {}
    names = value.get("weight_map") if isinstance(value, dict) else None
    if not isinstance(names, dict):
        return {}
    plain = {str(name): str(file) for name, file in names.items()}
    for alias in ("model.fc.weight", "encoder.fc.weight"):
        if alias in plain:
            plain.setdefault("fc.weight", plain[alias])
    return plain
