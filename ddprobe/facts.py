"""What is known, each with its source: plain values that lints and verdicts judge.

They do not care where a fact came from: a live host, an old report, or files pasted into a ticket. A field that
is None was absent or could not be read; a lint says *unknown* where that matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ddprobe.model import Fact

# --- the host and its servers ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered(Fact):
    """Something ddprobe found by itself, and from what it concluded it."""

    what: str
    """`package`, `python`, `drafter`, `target`, `port`, `cache`, `engine`, …"""
    value: str
    origin: str
    """In words: `--speculative-draft-model-path of pid 4711`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach(Fact):
    """A host answered."""

    system: str
    """`Linux 6.1.0 x86_64`"""
    user: str
    hostname: str
    shell: str = ""
    clock_offset_seconds: float | None = None
    """Host's clock minus the laptop's, and its error is half the round trip."""
    round_trip_ms: float | None = None
    gpus: tuple[str, ...] = ()
    driver: str = ""
    """The NVIDIA driver's version."""
    engines: tuple[str, ...] | None = ()
    """`SGLang pid 4711`; None when the processes could not be searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProcess(Fact):
    """One running inference server: its main process, found in the process table."""

    engine: str
    """`sglang`, `vllm` or `llamacpp`."""
    pid: int
    argv: tuple[str, ...]
    ranks: tuple[int, ...] = ()
    """PIDs of its workers (schedulers, tensor-parallel ranks)."""
    user: str = ""
    cwd: str = ""
    executable: str = ""
    root: str = ""
    """Prefix that makes its paths readable from the host: `` or `/proc/4711/root` in a container."""
    container: str = ""
    """`docker 3f2a9c…` when its control group says so."""
    environment: tuple[tuple[str, str], ...] = ()
    """Allow-listed variables only."""
    environment_seen: bool = True
    """False when its environment could not be read: then an absent variable says nothing."""
    listens: tuple[str, ...] = ()
    """`127.0.0.1:30000`"""
    base: str = ""
    """`http://127.0.0.1:30000`, when a port is known."""
    package: str = ""
    """The installed package's folder on the host: the one that holds `srt/`. Without the `root` prefix."""
    version: str = ""
    python: str = ""

    @property
    def name(self) -> str:
        """`sglang pid 4711`: what other facts call this server."""
        return f"{self.engine} pid {self.pid}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerArgs(Fact):
    """An engine's arguments under their canonical names (`speculative_num_draft_tokens`)."""

    engine: str
    origin: str
    """`command line`, `/server_info` or `log`."""
    version: str = ""
    values: tuple[tuple[str, Any], ...] = ()
    """What was given on the command line, or everything as resolved by the server."""
    resolved: bool = False
    """True when the server itself said so (defaults filled in)."""
    server: str = ""
    """The `name` of the process they belong to."""
    elsewhere: str = ""
    """A file that holds further arguments, which were not read (`--config FILE`); empty when these are all."""

    def get(self, name: str, default: Any = None) -> Any:
        return dict(self.values).get(name, default)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState(Fact):
    """What a server said of itself over HTTP."""

    engine: str
    base: str
    healthy: bool | None = None
    version: str = ""
    model: str = ""
    draft_model: str = ""
    context_length: int | None = None
    running_requests: int | None = None
    waiting_requests: int | None = None
    token_usage: float | None = None
    accept_length_lifetime: float | None = None
    """SGLang's `avg_spec_accept_length`: lifetime, per rank, updated at log ticks. Not a measurement of now."""
    details: tuple[tuple[str, str], ...] = ()
    server: str = ""
    """The `name` of the process that said it."""


# --- model configurations ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Rope:
    """Rotary embedding parameters, whichever of `rope_parameters`, `rope_scaling` or flat fields they came from."""

    theta: float | None = None
    kind: str = ""
    """`default`, `yarn`, `deepseek_yarn`, `linear`, `dynamic`, `llama3`, … ; empty when nothing is said."""
    factor: float | None = None
    original_max_position: int | None = None
    beta_fast: float | None = None
    beta_slow: float | None = None
    mscale: float | None = None
    mscale_all_dim: float | None = None
    attn_factor: float | None = None
    attention_factor: float | None = None
    """Hugging Face's name; SGLang reads `attn_factor` only."""
    partial_rotary_factor: float | None = None
    per_layer_type: bool = False
    """The dictionary is nested per layer type; the values here are those of full attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig(Fact):
    """A drafter's or target's `config.json`, read into the field's standard terms.

    A field holds what stands in the file (with the server's `--json-model-override-args` laid over it), not what an
    engine makes of it: `engines/sglang_reading.py` says that.
    """

    role: str
    """`drafter` or `target`."""
    path: str
    server: str = ""
    """The `name` of the process that uses it; empty when it was named by hand."""
    reference: str = ""
    """As named by the server: a hub id or a folder."""
    revision: str = ""
    architectures: tuple[str, ...] = ()
    model_type: str = ""
    custom_code: bool = False
    """`auto_map` names a configuration class of the checkpoint's own."""
    num_hidden_layers: int | None = None
    hidden_size: int | None = None
    intermediate_size: int | None = None
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_nope_head_dim: int | None = None
    qk_rope_head_dim: int | None = None
    v_head_dim: int | None = None
    vocab_size: int | None = None
    draft_vocab_size: int | None = None
    num_loops: int | None = None
    dtype: str = ""
    quantization: str = ""
    layer_types: tuple[str, ...] | None = None
    sliding_window: int | None = None
    use_sliding_window: bool | None = None
    max_window_layers: int | None = None
    is_causal: bool | None = None
    max_position_embeddings: int | None = None
    context_length: int | None = None
    """The length an engine derives from this file: the first of several length fields, times the RoPE factor."""
    rope: Rope = Rope()
    tie_word_embeddings: bool | None = None
    # Speculative decoding
    block_size: int | None = None
    block_size_places: tuple[tuple[str, int], ...] = ()
    """Every place that states a block size, with its value."""
    mask_token_id: int | None = None
    mask_token: str = ""
    target_layer_ids: tuple[int, ...] | None = None
    aux_hidden_state_layer_ids: tuple[int, ...] | None = None
    """vLLM's dialect: SGLang's ids + 1."""
    num_target_layers: int | None = None
    target_hidden_size: int | None = None
    dspark_gamma: int | None = None
    pad_token_id: int | None = None
    eos_token_ids: tuple[int, ...] = ()
    bos_token_id: int | None = None
    special_token_ids: tuple[int, ...] | None = None
    """From `tokenizer_config.json` (`added_tokens_decoder`); None when that was not read."""
    fc_weight_shape: tuple[int, ...] | None = None
    """From the safetensors header; None when that was not read."""
    tensors: tuple[str, ...] | None = None
    """Names of all tensors in the weights; None when they were not read whole."""
    files: tuple[str, ...] = ()
    """Names beside config.json (`mask_embedding.pt`, …)."""
    extra: tuple[tuple[str, Any], ...] = ()
    """Fields of the drafter's own dialect that have no field here, by dotted name."""
    places: tuple[tuple[str, str], ...] = ()
    """Field here → where it stands in the file: `sliding_window` → `$.text_config.sliding_window`."""
    overridden: tuple[tuple[str, Any], ...] = ()
    """Fields that `--json-model-override-args` replaced → what the file itself says."""
    notes: tuple[str, ...] = ()
    """What a person should know of the file: values of a wrong type, duplicate keys, comments."""

    @classmethod
    def of(cls, fields: Mapping[str, Any], rope: Mapping[str, Any], **known: Any) -> ModelConfig:
        """From the fields that `parsing.model_config.read` found, and what else is known."""
        return cls(**{**fields, "rope": Rope(**rope), **known})

    def place(self, field: str) -> str:
        """Where a field stands in the file, or where it would."""
        known = dict(self.places)
        if field not in known and field.startswith("rope."):
            return f"{known.get('rope', '$.rope_scaling')}.{field.removeprefix('rope.')}"
        return known.get(field, f"$.{field}")


# --- installed source --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePackage(Fact):
    """The installed engine that `grep` and `read` look at."""

    engine: str
    path: str
    version: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSearch(Fact):
    """What a search covered."""

    pattern: str
    glob: str
    package: str
    version: str
    host: str
    files: int
    """Files that the glob names; `files_searched` are those that grep got through."""
    files_searched: int
    files_hit: int
    hits: int
    cut: bool
    """True when more hits exist than are listed."""
    proposals: tuple[str, ...] = ()
    """Arguments for `read`: `srt/speculative/dflash_worker_v2.py:212-219`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHit(Fact):
    """A line that matches, with the innermost function or class around it."""

    path: str
    line: int
    text: str
    within: str
    """`DFlashWorkerV2._commit`, or empty at module level."""
    context: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRange(Fact):
    """One range of a file, with its own status."""

    path: str
    first: int
    last: int
    """As asked; after `--symbol`, as resolved. 0-0 when the file itself could not be read."""
    total: int | None
    """Lines in the whole file; None when unknown."""
    status: str
    """`complete`, `cut`, `past_end`, `missing`, `denied`, `binary`, `directory` or `ambiguous`."""
    text: str
    """Raw lines without numbers."""
    symbol: str = ""
    note: str = ""
    """The status in a sentence: where it was cut, the nearest names on the host."""
    focus: tuple[int, ...] = ()
    """Line numbers that were asked for when `--context` widened the range."""
