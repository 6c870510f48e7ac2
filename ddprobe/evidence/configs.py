"""Model configurations among collected files: a config.json of any dialect, GGUF metadata, tensor names and shapes.

Which role a file plays is told by its content. `merge` joins over all documents what belongs together: the tensors with
the configuration that they fit, and both with the server that runs them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ddprobe.evidence.document import Document, Found
from ddprobe.facts import ModelConfig, Rope, ServerArgs, ServerProcess, WeightNames
from ddprobe.model import Cite, Fact
from ddprobe.parsing import (
    gguf_metadata,
    lenient_json,
    model_config,
    model_role,
    safetensors,
    tensor_names,
)

_JSON = re.compile(r"\s*(?://[^\n]*\n\s*|#[^\n]*\n\s*)*\{")
_LINES = 20_000
"""Lines of a listing that are read."""
_KNOWN_ELSEWHERE = ("overridden", "places", "notes", "extra", "context_length", "architectures")


def recognise(document: Document, sample: str) -> Found | None:
    """A model's configuration or the names of its tensors; None for anything else."""
    if sample[8:9] == "{" and not sample.lstrip().startswith("{"):
        return _header(document)
    if _JSON.match(sample.lstrip("\ufeff")):
        return _json(document)
    if gguf_metadata.ARCHITECTURE in sample:
        metadata = gguf_metadata.of_lines(_first_lines(document))
        return _gguf(document, metadata) if gguf_metadata.ARCHITECTURE in metadata else None
    if ".weight" in sample:
        listing = tensor_names.of_lines(_first_lines(document))
        return _weights(document, listing) if listing else None
    return None


def _first_lines(document: Document) -> list[str]:
    return [line for _, line in zip(range(_LINES), document.lines(), strict=False)]


def _json(document: Document) -> Found | None:
    text = document.whole()
    if text is None:
        return None
    try:
        read = lenient_json.read(text.encode("utf-8", "replace"))
    except lenient_json.NotJson:
        return None
    value = read.value
    if not isinstance(value, Mapping):
        return None
    metadata = gguf_metadata.of_json(value)
    if gguf_metadata.ARCHITECTURE in metadata:
        return _gguf(document, metadata)
    listing = tensor_names.of_json(value)
    if listing is not None:
        return _weights(document, listing)
    role = model_role.role_of(value)
    return _config(document, value, role, tuple(read.notes)) if role else None


def _gguf(document: Document, metadata: Mapping[str, Any]) -> Found:
    role = "drafter" if gguf_metadata.is_drafter(metadata) else "target"
    return _config(document, gguf_metadata.as_config(metadata), role, ("read from GGUF metadata",))


def _config(document: Document, value: Mapping[str, Any], role: str, notes: tuple[str, ...]) -> Found:
    read = model_config.read(value)
    config = ModelConfig.of(
        {**read.fields, "notes": (*notes, *read.fields["notes"])},
        read.rope,
        role=role,
        path=document.key,
        source=(Cite(document.key, "$"),),
    )
    kind = config.architectures[0] if config.architectures else config.model_type or "no class named"
    return Found(f"{role}'s configuration ({kind})", (config,))


def _header(document: Document) -> Found | None:
    head = b""
    wanted = safetensors.PREFIX + safetensors.MAX_HEADER
    for piece in document.open():
        head += piece
        if len(head) > safetensors.PREFIX:
            try:
                wanted = safetensors.PREFIX + safetensors.header_size(head)
            except safetensors.NotSafetensors:
                return None
        if len(head) >= wanted:
            break
    try:
        tensors = safetensors.tensors(head[:wanted])
    except safetensors.NotSafetensors:
        return None
    shapes = {tensor.name: {"shape": list(tensor.shape)} for tensor in tensors}
    listing = tensor_names.of_json(shapes)
    return _weights(document, listing) if listing is not None else None


def _weights(document: Document, listing: tensor_names.Listing) -> Found:
    at = "header" if listing.fc_weight_shape is not None else "index"
    fact = WeightNames(
        names=listing.names,
        fc_weight_shape=listing.fc_weight_shape,
        whole=listing.whole,
        source=(Cite(document.key, at),),
    )
    return Found(f"names of {len(listing.names)} tensors", (fact,))


# --- joining what belongs together -------------------------------------------------------------------------


def merge(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The facts, each configuration with its tensors, its overrides and its server; in the order in which they came."""
    facts = _once(facts)
    configs = _roles([fact for fact in facts if isinstance(fact, ModelConfig)], facts)
    weights = [fact for fact in facts if isinstance(fact, WeightNames)]
    names = _names(facts)
    overrides = _overrides(facts)
    joined = {}
    for original, config in configs.items():
        mine = [each for each in weights if _owner(each, list(configs.values())) is config]
        joined[original] = _served(_overridden(_with(config, mine), overrides), names)
    kept = [fact for fact in facts if not isinstance(fact, WeightNames)]
    return tuple(joined[fact] if isinstance(fact, ModelConfig) else fact for fact in kept)


def _once(facts: Sequence[Fact]) -> list[Fact]:
    """The facts without a second copy of a configuration."""
    seen: set[ModelConfig] = set()
    found: list[Fact] = []
    for fact in facts:
        if isinstance(fact, ModelConfig):
            bare = dataclasses.replace(fact, source=(), path="")
            if bare in seen:
                continue
            seen.add(bare)
        found.append(fact)
    return found


def _roles(configs: list[ModelConfig], facts: Sequence[Fact]) -> dict[ModelConfig, ModelConfig]:
    """Each configuration with its role: of two plain models of a server that has a draft model, the smaller drafts."""
    found = {config: config for config in configs}
    drafts = any(isinstance(f, ServerArgs) and f.get("speculative_draft_model_path") for f in facts)
    plain = [config for config in configs if not config.server]
    if drafts and len(plain) == 2 and all(config.role == "target" for config in plain):
        small, large = sorted(plain, key=_size)
        if _size(small) < _size(large):
            note = "taken for the drafter: it is the smaller of two models"
            found[small] = dataclasses.replace(small, role="drafter", notes=(*small.notes, note))
    return found


def _size(config: ModelConfig) -> int:
    return (config.num_hidden_layers or 0) * (config.hidden_size or 0)


def _owner(weights: WeightNames, configs: Sequence[ModelConfig]) -> ModelConfig | None:
    """The configuration that these tensors belong to, if that can be said."""
    roles = ("drafter",) if tensor_names.are_a_drafters(weights.names) else ("drafter", "target")
    fitting = [config for config in configs if config.role in roles and config.tensors is None]
    count = tensor_names.layers(weights.names)
    exact = [c for c in fitting if count is not None and count in _layer_counts(c)]
    chosen = exact or fitting
    return chosen[0] if len(chosen) == 1 else None


def _layer_counts(config: ModelConfig) -> tuple[int, ...]:
    """Numbers of layers that its weights may have: an MTP layer may stand behind the others."""
    layers = config.num_hidden_layers
    return () if layers is None else (layers, layers + (config.nextn_layers or 0))


def _with(config: ModelConfig, weights: Sequence[WeightNames]) -> ModelConfig:
    if not weights:
        return config
    shapes = [each.fc_weight_shape for each in weights if each.fc_weight_shape is not None]
    names = tuple(dict.fromkeys(name for each in weights for name in each.names))
    return dataclasses.replace(
        config,
        tensors=names if all(each.whole for each in weights) else None,
        fc_weight_shape=shapes[0] if shapes else config.fc_weight_shape,
        source=(*config.source, *(cite for each in weights for cite in each.source)),
    )


def _names(facts: Sequence[Fact]) -> list[str]:
    """The names of the servers that the facts speak of."""
    processes = [fact.name for fact in facts if isinstance(fact, ServerProcess)]
    return list(dict.fromkeys(processes or [f.server for f in facts if isinstance(f, ServerArgs)]))


def _served(config: ModelConfig, names: Sequence[str]) -> ModelConfig:
    """The configuration as that of the only server there is."""
    if config.server or len(names) != 1:
        return config
    return dataclasses.replace(config, server=names[0])


def _overrides(facts: Sequence[Fact]) -> Mapping[str, Any]:
    """`--json-model-override-args` of the only server that has some."""
    found = [
        value
        for fact in facts
        if isinstance(fact, ServerArgs) and isinstance(value := fact.get("json_model_override_args"), Mapping)
    ]
    return found[0] if found and all(each == found[0] for each in found) else {}


def _overridden(config: ModelConfig, overrides: Mapping[str, Any]) -> ModelConfig:
    """The configuration with what the launch lays over it, as SGLang does for drafter and target alike."""
    if not overrides or config.overridden:
        return config
    read = model_config.read(overrides)
    places = dict(read.fields["places"])
    fields = {
        name: value
        for name, value in read.fields.items()
        if name in places and name not in _KNOWN_ELSEWHERE and value is not None
    }
    rope = {name: value for name, value in read.rope.items() if f"rope.{name}" in places}
    if "rope.kind" in places:
        rope["kind"] = read.rope["kind"]
    replaced = tuple((name, getattr(config, name)) for name in fields)
    replaced += tuple((f"rope.{name}", getattr(config.rope, name)) for name in rope)
    replaced_rope: Rope = dataclasses.replace(config.rope, **rope)
    return dataclasses.replace(config, **fields, rope=replaced_rope, overridden=replaced)
