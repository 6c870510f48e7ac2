"""What a person sees of the servers of one host: who runs, with which arguments, environment and state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ddprobe import engines
from ddprobe.blocks import Block, Heading, Pairs, Paragraph, Table
from ddprobe.facts import Discovered, ServerArgs, ServerProcess, ServerState
from ddprobe.model import Fact
from ddprobe.probes.discovery import ALSO_INSTALLED

# Shown from the server's own list even when the command line does not give them.
_WORTH_SHOWING = (
    "model_path", "served_model_name", "context_length", "dtype", "quantization", "kv_cache_dtype", "tp_size",
    "dp_size", "pp_size", "ep_size", "attention_backend", "prefill_attention_backend", "decode_attention_backend",
    "page_size", "mem_fraction_static", "max_running_requests", "max_total_tokens", "chunked_prefill_size",
    "disable_radix_cache", "enable_hierarchical_cache", "disable_cuda_graph", "cuda_graph_max_bs",
    "disable_overlap_schedule", "trust_remote_code", "json_model_override_args",
)  # fmt: skip
_SPECULATIVE = (
    "speculative_algorithm", "speculative_draft_model_path", "speculative_draft_model_revision",
    "speculative_num_draft_tokens", "speculative_num_steps", "speculative_eagle_topk", "speculative_dflash_block_size",
    "speculative_draft_window_size", "speculative_draft_attention_backend", "speculative_attention_mode",
    "speculative_draft_kv_cache_dtype", "speculative_draft_model_quantization", "speculative_draft_load_format",
    "speculative_token_map", "speculative_adaptive",
)  # fmt: skip
_SHORT = 160


def blocks(facts: Sequence[Fact]) -> Iterator[Block]:
    """A table of the servers, then each in detail."""
    servers = [fact for fact in facts if isinstance(fact, ServerProcess)]
    states = {fact.server: fact for fact in facts if isinstance(fact, ServerState)}
    arguments = [fact for fact in facts if isinstance(fact, ServerArgs)]
    if servers:
        yield _overview(servers, states)
    for server in servers:
        yield Heading(server.name)
        yield Pairs(_about(server))
        yield from _arguments([args for args in arguments if args.server == server.name])
        yield from _environment(server)
        if server.name in states:
            yield Pairs(_state(states[server.name]), "What it says of itself")
    for name, state in states.items():
        if all(server.name != name for server in servers):
            yield Heading(f"{engines.TABLE[state.engine].title} at {state.base}")
            yield Pairs(_state(state), "What it says of itself")
            yield from _arguments([args for args in arguments if args.server == name])
    also = [fact.value for fact in facts if isinstance(fact, Discovered) and fact.origin == ALSO_INSTALLED]
    if also:
        yield Paragraph("Also installed: " + ", ".join(also), "dim")


def _overview(servers: list[ServerProcess], states: dict[str, ServerState]) -> Table:
    rows = []
    for server in servers:
        state = states.get(server.name)
        rows.append(
            (
                server.name,
                (state.version if state else "") or server.version or "unknown",
                str(len(server.ranks)) if server.ranks else "–",
                server.container or "no",
                server.user or "unknown",
                "\n".join(server.listens) or "none seen",
                _health(state),
            )
        )
    return Table(
        ("server", "version", "ranks", "container", "user", "listens on", "health"), tuple(rows), "Servers"
    )


def _health(state: ServerState | None) -> str:
    if state is None or state.healthy is None:
        return "unknown"
    return "ready" if state.healthy else "not ready"


def _about(server: ServerProcess) -> tuple[tuple[str, str], ...]:
    named = (
        ("engine", engines.TABLE[server.engine].title),
        (
            "package",
            f"{server.package} ({server.version or 'version unknown'})" if server.package else "unknown",
        ),
        ("python", server.python),
        ("program", server.executable if not server.python else ""),
        ("started in", server.cwd),
        ("workers", ", ".join(map(str, server.ranks))),
        ("container", f"{server.container}; its files: {server.root}" if server.root else server.container),
        ("asked at", server.base),
    )
    return tuple((name, value) for name, value in named if value)


def _arguments(arguments: list[ServerArgs]) -> Iterator[Block]:
    given = next((args for args in arguments if not args.resolved), None)
    told = next((args for args in arguments if args.resolved), None)
    on_line = dict(given.values) if given else {}
    resolved = dict(told.values) if told else {}
    worth = [*_SPECULATIVE, *_of_algorithm(resolved), *_WORTH_SHOWING]
    names = [
        *on_line,
        *(name for name in worth if name not in on_line and _says_something(resolved.get(name))),
    ]
    rows = tuple(
        (
            name,
            _value(on_line[name]) if name in on_line else "",
            _value(resolved[name]) if name in resolved else "",
        )
        for name in sorted(names, key=lambda name: (not name.startswith("speculative_"), name))
    )
    if rows and told is None:
        caption = "What its defaults came to is unknown: the server did not say."
        if given is not None and given.elsewhere:
            caption = f"These are not all: {given.elsewhere} holds more, which was not read. {caption}"
        yield Table(("argument", "command line"), tuple(row[:2] for row in rows), "Arguments", caption)
    elif rows and told is not None:
        yield Table(("argument", "command line", f"in force ({told.origin})"), rows, "Arguments")


def _of_algorithm(resolved: dict[str, Any]) -> list[str]:
    """`speculative_ngram_…` matters to NGRAM only, `speculative_dspark_…` to DSPARK."""
    prefix = f"speculative_{str(resolved.get('speculative_algorithm')).lower()}_"
    return [name for name in resolved if name.startswith(prefix) and name not in _SPECULATIVE]


def _says_something(value: Any) -> bool:
    return value not in (None, "", False, [], {}, "{}")


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}… ({len(text)} characters)"


def _environment(server: ServerProcess) -> Iterator[Block]:
    """Variables that change how an engine behaves; a path list or a home folder does not."""
    quiet = ("PATH", "HOME", "USER", "LOGNAME", "PWD", "SHELL", "LANG", "LC_", "TMPDIR", "HOSTNAME", "OLDPWD")
    rows = tuple(
        (name, _value(value))
        for name, value in server.environment
        if not name.startswith(quiet) and value != "[redacted]"
    )
    if not server.environment_seen:
        yield Paragraph("Its environment could not be read.", "warn")
    elif rows:
        yield Pairs(rows, "Environment that matters")


def _state(state: ServerState) -> tuple[tuple[str, str], ...]:
    named = (
        ("health", _health(state)),
        ("version", state.version),
        ("model", state.model),
        ("draft model", state.draft_model),
        ("context length, tokens", _number(state.context_length)),
        ("requests running", _number(state.running_requests)),
        ("requests waiting", _number(state.waiting_requests)),
        ("KV cache in use", f"{state.token_usage:.1%}" if state.token_usage is not None else ""),
        ("accept length since start (not of now)", _number(state.accept_length_lifetime)),
    )
    return tuple((name, value) for name, value in (*named, *state.details) if value)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
