"""Draws drafter, target and server arguments side by side, from facts alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ddprobe.blocks import Block, Heading, Pairs, Paragraph, Table
from ddprobe.facts import Discovered, ModelConfig
from ddprobe.lints.served import Served, put_together
from ddprobe.model import Fact
from ddprobe.probes.draft._cells import (
    NONE,
    Cell,
    arg,
    block,
    block_differs,
    context,
    depth_differs,
    drafts,
    field,
    heads,
    hidden,
    layer_types,
    length,
    mask,
    mask_outside,
    rope,
    scaling,
    taps,
    taps_outside,
    target_layer_types,
    theta,
    theta_differs,
    too_short,
    unlike,
    vocabulary,
    window,
)
from ddprobe.verdicts.words import listed

MARK = " ≠"
COLUMNS = ("", "drafter", "target", "server argument")
_ON_COMMAND_LINE = "on the command line"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `differs` says whether what stands in it disagrees."""

    label: str
    drafter: Callable[[ModelConfig, Served], str] | None = None
    target: Callable[[ModelConfig, Served], str] | None = None
    server: Cell | None = None
    differs: Callable[[Served], bool] = lambda _served: False


def blocks(facts: Sequence[Fact]) -> Iterator[Block]:
    """A table for each server (or pair named by hand), then what was discovered and from what."""
    servers = put_together(facts)
    for served in servers:
        if served.drafter is None and served.target is None and not served.arguments_known:
            continue
        yield Heading(_title(served))
        yield _table(served)
    if not servers:
        yield Paragraph("No server, drafter or target is known from this look.", "warn")
    found = [fact for fact in facts if isinstance(fact, Discovered)]
    known = [fact for fact in found if fact.what not in ("note", "not read")]
    if known:
        rows = dict.fromkeys((fact.what, f"{fact.value} ({fact.origin})") for fact in known)
        yield Pairs(tuple(rows), title="Discovered, and from what")
    for fact in found:
        if fact.what in ("note", "not read"):
            yield Paragraph(fact.value, "dim")


def _title(served: Served) -> str:
    if not served.name:
        if not served.arguments_known:
            return "Drafter and target as named"
        there = (("drafter", served.drafter), ("target", served.target), ("server arguments", True))
        return listed([name for name, held in there if held]).capitalize()
    version = f" {served.version}" if served.version else ""
    place = f" in {served.process.container}" if served.process and served.process.container else ""
    where = f" at {served.process.base}" if served.process and served.process.base else ""
    return f"{served.name}{version}{place}{where}"


def _table(served: Served) -> Table:
    rows: list[tuple[str, ...]] = []
    marked = []
    for row in ROWS:
        cells = (
            row.drafter(served.drafter, served) if row.drafter and served.drafter else NONE,
            row.target(served.target, served) if row.target and served.target else NONE,
            (row.server(served) or NONE) if row.server and served.arguments_known else NONE,
        )
        if all(cell in (NONE, "") for cell in cells):
            continue
        differs = row.differs(served)
        if differs:
            marked.append(len(rows))
        rows.append((row.label + (MARK if differs else ""), *(cell or NONE for cell in cells)))
    # A column that nothing stands in says nothing.
    kept = [0, *(number for number in (1, 2, 3) if any(row[number] != NONE for row in rows))]
    origin = "as the server resolved it" if served.resolved is not None else _ON_COMMAND_LINE
    return Table(
        columns=tuple(COLUMNS[number] for number in kept),
        rows=tuple(tuple(row[number] for number in kept) for row in rows),
        caption=" ".join(
            [
                *([f"{MARK.strip()} disagrees."] if marked else ()),
                f"{NONE} not stated or not read.",
                f"Server arguments: {origin}." if served.arguments_known else "No server uses these.",
            ]
        ),
        emphasis=tuple(marked),
    )


ROWS = (
    Row("named as", field("reference"), field("reference")),
    Row("algorithm", None, None, arg("speculative_algorithm")),
    Row("architecture", field("architectures"), field("architectures")),
    Row("layers", field("num_hidden_layers"), field("num_hidden_layers")),
    Row("layer types", layer_types, target_layer_types),
    Row("sliding window, tokens", window, window, arg("speculative_draft_window_size", "speculative_dflash_draft_window_size")),
    Row("RoPE type", rope, rope),
    Row("RoPE theta", theta, theta, differs=theta_differs),
    Row("RoPE scaling", scaling, scaling, arg("json_model_override_args")),
    Row("max positions, tokens", length, length, context, too_short),
    Row("block size, tokens", block, None, arg("speculative_num_draft_tokens"), block_differs),
    Row("drafts per step", drafts, None, arg("num_speculative_tokens", "speculative_dspark_block_size")),
    Row("mask token", mask, None, None, mask_outside),
    Row("target layer ids", taps, None, None, taps_outside),
    Row("trained for layers", field("num_target_layers"), field("num_hidden_layers"), None, depth_differs),
    Row("vocabulary", vocabulary, vocabulary, None, unlike("vocab_size")),
    Row("dtype", field("dtype"), field("dtype"), arg("dtype"), unlike("dtype")),
    Row("quantisation", field("quantization"), field("quantization"), arg("speculative_draft_model_quantization", "quantization")),
    Row("KV cache type", None, None, arg("speculative_draft_kv_cache_dtype", "kv_cache_dtype")),
    Row("heads q / kv / size", heads, heads, arg("tp_size")),
    Row("hidden size", hidden, hidden, None, unlike("hidden_size")),
    Row("fc.weight", field("fc_weight_shape")),
    Row("attention backend", None, None, arg("speculative_draft_attention_backend", "attention_backend")),
)  # fmt: skip
