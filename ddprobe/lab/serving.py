"""What a made-up host serves, and the start of its simulated engine."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ddprobe.lab import models
from ddprobe.lab.engine import meta_info, wiring
from ddprobe.lab.engine.engine import Engine
from ddprobe.lab.engine.ledger import Ledger
from ddprobe.lab.engine.tokenizer import Tokenizer
from ddprobe.lab.tree import File, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What a made-up host serves, and on what."""

    hostname: str
    gpu: str
    gpus: int
    bandwidth: float
    """GB/s of one GPU's memory, by its data sheet."""
    target: str
    target_config: Mapping[str, Any]
    target_files: Mapping[str, File]
    special_tokens: int
    """Ids from here on are special ones."""
    drafter: str
    drafter_config: Mapping[str, Any]
    drafter_files: Mapping[str, File]
    given: Mapping[str, Any]
    """Server arguments under canonical names, in the order of the command line."""
    environment: Mapping[str, str]
    token_capacity: int
    weight_gb: float
    kv_cache_gb: float
    parts: wiring.Parts
    pace: float
    """Seconds of the lab per second that the made-up hardware takes: nobody waits for a minute on a lab."""
    served: Sequence[tuple[int, int]]
    """(prompt, output) in tokens of the requests it had before, at the hardware's own pace."""
    version: str = "0.5.23"


def start(serving: Serving, log: Log, now: int) -> Engine:
    """Its engine, with some requests behind it and a log that tells of them."""
    given = serving.given
    log.started = now - 12 * 3600
    log.write(0.0, "ddprobe lab: a made-up log")
    if "speculative_algorithm" in given:
        for line in _drafter_lines(serving):
            log.write(38.0, line)
    text = serving.target_config.get("text_config", serving.target_config)
    speculates = "speculative_algorithm" in given
    engine = Engine(
        model=wiring.model(
            replace(serving.parts, law=serving.parts.law.paced(serving.pace)),
            config=serving.drafter_config,
            given=given,
            environment=serving.environment,
            ordinary=serving.special_tokens,
            capacity=serving.token_capacity,
        ),
        tokenizer=Tokenizer(serving.special_tokens),
        ledger=Ledger(
            draft_tokens=given["speculative_num_draft_tokens"] - 1 if speculates else None,
            capacity=serving.token_capacity,
            tree="speculative_ddtree_budget" in given,
        ),
        pace=serving.pace,
        version=meta_info.version_of(serving.version),
        vocabulary=text["vocab_size"],
        context_length=given["context_length"],
        write_log=log.write,
    )
    for number, (prompt, output) in enumerate(serving.served):
        log.started = now - 11 * 3600 + 1800 * number
        engine.look_back(prompt, output, serving.parts.law)
    log.started = None
    log.write(0.0, f"ddprobe lab: from here on a second of the hardware takes {serving.pace:g} s")
    return engine


class Log:
    """The server's log file on the made-up host."""

    def __init__(self, tree: Tree, path: str, uid: int, rank: str) -> None:
        self.tree = tree
        self.path = path
        self.uid = uid
        self.rank = f" {rank}" if rank else ""
        self.started: int | None = None
        """Where its clock begins; None: it is the present."""
        self.text = b""

    def write(self, after: float, line: str) -> None:
        """Add a line that is written so many seconds after now."""
        at = (time.time() if self.started is None else self.started) + after
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))
        self.text += f"[{stamp}{self.rank}] {line}\n".encode()
        self.tree.add(self.path, File(content=self.text, uid=self.uid, modified=int(at)))


def _drafter_lines(serving: Serving) -> tuple[str, str]:
    """What the server says of its drafter at start."""
    config, given = serving.drafter_config, serving.given
    mask = config["dflash_config"]["mask_token_id"]
    window = given.get("speculative_draft_window_size")
    return (
        f"Initialized DFLASH draft runner. attention_backend={given['attention_backend']}, "
        f"model={config['architectures'][0]}, block_size={given['speculative_num_draft_tokens']}, "
        f"draft_window_size={window}, compact_cache=False",
        f"DFLASH draft runner ready. mask_token={models.special_name(serving.target_files, mask)}, mask_token_id={mask}, "
        f"mask_token_id_override={mask}, noise_embed_scale=1.0",
    )
